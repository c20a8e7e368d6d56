/* SPDX-License-Identifier: Apache-2.0
 *
 * iobench run: carries out jobs, from the command line or from job files, and prints their
 * results.
 */
#include "pipeline/run.h"

#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "cmd/arguments.h"
#include "cmd/commands.h"
#include "cmd/jobfile.h"
#include "cmd/layers.h"
#include "cmd/outputs.h"
#include "cmd/progress.h"
#include "cmd/sandbox.h"
#include "cmd/synthetic.h"
#include "dataset/store.h"
#include "pack/pack.h"
#include "report/report.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct jobs {
    struct job *jobs;
    size_t count;
    struct ranks ranks; /* that carry them out; rank 0 alone speaks */
};

/* ---- which jobs ---- */

/* Defaults, the preset when there is one, the section of a job file when there is one, and the
 * command line, each over what was before it. */
static int fill(const struct invocation *invocation, const struct jobfile *jobfile, size_t section,
                const char *preset, struct job *job)
{
    option_release(job_options, job);
    *job = (struct job){0};
    int code = option_defaults(job_options, job);
    if (code == 0 && preset)
        code = layers_preset(preset, job_options, job);
    if (code == 0 && jobfile)
        code = jobfile_apply(jobfile, section, job_options, job);
    if (code == 0)
        code = layers_command_line(invocation, job_options, job);
    return code;
}

/* The preset itself is named by one of the later two. */
static int fill_with_preset(const struct invocation *invocation, const struct jobfile *jobfile,
                            size_t section, struct job *job)
{
    int code = fill(invocation, jobfile, section, NULL, job);
    char *preset = code == 0 && job->as ? strdup(job->as) : NULL;

    if (preset)
        code = fill(invocation, jobfile, section, preset, job);
    free(preset);
    return code;
}

static int add_section(const struct invocation *invocation, const struct jobfile *jobfile,
                       size_t section, struct jobs *jobs)
{
    if (memory_room(&jobs->jobs, jobs->count, sizeof *jobs->jobs, "jobs"))
        return -ENOMEM;
    struct job *job = &jobs->jobs[jobs->count++];
    *job = (struct job){0};
    int code = fill_with_preset(invocation, jobfile, section, job);
    if (code == 0 && !job->label)
        code = option_set(job_options, job, "label", jobfile->sections[section].name, "label");
    return code;
}

static int load_jobfiles(const struct invocation *invocation, struct jobs *jobs)
{
    int code = 0;

    for (int i = 0; i < invocation->count && code == 0; i++) {
        struct jobfile jobfile;
        code = jobfile_load(invocation->operands[i], &jobfile);
        jobfile.allow_commands = invocation->allow_commands;
        for (size_t k = 0; code == 0 && k < jobfile.section_count; k++)
            if (!jobfile.sections[k].global)
                code = add_section(invocation, &jobfile, k, jobs);
        jobfile_release(&jobfile);
    }
    return code;
}

static void release_jobs(struct jobs *jobs)
{
    for (size_t i = 0; i < jobs->count; i++)
        option_release(job_options, &jobs->jobs[i]);
    free(jobs->jobs);
}

static bool speaks(const struct jobs *jobs)
{
    return jobs->ranks.place.rank == 0;
}

/* All jobs are looked at before the first one begins. */
static int check_jobs(struct jobs *jobs)
{
    int code = 0;

    for (size_t i = 0; i < jobs->count && code == 0; i++) {
        struct job_plugins plugins;
        struct job *job = &jobs->jobs[i];
        code = job_share(job, &jobs->ranks.place);
        if (code == 0) {
            code = job_choose(job, &plugins);
            job_release(&plugins);
        }
        store_set_timeout(job->io_timeout_ns);
        if (code == 0 && job->data)
            code = arguments_check_data(job->data);
        if (code == 0 && speaks(jobs))
            code = outputs_check(job);
    }
    return ranks_meet(&jobs->ranks, code, NULL);
}

/* ---- carrying them out ---- */

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
    stopped = number;
    pack_interrupt(); /* it may be making the data */
    run_interrupt();
}

static bool takes_stdout(const struct job *job)
{
    return job_stdout_count(job) > 0;
}

/* Launchers put a terminal between, whatever their own output is. */
static bool wants_color(const struct result *result)
{
    const char *no_color = getenv("NO_COLOR");

    return result->ranks == 1 && isatty(STDOUT_FILENO) && !(no_color && *no_color);
}

static void print_result(const struct result *result, const struct summary *summary)
{
    if (result->job->dry_run && result->valid)
        report_plan(stdout, result);
    else if (!takes_stdout(result->job))
        report_text(stdout, result, summary, wants_color(result));
    fflush(stdout);
}

/* A job that broke before its first run has no table, but its files say that it is invalid.
 * Returns an enum command_exit. */
static int show(const struct invocation *invocation, struct result *result, struct outputs *outputs)
{
    struct summary *summary = memory_zeroed(sizeof *summary);
    int status = result->valid ? COMMAND_OK : COMMAND_FAILED;

    if (!summary)
        return command_failed(invocation);
    command_text(invocation, result->place.command, sizeof result->place.command);
    int code = summary_make(result, summary);
    if (code == 0 && (result->valid || result->run_count))
        print_result(result, summary);
    if (code == 0 && !result->job->dry_run)
        code = outputs_add(outputs, result, summary);
    if (summary->all.skipped || *result->degraded_reason)
        status = COMMAND_FAILED;
    free(summary);
    return code ? command_failed(invocation) : status;
}

/* Who is stuck does not say why; the others then speak for it. */
static int tell_failure(const struct invocation *invocation, const struct jobs *jobs)
{
    return speaks(jobs) || jobs->ranks.is_unheard ? command_failed(invocation) : COMMAND_FAILED;
}

static int prepare_data(void *context)
{
    return synthetic_prepare(context);
}

/* Returns an enum command_exit. */
static int carry_out(const struct invocation *invocation, struct jobs *jobs, struct job *job,
                     struct outputs *outputs)
{
    bool synthetic = !job->data;
    struct progress progress = progress_start(job);
    const struct run_observer observer = {.progress = speaks(jobs) ? progress_show : NULL,
                                          .context = &progress};
    struct result result;

    store_set_timeout(job->io_timeout_ns);
    if (synthetic) {
        int code = ranks_in_turn(&jobs->ranks, prepare_data, job);
        if (code == -ENOENT && job->dry_run) {
            if (speaks(jobs))
                puts(fail_reason());
            return COMMAND_OK;
        }
        if (code)
            return tell_failure(invocation, jobs);
    }
    int code = (job->dry_run ? run_plan : run_job)(job, &jobs->ranks, &observer, &result);
    progress_clear(&progress);
    int status = code ? tell_failure(invocation, jobs) : COMMAND_OK;
    result.data_was_made = synthetic;
    if (speaks(jobs))
        status = show(invocation, &result, outputs);
    else if (!result.valid)
        status = COMMAND_FAILED;
    result_destroy(&result);
    return status;
}

/* One that fails does not keep the others from running; a signal does. */
static int carry_out_all(const struct invocation *invocation, struct jobs *jobs)
{
    struct outputs outputs;
    int status = COMMAND_OK;

    if (outputs_open(&outputs, jobs->count))
        return command_failed(invocation);
    for (size_t i = 0; i < jobs->count; i++) {
        if (i && ranks_meet(&jobs->ranks, stopped ? -EINTR : 0, NULL))
            break;
        if (i && speaks(jobs) && !takes_stdout(&jobs->jobs[i]))
            putchar('\n');
        int job_status = carry_out(invocation, jobs, &jobs->jobs[i], &outputs);
        status = job_status ? job_status : status;
    }
    if (outputs_finish(&outputs))
        status = command_failed(invocation);
    outputs_close(&outputs);
    return status;
}

static int join_and_carry_out(const struct invocation *invocation, struct jobs *jobs)
{
    if (sandbox_enter(invocation, jobs->jobs, jobs->count))
        return command_failed(invocation);
    int status, code = command_join(&jobs->ranks);
    if (code) {
        status = command_failed(invocation);
    } else if (check_jobs(jobs)) {
        status = command_misused(invocation);
    } else {
        command_on_interrupt(on_signal); /* after MPI's own */
        status = carry_out_all(invocation, jobs);
    }
    ranks_leave(&jobs->ranks, status != COMMAND_OK);
    return status;
}

static int run_run(const struct invocation *invocation)
{
    struct jobs jobs = {.jobs = invocation->settings, .count = 1};
    bool from_files = invocation->count > 0;
    int status, code = 0;

    if (from_files) {
        jobs = (struct jobs){0};
        code = load_jobfiles(invocation, &jobs);
    } else {
        code = fill_with_preset(invocation, NULL, 0, jobs.jobs);
    }
    status = code ? command_misused(invocation) : join_and_carry_out(invocation, &jobs);
    if (from_files)
        release_jobs(&jobs);
    return status;
}

const struct command command_run = {
    .name = "run",
    .summary = "read a data set as training does, and report how fast it arrived",
    .operands = "[JOBFILE...]",
    .operands_maximum = -1,
    .description =
        "Reads a data set as training does: in a shuffled order, decoded, in batches. Reports "
        "samples a second, how many GPUs that feeds, who waited for whom, and whether the caches "
        "were really empty. A job file holds several jobs, which are carried out one after the "
        "other; it may start programs (server-drop-cmd, server-check-cmd) only with "
        "--allow-commands. Started by "
        "mpirun or srun, all processes share the job and rank 0 prints.",
    .examples =
        "iobench\tmake a synthetic set where there is room, read it, print the table\n"
        "iobench --data /mnt/imagenet --drop-caches\tthree cold runs, proven cold\n"
        "iobench --data /mnt/set --trainer replay:h200,gpus=8\tare eight H200 kept busy?\n"
        "mpirun -n 16 --hostfile hosts iobench --data /mnt/set --drop-caches\tfour nodes with "
        "four ranks each, as one job\n",
    .options = job_options,
    .settings_size = sizeof(struct job),
    .run = run_run,
};
