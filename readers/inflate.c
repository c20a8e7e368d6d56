/* SPDX-License-Identifier: Apache-2.0
 *
 * The inflate reader: shards compressed as a whole, read front to back. Each shard being read has a
 * stream that belongs to one thread of the pool, so shards advance in parallel. Offsets within a
 * shard must not decrease, except for a new pass: to 0, to where the last pass began, or after the
 * end.
 */
#include "base/fail.h"
#include "base/memory.h"
#include "base/option.h"
#include "base/thread.h"
#include "dataset/inflate.h"
#include "dataset/store.h"
#include "readers/plugins.h"
#include "readers/io_pool.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct inflate_settings {
    uint64_t threads, cursors;
};

#define FIELD(field) offsetof(struct inflate_settings, field)
static const struct option_spec inflate_options[] = {
    {"threads", 0, OPTION_COUNT, FIELD(threads), "0", .maximum = 1024,
     .summary = "inflating threads (0: one per CPU)"},
    {"cursors", 0, OPTION_COUNT, FIELD(cursors), "64", .minimum = 1, .maximum = 65536,
     .summary = "maximum number of open shards; each takes 0.6 MiB"},
    {0},
};

/* The part of a shard requested in this pass. */
struct track {
    uint64_t begin, next;
};

struct inflate_reader {
    struct io_pool *pool; /* first, for the operations of io_pool.h */
    const struct catalog *catalog;
    struct track *tracks; /* one per shard */
};

/* ---- on the threads ---- */

static void forget_stream(void *unused, struct handle *handle)
{
    (void)unused;
    inflate_close(handle->remote);
    handle->remote = NULL;
}

static void inflate_task(struct io_task *task)
{
    struct handle *handle = task->handle;
    struct store_status now;
    int code = 0;

    /* Provide a stream at or before the offset; the file must be the indexed one. */
    if (!handle->remote || inflate_stream_offset(handle->remote) > task->offset) {
        if (store_stat(handle->file->path, &now) || now.bytes != handle->file->bytes ||
            now.mtime_ns != handle->file->mtime_ns)
            code = -ESTALE;
        else if (handle->remote)
            code = inflate_reopen(handle->remote, handle->file->path, handle->file->flags);
        else
            handle->remote = inflate_open(handle->file->path, handle->file->flags, &code);
    }
    int64_t got = code;
    if (code == 0) {
        const uint64_t skip = task->offset - inflate_stream_offset(handle->remote);
        got = inflate_read(handle->remote, NULL, skip);
        if (got >= 0)
            got =
                (uint64_t)got < skip ? 0 : inflate_read(handle->remote, task->buffer, task->bytes);
    }
    if (got < 0)
        forget_stream(NULL, handle); /* its position is unknown */
    task->data = task->buffer;
    task->result = got >= 0 && got < task->needed ? -ESTALE : (int)got;
}

/* ---- on the reader's thread ---- */

static int inflate_reader_open(void *state, const void *chosen, const struct reader_config *config,
                               struct reader_traits *traits)
{
    struct inflate_reader *reader = state;
    const struct inflate_settings *settings = chosen;
    const struct catalog *catalog = config->catalog;
    uint64_t cursors =
        settings->cursors < catalog->shard_count ? settings->cursors : catalog->shard_count;
    uint64_t threads = settings->threads ? settings->threads : thread_cpu_count();
    struct io_pool_settings pool_settings = {
        .config = config,
        .threads = (uint32_t)(threads < cursors ? threads : cursors),
        .flags = HANDLES_REMOTE,
        .in_order = true,
        .work = inflate_task,
        .handles_most = (uint32_t)cursors,
        .forget = forget_stream,
    };

    reader->catalog = catalog;
    for (uint32_t i = 0; i < catalog->shard_count; i++)
        if (catalog->shards[i].flags == 0 && catalog->shards[i].record_count > 0)
            return fail(EINVAL,
                        "%s: not compressed; the inflate reader reads only compressed shards; "
                        "choose another",
                        catalog->shards[i].path);
    reader->tracks = memory_array(catalog->shard_count, sizeof *reader->tracks);
    if (!reader->tracks)
        return -ENOMEM;
    for (uint32_t i = 0; i < catalog->shard_count; i++)
        reader->tracks[i].begin = UINT64_MAX;
    int code = io_pool_create(&reader->pool, &pool_settings, &traits->alignment);
    if (code)
        return code;
    traits->in_order = true;
    snprintf(traits->engine, sizeof traits->engine, "compressed streams on %u threads",
             io_pool_threads(reader->pool));
    return 0;
}

static void inflate_reader_close(void *state)
{
    struct inflate_reader *reader = state;

    io_pool_destroy(reader->pool);
    free(reader->tracks);
}

static int inflate_reader_submit(void *state, struct read_request *request)
{
    struct inflate_reader *reader = state;
    const struct shard *shard = &reader->catalog->shards[request->shard];
    struct track *track = &reader->tracks[request->shard];
    bool back = request->offset < track->next;

    assert(request->shard < reader->catalog->shard_count);
    if (back && request->offset != 0 && request->offset != track->begin &&
        track->next < shard->stream_bytes)
        return fail(
            ESPIPE,
            "%s: offset %llu of the inflated stream: compressed shards have no random "
            "access; use --shuffle auto, none or buffer:N, or `iobench pack` to make plain shards",
            shard->path, (unsigned long long)request->offset);
    int code = io_pool_submit(reader, request);
    if (code)
        return code;
    if (back || track->begin == UINT64_MAX)
        track->begin = request->offset;
    track->next = request->offset + request->bytes;
    return 0;
}

const struct reader_ops reader_inflate = {
    .plugin = {.name = "inflate",
               .summary = "inflates shards compressed as a whole (gzip, zlib, zstd), in order only",
               .options = inflate_options,
               .settings_size = sizeof(struct inflate_settings),
               .state_size = sizeof(struct inflate_reader)},
    .any_storage = true,
    .inflates = true,
    .open = inflate_reader_open,
    .close = inflate_reader_close,
    .submit = inflate_reader_submit,
    .reap = io_pool_reap,
    .wake = io_pool_wake,
};
