/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/jobs/run.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/stats.h"
#include "base/random.h"
#include "decode/decoder.h"
#include "formats/format.h"
#include "pipeline/engine/decoders.h"
#include "pipeline/engine/engine.h"
#include "pipeline/jobs/session.h"
#include "pipeline/result/result.h"
#include "readers/reader.h"
#include "trainer/trainer.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* One job. What is done with it is collective: 0 or -errno on all ranks alike. */
struct measurement {
    struct session session; /* first: hooks get it as their context */
    const struct run_observer *observer;
    struct job_plugins plugins;
    struct catalog *catalog;
    struct engine *engine; /* NULL until a run needs it */
    struct reach reach;    /* the same for each run */
    uint64_t run;
    uint64_t phase_start_ns;
};

struct experiment {
    struct measurement *measurements;
    uint32_t count;
    struct ranks *ranks;
    uint64_t order_seed;
    uint64_t start_ns;
};

/* ---- progress ---- */

static void report_progress(struct measurement *measurement, struct run_progress progress)
{
    progress.run = measurement->run;
    progress.job = measurement->session.job;
    if (measurement->observer && measurement->observer->progress)
        measurement->observer->progress(measurement->observer->context, &progress);
}

static void enter_phase(struct measurement *measurement, enum run_phase phase)
{
    measurement->phase_start_ns = clock_now_ns();
    report_progress(measurement, (struct run_progress){.phase = phase});
}

static void report_index(void *context, uint64_t done_bytes, uint64_t total_bytes)
{
    struct measurement *measurement = context;

    report_progress(measurement, (struct run_progress){.phase = RUN_INDEX,
                                                       .done = done_bytes,
                                                       .total = total_bytes,
                                                       .elapsed_ns = clock_now_ns() -
                                                                     measurement->phase_start_ns});
}

static void report_drop(void *context, const struct cache_progress *progress)
{
    report_progress(context,
                    (struct run_progress){.phase = RUN_DROP, .elapsed_ns = progress->elapsed_ns});
}

/* ---- a job ---- */

/* Choose plug-ins, find the data set and prepare the session. */
static int open_job(struct measurement *measurement)
{
    struct session *session = &measurement->session;
    const struct job *job = session->job;
    const struct format_scan scan = {.progress = report_index, .progress_context = measurement};
    int code = session_open(session, job_choose(job, &measurement->plugins));

    if (code)
        return code;
    enter_phase(measurement, RUN_INDEX);
    code = find_data(job, session->ranks, &scan, &measurement->plugins, &measurement->catalog,
                     session->result);
    if (code)
        return code;
    recorder_mark(session->recorder, "index", 0, measurement->phase_start_ns);
    result_describe(session->result, job->read.data, measurement->plugins.format.plugin->name,
                    measurement->catalog);
    return session_watch(session, measurement->catalog, &measurement->plugins);
}

/* Create the engine, which checks the memory that the job needs. */
static int make_engine(struct measurement *measurement)
{
    struct session *session = &measurement->session;
    const struct engine_config config = {
        .job = session->job,
        .plugins = &measurement->plugins,
        .catalog = measurement->catalog,
        .ranks = session->ranks,
        .meter = recorder_meter(session->recorder),
        .hinting = session->job->decode.entry_points ? &session->hinting : NULL,
        .recorder = session->recorder,
        .tick = {session_tick, session}};

    if (session->result->memory_before_bytes == 0 && !session->job->dry_run)
        session->result->memory_before_bytes = memory_resident_bytes();
    int code = engine_create(&config, session->result, &measurement->engine);
    if (code == 0 && !session->job->dry_run && !measurement->reach.ranges.paths)
        code = engine_reach(measurement->engine, &measurement->reach);
    return session_meet(session, code);
}

/* Free memory, threads and the control group, so that another job finds the same resources. */
static void suspend_job(struct measurement *measurement)
{
    engine_destroy(measurement->engine);
    measurement->engine = NULL;
    memory_limit_leave(&measurement->session.limit);
}

/* Finish the result. code: the status so far; returns the one to use. */
static int close_job(struct measurement *measurement, int code)
{
    struct session *session = &measurement->session;

    code = ranks_meet(session->ranks, code, NULL);
    if (code)
        result_invalid(session->result, "%s", fail_reason());
    engine_destroy(measurement->engine);
    reach_clear(&measurement->reach);
    session_close(session, code);
    catalog_destroy(measurement->catalog);
    job_release(&measurement->plugins);
    report_progress(measurement, (struct run_progress){.phase = RUN_DONE});
    return code;
}

/* ---- a run ---- */

static int before_epoch(void *context, struct result_epoch *epoch, int code)
{
    struct measurement *measurement = context;

    code = session_before_epoch(&measurement->session, epoch, code);
    if (code == 0) {
        measurement->phase_start_ns = clock_now_ns();
        report_progress(measurement,
                        (struct run_progress){.phase = RUN_EPOCH, .epoch = epoch->epoch});
    }
    return code;
}

static int run_tick(void *context, const struct result_epoch *so_far, uint64_t draws)
{
    struct measurement *measurement = context;
    const struct catalog *catalog = measurement->catalog;

    /* Record bytes are summed when the epoch ends; until then the mean record size is used. */
    report_progress(measurement,
                    (struct run_progress){.phase = RUN_EPOCH,
                                          .epoch = so_far->epoch,
                                          .done = so_far->samples,
                                          .total = draws,
                                          .bytes = so_far->samples * (catalog->record_bytes_total /
                                                                      catalog->record_count),
                                          .elapsed_ns = so_far->wall_ns});
    return session_tick(&measurement->session);
}

static int between_epochs(void *context, struct result_epoch *epoch)
{
    (void)epoch;
    return keep_hints(context, 0); /* the session is the first member */
}

static int wait_at(const struct measurement *measurement, enum run_gate gate)
{
    const struct run_observer *observer = measurement->observer;

    return observer && observer->gate ? observer->gate(observer->gate_context, gate) : 0;
}

/* Carry out the next run; result->runs has room for it. turn: its position among the runs of all
 * jobs. */
static int run_once(struct measurement *measurement, uint64_t turn)
{
    struct session *session = &measurement->session;
    struct result *result = session->result;
    const struct job *job = session->job;
    const struct cache_observer observer = {.progress = report_drop, .context = measurement};
    const struct engine_hooks hooks = {.before = before_epoch,
                                       .after = session_after_epoch,
                                       .tick = run_tick,
                                       .between = job->order.overlap_epochs ? NULL : between_epochs,
                                       .context = measurement};
    int code = ranks_meet(session->ranks, session_enter_limit(session), NULL);

    if (code == 0 && !measurement->engine)
        code = make_engine(measurement);
    if (code)
        return code;
    assert(result->run_count < job_runs_most(job));
    struct result_run *run = &result->runs[result->run_count];
    *run = (struct result_run){.number = result->run_count++, .turn = turn, .valid = true};
    measurement->run = run->number;
    run->epochs = memory_array(result_rows(job->epochs), sizeof *run->epochs);
    if (!run->epochs)
        return -ENOMEM;
    code = wait_at(measurement, RUN_GATE_TURN);
    enter_phase(measurement, RUN_DROP);
    if (code == 0) {
        recorder_begin_run(session->recorder, run->number);
        code = witness_make_cold(session->witness, &measurement->plugins, session->ranks,
                                 &measurement->reach, &observer, run);
        recorder_mark(session->recorder, "drop", 0, measurement->phase_start_ns);
    }
    if (code == 0)
        code = wait_at(measurement, RUN_GATE_START);
    if (code == 0) {
        code = engine_run(measurement->engine, job->epochs, &hooks, run, result);
        code = ranks_meet(session->ranks, code, NULL);
        code = keep_hints(session, code);
        char reason[FAIL_REASON_BYTES];
        snprintf(reason, sizeof reason, "%s", fail_reason());
        int gathered = gather_run(session->ranks, result_rows(job->epochs), run);
        code = code ? fail(code, "%s", reason) : gathered;
    }
    if (code == 0) {
        session_judge(session, run);
    } else {
        run->valid = false;
        snprintf(run->invalid_reason, sizeof run->invalid_reason, "%s", fail_reason());
    }
    if (!run->valid)
        result_invalid(result, "run %llu: %s", (unsigned long long)run->number + 1,
                       run->invalid_reason);
    return code;
}

/* ---- calibration ---- */

static int calibration_tick(void *context, const struct result_epoch *so_far, uint64_t draws)
{
    (void)so_far, (void)draws;
    return session_tick(context);
}

/* Results that are not reported; larger than a small stack. */
struct scratch {
    struct result result;
    struct result_run run;
    struct result_epoch epoch;
};

/* Run the same loop, and threads, fed from memory, without storage and decoding. */
static int run_from_memory(struct measurement *measurement, const char *trainer, uint64_t samples,
                           struct scratch *scratch)
{
    struct job job = *measurement->session.job;
    struct job_plugins plugins = {0};
    const struct engine_hooks hooks = {.tick = calibration_tick, .context = &measurement->session};

    job.read.reader = (char *)(uintptr_t)plugin_idle(reader_registry)->name;
    job.decode.decoder = (char *)(uintptr_t)plugin_idle(decoder_registry)->name;
    job.trainer = (char *)(uintptr_t)trainer;
    job.read.direct = job.decode.digest = job.decode.entry_points = false;
    job.output.trace = NULL;
    job.order.limit_samples = 0;
    job.order.limit_samples_per_rank = samples;
    job.read.rate_limit_bytes = 0;
    memset(scratch, 0, sizeof *scratch);
    scratch->result.valid = true;
    scratch->run.epochs = &scratch->epoch;
    int code = job_choose(&job, &plugins);
    if (code)
        return code;
    const struct engine_config config = {
        .job = &job,
        .plugins = &plugins,
        .catalog = measurement->catalog,
        .by_threads = decoders_look(measurement->session.job, &measurement->plugins)};
    struct engine *engine;
    code = engine_create(&config, &scratch->result, &engine);
    if (code == 0)
        code = engine_run(engine, 1, &hooks, &scratch->run, &scratch->result);
    engine_destroy(engine);
    job_release(&plugins);
    return code;
}

/* Measure the samples/s of the program alone, and the AU in percent of a loop fed from memory: on
 * all ranks at once, as in the runs, since the ceiling is that of all together. */
static int calibrate_job(struct measurement *measurement)
{
    const struct session *session = &measurement->session;
    struct scratch *scratch = memory_zeroed(sizeof *scratch);
    double figures[] = {0, 0};
    int code = scratch ? 0 : -ENOMEM;

    enter_phase(measurement, RUN_CALIBRATE);
    if (code == 0)
        code = run_from_memory(measurement, plugin_idle(trainer_registry)->name, 1000000, scratch);
    if (code == 0)
        figures[0] = result_epoch_samples_per_s(&scratch->epoch);
    if (code == 0 && trainer_of(measurement->plugins.trainer.plugin)->replays) {
        code = run_from_memory(measurement, session->job->trainer, 20 * session->job->batch_size,
                               scratch);
        figures[1] = result_epoch_au_percent(&scratch->epoch);
    }
    free(scratch);
    code = ranks_meet(session->ranks, code, NULL);
    if (code == 0)
        code = ranks_sum(session->ranks, figures, 2);
    if (code)
        return code;
    session->result->ceiling_samples_per_s = figures[0];
    session->result->au_calibration_percent = figures[1] / session->ranks->place.ranks;
    recorder_mark(session->recorder, "calibrate", 0, measurement->phase_start_ns);
    return 0;
}

/* ---- all jobs ---- */

/* Return half the width of the widest interval: of a rival's ratio to the first job, round by
 * round, or of the rate if there is one job. */
static double half_width(const struct experiment *experiment)
{
    const struct result *first = experiment->measurements[0].session.result;
    const uint32_t runs = first->run_count;
    double *rates = memory_array(2 * (size_t)runs, sizeof *rates), widest = 0;

    if (!rates)
        return NAN;
    for (uint32_t i = 0; i < runs; i++)
        rates[i] = result_run_samples_per_s(&first->runs[i]);
    for (uint32_t k = 1; k < experiment->count; k++) {
        const struct result *rival = experiment->measurements[k].session.result;
        for (uint32_t i = 0; i < runs; i++)
            rates[runs + i] = result_run_samples_per_s(&rival->runs[i]);
        const struct paired paired =
            paired_test(rates, rates + runs, runs, first->job->turns, true);
        widest = fmax(widest, (paired.high - paired.low) / 2 / paired.ratio);
    }
    if (experiment->count == 1) {
        const struct stats_summary summary = stats_summarise_until(rates, runs);
        widest = stats_half_width(&summary);
    }
    free(rates);
    return widest;
}

/* Decide whether --runs auto may end, by rank 0's clock and figures. Returns 0, 1 or -errno. */
static int is_enough(struct experiment *experiment)
{
    const struct job *job = experiment->measurements[0].session.job;
    const uint32_t rounds = experiment->measurements[0].session.result->run_count;
    const uint32_t runs = rounds / (uint32_t)job->turns;
    const double half = runs < STATS_UNTIL_FIRST ? NAN : 100 * half_width(experiment);
    const bool is_reached = half <= job_until_percent(job);
    const bool is_late =
        job->until_time_ns && clock_now_ns() - experiment->start_ns >= job->until_time_ns;
    double decided[] = {is_reached, is_late};

    if (rounds % job->turns)
        return 0; /* in the middle of a pair */
    if (job->runs)
        return runs == job->runs;
    if (experiment->ranks->place.rank)
        decided[0] = decided[1] = 0;
    int code = ranks_sum(experiment->ranks, decided, 2);
    for (uint32_t i = 0; i < experiment->count; i++) {
        struct result_session *state = &experiment->measurements[i].session.result->session;
        state->is_reached = decided[0] > 0;
        state->half_percent = half;
    }
    return code ? code : decided[0] > 0 || decided[1] > 0 || runs == job->until_runs;
}

/* Runs of all jobs, a round after the other, until there are enough. */
static int run_rounds(struct experiment *experiment)
{
    const struct job *job = experiment->measurements[0].session.job;
    const uint32_t count = experiment->count;
    uint32_t order[RUN_JOBS_MAX]; /* of the current round */
    uint64_t turns = 0, first_samples = 0;
    int code = 0, enough = 0;

    for (uint32_t i = 0; i < count && code == 0; i++) {
        struct session *session = &experiment->measurements[i].session;
        session->result->runs =
            memory_array(job_runs_most(session->job), sizeof *session->result->runs);
        code = session->result->runs ? 0 : -ENOMEM;
    }
    code = ranks_meet(experiment->ranks, code, NULL);
    experiment->start_ns = clock_now_ns();
    while (code == 0 && enough == 0) {
        /* The second half of a pair has the order of the first in reverse, so that a steady drift
         * cancels. */
        const uint64_t round = turns / count;
        const bool is_back = round % job->turns % 2;
        random_order(experiment->order_seed, round - is_back, order, count);
        for (uint32_t i = 0; i < count && code == 0; i++) {
            struct measurement *next =
                &experiment->measurements[order[is_back ? count - 1 - i : i]];
            code = run_once(next, turns++);
            if (count > 1)
                suspend_job(next);
        }
        enough = code ? code : is_enough(experiment);
        code = enough < 0 ? enough : code;
    }
    for (uint32_t i = 0; i < count && code == 0; i++)
        code = gather_notices(experiment->ranks, experiment->measurements[i].session.result);
    /* What a reader of the results must know. */
    for (uint32_t i = 0; i < count && code == 0; i++) {
        struct result *result = experiment->measurements[i].session.result;
        const struct result_session *state = &result->session;
        const char *of = count > 1 ? "of the ratio " : "";
        const struct result_epoch total = result_run_total(&result->runs[0]);
        const uint64_t samples = total.samples + total.skipped;
        if (job->runs == 0 && state->is_reached)
            result_notice(result, "--runs auto: the interval %sis within %.2g%% after %u runs", of,
                          state->half_percent, result->run_count);
        else if (job->runs == 0)
            result_notice(result,
                          "--until %g%% was NOT reached: the interval %sis within %.2g%% after %u "
                          "runs, at which --until-runs or --until-time ended it",
                          job_until_percent(job), of, state->half_percent, result->run_count);
        first_samples = i ? first_samples : samples;
        /* Rates of unlike amounts of work can be compared, but not without saying so. */
        if (samples != first_samples)
            result_notice(result,
                          "runs of different sizes are compared: %llu samples in a run, against "
                          "%llu; start-up weighs more in the shorter run",
                          (unsigned long long)samples, (unsigned long long)first_samples);
    }
    return code;
}

/* Draw the seed of the turns, the same on all ranks, and identify the session. */
static int begin_experiment(struct experiment *experiment)
{
    const struct job *job = experiment->measurements[0].session.job;
    struct result_session state = {
        .jobs = experiment->count, .is_until = job->runs == 0, .turns = job->turns};
    uint32_t drawn[3];
    char *boot = NULL;
    size_t bytes;

    if (getrandom(drawn, sizeof drawn, 0) != (ssize_t)sizeof drawn)
        return fail(EIO, "no random numbers: %s", fail_errno_text(errno));
    double seed = experiment->ranks->place.rank == 0 ? (double)(drawn[2] | 1) : 0;
    int code = ranks_sum(experiment->ranks, &seed, 1);
    state.order_seed = job->order_seed ? job->order_seed : (uint64_t)seed;
    experiment->order_seed = state.order_seed;
    if (experiment->count == 1)
        state.order_seed = 0;
    snprintf(state.id, sizeof state.id, "%08x%08x", drawn[0], drawn[1]);
    if (file_load("/proc/sys/kernel/random/boot_id", 4096, &boot, &bytes) == 0)
        snprintf(state.boot_id, sizeof state.boot_id, "%.*s", (int)strcspn(boot, "\n"), boot);
    free(boot);
    for (uint32_t i = 0; i < experiment->count; i++) {
        state.job = i;
        state.half_percent = NAN;
        experiment->measurements[i].session.result->session = state;
    }
    return code;
}

int run_jobs(const struct job *jobs, uint32_t count, struct ranks *ranks,
             const struct run_observer *observer, struct result *results)
{
    struct ranks alone = ranks_alone();
    struct experiment experiment = {.count = count, .ranks = ranks ? ranks : &alone};
    const bool is_dry = jobs[0].dry_run;
    uint32_t opened = 0;
    int code = 0;

    for (uint32_t i = 0; i < count; i++)
        results[i] = (struct result){.job = &jobs[i], .valid = true};
    experiment.measurements = memory_array(count, sizeof *experiment.measurements);
    if (!experiment.measurements || count > RUN_JOBS_MAX)
        return fail(ENOMEM, "%u jobs cannot be compared in one session", count);
    for (uint32_t i = 0; i < count; i++)
        experiment.measurements[i] = (struct measurement){
            .session = {.job = &jobs[i], .ranks = experiment.ranks, .result = &results[i]},
            .observer = observer};
    if (!is_dry)
        code = ranks_meet(experiment.ranks, begin_experiment(&experiment), NULL);
    while (code == 0 && opened < count) {
        struct measurement *measurement = &experiment.measurements[opened++];
        code = open_job(measurement);
        if (code == 0 && is_dry)
            code = make_engine(measurement);
        else if (code == 0 && jobs[opened - 1].calibrate)
            code = calibrate_job(measurement);
        if (count > 1)
            suspend_job(measurement);
    }
    if (code == 0 && !is_dry)
        code = run_rounds(&experiment);
    for (uint32_t i = 0; i < opened; i++)
        code = close_job(&experiment.measurements[i], code);
    for (uint32_t i = 0; i < count; i++) {
        results[i].interrupted = code == -EINTR;
        if (i >= opened)
            result_invalid(&results[i], "%s", fail_reason());
    }
    free(experiment.measurements);
    return code;
}
