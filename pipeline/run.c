/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/run.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "formats/format.h"
#include "pipeline/engine.h"
#include "pipeline/gather.h"
#include "pipeline/memory_limit.h"
#include "pipeline/witness.h"
#include "readers/reader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct flag interrupted;

void run_interrupt(void)
{
    flag_set(&interrupted);
}

/* One job while it is carried out. */
struct execution {
    const struct job *job;
    const struct run_observer *observer;
    struct ranks *ranks;
    struct ranks alone; /* when nobody else is */
    struct result *result;
    struct job_plugins plugins;
    struct catalog *catalog;
    struct witness *witness;
    struct memory_limit limit;
    struct recorder *recorder;
    uint64_t run;
    uint64_t phase_start_ns;
};

static void tell(struct execution *execution, struct run_progress progress)
{
    progress.run = execution->run;
    if (execution->observer && execution->observer->progress)
        execution->observer->progress(execution->observer->context, &progress);
}

static void enter(struct execution *execution, enum run_phase phase)
{
    execution->phase_start_ns = clock_now_ns();
    tell(execution, (struct run_progress){.phase = phase});
}

/* ---- the data set ---- */

static void tell_index(void *context, uint64_t done_bytes, uint64_t total_bytes)
{
    struct execution *execution = context;

    tell(execution,
         (struct run_progress){.phase = RUN_INDEX,
                               .done = done_bytes,
                               .total = total_bytes,
                               .elapsed_ns = clock_now_ns() - execution->phase_start_ns});
}

/* The index of compressed shards is of the inflated stream, which one reader alone can serve. */
static int check_compressed(struct execution *execution)
{
    if (!execution->catalog->compressed ||
        strcmp(execution->plugins.reader.plugin->name, "null") == 0 ||
        strcmp(execution->plugins.reader.plugin->name, "inflate") == 0)
        return 0;
    result_notice(execution->result,
                  "the shards are compressed as a whole: they are read by the inflate reader, not "
                  "%s",
                  execution->plugins.reader.plugin->name);
    plugin_release(&execution->plugins.reader);
    return plugin_choose("reader", reader_registry, "inflate", &execution->plugins.reader);
}

static int find_catalog(void *context)
{
    struct execution *execution = context;
    struct format_scan scan = {.progress = tell_index, .progress_context = execution};
    int code =
        format_choose(execution->job->format, execution->job->data, &execution->plugins.format);

    return code ? code
                : format_catalog(&execution->plugins.format, execution->job->data, true, &scan,
                                 &execution->catalog);
}

/* What every rank takes for the data set must be the same. */
static int check_same_data(struct execution *execution)
{
    const double records = (double)execution->catalog->record_count,
                 bytes = (double)execution->catalog->record_bytes_total,
                 ranks = execution->ranks->place.ranks;
    double sums[] = {records, bytes};
    int code = ranks_sum(execution->ranks, sums, 2);

    if (code == 0 && (sums[0] != records * ranks || sums[1] != bytes * ranks))
        code = fail(EINVAL,
                    "%s: it is not the same data set on all nodes: %.0f samples here, %.1f "
                    "in the mean",
                    execution->job->data, records, sums[0] / ranks);
    return code;
}

static int load_catalog(struct execution *execution)
{
    struct result *result = execution->result;

    enter(execution, RUN_INDEX);
    int code = ranks_in_turn(execution->ranks, find_catalog, execution);
    if (code == 0)
        code = check_same_data(execution);
    if (code)
        return code;
    recorder_mark(execution->recorder, "index", 0, execution->phase_start_ns);
    const struct catalog *catalog = execution->catalog;
    snprintf(result->data, sizeof result->data, "%s", execution->job->data);
    snprintf(result->format, sizeof result->format, "%s", execution->plugins.format.plugin->name);
    result->shards = catalog->shard_count;
    result->records = catalog->record_count;
    result->data_bytes = catalog_data_bytes(catalog);
    result->record_bytes_total = catalog->record_bytes_total;
    return check_compressed(execution);
}

/* ---- runs ---- */

/* All ranks begin an epoch together, and end it together: only then are the counters of a node read
 * that its ranks share. */
static int before_epoch(void *context, struct result_epoch *epoch, int code)
{
    struct execution *execution = context;

    if (code == 0 && flag_get(&interrupted)) /* an epoch may be too short for a tick */
        code = fail(EINTR, "interrupted");
    code = ranks_meet(execution->ranks, code, &epoch->start_barrier_ns);
    if (code)
        return code;
    execution->phase_start_ns = clock_now_ns();
    tell(execution, (struct run_progress){.phase = RUN_EPOCH, .epoch = epoch->epoch});
    if (execution->witness)
        witness_before(execution->witness);
    return 0;
}

static int after_epoch(void *context, struct result_epoch *epoch, int code)
{
    struct execution *execution = context;

    if (code)
        ranks_call_off(execution->ranks);
    code = ranks_meet(execution->ranks, code, &epoch->stop_barrier_ns);
    if (execution->witness)
        witness_after(execution->witness, &epoch->device);
    if (execution->result->memory_during_bytes == 0)
        execution->result->memory_during_bytes = memory_resident_bytes();
    return code;
}

static int tick(void *context, const struct result_epoch *so_far, uint64_t draws)
{
    struct execution *execution = context;
    const struct catalog *catalog = execution->catalog;

    /* Bytes are counted per record at the epoch's end; the live figure takes the mean. */
    tell(execution, (struct run_progress){.phase = RUN_EPOCH,
                                          .epoch = so_far->epoch,
                                          .done = so_far->samples,
                                          .total = draws,
                                          .bytes = so_far->samples * (catalog->record_bytes_total /
                                                                      catalog->record_count),
                                          .elapsed_ns = so_far->wall_ns});
    if (ranks_called_off(execution->ranks))
        return fail(ECANCELED, "another rank failed");
    return flag_get(&interrupted) ? fail(EINTR, "interrupted") : 0;
}

static void tell_drop(void *context, uint64_t elapsed_ns)
{
    tell(context, (struct run_progress){.phase = RUN_DROP, .elapsed_ns = elapsed_ns});
}

/* Bytes that left storage must match the bytes delivered when the cache was cold: a check of the
 * whole chain, from eviction to counting. */
static void cross_check(struct execution *execution, struct result_run *run)
{
    double percent = result_run_device_percent(run);

    if (run->cold.state != RESULT_CACHE_COLD || percent < 0 || run->epochs[0].skipped ||
        strcmp(execution->plugins.reader.plugin->name, "null") == 0)
        return;
    if (percent < 98)
        result_notice(
            execution->result,
            "run %llu: only %.1f%% of the delivered bytes left storage although the cache "
            "was cold: something else cached them",
            (unsigned long long)run->number + 1, percent);
}

/* Once on each node, by its first rank; the server's command once, by rank 0. Reports what all
 * nodes are like, and fails alike on all. */
static int make_cold(struct execution *execution, struct result_run *run)
{
    const struct ranks_place *place = &execution->ranks->place;
    struct result_cold mine = {0};
    int code = 0;

    enter(execution, RUN_DROP);
    execution->ranks->silence_ns = 0; /* dropping takes the time it takes */
    if (place->local_rank == 0)
        code = witness_make_cold(execution->witness, place->rank == 0, tell_drop, execution, &mine);
    code = ranks_meet(execution->ranks, code, NULL);
    int gathered = gather_cold(execution->ranks, &mine, run);
    return code ? code : gathered;
}

/* This rank's part of a run, and what all made of it together. */
static int measure(struct execution *execution, struct engine *engine, struct result_run *run)
{
    const struct engine_hooks hooks = {
        .before = before_epoch, .after = after_epoch, .tick = tick, .context = execution};
    int code = engine_run(engine, execution->job->epochs, &hooks, run, execution->result);

    code = ranks_meet(execution->ranks, code, NULL);
    char reason[FAIL_REASON_BYTES];
    snprintf(reason, sizeof reason, "%s", fail_reason());
    int gathered = gather_run(execution->ranks, execution->job->epochs, run);
    return code ? fail(code, "%s", reason) : gathered;
}

static int carry_out_run(struct execution *execution, struct engine *engine, struct result_run *run)
{
    const struct job *job = execution->job;

    run->valid = true;
    run->epochs = memory_array(job->epochs, sizeof *run->epochs);
    if (!run->epochs)
        return -ENOMEM;
    recorder_begin_run(execution->recorder, run->number);
    int code = make_cold(execution, run);
    recorder_mark(execution->recorder, "drop", 0, execution->phase_start_ns);
    if (code == 0)
        code = measure(execution, engine, run);
    if (code) {
        run->valid = false;
        snprintf(run->invalid_reason, sizeof run->invalid_reason, "%s", fail_reason());
        return code;
    }
    cross_check(execution, run);
    if (job->drop_caches != JOB_DROP_NO && run->cold.state == RESULT_CACHE_WARM) {
        run->valid = false;
        snprintf(run->invalid_reason, sizeof run->invalid_reason,
                 "the cache was to be cold, but %.2f%% of it was resident: %.180s",
                 run->cold.residue_percent, run->cold.reason);
    }
    return 0;
}

static int carry_out_runs(struct execution *execution)
{
    const struct job *job = execution->job;
    struct result *result = execution->result;
    struct engine_site site = {.job = job,
                               .plugins = &execution->plugins,
                               .catalog = execution->catalog,
                               .epochs_max = job->epochs,
                               .ranks = execution->ranks,
                               .meter = recorder_meter(execution->recorder),
                               .recorder = execution->recorder};
    result->memory_before_bytes = memory_resident_bytes();
    struct engine *engine = engine_create(&site, result);

    if (engine)
        result->runs = memory_array(job->runs, sizeof *result->runs);
    int code = engine && result->runs ? 0 : -ENOMEM;
    if (code == 0 && job->memory_limit_bytes && execution->ranks->place.local_rank == 0)
        code = witness_evict(execution->witness);
    code = ranks_meet(execution->ranks, code, NULL);
    for (uint64_t i = 0; code == 0 && i < job->runs; i++) {
        struct result_run *run = &result->runs[result->run_count++];
        run->number = execution->run = i;
        code = carry_out_run(execution, engine, run);
        if (!run->valid)
            result_invalid(result, "run %llu: %s", (unsigned long long)i + 1, run->invalid_reason);
        else if (run->epochs[0].skipped)
            result_notice(result, "run %llu: degraded: records were skipped",
                          (unsigned long long)i + 1);
    }
    engine_destroy(engine);
    return code;
}

/* ---- calibration ---- */

static int calibration_tick(void *context, const struct result_epoch *so_far, uint64_t draws)
{
    (void)context;
    (void)so_far;
    (void)draws;
    return flag_get(&interrupted) ? fail(EINTR, "interrupted") : 0;
}

/* The same loop fed from memory: the null reader and no decoding. */
static int run_from_memory(struct execution *execution, const char *trainer, uint64_t samples,
                           struct result_epoch *epoch)
{
    struct job job = *execution->job;
    struct result scratch = {.valid = true};
    struct job_plugins plugins = {0};
    struct result_run run = {.epochs = epoch};
    const struct engine_hooks hooks = {.tick = calibration_tick};

    job.reader = (char[]){"null"};
    job.decode = (char[]){"none"};
    job.trainer = (char *)(uintptr_t)trainer;
    job.direct = job.digest = false;
    job.limit_samples = samples;
    job.rate_limit_bytes = 0;
    int code = job_choose(&job, &plugins);
    if (code)
        return code;
    struct engine_site site = {
        .job = &job, .plugins = &plugins, .catalog = execution->catalog, .epochs_max = 1};
    struct engine *engine = engine_create(&site, &scratch);
    code = engine ? engine_run(engine, 1, &hooks, &run, &scratch) : -ENOMEM;
    engine_destroy(engine);
    job_release(&plugins);
    return code;
}

/* All ranks at once, as in the runs: the floor is that of all together. */
static int calibrate(struct execution *execution)
{
    const struct job *job = execution->job;
    struct ranks *ranks = execution->ranks;
    struct result_epoch epoch;
    double figures[] = {0, 0};

    enter(execution, RUN_CALIBRATE);
    int code = run_from_memory(execution, "none", 1000000, &epoch);
    figures[0] = result_epoch_samples_per_s(&epoch);
    if (code == 0 && strncmp(job->trainer, "replay", 6) == 0) {
        code = run_from_memory(execution, job->trainer, 20 * job->batch_size, &epoch);
        figures[1] = result_epoch_au_percent(&epoch);
    }
    code = ranks_meet(ranks, code, NULL);
    if (code == 0)
        code = ranks_sum(ranks, figures, 2);
    if (code)
        return code;
    execution->result->floor_samples_per_s = figures[0];
    execution->result->au_calibration_percent = figures[1] / ranks->place.ranks;
    recorder_mark(execution->recorder, "calibrate", 0, execution->phase_start_ns);
    return 0;
}

/* ---- the calls ---- */

/* In the control group that the job shall be in; a job without telemetry is a good job too. */
static void record(struct execution *execution)
{
    struct result *result = execution->result;

    if (execution->job->dry_run)
        return;
    execution->recorder = recorder_start(execution->job, execution->ranks);
    if (!execution->recorder)
        snprintf(result->timeline_reason, sizeof result->timeline_reason, "%.159s", fail_reason());
}

static int prepare(struct execution *execution, const struct job *job, struct ranks *ranks,
                   const struct run_observer *observer, struct result *result)
{
    *execution = (struct execution){
        .job = job, .observer = observer, .alone = ranks_alone(), .ranks = ranks, .result = result};
    if (!ranks)
        execution->ranks = &execution->alone;
    *result = (struct result){.job = job,
                              .valid = true,
                              .ranks = execution->ranks->place.ranks,
                              .nodes = execution->ranks->place.nodes};
    int code = job_choose(job, &execution->plugins);
    if (code == 0 && job->memory_limit_bytes && !job->dry_run)
        code =
            memory_limit_enter(&execution->limit, &telemetry_roots_usual, job->memory_limit_bytes);
    code = ranks_meet(execution->ranks, code, NULL);
    if (code == 0)
        record(execution);
    if (code == 0)
        code = load_catalog(execution);
    if (code)
        return code;
    execution->witness = witness_open(job, execution->catalog);
    code = ranks_meet(execution->ranks, execution->witness ? 0 : -ENOMEM, NULL);
    if (code)
        return code;
    witness_place(execution->witness, &result->place);
    return 0;
}

static int conclude(struct execution *execution, int code)
{
    code = ranks_meet(execution->ranks, code, NULL);
    if (code)
        result_invalid(execution->result, "%s", fail_reason());
    execution->result->timeline = recorder_finish(execution->recorder, code);
    execution->ranks->silence_ns = 0; /* until the next job runs */
    witness_close(execution->witness);
    catalog_destroy(execution->catalog);
    memory_limit_leave(&execution->limit);
    job_release(&execution->plugins);
    tell(execution, (struct run_progress){.phase = RUN_DONE});
    return code;
}

int run_job(const struct job *job, struct ranks *ranks, const struct run_observer *observer,
            struct result *result)
{
    struct execution execution;
    int code = prepare(&execution, job, ranks, observer, result);

    if (code == 0 && job->calibrate)
        code = calibrate(&execution);
    if (code == 0)
        code = carry_out_runs(&execution);
    return conclude(&execution, code);
}

int run_plan(const struct job *job, struct ranks *ranks, const struct run_observer *observer,
             struct result *result)
{
    struct execution execution;
    int code = prepare(&execution, job, ranks, observer, result);

    if (code == 0) {
        struct engine_site site = {.job = job,
                                   .plugins = &execution.plugins,
                                   .catalog = execution.catalog,
                                   .epochs_max = 1,
                                   .ranks = execution.ranks};
        struct engine *engine = engine_create(&site, result);
        code = ranks_meet(execution.ranks, engine ? 0 : -ENOMEM, NULL);
        engine_destroy(engine);
    }
    return conclude(&execution, code);
}
