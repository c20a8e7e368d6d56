/* SPDX-License-Identifier: Apache-2.0
 *
 * A read, and the records in it:
 *
 *       plan
 *        | window_fill(): PENDING, sorted
 *        v                                            errors are skipped: each record alone
 *     window <---------------------------------------------------------------------------.
 *        | submit_run(): a block with memory, or wait ("blocked") until some is returned |
 *        v                                                                               |
 *      block --- reader_submit() ---> in flight: READING --- reap() ---> ended -- failed +
 *                    ^    | full              ^                            |
 *                    |    v                   |      no file to open       v
 *                    |   the run stays        `--- refused <----------- READY
 *                    |   in the window         after a release             | deliver(): in
 *                    |                                                     v   draw order
 *                    |  the last record            the sink takes it, or a worker: DELIVERED
 *                    |  releases the block                                 |
 *                    `----------------------------------- FREE <-----------' collect_returned()
 *
 * Why the window cannot starve: its records take at most a quarter of the memory and the plan's
 * slots at most half (checked before the run). Records of earlier windows are returned without
 * needing this one, so a whole window fits in the end. Records of a failed block do need it, while
 * draws behind them may hold all other memory: they come first, in draw order, so that the memory
 * which their block released is enough for the next to be drawn.
 *
 * Invariants, asserted by check_turn() at the end of each turn:
 *
 * 1. A fetch is in exactly one state (loader.h), and only the loader's thread changes it.
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
 *    reap() catches one that hangs.
 */
#include "pipeline/loader/loader.h"

#include "base/atomic.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/heap.h"
#include "base/memory.h"
#include "base/stats.h"
#include "base/thread.h"
#include "base/trace.h"
#include "pipeline/loader/blocks.h"
#include "pipeline/result/timeline.h"
#include "pipeline/result/result.h"
#include "readers/depth.h"
#include "readers/reader.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- needs ---- */

enum {
    WINDOWS_AHEAD = 4, /* windows of records that may be under way at once */
    FETCHES_LEAST = 8192,
    DEPTH_MOST = 256,  /* the queue depth that auto may reach */
    BLOCKS_LEAST = 16, /* full reads that each I/O thread's memory holds */
};

/* Memory is freed block by block, with a block's last record: with small blocks, few freed records
 * wait for others. */
struct coalesce loader_reads(const struct catalog *catalog, uint64_t memory_bytes,
                             const struct read_settings *read, uint64_t window)
{
    const uint64_t most_bytes = memory_bytes / read_io_threads(read) / BLOCKS_LEAST;

    return coalesce_rules(catalog, (uint32_t)window,
                          read->block_bytes < most_bytes ? read->block_bytes : most_bytes,
                          memory_bytes);
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Return the queue depth, or the largest that is searched with auto. */
static uint32_t depth_most(const struct read_settings *read)
{
    return read->iodepth ? (uint32_t)read->iodepth : DEPTH_MOST;
}

/* Return the most record memory, of this alignment, that the set can occupy in two epochs that
 * overlap. */
static uint64_t set_bytes(const struct catalog *catalog, uint32_t alignment)
{
    return 2 * (catalog_data_bytes(catalog) + catalog->record_count * 2 * alignment);
}

struct loader_memory loader_memory_needed(const struct catalog *catalog,
                                          const struct plan_traits *plan,
                                          const struct read_settings *read, uint64_t window)
{
    const uint32_t io_threads = read_io_threads(read);
    const uint64_t mean = catalog->record_bytes_total / catalog->record_count + 1024;
    const uint64_t largest = catalog->record_bytes_max + 2 * HEAP_ALIGNMENT;
    const uint64_t block = larger(read->block_bytes, largest);
    /* A plan of one slot holds nothing for long. */
    const uint64_t slots = plan->slots > 1 ? plan->slots : 0;
    const uint64_t slots_bytes = 2 * (slots * mean + slots * mean / 8);
    const uint64_t set = set_bytes(catalog, HEAP_ALIGNMENT);
    const uint64_t in_flight = 4 * (uint64_t)depth_most(read) * block;
    const uint64_t reads_bytes = in_flight < set ? in_flight : set;
    const uint64_t window_bytes =
        coalesce_memory_bytes(catalog, (uint32_t)window, read->block_bytes);
    const uint64_t least_bytes = slots_bytes + 8 * largest * io_threads;
    const uint64_t wanted_bytes = slots_bytes + larger(reads_bytes, window_bytes);
    const uint64_t blocks_bytes = io_threads * BLOCKS_LEAST * block;

    return (struct loader_memory){
        .least_bytes = least_bytes,
        .wanted_bytes = larger(larger(wanted_bytes, blocks_bytes), least_bytes),
    };
}

/* Return how many fetches are in use at most. */
static uint64_t fetches_most(const struct plan_traits *plan, uint32_t window)
{
    return plan->slots + larger(FETCHES_LEAST, (uint64_t)WINDOWS_AHEAD * window);
}

uint64_t loader_tables_bytes(const struct coalesce *reads, const struct plan_traits *plan,
                             uint64_t memory_bytes, uint32_t alignment)
{
    enum { POINTERS = 5, HEAP_TAGS_BYTES = 3 * sizeof(uint32_t) }; /* of free lists and queues */
    const uint64_t each = sizeof(struct fetch) + sizeof(struct block) + POINTERS * sizeof(void *);

    return fetches_most(plan, reads->window) * each + plan->slots * sizeof(void *) +
           2 * reads->window * sizeof(struct placed_fetch) +
           memory_bytes / alignment * HEAP_TAGS_BYTES;
}

enum {
    EPOCHS_AHEAD = 8, /* epochs ended whose figures have not been requested */
    REAP_GROUP = 64,  /* reads reaped at once */
    FETCH_GROUP = 64, /* fetches moved through a queue at once */
    WINDOW_OPS = 256, /* taken from the plan at once */
};

static const uint64_t WAIT_MOST_NS = 100000000; /* a cancelled run ends this soon */

/* Runs the plan ahead and sorts its fetches by place on storage: the plan's future is known, so its
 * next fetches are gathered in a look-ahead window, sorted, and adjacent ones become one read
 * (shuffle/coalesce.h). A window is filled only if there are free fetches for all of it. Where it
 * ends thus depends on the plan alone and never on timing: every run of a job makes the same reads.
 */
struct window {
    struct coalesce rules;
    bool plan_ended;
    uint64_t cut;         /* windows that ended at their limit of bytes, short of records */
    struct fetch **slots; /* plan slot -> the fetch it holds */
    uint64_t slot_count;
    struct plan *plan; /* of the current epoch */
    struct plan_op ops[WINDOW_OPS];
    struct extent places[WINDOW_OPS]; /* of what they fetch */
    uint32_t op_at, op_count;
    uint64_t epoch, drawn, draws, first_address;
    struct fetch *fetches, **free;
    uint32_t fetch_count, free_count;
    struct placed_fetch *entries, *scratch; /* entries[at .. count) are sorted, still to be read */
    uint32_t at, count;
};

/* Drawn fetches in draw order, linked by next_drawn. */
struct draw_list {
    struct fetch *first, *last;
};

struct epochs {
    uint64_t next, end;
};

struct loader {
    struct loader_config config;
    struct numa numa;
    struct thread thread;
    struct trace_ring *trace; /* of the loader's thread; NULL: none */
    struct queue *opened;     /* one entry: 0 once the reader was opened, or why not */
    struct queue *closing;    /* closed once no worker holds a fetch any more */

    /* Epochs. Two plans take turns: the loader runs one, order_thread makes the next order with
     * plans[0]. */
    struct plan *plans[2];
    struct thread order_thread;
    uint64_t order_epoch;
    bool is_requested;    /* the next epoch's order */
    struct flag is_made;  /* that order, or it has failed */
    bool plan_is_cut;     /* the epoch ends before its plan does */
    struct epochs ahead;  /* popped from `epochs` and not begun */
    struct queue *epochs; /* from loader_begin() */
    struct queue *ended;  /* figures of completed epochs */

    /* Reads. */
    struct parallel_reader_settings parallel; /* with several I/O threads */
    struct reader reader;
    struct depth depth; /* the queue depth; fixed, or being searched for */
    bool is_full;       /* as many reads are in flight as the depth says */
    struct rate rate;   /* the rate limit */
    /* A reader without a free file or mapping refuses a read (-EAGAIN). The block is submitted
     * again after the next release; if there was none since it was submitted, the reader is
     * starved: nothing in flight will free a file. */
    struct block *refused;
    bool starved;
    uint64_t releases;             /* reads that ended and blocks that were released */
    uint64_t heard_ns;             /* last answer of the reader, or first read since it was idle */
    uint64_t read_end_ns;          /* end of the last read of this run; 0: none yet */
    struct loader_figures figures; /* of the current epoch */
    struct pace arrived;           /* its bytes over time */
    struct histogram latency_ns[RESULT_EPOCH_KINDS]; /* of reads, by the epoch that needs them */
    pthread_mutex_t lock;
    struct stall waits; /* for storage; under lock */

    /* Records. */
    struct arenas arenas;
    struct window window;
    struct blocks blocks;
    struct draw_list draws;     /* not delivered yet */
    uint64_t next_address;      /* the least that may be delivered next */
    uint64_t outstanding;       /* fetches delivered and not returned */
    struct queue *ready;        /* fetches to workers, in draw order */
    struct queue *returned;     /* and back */
    struct flag wants_returned; /* it waits for the reader, but could use a returned fetch */
    uint64_t planned_ns;        /* when the window was filled, for the trace */
};

/* ---- the window ---- */

static bool window_is_empty(const struct window *window)
{
    return window->at == window->count;
}

/* Return whether the epoch has nothing left to read. */
static bool window_is_done(const struct window *window)
{
    return window->plan_ended && window_is_empty(window);
}

/* Sort by shard, then offset: a radix sort from the least significant bits up, which is stable,
 * allocates nothing and skips bits that are the same in all entries. */
static void sort_entries(struct window *window)
{
    struct placed_fetch *from = window->entries, *to = window->scratch;
    uint64_t differ[] = {0, 0}; /* bits of offset, shard */

    for (uint32_t i = 1; i < window->count; i++) {
        differ[0] |= from[i].place.offset ^ from[0].place.offset;
        differ[1] |= from[i].place.shard ^ from[0].place.shard;
    }
    for (int by_shard = 0; by_shard < 2; by_shard++)
        for (unsigned shift = 0; shift < 64 && differ[by_shard] >> shift; shift += 8) {
            uint32_t starts[256] = {0}, start = 0;
            shift += (unsigned)__builtin_ctzll(differ[by_shard] >> shift);
            for (uint32_t i = 0; i < window->count; i++)
                starts[(by_shard ? from[i].place.shard : from[i].place.offset) >> shift & 255]++;
            for (uint32_t value = 0; value < 256; value++) {
                const uint32_t count = starts[value];
                starts[value] = start;
                start += count;
            }
            for (uint32_t i = 0; i < window->count; i++)
                to[starts[(by_shard ? from[i].place.shard : from[i].place.offset) >> shift &
                          255]++] = from[i];
            struct placed_fetch *other = from;
            from = to;
            to = other;
        }
    if (from != window->entries)
        memcpy(window->entries, from, window->count * sizeof *from);
}

/* Run the plan until the window is full or the plan ends; append what it draws. Leaves the window
 * empty if too few fetches are free. Returns 0 or a negative errno. */
static int window_fill(struct loader *loader)
{
    const struct catalog *catalog = loader->config.catalog;
    struct window *window = &loader->window;
    struct draw_list *drawn = &loader->draws;
    uint64_t bytes = 0;
    bool sorted = true;

    window->at = window->count = 0;
    if (window->free_count < window->rules.window)
        return 0;
    while (!window->plan_ended) {
        if (window->op_at == window->op_count) {
            int count = plan_next(window->plan, window->ops, WINDOW_OPS);
            if (count < 0)
                return count;
            assert(count > 0);
            window->op_at = 0;
            window->op_count = (uint32_t)count;
            /* Records of a shuffled order are anywhere in the catalog: a cache miss each, of which
             * the processor waits for several at once if nothing is done between them. */
            for (int i = 0; i < count; i++)
                if (window->ops[i].kind != PLAN_DRAW)
                    window->places[i] = *catalog_extent(catalog, window->ops[i].record);
        }
        const struct plan_op *op = &window->ops[window->op_at];
        if (op->kind == PLAN_DRAW) {
            struct fetch *fetch = window->slots[op->slot];
            assert(fetch);
            window->slots[op->slot] = NULL;
            fetch->address = window->first_address + window->drawn++;
            fetch->next_drawn = NULL;
            *(drawn->first ? &drawn->last->next_drawn : &drawn->first) = fetch;
            drawn->last = fetch;
            window->plan_ended = window->drawn == window->draws;
            window->op_at++;
            continue;
        }
        if (coalesce_is_full(&window->rules, window->count, bytes))
            break;
        const struct extent *place = &window->places[window->op_at++];
        struct fetch *fetch = window->free[--window->free_count];
        assert(fetch->state == FETCH_FREE && !window->slots[op->slot]);
        /* Member by member: an initialiser is compiled to REP STOS, and reads after it wait for it.
         */
        fetch->record = op->record;
        fetch->address = FETCH_UNDRAWN;
        fetch->bytes = NULL;
        fetch->length = place->bytes;
        fetch->shard = place->shard;
        fetch->code = 0;
        fetch->epoch = window->epoch;
        fetch->state = FETCH_PENDING;
        fetch->offset = 0;
        fetch->alone = false;
        fetch->next_in_block = fetch->next_drawn = NULL;
        fetch->block = NULL;
        fetch->copy = NULL;
        window->slots[op->slot] = fetch;
        bytes += place->bytes;
        if (sorted && window->count > 0)
            sorted = !coalesce_before(place, &window->entries[window->count - 1].place);
        window->entries[window->count++] = (struct placed_fetch){.place = *place, .fetch = fetch};
    }
    if (!sorted)
        sort_entries(window);
    window->cut += !window->plan_ended && window->count < window->rules.window;
    return 0;
}

static int by_draw(const void *a, const void *b)
{
    const uint64_t first = ((const struct placed_fetch *)a)->fetch->address;
    const uint64_t second = ((const struct placed_fetch *)b)->fetch->address;

    return (first > second) - (first < second);
}

/* Put fetches of a failed block back, before the rest of the window and in draw order; each will be
 * read alone. */
static void window_put_back(struct window *window, const struct placed_fetch *fetches,
                            uint32_t count)
{
    const uint32_t left = window->count - window->at;

    assert(count + left <= window->rules.window + COALESCE_RECORDS_MAX);
    memmove(window->entries + count, window->entries + window->at, left * sizeof *window->entries);
    memcpy(window->entries, fetches, count * sizeof *fetches);
    window->at = 0;
    window->count = count + left;
    for (uint32_t i = 0; i < count; i++) {
        assert(fetches[i].fetch->state == FETCH_READING);
        fetches[i].fetch->state = FETCH_PENDING;
        fetches[i].fetch->alone = true;
    }
    while (count < window->count && window->entries[count].fetch->alone)
        count++;
    qsort(window->entries, count, sizeof *window->entries, by_draw);
}

/* ---- release ---- */

static void release_block(struct loader *loader, struct block *block)
{
    if (!block)
        return;
    reader_release(&loader->reader, &block->request);
    blocks_free(&loader->blocks, block);
    loader->releases++;
    loader->starved = false;
}

static void drop(struct loader *loader, struct fetch *fetch)
{
    release_block(loader, blocks_drop(&loader->blocks, fetch));
    assert(fetch->state == FETCH_READY || fetch->state == FETCH_DELIVERED);
    fetch->state = FETCH_FREE;
    loader->window.free[loader->window.free_count++] = fetch;
}

/* Take back returned fetches, waiting for the first up to METER_WAIT_NS. Returns 0 or -ECANCELED.
 */
static int collect_returned(struct loader *loader, bool wait)
{
    struct fetch *group[FETCH_GROUP];
    int count;

    while ((count = queue_pop_within(loader->returned, group, FETCH_GROUP,
                                     wait ? METER_WAIT_NS : 0)) > 0) {
        assert(loader->outstanding >= (uint32_t)count);
        loader->outstanding -= (uint32_t)count;
        for (int i = 0; i < count; i++)
            drop(loader, group[i]);
        wait = false;
    }
    return count;
}

/* ---- reads ---- */

static const struct trace_kind traced_fetch = {
    "fetch", true, {"epoch", "record", "shard", "offset"}};
static const struct trace_kind traced_read = {
    "read", true, {"epoch", "shard", "offset", "bytes", "result"}};

static int submit_block(struct loader *loader, struct block *block)
{
    const bool was_idle = loader->reader.in_flight == 0;

    assert(!loader->starved);
    block->releases = loader->releases;
    int code = reader_submit(&loader->reader, &block->request);
    if (code == 0 && was_idle)
        loader->heard_ns = clock_now_ns(); /* not issue_ns: an I/O thread may own the request */
    loader->starved = code == -EAGAIN && was_idle;
    return code;
}

/* Read the next run of the window, or its first record alone. Returns 1, 0 if memory is short,
 * -EAGAIN if the reader is full or has no free file or mapping, or a negative errno. */
static int submit_run(struct loader *loader, bool single)
{
    struct window *window = &loader->window;
    struct loader_figures *figures = &loader->figures;
    const uint64_t traced_ns = trace_now_ns(loader->trace);
    const struct placed_fetch *fetches = &window->entries[window->at];
    const uint32_t left = window->count - window->at;
    struct coalesce_run run = coalesce_start(&window->rules, &fetches[0].place);

    assert(!loader->refused && left > 0);
    while (!single && !fetches[0].fetch->alone && run.count < left &&
           !fetches[run.count].fetch->alone &&
           coalesce_extend(&window->rules, &run, &fetches[run.count].place))
        ;
    struct block *block = blocks_prepare(&loader->blocks, &run, fetches);
    if (!block)
        return 0;
    int code = submit_block(loader, block);
    if (code) {
        blocks_undo(&loader->blocks, block, fetches);
        return code;
    }
    blocks_hold(block, fetches);
    if (figures->requests++ == 0) {
        figures->read_start_ns = clock_now_ns();
        if (loader->read_end_ns && loader->reader.in_flight == 1)
            figures->idle_ns = figures->read_start_ns - loader->read_end_ns;
    }
    const uint32_t bytes = (uint32_t)(run.end - run.start);
    figures->request_bytes += bytes;
    rate_spend(&loader->rate, bytes);
    for (uint32_t i = 0; loader->trace && i < run.count; i++) {
        const struct fetch *fetch = fetches[i].fetch;
        trace_add(loader->trace, (struct trace_span){&traced_fetch,
                                                     loader->planned_ns,
                                                     traced_ns,
                                                     {fetch->epoch + 1, fetch->record, fetch->shard,
                                                      fetches[i].place.offset}});
    }
    window->at += run.count;
    return 1;
}

/* Submit reads until the reader is full or starved, or memory is short. Returns 1 if something was
 * submitted, 0 if not, or a negative errno. *blocked: memory (or fetches) ran out. */
static int submit(struct loader *loader, bool *blocked)
{
    struct window *window = &loader->window;
    int submitted = 0, code = 0;

    *blocked = false;
    while (loader->refused && !loader->starved) {
        code = submit_block(loader, loader->refused);
        if (code == -EAGAIN)
            break;
        if (code)
            return code;
        loader->refused = loader->refused->next;
        submitted = 1;
    }
    while (!loader->refused && !loader->starved && loader->reader.in_flight < loader->depth.now &&
           (!loader->rate.bytes_per_s || rate_wait_ns(&loader->rate, clock_now_ns()) == 0)) {
        if (window_is_empty(window)) {
            loader->planned_ns = trace_now_ns(loader->trace);
            code = window_fill(loader);
            if (code)
                return code;
        }
        if (window_is_empty(window)) {
            *blocked = !window->plan_ended;
            break;
        }
        code = submit_run(loader, false);
        /* If memory is fragmented and nothing will free more, one record may still fit. */
        if (code == 0 && loader->reader.in_flight == 0 && loader->outstanding == 0)
            code = submit_run(loader, true);
        *blocked = code == 0;
        if (code == -EAGAIN || code == 0)
            break;
        if (code < 0)
            return code;
        submitted = 1;
    }
    loader->is_full = loader->reader.in_flight >= loader->depth.now;
    return submitted;
}

/* Begin or end a wait for storage; returns the time. */
static uint64_t note_wait(struct loader *loader, void (*note)(struct stall *, uint64_t))
{
    pthread_mutex_lock(&loader->lock);
    const uint64_t now_ns = clock_now_ns();
    note(&loader->waits, now_ns);
    pthread_mutex_unlock(&loader->lock);
    return now_ns;
}

/* A read has ended: its fetches are READY, unless they are read again. */
static int complete(struct loader *loader, struct block *block)
{
    struct window *window = &loader->window;
    const struct read_request *request = &block->request;
    struct placed_fetch again[COALESCE_RECORDS_MAX];

    assert(block->holders == block->fetch_count);
    if (request->result == -EAGAIN) { /* the reader had no free file */
        block->next = loader->refused;
        loader->refused = block;
        loader->starved = block->releases == loader->releases;
        return 0;
    }
    loader->releases++;
    loader->starved = false;
    if (request->result < 0) {
        blocks_fail(&loader->blocks, block);
        int code = reader_explain(&loader->reader, request);
        if (loader->config.read->on_error != JOB_ERROR_SKIP)
            return code;
    }
    /* Every record of a failed block is read once more, alone, so that only the bad one is lost.
     * Until then free memory is theirs: nothing is copied out. */
    if (request->result < 0 && block->fetch_count > 1 &&
        block->fetch_count + window->count - window->at <=
            window->rules.window + COALESCE_RECORDS_MAX) {
        blocks_split(block, again);
        window_put_back(window, again, block->fetch_count);
    } else {
        const bool repeats = !window_is_empty(window) && window->entries[window->at].fetch->alone;
        blocks_finish(&loader->blocks, block, !repeats);
    }
    release_block(loader, block->holders ? NULL : block);
    return 0;
}

/* Reap reads; wait for one at most wait_ns. Returns their count or a negative errno: -ETIMEDOUT if
 * the reader hangs. */
static int reap(struct loader *loader, uint64_t wait_ns)
{
    struct reader *reader = &loader->reader;
    struct meter *meter = loader->config.meter;
    struct read_request *done[REAP_GROUP];
    struct histogram_run latencies = {0};
    uint64_t bytes = 0;

    assert(wait_ns == 0 || reader->in_flight > 0);
    const uint64_t start_ns = wait_ns ? note_wait(loader, stall_begin) : 0;
    int count = reader_reap(reader, done, REAP_GROUP, wait_ns);
    if (wait_ns)
        meter_add(meter, METER_LOADER_STORAGE_NS, note_wait(loader, stall_end) - start_ns);
    if (count == 0 && wait_ns) {
        /* Readers time out their own reads; this catches a reader that does not. */
        const uint64_t silent_ns = clock_now_ns() - loader->heard_ns;
        if (silent_ns > reader_patience_ns(reader))
            return fail(ETIMEDOUT,
                        "the %s reader has not answered any of %u reads for %.1f s; check the "
                        "storage or raise --io-timeout",
                        loader->config.reader->plugin->name, reader->in_flight,
                        (double)silent_ns / 1e9);
    }
    if (count <= 0)
        return count;
    for (int i = 0; i < count; i++) {
        const struct read_request *request = done[i];
        const struct fetch *fetch = ((const struct block *)request->owner)->fetches;
        /* Epochs that overlap are told apart by the fetches of the read, not by the time. */
        if (request->result >= 0) {
            histogram_run_add(&latencies,
                              &loader->latency_ns[fetch->epoch == loader->config.resume_epoch
                                                      ? RESULT_EPOCH_FIRST
                                                      : RESULT_EPOCH_LATER],
                              request->complete_ns - request->issue_ns);
            bytes += (uint64_t)request->result;
        }
        if (loader->trace && request->result != -EAGAIN) /* else it is read later */
            trace_add(loader->trace,
                      (struct trace_span){&traced_read,
                                          request->issue_ns,
                                          request->complete_ns,
                                          {fetch->epoch + 1, request->shard, request->offset,
                                           request->bytes, (uint64_t)request->result}});
    }
    histogram_run_end(&latencies);
    loader->read_end_ns = loader->heard_ns = done[count - 1]->complete_ns;
    depth_feed(&loader->depth, (uint32_t)count, bytes, loader->is_full, loader->read_end_ns);
    pace_add(&loader->arrived, loader->read_end_ns, loader->arrived.last.amount + bytes);
    meter_add(meter, METER_READ_BYTES, bytes);
    meter_add(meter, METER_READ_COUNT, (uint64_t)count);
    if (reader->traits.is_passthrough)
        meter_add(meter, METER_PASSTHROUGH_BYTES, bytes);
    if (reader->traits.is_client)
        meter_add(meter, METER_CLIENT_BYTES, bytes);
    for (int i = 0; i < count; i++) {
        int code = complete(loader, done[i]->owner);
        if (code)
            return code;
    }
    return count;
}

/* ---- a turn ---- */

/* Deliver READY draws up to the first that is not: to the sink at once, which saves two switches of
 * threads, else to the workers. Returns their count or a negative errno. */
static int deliver(struct loader *loader)
{
    const struct loader_sink *sink = &loader->config.sink;
    struct fetch *group[FETCH_GROUP];
    int delivered = 0;

    for (;;) {
        struct fetch *fetch;
        uint32_t count = 0;
        while (count < FETCH_GROUP && (fetch = loader->draws.first) &&
               fetch->state == FETCH_READY) {
            assert(fetch->address >= loader->next_address);
            loader->next_address = fetch->address + 1;
            loader->draws.first = fetch->next_drawn;
            fetch->state = FETCH_DELIVERED;
            group[count++] = fetch;
        }
        if (count == 0)
            return delivered;
        const int taken = sink->take ? sink->take(sink->taker, group, count) : 0;
        for (int i = 0; i < taken; i++)
            drop(loader, group[i]);
        if (taken < 0)
            return taken;
        const uint32_t left = count - (uint32_t)taken;
        loader->outstanding += left;
        int code = left ? queue_push_many(loader->ready, group + taken, left) : 0;
        if (code)
            return code;
        delivered += (int)count;
    }
}

static bool is_drained(const struct loader *loader)
{
    return window_is_done(&loader->window) && loader->reader.in_flight == 0 && !loader->refused &&
           !loader->draws.first;
}

/* Assert the invariants: those of constant cost always, the others only in tests (LOADER_CHECKS).
 */
static void check_turn(const struct loader *loader)
{
    const struct window *window = &loader->window;
    const struct blocks *blocks = &loader->blocks;
    const struct fetch *first = loader->draws.first;

    assert(window->free_count + loader->outstanding + (window->count - window->at) <=
           window->fetch_count); /* 1 */
    assert(blocks->free_count + loader->reader.in_flight + !!loader->refused <=
           blocks->count); /* 2 */
    assert(!first ||
           (first->address >= loader->next_address && first->state != FETCH_READY)); /* 3 */
    assert(!loader->starved || loader->refused || !window_is_empty(window));         /* 5 */
#ifdef LOADER_CHECKS
    uint32_t states[FETCH_DELIVERED + 1] = {0}, held = 0, holders = 0, copies = 0, unfree = 0;
    for (uint32_t i = 0; i < window->fetch_count; i++) {
        const struct fetch *fetch = &window->fetches[i];
        const bool is_used = fetch->state > FETCH_PENDING;
        states[fetch->state]++;
        held += is_used && fetch->block;
        copies += is_used && fetch->copy;
        assert(fetch->state != FETCH_READING || fetch->block);
    }
    for (uint32_t i = 0; i < blocks->count; i++) {
        holders += blocks->all[i].holders;
        unfree += blocks->all[i].holders > 0;
    }
    assert(states[FETCH_FREE] == window->free_count);
    assert(states[FETCH_PENDING] == window->count - window->at);
    assert(states[FETCH_DELIVERED] == loader->outstanding);
    assert(held == holders && unfree == blocks->count - blocks->free_count);
    assert(loader->reader.held || held || copies ||
           arenas_used_bytes(&loader->arenas) == 0); /* 4 */
#endif
}

/* Take back returned fetches, submit reads, reap those that ended and deliver what is ready.
 * Returns 1 if any of it happened, 0 if not, or a negative errno. *blocked: memory (or fetches) ran
 * out. */
static int turn(struct loader *loader, bool *blocked)
{
    int code = collect_returned(loader, false);
    if (code < 0)
        return code;
    const int submitted = submit(loader, blocked);
    if (submitted < 0)
        return submitted;
    const int reaped = reap(loader, 0);
    if (reaped < 0)
        return reaped;
    const int delivered = deliver(loader);
    if (delivered < 0)
        return delivered;
    check_turn(loader);
    return submitted > 0 || reaped > 0 || delivered > 0;
}

/* ---- waits ---- */

static void unmap(struct loader *loader, struct fetch *fetch)
{
    if (fetch->state == FETCH_READY && fetch->block && fetch->bytes &&
        fetch->block->request.result >= 0)
        release_block(loader, blocks_copy_out(&loader->blocks, fetch));
}

/* The reader is starved, and everything mapped is in the plan's slots or in draws after one that is
 * not ready: copy it out. Fails if that makes no room. */
static int copy_out_mapped(struct loader *loader)
{
    const struct reader *reader = &loader->reader;
    const char *name = loader->config.reader->plugin->name;
    const uint64_t before = loader->releases;
    char memory[32];

    if (reader->traits.zero_copy) {
        for (uint64_t i = 0; i < loader->window.slot_count; i++)
            if (loader->window.slots[i])
                unmap(loader, loader->window.slots[i]);
        for (struct fetch *fetch = loader->draws.first; fetch; fetch = fetch->next_drawn)
            unmap(loader, fetch);
    }
    if (loader->releases > before)
        return 0;
    if (reader->held)
        return fail(
            ETIMEDOUT,
            "%u reads that timed out hold every file that the %s reader may open; check the "
            "storage or raise the limit (ulimit -n)",
            reader->held, name);
    if (reader->traits.zero_copy)
        return fail(
            EMFILE,
            "records of the shuffle hold every file that the %s reader may have mapped, and the "
            "record memory of %s has no room to copy them; use more --memory, a smaller "
            "shuffle or another reader",
            name, bytes_text(loader->config.memory_bytes, memory, sizeof memory));
    return fail(EMFILE,
                "the %s reader cannot start a read with none in flight: no file can be opened; "
                "raise the limit (ulimit -n)",
                name);
}

/* After a turn that did nothing, wait until another can do something. Returns a negative errno with
 * a reason if none ever will. Unless memory ran out, the reader's depth, its files or the rate
 * limit stopped the last submission. */
static int wait_for_event(struct loader *loader, bool blocked)
{
    const struct loader_config *config = &loader->config;
    const struct reader *reader = &loader->reader;
    const uint64_t rate_ns = rate_wait_ns(&loader->rate, clock_now_ns());
    const uint64_t wait_ns = rate_ns > 0 && rate_ns < WAIT_MOST_NS ? rate_ns : WAIT_MOST_NS;
    const uint64_t outstanding = loader->outstanding;

    if (reader->in_flight > 0) {
        int code = 0;
        /* Returned memory, files or mappings would let another read begin: they end the wait. */
        if (outstanding > 0 &&
            (reader->traits.zero_copy || (!loader->is_full && !window_is_done(&loader->window)))) {
            flag_set(&loader->wants_returned);
            code = collect_returned(loader, false); /* fetches returned before the flag was seen */
        }
        if (code == 0 && loader->outstanding == outstanding)
            code = reap(loader, wait_ns);
        flag_clear(&loader->wants_returned);
        return code;
    }
    if (!blocked && !loader->starved) { /* the rate limit allows the next read now, or soon */
        if (rate_ns > 0)
            clock_sleep_ns(wait_ns);
        return loader->rate.bytes_per_s
                   ? 0
                   : fail(EDEADLK, "the %s reader refuses reads with none in flight",
                          config->reader->plugin->name);
    }
    if (outstanding > 0) {
        const uint64_t start_ns = clock_now_ns();
        int code = collect_returned(loader, true);
        meter_add(config->meter, METER_LOADER_MEMORY_NS, clock_now_ns() - start_ns);
        return code;
    }
    if (loader->starved)
        return copy_out_mapped(loader);
    const struct loader_memory needed = loader_memory_needed(config->catalog, &config->plan->traits,
                                                             config->read, config->order->window);
    char wanted[32], memory[32];
    return fail(ENOMEM, "the shuffle needs more than the record memory of %s; use --memory %s",
                bytes_text(config->memory_bytes, memory, sizeof memory),
                bytes_text(needed.wanted_bytes, wanted, sizeof wanted));
}

/* ---- epochs ---- */

/* The body of order_thread, or of the loader's own. */
static int make_order(void *argument)
{
    struct loader *loader = argument;
    const uint64_t start_ns = clock_now_ns();
    int code = plan_begin(loader->plans[0], loader->order_epoch);

    if (code == 0)
        recorder_mark(loader->config.recorder, "shuffle", loader->order_epoch, start_ns);
    flag_set(&loader->is_made);
    return code;
}

/* Take the epoch's order, which order_thread has made if it was requested, and start its window. */
static int begin_epoch(struct loader *loader, uint64_t epoch)
{
    const struct loader_config *config = &loader->config;
    const bool is_made = loader->order_thread.started;
    int code = thread_join(&loader->order_thread);

    if (!is_made) {
        loader->order_epoch = epoch;
        code = make_order(loader);
    }
    loader->is_requested = false;
    struct plan *plan = loader->plans[0];
    if (loader->plans[1]) {
        loader->plans[0] = loader->plans[1];
        loader->plans[1] = plan;
    }
    if (code)
        return code;
    loader->figures.plan_ns = plan->begin_ns;
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
    struct window *window = &loader->window;
    window->plan = plan;
    window->epoch = epoch;
    window->draws = draws; /* they get the addresses from first_address on */
    window->first_address = config->sink.expect(config->sink.state, draws);
    window->drawn = window->op_at = window->op_count = 0;
    window->plan_ended = draws == 0;
    return 0;
}

/* The epoch is under way to the last record and the next order is made: its reads can begin. A plan
 * that was cut short is drained instead: it holds records that will never be drawn. */
static bool may_go_on(const struct loader *loader)
{
    return loader->is_requested && window_is_done(&loader->window) && !loader->plan_is_cut &&
           flag_get(&loader->is_made) && !queue_is_full(loader->ended);
}

/* Returns false if there is no further epoch, or none yet and !wait. */
static bool look_ahead(struct loader *loader, bool waits)
{
    return loader->ahead.next < loader->ahead.end ||
           queue_pop_many(loader->epochs, &loader->ahead, 1, waits) == 1;
}

static int run_epoch(struct loader *loader, uint64_t epoch)
{
    struct loader_figures *figures = &loader->figures;
    int code = begin_epoch(loader, epoch);

    while (code >= 0 && !is_drained(loader) && !may_go_on(loader)) {
        bool blocked;
        /* Request the next epoch's order as soon as that epoch is begun. Without a thread it is
         * made when it is used. */
        if (loader->plans[1] && !loader->is_requested && look_ahead(loader, false)) {
            loader->is_requested = true;
            loader->order_epoch = loader->ahead.next;
            flag_clear(&loader->is_made);
            thread_start(&loader->order_thread, "prefetch", make_order, loader);
        }
        code = turn(loader, &blocked);
        if (code == 0 && !is_drained(loader) && !may_go_on(loader))
            code = wait_for_event(loader, blocked);
    }
    if (code < 0)
        return code;
    if (!may_go_on(loader)) {
        for (uint64_t i = 0; i < loader->window.slot_count; i++)
            if (loader->window.slots[i]) { /* the plan still holds it */
                drop(loader, loader->window.slots[i]);
                loader->window.slots[i] = NULL;
                figures->spare++;
            }
        /* All reads have ended. The duration of the first quarter is extrapolated: the bytes of the
         * first completion have no start time. */
        const struct pace *arrived = &loader->arrived;
        const uint64_t quarter = arrived->last.amount / 4, first = arrived->points[0].amount;
        figures->read_end_ns = loader->read_end_ns;
        if (arrived->count >= 8 && first < quarter) {
            figures->quarter_ns = pace_when(arrived, quarter);
            figures->head_ns = (uint64_t)((double)(figures->quarter_ns - arrived->points[0].ns) *
                                          (double)quarter / (double)(quarter - first));
        }
    }
    queue_push(loader->ended, figures);
    *figures = (struct loader_figures){0};
    loader->arrived = (struct pace){0};
    return 0;
}

static int loader_body(void *argument)
{
    struct loader *loader = argument;
    const struct loader_config *config = &loader->config;
    const struct plugin_choice parallel = {.plugin = &reader_parallel.plugin,
                                           .settings = &loader->parallel};
    struct coalesce *rules = &loader->window.rules;
    const struct reader_config reader_config = {
        .catalog = config->catalog,
        .regions = loader->arenas.regions,
        .region_count = loader->arenas.count,
        .depth = depth_most(config->read),
        .timeout_ns = config->read->io_timeout_ns,
        .in_order = config->plan->traits.front_to_back && catalog_is_in_order(config->catalog),
        .falls_back = config->reader_falls_back,
    };
    int code = reader_open(&loader->reader, loader->parallel.count > 1 ? &parallel : config->reader,
                           &reader_config);

    if (code == 0)
        rules->alignment = loader->reader.traits.alignment;
    if (code == 0 && rules->alignment > 1 && config->alignment < HEAP_ALIGNMENT)
        code = fail(EINVAL, "the %s reader reads whole pages only: add --direct",
                    config->reader->plugin->name);
    queue_push(loader->opened, &code);
    while (code == 0 && look_ahead(loader, true))
        code = run_epoch(loader, loader->ahead.next++);
    if (code) {
        loader_cancel(loader);
        config->sink.cancel(config->sink.state);
    } else {
        queue_close(loader->ready);
    }
    thread_join(&loader->order_thread);
    queue_pop_many(loader->closing, &(int){0}, 1, true);
    if (code == 0)
        code = collect_returned(loader, false); /* releases the last mapped pages */
    if (code == 0) {                            /* nothing is left behind */
        assert(is_drained(loader) && loader->outstanding == 0);
        assert(loader->window.free_count == loader->window.fetch_count);
        assert(loader->blocks.free_count == loader->blocks.count);
        assert(loader->reader.held || arenas_used_bytes(&loader->arenas) == 0);
        code = reader_settle(&loader->reader);
    }
    reader_close(&loader->reader);
    loader->arenas.held |= loader->reader.held > 0;
    return code;
}

/* ---- life ---- */

struct loader *loader_create(const struct loader_config *config)
{
    const struct plan_traits *plan = &config->plan->traits;
    const struct coalesce rules =
        loader_reads(config->catalog, config->memory_bytes, config->read, config->order->window);
    struct loader *loader = memory_zeroed(sizeof *loader);

    if (!loader)
        return NULL;
    loader->config = *config;
    loader->plans[0] = config->plan;
    loader->plans[1] = config->next_plan;
    numa_find(&loader->numa, "/sys");
    loader->parallel = (struct parallel_reader_settings){
        .reader = config->reader, .count = read_io_threads(config->read), .numa = &loader->numa};
    pthread_mutex_init(&loader->lock, NULL);
    depth_start(&loader->depth, depth_most(config->read));
    if (config->read->iodepth)
        depth_fix(&loader->depth);
    struct window *window = &loader->window;
    const uint64_t fetches = fetches_most(plan, rules.window);
    int code = fetches <= UINT32_MAX ? 0
                                     : fail(EINVAL, "a shuffle of %llu slots is too large",
                                            (unsigned long long)plan->slots);
    if (code == 0) {
        window->rules = rules;
        window->slot_count = plan->slots;
        window->fetch_count = (uint32_t)fetches;
        window->fetches = memory_array(fetches, sizeof *window->fetches);
        window->free = memory_array(fetches, sizeof(void *));
        window->slots = memory_array(plan->slots, sizeof(void *));
        window->entries =
            memory_array(rules.window + COALESCE_RECORDS_MAX, sizeof *window->entries);
        window->scratch = memory_array(rules.window, sizeof *window->scratch);
        if (!window->fetches || !window->free || !window->slots || !window->entries ||
            !window->scratch)
            code = -ENOMEM;
    }
    if (code == 0)
        code = blocks_create(&loader->blocks, loader->window.fetch_count, &loader->arenas,
                             &loader->reader.traits);
    if (code == 0)
        code = arenas_create(&loader->arenas, config->memory_bytes,
                             set_bytes(config->catalog, config->alignment), config->alignment,
                             loader->parallel.count, &loader->numa);
    if (code == 0) {
        loader->ready = queue_create(loader->window.fetch_count, sizeof(struct fetch *));
        loader->returned = queue_create(loader->window.fetch_count, sizeof(struct fetch *));
        loader->epochs = queue_create(1, sizeof(struct epochs));
        loader->opened = queue_create(1, sizeof(int));
        loader->closing = queue_create(1, sizeof(int));
        loader->ended = queue_create(EPOCHS_AHEAD, sizeof(struct loader_figures));
    }
    if (loader->ready && loader->returned && loader->epochs && loader->opened && loader->closing &&
        loader->ended)
        return loader;
    loader_destroy(loader);
    return NULL;
}

void loader_destroy(struct loader *loader)
{
    if (!loader)
        return;
    blocks_destroy(&loader->blocks);
    arenas_destroy(&loader->arenas);
    free(loader->window.fetches);
    free(loader->window.free);
    free(loader->window.slots);
    free(loader->window.entries);
    free(loader->window.scratch);
    queue_destroy(loader->ready);
    queue_destroy(loader->returned);
    queue_destroy(loader->epochs);
    queue_destroy(loader->opened);
    queue_destroy(loader->closing);
    queue_destroy(loader->ended);
    pthread_mutex_destroy(&loader->lock);
    free(loader);
}

int loader_start(struct loader *loader, struct trace_ring *ring)
{
    struct window *window = &loader->window;

    if (loader->arenas.held)
        return fail(ETIMEDOUT, "reads of an earlier run are still in flight: check the storage");
    /* Forget what a previous run left behind. */
    arenas_reset(&loader->arenas);
    window->free_count = 0;
    for (uint32_t i = window->fetch_count; i-- > 0;) {
        window->fetches[i].state = FETCH_FREE;
        window->free[window->free_count++] = &window->fetches[i];
    }
    memset(window->slots, 0, window->slot_count * sizeof *window->slots);
    window->at = window->count = 0;
    window->cut = 0;
    blocks_reset(&loader->blocks);
    queue_reset(loader->ready);
    queue_reset(loader->returned);
    queue_reset(loader->epochs);
    queue_reset(loader->opened);
    queue_reset(loader->closing);
    queue_reset(loader->ended);
    flag_clear(&loader->wants_returned);
    memset(loader->latency_ns, 0, sizeof loader->latency_ns);
    loader->trace = ring;
    loader->rate = (struct rate){.bytes_per_s = loader->config.read->rate_limit_bytes};
    loader->figures = (struct loader_figures){0};
    loader->arrived = (struct pace){0};
    loader->waits = (struct stall){0};
    loader->draws = (struct draw_list){0};
    loader->ahead = (struct epochs){0};
    loader->refused = NULL;
    loader->starved = loader->is_requested = false;
    loader->releases = loader->heard_ns = loader->read_end_ns = 0;
    loader->outstanding = loader->next_address = 0;
    int code = thread_start(&loader->thread, "loader", loader_body, loader);
    if (code)
        return code;
    queue_pop_many(loader->opened, &code, 1, true);
    return code ? loader_join(loader) : 0;
}

const struct reader_traits *loader_traits(const struct loader *loader)
{
    return &loader->reader.traits;
}

void loader_begin(struct loader *loader, uint64_t first, uint64_t last)
{
    assert(first <= last);
    queue_push(loader->epochs, &(struct epochs){first, last + 1});
}

void loader_finish(struct loader *loader)
{
    queue_close(loader->epochs);
}

void loader_cancel(struct loader *loader)
{
    queue_cancel(loader->epochs);
    queue_cancel(loader->ready);
    queue_cancel(loader->returned);
    queue_cancel(loader->ended);
}

int loader_join(struct loader *loader)
{
    queue_close(loader->closing);
    return thread_join(&loader->thread);
}

int loader_acquire(struct loader *loader, struct fetch **fetches, uint32_t max)
{
    int count;

    do {
        const uint64_t start_ns = clock_now_ns();
        count = queue_pop_within(loader->ready, fetches, max, METER_WAIT_NS);
        meter_add(loader->config.meter, METER_DECODE_RECORD_NS, clock_now_ns() - start_ns);
    } while (count == 0 && !queue_is_drained(loader->ready));
    return count;
}

void loader_release(struct loader *loader, struct fetch *const *fetches, uint32_t count)
{
    queue_push_many(loader->returned, fetches, count);
    if (flag_get(&loader->wants_returned) && flag_test_and_clear(&loader->wants_returned))
        reader_wake(&loader->reader);
}

bool loader_epoch_figures(struct loader *loader, struct loader_figures *figures)
{
    return queue_pop_many(loader->ended, figures, 1, true) == 1;
}

struct loader_totals loader_totals(const struct loader *loader)
{
    return (struct loader_totals){.depth = &loader->depth,
                                  .reader = &loader->reader.figures,
                                  .latency_ns = loader->latency_ns,
                                  .memory_peak_bytes = arenas_peak_bytes(&loader->arenas),
                                  .windows_cut = loader->window.cut};
}

struct loader_waits loader_waits(struct loader *loader)
{
    pthread_mutex_lock(&loader->lock);
    const uint64_t storage_ns = stall_ns(&loader->waits, clock_now_ns());
    pthread_mutex_unlock(&loader->lock);
    return (struct loader_waits){
        .storage_ns = storage_ns,
        .memory_ns = queue_wait_ns(loader->returned),
        .records_ns = queue_wait_ns(loader->ready),
    };
}
