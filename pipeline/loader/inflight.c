/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/loader/inflight.h"

#include "base/clock.h"
#include "base/fail.h"

#include <assert.h>
#include <errno.h>

void inflight_create(struct inflight *inflight, uint32_t depth, bool find_depth, const char *name,
                     struct meter *meter)
{
    *inflight = (struct inflight){.name = name, .meter = meter};
    pthread_mutex_init(&inflight->lock, NULL);
    depth_start(&inflight->depth, depth);
    if (!find_depth)
        depth_fix(&inflight->depth);
}

void inflight_destroy(struct inflight *inflight)
{
    pthread_mutex_destroy(&inflight->lock);
}

void inflight_reset(struct inflight *inflight, uint64_t rate_limit_bytes)
{
    inflight->rate = (struct rate){.bytes_per_s = rate_limit_bytes};
    inflight->figures = (struct loader_figures){0};
    inflight->arrived = (struct pace){0};
    inflight->waits = (struct stall){0};
    inflight->heard_ns = inflight->read_end_ns = 0;
}

bool inflight_has_room(struct inflight *inflight)
{
    return inflight->reader.in_flight < inflight->depth.now &&
           (!inflight->rate.bytes_per_s || rate_wait_ns(&inflight->rate, clock_now_ns()) == 0);
}

int inflight_submit(struct inflight *inflight, struct read_request *request)
{
    const bool was_idle = inflight->reader.in_flight == 0;
    int code = reader_submit(&inflight->reader, request);

    if (code == 0 && was_idle)
        inflight->heard_ns = clock_now_ns(); /* not issue_ns: an I/O thread may own the request */
    return code;
}

void inflight_count(struct inflight *inflight, const struct read_request *request)
{
    struct loader_figures *figures = &inflight->figures;

    if (figures->requests++ == 0) {
        figures->read_start_ns = clock_now_ns();
        if (inflight->read_end_ns && inflight->reader.in_flight == 1)
            figures->idle_ns = figures->read_start_ns - inflight->read_end_ns;
    }
    figures->request_bytes += request->bytes;
    rate_spend(&inflight->rate, request->bytes);
}

/* Begin or end a wait; returns the time. */
static uint64_t note_wait(struct inflight *inflight, void (*note)(struct stall *, uint64_t))
{
    pthread_mutex_lock(&inflight->lock);
    const uint64_t now_ns = clock_now_ns();
    note(&inflight->waits, now_ns);
    pthread_mutex_unlock(&inflight->lock);
    return now_ns;
}

/* Readers time out their own reads; this catches a reader that does not. */
static int check_hung(const struct inflight *inflight)
{
    const uint64_t silent_ns = clock_now_ns() - inflight->heard_ns;

    if (silent_ns <= reader_patience_ns(&inflight->reader))
        return 0;
    return fail(ETIMEDOUT,
                "the %s reader has not answered any of %u reads for %.1f s; check the storage "
                "or raise --io-timeout",
                inflight->name, inflight->reader.in_flight, (double)silent_ns / 1e9);
}

int inflight_reap(struct inflight *inflight, struct read_request **done, uint64_t wait_ns)
{
    assert(wait_ns == 0 || inflight->reader.in_flight > 0);
    const uint64_t start_ns = wait_ns ? note_wait(inflight, stall_begin) : 0;
    int count = reader_reap(&inflight->reader, done, INFLIGHT_GROUP, wait_ns);
    uint64_t bytes = 0;

    if (wait_ns)
        meter_add(inflight->meter, METER_LOADER_STORAGE_NS,
                  note_wait(inflight, stall_end) - start_ns);
    if (count <= 0)
        return count == 0 && wait_ns ? check_hung(inflight) : count;
    for (int i = 0; i < count; i++)
        bytes += done[i]->result > 0 ? (uint64_t)done[i]->result : 0;
    inflight->read_end_ns = inflight->heard_ns = done[count - 1]->complete_ns;
    depth_feed(&inflight->depth, (uint32_t)count, bytes, inflight->is_full, inflight->read_end_ns);
    pace_add(&inflight->arrived, inflight->read_end_ns, inflight->arrived.last.amount + bytes);
    meter_add(inflight->meter, METER_READ_BYTES, bytes);
    meter_add(inflight->meter, METER_READ_COUNT, (uint64_t)count);
    if (inflight->reader.traits.is_passthrough)
        meter_add(inflight->meter, METER_PASSTHROUGH_BYTES, bytes);
    if (inflight->reader.traits.is_client)
        meter_add(inflight->meter, METER_CLIENT_BYTES, bytes);
    return count;
}

/* The duration of the first quarter is extrapolated: the bytes of the first completion have no
 * start time. */
void inflight_end_epoch(struct inflight *inflight)
{
    const struct pace *arrived = &inflight->arrived;
    const uint64_t quarter = arrived->last.amount / 4, first = arrived->points[0].amount;
    struct loader_figures *figures = &inflight->figures;

    figures->read_end_ns = inflight->read_end_ns;
    if (arrived->count < 8 || first >= quarter)
        return;
    figures->quarter_ns = pace_when(arrived, quarter);
    figures->head_ns = (uint64_t)((double)(figures->quarter_ns - arrived->points[0].ns) *
                                  (double)quarter / (double)(quarter - first));
}

struct loader_figures inflight_take_figures(struct inflight *inflight)
{
    const struct loader_figures figures = inflight->figures;

    inflight->figures = (struct loader_figures){0};
    inflight->arrived = (struct pace){0};
    return figures;
}

uint64_t inflight_wait_ns(struct inflight *inflight)
{
    pthread_mutex_lock(&inflight->lock);
    const uint64_t wait_ns = stall_ns(&inflight->waits, clock_now_ns());
    pthread_mutex_unlock(&inflight->lock);
    return wait_ns;
}
