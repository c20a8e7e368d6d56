/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/run/beside.h"

#include "base/escape.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/stats.h"
#include "cmd/arguments.h"
#include "cmd/outputs.h"
#include "cmd/sandbox.h"
#include "cmd/start_at.h"
#include "report/load.h"
#include "report/report.h"
#include "report/words.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

/* ---- what two jobs at once did to each other, round by round ---- */

struct rounds {
    size_t count;
    double *walls[BESIDE_MEMBERS]; /* seconds of each round */
    double *samples[BESIDE_MEMBERS];
};

/* Return the sum of a figure over a run's epochs. */
static double sum_of(const json_t *run, const char *key)
{
    const json_t *epoch;
    double sum = 0;
    size_t i;

    json_array_foreach(json_object_get(run, "epochs"), i, epoch) sum += load_number(epoch, key);
    return sum;
}

static int take_rounds(struct rounds *rounds, json_t *const documents[BESIDE_MEMBERS])
{
    rounds->count = json_array_size(json_object_get(documents[0], "runs"));
    for (int i = 0; i < BESIDE_MEMBERS; i++) {
        const json_t *runs = json_object_get(documents[i], "runs");
        if (json_array_size(runs) != rounds->count || rounds->count == 0)
            return fail(ENODATA, "the jobs did not make the same runs");
        rounds->walls[i] = memory_array(rounds->count, sizeof(double));
        rounds->samples[i] = memory_array(rounds->count, sizeof(double));
        if (!rounds->walls[i] || !rounds->samples[i])
            return -ENOMEM;
        for (size_t k = 0; k < rounds->count; k++) {
            rounds->walls[i][k] = sum_of(json_array_get(runs, k), "wall_s");
            rounds->samples[i][k] = sum_of(json_array_get(runs, k), "samples");
        }
    }
    return 0;
}

static double mean(const double *values, size_t count)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return sum / (double)count;
}

static double rate(const struct rounds *rounds, int member)
{
    return mean(rounds->samples[member], rounds->count) /
           mean(rounds->walls[member], rounds->count);
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

static json_t *json_job(const struct rounds *rounds, int job, const json_t *document)
{
    const int beside = job + BESIDE_JOBS;
    const struct paired paired =
        paired_test(rounds->walls[job], rounds->walls[beside], rounds->count, 1, false);
    const char *label = load_text(document, "label");
    json_t *object = json_object();

    /* Drop ", alone" from the label. */
    const char *comma = label ? strrchr(label, ',') : NULL;
    json_object_set_new(object, "label",
                        comma ? json_text_of(label, (size_t)(comma - label)) : json_text(label));
    json_put_number(object, "alone_s", mean(rounds->walls[job], rounds->count));
    json_put_number(object, "beside_s", mean(rounds->walls[beside], rounds->count));
    json_put_number(object, "alone_samples_per_s", rate(rounds, job));
    json_put_number(object, "beside_samples_per_s", rate(rounds, beside));
    put_ratio(object, "slow_down", &paired);
    return object;
}

/* Both start together: the time at once lasts until the later one ends. */
static int put_both(json_t *object, const struct rounds *rounds)
{
    double *in_turn = memory_array(2 * rounds->count, sizeof *in_turn);
    double *at_once = in_turn ? in_turn + rounds->count : NULL, shared = 0;

    if (!in_turn)
        return -ENOMEM;
    for (size_t i = 0; i < rounds->count; i++) {
        in_turn[i] = rounds->walls[0][i] + rounds->walls[1][i];
        at_once[i] = fmax(rounds->walls[2][i], rounds->walls[3][i]);
        shared += fmin(rounds->walls[2][i], rounds->walls[3][i]) / at_once[i];
    }
    const struct paired gain = paired_test(at_once, in_turn, rounds->count, 1, false);
    json_put_number(object, "in_turn_s", mean(in_turn, rounds->count));
    json_put_number(object, "at_once_s", mean(at_once, rounds->count));
    json_put_number(object, "overlap_percent", 100 * shared / (double)rounds->count);
    put_ratio(object, "gain", &gain);
    free(in_turn);
    return 0;
}

json_t *beside_json(json_t *const documents[BESIDE_MEMBERS], bool has_shared_data)
{
    struct rounds rounds = {0};
    json_t *object = json_object();
    int code = take_rounds(&rounds, documents);

    json_object_set_new(object, "rounds", json_integer((json_int_t)rounds.count));
    json_object_set_new(object, "same_data", json_boolean(has_shared_data));
    json_t *jobs = json_put_new(object, "jobs", json_array());
    for (int i = 0; i < BESIDE_JOBS && code == 0; i++)
        json_array_append_new(jobs, json_job(&rounds, i, documents[i]));
    if (code == 0)
        code = put_both(object, &rounds);
    for (int i = 0; i < BESIDE_MEMBERS; i++) {
        free(rounds.walls[i]);
        free(rounds.samples[i]);
    }
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

struct beside {
    struct members members;
    uint64_t order_seed;
};

static int carry_out_stage(struct beside *beside, unsigned stage, bool is_last)
{
    int code = members_ready(&beside->members, stage);

    if (code == 0)
        code = members_go(&beside->members, stage);
    return code ? code : members_await(&beside->members, stage, is_last);
}

static int carry_out_rounds(struct beside *beside, uint64_t rounds)
{
    static const unsigned stages[] = {1 << 0, 1 << 1, 1 << 2 | 1 << 3};
    enum { STAGES = sizeof stages / sizeof *stages };
    uint32_t order[STAGES];
    int code = members_prepare(&beside->members, 0, 0);

    for (uint64_t round = 0; round < rounds && code == 0; round++) {
        random_order(beside->order_seed, round, order, STAGES);
        for (uint32_t i = 0; i < STAGES && code == 0; i++)
            code = carry_out_stage(beside, stages[order[i]], round + 1 == rounds);
    }
    return code;
}

/* ---- results ---- */

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

static int show_beside(const struct beside *beside, const struct job *jobs)
{
    const char *path = jobs[0].output.json;
    const bool has_text = !path || strcmp(path, "-") != 0;
    json_t *documents = json_array(), *list[BESIDE_MEMBERS], *figures = NULL;
    int code = 0;

    for (uint32_t i = 0; i < BESIDE_MEMBERS && has_text; i++)
        members_print(&beside->members.list[i]);
    for (uint32_t i = 0; i < BESIDE_MEMBERS && code == 0; i++) {
        code = members_collect(&beside->members.list[i], documents);
        list[i] = json_array_get(documents, i);
    }
    if (code == 0 && !(figures = beside_json(list, reads_same(jobs))))
        code = -ENOMEM;
    if (code == 0 && has_text)
        beside_text(stdout, figures);
    if (code == 0 && path) {
        json_t *members = json_pack("{s:O}", "beside", figures);
        json_t *document = members ? report_json_document(documents, members) : NULL;
        char *text = document ? report_json_text(document, REPORT_DIGITS) : NULL;
        code = text ? 0 : -ENOMEM;
        if (text && strcmp(path, "-") == 0)
            puts(text);
        else if (text)
            code = report_write_file(path, text, strlen(text));
        free(text);
        json_decref(document);
        json_decref(members);
    }
    json_decref(figures);
    json_decref(documents);
    return code;
}

/* ---- the command ---- */

static int check(const struct job *jobs)
{
    if (ranks_are_launched())
        return fail(EINVAL, "--beside is for one process, without mpirun or srun");
    if (jobs[0].turns > 1)
        return fail(EINVAL, "--turns is not for --beside");
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
    for (int i = 0; i < BESIDE_JOBS; i++) {
        struct job_plugins plugins;
        int code = job_choose(&jobs[i], &plugins);
        job_release(&plugins);
        if (code == 0)
            code = start_at_check(&jobs[i]);
        if (code == 0 && jobs[i].read.data)
            code = arguments_check_data("data", jobs[i].read.data);
        if (code)
            return code;
    }
    return outputs_check(&jobs[0], "{\"schema\"", "label,valid");
}

static int begin(struct beside *beside, struct job *jobs, member_work *work)
{
    uint32_t seed = (uint32_t)jobs[0].order_seed;
    int code = 0;

    if (!seed && getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed)
        return fail(EIO, "no random numbers: %s", fail_errno_text(errno));
    beside->order_seed = seed;
    for (int i = 0; i < BESIDE_MEMBERS && code == 0; i++)
        code = members_start(&beside->members, &jobs[i % BESIDE_JOBS],
                             i < BESIDE_JOBS ? "alone" : "beside the other", work);
    if (code == 0)
        code = sandbox_enter(beside->members.invocation, jobs, BESIDE_JOBS);
    command_on_interrupt();
    return code;
}

int beside_carry_out(const struct invocation *invocation, struct job *jobs, member_work *work)
{
    struct beside beside = {.members.invocation = invocation};
    int status = COMMAND_OK;

    if (check(jobs))
        return command_misused(invocation);
    int code = begin(&beside, jobs, work);
    if (code == 0)
        code = carry_out_rounds(&beside, jobs[0].dry_run ? 0 : jobs[0].runs);
    if (code)
        status = command_failed(invocation);
    members_end(&beside.members, code);
    for (uint32_t i = 0; i < beside.members.started; i++)
        status = beside.members.list[i].status ? beside.members.list[i].status : status;
    if (code == 0 && show_beside(&beside, jobs))
        status = command_failed(invocation);
    members_release(&beside.members);
    return status;
}
