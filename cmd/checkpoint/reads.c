/* SPDX-License-Identifier: Apache-2.0
 * The reading half of a job: each read is a run as `iobench run` knows it, with caches dropped and
 * verified before it, the witnesses of its bytes, and the same verdict. */
#include "cmd/checkpoint/shared.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "cmd/checkpoint/restore.h"
#include "pipeline/evidence/validity.h"
#include "pipeline/evidence/witness.h"
#include "pipeline/result/gather.h"
#include "pipeline/settings/job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct read_phase {
    struct checkpoint_shared *shared;
    struct job job; /* for the validity checks: reader, caches */
    struct job_plugins plugins;
    struct snapshot snapshot;
    struct catalog *catalog;
    struct witness *witness;
    struct result_run *run;
    struct checkpoint_row *row;
};

/* Choose the checkpoint of a read: the newest first, then the next older, ... */
static int choose(const struct read_phase *reading, uint32_t *number)
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

/* Reserve figures for all ranks: a checkpoint of another job may have more than this job. */
static int make_room(struct checkpoint_shared *shared, uint32_t ranks)
{
    struct checkpoint_result *result = shared->result;

    if (ranks <= result->ranks)
        return 0;
    struct checkpoint_rank *more = memory_array(ranks, sizeof *more);
    if (!more)
        return -ENOMEM;
    if (result->each)
        memcpy(more, result->each, result->ranks * sizeof *more);
    free(result->each);
    result->each = more;
    result->ranks = ranks;
    return 0;
}

static int load(struct read_phase *reading, uint32_t number)
{
    struct checkpoint_shared *shared = reading->shared;
    int code = snapshot_load(shared->job->path, number, &reading->snapshot);

    if (code == 0)
        code = make_room(shared, reading->snapshot.ranks);
    if (code)
        return code;
    reading->catalog = restore_catalog(shared->job->path, &reading->snapshot);
    if (!reading->catalog)
        return -EBADMSG;
    reading->witness =
        witness_open(&reading->job.cold, reading->catalog, reading->plugins.reader.plugin);
    if (!reading->witness)
        return -ENOMEM;
    witness_environment(reading->witness, &shared->result->evidence.environment);
    return shared_prepare(shared, reading->snapshot.ranks, reading->snapshot.chunk_bytes);
}

static void unload(struct read_phase *reading)
{
    witness_close(reading->witness);
    catalog_destroy(reading->catalog);
    snapshot_release(&reading->snapshot);
    reading->witness = NULL;
    reading->catalog = NULL;
}

static int restore_act(void *context)
{
    return restore_run(context);
}

/* Read on the clock; fill the run and its only epoch. */
static int read_once(struct read_phase *reading)
{
    struct checkpoint_shared *shared = reading->shared;
    const struct checkpoint_job *job = shared->job;
    struct result_epoch *epoch = &reading->run->epochs[0];
    struct restore restore = {.snapshot = &reading->snapshot,
                              .catalog = reading->catalog,
                              .reader = &reading->plugins.reader,
                              .falls_back = reading->plugins.reader_is_auto,
                              .verify = job->verify,
                              .buffers = &shared->buffers,
                              .first_rank = shared->first_rank +
                                            (uint32_t)(job->rank_shift % reading->snapshot.ranks),
                              .timeout_ns = job->io_timeout_ns,
                              .figures = shared->figures};
    struct guard_moment start;

    /* The ranks of a node share its counters: no rank reads before all have taken the first values,
     * and all have finished before any takes the last. */
    witness_before(reading->witness);
    int code = ranks_meet(shared->ranks, 0, NULL);
    guard_begin(&start);
    if (code == 0)
        code = ranks_do(shared->ranks, "reading a checkpoint", restore_act, &restore);
    epoch->wall_ns = rank_start_elapsed_ns(&restore.start);
    guard_end(&start, &epoch->guard);
    code = ranks_meet(shared->ranks, code, NULL);
    witness_after(reading->witness, &epoch->device);
    for (uint32_t i = 0; i < shared->buffers.ranks; i++) {
        epoch->record_bytes += shared->figures[i].bytes;
        histogram_merge(&reading->run->read_latency_ns, &shared->figures[i].latency_ns);
    }
    epoch->request_bytes = epoch->record_bytes;
    reading->run->epoch_count = 1;
    reading->run->epochs_run = 1;
    snprintf(shared->result->evidence.reader_engine, sizeof shared->result->evidence.reader_engine,
             "%s", restore.engine);
    if (restore.notice[0] && shared->result->read_count == 0)
        result_notice(&shared->result->evidence, "%s", restore.notice);
    return code;
}

static int measure(struct read_phase *reading)
{
    struct checkpoint_shared *shared = reading->shared;
    struct result *evidence = &shared->result->evidence;
    uint32_t number = 0;
    int code = shared->ranks->place.rank == 0 ? choose(reading, &number) : 0;

    code = shared_agree(shared, code, &number);
    if (code)
        return code;
    reading->row->number = number;
    code = ranks_meet(shared->ranks, load(reading, number), NULL);
    const uint64_t silence_ns = shared->ranks->silence_ns;
    if (code == 0)
        code = witness_make_cold(reading->witness, &reading->plugins, shared->ranks, NULL, NULL,
                                 reading->run);
    shared->ranks->silence_ns = silence_ns;
    if (code == 0)
        code = read_once(reading);
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

/* Describe the environment if nothing is read. */
static int describe(struct read_phase *reading)
{
    uint32_t number;
    int code = choose(reading, &number);

    if (code == 0)
        code = load(reading, number);
    unload(reading);
    return code;
}

static int read_all(struct read_phase *reading)
{
    struct checkpoint_shared *shared = reading->shared;
    struct result *evidence = &shared->result->evidence;
    int code = 0;

    if (shared->job->reads == 0)
        return shared->ranks->place.rank == 0 ? describe(reading) : 0;
    evidence->runs = memory_array(shared->job->reads, sizeof *evidence->runs);
    if (!evidence->runs)
        return -ENOMEM;
    for (uint64_t i = 0; i < shared->job->reads && code == 0; i++) {
        shared_show(shared, true, i, shared->job->reads);
        reading->run = &evidence->runs[i];
        reading->row = &shared->result->reads[i];
        reading->run->number = i;
        reading->run->valid = true;
        reading->run->epochs = memory_array(1, sizeof *reading->run->epochs);
        evidence->run_count++;
        code = reading->run->epochs ? measure(reading) : -ENOMEM;
        unload(reading);
    }
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
    if (code == 0)
        code = read_all(&reading);
    job_release(&reading.plugins);
    reading.job.read.reader = reader;
    reading.job.read.data = NULL;
    reading.job.cold = by_default;
    option_release(job_options, &reading.job);
    return code;
}
