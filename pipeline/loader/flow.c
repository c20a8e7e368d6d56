/* SPDX-License-Identifier: Apache-2.0
 * Invariants: see loader.c. */
#include "pipeline/loader/flow.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/fail.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

static const uint64_t WAIT_MOST_NS = 100000000; /* a cancelled run ends this soon */

int flow_create(struct flow *flow, const struct loader_config *config, const struct numa *numa)
{
    const struct plan_traits *plan = &config->plan->traits;
    const struct coalesce rules =
        loader_reads(config->catalog, config->memory_bytes, config->read, config->order->window);

    flow->config = config;
    inflight_create(&flow->inflight, loader_depth_most(config->read), config->read->iodepth == 0,
                    config->reader->plugin->name, config->meter);
    int code = window_create(&flow->window, config->catalog, &rules, plan->slots,
                             loader_fetches_most(plan, rules.window));
    if (code == 0)
        code = blocks_create(&flow->blocks, flow->window.fetch_count, &flow->arenas,
                             &flow->inflight, config->read->on_error == JOB_ERROR_SKIP);
    if (code == 0)
        code = arenas_create(&flow->arenas, config->memory_bytes,
                             loader_set_bytes(config->catalog, config->alignment),
                             config->alignment, read_io_threads(config->read), numa);
    if (code)
        return code;
    flow->ready = queue_create(flow->window.fetch_count, sizeof(struct fetch *));
    flow->returned = queue_create(flow->window.fetch_count, sizeof(struct fetch *));
    return flow->ready && flow->returned ? 0 : -ENOMEM;
}

void flow_destroy(struct flow *flow)
{
    arenas_destroy(&flow->arenas);
    queue_destroy(flow->ready);
    queue_destroy(flow->returned);
    blocks_destroy(&flow->blocks);
    window_destroy(&flow->window);
    inflight_destroy(&flow->inflight);
}

void flow_reset(struct flow *flow)
{
    arenas_reset(&flow->arenas);
    window_reset(&flow->window);
    inflight_reset(&flow->inflight, flow->config->read->rate_limit_bytes);
    blocks_reset(&flow->blocks);
    flow->draws = (struct draw_list){0};
    flow->outstanding = flow->next_address = 0;
    memset(flow->latency_ns, 0, sizeof flow->latency_ns);
    queue_reset(flow->ready);
    queue_reset(flow->returned);
    flag_clear(&flow->wants_returned);
}

/* ---- a turn ---- */

static void drop(struct flow *flow, struct fetch *fetch)
{
    blocks_drop(&flow->blocks, fetch);
    window_recycle(&flow->window, fetch);
}

int flow_collect(struct flow *flow, bool wait)
{
    struct fetch *group[FETCH_GROUP];
    int count;

    while ((count = queue_pop_within(flow->returned, group, FETCH_GROUP,
                                     wait ? METER_WAIT_NS : 0)) > 0) {
        assert(flow->outstanding >= (uint32_t)count);
        flow->outstanding -= (uint32_t)count;
        for (int i = 0; i < count; i++)
            drop(flow, group[i]);
        wait = false;
    }
    return count;
}

static const struct trace_kind traced_fetch = {
    "fetch", true, {"epoch", "record", "shard", "offset"}};
static const struct trace_kind traced_read = {
    "read", true, {"epoch", "shard", "offset", "bytes", "result"}};

/* Read the window's next run. If memory is fragmented and nothing will free more, one record at a
 * time may still fit. */
static int submit_run(struct flow *flow)
{
    struct window *window = &flow->window;
    const uint64_t now_ns = trace_now_ns(flow->trace);
    struct coalesce_run run = window_next(window, false);
    int code = blocks_submit(&flow->blocks, &run, window_fetches(window));

    if (code == 0 && flow->inflight.reader.in_flight == 0 && flow->outstanding == 0) {
        run = window_next(window, true);
        code = blocks_submit(&flow->blocks, &run, window_fetches(window));
    }
    for (uint32_t i = 0; code > 0 && flow->trace && i < run.count; i++) {
        const struct placed_fetch *one = &window_fetches(window)[i];
        const struct fetch *fetch = one->fetch;
        trace_add(flow->trace, (struct trace_span){
                                   &traced_fetch,
                                   flow->planned_ns,
                                   now_ns,
                                   {fetch->epoch, fetch->record, fetch->shard, one->place.offset}});
    }
    if (code > 0)
        window_advance(window, run.count);
    return code;
}

/* Submit reads until the reader is full or starved, or memory is short. Returns 1 if something was
 * submitted, 0 if not, or a negative errno. *blocked: memory (or fetches) ran out. */
static int submit(struct flow *flow, bool *blocked)
{
    struct blocks *blocks = &flow->blocks;
    struct window *window = &flow->window;
    int submitted = blocks_resubmit(blocks);

    *blocked = false;
    if (submitted < 0)
        return submitted;
    while (!blocks->refused && !blocks->starved && inflight_has_room(&flow->inflight)) {
        int code = 0;
        if (window_is_empty(window)) {
            flow->planned_ns = trace_now_ns(flow->trace);
            code = window_fill(window, &flow->draws);
        }
        if (code)
            return code;
        if (window_is_empty(window)) {
            *blocked = !window->plan_ended;
            break;
        }
        code = submit_run(flow);
        *blocked = code == 0;
        if (code == -EAGAIN || code == 0)
            break;
        if (code < 0)
            return code;
        submitted = 1;
    }
    flow->inflight.is_full = flow->inflight.reader.in_flight >= flow->inflight.depth.now;
    return submitted;
}

/* Epochs that overlap are told apart by the fetches of the read, not by the time. */
static void note_read(struct flow *flow, const struct read_request *request,
                      struct histogram_run *latencies)
{
    const struct block *block = request->owner;
    const enum result_epoch_kind kind = block->fetches->epoch == flow->config->resume_epoch
                                            ? RESULT_EPOCH_FIRST
                                            : RESULT_EPOCH_LATER;

    if (request->result >= 0)
        histogram_run_add(latencies, &flow->latency_ns[kind],
                          request->complete_ns - request->issue_ns);
    if (flow->trace && request->result != -EAGAIN) /* else it is read later */
        trace_add(flow->trace,
                  (struct trace_span){&traced_read,
                                      request->issue_ns,
                                      request->complete_ns,
                                      {block->fetches->epoch, request->shard, request->offset,
                                       request->bytes, (uint64_t)request->result}});
}

static int reap(struct flow *flow, uint64_t wait_ns)
{
    struct read_request *done[INFLIGHT_GROUP];
    struct placed_fetch retry[COALESCE_RECORDS_MAX];
    struct histogram_run latencies = {0};
    int count = inflight_reap(&flow->inflight, done, wait_ns);

    for (int i = 0; i < count; i++)
        note_read(flow, done[i], &latencies);
    histogram_run_end(&latencies);
    for (int i = 0; i < count; i++) {
        flow->blocks.saving = window_repeats(&flow->window);
        int retries = blocks_complete(&flow->blocks, done[i], retry, window_room(&flow->window));
        if (retries < 0)
            return retries;
        if (retries > 0)
            window_put_back(&flow->window, retry, (uint32_t)retries);
    }
    return count;
}

/* Deliver fetches: to the sink at once, which saves two switches of threads, else to the workers.
 * Returns 0 or a negative errno. */
static int deliver_group(struct flow *flow, struct fetch *const *group, uint32_t count)
{
    const struct loader_sink *sink = &flow->config->sink;
    const int taken = sink->take ? sink->take(sink->taker, group, count) : 0;

    for (int i = 0; i < taken; i++)
        drop(flow, group[i]);
    if (taken < 0 || (uint32_t)taken == count)
        return taken < 0 ? taken : 0;
    flow->outstanding += count - (uint32_t)taken;
    return queue_push_many(flow->ready, group + taken, count - (uint32_t)taken);
}

/* Deliver READY draws up to the first that is not. Returns their count or a negative errno. */
static int deliver(struct flow *flow)
{
    struct fetch *group[FETCH_GROUP];
    int delivered = 0;

    for (;;) {
        struct fetch *fetch;
        uint32_t count = 0;
        while (count < FETCH_GROUP && (fetch = flow->draws.first) && fetch->state == FETCH_READY) {
            assert(fetch->address >= flow->next_address);
            flow->next_address = fetch->address + 1;
            flow->draws.first = fetch->next_drawn;
            fetch->state = FETCH_DELIVERED;
            group[count++] = fetch;
        }
        if (count == 0)
            return delivered;
        int code = deliver_group(flow, group, count);
        if (code)
            return code;
        delivered += (int)count;
    }
}

int flow_turn(struct flow *flow, bool *blocked)
{
    int code = flow_collect(flow, false);
    if (code < 0)
        return code;
    int submitted = submit(flow, blocked);
    if (submitted < 0)
        return submitted;
    int reaped = reap(flow, 0);
    if (reaped < 0)
        return reaped;
    int delivered = deliver(flow);
    if (delivered < 0)
        return delivered;
    return submitted > 0 || reaped > 0 || delivered > 0;
}

/* ---- waits ---- */

static int wait_for_workers(struct flow *flow)
{
    const uint64_t start_ns = clock_now_ns();
    assert(flow->outstanding > 0);
    int code = flow_collect(flow, true);

    meter_add(flow->config->meter, METER_LOADER_MEMORY_NS, clock_now_ns() - start_ns);
    return code;
}

/* Returned memory, files or mappings would let another read begin. */
static bool can_use_returned(const struct flow *flow)
{
    return flow->outstanding > 0 && (flow->inflight.reader.traits.zero_copy ||
                                     (!flow->inflight.is_full && !window_is_done(&flow->window)));
}

/* Reads are in flight; returned fetches end the wait. */
static int wait_for_reads(struct flow *flow, uint64_t wait_ns)
{
    const uint64_t outstanding = flow->outstanding;
    int code = 0;

    if (can_use_returned(flow)) {
        flag_set(&flow->wants_returned);
        code = flow_collect(flow, false); /* fetches returned before the flag was seen */
    }
    if (code == 0 && flow->outstanding == outstanding)
        code = reap(flow, wait_ns);
    flag_clear(&flow->wants_returned);
    return code;
}

/* Everything mapped is in the plan's slots or in draws after one that is not ready. */
static int make_room(struct flow *flow)
{
    struct blocks *blocks = &flow->blocks;
    const uint64_t before = blocks->releases;

    if (flow->inflight.reader.traits.zero_copy) {
        for (uint64_t i = 0; i < flow->window.slot_count; i++)
            if (flow->window.slots[i])
                blocks_unmap(blocks, flow->window.slots[i]);
        for (struct fetch *fetch = flow->draws.first; fetch; fetch = fetch->next_drawn)
            blocks_unmap(blocks, fetch);
    }
    return blocks->releases > before ? 0 : blocks_fail_starved(blocks, flow->config->memory_bytes);
}

static int fail_stuck(const struct flow *flow)
{
    const struct loader_config *config = flow->config;
    const struct loader_memory needed = loader_memory_needed(config->catalog, &config->plan->traits,
                                                             config->read, config->order->window);
    char wanted[32], memory[32];

    return fail(ENOMEM, "the shuffle needs more than the record memory of %s; use --memory %s",
                bytes_text(config->memory_bytes, memory, sizeof memory),
                bytes_text(needed.wanted_bytes, wanted, sizeof wanted));
}

/* Unless memory ran out, the reader's depth, its files or the rate limit stopped the last
 * submission. */
int flow_wait(struct flow *flow, bool blocked)
{
    struct inflight *inflight = &flow->inflight;
    const uint64_t rate_ns = rate_wait_ns(&inflight->rate, clock_now_ns());
    const uint64_t wait_ns = rate_ns > 0 && rate_ns < WAIT_MOST_NS ? rate_ns : WAIT_MOST_NS;

    if (inflight->reader.in_flight > 0)
        return wait_for_reads(flow, wait_ns);
    if (!blocked && !flow->blocks.starved) { /* the rate limit allows the next read now, or soon */
        if (rate_ns > 0)
            clock_sleep_ns(wait_ns);
        return inflight->rate.bytes_per_s
                   ? 0
                   : fail(EDEADLK, "the %s reader refuses reads with none in flight",
                          flow->config->reader->plugin->name);
    }
    if (flow->outstanding > 0)
        return wait_for_workers(flow);
    return flow->blocks.starved ? make_room(flow) : fail_stuck(flow);
}

bool flow_is_drained(const struct flow *flow)
{
    return window_is_done(&flow->window) && flow->inflight.reader.in_flight == 0 &&
           !flow->blocks.refused && !flow->draws.first;
}

void flow_check_end(const struct flow *flow)
{
    const struct blocks *blocks = &flow->blocks;
    const struct reader *reader = &flow->inflight.reader;

    assert(flow_is_drained(flow) && flow->outstanding == 0);
    assert(flow->window.free_count == flow->window.fetch_count);
    assert(blocks->free_count == blocks->count);
    assert(reader->held || arenas_used_bytes(&flow->arenas) == 0);
}

uint64_t flow_drop_slots(struct flow *flow)
{
    uint64_t count = 0;

    for (uint64_t slot = 0; slot < flow->window.slot_count; slot++)
        if (flow->window.slots[slot]) {
            drop(flow, flow->window.slots[slot]);
            flow->window.slots[slot] = NULL;
            count++;
        }
    return count;
}

void flow_release(struct flow *flow, struct fetch *const *fetches, uint32_t count)
{
    queue_push_many(flow->returned, fetches, count);
    if (flag_get(&flow->wants_returned) && flag_test_and_clear(&flow->wants_returned))
        reader_wake(&flow->inflight.reader);
}
