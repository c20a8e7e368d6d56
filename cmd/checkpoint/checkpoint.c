/* SPDX-License-Identifier: Apache-2.0
 *
 * iobench checkpoint: writes and restores the checkpoints of a language model.
 */
#include "base/fail.h"
#include "cmd/checkpoint/report.h"
#include "cmd/commands.h"
#include "cmd/json_file.h"
#include "cmd/line.h"
#include "cmd/outputs.h"
#include "pipeline/settings/job_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct checkpoint_settings {
    struct checkpoint_job job; /* what options set as it is; fill_job() sets the rest */
    char *model, *scale, *writer, *json;
    uint64_t require_write, require_read; /* bytes/s; 0: none */
};

/* is_single of a job */
static const char *const layout_names[] = {"sharded", "single", NULL};

#define FIELD(field) .offset = offsetof(struct checkpoint_settings, field)
/* clang-format off */
static const struct option_spec checkpoint_options[] = {
    {"model", 'm', OPTION_TEXT, FIELD(model), .fallback = "8b", .metavar = "NAME[,params=N]",
     .section = "What is written",
     .summary = "8b, 70b, 405b or 1t, sized and divided among ranks as in MLPerf Storage v3.0, or "
                "your own, such as gpt,params=1.3b: 14 bytes a parameter"},
    {"ranks", 0, OPTION_COUNT, FIELD(job.model.ranks), .fallback = "auto", .zero = "auto",
     .maximum = MODEL_RANKS_MAX,
     .summary = "divide the model evenly among this many ranks (ZeRO 3); auto is as published, 8 "
                "for your own model"},
    {"subset", 0, OPTION_COUNT, FIELD(job.model.subset), .fallback = "all", .zero = "all",
     .maximum = MODEL_RANKS_MAX, .summary = "write the files of the first ranks only"},
    {"scale", 0, OPTION_TEXT, FIELD(scale), .fallback = "1", .metavar = "FRACTION",
     .summary = "write this part of every file, such as 1/1000: for small machines"},
    {"bytes", 0, OPTION_SIZE, FIELD(job.model.bytes), .fallback = "auto", .zero = "auto",
     .summary = "the same, by the size of a checkpoint; auto follows --scale"},
    {"layout", 0, OPTION_CHOICE, FIELD(job.is_single), .fallback = "sharded", .choices = layout_names,
     .summary = "sharded: files of each rank; single: all ranks write to one file"},
    {"writes", 'n', OPTION_COUNT, FIELD(job.writes), .fallback = "10", .maximum = 100000,
     .summary = "number of checkpoints to write; 0 only reads those that are there"},
    {"reads", 0, OPTION_COUNT, FIELD(job.reads), .fallback = "10", .maximum = 100000,
     .summary = "number of checkpoints to read afterwards, the newest first"},
    {"keep", 'k', OPTION_COUNT, FIELD(job.keep), .fallback = "2", .minimum = 1, .maximum = 100000,
     .summary = "complete checkpoints to keep in the folder while writing; older ones are removed"},
    {"leave", 0, OPTION_FLAG, FIELD(job.leave), .fallback = "no",
     .summary = "leave the last checkpoints in the folder at the end, for a later --writes 0"},
    {"seed", 0, OPTION_COUNT, FIELD(job.seed), .fallback = "1",
     .summary = "random seed of the content"},
    {"chunk", 'b', OPTION_SIZE, FIELD(job.chunk_bytes), .fallback = "32MiB", .minimum = 4096,
     .maximum = 1 << 30, .section = "How",
     .summary = "size of each write and read, a multiple of 4 KiB"},
    {"iodepth", 'q', OPTION_COUNT, FIELD(job.depth), .fallback = "4", .minimum = 1, .maximum = 1024,
     .summary = "chunks in flight per rank"},
    {"direct", 0, OPTION_FLAG, FIELD(job.direct), .fallback = "no",
     .summary = "bypass the page cache (O_DIRECT)"},
    {"fsync", 0, OPTION_FLAG, FIELD(job.sync), .fallback = "yes",
     .summary = "sync each file, inside its rank's time; without it nothing is known to be durable"},
    {"writer", 0, OPTION_TEXT, FIELD(writer), .fallback = "auto", .metavar = "NAME",
     .summary = "uring or pwrite; auto is io_uring, or blocking writes if it is refused"},
    {"reader", 'r', OPTION_TEXT, FIELD(job.reader), .fallback = "auto", .metavar = "NAME[:...]",
     .summary = "I/O engine that reads, as for a run"},
    {"verify", 0, OPTION_FLAG, FIELD(job.verify), .fallback = "yes",
     .summary = "compare each chunk read with its checksum"},
    {"rank-shift", 0, OPTION_COUNT, FIELD(job.rank_shift), .fallback = "0", .maximum = MODEL_RANKS_MAX,
     .summary = "each rank reads what the rank this much higher wrote: another node's files"},
    {"io-timeout", 0, OPTION_DURATION, FIELD(job.io_timeout_ns), .fallback = "60s", .zero = "none",
     .summary = "fail if a write or read takes longer"},
    {"rank-timeout", 0, OPTION_DURATION, FIELD(job.rank_timeout_ns), .fallback = "60s", .zero = "none",
     .summary = "abort if a rank that others wait for is unresponsive this long"},
    {"step-time", 0, OPTION_DURATION, FIELD(job.step_ns), .fallback = "none", .zero = "none",
     .section = "Training",
     .summary = "emulate a training loop: time of a step"},
    {"interval", 'i', OPTION_COUNT, FIELD(job.interval), .fallback = "10", .minimum = 1,
     .maximum = 1e9, .summary = "steps between checkpoints"},
    {"async", 0, OPTION_FLAG, FIELD(job.is_async), .fallback = "no",
     .summary = "train on while a checkpoint is written; the next one waits for it"},
    {"mtbf", 0, OPTION_DURATION, FIELD(job.mtbf_ns), .fallback = "3h", .minimum = 1,
     .summary = "mean time between failures, for Young's formula"},
    JOB_DROP_ROW(offsetof(struct checkpoint_settings, job.cold), "yes"),
    JOB_SERVER_ROWS(offsetof(struct checkpoint_settings, job.cold)),
    {"json", 'j', OPTION_TEXT, FIELD(json), .metavar = "FILE", .reach = OPTION_WRITES,
     .begins = "{\"schema\"",
     .section = "Output",
     .summary = "write the result as JSON; - is standard output instead of the table"},
    {"require-write-rate", 0, OPTION_SIZE, FIELD(require_write), .fallback = "none", .zero = "none",
     .per_second = true,
     .summary = "fail unless the median of the writes reaches this (500MiB/s, 1GB/s)"},
    {"require-read-rate", 0, OPTION_SIZE, FIELD(require_read), .fallback = "none", .zero = "none",
     .per_second = true, .summary = "the same of the restores"},
    {0},
};
/* clang-format on */

static void show_checkpoint_progress(void *context, bool is_read, uint64_t number, uint64_t total,
                                     uint64_t elapsed_ns)
{
    struct line *line = context;
    char bar[LINE_PART_BYTES], left[LINE_PART_BYTES], text[sizeof line->last];

    snprintf(text, sizeof text, "%s checkpoints %s%s", is_read ? "reading" : "writing",
             line_bar(bar, number, total), line_left(left, number, total, elapsed_ns));
    line_show(line, text);
}

/* "1/1000" or "0.001" */
static int parse_scale(const char *text, double *scale)
{
    char *end;
    double below = 1;

    *scale = strtod(text, &end);
    if (end != text && *end == '/') {
        const char *divisor = end + 1;
        below = strtod(divisor, &end);
        end = end == divisor ? (char *)(uintptr_t) "?" : end;
    }
    *scale /= below;
    if (end == text || *end || !(*scale > 0) || *scale > 1)
        return fail(EINVAL, "--scale %s: expected a fraction of at most 1, such as 1/1000", text);
    return 0;
}

static int fill_job(const struct checkpoint_settings *settings, const char *path,
                    struct checkpoint_job *job)
{
    *job = settings->job;
    job->path = path;
    job->leave |= job->writes == 0;
    int code = 0;
    if ((settings->require_write && !job->writes) || (settings->require_read && !job->reads))
        code = fail(EINVAL, "--require-write-rate needs --writes, --require-read-rate --reads");
    else if (job->writes == 0 && job->reads == 0)
        code = fail(EINVAL, "--writes 0 --reads 0: nothing to do");
    else if (job->is_async && job->step_ns == 0)
        code = fail(EINVAL, "--async: needs a training loop: add --step-time");
    else if (job->chunk_bytes % MODEL_BLOCK_BYTES)
        code = fail(EINVAL, "--chunk: not a multiple of 4 KiB");
    if (code == 0)
        code = model_choose(settings->model, &job->model.model);
    if (code == 0)
        code = parse_scale(settings->scale, &job->model.scale);
    if (code)
        return code;
    struct plugin_choice choice;
    if (strcmp(settings->writer, "auto") == 0)
        return 0;
    code = plugin_choose("writer", writer_registry, settings->writer, &choice);
    if (code)
        return code;
    job->writer = choice.plugin;
    plugin_release(&choice);
    return 0;
}

static int checkpoint_check(const struct invocation *invocation)
{
    struct checkpoint_job job;

    return fill_job(invocation->settings, invocation->operands[0], &job);
}

static int checkpoint_command(const struct invocation *invocation)
{
    struct checkpoint_job job;
    struct ranks ranks;
    int status = COMMAND_OK;

    if (fill_job(invocation->settings, invocation->operands[0], &job))
        return command_misused(invocation);
    int code = command_join(&ranks);
    command_on_interrupt(); /* after MPI has installed its handlers */
    if (code == 0) {
        const struct checkpoint_settings *settings = invocation->settings;
        struct line line = line_start();
        job.progress = ranks.place.rank == 0 ? show_checkpoint_progress : NULL;
        job.progress_context = &line;
        struct checkpoint_result result;
        char command[4096];
        command_text(invocation, command, sizeof command);
        job.command = command;
        code = ranks.place.rank == 0 ? outputs_check_path(settings->json, "{\"schema\"") : 0;
        code = ranks_meet(&ranks, code, NULL); /* refuse before the work, not after it */
        if (code == 0) {
            code = checkpoint_run(&job, &ranks, &result);
            line_clear(&line);
            const bool is_good = result.evidence.valid && !result.evidence.degraded_reason[0];
            const bool speaks = ranks.place.rank == 0;
            double written = 0, read = 0;
            if (code == 0 && speaks && (!settings->json || strcmp(settings->json, "-") != 0))
                code = checkpoint_report_text(&job, &result);
            if (code == 0 && speaks && settings->json)
                code = json_file_write(settings->json, checkpoint_report_json(&job, &result));
            if (code == 0 && speaks && is_good)
                code = checkpoint_report_rates(&result, &written, &read);
            if (code == 0 && speaks && is_good)
                code = command_reach("require-write-rate", written, (double)settings->require_write,
                                     "bytes/s");
            if (code == 0 && speaks && is_good)
                code = command_reach("require-read-rate", read, (double)settings->require_read,
                                     "bytes/s");
            if (code == 0)
                code = speaks ? !is_good : !result.evidence.valid;
            checkpoint_destroy(&result);
        }
    }
    if (code < 0 && (ranks.place.rank == 0 || ranks.is_unheard))
        status = command_failed(invocation);
    else if (code)
        status = COMMAND_FAILED;
    command_leave(&ranks, code < 0);
    return status;
}

const struct command command_checkpoint = {
    .name = "checkpoint",
    .summary = "measure writing and restoring the checkpoints of a language model",
    .operands = "FOLDER",
    .operands_minimum = 1,
    .operands_maximum = 1,
    .description =
        "Writes what the ranks of a model would write for a checkpoint, several times, then reads "
        "it back from verified cold caches and compares every byte by checksum. Alone, a thread "
        "stands for each rank; under mpirun or srun the ranks are divided among the processes. "
        "Rates are those of the slowest rank, from a common start to its last fsync, as in MLPerf "
        "Storage. With --step-time a training loop runs between checkpoints, and what it loses is "
        "reported. A checkpoint appears in FOLDER under its name when it is complete and durable; "
        "whatever ends the program, the last complete one stays readable. At the end the program "
        "removes what it wrote, unless --leave is given.",
    .examples =
        "iobench checkpoint /mnt/ckpt --model 8b\t105 GB by 8 ranks, 10 times, then 10 restores\n"
        "iobench checkpoint /mnt/ckpt --model 70b --scale 1/1000\tthe same files on a small "
        "machine\n"
        "mpirun -n 64 --hostfile hosts iobench checkpoint /mnt/ckpt --model 70b --rank-shift 8\t"
        "8 nodes, each restores what its neighbour wrote\n"
        "iobench checkpoint /mnt/ckpt --step-time 500ms --interval 100 --async\ttime lost to "
        "training\n",
    .options = checkpoint_options,
    .settings_size = sizeof(struct checkpoint_settings),
    .operands_reach = {OPTION_WRITES_COLD},
    .is_confined = true,
    .check = checkpoint_check,
    .run = checkpoint_command,
};
