/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/checkpoint/checkpoint.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/crc32c.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/stats.h"
#include "base/stop.h"
#include "base/thread.h"
#include "dataset/catalog.h"
#include "dataset/store.h"
#include "pipeline/evidence/validity.h"
#include "pipeline/evidence/witness.h"
#include "pipeline/result/result.h"
#include "pipeline/settings/job.h"
#include "readers/reader.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t LOOK_NS = 100000000, NAP_NS = 1000000, SLEEP_NS = 50000000;

/* Return a process's first rank; the next process's is one past its last. */
static uint32_t first_rank_of(const struct checkpoint_shared *shared, uint32_t ranks,
                              uint32_t process)
{
    assert(process <= shared->ranks->place.ranks);
    return (uint32_t)((uint64_t)ranks * process / shared->ranks->place.ranks);
}

/* ---- memory ---- */

/* Allocate the buffers of this process's share of `ranks`, filled and touched. */
static int prepare_buffers(struct checkpoint_shared *shared, uint32_t ranks, uint32_t chunk_bytes)
{
    struct rank_buffers *buffers = &shared->buffers;
    const uint32_t process = shared->ranks->place.rank;
    const uint32_t first = first_rank_of(shared, ranks, process);
    const uint32_t count = first_rank_of(shared, ranks, process + 1) - first;

    shared->first_rank = first;
    if (ranks < shared->ranks->place.ranks)
        return fail(EINVAL, "%u processes for a checkpoint of %u ranks: start at most one per rank",
                    shared->ranks->place.ranks, ranks);
    if (buffers->all && buffers->ranks == count && buffers->chunk_bytes == chunk_bytes)
        return 0;
    rank_buffers_destroy(buffers);
    free(shared->figures);
    *buffers = (struct rank_buffers){
        .ranks = count, .depth = (uint32_t)shared->job->depth, .chunk_bytes = chunk_bytes};
    shared->figures = memory_array(count + 1, sizeof *shared->figures);
    if (!shared->figures)
        return -ENOMEM;
    const uint64_t needed = (uint64_t)count * buffers->depth * chunk_bytes;
    const uint64_t usable = memory_available_bytes() / shared->ranks->place.local_ranks / 4 * 3;
    char need[32], have[32];
    if (needed > usable)
        return fail(
            ENOMEM,
            "%u ranks with %u chunks in flight need %s of memory in this process, which may use "
            "%s: lower --chunk or --iodepth, use --subset, or spread the ranks with mpirun",
            count, buffers->depth, bytes_text(needed, need, sizeof need),
            bytes_text(usable, have, sizeof have));
    int code = rank_buffers_create(buffers);
    for (uint64_t i = 0; code == 0 && i < (uint64_t)count * buffers->depth; i++)
        if (i == 0)
            content_fill(buffers->all[i].iov_base, chunk_bytes, shared->job->seed);
        else
            memcpy(buffers->all[i].iov_base, buffers->all[0].iov_base, chunk_bytes);
    if (code == 0 && count && shared->result->ceiling.made_per_s <= 0) {
        struct guard_moment start;
        guard_begin(&start);
        content_measure(buffers->all[0].iov_base, chunk_bytes, &shared->result->ceiling);
        guard_end(&start, &shared->guard);
    }
    return code;
}

/* ---- ranks ---- */

/* Collective: broadcast the first process's number. */
static int agree(struct checkpoint_shared *shared, int code, uint32_t *number)
{
    code = ranks_meet(shared->ranks, code, NULL);
    if (code || shared->ranks->place.ranks == 1)
        return code;
    return ranks_broadcast(shared->ranks, number, sizeof *number);
}

/* What a process reports after a checkpoint. */
struct process_report {
    uint32_t count;
    double process_bytes, device_bytes; /* NAN: unknown */
    struct histogram latency_ns;
    char first_damage[256];
    struct rank_line lines[];
};

int checkpoint_collect(struct checkpoint_shared *shared, uint32_t ranks,
                       const struct storage_bytes *written, struct checkpoint_row *row)
{
    const uint32_t processes = shared->ranks->place.ranks, most = ranks / processes + 1;
    const size_t bytes =
        bytes_align_up(sizeof(struct process_report) + most * sizeof(struct rank_line), 64);
    struct process_report *mine = memory_zeroed(bytes);
    double *times = memory_array(ranks, sizeof *times); /* of all ranks, in nanoseconds */
    int code = mine && times ? 0 : -ENOMEM;

    if (code == 0) {
        mine->process_bytes =
            written && written->process_known ? (double)written->process_write_bytes : (double)NAN;
        mine->device_bytes =
            written && written->device_known ? (double)written->device_write_bytes : (double)NAN;
        if (shared->ranks->place.local_rank) /* the ranks of a node have the same devices */
            mine->device_bytes = 0;
        mine->count = shared->buffers.ranks;
        for (uint32_t i = 0; i < mine->count; i++) {
            const struct rank_figures *figures = &shared->figures[i];
            mine->lines[i] = figures->line;
            histogram_merge(&mine->latency_ns, &figures->latency_ns);
            if (figures->line.damaged && !mine->first_damage[0])
                memcpy(mine->first_damage, figures->first_damage, sizeof mine->first_damage);
        }
    }
    char *reports = ranks_collect(shared->ranks, &code, mine, bytes);
    if (reports) {
        const bool is_read = !written;
        uint32_t count = 0;
        for (uint32_t i = 0; i < shared->ranks->place.ranks; i++) {
            const struct process_report *report =
                (const struct process_report *)(const void *)(reports + i * bytes);
            const char *host =
                shared->ranks->peers ? shared->ranks->peers[i].host : shared->ranks->place.host;
            row->process_bytes += report->process_bytes;
            row->device_bytes += report->device_bytes;
            histogram_merge(&row->latency_ns, &report->latency_ns);
            for (uint32_t k = 0; k < report->count; k++) {
                const struct rank_line *line = &report->lines[k];
                struct checkpoint_rank *rank = &shared->result->each[line->rank];
                assert(line->rank < shared->result->ranks && count < ranks);
                rank->rank = line->rank;
                snprintf(rank->host, sizeof rank->host, "%s", host);
                *(is_read ? &rank->read : &rank->written) += line->bytes;
                *(is_read ? &rank->read_ns : &rank->write_ns) += line->wall_ns;
                row->bytes += line->bytes;
                row->synced_bytes += line->synced_bytes;
                row->damaged += line->damaged;
                row->sync_ns = line->sync_ns > row->sync_ns ? line->sync_ns : row->sync_ns;
                if (line->wall_ns >= row->wall_ns) {
                    row->wall_ns = line->wall_ns;
                    row->slowest = line->rank;
                }
                times[count++] = (double)line->wall_ns;
            }
            if (report->first_damage[0])
                result_invalid(&shared->result->evidence,
                               "content differs from what was written: %s", report->first_damage);
        }
        stats_sort(times, count);
        row->fastest_ns = (uint64_t)times[0];
        row->median_ns = (uint64_t)times[count / 2];
    }
    free(times);
    free(reports);
    free(mine);
    return code;
}

/* ---- writes: between the steps of a training loop that is emulated by its step time; what the
 * loop takes beyond its steps is what checkpoints cost ---- */

struct write_phase {
    struct checkpoint_shared *shared;
    struct snapshot snapshot;
    struct save save;
    struct thread thread; /* for an asynchronous save */
    struct flag done;     /* the thread has finished */
    bool is_pending;      /* a checkpoint has begun and is not finished */
    uint64_t begun_ns;
    struct storage_bytes before; /* counters when it began */
    struct checkpoint_row *row;  /* row of the pending checkpoint */
};

static int save_thread(void *context)
{
    struct write_phase *writing = context;
    int code = save_run(&writing->save);

    flag_set(&writing->done);
    return code;
}

/* Return the number of chunks before a process's own. */
static uint64_t chunks_before(const struct write_phase *writing, uint32_t process)
{
    const struct snapshot *snapshot = &writing->snapshot;
    const uint32_t rank = first_rank_of(writing->shared, snapshot->ranks, process);

    for (uint32_t i = 0; i < snapshot->file_count; i++)
        if (snapshot->files[i].rank >= rank)
            return snapshot->files[i].first_chunk;
    return snapshot->chunk_count;
}

/* The first process writes the manifest. */
static int gather_checksums(struct write_phase *writing)
{
    struct ranks *ranks = writing->shared->ranks;
    uint32_t *sums = writing->snapshot.checksums;
    uint64_t most = 0;

    if (ranks->place.ranks == 1)
        return 0;
    for (uint32_t i = 0; i < ranks->place.ranks; i++) {
        const uint64_t count = chunks_before(writing, i + 1) - chunks_before(writing, i);
        most = count > most ? count : most;
    }
    uint32_t *mine = memory_array(most, sizeof *mine);
    const uint64_t from = chunks_before(writing, ranks->place.rank);
    int code = mine ? 0 : -ENOMEM;
    if (mine)
        memcpy(mine, sums + from,
               (chunks_before(writing, ranks->place.rank + 1) - from) * sizeof *sums);
    uint32_t *all = ranks_collect(ranks, &code, mine, most * sizeof *mine);
    for (uint32_t i = 0; code == 0 && i < ranks->place.ranks; i++)
        memcpy(sums + chunks_before(writing, i), all + most * i,
               (chunks_before(writing, i + 1) - chunks_before(writing, i)) * sizeof *sums);
    free(mine);
    free(all);
    return code;
}

/* Wait for the saving thread, sending heartbeats. */
static int join_saving(struct write_phase *writing, int code)
{
    if (!writing->shared->job->is_async)
        return code;
    while (writing->thread.started && !flag_get(&writing->done)) {
        ranks_called_off(writing->shared->ranks);
        clock_sleep_ns(NAP_NS);
    }
    const int saved = thread_join(&writing->thread);
    return code ? code : saved;
}

/* May take longer than the other ranks tolerate, to sync or to remove an old checkpoint. */
static int commit(void *context)
{
    struct write_phase *writing = context;

    return snapshot_commit(&writing->shared->store, &writing->snapshot);
}

static int prune(void *context)
{
    struct write_phase *writing = context;

    return snapshot_prune(&writing->shared->store, writing->shared->job->keep);
}

/* Complete the pending checkpoint; training waits for it. code: what its saving returned. */
static int finish_checkpoint(struct write_phase *writing, int code)
{
    struct checkpoint_shared *shared = writing->shared;
    struct checkpoint_row *row = writing->row;
    const uint64_t from_ns = clock_now_ns();
    struct storage_bytes after;

    assert(writing->is_pending && row);
    code = ranks_meet(shared->ranks, join_saving(writing, code), NULL);
    if (code == 0)
        code = gather_checksums(writing);
    if (code == 0 && shared->ranks->place.rank == 0)
        code = ranks_do(shared->ranks, "completing a checkpoint", commit, writing);
    code = ranks_meet(shared->ranks, code, NULL);
    if (code)
        return code;
    writing->is_pending = false;
    row->durable_ns = clock_now_ns() - writing->begun_ns;
    storage_read(shared->storage, &after);
    const struct storage_bytes written = storage_growth(&writing->before, &after);
    code = checkpoint_collect(shared, writing->snapshot.ranks, &written, row);
    if (code == 0) {
        shared->result->write_count++;
        memcpy(shared->result->writer_engine, writing->save.engine,
               sizeof shared->result->writer_engine);
    }
    if (code == 0 && shared->ranks->place.rank == 0)
        code = ranks_do(shared->ranks, "removing a checkpoint", prune, writing);
    code = ranks_meet(shared->ranks, code, NULL);
    row->stall_ns += clock_now_ns() - from_ns;
    return code;
}

/* Train until the next checkpoint is due or, with only_pending, until none is pending; finish the
 * pending checkpoint as soon as it is written. */
static int train(struct write_phase *writing, bool only_pending)
{
    struct checkpoint_shared *shared = writing->shared;
    const uint64_t steps = shared->job->step_ns ? shared->job->interval : 0;
    int code = 0;

    for (uint64_t i = 0; i < steps && code == 0 && (writing->is_pending || !only_pending); i++) {
        const uint64_t end_ns = clock_now_ns() + shared->job->step_ns;
        for (uint64_t now_ns = clock_now_ns(); now_ns < end_ns && !flag_get(&stop_asked);
             now_ns = clock_now_ns())
            clock_sleep_until_ns(end_ns - now_ns > SLEEP_NS ? now_ns + SLEEP_NS : end_ns);
        shared->result->steps++;
        code = ranks_meet(shared->ranks, stop_check(), NULL);
        if (code || !writing->is_pending)
            continue;
        /* Have all ranks written the pending checkpoint? */
        struct ranks *ranks = shared->ranks;
        uint8_t mine = flag_get(&writing->done);
        uint8_t *all = ranks_collect(ranks, &code, &mine, sizeof mine);
        if (all && !memchr(all, 0, ranks->place.ranks))
            code = finish_checkpoint(writing, 0);
        free(all);
    }
    return code == 0 && writing->is_pending ? finish_checkpoint(writing, 0) : code;
}

static int run_writes(struct checkpoint_shared *shared)
{
    const struct checkpoint_job *job = shared->job;
    const bool leads = shared->ranks->place.rank == 0;
    struct write_phase writing = {.shared = shared};
    struct snapshot *snapshot = &writing.snapshot;
    const uint32_t chunk_bytes = (uint32_t)job->chunk_bytes;
    int code = snapshot_plan(snapshot, &shared->result->files, chunk_bytes, job->is_single);

    memcpy(snapshot->model, job->model.model.name, sizeof snapshot->model);
    snapshot->seed = job->seed;
    if (code == 0)
        code = prepare_buffers(shared, snapshot->ranks, chunk_bytes);
    code = ranks_meet(shared->ranks, code, NULL);
    writing.save = (struct save){.store = &shared->store,
                                 .snapshot = snapshot,
                                 .buffers = &shared->buffers,
                                 .first_rank = shared->first_rank,
                                 .writer = job->writer,
                                 .direct = job->direct,
                                 .sync = job->sync,
                                 .timeout_ns = job->io_timeout_ns,
                                 .figures = shared->figures};
    if (code == 0) {
        struct guard_moment start;
        guard_begin(&start);
        const uint64_t start_ns = clock_now_ns();
        for (uint64_t i = 0; i < job->writes && code == 0; i++) {
            if (job->progress)
                job->progress(job->progress_context, false, i, job->writes);
            code = train(&writing, false);
            const uint64_t from_ns = clock_now_ns();
            if (code == 0) {
                code = leads ? snapshot_next_number(&shared->store, &snapshot->number) : 0;
                code = agree(shared, code, &snapshot->number);
            }
            if (code == 0) {
                writing.row = &shared->result->writes[shared->result->write_count];
                writing.row->number = snapshot->number;
                writing.is_pending = true;
                storage_read(shared->storage, &writing.before); /* before any rank here writes */
                code = leads ? snapshot_begin(&shared->store, snapshot) : 0;
                code = ranks_meet(shared->ranks, code, NULL);
            }
            if (code == 0) {
                flag_clear(&writing.done);
                writing.begun_ns = clock_now_ns();
                code = job->is_async ? thread_start(&writing.thread, "saver", save_thread, &writing)
                                     : ranks_do(shared->ranks, "writing a checkpoint", save_run,
                                                &writing.save);
            }
            if (writing.row)
                writing.row->stall_ns += clock_now_ns() - from_ns;
            if (writing.is_pending && (code || !job->is_async))
                code = finish_checkpoint(&writing, code);
        }
        if (code == 0)
            code = train(&writing, true);
        shared->result->loop_ns = clock_now_ns() - start_ns;
        guard_end(&start, &shared->guard);
    }
    if (code && writing.is_pending) {
        /* No rank writes any more: remove the incomplete checkpoint. */
        fail_hold();
        join_saving(&writing, 0);
        ranks_meet(shared->ranks, 0, NULL);
        if (leads)
            snapshot_abandon(&shared->store, snapshot->number);
        fail_release();
    }
    snapshot_release(snapshot);
    return code;
}

/* ---- reads: each is a run as `iobench run` knows it, with caches dropped and verified before it,
 * the witnesses of its bytes, and the same verdict ---- */

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
    char notice[256]; /* of the reader */
};

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
    struct rank_figures *figures;
};

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
        code = fail(EINVAL, "--direct: this storage needs reads aligned to %u bytes",
                    rank.reader.traits.alignment);
    rank_team_wait(&reading->team);
    uint32_t next = 0; /* file of the next read, */
    uint64_t at = 0;   /* and where in it */
    while (code == 0) {
        while (next < snapshot->file_count &&
               (snapshot->files[next].rank != rank.rank || at == snapshot->files[next].bytes)) {
            next++;
            at = 0;
        }
        const bool has_more = next < snapshot->file_count;
        struct chunk_read *read = rank.idle;
        if (!has_more && rank.reader.in_flight == 0)
            break;
        if (flag_get(&reading->team.stopped) || flag_get(&stop_asked)) {
            code = fail(EINTR, "interrupted");
        } else if (has_more && read) {
            const struct snapshot_file *file = &snapshot->files[next];
            const uint64_t left = file->bytes - at;
            const uint32_t bytes =
                left < snapshot->chunk_bytes ? (uint32_t)left : snapshot->chunk_bytes;
            read->chunk = file->first_chunk + at / snapshot->chunk_bytes;
            assert(read->chunk < snapshot->chunk_count);
            read->request = (struct read_request){.offset = file->offset + at,
                                                  .shard = snapshot->is_single ? 0 : next,
                                                  .bytes = bytes,
                                                  .needed = bytes,
                                                  .region = read->request.region,
                                                  .buffer = read->request.buffer,
                                                  .owner = read};
            code = reader_submit(&rank.reader, &read->request);
            if (code == 0) {
                rank.idle = read->next;
                at += bytes;
            }
        } else
            code = take_chunks(&rank);
        if (code == -EAGAIN)
            code = take_chunks(&rank);
    }
    rank.figures->line.wall_ns = rank_team_elapsed_ns(&reading->team);
    rank.figures->latency_ns = rank.reader.figures.latency_ns;
    if (number == 0) {
        struct result *evidence = &shared->result->evidence;
        snprintf(evidence->reader_engine, sizeof evidence->reader_engine, "%s",
                 rank.reader.traits.engine);
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
    return prepare_buffers(shared, snapshot->ranks, snapshot->chunk_bytes);
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

    code = agree(shared, code, &number);
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
    code = checkpoint_collect(shared, reading->snapshot.ranks, NULL, reading->row);
    if (code == 0)
        shared->result->read_count++;
    return code;
}

static int run_reads(struct checkpoint_shared *shared)
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
        uint32_t number; /* without reads, load one that only describes the environment */
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
        if (job->progress)
            job->progress(job->progress_context, true, i, job->reads);
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

/* ---- the job ---- */

/* Check for space for the checkpoints that exist at the same time, before anything is removed. */
static int check_space(const struct checkpoint_shared *shared)
{
    const struct checkpoint_job *job = shared->job;
    const uint64_t each_bytes = shared->result->files.bytes;
    const uint64_t most = job->writes <= job->keep ? job->writes : job->keep + 1;
    const uint64_t each = each_bytes < UINT64_MAX / 4 / most ? each_bytes : UINT64_MAX / 4 / most;
    char need_text[32], each_text[32], have[32], older[32], removed[96] = "";
    uint64_t available,
        *old = NULL; /* bytes that removing each existing checkpoint frees, oldest first */
    size_t old_count = 0, old_removed = 0;
    int code = store_free_bytes(job->path, &available);

    assert(job->writes > 0 && most > 0);
    if (code == 0 && shared->store.folder.fd >= 0)
        code = snapshot_sizes(&shared->store, &old, &old_count);
    if (code) {
        free(old);
        return code;
    }
    /* The peak of the space needed: `at_once` checkpoints of this job exist, the last one
     * incomplete, and older ones have been removed: each but those to be kept goes before the next
     * one is written. */
    uint64_t at_once = 0, need = 0, freed = 0, freed_so_far = 0;
    for (uint64_t own = 1; own <= most; own++) {
        const uint64_t bytes = each * own + each / 100;
        while (old_removed < old_count && old_count - old_removed + own - 1 > job->keep)
            freed_so_far += old[old_removed++];
        if (own == 1 || bytes + freed > need + freed_so_far) {
            at_once = own;
            need = bytes;
            freed = freed_so_far;
        }
    }
    free(old);
    if (need <= available + freed)
        return 0;
    if (freed)
        snprintf(removed, sizeof removed, " and %s in older ones that it removes by then",
                 bytes_text(freed, older, sizeof older));
    return fail(ENOSPC,
                "%s: needs %s for %llu checkpoints of %s at a time, only %s free%s: lower --keep, "
                "or write a part with --scale, --bytes or --subset",
                job->path, bytes_text(need, need_text, sizeof need_text),
                (unsigned long long)at_once, bytes_text(each_bytes, each_text, sizeof each_text),
                bytes_text(available, have, sizeof have), removed);
}

/* Remove this job's remaining checkpoints; keeps the reason. */
static int remove_own(void *context)
{
    struct checkpoint_shared *shared = context;
    const struct checkpoint_result *result = shared->result;
    uint32_t *numbers;
    size_t count;
    int code = snapshot_list(&shared->store, &numbers, &count);

    for (size_t i = 0; i < count && code == 0; i++)
        for (uint64_t k = 0; k < result->write_count; k++)
            if (result->writes[k].number == numbers[i])
                code = snapshot_remove(&shared->store, numbers[i]);
    free(numbers);
    return code;
}

enum checkpoint_durability checkpoint_durability(const struct checkpoint_row *row)
{
    if (row->synced_bytes < row->bytes)
        return CHECKPOINT_NOT_DURABLE;
    return row->device_bytes >= (double)row->bytes ? CHECKPOINT_DURABLE : CHECKPOINT_UNVERIFIED;
}

int checkpoint_run(const struct checkpoint_job *job, struct ranks *ranks,
                   struct checkpoint_result *result)
{
    struct checkpoint_shared shared = {
        .job = job, .result = result, .ranks = ranks, .store = {.folder.fd = -1, .lock.fd = -1}};
    char reason[FAIL_REASON_BYTES];

    *result = (struct checkpoint_result){
        .processes = ranks->place.ranks,
        .nodes = ranks->place.nodes,
        .evidence = {.valid = true, .ranks = ranks->place.ranks, .nodes = ranks->place.nodes}};
    result->writes = memory_array(job->writes + 1, sizeof *result->writes);
    result->reads = memory_array(job->reads + 1, sizeof *result->reads);
    int code = result->writes && result->reads ? 0 : -ENOMEM;
    if (code == 0 && job->writes)
        code = model_list(&job->model, &result->files);
    result->ranks = result->files.ranks;
    result->each = code ? NULL : memory_array(result->ranks + 1, sizeof *result->each);
    if (code == 0 && !result->each)
        code = -ENOMEM;
    code = ranks_meet(ranks, code, NULL);
    if (code == 0) {
        /* The first process creates and locks the folder before the others open it. */
        const bool leads = ranks->place.rank == 0;
        const bool is_there = leads && file_exists(job->path);
        if (leads && job->writes && !is_there) /* if refused, makes no folder */
            code = check_space(&shared);
        if (code == 0 && leads && job->writes)
            code = snapshot_check_size(&result->files, (uint32_t)job->chunk_bytes);
        if (code == 0 && leads)
            code = snapshot_open(&shared.store, job->path, job->writes > 0);
        if (code == 0 && is_there && job->writes)
            code = check_space(&shared);
        /* A job that was killed before it pruned left one too many: without pruning here each
         * further such job would add one. */
        if (code == 0 && leads && job->writes)
            code = snapshot_prune(&shared.store, job->keep);
        code = ranks_meet(ranks, code, NULL);
        if (code == 0 && !leads)
            code = snapshot_open(&shared.store, job->path, false);
        if (code == 0)
            shared.storage = storage_open(&telemetry_roots_usual, &job->path, 1);
        if (code == 0 && !shared.storage)
            code = -ENOMEM;
        code = ranks_meet(shared.ranks, code, NULL);
    }
    ranks->rank_timeout_ns = job->rank_timeout_ns; /* removing old drafts may take any time */
    if (code == 0 && job->writes)
        code = run_writes(&shared);
    if (code == 0)
        code = run_reads(&shared);
    code = ranks_meet(ranks, code, NULL);
    if (code == 0)
        code = gather_guard(ranks, &shared.guard);
    if (code == 0)
        validity_guard(&shared.guard, "checkpoints", &result->evidence);
    if (code == 0)
        code = gather_notices(ranks, &result->evidence);
    snprintf(reason, sizeof reason, "%s", fail_reason());
    if (ranks->place.rank == 0 && shared.store.folder.fd >= 0 && !job->leave) {
        const int removed = ranks_do(ranks, "removing checkpoints", remove_own, &shared);
        if (code)
            fail(code, "%s", reason);
        else
            code = removed;
    }
    /* fsync returned, and yet the devices did not write it. */
    for (uint64_t i = 0; i < result->write_count; i++) {
        const struct checkpoint_row *row = &result->writes[i];
        if (checkpoint_durability(row) == CHECKPOINT_UNVERIFIED &&
            row->device_bytes < 0.98 * (double)row->bytes)
            result_degraded(&result->evidence,
                            "checkpoint %u: synced, but the devices wrote only %.1f%% of its bytes",
                            row->number, 100 * row->device_bytes / (double)row->bytes);
    }
    storage_close(shared.storage);
    snapshot_close(&shared.store);
    rank_buffers_destroy(&shared.buffers);
    free(shared.figures);
    return code;
}

void checkpoint_destroy(struct checkpoint_result *result)
{
    free(result->files.list);
    free(result->writes);
    free(result->reads);
    free(result->each);
    result_destroy(&result->evidence);
}
