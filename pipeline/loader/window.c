/* SPDX-License-Identifier: Apache-2.0
 *
 * From plan to reads. The plan's future is known, so the next fetches are gathered in a window,
 * sorted by place on storage, and adjacent ones are read as one block (shuffle/coalesce.h).
 *
 * Why this cannot starve: a window's bytes are at most a quarter of the memory, the plan's slots
 * at most half (checked before the run). Fetches of earlier windows come back without needing
 * this one, so in the end a whole window always fits.
 *
 * A window is filled only when there are fetches for all of it. So where windows end depends on
 * the plan alone and never on timing, and every run makes the same reads.
 */
#include "base/bytes.h"
#include "base/clock.h"
#include "base/fail.h"
#include "pipeline/loader/loader_private.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

static int make_order(struct loader *loader, uint64_t epoch)
{
    const uint64_t start_ns = clock_now_ns();

    loader->plan = loader->config.plan;
    int code = plan_begin(loader->plan, epoch);
    if (code == 0)
        recorder_mark(loader->config.recorder, "shuffle", epoch, start_ns);
    return code;
}

int window_begin(struct loader *loader, uint64_t epoch)
{
    int code = loader->prefetch ? plan_prefetch_take(loader->prefetch, epoch, &loader->plan)
                                : make_order(loader, epoch);

    if (code)
        return code;
    loader->figures.plan_ns = loader->plan->begin_ns;
    loader->draws = plan_draws(loader->plan);
    if (epoch == loader->config.resume_epoch && loader->config.resume_draw) {
        code = plan_seek(loader->plan, loader->config.resume_draw);
        if (code)
            return code;
        loader->draws -= loader->config.resume_draw;
    }
    loader->plan_is_cut =
        loader->config.limit_samples && loader->draws > loader->config.limit_samples;
    if (loader->plan_is_cut)
        loader->draws = loader->config.limit_samples;
    loader->epoch = epoch;
    loader->drawn = 0;
    loader->op_at = loader->op_count = 0;
    loader->plan_ended = loader->draws == 0;
    loader->first_address = loader->config.sink.expect(loader->config.sink.state, loader->draws);
    return 0;
}

static const struct extent *place_of(const struct loader *loader, const struct fetch *fetch)
{
    return catalog_extent(loader->config.catalog, fetch->record);
}

static void take_fetch(struct loader *loader, const struct plan_op *op, struct fetch *fetch)
{
    *fetch = (struct fetch){
        .record = op->record,
        .epoch = loader->epoch,
        .address = FETCH_UNDRAWN,
        .length = catalog_extent(loader->config.catalog, op->record)->bytes,
        .state = FETCH_PENDING,
    };
    assert(!loader->slots[op->slot]);
    loader->slots[op->slot] = fetch;
}

static void draw_fetch(struct loader *loader, uint32_t slot)
{
    struct fetch *fetch = loader->slots[slot];

    assert(fetch);
    loader->slots[slot] = NULL;
    fetch->address = loader->first_address + loader->drawn++;
    loader->draw_ring[loader->draw_tail++ % loader->fetch_count] = fetch;
    if (loader->drawn == loader->draws)
        loader->plan_ended = true;
}

static bool goes_before(const struct loader *loader, const struct fetch *a, const struct fetch *b)
{
    return coalesce_before(place_of(loader, a), place_of(loader, b));
}

/* By place on storage: a stable merge sort from the bottom up, because qsort() may allocate. */
static void sort_window(struct loader *loader)
{
    struct fetch **from = loader->window, **to = loader->window_scratch;
    const uint32_t count = loader->window_count;

    for (uint32_t width = 1; width < count; width *= 2) {
        for (uint32_t low = 0; low < count; low += 2 * width) {
            uint32_t middle = low + width < count ? low + width : count;
            uint32_t high = low + 2 * width < count ? low + 2 * width : count;
            uint32_t left = low, right = middle, at = low;
            while (left < middle && right < high)
                to[at++] =
                    goes_before(loader, from[right], from[left]) ? from[right++] : from[left++];
            memcpy(to + at, from + left, (middle - left) * sizeof *to);
            memcpy(to + at + middle - left, from + right, (high - right) * sizeof *to);
        }
        struct fetch **other = from;
        from = to;
        to = other;
    }
    if (from != loader->window)
        memcpy(loader->window, from, count * sizeof *from);
}

/* Run the plan's operations until the window is full or the plan ends. Leave it empty while fetches
 * are missing: all but those in the plan's slots come back. */
static int fill_window(struct loader *loader)
{
    uint64_t bytes = 0;
    bool sorted = true;

    loader->window_at = loader->window_count = 0;
    if (loader->free_fetch_count < loader->reads.window)
        return 0;
    while (!loader->plan_ended) {
        if (loader->op_at == loader->op_count) {
            int count = plan_next(loader->plan, loader->ops, PLAN_OPS);
            if (count < 0)
                return count;
            assert(count > 0);
            loader->op_at = 0;
            loader->op_count = (uint32_t)count;
        }
        const struct plan_op *op = &loader->ops[loader->op_at];
        if (op->kind == PLAN_DRAW) {
            draw_fetch(loader, op->slot);
            loader->op_at++;
            continue;
        }
        if (coalesce_is_full(&loader->reads, loader->window_count, bytes))
            break;
        struct fetch *fetch = loader->free_fetches[--loader->free_fetch_count];
        take_fetch(loader, op, fetch);
        bytes += fetch->length;
        if (sorted && loader->window_count > 0)
            sorted = !goes_before(loader, fetch, loader->window[loader->window_count - 1]);
        loader->window[loader->window_count++] = fetch;
        loader->op_at++;
    }
    if (!sorted)
        sort_window(loader);
    loader->windows_cut += !loader->plan_ended && loader->window_count < loader->reads.window;
    return 0;
}

bool window_empty(const struct loader *loader)
{
    return loader->plan_ended && loader->window_at == loader->window_count;
}

void window_drop_slots(struct loader *loader)
{
    for (uint64_t slot = 0; slot < loader->slot_count; slot++) {
        struct fetch *fetch = loader->slots[slot];
        if (fetch) {
            assert(fetch->state == FETCH_READY);
            loader->slots[slot] = NULL;
            loader_fetch_free(loader, fetch);
        }
    }
}

/* The next read of the window; single: of its first record alone. */
static struct coalesce_run next_run(const struct loader *loader, bool single)
{
    struct fetch *const *window = loader->window + loader->window_at;
    const uint32_t left = loader->window_count - loader->window_at;
    struct coalesce_run run = coalesce_start(&loader->reads, place_of(loader, window[0]));

    if (single || window[0]->alone)
        return run;
    while (run.count < left && !window[run.count]->alone &&
           coalesce_extend(&loader->reads, &run, place_of(loader, window[run.count])))
        ;
    return run;
}

/* 0, -EAGAIN reader full or starved, or negative. */
static int submit_block(struct loader *loader, struct block *block)
{
    const bool was_idle = loader->reader.in_flight == 0;

    block->releases = loader->releases;
    int code = reader_submit(&loader->reader, &block->request);
    if (code == 0 && was_idle)
        loader->heard_ns = clock_now_ns(); /* not the request's: a lane may be writing to it */
    if (code == -EAGAIN && was_idle)
        loader->starved = true;
    return code;
}

/* What the reader had no file for goes first. 1 when something was submitted, 0, or negative. */
static int submit_refused(struct loader *loader)
{
    int submitted = 0;

    while (loader->refused && !loader->starved) {
        struct block *block = loader->refused;
        int code = submit_block(loader, block);
        if (code == -EAGAIN)
            break;
        if (code)
            return code;
        loader->refused = block->next;
        submitted = 1;
    }
    return submitted;
}

/* 1 submitted, 0 no memory, -EAGAIN reader full or starved, or negative. */
static int submit_run(struct loader *loader, bool single)
{
    const struct coalesce_run run = next_run(loader, single);
    uint32_t region = 0;
    void *memory = NULL;

    if (loader->free_block_count == 0)
        return 0;
    if (!loader->reader.traits.lends && !loader->reader.traits.no_bytes) {
        memory = loader_memory_take(loader, run.end - run.start, &region);
        if (!memory)
            return 0;
    }
    struct block *block = loader->free_blocks[--loader->free_block_count];
    block->memory = memory;
    block->fetch_count = block->holders = run.count;
    block->request = (struct read_request){
        .offset = run.start,
        .shard = run.shard,
        .bytes = (uint32_t)(run.end - run.start),
        .needed = (uint32_t)(run.records_end - run.start),
        .region = region,
        .buffer = memory,
        .owner = block,
    };
    int code = submit_block(loader, block);
    if (code) {
        if (memory)
            loader_memory_give(loader, memory);
        loader->free_blocks[loader->free_block_count++] = block;
        return code;
    }
    block->fetches = NULL;
    for (uint32_t i = 0; i < run.count; i++) {
        struct fetch *fetch = loader->window[loader->window_at++];
        fetch->block = block;
        fetch->state = FETCH_READING;
        fetch->next = block->fetches;
        block->fetches = fetch;
    }
    /* Not by the request's own clock: a lane may be writing to it. */
    if (loader->figures.requests++ == 0 && loader->reads_end_ns && loader->reader.in_flight == 1)
        loader->figures.idle_ns = clock_now_ns() - loader->reads_end_ns;
    loader->figures.request_bytes += block->request.bytes;
    rate_spend(&loader->rate, block->request.bytes);
    return 1;
}

static bool rate_allows(struct loader *loader)
{
    return !loader->rate.bytes_per_s || rate_wait_ns(&loader->rate, clock_now_ns()) == 0;
}

int window_submit(struct loader *loader, bool *blocked)
{
    *blocked = false;
    int submitted = submit_refused(loader);
    if (submitted < 0)
        return submitted;
    while (!loader->refused && !loader->starved && loader->reader.in_flight < loader->depth.now &&
           rate_allows(loader)) {
        if (loader->window_at == loader->window_count) {
            int code = fill_window(loader);
            if (code)
                return code;
            if (loader->window_count == 0) {
                *blocked = !loader->plan_ended;
                break;
            }
        }
        int code = submit_run(loader, false);
        /* Memory may be free in pieces only; then nothing but one record at a time may fit. */
        if (code == 0 && loader->reader.in_flight == 0 && loader->outstanding == 0)
            code = submit_run(loader, true);
        if (code == -EAGAIN)
            break;
        if (code < 0)
            return code;
        if (code == 0) {
            *blocked = true;
            break;
        }
        submitted = 1;
    }
    loader->depth_is_used = loader->reader.in_flight >= loader->depth.now;
    return submitted;
}
