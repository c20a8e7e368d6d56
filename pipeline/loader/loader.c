/* SPDX-License-Identifier: Apache-2.0
 *
 * Invariants:
 *
 * 1. A fetch is in exactly one state (fetch.h), and only the loader's thread changes it.
 * 2. A request belongs to the reader from submit until it is reaped. Its block then belongs to its
 *    records: the last one to be copied out or dropped releases it, exactly once.
 * 3. Draws leave in plan order, whatever order the reads end in.
 * 4. Memory acquired = memory of blocks + memory of copies. What a timed-out read may still write
 *    to is never reused or freed.
 * 5. A block that was refused is submitted again only after something was released.
 * 6. The loop never waits for an event that cannot come. If no read is in flight, no fetch is with
 *    a worker and no rate limit holds, each turn submits a read, delivers a fetch or copies a
 *    record out of a mapping, or the run fails with a reason that names what is exhausted. With
 *    reads in flight the loop waits for the reader, which finishes each within the time-out;
 *    inflight.c catches one that hangs.
 */
#include "pipeline/loader/loader.h"

#include "base/bytes.h"
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

enum { EPOCHS_AHEAD = 8 }; /* epochs begun whose figures have not been requested */

struct loader {
    struct loader_config config;
    struct numa numa;
    struct parallel_reader_settings parallel; /* with several I/O threads */
    struct thread thread;
    struct flow flow;
    struct plan_prefetch prefetch;
    bool plan_is_cut;    /* the epoch ends before its plan does */
    uint64_t next_epoch; /* + 1: popped from `epochs`, its order is being made; 0: none */

    struct queue *epochs;           /* epoch + 1, from loader_begin() */
    struct queue *opened;           /* one entry: the reader was opened, or failed to */
    struct queue *closing;          /* one entry: no worker holds a fetch any more */
    struct queue *ended;            /* figures of completed epochs */
    struct loader_figures *figures; /* a ring of epochs_ahead entries */
    uint64_t epochs_run;
    uint32_t epochs_ahead;
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
    return loader->next_epoch && window_is_done(&loader->flow.window) && !loader->plan_is_cut &&
           plan_prefetch_is_ready(&loader->prefetch);
}

/* Request the next epoch's order as soon as that epoch is begun. */
static void prefetch_order(struct loader *loader)
{
    void *entry;

    if (!loader->config.next_plan || loader->next_epoch ||
        queue_pop_many(loader->epochs, &entry, 1, false) != 1)
        return;
    loader->next_epoch = (uint64_t)(uintptr_t)entry;
    plan_prefetch_request(&loader->prefetch, loader->next_epoch - 1);
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
        flow_drop_slots(&loader->flow); /* of a plan that was cut short */
        inflight_end_epoch(&loader->flow.inflight);
    }
    struct loader_figures *figures = &loader->figures[loader->epochs_run++ % loader->epochs_ahead];
    *figures = inflight_take_figures(&loader->flow.inflight);
    queue_push(loader->ended, figures);
    return 0;
}

/* Returns false after the last epoch. */
static bool next_epoch(struct loader *loader, uint64_t *epoch)
{
    void *entry = (void *)(uintptr_t)loader->next_epoch;

    loader->next_epoch = 0;
    if (!entry && queue_pop_many(loader->epochs, &entry, 1, true) != 1)
        return false;
    *epoch = (uint64_t)(uintptr_t)entry - 1;
    return true;
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
    uint64_t epoch;
    void *entry;

    int code = open_reader(loader);
    queue_push(loader->opened, (void *)(intptr_t)(code ? 2 : 1));
    while (code == 0 && next_epoch(loader, &epoch))
        code = run_epoch(loader, epoch);
    if (code) {
        loader_cancel(loader);
        loader->config.sink.cancel(loader->config.sink.state);
    } else {
        queue_close(loader->flow.delivery.ready);
    }
    plan_prefetch_stop(&loader->prefetch);
    queue_pop_many(loader->closing, &entry, 1, true);
    if (code == 0)
        code = flow_collect(&loader->flow, false); /* releases the last mapped pages */
    reader_close(&loader->flow.inflight.reader);
    loader->flow.arenas.held |= loader->flow.inflight.reader.held > 0;
    return code;
}

/* ---- life ---- */

static int create_parts(struct loader *loader)
{
    const struct loader_config *config = &loader->config;
    int code = flow_create(&loader->flow, config, &loader->numa);

    loader->epochs_ahead =
        config->epochs_max < EPOCHS_AHEAD ? (uint32_t)config->epochs_max : EPOCHS_AHEAD;
    loader->epochs = queue_create(loader->epochs_ahead);
    loader->opened = queue_create(1);
    loader->closing = queue_create(1);
    loader->ended = queue_create(loader->epochs_ahead);
    loader->figures = memory_array(loader->epochs_ahead, sizeof *loader->figures);
    if (!loader->epochs || !loader->opened || !loader->closing || !loader->ended ||
        !loader->figures)
        return -ENOMEM;
    return code;
}

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
    if (create_parts(loader)) {
        loader_destroy(loader);
        return NULL;
    }
    return loader;
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
    free(loader->figures);
    free(loader);
}

int loader_start(struct loader *loader)
{
    void *answer;

    if (loader->flow.arenas.held)
        return fail(ETIMEDOUT, "reads of an earlier run are still in flight: check the storage");
    flow_reset(&loader->flow);
    queue_reset(loader->epochs);
    queue_reset(loader->opened);
    queue_reset(loader->closing);
    queue_reset(loader->ended);
    loader->epochs_run = loader->next_epoch = 0;
    int code = thread_start(&loader->thread, "loader", loader_body, loader);
    if (code)
        return code;
    queue_pop_many(loader->opened, &answer, 1, true);
    return (intptr_t)answer == 1 ? 0 : loader_join(loader);
}

const struct reader_traits *loader_traits(const struct loader *loader)
{
    return &loader->flow.inflight.reader.traits;
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
    queue_cancel(loader->epochs);
    delivery_cancel(&loader->flow.delivery);
    queue_cancel(loader->ended);
}

int loader_join(struct loader *loader)
{
    queue_push(loader->closing, NULL);
    return thread_join(&loader->thread);
}

int loader_acquire(struct loader *loader, struct fetch **fetches, uint32_t max)
{
    return delivery_acquire(&loader->flow.delivery, fetches, max);
}

void loader_release(struct loader *loader, struct fetch *const *fetches, uint32_t count)
{
    flow_release(&loader->flow, fetches, count);
}

bool loader_epoch_figures(struct loader *loader, struct loader_figures *figures)
{
    void *entry;

    if (queue_pop_many(loader->ended, &entry, 1, true) != 1)
        return false;
    *figures = *(const struct loader_figures *)entry;
    return true;
}

struct loader_totals loader_totals(const struct loader *loader)
{
    const struct flow *flow = &loader->flow;

    return (struct loader_totals){.depth = &flow->inflight.depth,
                                  .reader = &flow->inflight.reader.figures,
                                  .memory_peak_bytes = arenas_peak_bytes(&flow->arenas),
                                  .windows_cut = flow->window.cut};
}

struct loader_waits loader_waits(struct loader *loader)
{
    return (struct loader_waits){
        .storage_ns = inflight_wait_ns(&loader->flow.inflight),
        .memory_ns = queue_waits(loader->flow.delivery.returned).pop_wait_ns,
        .records_ns = queue_waits(loader->flow.delivery.ready).pop_wait_ns,
    };
}
