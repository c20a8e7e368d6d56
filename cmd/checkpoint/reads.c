/* SPDX-License-Identifier: Apache-2.0
 *
 * The reading half of a job: each read is a run as `iobench run` knows it, with caches dropped and
 * verified before it, the witnesses of its bytes, and the same verdict. */
#include "base/clock.h"
#include "base/crc32c.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/stop.h"
#include "cmd/checkpoint/save.h"
#include "cmd/checkpoint/shared.h"
#include "dataset/catalog.h"
#include "pipeline/evidence/validity.h"
#include "pipeline/evidence/witness.h"
#include "pipeline/result/gather.h"
#include "pipeline/settings/job.h"
#include "readers/reader.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t LOOK_NS = 100000000;

/* A thread for each of this process's ranks reads the files of one rank of the checkpoint, and
 * compares each chunk with its checksum. */
struct read_phase {
    struct rank_team team;
    struct checkpoint_shared *shared;
    struct job job; /* for the validity checks: reader, caches */
    struct job_plugins plugins;
    struct snapshot snapshot;
    struct catalog *catalog; /* for readers and witnesses: a shard per file */
    struct witness *witness;
    struct result_run *run;
    struct checkpoint_row *row;
    /* Of one read. */
    char engine[192], notice[256];
};

/* ---- a rank ---- */

struct chunk_read {
    struct read_request request;
    uint64_t chunk; /* index in checksums */
    struct chunk_read *next;
};

struct rank_reader {
    const struct read_phase *reading;
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
    const struct snapshot *snapshot = &rank->reading->snapshot;

    while (rank->file < snapshot->file_count && (snapshot->files[rank->file].rank != rank->rank ||
                                                 rank->at == snapshot->files[rank->file].bytes)) {
        rank->file++;
        rank->at = 0;
    }
    return rank->file < snapshot->file_count;
}

/* Wait for reads and verify their data; damaged chunks are counted and are not a failure. */
static int take_chunks(struct rank_reader *rank)
{
    const struct read_phase *reading = rank->reading;
    struct rank_figures *figures = rank->figures;
    struct read_request *done[16];
    int count = reader_reap(&rank->reader, done, 16, LOOK_NS), code = count < 0 ? count : 0;

    for (int i = 0; i < count; i++) {
        struct chunk_read *read = done[i]->owner;
        if (done[i]->result < 0 && code == 0)
            code = reader_explain(&rank->reader, done[i]);
        if (code == 0 && reading->shared->job->verify &&
            crc32c(0, done[i]->data, done[i]->bytes) != reading->snapshot.checksums[read->chunk] &&
            figures->line.damaged++ == 0)
            snprintf(figures->first_damage, sizeof figures->first_damage, "%.200s: offset %llu",
                     reading->catalog->shards[done[i]->shard].path,
                     (unsigned long long)done[i]->offset);
        figures->line.bytes += code ? 0 : done[i]->bytes;
        reader_release(&rank->reader, done[i]);
        read->next = rank->idle;
        rank->idle = read;
    }
    return code;
}

static int read_files(struct rank_reader *rank)
{
    const struct read_phase *reading = rank->reading;
    const struct snapshot *snapshot = &reading->snapshot;
    int code = 0;

    while (code == 0 && (find_next(rank) || rank->reader.in_flight)) {
        struct chunk_read *read = rank->idle;
        if (flag_get(&reading->team.stopped) || flag_get(&stop_asked))
            return fail(EINTR, "interrupted");
        if (find_next(rank) && read) {
            const struct snapshot_file *file = &snapshot->files[rank->file];
            const uint64_t left = file->bytes - rank->at;
            const uint32_t bytes =
                left < snapshot->chunk_bytes ? (uint32_t)left : snapshot->chunk_bytes;
            read->chunk = file->first_chunk + rank->at / snapshot->chunk_bytes;
            assert(read->chunk < snapshot->chunk_count);
            read->request = (struct read_request){.offset = file->offset + rank->at,
                                                  .shard = snapshot->is_single ? 0 : rank->file,
                                                  .bytes = bytes,
                                                  .needed = bytes,
                                                  .region = read->request.region,
                                                  .buffer = read->request.buffer,
                                                  .owner = read};
            code = reader_submit(&rank->reader, &read->request);
            if (code == 0) {
                rank->idle = read->next;
                rank->at += bytes;
            }
        } else
            code = take_chunks(rank);
        if (code == -EAGAIN)
            code = take_chunks(rank);
    }
    return code;
}

static int restore_rank(void *context, struct workers *workers, uint64_t number)
{
    struct read_phase *reading = context;
    const struct checkpoint_shared *shared = reading->shared;
    const struct snapshot *snapshot = &reading->snapshot;
    struct iovec *regions = rank_buffers_of(&shared->buffers, number);
    const struct reader_config config = {.catalog = reading->catalog,
                                         .regions = regions,
                                         .region_count = shared->buffers.depth,
                                         .depth = shared->buffers.depth,
                                         .timeout_ns = shared->job->io_timeout_ns,
                                         .falls_back = reading->plugins.reader_is_auto};
    const uint64_t shift = shared->job->rank_shift % snapshot->ranks;
    struct rank_reader rank = {.reading = reading,
                               .rank = (shared->first_rank + (uint32_t)(shift + number)) %
                                       snapshot->ranks,
                               .figures = &shared->figures[number]};

    (void)workers;
    *rank.figures = (struct rank_figures){.line.rank = rank.rank};
    rank.reads = memory_array(config.depth, sizeof *rank.reads);
    int code = rank.reads ? reader_open(&rank.reader, &reading->plugins.reader, &config) : -ENOMEM;
    for (uint32_t i = 0; rank.reads && i < config.depth; i++) {
        rank.reads[i].request.region = i;
        rank.reads[i].request.buffer = rank.reader.traits.zero_copy ? NULL : regions[i].iov_base;
        rank.reads[i].next = rank.idle;
        rank.idle = &rank.reads[i];
    }
    if (code == 0 && rank.reader.traits.alignment > MODEL_BLOCK_BYTES)
        code = fail(EINVAL, "--direct: this storage wants reads aligned to %u bytes",
                    rank.reader.traits.alignment);
    rank_team_wait(&reading->team);
    if (code == 0)
        code = read_files(&rank);
    rank.figures->line.wall_ns = rank_team_elapsed_ns(&reading->team);
    rank.figures->latency_ns = rank.reader.figures.latency_ns;
    if (number == 0) {
        snprintf(reading->engine, sizeof reading->engine, "%s", rank.reader.traits.engine);
        snprintf(reading->notice, sizeof reading->notice, "%s", rank.reader.traits.notice);
    }
    if (code == 0)
        code = reader_settle(&rank.reader);
    reader_close(&rank.reader);
    if (rank.reader.held)
        flag_set(&reading->team.held); /* buffers and their requests */
    else
        free(rank.reads);
    return code;
}

static int restore(void *context)
{
    struct read_phase *reading = context;

    return rank_team_run(&reading->team, &reading->shared->buffers, "restore", restore_rank);
}

/* ---- a read ---- */

/* Choose the checkpoint of a read: the newest first, then the next older, ... */
static int choose_checkpoint(const struct read_phase *reading, uint32_t *number)
{
    const struct checkpoint_shared *shared = reading->shared;
    uint32_t *numbers;
    size_t whole;
    int code = snapshot_list_whole(&shared->store, false, &numbers, &whole);

    if (code == 0 && whole == 0)
        code = fail(ENOENT, "%s: no complete checkpoint in it", shared->job->path);
    if (code == 0)
        *number = numbers[whole - 1 - shared->result->read_count % whole];
    free(numbers);
    return code;
}

static int load_checkpoint(struct read_phase *reading, uint32_t number)
{
    struct checkpoint_shared *shared = reading->shared;
    struct checkpoint_result *result = shared->result;
    const char *folder = shared->job->path;
    struct snapshot *snapshot = &reading->snapshot;
    int code = snapshot_load(folder, number, snapshot);

    if (code)
        return code;
    if (snapshot->ranks > result->ranks) { /* it may be of another job */
        struct checkpoint_rank *more = memory_array(snapshot->ranks, sizeof *more);
        if (!more)
            return -ENOMEM;
        if (result->each)
            memcpy(more, result->each, result->ranks * sizeof *more);
        free(result->each);
        result->each = more;
        result->ranks = snapshot->ranks;
    }
    reading->catalog = catalog_create(folder, "checkpoint");
    if (!reading->catalog)
        return -ENOMEM;
    for (uint32_t i = 0; i < (snapshot->is_single ? 1 : snapshot->file_count) && code == 0; i++) {
        char *path = snapshot_path(folder, snapshot->number,
                                   snapshot->is_single ? SNAPSHOT_SINGLE : snapshot->files[i].name);
        const uint64_t bytes = snapshot->is_single ? snapshot->bytes : snapshot->files[i].bytes;
        code = path ? catalog_begin_shard(reading->catalog, path, NULL, 0) : -ENOMEM;
        if (code == 0 && reading->catalog->shards[i].bytes != bytes)
            code = fail(EBADMSG, "%s: has %llu bytes, its manifest says %llu", path,
                        (unsigned long long)reading->catalog->shards[i].bytes,
                        (unsigned long long)bytes);
        free(path);
    }
    if (code)
        return code;
    reading->witness =
        witness_open(&reading->job.cold, reading->catalog, reading->plugins.reader.plugin);
    if (!reading->witness)
        return -ENOMEM;
    witness_environment(reading->witness, &result->evidence.environment);
    return shared_prepare(shared, snapshot->ranks, snapshot->chunk_bytes);
}

static void unload_checkpoint(struct read_phase *reading)
{
    witness_close(reading->witness);
    catalog_destroy(reading->catalog);
    snapshot_release(&reading->snapshot);
    reading->witness = NULL;
    reading->catalog = NULL;
}

static int measure_read(struct read_phase *reading)
{
    struct checkpoint_shared *shared = reading->shared;
    struct result *evidence = &shared->result->evidence;
    uint32_t number = 0;
    int code = shared->ranks->place.rank == 0 ? choose_checkpoint(reading, &number) : 0;

    code = shared_agree(shared, code, &number);
    if (code)
        return code;
    reading->row->number = number;
    code = ranks_meet(shared->ranks, load_checkpoint(reading, number), NULL);
    const uint64_t rank_timeout_ns = shared->ranks->rank_timeout_ns;
    if (code == 0)
        code = witness_make_cold(reading->witness, &reading->plugins, shared->ranks, NULL, NULL,
                                 reading->run);
    shared->ranks->rank_timeout_ns = rank_timeout_ns;
    if (code == 0) {
        /* Read on the clock; fill the run and its only epoch. */
        struct result_epoch *epoch = &reading->run->epochs[0];
        struct guard_moment start;
        reading->engine[0] = reading->notice[0] = '\0';
        /* The ranks of a node share its counters: no rank reads before all have taken the first
         * values, and all have finished before any takes the last. */
        witness_before(reading->witness);
        code = ranks_meet(shared->ranks, 0, NULL);
        guard_begin(&start);
        if (code == 0)
            code = ranks_do(shared->ranks, "reading a checkpoint", restore, reading);
        epoch->wall_ns = rank_team_elapsed_ns(&reading->team);
        guard_end(&start, &epoch->guard);
        code = ranks_meet(shared->ranks, code, NULL);
        witness_after(reading->witness, &epoch->device);
        for (uint32_t i = 0; i < shared->buffers.ranks; i++) {
            epoch->record_bytes += shared->figures[i].line.bytes;
            histogram_merge(&reading->run->read_latency_ns, &shared->figures[i].latency_ns);
        }
        epoch->request_bytes = epoch->record_bytes;
        reading->run->epoch_count = 1;
        reading->run->epochs_run = 1;
        snprintf(evidence->reader_engine, sizeof evidence->reader_engine, "%s", reading->engine);
        if (reading->notice[0] && shared->result->read_count == 0)
            result_notice(evidence, "%s", reading->notice);
    }
    if (code == 0)
        code = gather_run(shared->ranks, 1, reading->run);
    if (code)
        return code;
    if (shared->ranks->place.rank == 0)
        witness_ask_server(reading->witness, &reading->run->cold);
    validity_check(&reading->job, &reading->plugins, reading->run, evidence);
    if (!reading->run->valid)
        result_invalid(evidence, "%s", reading->run->invalid_reason);
    code = shared_collect(shared, reading->snapshot.ranks, NULL, reading->row);
    if (code == 0)
        shared->result->read_count++;
    return code;
}

int reads_run(struct checkpoint_shared *shared)
{
    const struct checkpoint_job *job = shared->job;
    struct read_phase reading = {.shared = shared};
    int code = option_defaults(job_options, &reading.job);

    if (code)
        return code;
    const struct cold_settings by_default = reading.job.cold;
    char *reader = reading.job.read.reader;
    reading.job.read.reader = (char *)(uintptr_t)job->reader;
    reading.job.read.direct = job->direct;
    reading.job.read.data = (char *)(uintptr_t)job->path;
    reading.job.cold = job->cold;
    code = job_choose(&reading.job, &reading.plugins);
    if (code == 0 && reading.plugins.reader.plugin->idle)
        code = fail(EINVAL, "--reader %s: reads nothing, so nothing can be verified", job->reader);
    struct result *evidence = &shared->result->evidence;
    if (code == 0 && job->reads == 0 && shared->ranks->place.rank == 0) {
        uint32_t number; /* what is not read describes the environment */
        code = choose_checkpoint(&reading, &number);
        if (code == 0)
            code = load_checkpoint(&reading, number);
        unload_checkpoint(&reading);
    }
    if (code == 0 && job->reads) {
        evidence->runs = memory_array(job->reads, sizeof *evidence->runs);
        code = evidence->runs ? 0 : -ENOMEM;
    }
    for (uint64_t i = 0; i < job->reads && code == 0; i++) {
        shared_show(shared, true, i, job->reads);
        reading.run = &evidence->runs[i];
        reading.row = &shared->result->reads[i];
        reading.run->number = i;
        reading.run->valid = true;
        reading.run->epochs = memory_array(1, sizeof *reading.run->epochs);
        evidence->run_count++;
        code = reading.run->epochs ? measure_read(&reading) : -ENOMEM;
        unload_checkpoint(&reading);
    }
    job_release(&reading.plugins);
    reading.job.read.reader = reader;
    reading.job.read.data = NULL;
    reading.job.cold = by_default;
    option_release(job_options, &reading.job);
    return code;
}
