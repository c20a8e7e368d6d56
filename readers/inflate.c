/* SPDX-License-Identifier: Apache-2.0
 *
 * The inflate reader: shards compressed as a whole, read from the front to the back.
 *
 * A shard that is being read has a cursor: a stream and its place in it. A cursor belongs to one
 * thread, which does the requests of its shards in the order they came; so shards advance side by
 * side and one shard never has two threads. Offsets of a shard must not go back, except for a new
 * pass: to the front, to where the last pass began, or after the end was reached.
 *
 * All but work() runs on the reader's thread. The lock guards the list of done requests; the
 * inboxes of the threads are queues that hold a whole depth, so pushing never waits.
 */
#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/option.h"
#include "base/queue.h"
#include "base/thread.h"
#include "dataset/inflate.h"
#include "dataset/store.h"
#include "readers/plugins.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { NO_CURSOR = UINT32_MAX };

struct inflate_settings {
    uint64_t threads;
    uint64_t cursors;
};

static const struct option_spec inflate_options[] = {
    {.name = "threads",
     .type = OPTION_COUNT,
     .offset = offsetof(struct inflate_settings, threads),
     .fallback = "0",
     .maximum = 1024,
     .summary = "threads that inflate (0: as many as there are CPUs)"},
    {.name = "cursors",
     .type = OPTION_COUNT,
     .offset = offsetof(struct inflate_settings, cursors),
     .fallback = "64",
     .minimum = 1,
     .maximum = 65536,
     .summary = "most shards that are open at a time; each takes 0.6 MiB"},
    {0},
};

/* How far a shard has been asked for. */
struct track {
    uint32_t cursor;
    uint64_t begin, next; /* of the current pass */
};

struct cursor {
    uint32_t shard; /* of which track; NO_CURSOR: none */
    uint32_t pending;
    uint64_t used; /* when, in submits: the one used longest ago is taken for another shard */
    /* the thread's */
    struct inflate *stream;
    uint32_t stream_shard;
};

struct job {
    struct read_request *request;
    struct cursor *cursor;
    bool restart;
    struct job *next;
};

struct worker {
    struct thread thread;
    struct inflate_reader *reader;
    struct queue *inbox;
};

struct inflate_reader {
    const struct catalog *catalog;
    uint64_t submits;
    struct track *tracks; /* one a shard */
    uint32_t cursor_count, worker_count;
    struct cursor *cursors;
    struct worker *workers;
    struct job *jobs, *free_jobs;
    pthread_mutex_t lock;
    pthread_cond_t finished;
    struct job *done, *done_last;
};

/* ---- on the threads ---- */

/* The file must still be the one that was indexed. */
static bool unchanged(const struct shard *shard)
{
    struct store_status now;

    return store_stat(shard->path, &now) == 0 && now.bytes == shard->bytes &&
           now.mtime_ns == shard->mtime_ns;
}

/* A stream at or before the wanted offset of the shard. */
static int prepare_stream(struct cursor *cursor, const struct shard *shard, const struct job *job)
{
    enum inflate_wrapper wrapper = shard->flags & SHARD_GZIP ? INFLATE_GZIP : INFLATE_ZLIB;
    int code = 0;

    if (cursor->stream && cursor->stream_shard == job->request->shard && !job->restart &&
        inflate_stream_offset(cursor->stream) <= job->request->offset)
        return 0;
    if (!unchanged(shard))
        return -ESTALE;
    cursor->stream_shard = NO_CURSOR;
    if (cursor->stream)
        code = inflate_reopen(cursor->stream, shard->path, wrapper);
    else
        cursor->stream = inflate_open(shard->path, wrapper, &code);
    if (code == 0)
        cursor->stream_shard = job->request->shard;
    return code;
}

static int64_t read_stream(const struct inflate_reader *reader, const struct job *job)
{
    struct read_request *request = job->request;
    struct cursor *cursor = job->cursor;
    int code = prepare_stream(cursor, &reader->catalog->shards[request->shard], job);

    if (code)
        return code;
    uint64_t skip = request->offset - inflate_stream_offset(cursor->stream);
    int64_t got = inflate_read(cursor->stream, NULL, skip);
    if (got >= 0)
        got = (uint64_t)got < skip ? 0
                                   : inflate_read(cursor->stream, request->buffer, request->bytes);
    if (got < 0)
        cursor->stream_shard = NO_CURSOR; /* where the stream is, is not known */
    return got >= 0 && got < request->needed ? -ESTALE : got;
}

static int work(void *argument)
{
    struct worker *worker = argument;
    struct inflate_reader *reader = worker->reader;
    void *entry;

    while (queue_pop_many(worker->inbox, &entry, 1, true) > 0) {
        struct job *job = entry;
        job->request->result = (int)read_stream(reader, job);
        job->request->data = job->request->buffer;
        job->next = NULL;
        pthread_mutex_lock(&reader->lock);
        if (reader->done)
            reader->done_last->next = job;
        else
            reader->done = job;
        reader->done_last = job;
        pthread_cond_signal(&reader->finished);
        pthread_mutex_unlock(&reader->lock);
    }
    return 0;
}

/* ---- on the reader's thread ---- */

static int start_workers(struct inflate_reader *reader, uint32_t depth)
{
    int code = 0;

    for (uint32_t i = 0; code == 0 && i < reader->worker_count; i++) {
        struct worker *worker = &reader->workers[i];
        worker->reader = reader;
        worker->inbox = queue_create(depth);
        code = worker->inbox ? thread_start(&worker->thread, "inflate", work, worker) : -ENOMEM;
    }
    return code;
}

static int inflate_reader_open(void *state, const void *chosen, const struct reader_site *site,
                               struct reader_traits *traits)
{
    struct inflate_reader *reader = state;
    const struct inflate_settings *settings = chosen;
    uint64_t threads = settings->threads ? settings->threads : thread_cpu_count();
    pthread_condattr_t monotonic;

    pthread_mutex_init(&reader->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&reader->finished, &monotonic);
    pthread_condattr_destroy(&monotonic);
    reader->catalog = site->catalog;
    for (uint32_t i = 0; i < site->catalog->shard_count; i++)
        if (site->catalog->shards[i].flags == 0)
            return fail(EINVAL,
                        "%s: not compressed; the inflate reader is for compressed shards, "
                        "take another one",
                        site->catalog->shards[i].path);
    reader->cursor_count = settings->cursors < site->catalog->shard_count
                               ? (uint32_t)settings->cursors
                               : site->catalog->shard_count;
    reader->worker_count =
        threads < reader->cursor_count ? (uint32_t)threads : reader->cursor_count;
    reader->tracks = memory_array(site->catalog->shard_count, sizeof *reader->tracks);
    reader->cursors = memory_array(reader->cursor_count, sizeof *reader->cursors);
    reader->workers = memory_array(reader->worker_count, sizeof *reader->workers);
    reader->jobs = memory_array(site->depth, sizeof *reader->jobs);
    if (!reader->tracks || !reader->cursors || !reader->workers || !reader->jobs)
        return -ENOMEM;
    for (uint32_t i = 0; i < site->catalog->shard_count; i++)
        reader->tracks[i] = (struct track){.cursor = NO_CURSOR, .begin = UINT64_MAX};
    for (uint32_t i = 0; i < reader->cursor_count; i++)
        reader->cursors[i] = (struct cursor){.shard = NO_CURSOR, .stream_shard = NO_CURSOR};
    for (uint32_t i = 0; i < site->depth; i++) {
        reader->jobs[i].next = reader->free_jobs;
        reader->free_jobs = &reader->jobs[i];
    }
    traits->in_order = true;
    snprintf(traits->engine, sizeof traits->engine, "gzip and zlib streams on %u threads",
             reader->worker_count);
    return start_workers(reader, site->depth);
}

static void inflate_reader_close(void *state)
{
    struct inflate_reader *reader = state;

    for (uint32_t i = 0; reader->workers && i < reader->worker_count; i++) {
        if (reader->workers[i].inbox)
            queue_close(reader->workers[i].inbox);
        thread_join(&reader->workers[i].thread);
        queue_destroy(reader->workers[i].inbox);
    }
    for (uint32_t i = 0; reader->cursors && i < reader->cursor_count; i++)
        inflate_close(reader->cursors[i].stream);
    pthread_cond_destroy(&reader->finished);
    pthread_mutex_destroy(&reader->lock);
    free(reader->tracks);
    free(reader->cursors);
    free(reader->workers);
    free(reader->jobs);
}

/* The shard's cursor, or one that has nothing to do: a free one, else the one used longest ago.
 * NULL when all are busy. */
static struct cursor *take_cursor(struct inflate_reader *reader, uint32_t shard)
{
    struct track *track = &reader->tracks[shard];
    struct cursor *best = NULL;

    if (track->cursor != NO_CURSOR)
        return &reader->cursors[track->cursor];
    for (uint32_t i = 0; i < reader->cursor_count; i++) {
        struct cursor *cursor = &reader->cursors[i];
        if (cursor->pending == 0 && (!best || cursor->used < best->used))
            best = cursor;
        if (cursor->shard == NO_CURSOR)
            break;
    }
    if (!best)
        return NULL;
    if (best->shard != NO_CURSOR)
        reader->tracks[best->shard].cursor = NO_CURSOR;
    best->shard = shard;
    track->cursor = (uint32_t)(best - reader->cursors);
    return best;
}

static int inflate_reader_submit(void *state, struct read_request *request)
{
    struct inflate_reader *reader = state;
    const struct shard *shard = &reader->catalog->shards[request->shard];
    struct track *track = &reader->tracks[request->shard];
    bool back = request->offset < track->next;

    if (back && request->offset != 0 && request->offset != track->begin &&
        track->next < shard->stream_bytes)
        return fail(
            ESPIPE,
            "%s: offset %llu of the inflated stream: compressed shards have no random "
            "access; use --shuffle none or buffer:N, or `iobench pack` to make plain shards",
            shard->path, (unsigned long long)request->offset);
    struct job *job = reader->free_jobs;
    struct cursor *cursor = job ? take_cursor(reader, request->shard) : NULL;
    if (!cursor)
        return -EAGAIN;
    if (back || track->begin == UINT64_MAX)
        track->begin = request->offset;
    track->next = request->offset + request->bytes;
    cursor->pending++;
    cursor->used = ++reader->submits;
    reader->free_jobs = job->next;
    *job = (struct job){.request = request, .cursor = cursor, .restart = back};
    return queue_push(reader->workers[track->cursor % reader->worker_count].inbox, job);
}

static int inflate_reader_reap(void *state, struct read_request **done, uint32_t max,
                               uint64_t wait_ns)
{
    struct inflate_reader *reader = state;
    uint64_t until_ns = wait_ns ? clock_now_ns() + wait_ns : 0;
    int count = 0;

    if (until_ns < wait_ns)
        until_ns = UINT64_MAX / 2;
    struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000),
                             .tv_nsec = (long)(until_ns % 1000000000)};
    pthread_mutex_lock(&reader->lock);
    while (!reader->done && wait_ns &&
           pthread_cond_timedwait(&reader->finished, &reader->lock, &until) == 0)
        ;
    for (struct job *job; (uint32_t)count < max && (job = reader->done); count++) {
        reader->done = job->next;
        job->cursor->pending--;
        done[count] = job->request;
        job->next = reader->free_jobs;
        reader->free_jobs = job;
    }
    pthread_mutex_unlock(&reader->lock);
    return count;
}

const struct reader_ops reader_inflate = {
    .plugin = {.name = "inflate",
               .summary = "inflates shards compressed as a whole (gzip, zlib), in order only",
               .options = inflate_options,
               .settings_size = sizeof(struct inflate_settings),
               .state_size = sizeof(struct inflate_reader)},
    .open = inflate_reader_open,
    .close = inflate_reader_close,
    .submit = inflate_reader_submit,
    .reap = inflate_reader_reap,
};
