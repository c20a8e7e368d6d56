/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/run.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "formats/format.h"
#include "pipeline/engine.h"
#include "pipeline/find.h"
#include "pipeline/gather.h"
#include "pipeline/memory_limit.h"
#include "pipeline/proof.h"

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

static int load_catalog(struct execution *execution)
{
    const struct format_scan scan = {.progress = tell_index, .progress_context = execution};

    enter(execution, RUN_INDEX);
    int code = find_data(execution->job, execution->ranks, &scan, &execution->plugins,
                         &execution->catalog, execution->result);
    if (code)
        return code;
    recorder_mark(execution->recorder, "index", 0, execution->phase_start_ns);
    result_describe(execution->result, execution->job->data, execution->plugins.format.plugin->name,
                    execution->catalog);
    return 0;
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

/* This rank's part of a run, and what all made of it together. */
static int measure(struct execution *execution, struct engine *engine, struct result_run *run)
{
    const struct engine_hooks hooks = {
        .before = before_epoch, .after = after_epoch, .tick = tick, .context = execution};
    int code = engine_run(engine, execution->job->epochs, &hooks, run, execution->result);

    code = ranks_meet(execution->ranks, code, NULL);
    char reason[FAIL_REASON_BYTES];
    snprintf(reason, sizeof reason, "%s", fail_reason());
    int gathered = gather_run(execution->ranks, result_rows(execution->job->epochs), run);
    return code ? fail(code, "%s", reason) : gathered;
}

static int carry_out_run(struct execution *execution, struct engine *engine, struct result_run *run)
{
    const struct job *job = execution->job;

    run->valid = true;
    run->epochs = memory_array(result_rows(job->epochs), sizeof *run->epochs);
    if (!run->epochs)
        return -ENOMEM;
    recorder_begin_run(execution->recorder, run->number);
    enter(execution, RUN_DROP);
    int code = proof_make_cold(execution->witness, job, &execution->plugins, execution->ranks,
                               tell_drop, execution, run);
    recorder_mark(execution->recorder, "drop", 0, execution->phase_start_ns);
    if (code == 0)
        code = measure(execution, engine, run);
    if (code) {
        run->valid = false;
        snprintf(run->invalid_reason, sizeof run->invalid_reason, "%s", fail_reason());
        return code;
    }
    proof_ask_server(execution->witness, execution->ranks, run);
    proof_check(job, &execution->plugins, run, execution->result);
    proof_account(execution->result, run);
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
    code = ranks_meet(execution->ranks, code, NULL);
    for (uint64_t i = 0; code == 0 && i < job->runs; i++) {
        struct result_run *run = &result->runs[result->run_count++];
        run->number = execution->run = i;
        code = carry_out_run(execution, engine, run);
        if (!run->valid)
            result_invalid(result, "run %llu: %s", (unsigned long long)i + 1, run->invalid_reason);
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
