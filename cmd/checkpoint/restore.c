/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/checkpoint/restore.h"

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/stop.h"
#include "base/workers.h"
#include "readers/reader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static const uint64_t LOOK_NS = 100000000;

struct catalog *restore_catalog(const char *folder, const struct snapshot *snapshot)
{
    struct catalog *catalog = catalog_create(folder, "checkpoint");
    const uint32_t count = snapshot->is_single ? 1 : snapshot->file_count;
    int code = catalog ? 0 : -ENOMEM;

    for (uint32_t i = 0; i < count && code == 0; i++) {
        char *path = snapshot_path(folder, snapshot->number,
                                   snapshot->is_single ? SNAPSHOT_SINGLE : snapshot->files[i].name);
        const uint64_t bytes = snapshot->is_single ? snapshot->bytes : snapshot->files[i].bytes;
        code = path ? catalog_begin_shard(catalog, path, NULL, 0) : -ENOMEM;
        if (code == 0 && catalog->shards[i].bytes != bytes)
            code = fail(EBADMSG, "%s: has %llu bytes, its manifest says %llu", path,
                        (unsigned long long)catalog->shards[i].bytes, (unsigned long long)bytes);
        free(path);
    }
    if (code == 0)
        return catalog;
    catalog_destroy(catalog);
    return NULL;
}

/* ---- a rank ---- */

struct chunk_read {
    struct read_request request;
    uint64_t chunk; /* index in checksums */
    struct chunk_read *next;
};

struct rank_reader {
    struct restore *restore;
    struct reader reader;
    struct chunk_read *reads, *idle;
    uint32_t rank; /* whose files it reads */
    uint32_t file; /* next read: file and offset */
    uint64_t at;
    struct rank_figures *figures;
};

/* Move to the rank's next file with bytes left. Returns false at the end. */
static bool find_next(struct rank_reader *rank)
{
    const struct snapshot *snapshot = rank->restore->snapshot;

    while (rank->file < snapshot->file_count && (snapshot->files[rank->file].rank != rank->rank ||
                                                 rank->at == snapshot->files[rank->file].bytes)) {
        rank->file++;
        rank->at = 0;
    }
    return rank->file < snapshot->file_count;
}

static int submit_next(struct rank_reader *rank)
{
    const struct snapshot *snapshot = rank->restore->snapshot;
    const struct snapshot_file *file = &snapshot->files[rank->file];
    struct chunk_read *read = rank->idle;
    const uint64_t left = file->bytes - rank->at;
    const uint32_t bytes = left < snapshot->chunk_bytes ? (uint32_t)left : snapshot->chunk_bytes;

    read->chunk = file->first_chunk + rank->at / snapshot->chunk_bytes;
    read->request = (struct read_request){.offset = file->offset + rank->at,
                                          .shard = snapshot->is_single ? 0 : rank->file,
                                          .bytes = bytes,
                                          .needed = bytes,
                                          .region = read->request.region,
                                          .buffer = read->request.buffer,
                                          .owner = read};
    int code = reader_submit(&rank->reader, &read->request);
    if (code)
        return code;
    rank->idle = read->next;
    rank->at += bytes;
    return 0;
}

static void check(struct rank_reader *rank, const struct chunk_read *read)
{
    const struct restore *restore = rank->restore;
    const struct read_request *request = &read->request;

    if (!restore->verify ||
        crc32c(0, request->data, request->bytes) == restore->snapshot->checksums[read->chunk])
        return;
    if (rank->figures->damaged++ == 0)
        snprintf(rank->figures->first_damage, sizeof rank->figures->first_damage,
                 "%.200s: offset %llu", restore->catalog->shards[request->shard].path,
                 (unsigned long long)request->offset);
}

/* Wait for reads and verify their data. */
static int take(struct rank_reader *rank)
{
    struct read_request *done[16];
    int count = reader_reap(&rank->reader, done, 16, LOOK_NS), code = count < 0 ? count : 0;

    for (int i = 0; i < count; i++) {
        struct chunk_read *read = done[i]->owner;
        if (done[i]->result < 0 && code == 0)
            code = reader_explain(&rank->reader, done[i]);
        if (code == 0) {
            check(rank, read);
            rank->figures->bytes += done[i]->bytes;
        }
        reader_release(&rank->reader, done[i]);
        read->next = rank->idle;
        rank->idle = read;
    }
    return code;
}

static int read_files(struct rank_reader *rank)
{
    const struct restore *restore = rank->restore;
    int code = 0;

    while (code == 0 && (find_next(rank) || rank->reader.in_flight)) {
        if (flag_get(&restore->stopped) || flag_get(&stop_asked))
            return fail(EINTR, "interrupted");
        if (find_next(rank) && rank->idle)
            code = submit_next(rank);
        else
            code = take(rank);
        if (code == -EAGAIN)
            code = take(rank);
    }
    return code;
}

static int open_reader(struct rank_reader *rank, uint64_t number)
{
    struct restore *restore = rank->restore;
    const struct rank_buffers *buffers = restore->buffers;
    struct iovec *regions = rank_buffers_of(buffers, number);
    const struct reader_config config = {.catalog = restore->catalog,
                                         .regions = regions,
                                         .region_count = buffers->depth,
                                         .depth = buffers->depth,
                                         .bytes_max = restore->snapshot->chunk_bytes,
                                         .timeout_ns = restore->timeout_ns,
                                         .falls_back = restore->falls_back};

    rank->reads = memory_array(buffers->depth, sizeof *rank->reads);
    if (!rank->reads)
        return -ENOMEM;
    int code = reader_open(&rank->reader, restore->reader, &config);
    const bool is_zero_copy = rank->reader.traits.zero_copy;
    for (uint32_t i = 0; i < buffers->depth; i++) {
        rank->reads[i].request.region = i;
        rank->reads[i].request.buffer = is_zero_copy ? NULL : regions[i].iov_base;
        rank->reads[i].next = rank->idle;
        rank->idle = &rank->reads[i];
    }
    if (code == 0 && rank->reader.traits.alignment > MODEL_BLOCK_BYTES)
        code = fail(EINVAL, "--direct: this storage wants reads aligned to %u bytes",
                    rank->reader.traits.alignment);
    return code;
}

static int restore_rank(void *context, struct workers *workers, uint64_t number)
{
    struct restore *restore = context;
    struct rank_reader rank = {.restore = restore, .figures = &restore->figures[number]};

    (void)workers;
    rank.rank = (restore->first_rank + (uint32_t)number) % restore->snapshot->ranks;
    *rank.figures = (struct rank_figures){.rank = rank.rank};
    int code = open_reader(&rank, number);
    rank_start_wait(&restore->start, &restore->stopped);
    if (code == 0)
        code = read_files(&rank);
    rank.figures->wall_ns = rank_start_elapsed_ns(&restore->start);
    rank.figures->latency_ns = rank.reader.figures.latency_ns;
    if (number == 0) {
        snprintf(restore->engine, sizeof restore->engine, "%s", rank.reader.traits.engine);
        snprintf(restore->notice, sizeof restore->notice, "%s", rank.reader.traits.notice);
    }
    if (code == 0)
        code = reader_settle(&rank.reader);
    reader_close(&rank.reader);
    if (rank.reader.held)
        flag_set(&restore->held); /* buffers and their requests */
    else
        free(rank.reads);
    return code;
}

static void stop(void *context)
{
    flag_set(&((struct restore *)context)->stopped);
}

int restore_run(struct restore *restore)
{
    const struct workers_job job = {"restore", restore_rank, stop, NULL, restore};

    rank_start_prepare(&restore->start, restore->buffers->ranks);
    int code = restore->buffers->ranks ? workers_run(&job, restore->buffers->ranks) : 0;
    restore->buffers->is_held |= flag_get(&restore->held);
    return code;
}
