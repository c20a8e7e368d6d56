/* SPDX-License-Identifier: Apache-2.0
 *
 * Invariants, each asserted where it could break, and those that count at the end of a run, in
 * flow_check_end():
 *
 * 1. A fetch is in exactly one state (fetch.h), and only the loader's thread changes it.
 * 2. A request belongs to the reader from submit until it is reaped. Its block then belongs to its
 *    records: the last one to be copied out or dropped releases it, exactly once.
 * 3. Draws leave in plan order, whatever order the reads end in.
 * 4. Memory acquired = memory of blocks + records' own memory. What a timed-out read may still
 *    write to is never reused or freed.
 * 5. While the reader is starved nothing is submitted; while a block is refused, nothing new.
 * 6. The loop never waits for an event that cannot come. If no read is in flight, no fetch is with
 *    a worker and no rate limit holds, each turn submits a read, delivers a fetch or copies a
 *    record out of a mapping, or the run fails with a reason that names what is exhausted. With
 *    reads in flight the loop waits for the reader, which finishes each within the time-out;
 *    inflight.c catches one that hangs.
 */
#include "pipeline/loader/loader.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/heap.h"
#include "base/memory.h"
#include "base/queue.h"
#include "base/thread.h"
#include "pipeline/loader/flow.h"
#include "pipeline/loader/plan_prefetch.h"
#include "readers/parallel_reader.h"

#include <errno.h>
#include <stdlib.h>

enum { EPOCHS_AHEAD = 8 }; /* epochs ended whose figures have not been requested */

struct epochs {
    uint64_t next, end;
};

struct loader {
    struct loader_config config;
    struct numa numa;
    struct parallel_reader_settings parallel; /* with several I/O threads */
    struct thread thread;
    struct flow flow;
    struct plan_prefetch prefetch;
    bool plan_is_cut;    /* the epoch ends before its plan does */
    struct epochs ahead; /* popped from `epochs` and not begun */
    bool is_requested;   /* the order of the first of them */

    struct queue *epochs;  /* from loader_begin() */
    struct queue *opened;  /* one entry: 0 once the reader was opened, or why not */
    struct queue *closing; /* closed once no worker holds a fetch any more */
    struct queue *ended;   /* figures of completed epochs */
};

/* ---- epochs ---- */

static int begin_epoch(struct loader *loader, uint64_t epoch)
{
    const struct loader_config *config = &loader->config;
    struct plan *plan;
    int code = plan_prefetch_acquire(&loader->prefetch, epoch, &plan);

    if (code)
        return code;
    loader->flow.inflight.figures.plan_ns = plan->begin_ns;
    uint64_t draws = plan_draws(plan);
    if (epoch == config->resume_epoch && config->resume_draw) {
        code = plan_seek(plan, config->resume_draw);
        if (code)
            return code;
        draws -= config->resume_draw;
    }
    const uint64_t limit = order_rank_samples(config->order);
    loader->plan_is_cut = limit && draws > limit;
    if (loader->plan_is_cut)
        draws = limit;
    window_begin(&loader->flow.window, plan, epoch, draws,
                 config->sink.expect(config->sink.state, draws));
    return 0;
}

/* The epoch is under way to the last record and the next order is made: its reads can begin. A plan
 * that was cut short is drained instead: it holds records that will never be drawn. */
static bool may_go_on(const struct loader *loader)
{
    return loader->is_requested && window_is_done(&loader->flow.window) && !loader->plan_is_cut &&
           plan_prefetch_is_ready(&loader->prefetch);
}

/* Returns false if there is no further epoch, or none yet and !wait. */
static bool look_ahead(struct loader *loader, bool wait)
{
    return loader->ahead.next < loader->ahead.end ||
           queue_pop_many(loader->epochs, &loader->ahead, 1, wait) == 1;
}

/* Request the next epoch's order as soon as that epoch is begun. */
static void prefetch_order(struct loader *loader)
{
    if (!loader->config.next_plan || loader->is_requested || !look_ahead(loader, false))
        return;
    loader->is_requested = true;
    plan_prefetch_request(&loader->prefetch, loader->ahead.next);
}

static int run_epoch(struct loader *loader, uint64_t epoch)
{
    int code = begin_epoch(loader, epoch);

    while (code >= 0 && !flow_is_drained(&loader->flow) && !may_go_on(loader)) {
        bool blocked;
        prefetch_order(loader);
        code = flow_turn(&loader->flow, &blocked);
        if (code == 0 && !flow_is_drained(&loader->flow) && !may_go_on(loader))
            code = flow_wait(&loader->flow, blocked);
    }
    if (code < 0)
        return code;
    if (!may_go_on(loader)) {
        loader->flow.inflight.figures.spare = flow_drop_slots(&loader->flow);
        inflight_end_epoch(&loader->flow.inflight);
    }
    const struct loader_figures figures = inflight_take_figures(&loader->flow.inflight);
    queue_push(loader->ended, &figures);
    return 0;
}

static int open_reader(struct loader *loader)
{
    const struct loader_config *config = &loader->config;
    const struct plugin_choice parallel = {.plugin = &reader_parallel.plugin,
                                           .settings = &loader->parallel};
    struct flow *flow = &loader->flow;
    struct reader *reader = &flow->inflight.reader;
    const uint64_t largest = flow->window.rules.read_bytes > config->catalog->record_bytes_max
                                 ? flow->window.rules.read_bytes
                                 : config->catalog->record_bytes_max;
    const struct reader_config reader_config = {
        .catalog = config->catalog,
        .regions = flow->arenas.regions,
        .region_count = flow->arenas.count,
        .depth = loader_depth_most(config->read),
        .bytes_max = (uint32_t)bytes_align_up(largest + HEAP_ALIGNMENT, HEAP_ALIGNMENT),
        .timeout_ns = config->read->io_timeout_ns,
        .in_order = config->plan->traits.front_to_back && catalog_is_in_order(config->catalog),
        .falls_back = config->reader_falls_back,
    };
    int code = reader_open(reader, loader->parallel.count > 1 ? &parallel : config->reader,
                           &reader_config);

    if (code)
        return code;
    if (reader->traits.alignment > 1 && config->alignment < HEAP_ALIGNMENT)
        return fail(EINVAL, "the %s reader reads whole pages only: add --direct",
                    config->reader->plugin->name);
    flow->window.rules.alignment = reader->traits.alignment;
    return 0;
}

static int loader_body(void *argument)
{
    struct loader *loader = argument;
    int code = open_reader(loader);

    queue_push(loader->opened, &code);
    while (code == 0 && look_ahead(loader, true)) {
        loader->is_requested = false;
        code = run_epoch(loader, loader->ahead.next++);
    }
    if (code) {
        loader_cancel(loader);
        loader->config.sink.cancel(loader->config.sink.state);
    } else {
        queue_close(loader->flow.ready);
    }
    plan_prefetch_stop(&loader->prefetch);
    queue_pop_many(loader->closing, &(int){0}, 1, true);
    if (code == 0)
        code = flow_collect(&loader->flow, false); /* releases the last mapped pages */
    if (code == 0)
        flow_check_end(&loader->flow);
    if (code == 0)
        code = reader_settle(&loader->flow.inflight.reader);
    reader_close(&loader->flow.inflight.reader);
    loader->flow.arenas.held |= loader->flow.inflight.reader.held > 0;
    return code;
}

/* ---- life ---- */

struct loader *loader_create(const struct loader_config *config)
{
    struct loader *loader = memory_zeroed(sizeof *loader);

    if (!loader)
        return NULL;
    loader->config = *config;
    loader->prefetch = (struct plan_prefetch){.plans = {config->plan, config->next_plan},
                                              .recorder = config->recorder};
    numa_find(&loader->numa, "/sys");
    loader->parallel = (struct parallel_reader_settings){
        .reader = config->reader, .count = read_io_threads(config->read), .numa = &loader->numa};
    int code = flow_create(&loader->flow, &loader->config, &loader->numa);
    loader->epochs = queue_create(1, sizeof(struct epochs));
    loader->opened = queue_create(1, sizeof(int));
    loader->closing = queue_create(1, sizeof(int));
    loader->ended = queue_create(EPOCHS_AHEAD, sizeof(struct loader_figures));
    if (code == 0 && loader->epochs && loader->opened && loader->closing && loader->ended)
        return loader;
    loader_destroy(loader);
    return NULL;
}

void loader_destroy(struct loader *loader)
{
    if (!loader)
        return;
    flow_destroy(&loader->flow);
    queue_destroy(loader->epochs);
    queue_destroy(loader->opened);
    queue_destroy(loader->closing);
    queue_destroy(loader->ended);
    free(loader);
}

int loader_start(struct loader *loader)
{
    if (loader->flow.arenas.held)
        return fail(ETIMEDOUT, "reads of an earlier run are still in flight: check the storage");
    flow_reset(&loader->flow);
    queue_reset(loader->epochs);
    queue_reset(loader->opened);
    queue_reset(loader->closing);
    queue_reset(loader->ended);
    loader->ahead = (struct epochs){0};
    loader->is_requested = false;
    int code = thread_start(&loader->thread, "loader", loader_body, loader);
    if (code)
        return code;
    queue_pop_many(loader->opened, &code, 1, true);
    return code ? loader_join(loader) : 0;
}

void loader_trace(struct loader *loader, struct trace_ring *ring)
{
    loader->flow.trace = ring;
}

const struct reader_traits *loader_traits(const struct loader *loader)
{
    return &loader->flow.inflight.reader.traits;
}

void loader_begin(struct loader *loader, uint64_t first, uint64_t last)
{
    queue_push(loader->epochs, &(struct epochs){first, last + 1});
}

void loader_finish(struct loader *loader)
{
    queue_close(loader->epochs);
}

void loader_cancel(struct loader *loader)
{
    queue_cancel(loader->epochs);
    queue_cancel(loader->flow.ready);
    queue_cancel(loader->flow.returned);
    queue_cancel(loader->ended);
}

int loader_join(struct loader *loader)
{
    queue_close(loader->closing);
    return thread_join(&loader->thread);
}

int loader_acquire(struct loader *loader, struct fetch **fetches, uint32_t max)
{
    struct queue *ready = loader->flow.ready;
    int count;

    do {
        const uint64_t start_ns = clock_now_ns();
        count = queue_pop_within(ready, fetches, max, METER_WAIT_NS);
        meter_add(loader->config.meter, METER_DECODE_RECORD_NS, clock_now_ns() - start_ns);
    } while (count == 0 && !queue_is_drained(ready));
    return count;
}

void loader_release(struct loader *loader, struct fetch *const *fetches, uint32_t count)
{
    flow_release(&loader->flow, fetches, count);
}

bool loader_epoch_figures(struct loader *loader, struct loader_figures *figures)
{
    return queue_pop_many(loader->ended, figures, 1, true) == 1;
}

struct loader_totals loader_totals(const struct loader *loader)
{
    const struct flow *flow = &loader->flow;

    return (struct loader_totals){.depth = &flow->inflight.depth,
                                  .reader = &flow->inflight.reader.figures,
                                  .latency_ns = flow->latency_ns,
                                  .memory_peak_bytes = arenas_peak_bytes(&flow->arenas),
                                  .windows_cut = flow->window.cut};
}

struct loader_waits loader_waits(struct loader *loader)
{
    return (struct loader_waits){
        .storage_ns = inflight_wait_ns(&loader->flow.inflight),
        .memory_ns = queue_wait_ns(loader->flow.returned),
        .records_ns = queue_wait_ns(loader->flow.ready),
    };
}
