/* SPDX-License-Identifier: Apache-2.0
 *
 * The loop never waits for nothing. With no read in flight, no fetch with a worker and no rate
 * limit that holds, each turn submits a read, delivers a fetch or makes room, or the run fails with
 * a reason that names what is used up (wait_for_something). With reads in flight it waits for the
 * reader, which answers each within the time-out; a reader that does not is caught here.
 */
#include "base/bytes.h"
#include "base/clock.h"
#include "base/fail.h"
#include "pipeline/loader/loader_private.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    WINDOWS_AHEAD = 4, /* that records are fetched for */
    FETCHES_LEAST = 8192,
};

/* ---- completion ---- */

/* Every record of a failed block is read once more alone, so that only the bad one is lost. */
static void split_block(struct loader *loader, struct block *block)
{
    const uint32_t count = block->fetch_count, left = loader->window_count - loader->window_at;
    struct fetch *fetch = block->fetches;

    /* What is left of the window stands behind the returned fetches. */
    memmove(loader->window + count, loader->window + loader->window_at,
            left * sizeof *loader->window);
    loader->window_count = count + left;
    loader->window_at = 0;
    for (uint32_t i = 0; i < count; i++, fetch = fetch->next) {
        fetch->state = FETCH_PENDING;
        fetch->alone = true;
        fetch->block = NULL;
        loader->window[i] = fetch;
        loader_block_release(loader, block);
    }
}

static bool window_has_room(const struct loader *loader, uint32_t count)
{
    return loader->window_count - loader->window_at + count <=
           loader->reads.window + COALESCE_RECORDS_MAX;
}

/* The reader had no file for it and nothing in flight that would give one back. */
static void keep_refused(struct loader *loader, struct block *block)
{
    block->next = loader->refused;
    loader->refused = block;
    loader->starved = block->releases == loader->releases;
}

static int complete_block(struct loader *loader, struct read_request *request)
{
    struct block *block = request->owner;
    uint32_t count = block->fetch_count;

    if (request->result == -EAGAIN) {
        keep_refused(loader, block);
        return 0;
    }
    loader_note_release(loader);
    if (request->result < 0) {
        int code = reader_explain(&loader->reader, request);
        if (!loader->config.skip_errors)
            return code;
        if (count > 1 && window_has_room(loader, count)) {
            split_block(loader, block);
            return 0;
        }
    }
    for (struct fetch *fetch = block->fetches; fetch; fetch = fetch->next) {
        const struct extent *place = catalog_extent(loader->config.catalog, fetch->record);
        fetch->state = FETCH_READY;
        fetch->code = request->result < 0 ? request->result : 0;
        if (request->result < 0 || !request->data)
            continue;
        fetch->bytes = (const char *)request->data + (place->offset - request->offset);
        if (fetch->address == FETCH_UNDRAWN && count > 1 && block->memory)
            loader_copy_out(loader, fetch);
    }
    return 0;
}

/* ---- delivery ---- */

static int deliver(struct loader *loader)
{
    void *group[GROUP];
    uint32_t count = 0;

    while (loader->draw_head < loader->draw_tail) {
        struct fetch *fetch = loader->draw_ring[loader->draw_head % loader->fetch_count];
        if (fetch->state != FETCH_READY)
            break;
        fetch->state = FETCH_DELIVERED;
        loader->draw_head++;
        group[count++] = fetch;
        if (count == GROUP) {
            loader->outstanding += count;
            int code = queue_push_many(loader->ready, group, count);
            if (code)
                return code;
            count = 0;
        }
    }
    loader->outstanding += count;
    return count ? queue_push_many(loader->ready, group, count) : 0;
}

/* Returned fetches give their memory back. 0 or -ECANCELED. */
static int collect_returned(struct loader *loader, bool wait)
{
    void *group[GROUP];
    int count;

    while ((count = queue_pop_many(loader->returned, group, GROUP, wait)) > 0) {
        for (int i = 0; i < count; i++)
            loader_fetch_free(loader, group[i]);
        loader->outstanding -= (uint32_t)count;
        wait = false;
    }
    return count < 0 ? count : 0;
}

static uint64_t begin_wait(struct loader *loader, struct stall *stall)
{
    pthread_mutex_lock(&loader->waits_lock);
    uint64_t now_ns = clock_now_ns();
    stall_begin(stall, now_ns);
    pthread_mutex_unlock(&loader->waits_lock);
    return now_ns;
}

static void end_wait(struct loader *loader, struct stall *stall, uint64_t start_ns,
                     enum meter_count counter)
{
    pthread_mutex_lock(&loader->waits_lock);
    uint64_t now_ns = clock_now_ns();
    stall_end(stall, now_ns);
    pthread_mutex_unlock(&loader->waits_lock);
    meter_add(loader->config.meter, counter, now_ns - start_ns);
}

/* Readers end their reads by themselves, not long after the time-out; this is the net beneath. */
static int check_silence(const struct loader *loader, uint64_t now_ns)
{
    if (now_ns - loader->heard_ns <= reader_patience_ns(&loader->reader))
        return 0;
    return fail(ETIMEDOUT,
                "the %s reader has not answered any of %u reads for %.1f s; see to the storage, or "
                "allow more time (--io-timeout)",
                loader->config.reader->plugin->name, loader->reader.in_flight,
                (double)(now_ns - loader->heard_ns) / 1e9);
}

static int reap(struct loader *loader, uint64_t wait_ns)
{
    struct read_request *done[GROUP];
    uint64_t start_ns = wait_ns ? begin_wait(loader, &loader->for_storage) : 0;
    int count = reader_reap(&loader->reader, done, GROUP, wait_ns);

    if (wait_ns) {
        end_wait(loader, &loader->for_storage, start_ns, METER_LOADER_STORAGE_NS);
        if (count > 0)
            loader->heard_ns = clock_now_ns();
        else if (count == 0 && check_silence(loader, clock_now_ns()))
            return -ETIMEDOUT;
    }
    uint64_t bytes = 0;
    for (int i = 0; i < count; i++) {
        bytes += done[i]->result > 0 ? (uint64_t)done[i]->result : 0;
        int code = complete_block(loader, done[i]);
        if (code)
            return code;
    }
    if (count > 0) {
        depth_feed(&loader->depth, (uint32_t)count, bytes, loader->depth_is_used,
                   done[0]->complete_ns);
        loader->reads_end_ns = loader->heard_ns = done[count - 1]->complete_ns;
        pace_add(&loader->brought, loader->reads_end_ns, loader->brought.last.amount + bytes);
        meter_add(loader->config.meter, METER_READ_BYTES, bytes);
        meter_add(loader->config.meter, METER_READ_COUNT, (uint64_t)count);
    }
    return count;
}

static int wait_for_workers(struct loader *loader)
{
    uint64_t start_ns = begin_wait(loader, &loader->for_memory);
    int code = collect_returned(loader, true);
    end_wait(loader, &loader->for_memory, start_ns, METER_LOADER_MEMORY_NS);
    return code;
}

/* Memory, files or maps that come back let another read begin. */
static bool can_use_returned(const struct loader *loader)
{
    return loader->outstanding > 0 &&
           (loader->reader.traits.lends || (!loader->depth_is_used && !window_empty(loader)));
}

/* Reads are in flight. Fetches that come back end the wait. */
static int wait_for_reads(struct loader *loader, uint64_t wait_ns)
{
    const uint64_t outstanding = loader->outstanding;
    int code = 0;

    if (can_use_returned(loader)) {
        flag_set(&loader->wants_returned);
        code = collect_returned(loader, false); /* what came before the flag was seen */
    }
    if (code == 0 && loader->outstanding == outstanding)
        code = reap(loader, wait_ns);
    flag_clear(&loader->wants_returned);
    return code;
}

/* Nothing could be submitted and nothing is done: wait for whichever can happen. blocked: memory
 * stopped the last submission, else the reader's depth, its files or the rate limit did. */
static int wait_for_something(struct loader *loader, bool blocked)
{
    uint64_t wait_ns = 100000000; /* a cancelled run is noticed so soon */
    uint64_t rate_ns = rate_wait_ns(&loader->rate, clock_now_ns());

    if (rate_ns > 0 && rate_ns < wait_ns)
        wait_ns = rate_ns;
    if (loader->reader.in_flight > 0)
        return wait_for_reads(loader, wait_ns);
    if (!blocked && !loader->starved) { /* the rate allows the next read now, or soon */
        if (rate_ns > 0)
            clock_sleep_ns(wait_ns);
        return loader->rate.bytes_per_s
                   ? 0
                   : fail(EDEADLK, "the %s reader takes no read and has none in flight",
                          loader->config.reader->plugin->name);
    }
    if (loader->outstanding > 0)
        return wait_for_workers(loader);
    return loader->starved ? loader_make_room(loader) : loader_fail_stuck(loader);
}

static bool epoch_is_over(const struct loader *loader)
{
    return window_empty(loader) && loader->reader.in_flight == 0 && !loader->refused &&
           loader->draw_head == loader->draw_tail;
}

/* All is on its way, and the next order is made: its reads can begin. A plan that was cut short
 * holds records that no draw will use; they are waited for. */
static bool may_go_on(const struct loader *loader)
{
    return loader->next_epoch && window_empty(loader) && !loader->plan_is_cut &&
           plan_prefetch_ready(loader->prefetch);
}

/* The order of the next epoch is made from now on, as soon as one is begun. */
static void ask_ahead(struct loader *loader)
{
    void *entry;

    if (!loader->prefetch || loader->next_epoch ||
        queue_pop_many(loader->epochs, &entry, 1, false) != 1)
        return;
    loader->next_epoch = (uint64_t)(uintptr_t)entry;
    plan_prefetch_ask(loader->prefetch, loader->next_epoch - 1);
}

/* Of the epoch's bytes the first quarter and the rest, by time. What the first read's end brought
 * has no time of its own. */
static void split_reads(struct loader *loader)
{
    const struct pace *reads = &loader->brought;
    const uint64_t quarter = reads->last.amount / 4, first = reads->points[0].amount;

    if (reads->count < 8 || first >= quarter)
        return;
    loader->figures.quarter_ns = pace_when(reads, quarter);
    loader->figures.head_ns =
        (uint64_t)((double)(loader->figures.quarter_ns - reads->points[0].ns) * (double)quarter /
                   (double)(quarter - first));
}

static int run_epoch(struct loader *loader, uint64_t epoch)
{
    int code = window_begin(loader, epoch);

    while (code >= 0 && !epoch_is_over(loader) && !may_go_on(loader)) {
        bool blocked;
        ask_ahead(loader);
        code = collect_returned(loader, false);
        if (code < 0)
            break;
        int submitted = window_submit(loader, &blocked);
        if (submitted < 0)
            return submitted;
        code = reap(loader, 0);
        if (code < 0)
            break;
        bool progress = submitted > 0 || code > 0;
        uint64_t head = loader->draw_head;
        code = deliver(loader);
        if (code == 0 && !progress && head == loader->draw_head && !epoch_is_over(loader) &&
            !may_go_on(loader))
            code = wait_for_something(loader, blocked);
    }
    if (code >= 0 && !may_go_on(loader)) {
        window_drop_slots(loader);
        loader->figures.read_end_ns = loader->reads_end_ns;
        split_reads(loader);
    }
    return code < 0 ? code : 0;
}

/* Hand the figures of the ended epoch to whoever asks for them. */
static void publish_figures(struct loader *loader)
{
    struct loader_figures *figures =
        &loader->epoch_figures[loader->epochs_run++ % loader->epochs_ahead];

    *figures = loader->figures;
    loader->figures = (struct loader_figures){0};
    loader->brought = (struct pace){0};
    queue_push(loader->ended, figures);
}

/* False when no more come. */
static bool next_epoch(struct loader *loader, uint64_t *epoch)
{
    void *entry = (void *)(uintptr_t)loader->next_epoch;

    loader->next_epoch = 0;
    if (!entry && queue_pop_many(loader->epochs, &entry, 1, true) != 1)
        return false;
    *epoch = (uint64_t)(uintptr_t)entry - 1;
    return true;
}

static int loader_body(void *argument)
{
    struct loader *loader = argument;
    struct reader_config config = {
        .catalog = loader->config.catalog,
        .regions = loader->regions,
        .region_count = loader->arena_count,
        .depth = loader->depth_most,
        .bytes_max = (uint32_t)(bytes_align_up(
            (loader->reads.read_bytes > loader->config.catalog->record_bytes_max
                 ? loader->reads.read_bytes
                 : loader->config.catalog->record_bytes_max) +
                HEAP_ALIGNMENT,
            HEAP_ALIGNMENT)),
        .timeout_ns = loader->config.io_timeout_ns,
        .falls_back = loader->config.reader_falls_back,
    };
    const struct plugin_choice lanes = {.plugin = &reader_parallel.plugin,
                                        .settings = &loader->lanes};
    uint64_t epoch;
    void *entry;

    int code = reader_open(&loader->reader,
                           loader->config.loaders > 1 ? &lanes : loader->config.reader, &config);
    if (code == 0 && loader->reader.traits.alignment > 1 &&
        loader->config.alignment < HEAP_ALIGNMENT)
        code = fail(EINVAL, "the %s reader is direct and wants whole pages: give --direct",
                    loader->config.reader->plugin->name);
    if (code == 0)
        loader->reads.alignment = loader->reader.traits.alignment;
    if (code == 0 && loader->prefetch)
        code = plan_prefetch_start(loader->prefetch);
    queue_push(loader->opened, (void *)(intptr_t)(code ? 2 : 1));
    while (code == 0 && next_epoch(loader, &epoch)) {
        code = run_epoch(loader, epoch);
        if (code == 0)
            publish_figures(loader);
    }
    if (code) {
        loader_cancel(loader);
        loader->config.sink.cancel(loader->config.sink.state);
    } else {
        queue_close(loader->ready);
    }
    if (loader->prefetch)
        plan_prefetch_stop(loader->prefetch);
    queue_pop_many(loader->closing, &entry, 1, true);
    if (code == 0)
        code = collect_returned(loader, false); /* ends the last loans */
    reader_close(&loader->reader);
    loader->memory_is_held |= loader->reader.held > 0;
    return code;
}

/* ---- life ---- */

static uint64_t fetches_most(const struct plan_traits *plan, uint32_t window)
{
    uint64_t ahead = (uint64_t)WINDOWS_AHEAD * window;

    return plan->slots + (ahead < FETCHES_LEAST ? FETCHES_LEAST : ahead);
}

uint64_t loader_tables_bytes(const struct coalesce *reads, const struct plan_traits *plan,
                             uint64_t memory_bytes, uint32_t alignment)
{
    enum { POINTERS = 6, ARENA_TAGS_BYTES = 3 * sizeof(uint32_t) }; /* pools, rings and queues */
    const uint64_t each = sizeof(struct fetch) + sizeof(struct block) + POINTERS * sizeof(void *);

    return fetches_most(plan, reads->window) * each + plan->slots * sizeof(void *) +
           2 * reads->window * sizeof(void *) + memory_bytes / alignment * ARENA_TAGS_BYTES;
}

static int create_window(struct loader *loader)
{
    const struct loader_config *config = &loader->config;

    loader->reads = loader_reads(config->catalog, config->memory_bytes, config->block_bytes,
                                 config->loaders, config->window);
    loader->window =
        memory_array(loader->reads.window + COALESCE_RECORDS_MAX, sizeof *loader->window);
    loader->window_scratch = memory_array(loader->reads.window, sizeof *loader->window_scratch);
    return loader->window && loader->window_scratch ? 0 : -ENOMEM;
}

static int create_pools(struct loader *loader)
{
    uint64_t fetches = fetches_most(&loader->config.plan->traits, loader->reads.window);

    if (fetches > UINT32_MAX)
        return fail(EINVAL, "a shuffle of %llu slots is too large",
                    (unsigned long long)loader->config.plan->traits.slots);
    loader->fetch_count = (uint32_t)fetches;
    loader->epochs_ahead = loader->config.epochs_max < EPOCHS_AHEAD
                               ? (uint32_t)loader->config.epochs_max
                               : EPOCHS_AHEAD;
    loader->block_count = loader->fetch_count;
    loader->slot_count = loader->config.plan->traits.slots;
    loader->fetches = memory_array(fetches, sizeof *loader->fetches);
    loader->free_fetches = memory_array(fetches, sizeof(void *));
    loader->draw_ring = memory_array(fetches, sizeof(void *));
    loader->slots = memory_array(loader->slot_count, sizeof(void *));
    loader->blocks = memory_array(loader->block_count, sizeof *loader->blocks);
    loader->free_blocks = memory_array(loader->block_count, sizeof(void *));
    loader->ready = queue_create(loader->fetch_count);
    loader->returned = queue_create(loader->fetch_count);
    loader->epochs = queue_create(loader->epochs_ahead);
    loader->opened = queue_create(1);
    loader->closing = queue_create(1);
    loader->ended = queue_create(loader->epochs_ahead);
    loader->epoch_figures = memory_array(loader->epochs_ahead, sizeof *loader->epoch_figures);
    if (!loader->fetches || !loader->free_fetches || !loader->draw_ring || !loader->slots ||
        !loader->blocks || !loader->free_blocks || !loader->ready || !loader->returned ||
        !loader->epochs || !loader->opened || !loader->closing || !loader->ended ||
        !loader->epoch_figures)
        return -ENOMEM;
    if (!loader->config.next_plan)
        return 0;
    loader->prefetch = plan_prefetch_create(loader->config.plan, loader->config.next_plan,
                                            loader->config.recorder);
    return loader->prefetch ? 0 : -ENOMEM;
}

struct loader *loader_create(const struct loader_config *config)
{
    struct loader *loader = memory_zeroed(sizeof *loader);

    if (!loader)
        return NULL;
    loader->config = *config;
    pthread_mutex_init(&loader->waits_lock, NULL);
    if (loader->config.loaders == 0)
        loader->config.loaders = 1;
    numa_find(&loader->numa, "/sys");
    loader->lanes = (struct parallel_reader_settings){
        .reader = config->reader, .count = loader->config.loaders, .numa = &loader->numa};
    loader->depth_most = config->depth ? config->depth : LOADER_DEPTH_MOST;
    depth_start(&loader->depth, loader->depth_most);
    if (config->depth)
        depth_fix(&loader->depth);
    if (create_window(loader) || create_pools(loader) || loader_create_arenas(loader)) {
        loader_destroy(loader);
        return NULL;
    }
    return loader;
}

void loader_destroy(struct loader *loader)
{
    if (!loader)
        return;
    loader_destroy_arenas(loader);
    free(loader->window);
    free(loader->window_scratch);
    free(loader->fetches);
    free(loader->free_fetches);
    free(loader->draw_ring);
    free(loader->slots);
    free(loader->blocks);
    free(loader->free_blocks);
    plan_prefetch_destroy(loader->prefetch);
    queue_destroy(loader->ready);
    queue_destroy(loader->returned);
    queue_destroy(loader->epochs);
    queue_destroy(loader->opened);
    queue_destroy(loader->closing);
    queue_destroy(loader->ended);
    free(loader->epoch_figures);
    pthread_mutex_destroy(&loader->waits_lock);
    free(loader);
}

/* All pools full again; what a failed run left behind is forgotten. */
static void reset(struct loader *loader)
{
    loader->free_fetch_count = loader->free_block_count = 0;
    for (uint32_t i = loader->fetch_count; i-- > 0;)
        loader->free_fetches[loader->free_fetch_count++] = &loader->fetches[i];
    for (uint32_t i = loader->block_count; i-- > 0;)
        loader->free_blocks[loader->free_block_count++] = &loader->blocks[i];
    memset(loader->slots, 0, loader->slot_count * sizeof *loader->slots);
    for (uint32_t i = 0; i < loader->arena_count; i++)
        heap_reset(loader->arenas[i]);
    loader->window_at = loader->window_count = 0;
    loader->windows_cut = 0;
    loader->draw_head = loader->draw_tail = loader->outstanding = 0;
    loader->refused = NULL;
    loader->releases = loader->heard_ns = 0;
    loader->starved = false;
    flag_clear(&loader->wants_returned);
    loader->rate = (struct rate){.bytes_per_s = loader->config.rate_limit_bytes};
    loader->figures = (struct loader_figures){0};
    loader->brought = (struct pace){0};
    loader->for_storage = loader->for_memory = (struct stall){0};
    queue_reset(loader->ready);
    queue_reset(loader->returned);
    queue_reset(loader->epochs);
    queue_reset(loader->opened);
    queue_reset(loader->closing);
    queue_reset(loader->ended);
    loader->epochs_run = loader->reads_end_ns = loader->next_epoch = 0;
}

int loader_start(struct loader *loader)
{
    void *answer;

    if (loader->memory_is_held)
        return fail(ETIMEDOUT, "reads of an earlier run have not ended: see to the storage");
    reset(loader);
    int code = thread_start(&loader->thread, "loader", loader_body, loader);
    if (code)
        return code;
    queue_pop_many(loader->opened, &answer, 1, true);
    return (intptr_t)answer == 1 ? 0 : loader_join(loader);
}

const struct reader_traits *loader_traits(const struct loader *loader)
{
    return &loader->reader.traits;
}

void loader_begin(struct loader *loader, uint64_t epoch)
{
    queue_push(loader->epochs, (void *)(uintptr_t)(epoch + 1));
}

void loader_finish(struct loader *loader)
{
    queue_close(loader->epochs);
}

void loader_cancel(struct loader *loader)
{
    if (loader->prefetch)
        plan_prefetch_cancel(loader->prefetch);
    queue_cancel(loader->epochs);
    queue_cancel(loader->ready);
    queue_cancel(loader->returned);
    queue_cancel(loader->ended);
}

int loader_join(struct loader *loader)
{
    queue_push(loader->closing, NULL);
    return thread_join(&loader->thread);
}

int loader_take(struct loader *loader, struct fetch **fetches, uint32_t max)
{
    void *group[GROUP];
    int count = queue_pop_many(loader->ready, group, max < GROUP ? max : GROUP, true);

    for (int i = 0; i < count; i++)
        fetches[i] = group[i];
    return count;
}

void loader_return(struct loader *loader, struct fetch *const *fetches, uint32_t count)
{
    void *group[GROUP];

    assert(count <= GROUP);
    for (uint32_t i = 0; i < count; i++)
        group[i] = fetches[i];
    queue_push_many(loader->returned, group, count);
    if (flag_get(&loader->wants_returned) && flag_test_and_clear(&loader->wants_returned))
        reader_wake(&loader->reader);
}

bool loader_epoch_figures(struct loader *loader, struct loader_figures *figures)
{
    void *entry;

    if (queue_pop_many(loader->ended, &entry, 1, true) != 1)
        return false;
    *figures = *(const struct loader_figures *)entry;
    return true;
}

const struct depth *loader_depth(const struct loader *loader)
{
    return &loader->depth;
}

const struct reader_figures *loader_reader_figures(const struct loader *loader)
{
    return &loader->reader.figures;
}

uint64_t loader_windows_cut(const struct loader *loader)
{
    return loader->windows_cut;
}

uint64_t loader_memory_peak_bytes(const struct loader *loader)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < loader->arena_count; i++)
        bytes += heap_peak_bytes(loader->arenas[i]);
    return bytes;
}

struct loader_waits loader_waits(struct loader *loader)
{
    struct loader_waits waits = {.records_ns = queue_waits(loader->ready).pop_wait_ns};

    pthread_mutex_lock(&loader->waits_lock);
    uint64_t now_ns = clock_now_ns();
    waits.storage_ns = stall_ns(&loader->for_storage, now_ns);
    waits.memory_ns = stall_ns(&loader->for_memory, now_ns);
    pthread_mutex_unlock(&loader->waits_lock);
    return waits;
}
