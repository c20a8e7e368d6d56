/* SPDX-License-Identifier: Apache-2.0 */
#include "readers/parallel_reader.h"

#include "base/atomic.h"
#include "base/memory.h"
#include "base/thread.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GROUP = 64 };
#define FOR_EVER UINT64_MAX /* every read ends, and new requests wake the thread */

struct io_thread {
    struct parallel *parallel;
    uint32_t number;
    struct thread thread;
    struct reader reader;
    struct reader_config config;
    struct queue *inbox; /* requests; holds a full depth, so pushing never waits */
    struct flag waits;   /* set before the last look at the inbox that precedes a wait for reads */
    bool has_new;        /* the caller's: work was added since the last wake-up */
};

struct parallel {
    const struct parallel_reader_settings *settings;
    uint32_t regions; /* per thread */
    bool in_order;
    struct queue *opened; /* one entry per thread */
    struct queue *done;   /* requests of all threads */
    struct io_thread *threads;
};

/* Run until the inbox is closed and nothing is in flight. The thread waits for reads only after it
 * has set `waits` and looked at the inbox again, so a later request wakes it. */
static int serve(struct io_thread *io)
{
    struct parallel *parallel = io->parallel;
    struct read_request *group[GROUP], *done[GROUP];
    uint32_t at = 0, count = 0; /* group[at .. count) have been popped but not submitted */
    int code = 0;

    for (;;) {
        /* Submit requests from the inbox until the reader is full. */
        if (at == count) {
            const int popped = queue_pop_many(io->inbox, group, GROUP, io->reader.in_flight == 0);
            if (popped < 0)
                return popped;
            at = 0;
            count = (uint32_t)popped;
        }
        for (; at < count; at++) {
            code = reader_pass_submit(&io->reader, group[at]);
            if (code)
                break;
        }
        if (at < count && code != -EAGAIN)
            return code;
        if (io->reader.in_flight == 0 && at == count)
            return 0;
        if (io->reader.in_flight == 0) {
            /* The reader can begin it only after the caller releases mapped pages. */
            struct read_request *request = group[at++];
            if (request->buffer && !parallel->in_order)
                request->region += io->number * parallel->regions; /* the caller's numbering */
            request->result = -EAGAIN;
            code = queue_push(parallel->done, &request);
            if (code)
                return code;
            continue;
        }
        const bool waits = flag_get(&io->waits);
        const int reaped = reader_reap(&io->reader, done, GROUP, waits ? FOR_EVER : 0);
        if (reaped < 0)
            return reaped;
        if (waits)
            flag_clear(&io->waits);
        else if (reaped == 0)
            flag_set(&io->waits);
        for (int i = 0; i < reaped; i++) {
            code = queue_push(parallel->done, &done[i]);
            if (code)
                return code;
        }
    }
}

static int io_thread_body(void *argument)
{
    struct io_thread *io = argument;
    const struct parallel_reader_settings *settings = io->parallel->settings;
    struct read_request *unread[GROUP];

    numa_run_on(settings->numa, io->number % settings->numa->count);
    int code = reader_open(&io->reader, settings->reader, &io->config);
    queue_push(io->parallel->opened, &code);
    if (code == 0) {
        code = serve(io);
        if (code)
            queue_cancel(io->parallel->done);
        /* The caller may release pages and wake this reader until it closes the inbox. */
        while (queue_pop_many(io->inbox, unread, GROUP, true) > 0)
            ;
    }
    if (code == 0)
        code = reader_settle(&io->reader);
    reader_close(&io->reader);
    return code;
}

/* Stop and join all threads. Returns the first failure other than -ECANCELED, if any, or 0. */
static int end_threads(void *state)
{
    struct parallel *parallel = state;
    int code = 0;

    for (uint32_t i = 0; i < parallel->settings->count && parallel->threads; i++)
        if (parallel->threads[i].inbox)
            queue_close(parallel->threads[i].inbox);
    for (uint32_t i = 0; i < parallel->settings->count && parallel->threads; i++)
        code = thread_join_next(&parallel->threads[i].thread, code);
    return code;
}

static int parallel_open(void *state, const void *chosen, const struct reader_config *config,
                         struct reader_traits *traits)
{
    struct parallel *parallel = state;
    const struct parallel_reader_settings *settings = chosen;
    const struct numa *numa = settings->numa;
    const size_t room = sizeof traits->engine;
    char name[16];

    parallel->settings = settings;
    parallel->regions = config->region_count / settings->count;
    parallel->opened = queue_create(1, sizeof(int));
    parallel->done = queue_create(config->depth, sizeof(struct read_request *));
    parallel->threads = memory_array(settings->count, sizeof *parallel->threads);
    if (!parallel->opened || !parallel->done || !parallel->threads)
        return -ENOMEM;
    int code = 0;
    for (uint32_t i = 0; code == 0 && i < settings->count; i++) {
        struct io_thread *io = &parallel->threads[i];
        *io = (struct io_thread){.parallel = parallel, .number = i, .config = *config};
        io->config.regions += i * parallel->regions;
        io->config.region_count = parallel->regions;
        io->config.in_order = false; /* a read goes to the thread with the most memory */
        io->inbox = queue_create(config->depth, sizeof(struct read_request *));
        if (!io->inbox)
            return -ENOMEM;
        snprintf(name, sizeof name, "loader%u", i % 1000u);
        code = thread_start(&io->thread, name, io_thread_body, io);
        if (code)
            break;
        queue_pop_many(parallel->opened, &code, 1, true);
        if (code)
            code = thread_join(&io->thread);
    }
    *traits = parallel->threads[0].reader.traits;
    traits->batches = false; /* a thread may start a read at once */
    parallel->in_order = traits->in_order;
    /* "; 2 I/O threads on NUMA nodes 0, 1" */
    size_t used = strlen(traits->engine);
    used +=
        (size_t)snprintf(traits->engine + used, room - used, "; %u I/O threads", settings->count);
    for (uint32_t i = 0; numa->count > 1 && i < settings->count && i < numa->count && used < room;
         i++)
        used += (size_t)snprintf(traits->engine + used, room - used, "%s%d",
                                 i ? ", " : " on NUMA nodes ", numa->nodes[i]);
    return code;
}

static void parallel_close(void *state)
{
    struct parallel *parallel = state;

    end_threads(parallel);
    for (uint32_t i = 0; parallel->threads && i < parallel->settings->count; i++)
        queue_destroy(parallel->threads[i].inbox);
    free(parallel->threads);
    queue_destroy(parallel->opened);
    queue_destroy(parallel->done);
}

static int parallel_submit(void *state, struct read_request *request)
{
    struct parallel *parallel = state;
    const bool by_region = request->buffer && !parallel->in_order;
    struct io_thread *io =
        &parallel->threads[by_region ? request->region / parallel->regions
                                     : request->shard % parallel->settings->count];

    if (by_region)
        request->region %= parallel->regions; /* the thread's numbering */
    io->has_new = true;
    return queue_push(io->inbox, &request);
}

static int parallel_reap(void *state, struct read_request **done, uint32_t max, uint64_t wait_ns)
{
    struct parallel *parallel = state;

    /* Wake each thread at most once for everything submitted and released since the last reap. */
    for (uint32_t i = 0; i < parallel->settings->count; i++) {
        struct io_thread *io = &parallel->threads[i];
        if (io->has_new && flag_get(&io->waits))
            reader_wake(&io->reader);
        io->has_new = false;
    }
    const int count = queue_pop_within(parallel->done, done, max, wait_ns);
    if (count >= 0)
        return count;
    const int code = end_threads(parallel);
    return code ? code : -EIO; /* called again after the failure was reported */
}

static void parallel_release(void *state, struct read_request *request)
{
    struct parallel *parallel = state;
    struct io_thread *io = &parallel->threads[request->shard % parallel->settings->count];

    reader_pass_release(&io->reader, request);
    io->has_new = true;
}

static void parallel_wake(void *state)
{
    queue_wake(((struct parallel *)state)->done);
}

const struct reader_ops reader_parallel = {
    .plugin = {.name = "parallel",
               .summary = "a reader on several threads",
               .settings_size = sizeof(struct parallel_reader_settings),
               .state_size = sizeof(struct parallel)},
    .open = parallel_open,
    .close = parallel_close,
    .settle = end_threads,
    .submit = parallel_submit,
    .reap = parallel_reap,
    .release = parallel_release,
    .wake = parallel_wake,
};
