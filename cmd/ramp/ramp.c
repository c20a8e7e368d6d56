/* SPDX-License-Identifier: Apache-2.0
 *
 * iobench ramp: raises the load until batches are late, and finds the highest load that holds.
 */
#include "cmd/ramp/ramp.h"

#include "base/fail.h"
#include "base/memory.h"
#include "cmd/arguments.h"
#include "cmd/commands.h"
#include "cmd/layers.h"
#include "cmd/outputs.h"
#include "pipeline/jobs/run.h"
#include "pipeline/jobs/session.h"
#include "pipeline/settings/job_options.h"
#include "report/svg.h"
#include "report/report.h"
#include "trainer/trainer.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A p99 needs 100 batches, after the warm-up. A preview only has to see twice too much. */
enum { BATCHES_LEAST = 110, BATCHES_PREVIEW = 40, BATCHES_MOST = 1 << 30, PREVIEW_SHARE = 8 };

/* clang-format off: one or two rows each */
#define FIELD(field) .offset = offsetof(struct ramp_settings, field)
#define JOB offsetof(struct ramp_settings, job)
static const struct option_spec ramp_options[] = {
    {"from", 0, OPTION_REAL, FIELD(from), .fallback = "1", .minimum = 1e-3, .maximum = 1e6,
     .metavar = "LOAD", .section = "The ramp",
     .summary = "first load: how many of the trainer take batches in turns; may be fractional"},
    {"to", 0, OPTION_REAL, FIELD(to), .fallback = "65536", .minimum = 1e-3, .maximum = 1e6,
     .metavar = "LOAD", .summary = "highest load to try"},
    {"limit", 0, OPTION_REAL, FIELD(limit_percent), .fallback = "1%", .minimum = 0.01,
     .maximum = 1000, .percent = true, .metavar = "PERCENT",
     .summary = "a load holds if 99% of its batches are late by less than this share of a step"},
    {"precision", 0, OPTION_REAL, FIELD(precision_percent), .fallback = "2%", .minimum = 0.1,
     .maximum = 100, .percent = true, .metavar = "PERCENT",
     .summary = "stop when the highest load that holds and the next one are this close"},
    {"runs", 'n', OPTION_COUNT, FIELD(runs), .fallback = "3", .minimum = 1, .maximum = 99,
     .summary = "runs of the answer's loads at most; a majority decides"},
    {"duration", 0, OPTION_DURATION, FIELD(duration_ns), .fallback = "10s", .minimum = 0.1,
     .maximum = 86400,
     .summary =
         "length of a run, of at least 110 batches and at most one epoch; previews take an eighth"},
    {"trainer", 'T', OPTION_TEXT, JOB_FIELD(JOB, trainer), .fallback = "replay:h200",
     .metavar = "NAME[:...]", .summary = "the GPU to emulate: one unit of load"},
    {"batch-size", 'B', OPTION_COUNT, JOB_FIELD(JOB, batch_size), .fallback = "256", .minimum = 1,
     .maximum = 1 << 20, .summary = "samples per batch of one GPU"},

    {"data", 'd', OPTION_TEXT, JOB_FIELD(JOB, read.data), .metavar = "PATH",
     .reach = OPTION_INDEXES_SET, .section = "Data set",
     .summary = "data set: file, folder or nfs:// URL (required)"},
    JOB_SET_ROWS(JOB),
    JOB_AS_ROW(JOB),
    JOB_WORKLOAD_ROW(JOB),
    JOB_READER_ROWS(JOB),
    JOB_ORDER_ROWS(JOB),
    JOB_SEED_ROW(JOB),
    JOB_SILENCE_ROW(JOB),
    JOB_DECODE_ROWS(JOB),
    JOB_COLD_ROWS(JOB),

    {"json", 'j', OPTION_TEXT, JOB_FIELD(JOB, output.json), .metavar = "FILE",
     .reach = OPTION_WRITES, .section = "Output",
     .summary = "write the result as JSON; - is standard output instead of the table"},
    {"plot", 0, OPTION_TEXT, FIELD(plot), .metavar = "FILE", .reach = OPTION_WRITES,
     .summary = "chart throughput and lateness against load: .svg, .png or .pdf"},
    {"label", 0, OPTION_TEXT, JOB_FIELD(JOB, output.label), .metavar = "TEXT",
     .summary = "free text to store in the result"},
    {0},
};
#undef JOB
#undef FIELD
/* clang-format on */

/* ---- one run ---- */

static void show_progress(void *context, const struct run_progress *progress)
{
    struct ramp *ramp = context;
    char text[sizeof ramp->line.last], bar[LINE_PART_BYTES];

    if (ramp->ranks->place.rank)
        return;
    snprintf(text, sizeof text, "run %zu, load %.4g %s", ramp->count + 1, progress->job->open_load,
             line_bar(bar, progress->done, progress->total));
    line_show(&ramp->line, text);
}

/* ---- the command ---- */

static int prepare_ramp(const struct invocation *invocation, struct ramp_settings *settings)
{
    struct job *job = &settings->job;
    /* Apply the workload and the preset; options on the command line override them. */
    const bool any = settings->job.as || settings->job.workload;
    int code = 0;
    if (settings->job.workload)
        code = layers_workload(settings->job.workload, ramp_options, settings);
    if (code == 0 && settings->job.as)
        code = layers_preset(settings->job.as, ramp_options, settings);
    if (code == 0 && any)
        code = layers_command_line(invocation, ramp_options, settings);

    if (code == 0)
        code = layers_complete(ramp_options, offsetof(struct ramp_settings, job), job);
    if (code == 0) {
        struct plugin_choice choice;
        code = trainer_choose(job->trainer, &choice);
        if (code == 0 && !trainer_of(choice.plugin)->replays)
            code = fail(EINVAL,
                        "--trainer %s: a load is a multiple of an emulated GPU: use a trainer that "
                        "replays step times",
                        job->trainer);
        plugin_release(&choice);
    }
    if (code == 0 && settings->runs % 2 == 0)
        code = fail(EINVAL, "--runs %llu: expected an odd number, for a majority",
                    (unsigned long long)settings->runs);
    if (code == 0)
        code = job->read.data ? arguments_check_data("data", job->read.data)
                              : fail(EINVAL, "--data is required");
    if (code == 0 && settings->plot && svg_check_path(settings->plot))
        code = -EINVAL;
    job->runs = 1;
    job->calibrate = false;
    job->output.sample_interval_ns = 0;
    return code;
}

/* Returns enum command_exit. */
static int run_ramp(const struct invocation *invocation, struct ramp *ramp)
{
    const bool speaks = ramp->ranks->place.rank == 0;
    const bool table = job_stdout_count(&ramp->settings->job) == 0;
    int code = ranks_meet(
        ramp->ranks, speaks ? outputs_check(&ramp->settings->job, "{\"schema\"", "") : 0, NULL);
    int status = COMMAND_OK;

    if (code)
        return speaks || ramp->ranks->is_unheard ? command_misused(invocation) : COMMAND_FAILED;
    const struct ramp_settings *settings = ramp->settings;
    ramp->search = (struct ramp_search){.from = fmin(settings->from, settings->to),
                                        .to = settings->to,
                                        .precision = settings->precision_percent / 100,
                                        .runs = (uint32_t)settings->runs};
    for (struct ramp_step step; code == 0 && (step = ramp_search_next(&ramp->search)).load > 0;) {
        const struct run_observer observer = {.progress = show_progress, .context = ramp};
        struct result result = {0};
        struct job job = ramp->settings->job;
        job.open_load = step.load;
        const double duration = (double)settings->duration_ns / (step.preview ? PREVIEW_SHARE : 1);
        double batches = step.preview ? BATCHES_PREVIEW : BATCHES_LEAST;
        if (ramp->step_ns > 0)
            batches =
                fmax(batches, step.load / ramp->ranks->place.ranks * duration / ramp->step_ns);
        const uint64_t samples = (uint64_t)fmin(batches, BATCHES_MOST) * settings->job.batch_size;
        const uint64_t limit = order_rank_samples(&settings->job.order);
        job.order.limit_samples_per_rank = limit && limit < samples ? limit : samples;
        job.order.limit_samples = 0;
        code = run_jobs(&job, 1, ramp->ranks, &observer, &result);
        if (code == 0 && !result.valid)
            code = fail(EPROTO, "load %.4g: invalid: %s", step.load, result.invalid_reason);
        if (code == 0) {
            if (memory_room(&ramp->points, ramp->count, sizeof *ramp->points, "points"))
                code = -ENOMEM;
            else if (result.runs[0].batch_late_ns.count == 0)
                code = fail(
                    EINVAL,
                    "%llu samples are too few: a run needs more than 10 batches of %llu on each "
                    "rank; use a smaller --batch-size or a larger data set",
                    (unsigned long long)result.records,
                    (unsigned long long)ramp->settings->job.batch_size);
            else {
                ramp->points[ramp->count++] = ramp_point_of(
                    step, &result.runs[0], ramp->settings->limit_percent, &ramp->step_ns);
                ramp->records = result.records;
                if (!ramp->dataset)
                    ramp->dataset = report_dataset(&result);
                snprintf(ramp->data, sizeof ramp->data, "%s", result.data);
                snprintf(ramp->format, sizeof ramp->format, "%s", result.format);
                snprintf(ramp->storage, sizeof ramp->storage, "%.30s at %.120s",
                         result.environment.file_system, result.environment.mount_point);
                if (!step.preview && !ramp->degraded[0]) {
                    const uint64_t skipped = result.runs[0].epochs[0].skipped;
                    if (result.degraded_reason[0])
                        snprintf(ramp->degraded, sizeof ramp->degraded, "%s",
                                 result.degraded_reason);
                    else if (skipped)
                        snprintf(ramp->degraded, sizeof ramp->degraded, "%llu %s skipped",
                                 (unsigned long long)skipped,
                                 skipped == 1 ? "record was" : "records were");
                }
            }
        }
        result_destroy(&result);
        if (code == 0) {
            const struct ramp_point *point = &ramp->points[ramp->count - 1];
            ramp_search_add(&ramp->search, step, point->holds,
                            step.load * point->samples_per_s / point->offered_samples_per_s);
        }
    }
    line_clear(&ramp->line);
    ramp->interrupted = code == -EINTR;
    ramp->failed = code && code != -EINTR;
    if (code)
        status = speaks || ramp->ranks->is_unheard ? command_failed(invocation) : COMMAND_FAILED;
    else if (ramp->degraded[0])
        status = COMMAND_FAILED;
    if (speaks && table && ramp->count && ramp_print(ramp))
        status = command_failed(invocation);
    if (speaks && code == 0 && ramp_write_files(ramp))
        status = command_failed(invocation);
    return status;
}

static int ramp_run(const struct invocation *invocation)
{
    struct ramp_settings *settings = invocation->settings;
    struct ranks ranks;
    struct ramp ramp = {.settings = settings, .ranks = &ranks, .line = line_start()};
    int status;

    if (prepare_ramp(invocation, settings)) {
        status = command_misused(invocation);
    } else {
        int code = command_join(&ranks);
        if (code == 0)
            code = ranks_meet(&ranks, job_share(&settings->job, &ranks.place), NULL);
        command_on_interrupt(); /* after MPI has installed its handlers */
        status = code ? command_failed(invocation) : run_ramp(invocation, &ramp);
        ranks_leave(&ranks, status != COMMAND_OK);
    }
    json_decref(ramp.dataset);
    free(ramp.points);
    option_release(job_options, &settings->job);
    return status;
}

const struct command command_ramp = {
    .name = "ramp",
    .summary = "find how many GPUs a storage feeds before their batches are late",
    .description =
        "Raises the load, doubling in short previews and then bisecting, until batches are late. A "
        "load of N stands for N GPUs that take batches in turns: one batch is due every step time "
        "/ N, whether or not the one before was ready (open loop), so a slow storage is not spared "
        "the requests that a waiting GPU would not make. A batch's stall is its lateness as a "
        "share of a GPU's step; a load holds if the 99th percentile of the stalls is below "
        "--limit, and samples were read as fast as they were taken. Prints the highest load that "
        "holds, the interval in which runs agree, and throughput and lateness at each load. Under "
        "mpirun or srun the ranks share each load.",
    .examples =
        "iobench ramp --data /mnt/set --drop-caches --trainer replay:h200 -B 400\thow many "
        "H200 does cold storage feed?\n"
        "iobench ramp --data /mnt/set --decode none --trainer replay:rate=486\tGPUs of 486 "
        "samples/s, storage alone\n"
        "iobench ramp --data /mnt/unet3d --workload unet3d-b200\tof MLPerf Storage's emulated "
        "B200\n"
        "iobench ramp --data /mnt/set --limit 10% --plot ramp.svg\twith a chart\n",
    .options = ramp_options,
    .settings_size = sizeof(struct ramp_settings),
    .is_confined = true,
    .run = ramp_run,
};
