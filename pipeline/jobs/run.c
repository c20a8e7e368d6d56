/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/jobs/run.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/paired.h"
#include "base/random.h"
#include "base/stats.h"
#include "decode/decoder.h"
#include "formats/format.h"
#include "pipeline/engine/engine.h"
#include "pipeline/jobs/find.h"
#include "pipeline/result/gather.h"
#include "pipeline/evidence/memory_limit.h"
#include "pipeline/evidence/validity.h"
#include "readers/reader.h"
#include "trainer/trainer.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

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
    struct result *result;
    struct job_plugins plugins;
    struct catalog *catalog;
    struct witness *witness;
    struct memory_limit limit;
    struct recorder *recorder;
    struct engine *engine; /* kept from run to run by one job alone */
    uint64_t run;
    uint64_t phase_start_ns;
};

static void tell(struct execution *execution, struct run_progress progress)
{
    progress.run = execution->run;
    progress.job = execution->job;
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
    result_describe(execution->result, execution->job->read.data,
                    execution->plugins.format.plugin->name, execution->catalog);
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

static int carry_out_run(struct execution *execution, struct result_run *run)
{
    const struct job *job = execution->job;

    run->valid = true;
    run->epochs = memory_array(result_rows(job->epochs), sizeof *run->epochs);
    if (!run->epochs)
        return -ENOMEM;
    recorder_begin_run(execution->recorder, run->number);
    enter(execution, RUN_DROP);
    int code = validity_make_cold(execution->witness, job, &execution->plugins, execution->ranks,
                                  tell_drop, execution, run);
    recorder_mark(execution->recorder, "drop", 0, execution->phase_start_ns);
    if (code == 0)
        code = measure(execution, execution->engine, run);
    if (code) {
        run->valid = false;
        snprintf(run->invalid_reason, sizeof run->invalid_reason, "%s", fail_reason());
        return code;
    }
    validity_ask_server(execution->witness, execution->ranks, run);
    validity_check(job, &execution->plugins, run, execution->result);
    validity_account(execution->result, run);
    return 0;
}

static int make_engine(struct execution *execution)
{
    const struct job *job = execution->job;
    struct result *result = execution->result;
    struct engine_config site = {.job = job,
                                 .plugins = &execution->plugins,
                                 .catalog = execution->catalog,
                                 .epochs_max = job->epochs,
                                 .ranks = execution->ranks,
                                 .meter = recorder_meter(execution->recorder),
                                 .recorder = execution->recorder};
    if (result->memory_before_bytes == 0)
        result->memory_before_bytes = memory_resident_bytes();
    execution->engine = engine_create(&site, result);
    return ranks_meet(execution->ranks, execution->engine ? 0 : -ENOMEM, NULL);
}

static void end_engine(struct execution *execution)
{
    engine_destroy(execution->engine);
    execution->engine = NULL;
}

/* One more; turn: among those of all jobs. */
static int carry_out_next(struct execution *execution, uint64_t turn)
{
    struct result *result = execution->result;
    int code = execution->engine ? 0 : make_engine(execution);

    if (code)
        return code;
    struct result_run *run = &result->runs[result->run_count];
    run->number = execution->run = result->run_count++;
    run->turn = turn;
    code = carry_out_run(execution, run);
    if (!run->valid)
        result_invalid(result, "run %llu: %s", (unsigned long long)run->number + 1,
                       run->invalid_reason);
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

/* The same loop fed from memory: nothing is read, nothing decoded. */
static int run_from_memory(struct execution *execution, const char *trainer, uint64_t samples,
                           struct result_epoch *epoch)
{
    struct job job = *execution->job;
    struct result scratch = {.valid = true};
    struct job_plugins plugins = {0};
    struct result_run run = {.epochs = epoch};
    const struct engine_hooks hooks = {.tick = calibration_tick};

    job.read.reader = (char *)(uintptr_t)plugin_idle(reader_registry)->name;
    job.decode.decoder = (char *)(uintptr_t)plugin_idle(decoder_registry)->name;
    job.trainer = (char *)(uintptr_t)trainer;
    job.read.direct = job.decode.digest = false;
    job.order.limit_samples = samples;
    job.read.rate_limit_bytes = 0;
    int code = job_choose(&job, &plugins);
    if (code)
        return code;
    struct engine_config site = {
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
    int code = run_from_memory(execution, plugin_idle(trainer_registry)->name, 1000000, &epoch);
    figures[0] = result_epoch_samples_per_s(&epoch);
    if (code == 0 && trainer_of(execution->plugins.trainer.plugin)->replays) {
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

static int enter_limit(struct execution *execution)
{
    const struct job *job = execution->job;

    if (!job->cold.memory_limit_bytes || job->dry_run || execution->limit.from[0])
        return 0;
    return memory_limit_enter(&execution->limit, &telemetry_roots_usual,
                              job->cold.memory_limit_bytes);
}

static void leave_limit(struct execution *execution)
{
    memory_limit_leave(&execution->limit);
    execution->limit = (struct memory_limit){0};
}

static int prepare(struct execution *execution)
{
    const struct job *job = execution->job;
    struct result *result = execution->result;

    result->ranks = execution->ranks->place.ranks;
    result->nodes = execution->ranks->place.nodes;
    int code = job_choose(job, &execution->plugins);
    if (code == 0)
        code = enter_limit(execution);
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
    witness_environment(execution->witness, &result->environment);
    return 0;
}

static int conclude(struct execution *execution, int code)
{
    code = ranks_meet(execution->ranks, code, NULL);
    if (code)
        result_invalid(execution->result, "%s", fail_reason());
    end_engine(execution);
    execution->result->timeline = recorder_finish(execution->recorder, code);
    execution->ranks->silence_ns = 0; /* until the next job runs */
    witness_close(execution->witness);
    catalog_destroy(execution->catalog);
    leave_limit(execution);
    job_release(&execution->plugins);
    tell(execution, (struct run_progress){.phase = RUN_DONE});
    return code;
}

/* ---- a sitting ---- */

struct sitting {
    struct execution *executions;
    uint32_t count;
    struct ranks *ranks;
    struct random order;
    uint64_t start_ns, turns;
};

/* Two runs of one name a round: its ratio is what is compared. With one job alone: the interval of
 * its rate. */
static double half_width(const struct sitting *sitting)
{
    const struct result *first = sitting->executions[0].result;
    const uint32_t runs = first->run_count;
    double *rates = memory_array(2 * (size_t)runs, sizeof *rates), widest = 0;

    if (!rates)
        return NAN;
    for (uint32_t i = 0; i < runs; i++)
        rates[i] = result_run_samples_per_s(&first->runs[i]);
    for (uint32_t k = 1; k < sitting->count; k++) {
        const struct result *rival = sitting->executions[k].result;
        for (uint32_t i = 0; i < runs; i++)
            rates[runs + i] = result_run_samples_per_s(&rival->runs[i]);
        const struct paired paired = paired_test(rates, rates + runs, runs, true);
        widest = fmax(widest, (paired.high - paired.low) / 2 / paired.ratio);
    }
    if (sitting->count == 1) {
        const struct stats_summary summary = stats_summarise_until(rates, runs);
        widest = stats_half_width(&summary);
    }
    free(rates);
    return widest;
}

/* --runs auto: is it enough? Rank 0's clock and figures decide for all. Below 0 is an error. */
static int is_enough(struct sitting *sitting)
{
    const struct job *job = sitting->executions[0].job;
    const uint32_t runs = sitting->executions[0].result->run_count;
    const double half = runs < STATS_UNTIL_FIRST ? NAN : 100 * half_width(sitting);
    const bool is_reached = half <= job_until_percent(job);
    const bool is_late =
        job->until_time_ns && clock_now_ns() - sitting->start_ns >= job->until_time_ns;
    double decided[] = {is_reached, is_late};

    if (job->runs)
        return runs == job->runs;
    if (sitting->ranks->place.rank)
        decided[0] = decided[1] = 0;
    int code = ranks_sum(sitting->ranks, decided, 2);
    for (uint32_t i = 0; i < sitting->count; i++) {
        struct result_sitting *told = &sitting->executions[i].result->sitting;
        told->is_reached = decided[0] > 0;
        told->half_percent = half;
    }
    return code ? code : decided[0] > 0 || decided[1] > 0 || runs == job->until_runs;
}

static void tell_end(struct sitting *sitting)
{
    const struct job *job = sitting->executions[0].job;

    for (uint32_t i = 0; i < sitting->count && job->runs == 0; i++) {
        struct result *result = sitting->executions[i].result;
        const struct result_sitting *told = &result->sitting;
        const char *of = sitting->count > 1 ? "of the ratio " : "";
        if (told->is_reached)
            result_notice(result, "--runs auto: the interval %sis within %.2g%% after %u runs", of,
                          told->half_percent, result->run_count);
        else
            result_notice(result,
                          "--until %g%% was NOT reached: the interval %sis within %.2g%% after %u "
                          "runs, at which --until-runs or --until-time ended it",
                          job_until_percent(job), of, told->half_percent, result->run_count);
    }
}

/* Each job has one run. */
static int carry_out_round(struct sitting *sitting)
{
    uint32_t order[RUN_JOBS_MAX];
    int code = 0;

    for (uint32_t i = 0; i < sitting->count; i++)
        order[i] = i;
    random_shuffle_u32(&sitting->order, order, sitting->count);
    for (uint32_t i = 0; i < sitting->count && code == 0; i++) {
        struct execution *execution = &sitting->executions[order[i]];
        code = ranks_meet(sitting->ranks, enter_limit(execution), NULL);
        if (code == 0)
            code = carry_out_next(execution, sitting->turns++);
        if (sitting->count > 1) {
            end_engine(execution);
            leave_limit(execution);
        }
    }
    return code;
}

static int carry_out_rounds(struct sitting *sitting)
{
    int code = 0, enough = 0;

    for (uint32_t i = 0; i < sitting->count && code == 0; i++) {
        struct execution *execution = &sitting->executions[i];
        execution->result->runs =
            memory_array(job_runs_most(execution->job), sizeof *execution->result->runs);
        code = execution->result->runs ? 0 : -ENOMEM;
    }
    code = ranks_meet(sitting->ranks, code, NULL);
    sitting->start_ns = clock_now_ns();
    while (code == 0 && enough == 0) {
        code = carry_out_round(sitting);
        enough = code ? code : is_enough(sitting);
        code = enough < 0 ? enough : code;
    }
    if (code == 0)
        tell_end(sitting);
    return code;
}

/* The same turns on all ranks; only rank 0 writes down whose sitting it was. */
static int begin_sitting(struct sitting *sitting)
{
    const struct job *job = sitting->executions[0].job;
    struct result_sitting told = {.jobs = sitting->count, .is_until = job->runs == 0};
    uint32_t drawn[3];
    char *boot = NULL;
    size_t bytes;

    if (getrandom(drawn, sizeof drawn, 0) != (ssize_t)sizeof drawn)
        return fail(EIO, "no random numbers: %s", fail_errno_text(errno));
    double seed = sitting->ranks->place.rank == 0 ? (double)(drawn[2] | 1) : 0;
    int code = ranks_sum(sitting->ranks, &seed, 1);
    told.order_seed = job->order_seed ? job->order_seed : (uint64_t)seed;
    sitting->order = random_start(told.order_seed);
    if (sitting->count == 1)
        told.order_seed = 0;
    snprintf(told.id, sizeof told.id, "%08x%08x", drawn[0], drawn[1]);
    if (file_load("/proc/sys/kernel/random/boot_id", 4096, &boot, &bytes) == 0)
        snprintf(told.boot_id, sizeof told.boot_id, "%.*s", (int)strcspn(boot, "\n"), boot);
    free(boot);
    for (uint32_t i = 0; i < sitting->count; i++) {
        told.job = i;
        told.half_percent = NAN;
        sitting->executions[i].result->sitting = told;
    }
    return code;
}

int run_sitting(const struct job *jobs, uint32_t count, struct ranks *ranks,
                const struct run_observer *observer, struct result *results)
{
    struct ranks alone = ranks_alone();
    struct sitting sitting = {.count = count, .ranks = ranks ? ranks : &alone};
    uint32_t opened = 0;
    int code = 0;

    for (uint32_t i = 0; i < count; i++)
        results[i] = (struct result){.job = &jobs[i], .valid = true};
    sitting.executions = memory_array(count, sizeof *sitting.executions);
    if (!sitting.executions || count > RUN_JOBS_MAX)
        return fail(ENOMEM, "%u jobs cannot be compared in one sitting", count);
    for (uint32_t i = 0; i < count; i++)
        sitting.executions[i] = (struct execution){
            .job = &jobs[i], .observer = observer, .ranks = sitting.ranks, .result = &results[i]};
    code = ranks_meet(sitting.ranks, begin_sitting(&sitting), NULL);
    while (code == 0 && opened < count) {
        struct execution *execution = &sitting.executions[opened++];
        code = prepare(execution);
        if (code == 0 && execution->job->calibrate)
            code = calibrate(execution);
        if (count > 1)
            leave_limit(execution);
    }
    if (code == 0)
        code = carry_out_rounds(&sitting);
    for (uint32_t i = 0; i < opened; i++)
        code = conclude(&sitting.executions[i], code);
    for (uint32_t i = opened; i < count; i++)
        result_invalid(&results[i], "%s", fail_reason());
    free(sitting.executions);
    return code;
}

int run_job(const struct job *job, struct ranks *ranks, const struct run_observer *observer,
            struct result *result)
{
    return run_sitting(job, 1, ranks, observer, result);
}

int run_plan(const struct job *job, struct ranks *ranks, const struct run_observer *observer,
             struct result *result)
{
    struct ranks alone = ranks_alone();
    struct execution execution = {
        .job = job, .observer = observer, .ranks = ranks ? ranks : &alone, .result = result};

    *result = (struct result){.job = job, .valid = true};
    int code = prepare(&execution);

    if (code == 0) {
        struct engine_config site = {.job = job,
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
