/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/checkpoint/save.h"

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/stop.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK_BYTES = 4096 };
static const uint64_t MEASURE_NS = 25000000;

void content_fill(void *chunk, size_t bytes, uint64_t seed)
{
    struct random random = random_start(seed);
    uint64_t *words = chunk;

    for (size_t i = 0; i < bytes / sizeof *words; i++)
        words[i] = random_next(&random);
}

/* Block by block, so the checksum finds the stamped block in the CPU cache. */
uint32_t content_stamp(void *chunk, size_t bytes, uint64_t key, uint32_t file, uint64_t offset)
{
    uint8_t *at = chunk;
    uint32_t crc = 0;

    assert(bytes % BLOCK_BYTES == 0);
    for (size_t i = 0; i < bytes; i += BLOCK_BYTES) {
        uint64_t stamp = random_hash(key, file, offset + i);
        memcpy(at + i, &stamp, sizeof stamp);
        crc = crc32c(crc, at + i, BLOCK_BYTES);
    }
    return crc;
}

void content_measure(void *chunk, size_t bytes, struct content_ceiling *ceiling)
{
    uint64_t count = 0, start_ns = clock_now_ns(), now_ns = start_ns;

    for (; now_ns - start_ns < MEASURE_NS; now_ns = clock_now_ns())
        content_stamp(chunk, bytes, 0, 0, count++ * bytes);
    ceiling->made_per_s = (double)(count * bytes) / ((double)(now_ns - start_ns) * 1e-9);
    start_ns = now_ns;
    volatile uint32_t sum = 0; /* prevents the loop from being optimised away */
    for (count = 0; now_ns - start_ns < MEASURE_NS; now_ns = clock_now_ns(), count++)
        sum = sum + crc32c(0, chunk, bytes);
    ceiling->checked_per_s = (double)(count * bytes) / ((double)(now_ns - start_ns) * 1e-9);
}

static const uint64_t LOOK_NS = 100000000, START_NAP_NS = 20000;

/* ---- buffers ---- */

int rank_buffers_create(struct rank_buffers *buffers)
{
    const uint64_t count = (uint64_t)buffers->ranks * buffers->depth;

    buffers->all = memory_array(count, sizeof *buffers->all);
    if (!buffers->all)
        return -ENOMEM;
    for (uint64_t i = 0; i < count; i++) {
        buffers->all[i].iov_len = buffers->chunk_bytes;
        buffers->all[i].iov_base = memory_pages(buffers->chunk_bytes);
        if (!buffers->all[i].iov_base)
            return -ENOMEM;
    }
    return 0;
}

void rank_buffers_destroy(struct rank_buffers *buffers)
{
    const uint64_t count = buffers->all ? (uint64_t)buffers->ranks * buffers->depth : 0;

    if (buffers->is_held) {
        memory_keep(buffers->all);
        return;
    }
    for (uint64_t i = 0; i < count; i++)
        free(buffers->all[i].iov_base);
    free(buffers->all);
    buffers->all = NULL;
}

struct iovec *rank_buffers_of(const struct rank_buffers *buffers, uint64_t number)
{
    assert(number < buffers->ranks);
    return buffers->all + number * buffers->depth;
}

/* ---- the start ---- */

void rank_team_wait(struct rank_team *team)
{
    if (countdown_done(&team->missing, 1)) {
        team->start_ns = clock_now_ns();
        flag_set(&team->is_given);
    }
    while (!flag_get(&team->is_given) && !flag_get(&team->stopped) && !flag_get(&stop_asked))
        clock_sleep_ns(START_NAP_NS);
}

uint64_t rank_team_elapsed_ns(const struct rank_team *team)
{
    return flag_get(&team->is_given) ? clock_now_ns() - team->start_ns : 0;
}

static void stop(void *context)
{
    flag_set(&((struct rank_team *)context)->stopped);
}

int rank_team_run(struct rank_team *team, struct rank_buffers *buffers, const char *name,
                  int (*act)(void *team, struct workers *workers, uint64_t number))
{
    const struct workers_job job = {name, act, stop, NULL, team};

    *team = (struct rank_team){0};
    countdown_set(&team->missing, buffers->ranks);
    int code = buffers->ranks ? workers_run(&job, buffers->ranks) : 0;
    buffers->is_held |= flag_get(&team->held);
    return code;
}

/* ---- a rank ---- */

struct rank_writer {
    struct save *save;
    const struct iovec *buffers;
    struct folder draft;
    struct writer writer;
    uint32_t *idle, idle_count; /* buffers */
    struct rank_figures *figures;
};

/* Write one of its files and sync it. */
static int write_file(struct rank_writer *rank, uint32_t number)
{
    struct save *save = rank->save;
    struct snapshot *snapshot = save->snapshot;
    const struct snapshot_file *file = &snapshot->files[number];
    const char *name = snapshot->is_single ? SNAPSHOT_SINGLE : file->name;
    const int fd = snapshot->is_single ? folder_open_file(&rank->draft, name, O_RDWR, NULL)
                                       : folder_create_file(&rank->draft, name);
    const uint64_t key = random_hash(snapshot->seed, snapshot->number, 0);
    uint64_t at = 0;
    int code = 0;

    if (fd < 0)
        return fd;
    /* Preallocate: direct writes that extend a file are serialised, and a full file system fails
     * here. Not every file system supports the call. */
    if (fallocate(fd, 0, (off_t)file->offset, (off_t)file->bytes) && errno != EOPNOTSUPP &&
        errno != ENOSYS && errno != EINVAL)
        code = fail(errno, "%s/%s: cannot allocate %llu bytes: %s", rank->draft.path, name,
                    (unsigned long long)file->bytes, fail_errno_text(errno));
    else if (save->direct && fcntl(fd, F_SETFL, O_DIRECT))
        code = fail(errno, "%s/%s: --direct: this file system cannot bypass the page cache: %s",
                    rank->draft.path, name, fail_errno_text(errno));
    while (code == 0 && (at < file->bytes || rank->writer.in_flight)) {
        const bool is_full = at >= file->bytes || rank->idle_count == 0;
        int index = -EAGAIN;
        if (flag_get(&save->team.stopped) || flag_get(&stop_asked)) {
            code = fail(EINTR, "interrupted");
            break;
        }
        /* A write has completed when it is found to have: look for all of them before time is spent
         * on the next chunk. */
        while (rank->writer.in_flight) {
            index = writer_wait(&rank->writer, is_full ? LOOK_NS : 0, rank->draft.path);
            if (index >= 0)
                rank->idle[rank->idle_count++] = (uint32_t)index;
            if (index < 0 || is_full)
                break;
        }
        if (index < 0 && index != -EAGAIN)
            code = index;
        if (code || is_full)
            continue;
        const uint64_t left = file->bytes - at;
        const uint32_t bytes =
            left < snapshot->chunk_bytes ? (uint32_t)left : snapshot->chunk_bytes;
        assert(rank->idle_count > 0);
        const uint32_t free = rank->idle[--rank->idle_count];
        snapshot->checksums[file->first_chunk + at / snapshot->chunk_bytes] =
            content_stamp(rank->buffers[free].iov_base, bytes, key, number, at);
        writer_write(&rank->writer, free, fd, bytes, file->offset + at);
        at += snapshot->chunk_bytes;
    }
    if (code == 0 && save->sync) {
        const uint64_t start_ns = clock_now_ns();
        if (fsync(fd))
            code = fail(errno, "%s/%s: cannot sync: %s", rank->draft.path, name,
                        fail_errno_text(errno));
        else {
            rank->figures->line.sync_ns += clock_now_ns() - start_ns;
            rank->figures->line.synced_bytes += file->bytes;
        }
    }
    if (code) /* the kernel may still write to it */
        writer_close(&rank->writer);
    if (close(fd) && code == 0)
        code =
            fail(errno, "%s/%s: cannot close: %s", rank->draft.path, name, fail_errno_text(errno));
    rank->figures->line.bytes += code ? 0 : file->bytes;
    return code;
}

static int save_rank(void *context, struct workers *workers, uint64_t number)
{
    struct save *save = context;
    const struct snapshot *snapshot = save->snapshot;
    struct rank_writer rank = {.save = save,
                               .buffers = rank_buffers_of(save->buffers, number),
                               .draft = {.fd = -1},
                               .figures = &save->figures[number]};
    const struct writer_config config = {.buffers = rank.buffers,
                                         .depth = save->buffers->depth,
                                         .direct = save->direct,
                                         .timeout_ns = save->timeout_ns};

    (void)workers;
    *rank.figures = (struct rank_figures){.line.rank = save->first_rank + (uint32_t)number};
    int code = snapshot_open_draft(save->store, snapshot->number, &rank.draft);
    rank.idle = memory_array(config.depth, sizeof *rank.idle);
    if (code == 0 && !rank.idle)
        code = -ENOMEM;
    for (; code == 0 && rank.idle_count < config.depth; rank.idle_count++)
        rank.idle[rank.idle_count] = rank.idle_count;
    if (code == 0)
        code = writer_open(&rank.writer, save->writer, &config);
    rank_team_wait(&save->team);
    for (uint32_t i = 0; i < snapshot->file_count && code == 0; i++)
        if (snapshot->files[i].rank == rank.figures->line.rank)
            code = write_file(&rank, i);
    rank.figures->line.wall_ns = rank_team_elapsed_ns(&save->team);
    rank.figures->latency_ns = rank.writer.latency_ns;
    if (number == 0)
        snprintf(save->engine, sizeof save->engine, "%s", rank.writer.engine);
    writer_close(&rank.writer);
    if (rank.writer.is_held)
        flag_set(&save->team.held);
    folder_close(&rank.draft);
    free(rank.idle);
    return code;
}

int save_run(void *context)
{
    struct save *save = context;

    return rank_team_run(&save->team, save->buffers, "checkpoint", save_rank);
}
