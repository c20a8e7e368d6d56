/* SPDX-License-Identifier: Apache-2.0
 * The writing half of a job: checkpoints between the steps of a training loop that is emulated by
 * its step time. What the loop takes beyond its steps is what checkpoints cost. */
#include "cmd/checkpoint/shared.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/stop.h"
#include "base/thread.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t NAP_NS = 1000000, SLEEP_NS = 50000000;

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

/* ---- one checkpoint ---- */

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
    const uint32_t rank = shared_first_rank(writing->shared, snapshot->ranks, process);

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

/* The disk may take longer than the others tolerate, to sync or to remove an old checkpoint. */
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
    code = shared_collect(shared, writing->snapshot.ranks, &written, row);
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

/* ---- training ---- */

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

int writes_run(struct checkpoint_shared *shared)
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
        code = shared_prepare(shared, snapshot->ranks, chunk_bytes);
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
            shared_show(shared, false, i, job->writes);
            code = train(&writing, false);
            const uint64_t from_ns = clock_now_ns();
            if (code == 0) {
                code = leads ? snapshot_next_number(&shared->store, &snapshot->number) : 0;
                code = shared_agree(shared, code, &snapshot->number);
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
