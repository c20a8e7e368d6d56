/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/jobs/measurement.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "decode/decoder.h"
#include "formats/format.h"
#include "pipeline/engine/decoders.h"
#include "pipeline/jobs/find.h"
#include "pipeline/jobs/keep_hints.h"
#include "pipeline/result/gather.h"
#include "readers/reader.h"
#include "trainer/trainer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void report_progress(struct measurement *measurement, struct run_progress progress)
{
    progress.run = measurement->run;
    progress.job = measurement->session.job;
    if (measurement->observer && measurement->observer->progress)
        measurement->observer->progress(measurement->observer->context, &progress);
}

static void enter(struct measurement *measurement, enum run_phase phase)
{
    measurement->phase_start_ns = clock_now_ns();
    report_progress(measurement, (struct run_progress){.phase = phase});
}

/* ---- the data set ---- */

static void report_index(void *context, uint64_t done_bytes, uint64_t total_bytes)
{
    struct measurement *measurement = context;

    report_progress(measurement, (struct run_progress){.phase = RUN_INDEX,
                                                       .done = done_bytes,
                                                       .total = total_bytes,
                                                       .elapsed_ns = clock_now_ns() -
                                                                     measurement->phase_start_ns});
}

static int load_catalog(struct measurement *measurement)
{
    const struct session *session = &measurement->session;
    const struct format_scan scan = {.progress = report_index, .progress_context = measurement};

    enter(measurement, RUN_INDEX);
    int code = find_data(session->job, session->ranks, &scan, &measurement->plugins,
                         &measurement->catalog, session->result);
    if (code)
        return code;
    recorder_mark(session->recorder, "index", 0, measurement->phase_start_ns);
    result_describe(session->result, session->job->read.data,
                    measurement->plugins.format.plugin->name, measurement->catalog);
    return 0;
}

/* ---- runs ---- */

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

static int tick(void *context, const struct result_epoch *so_far, uint64_t draws)
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
    return session_check(&measurement->session);
}

static void report_drop(void *context, const struct cache_progress *progress)
{
    report_progress(context,
                    (struct run_progress){.phase = RUN_DROP, .elapsed_ns = progress->elapsed_ns});
}

static int after_epochs(struct measurement *measurement, int code)
{
    return keep_hints(&measurement->session, &measurement->plugins, measurement->catalog,
                      &measurement->hinting, code);
}

static int between_epochs(void *context, struct result_epoch *epoch)
{
    (void)epoch;
    return after_epochs(context, 0);
}

/* Run the epochs on all ranks, and gather what they measured. */
static int measure(struct measurement *measurement, struct result_run *run)
{
    const struct session *session = &measurement->session;
    const struct engine_hooks hooks = {
        .before = before_epoch,
        .after = session_after_epoch,
        .tick = tick,
        .between = session->job->order.overlap_epochs ? NULL : between_epochs,
        .context = measurement};
    const uint64_t epochs = session->job->epochs;
    int code = engine_run(measurement->engine, epochs, &hooks, run, session->result);

    code = ranks_meet(session->ranks, code, NULL);
    code = after_epochs(measurement, code);
    char reason[FAIL_REASON_BYTES];
    snprintf(reason, sizeof reason, "%s", fail_reason());
    int gathered = gather_run(session->ranks, result_rows(epochs), run);
    return code ? fail(code, "%s", reason) : gathered;
}

static int wait_at(const struct measurement *measurement, enum run_gate gate)
{
    const struct run_observer *observer = measurement->observer;

    return observer && observer->gate ? observer->gate(observer->gate_context, gate) : 0;
}

static int carry_out(struct measurement *measurement, struct result_run *run)
{
    run->epochs = memory_array(result_rows(measurement->session.job->epochs), sizeof *run->epochs);
    if (!run->epochs)
        return -ENOMEM;
    int code = wait_at(measurement, RUN_GATE_TURN);
    enter(measurement, RUN_DROP);
    const struct cache_observer observer = {.progress = report_drop, .context = measurement};
    if (code == 0)
        code = session_make_cold(&measurement->session, &measurement->plugins, &measurement->reach,
                                 &observer, run);
    if (code == 0)
        code = wait_at(measurement, RUN_GATE_START);
    if (code == 0)
        code = measure(measurement, run);
    if (code == 0) {
        session_judge(&measurement->session, &measurement->plugins, run);
        return 0;
    }
    run->valid = false;
    snprintf(run->invalid_reason, sizeof run->invalid_reason, "%s", fail_reason());
    return code;
}

int measurement_make_engine(struct measurement *measurement)
{
    struct session *session = &measurement->session;
    const struct engine_config config = {
        .job = session->job,
        .plugins = &measurement->plugins,
        .catalog = measurement->catalog,
        .ranks = session->ranks,
        .meter = recorder_meter(session->recorder),
        .hinting = session->job->decode.entry_points ? &measurement->hinting : NULL,
        .recorder = session->recorder,
        .tick = {session_tick, session}};

    if (session->result->memory_before_bytes == 0 && !session->job->dry_run)
        session->result->memory_before_bytes = memory_resident_bytes();
    int code = engine_create(&config, session->result, &measurement->engine);
    if (code == 0 && !session->job->dry_run && !measurement->reach.ranges.paths)
        code = engine_reach(measurement->engine, &measurement->reach);
    return session_meet(session, code);
}

int measurement_next(struct measurement *measurement, uint64_t turn)
{
    struct result *result = measurement->session.result;
    int code =
        ranks_meet(measurement->session.ranks, session_enter_limit(&measurement->session), NULL);

    if (code == 0 && !measurement->engine)
        code = measurement_make_engine(measurement);
    if (code)
        return code;
    struct result_run *run = &result->runs[result->run_count];
    *run = (struct result_run){.number = result->run_count++, .turn = turn, .valid = true};
    measurement->run = run->number;
    code = carry_out(measurement, run);
    if (!run->valid)
        result_invalid(result, "run %llu: %s", (unsigned long long)run->number + 1,
                       run->invalid_reason);
    return code;
}

void measurement_suspend(struct measurement *measurement)
{
    engine_destroy(measurement->engine);
    measurement->engine = NULL;
    memory_limit_leave(&measurement->session.limit);
}

/* ---- calibration ---- */

static int calibration_tick(void *context, const struct result_epoch *so_far, uint64_t draws)
{
    (void)so_far;
    (void)draws;
    return session_check(context);
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

/* figures: samples/s of the program alone, and the AU in percent of a loop fed from memory. */
static int calibrate_alone(struct measurement *measurement, double figures[2])
{
    const struct job *job = measurement->session.job;
    struct scratch *scratch = memory_zeroed(sizeof *scratch);
    int code = scratch ? run_from_memory(measurement, plugin_idle(trainer_registry)->name, 1000000,
                                         scratch)
                       : -ENOMEM;

    if (code == 0)
        figures[0] = result_epoch_samples_per_s(&scratch->epoch);
    if (code == 0 && trainer_of(measurement->plugins.trainer.plugin)->replays) {
        code = run_from_memory(measurement, job->trainer, 20 * job->batch_size, scratch);
        figures[1] = result_epoch_au_percent(&scratch->epoch);
    }
    free(scratch);
    return code;
}

/* Calibrate on all ranks at once, as in the runs: the ceiling is that of all together. */
int measurement_calibrate(struct measurement *measurement)
{
    const struct session *session = &measurement->session;
    double figures[] = {0, 0};

    enter(measurement, RUN_CALIBRATE);
    int code = ranks_meet(session->ranks, calibrate_alone(measurement, figures), NULL);
    if (code == 0)
        code = ranks_sum(session->ranks, figures, 2);
    if (code)
        return code;
    session->result->floor_samples_per_s = figures[0];
    session->result->au_calibration_percent = figures[1] / session->ranks->place.ranks;
    recorder_mark(session->recorder, "calibrate", 0, measurement->phase_start_ns);
    return 0;
}

/* ---- open and close ---- */

int measurement_open(struct measurement *measurement)
{
    struct session *session = &measurement->session;
    int code = session_open(session, job_choose(session->job, &measurement->plugins));

    if (code == 0)
        code = load_catalog(measurement);
    return code ? code : session_watch(session, measurement->catalog, &measurement->plugins);
}

int measurement_close(struct measurement *measurement, int code)
{
    struct session *session = &measurement->session;

    code = ranks_meet(session->ranks, code, NULL);
    if (code)
        result_invalid(session->result, "%s", fail_reason());
    engine_destroy(measurement->engine);
    reach_clear(&measurement->reach);
    hinting_close(&measurement->hinting);
    session_close(session, code);
    catalog_destroy(measurement->catalog);
    job_release(&measurement->plugins);
    report_progress(measurement, (struct run_progress){.phase = RUN_DONE});
    return code;
}
