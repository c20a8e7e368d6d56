/* SPDX-License-Identifier: Apache-2.0
 *
 * iobench run: runs jobs from the command line or from job files and prints their results. Rivals
 * are jobs measured in one session and compared with the first: A, and B with the options of
 * --against added to A's.
 */
#include "base/clock.h"
#include "base/escape.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/stats.h"
#include "base/stop.h"
#include "cmd/arguments.h"
#include "cmd/commands.h"
#include "cmd/outputs.h"
#include "cmd/layers.h"
#include "cmd/line.h"
#include "cmd/members.h"
#include "cmd/pack/packing.h"
#include "dataset/store.h"
#include "pipeline/jobs/run.h"
#include "pipeline/jobs/session.h"
#include "pipeline/settings/job.h"
#include "report/compare.h"
#include "report/report.h"
#include "report/words.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct start_at {
    const char *text; /* as given */
    struct ranks *ranks;
};

struct sections {
    struct invocation *list;
    size_t count;
};

/* ---- --start-at ---- */

static const double nap_s = 0.05, late_most_s = 1; /* of one nap, on a busy machine */
static const double most_s = 7 * 86400.0;          /* a later time is a mistake */

/* "2026-01-31T12:00:00Z", or "@1769860800" as of touch and date. Returns 0 or -EINVAL. */
static int parse(const char *text, double *unix_s)
{
    struct tm parts = {0};
    char *end = NULL;

    if (text[0] == '@' && text[1] >= '0' && text[1] <= '9') {
        *unix_s = strtod(text + 1, &end);
    } else {
        end = strptime(text, "%Y-%m-%dT%H:%M:%SZ", &parts);
        *unix_s = end ? (double)timegm(&parts) : 0;
    }
    return end && *end == '\0'
               ? 0
               : fail(EINVAL,
                      "--start-at: '%s' is neither UTC, as in 2026-01-31T12:00:00Z, nor "
                      "seconds since 1970, as in @1769860800",
                      text);
}

static double left_s(double unix_s)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return unix_s - (double)now.tv_sec - (double)now.tv_nsec * 1e-9;
}

/* Check --start-at of a job. Returns 0 or -EINVAL with a reason. */
static int start_at_check(const struct job *job)
{
    double unix_s;

    if (!job->start_at)
        return 0;
    if (job->runs != 1 || job->against || job->beside || job->paired)
        return fail(EINVAL, "--start-at starts one run: it needs --runs 1, and neither --against, "
                            "--paired nor --beside");
    const int code = parse(job->start_at, &unix_s);
    return code || left_s(unix_s) <= most_s
               ? code
               : fail(EINVAL,
                      "--start-at %s: %.0f days from now, expected at most 7 (seconds, not "
                      "milliseconds)",
                      job->start_at, left_s(unix_s) / 86400);
}

/* gate of struct run_observer: wait once the caches are dropped. Too late is a failure. */
static int start_at_wait(void *context, enum run_gate gate)
{
    const struct start_at *start = context;
    double unix_s;

    if (gate != RUN_GATE_START)
        return 0;
    int code = parse(start->text, &unix_s);
    double left = code ? 0 : left_s(unix_s);
    if (left < 0)
        code = fail(ETIME, "--start-at %s: the run was ready %.3f s too late: choose a later time",
                    start->text, -left);
    for (; left > 0 && code == 0; left = left_s(unix_s)) {
        code = stop_check();
        if (code == 0 && ranks_called_off(start->ranks)) /* it is also the heartbeat */
            code = fail(ECANCELED, "another rank failed");
        if (code == 0)
            clock_sleep_ns((uint64_t)((left < nap_s ? left : nap_s) * 1e9));
    }
    if (code == 0 && left < -late_most_s)
        code = fail(ETIME,
                    "--start-at %s: the wait ended %.3f s too late: choose a later time (the "
                    "process was stopped, or the time of day was set)",
                    start->text, -left);
    return ranks_meet(start->ranks, code, NULL);
}

/* ---- progress ---- */

void progress_show(void *context, const struct run_progress *now)
{
    struct line *shown = context;
    char line[sizeof shown->last];

    if (now->phase == RUN_DONE) {
        line_clear(shown);
    } else if (shown->shown) {
        if (now->phase == RUN_EPOCH) {
            /* Short enough for any terminal: the time left comes before the rate. */
            const struct job *job = now->job;
            double seconds = (double)now->elapsed_ns * 1e-9;
            char bar[LINE_PART_BYTES], left[LINE_PART_BYTES], epoch[64] = "", rate[WORDS_BYTES];
            char mib[WORDS_BYTES], of[32] = "";
            if (job->epochs > 1)
                snprintf(epoch, sizeof epoch, ", epoch %" PRIu64 "/%" PRIu64, now->epoch + 1,
                         job->epochs);
            if (job->runs)
                snprintf(of, sizeof of, "/%" PRIu64, job->runs);
            int length = snprintf(line, sizeof line, "run %" PRIu64 "%s%s  %s%s", now->run + 1, of,
                                  epoch, line_bar(bar, now->done, now->total),
                                  line_left(left, now->done, now->total, now->elapsed_ns));
            if (now->done && seconds > 0 && (size_t)length < sizeof line)
                snprintf(line + length, sizeof line - (size_t)length, "  %s samples/s  %s MiB/s",
                         words_rate((double)now->done / seconds, rate),
                         words_rate((double)now->bytes / seconds / 1048576, mib));
        } else {
            const size_t bytes = sizeof line;
            const bool drops = now->job->cold.drop_caches != JOB_DROP_NO;
            const char *const phases[] = {
                [RUN_INDEX] = "indexing",
                [RUN_DROP] = drops ? "dropping caches" : "checking the caches",
                [RUN_CALIBRATE] = "calibrating",
            };
            char bar[LINE_PART_BYTES], left[LINE_PART_BYTES];
            if (now->total)
                snprintf(line, bytes, "%s  %s%s", phases[now->phase],
                         line_bar(bar, now->done, now->total),
                         line_left(left, now->done, now->total, now->elapsed_ns));
            else
                snprintf(line, bytes, "%s, %.0f s", phases[now->phase],
                         (double)now->elapsed_ns * 1e-9);
        }
        line_show(shown, line);
    }
}

/* ---- sections of other commands ---- */

static const char command_key[] = "command";

/* Append one. Returns 0, or a negative errno with a reason "FILE:LINE: ...". */
static int sections_add(struct sections *sections, const struct jobfile *jobfile, size_t section,
                        const struct invocation *invocation)
{
    const struct ini_section *part = &jobfile->ini.sections[section];
    const struct ini_entry *entry = ini_find(&jobfile->ini, part, command_key);
    const struct command *command = entry->value ? command_find(entry->value) : NULL;

    if (!command || !command->check)
        return fail(EINVAL,
                    "%s:%u: command=%s: not a command for job files: expected checkpoint or net, "
                    "or no command= for run",
                    jobfile->ini.path, entry->line, entry->value ? entry->value : "");
    if (memory_room(&sections->list, sections->count, sizeof *sections->list, "jobs"))
        return -ENOMEM;
    struct invocation *job = &sections->list[sections->count++];
    *job = (struct invocation){
        .command = command,
        .settings = memory_zeroed(command->settings_size + 1),
        .sandbox = invocation->sandbox,
        .argv = memory_array(part->count + 1, sizeof *job->argv),
        .operands = memory_array(2, sizeof *job->operands),
    };
    uint32_t lines[JOBFILE_OPTIONS_MOST] = {0};
    int code = job->settings && job->argv && job->operands
                   ? option_defaults(command->options, job->settings)
                   : fail(ENOMEM, "out of memory");
    for (size_t i = 0; i < part->count && code == 0; i++) {
        const struct ini_entry *given = &jobfile->ini.entries[part->first + i];
        /* "folder" of FOLDER, the only operand */
        const bool is_operand = command->operands && strcasecmp(command->operands, given->key) == 0;
        char *text = NULL;
        if (strcmp(given->key, command_key) == 0)
            continue;
        if (!is_operand)
            code = jobfile_apply_entry(jobfile, given, command->options, job->settings, lines);
        else if (job->count)
            code = fail(EINVAL, "%s:%u: a second %s", jobfile->ini.path, given->line, given->key);
        else if (!given->value)
            code =
                fail(EINVAL, "%s:%u: %s needs a value", jobfile->ini.path, given->line, given->key);
        if (code)
            return code;
        /* The command line that is the same job, for command_text(). */
        if ((is_operand     ? asprintf(&text, "%s", given->value)
             : given->value ? asprintf(&text, "--%s=%s", given->key, given->value)
                            : asprintf(&text, "--%s", given->key)) < 0)
            return fail(ENOMEM, "out of memory");
        job->argv[job->argc++] = text;
        if (is_operand)
            job->operands[job->count++] = text;
    }
    if (code == 0 && job->count < command->operands_minimum)
        return fail(EINVAL, "%s:%u: [%s] names no %s", jobfile->ini.path, entry->line, part->name,
                    command->operands);
    job->behind = job->count;
    if (code == 0 && command->check(job))
        code = fail(EINVAL, "%s:%u: [%s]: %s", jobfile->ini.path, entry->line, part->name,
                    fail_reason());
    return code;
}

static void sections_release(struct sections *sections)
{
    for (size_t i = 0; i < sections->count; i++) {
        struct invocation *job = &sections->list[i];
        if (job->settings)
            option_release(job->command->options, job->settings);
        for (int k = 0; k < job->argc; k++)
            free(job->argv[k]);
        free(job->settings);
        free(job->argv);
        free(job->operands);
    }
    free(sections->list);
}

/* ---- --beside: what two jobs at once did to each other, round by round ---- */

/* Return the sum of a figure over a run's epochs. */
static double sum_of(const json_t *run, const char *key)
{
    const json_t *epoch;
    double sum = 0;
    size_t i;

    json_array_foreach(json_object_get(run, "epochs"), i, epoch) sum += load_number(epoch, key);
    return sum;
}

static double mean(const double *values, size_t count)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return sum / (double)count;
}

static void put_ratio(json_t *object, const char *key, const struct paired *paired)
{
    char name[64];

    json_put_number(object, key, paired->ratio);
    snprintf(name, sizeof name, "%s_low95", key);
    json_put_number(object, name, paired->low);
    snprintf(name, sizeof name, "%s_high95", key);
    json_put_number(object, name, paired->high);
}

json_t *beside_json(json_t *const documents[BESIDE_MEMBERS], bool has_shared_data)
{
    const size_t count = json_array_size(json_object_get(documents[0], "runs"));
    double *values = memory_array((2 * BESIDE_MEMBERS + 2) * count + 1, sizeof *values);
    double *walls[BESIDE_MEMBERS], *samples[BESIDE_MEMBERS], shared = 0; /* of each round */
    json_t *object = json_object();
    int code = values ? 0 : -ENOMEM;

    for (size_t i = 0; i < BESIDE_MEMBERS && code == 0; i++) {
        const json_t *runs = json_object_get(documents[i], "runs");
        walls[i] = values + i * count;
        samples[i] = walls[i] + BESIDE_MEMBERS * count;
        if (json_array_size(runs) != count || count == 0)
            code = fail(ENODATA, "the jobs did not make the same runs");
        for (size_t k = 0; k < count && code == 0; k++) {
            walls[i][k] = sum_of(json_array_get(runs, k), "wall_s");
            samples[i][k] = sum_of(json_array_get(runs, k), "samples");
        }
    }
    json_object_set_new(object, "rounds", json_integer((json_int_t)count));
    json_object_set_new(object, "same_data", json_boolean(has_shared_data));
    json_t *jobs = json_put_new(object, "jobs", json_array());
    for (int i = 0; i < BESIDE_JOBS && code == 0; i++) {
        const double *alone = walls[i], *beside = walls[i + BESIDE_JOBS];
        const struct paired paired = paired_test(alone, beside, count, 1, false);
        const char *label = load_text(documents[i], "label");
        const char *comma = label ? strrchr(label, ',') : NULL; /* of ", alone" */
        json_t *job = json_append_new(jobs, json_object());
        json_object_set_new(
            job, "label", comma ? json_text_of(label, (size_t)(comma - label)) : json_text(label));
        json_put_number(job, "alone_s", mean(alone, count));
        json_put_number(job, "beside_s", mean(beside, count));
        json_put_number(job, "alone_samples_per_s", mean(samples[i], count) / mean(alone, count));
        json_put_number(job, "beside_samples_per_s",
                        mean(samples[i + BESIDE_JOBS], count) / mean(beside, count));
        put_ratio(job, "slow_down", &paired);
    }
    if (code == 0) { /* both start together: the time at once lasts until the later one ends */
        double *in_turn = values + 2 * BESIDE_MEMBERS * count, *at_once = in_turn + count;
        for (size_t i = 0; i < count; i++) {
            in_turn[i] = walls[0][i] + walls[1][i];
            at_once[i] = fmax(walls[2][i], walls[3][i]);
            shared += fmin(walls[2][i], walls[3][i]) / at_once[i];
        }
        const struct paired gain = paired_test(at_once, in_turn, count, 1, false);
        json_put_number(object, "in_turn_s", mean(in_turn, count));
        json_put_number(object, "at_once_s", mean(at_once, count));
        json_put_number(object, "overlap_percent", 100 * shared / (double)count);
        put_ratio(object, "gain", &gain);
    }
    free(values);
    if (code == 0)
        return object;
    json_decref(object);
    return NULL;
}

/* ---- text ---- */

static void print_interval(FILE *stream, const json_t *object, const char *key)
{
    char name[64];

    snprintf(name, sizeof name, "%s_low95", key);
    const double low = load_number(object, name);
    snprintf(name, sizeof name, "%s_high95", key);
    const double high = load_number(object, name);
    if (isfinite(low) && isfinite(high))
        fprintf(stream, " (%.2f .. %.2f)", low, high);
}

void beside_text(FILE *stream, const json_t *beside)
{
    const json_t *job;
    char alone[WORDS_BYTES], together[WORDS_BYTES];
    size_t i;

    fprintf(stream,
            "Side by side: %.0f rounds of each job alone and both at once\n\n"
            "  %-30s %12s %12s  %s\n",
            load_number(beside, "rounds"), "samples/s", "alone", "beside", "slow-down");
    json_array_foreach(json_object_get(beside, "jobs"), i, job)
    {
        const char *label = load_text(job, "label");
        words_rate(load_number(job, "alone_samples_per_s"), alone);
        words_rate(load_number(job, "beside_samples_per_s"), together);
        fprintf(stream, "  %-30.30s %12s %12s  %.2f", escape_shown(label ? label : "-"), alone,
                together, load_number(job, "slow_down"));
        print_interval(stream, job, "slow_down");
        fputc('\n', stream);
    }
    const double gain = load_number(beside, "gain");
    fprintf(stream, "\n  Both     %.3g s one after the other, %.3g s at once: %.2f times as fast",
            load_number(beside, "in_turn_s"), load_number(beside, "at_once_s"), gain);
    print_interval(stream, beside, "gain");
    fprintf(stream, "\n  Overlap  %.0f%% of the time at once both were at work\n",
            load_number(beside, "overlap_percent"));
    if (load_true(beside, "same_data"))
        fputs("  Caches   both read the same files: what one brings into memory the other finds "
              "there\n",
              stream);
}

/* ---- carrying them out ---- */

/* Two paths may lead to one set; a set that is not local is known by its path alone, a synthetic
 * one by its format. */
static bool reads_same(const struct job *jobs)
{
    const char *a = jobs[0].read.data, *b = jobs[1].read.data;
    struct stat first, second;

    if (!a || !b)
        return !a && !b && strcmp(jobs[0].read.format, jobs[1].read.format) == 0;
    if (stat(a, &first) || stat(b, &second))
        return strcmp(a, b) == 0;
    return first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

/* ---- the command ---- */

/* Check what a job names, before any job starts. */
static int check_one(const struct job *job)
{
    struct job_plugins plugins;
    int code = job_choose(job, &plugins);

    job_release(&plugins);
    if (code == 0)
        code = start_at_check(job);
    return code || !job->read.data ? code : arguments_check_data("data", job->read.data);
}

static int check(const struct job *jobs)
{
    int code = 0;

    if (ranks_are_launched())
        return fail(EINVAL, "--beside is for one process, without mpirun or srun");
    if (jobs[0].turns > 1)
        return fail(EINVAL, "--turns cannot be used with --beside");
    if (jobs[0].runs == 0 || jobs[1].runs != jobs[0].runs)
        return fail(EINVAL, "--beside needs one fixed number of --runs for both jobs");
    for (int i = 0; i < BESIDE_JOBS; i++)
        if (jobs[i].output.csv || jobs[i].output.series || jobs[i].output.profile ||
            jobs[i].output.trace)
            return fail(EINVAL, "--beside writes --json only, no --csv, --series, --profile or "
                                "--trace");
    if (jobs[1].output.json &&
        (!jobs[0].output.json || strcmp(jobs[0].output.json, jobs[1].output.json) != 0))
        return fail(EINVAL, "--beside '--json %s': both jobs share one --json",
                    jobs[1].output.json);
    for (int i = 0; i < BESIDE_JOBS && code == 0; i++)
        code = check_one(&jobs[i]);
    return code ? code : outputs_check(&jobs[0], "{\"schema\"", "label,valid");
}

/* Run jobs[0] (with --beside) and jobs[1] (its options applied). Returns enum command_exit. */
static int beside_carry_out(const struct invocation *invocation, struct job *jobs)
{
    static const unsigned stages[] = {1 << 0, 1 << 1, 1 << 2 | 1 << 3};
    enum { STAGES = sizeof stages / sizeof *stages };
    struct members members = {.invocation = invocation};
    const uint64_t rounds = jobs[0].dry_run ? 0 : jobs[0].runs;
    const char *path = jobs[0].output.json;
    const bool has_text = !path || strcmp(path, "-") != 0;
    uint32_t seed = (uint32_t)jobs[0].order_seed, order[STAGES];
    json_t *documents = NULL, *list[BESIDE_MEMBERS], *figures = NULL;
    int status = COMMAND_OK, code = 0;

    if (check(jobs))
        return command_misused(invocation);
    if (!seed && getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed)
        code = fail(EIO, "no random numbers: %s", fail_errno_text(errno));
    for (int i = 0; i < BESIDE_MEMBERS && code == 0; i++)
        code = members_start(&members, &jobs[i % BESIDE_JOBS],
                             i < BESIDE_JOBS ? "alone" : "beside the other", run_as_member);
    if (code == 0)
        code = sandbox_enter(invocation, jobs, BESIDE_JOBS);
    command_on_interrupt();
    if (code == 0)
        code = members_prepare(&members, 0, 0);
    for (uint64_t round = 0; round < rounds && code == 0; round++) {
        random_order(seed, round, order, STAGES);
        for (uint32_t i = 0; i < STAGES && code == 0; i++) {
            const unsigned stage = stages[order[i]];
            code = members_ready(&members, stage);
            if (code == 0)
                code = members_go(&members, stage);
            if (code == 0)
                code = members_await(&members, stage, round + 1 == rounds);
        }
    }
    if (code)
        status = command_failed(invocation);
    members_end(&members, code);
    for (uint32_t i = 0; i < members.started; i++)
        status = members.list[i].status ? members.list[i].status : status;
    if (code == 0) {
        documents = json_array();
        for (uint32_t i = 0; i < BESIDE_MEMBERS && has_text; i++)
            members_print(&members.list[i]);
        for (uint32_t i = 0; i < BESIDE_MEMBERS && code == 0; i++) {
            code = members_collect(&members.list[i], documents);
            list[i] = json_array_get(documents, i);
        }
        if (code == 0 && !(figures = beside_json(list, reads_same(jobs))))
            code = -ENOMEM;
        if (code == 0 && has_text)
            beside_text(stdout, figures);
        if (code == 0 && path) {
            json_t *beside = json_pack("{s:O}", "beside", figures);
            code = json_file_write(path, beside ? report_json_document(documents, beside) : NULL);
            json_decref(beside);
        }
        status = code ? command_failed(invocation) : status;
    }
    json_decref(figures);
    json_decref(documents);
    members_release(&members);
    return status;
}

/* ---- rivals ---- */

/* Apply line number `line` of the first job's --against, or its --beside, to job. It is split at
 * blanks, with a shell's quotes and backslashes, and becomes the job's label unless it sets one.
 * Returns 0, or a negative errno with a reason. */
static int rivals_apply(const struct job *first, size_t line, struct job *job)
{
    const char *option = first->beside ? "--beside" : "--against";
    const char *against = first->beside ? first->beside : first->against;
    struct arguments arguments = {0};
    const struct arguments_scope scopes[] = {{.table = job_options, .settings = job}, {0}};

    for (; line; line--)
        against = strchr(against, '\n') + 1;
    char *options = strndup(against, strcspn(against, "\n"));
    char *copy = options ? strdup(options) : NULL;
    char **words = copy ? memory_array(strlen(copy) + 1, sizeof *words) : NULL;

    free(job->output.label);
    free(job->against);
    free(job->beside);
    job->output.label = job->against = job->beside = NULL;
    int code = words ? arguments_split(copy, words) : fail(ENOMEM, "out of memory");
    if (code >= 0)
        code = arguments_parse(scopes, code, words, &arguments);
    if (code == 0 && arguments.count)
        code = fail(EINVAL, "'%s' is not an option", arguments.operands[0]);
    if (code == 0 && (job->against || job->beside))
        code = fail(EINVAL, "--against or --beside inside another job's options");
    free(arguments.operands);
    free(words);
    if (code) {
        code = fail(-code, "%s '%s': %s", option, options ? options : "", fail_reason());
    } else if (!job->output.label) {
        code = option_set(job_options, job, "label", options, option);
    }
    free(copy);
    free(options);
    return code;
}

/* Check that the jobs can share a session. Returns 0, or -EINVAL with a reason. */
static int rivals_check(const struct job *jobs, size_t count)
{
    const struct job *first = &jobs[0];

    if (job_runs_most(first) > PAIRED_MAX)
        return fail(EINVAL, "%llu runs of --turns %llu each are too many, at most %d in all",
                    (unsigned long long)(job_runs_most(first) / first->turns),
                    (unsigned long long)first->turns, PAIRED_MAX);
    if (count > RUN_JOBS_MAX)
        return fail(EINVAL, "cannot alternate %zu jobs, at most %d", count, RUN_JOBS_MAX);
    for (size_t i = 1; i < count; i++) {
        const struct job *rival = &jobs[i];
        if (rival->runs != first->runs || rival->until_percent != first->until_percent ||
            rival->until_runs != first->until_runs || rival->until_time_ns != first->until_time_ns)
            return fail(
                EINVAL,
                "'%s': alternating jobs must have the same number of runs (--runs, --until)",
                rival->output.label);
        if (rival->turns != first->turns)
            return fail(EINVAL, "'%s': alternating jobs must have the same --turns",
                        rival->output.label);
        if (rival->dry_run != first->dry_run)
            return fail(EINVAL, "'%s': --dry-run must apply to all alternating jobs",
                        rival->output.label);
    }
    return 0;
}

struct jobs {
    struct job *jobs;
    size_t count;
    bool take_turns;    /* alternate runs in one session, then compare */
    struct ranks ranks; /* of the jobs; only rank 0 prints */
    const int *gate;    /* at which the job waits for another; NULL: none */
    json_t *documents;  /* results are added; NULL: not wanted */
};

/* A job's line in the table after the last one; 0: it has no result. */
struct job_rates {
    double samples_per_s, bytes_per_s;
    enum result_cache cache; /* before the runs */
    const char *mark;        /* "DEGRADED", "INVALID"; NULL: none */
};

/* ---- which jobs ---- */

struct job_source {
    const struct invocation *invocation;
    const struct jobfile *jobfile; /* NULL: the command line alone */
    size_t section;
    const struct job *first; /* whose rival the job is; NULL: none */
    size_t line;             /* of --against */
};

/* Apply, in this order: defaults, workload, preset, section of a job file, command line, and what
 * makes it a rival. */
static int fill(const struct job_source *from, const struct job *layers, struct job *job)
{
    const struct invocation *invocation = from->invocation;

    *job = (struct job){0};
    int code = option_defaults(job_options, job);
    if (code == 0 && layers && layers->workload)
        code = layers_workload(layers->workload, job_options, job);
    if (code == 0 && layers && layers->as)
        code = layers_preset(layers->as, job_options, job);
    if (code == 0 && from->jobfile)
        code = jobfile_apply(from->jobfile, from->section, job_options, job);
    if (code == 0)
        code = layers_command_line(invocation, job_options, job);
    if (code == 0 && !from->jobfile && invocation->count && job->read.data)
        return fail(EINVAL, "only one of --data %s and %s can be given", job->read.data,
                    invocation->operands[0]);
    if (code == 0 && !from->jobfile && invocation->count)
        code = option_set(job_options, job, "data", invocation->operands[0], "data");
    return code || !from->first ? code : rivals_apply(from->first, from->line, job);
}

/* Append a job. Its source names the workload and the preset that apply before the source. */
static int add_job(struct jobs *jobs, struct job_source *from)
{
    if (memory_room(&jobs->jobs, jobs->count, sizeof *jobs->jobs, "jobs"))
        return -ENOMEM;
    struct job *job = &jobs->jobs[jobs->count++];
    from->first = from->first ? jobs->jobs : NULL;
    int code = fill(from, NULL, job);
    struct job named = *job;

    if (code || (!named.as && !named.workload))
        return code;
    code = fill(from, &named, job);
    option_release(job_options, &named);
    return code;
}

/* The job's --against rivals follow it. */
static int add_command_line(const struct invocation *invocation, struct jobs *jobs)
{
    struct job_source from = {.invocation = invocation};
    int code = add_job(jobs, &from);
    struct job *first = jobs->jobs;
    size_t rivals = code || (!first->beside && !first->against) ? 0 : 1;

    for (const char *at = code || first->beside ? NULL : first->against; at && *at; at++)
        rivals += *at == '\n';
    if (code == 0 && first->beside && first->against)
        return fail(EINVAL, "only one of --beside and --against can be given");
    if (rivals && !first->output.label)
        code = option_set(job_options, first, "label", "as given", "label");
    for (from.first = first; from.line < rivals && code == 0; from.line++)
        code = add_job(jobs, &from);
    jobs->take_turns = rivals > 0 && !jobs->jobs[0].beside;
    return code;
}

/* Return whether the operand is a data set. A job file is text, or named so. */
static bool is_data(const char *path)
{
    const char *dot = strrchr(path, '.');
    unsigned char head[512];

    if (dot && strcmp(dot, ".ini") == 0 && !file_is_folder(path))
        return false;
    if (!store_is_local(path) || strstr(path, "://") || file_is_folder(path))
        return true;
    for (size_t i = 0, bytes = store_peek(path, head, sizeof head); i < bytes; i++)
        if (head[i] < '\t' || (head[i] > '\r' && head[i] < ' '))
            return true;
    return false;
}

static int load_jobfiles(const struct invocation *invocation, struct jobs *jobs,
                         struct sections *others)
{
    int code = 0;

    for (int i = 0; i < invocation->count && code == 0; i++) {
        struct jobfile jobfile;
        code = jobfile_load(invocation->operands[i], &jobfile);
        jobfile.allow_commands = invocation->allow_commands;
        for (size_t k = 0; code == 0 && k < jobfile.ini.section_count; k++) {
            const struct ini_section *section = &jobfile.ini.sections[k];
            if (jobfile_is_global(&jobfile, k))
                continue;
            if (ini_find(&jobfile.ini, section, command_key)) {
                code = sections_add(others, &jobfile, k, invocation);
                continue;
            }
            code = add_job(jobs, &(struct job_source){invocation, &jobfile, k, NULL, 0});
            if (code)
                break;
            struct job *job = &jobs->jobs[jobs->count - 1];
            jobs->take_turns |= job->paired;
            if (job->against)
                code = fail(EINVAL, "--against works on a command line; use --paired to compare "
                                    "the sections of a job file");
            else if (job->beside)
                code = fail(EINVAL, "--beside works on a command line only");
            else if (!job->output.label)
                code = option_set(job_options, job, "label", section->name, "label");
        }
        jobfile_release(&jobfile);
    }
    return code;
}

static bool speaks(const struct jobs *jobs)
{
    return jobs->ranks.place.rank == 0;
}

/* Check all jobs before the first one starts. */
static int check_jobs(struct jobs *jobs)
{
    int code = 0;

    for (size_t i = 0; i < jobs->count && code == 0; i++) {
        struct job *job = &jobs->jobs[i];
        code = job_share(job, &jobs->ranks.place);
        store_set_timeout(job->read.io_timeout_ns);
        if (code == 0)
            code = check_one(job);
        if (code == 0 && speaks(jobs))
            code = outputs_check(job, "{\"schema\"", "label,valid");
    }
    if (code == 0 && speaks(jobs))
        code = outputs_check_jobs(jobs->jobs, jobs->count);
    if (code == 0 && jobs->take_turns)
        code = rivals_check(jobs->jobs, jobs->count);
    for (size_t i = 0; i < jobs->count && code == 0 && !jobs->take_turns; i++)
        if (jobs->jobs[i].turns > 1)
            code = fail(EINVAL, "--turns needs --against or --paired");
    return ranks_meet(&jobs->ranks, code, NULL);
}

/* ---- carrying them out ---- */

static bool takes_stdout(const struct job *job)
{
    return job_stdout_count(job) > 0;
}

/* Print a job's result. A job that failed before its first run has no table, but its files say that
 * it is invalid. all: array for its JSON, rates: for its rates, or NULL. Returns enum command_exit.
 */
static int show(const struct invocation *invocation, struct result *result, struct outputs *outputs,
                json_t *all, struct job_rates *rates)
{
    struct summary *summary = memory_zeroed(sizeof *summary);
    const char *no_color = getenv("NO_COLOR");
    struct text_stream stream;
    int status = result->valid ? COMMAND_OK : COMMAND_FAILED;

    if (!summary)
        return command_failed(invocation);
    command_text(invocation, result->environment.command, sizeof result->environment.command);
    int code = summary_make(result, summary);
    if (code == 0 && (result->valid || result->run_count)) {
        if (result->job->dry_run && result->valid)
            report_plan(stdout, result);
        else if (!takes_stdout(result->job))
            report_text(stdout, result, summary,
                        /* launchers insert a terminal whatever their own output is */
                        result->ranks == 1 && isatty(STDOUT_FILENO) && !(no_color && *no_color));
        fflush(stdout);
    }
    if (code == 0 && !result->job->dry_run)
        code = outputs_add(outputs, result, summary);
    if (code == 0 && all && json_array_append_new(all, report_json(result, summary)))
        code = fail(ENOMEM, "out of memory");
    if (summary->all.skipped || *result->degraded_reason)
        status = COMMAND_FAILED;
    const char *profile = result->job->output.profile;
    if (code == 0 && result->valid && !result->job->dry_run && summary->all.samples && profile) {
        code = text_stream_open(&stream);
        if (code == 0) {
            report_profile(stream.stream, result, summary, NULL);
            code = outputs_write(profile, &stream);
        }
    }
    if (code == 0 && result->valid && !result->job->dry_run)
        code = command_reach("require-samples-per-s", summary->samples_per_s.median,
                             result->job->require_samples_per_s, "samples/s");
    if (code == 0 && result->valid && !result->job->dry_run)
        code = command_reach("require-rate", summary->bytes_per_s.median,
                             (double)result->job->require_rate_bytes, "bytes/s");
    if (rates && result->valid && summary->runs)
        *rates = (struct job_rates){summary->samples_per_s.median, summary->bytes_per_s.median,
                                    summary->cache, NULL};
    if (rates && (!result->valid || report_is_degraded(result)))
        rates->mark = result->valid ? "DEGRADED" : "INVALID";
    free(summary);
    return code ? command_failed(invocation) : status;
}

/* A stuck rank reports no cause; the other ranks do. */
static int tell_failure(const struct invocation *invocation, const struct jobs *jobs)
{
    return speaks(jobs) || jobs->ranks.is_unheard ? command_failed(invocation) : COMMAND_FAILED;
}

static int prepare_data(void *context)
{
    return synthetic_prepare(context);
}

/* Compare each job with the first, from JSON like `iobench compare`. Returns 0 or -errno. */
static int compare(const struct jobs *jobs, const json_t *all, struct outputs *outputs)
{
    static const double alpha = 0.05;
    struct comparison comparisons[RUN_JOBS_MAX];
    const json_t *first = json_array_get(all, 0);
    const size_t rivals = json_array_size(all) - 1;
    json_t *told = json_array();
    int code = 0;

    for (size_t i = 0; i < rivals && code == 0; i++) {
        const json_t *rival = json_array_get(all, i + 1);
        code = compare_groups(&(struct compare_group){&first, 1},
                              &(struct compare_group){&rival, 1}, &comparisons[i]);
    }
    if (code == 0)
        compare_correct(comparisons, rivals);
    for (size_t i = 0; i < rivals && code == 0; i++) {
        char name[512];
        snprintf(name, sizeof name, "B: %s; A: %s", jobs->jobs[i + 1].output.label,
                 jobs->jobs[0].output.label);
        if (!takes_stdout(&jobs->jobs[0])) {
            putchar('\n');
            compare_text(stdout, name, &comparisons[i], alpha);
        }
        json_array_append_new(told,
                              compare_json(jobs->jobs[i + 1].output.label, &comparisons[i], alpha));
    }
    if (code == 0 && json_check())
        code = fail(ENOMEM, "out of memory");
    if (code == 0)
        return outputs_compare(outputs, told);
    json_decref(told);
    return code;
}

/* Jobs are compared that alternate in one session. */
static bool compares(const struct jobs *jobs)
{
    return jobs->take_turns && !jobs->jobs[0].dry_run;
}

/* Run one job, or all in turns. rates: for its rates, or NULL. Returns enum command_exit. */
static int carry_out(const struct invocation *invocation, struct jobs *jobs, struct job *list,
                     size_t count, struct outputs *outputs, struct job_rates *rates)
{
    struct result *results = memory_array(count, sizeof *results);
    struct line progress = line_start();
    struct start_at start = {.text = count == 1 ? list->start_at : NULL, .ranks = &jobs->ranks};
    const struct run_observer observer = {
        .progress = speaks(jobs) ? progress_show : NULL,
        .context = &progress,
        .gate = jobs->gate   ? member_wait
                : start.text ? start_at_wait
                             : NULL,
        .gate_context = jobs->gate ? (void *)(uintptr_t)jobs->gate : &start,
    };
    bool *synthetic = memory_array(count, sizeof *synthetic), is_missing = false, is_whole = true;
    json_t *all = compares(jobs) ? json_array() : json_incref(jobs->documents);
    int status = results && synthetic ? COMMAND_OK : command_failed(invocation);

    for (size_t i = 0; i < count && status == COMMAND_OK; i++) {
        struct job *job = &list[i];
        store_set_timeout(job->read.io_timeout_ns);
        synthetic[i] = !job->read.data; /* generated if it is absent */
        const int code = synthetic[i] ? ranks_in_turn(&jobs->ranks, prepare_data, job) : 0;
        is_missing = code == -ENOENT && job->dry_run;
        if (is_missing && speaks(jobs))
            puts(fail_reason());
        status = code && !is_missing ? tell_failure(invocation, jobs) : COMMAND_OK;
    }
    if (status == COMMAND_OK && !is_missing) {
        const int code = run_jobs(list, (uint32_t)count, &jobs->ranks, &observer, results);
        line_clear(&progress);
        status = code ? tell_failure(invocation, jobs) : COMMAND_OK;
        for (size_t i = 0; i < count; i++) {
            results[i].data_was_made |= synthetic[i];
            is_whole &= results[i].valid;
            if (i && speaks(jobs) && !takes_stdout(&list[i]))
                putchar('\n');
            const int shown =
                speaks(jobs) ? show(invocation, &results[i], outputs, all, rates) : COMMAND_OK;
            status = shown ? shown : status;
        }
        status = is_whole || status ? status : COMMAND_FAILED;
        if (compares(jobs) && speaks(jobs) && is_whole && json_array_size(all) == count &&
            compare(jobs, all, outputs))
            status = command_failed(invocation);
        for (size_t i = 0; i < count; i++)
            result_destroy(&results[i]);
    }
    json_decref(all);
    free(results);
    free(synthetic);
    return status;
}

/* Run the jobs one after the other. A failed job does not stop the others; a signal does. */
static int carry_out_each(const struct invocation *invocation, struct jobs *jobs,
                          struct outputs *outputs)
{
    struct job_rates *rates = memory_array(jobs->count, sizeof *rates);
    int status = rates ? COMMAND_OK : command_failed(invocation);
    bool has_table = jobs->count > 1 && speaks(jobs) && !jobs->jobs[0].dry_run;

    for (size_t i = 0; rates && i < jobs->count; i++) {
        struct job *job = &jobs->jobs[i];
        if (i && ranks_meet(&jobs->ranks, stop_check(), NULL))
            break;
        if (i && speaks(jobs) && !takes_stdout(job))
            putchar('\n');
        has_table = has_table && !takes_stdout(job);
        const int job_status = carry_out(invocation, jobs, job, 1, outputs, &rates[i]);
        status = job_status ? job_status : status;
    }
    if (rates && has_table && !flag_get(&stop_asked)) {
        enum { NAME = 36 };
        char samples[WORDS_BYTES], mib[WORDS_BYTES];
        printf("\n%-*s%12s%12s%14s\n", NAME, "jobs", "samples/s", "MiB/s", "to the first");
        for (size_t i = 0; i < jobs->count; i++) {
            words_name(stdout, escape_shown(jobs->jobs[i].output.label), NAME);
            if (!(rates[i].samples_per_s > 0)) {
                printf("%12s%12s\n", "-", "-");
                continue;
            }
            printf("%12s%12s", words_rate(rates[i].samples_per_s, samples),
                   words_rate(rates[i].bytes_per_s / 1048576, mib));
            if (i && rates[0].samples_per_s > 0)
                printf("%+13.1f%%", 100 * (rates[i].samples_per_s / rates[0].samples_per_s - 1));
            putchar('\n');
        }
        /* Do not compare with rates of other cache states or of a degraded job. */
        const char *before = "\n";
        bool differ = false;
        for (size_t i = 0; i < jobs->count; i++) {
            differ |= rates[i].samples_per_s > 0 && rates[0].samples_per_s > 0 &&
                      rates[i].cache != rates[0].cache;
            if (rates[i].mark)
                printf("%s%s is %s\n", before, escape_shown(jobs->jobs[i].output.label),
                       rates[i].mark);
            before = rates[i].mark ? "" : before;
        }
        for (size_t i = 0; i < jobs->count && differ; i++) {
            if (!(rates[i].samples_per_s > 0))
                continue;
            printf("%s%s: cache %s before its runs\n", before,
                   escape_shown(jobs->jobs[i].output.label), summary_cache_name(rates[i].cache));
            before = "";
        }
        puts("\nMeasured one after the other; --paired alternates the jobs and tests the "
             "differences.");
    }
    free(rates);
    return status;
}

/* Join the ranks, check all jobs and run them. */
static int carry_out_jobs(const struct invocation *invocation, struct jobs *jobs)
{
    struct outputs outputs;
    int status;

    if (sandbox_enter(invocation, jobs->jobs, jobs->count))
        return command_failed(invocation);
    int code = command_join(&jobs->ranks);
    if (code) {
        status = command_failed(invocation);
    } else if (check_jobs(jobs)) {
        status = command_misused(invocation);
    } else {
        command_on_interrupt(); /* after MPI's own */
        if (outputs_open(&outputs, jobs->count)) {
            status = command_failed(invocation);
        } else {
            status = compares(jobs)
                         ? carry_out(invocation, jobs, jobs->jobs, jobs->count, &outputs, NULL)
                         : carry_out_each(invocation, jobs, &outputs);
            if (outputs_finish(&outputs))
                status = command_failed(invocation);
            outputs_close(&outputs);
        }
    }
    command_leave(&jobs->ranks, status != COMMAND_OK);
    return status;
}

int run_as_member(const struct invocation *invocation, struct job *job, const int *gate,
                  json_t *documents)
{
    struct jobs alone = {.jobs = job, .count = 1, .gate = gate, .documents = documents};

    return carry_out_jobs(invocation, &alone);
}

static int run_run(const struct invocation *invocation)
{
    struct jobs jobs = {0};
    const bool has_jobfile =
        invocation->count > 1 || (invocation->count && !is_data(invocation->operands[0]));
    struct sections others = {0};
    int code = has_jobfile ? load_jobfiles(invocation, &jobs, &others)
                           : add_command_line(invocation, &jobs);
    int status = code ? command_misused(invocation) : COMMAND_OK;
    const struct job *asked = invocation->settings;

    for (size_t i = 0; code == 0 && i < others.count && asked->dry_run && ranks_speaks(); i++) {
        char text[4096];
        command_text(&others.list[i], text, sizeof text);
        printf("%s\n", escape_shown(text));
    }
    if (code == 0 && jobs.count && jobs.jobs[0].beside) {
        status = beside_carry_out(invocation, jobs.jobs);
    } else if (code == 0 && (others.count == 0 || asked->dry_run)) {
        status = carry_out_jobs(invocation, &jobs);
    } else if (code == 0) { /* the file's jobs of other commands come last */
        struct invocation whole = *invocation;
        whole.more = others.list;
        whole.more_count = others.count;
        command_keep_ranks();
        status = carry_out_jobs(&whole, &jobs);
        /* Of usage the file is the cause. A failed job too does not stop the others; a signal or a
         * lost rank does. */
        const bool goes_on = status != COMMAND_USAGE;
        for (size_t i = 0; i < others.count && goes_on && command_may_go_on(); i++) {
            if (ranks_speaks())
                putchar('\n');
            fflush(stdout);
            const int one = others.list[i].command->run(&others.list[i]);
            status = one ? one : status;
        }
        command_part_ranks(status != COMMAND_OK);
    }
    sections_release(&others);
    for (size_t i = 0; i < jobs.count; i++)
        option_release(job_options, &jobs.jobs[i]);
    free(jobs.jobs);
    return status;
}

const struct command command_run = {
    .name = "run",
    .summary = "read a data set as training does, and report its throughput",
    .operands = "[DATA | JOBFILE...]",
    .operands_maximum = -1,
    .description = "Reads a data set as training does: in shuffled order, decoded, in batches. "
                   "Reports samples/s, how many GPUs that feeds, where the pipeline stalled, and "
                   "whether the caches were verified cold. DATA is short for --data DATA. A job "
                   "file holds several jobs, which "
                   "run one after the other, or alternate and are compared with --paired; it may "
                   "run commands (server-drop-cmd, server-check-cmd) only with --allow-commands. A "
                   "section with command=checkpoint or command=net is a job of that command. "
                   "Under mpirun or srun all processes share the job and rank 0 prints.\n"
                   "--against tests whether other options are faster: both alternate run by run in "
                   "one session, and the ratios of the pairs are tested (paired t test of "
                   "logarithms, p corrected for the number of comparisons). Five pairs detect a "
                   "difference of 5% if runs vary by 1.5%. Where they vary more, make them short "
                   "(--limit-samples) and let several take turns within a pair (--turns); a pair "
                   "then leaves out its fastest and slowest quarter, and so rare stalls.\n"
                   "--beside shows what two jobs at once do to each other: each runs alone and "
                   "beside the other, alternating, in processes that start together once the "
                   "caches of both are dropped. It reports each job's results, its slow-down, and "
                   "whether both end earlier at once than one after the other.",
    .examples = "iobench\tgenerate a synthetic set, read it, print the table\n"
                "iobench /mnt/imagenet\tread this set; the same as --data /mnt/imagenet\n"
                "iobench --data /mnt/imagenet --drop-caches\tthree cold runs, verified cold\n"
                "iobench --data /mnt/set --trainer replay:h200,gpus=8\tare eight H200 kept busy?\n"
                "iobench run --data /mnt/set -c --runs 5 --against '--iodepth 8'\tis a lower depth "
                "slower?\n"
                "iobench run --data /mnt/a -c --beside '--data /mnt/b --decode none'\ttwo jobs at "
                "once\n"
                "mpirun -n 16 --hostfile hosts iobench --data /mnt/set --drop-caches\tone job on "
                "four nodes with four ranks each\n",
    .options = job_options,
    .settings_size = sizeof(struct job),
    .run = run_run,
};
