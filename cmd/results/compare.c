/* SPDX-License-Identifier: Apache-2.0
 *
 * iobench compare: compares result files by session or pair by pair; the exit code serves as a
 * gate.
 */
#include "base/escape.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "cmd/commands.h"
#include "cmd/outputs.h"
#include "report/compare.h"
#include "report/report.h"
#include "report/words.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct compare_settings {
    double fail_if_slower; /* percent; negative: no gate */
    double alpha;
    char *json; /* file or "-" for standard output; NULL: a table */
};

static const struct option_spec compare_options[] = {
    {"fail-if-slower", 0, OPTION_REAL, offsetof(struct compare_settings, fail_if_slower),
     .percent = true, .fallback = "-1", .metavar = "PERCENT",
     .summary = "exit with 1 if B is slower (samples/s) by more than this and the difference is "
                "significant, inconclusive or untestable (one session each, a job that B lacks); "
                "-1: never"},
    {"alpha", 0, OPTION_REAL, offsetof(struct compare_settings, alpha), .fallback = "0.05",
     .minimum = 1e-9, .maximum = 0.5, .metavar = "P",
     .summary = "significance level: highest p of a significant difference"},
    {"json", 0, OPTION_TEXT, offsetof(struct compare_settings, json), .metavar = "FILE",
     .reach = OPTION_WRITES, .begins = "[{\"label\": \"\", \"basis\"", .implied = "-",
     .summary = "write JSON instead; to standard output without FILE"},
    {0},
};

/* ---- groups ---- */

enum { GROUPS_MAX = 26 };

/* Result files of one configuration, from several sessions. */
struct group {
    json_t **documents;
    const json_t **chosen; /* for each document, the job being compared */
    size_t count;
};

struct groups {
    struct group list[GROUPS_MAX];
    size_t count;
    json_t **documents; /* all files */
    const char **paths;
    const json_t **chosen;
};

/* Choose the counterpart of the first document's job in each document: the only job of both, else
 * the one with the same label. Returns false if one has none. */
static bool choose_counterpart(struct group *group, const json_t *job, size_t jobs_of_a)
{
    for (size_t i = 0; i < group->count; i++) {
        const json_t *jobs = json_object_get(group->documents[i], "jobs");
        const bool are_single = jobs_of_a == 1 && json_array_size(jobs) == 1;
        group->chosen[i] = are_single ? json_array_get(jobs, 0) : NULL;
        for (size_t k = 0; k < json_array_size(jobs) && !group->chosen[i]; k++)
            if (strcmp(load_word(json_array_get(jobs, k), "label"), load_word(job, "label")) == 0)
                group->chosen[i] = json_array_get(jobs, k);
        if (!group->chosen[i])
            return false;
    }
    return group->count > 0;
}

/* ---- the table ---- */

/* List settings and environments that differ, which may make the comparison unfair: objects of
 * "name", "a" and "b"; "b" is left out if B has none. */
static json_t *differences_of(const json_t *a, const json_t *b)
{
    static const char *const parts[] = {"settings", "dataset", "engine", "place"};
    static const char told_elsewhere[] =
        " json csv label against paired turns order_seed identity ";
    json_t *list = json_array();

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const char *key;
        json_t *value;
        json_object_foreach(json_object_get(a, parts[i]), key, value)
        {
            json_t *other = json_object_get(json_object_get(b, parts[i]), key);
            char *name = file_format_path("%s.%s", parts[i], key), word[64];
            snprintf(word, sizeof word, " %s ", key);
            if (!strstr(told_elsewhere, word) && !strstr(key, "_reason") &&
                !(other && json_equal(value, other))) {
                json_t *difference = json_append_new(list, json_object());
                json_put_text(difference, "name", name);
                json_object_set(difference, "a", value);
                json_object_set(difference, "b", other);
            }
            free(name);
        }
    }
    return list;
}

static const char *invalid_reason(const json_t *job)
{
    const char *reason = load_text(job, "invalid_reason");

    return load_true(job, "valid") ? NULL : reason ? reason : "no reason given";
}

/* Put the first reason of a side, or null. reason: of a job, NULL if it has none. */
static void put_reason(json_t *object, const char *key, const struct group *group,
                       const char *(*reason)(const json_t *job))
{
    const char *first = NULL;

    for (size_t i = 0; i < group->count && !first; i++)
        first = reason(group->chosen[i]);
    json_put_text(object, key, first);
}

static bool is_synthetic(const struct group *group)
{
    bool any = false;

    for (size_t i = 0; i < group->count; i++)
        any |= load_true(group->chosen[i], "dataset.synthetic");
    return any;
}

static void print_validity(const char *name, const struct group *group)
{
    for (size_t i = 0; i < group->count; i++) {
        const char *invalid = invalid_reason(group->chosen[i]);
        const char *degraded = load_degraded(group->chosen[i]);
        if (invalid)
            words_printf(stdout, "", 2, "%s is INVALID: %s", name, escape_shown(invalid));
        if (degraded)
            words_printf(stdout, "", 2, "%s is DEGRADED: %s", name, escape_shown(degraded));
    }
    if (is_synthetic(group))
        words_printf(stdout, "", 2, "%s read synthetic data", name);
}

/* ---- the command ---- */

struct report {
    const struct compare_settings *settings;
    json_t *all; /* for --json */
    int status;
    size_t compared;
};

/* Return whether B fails the gate. */
static bool is_slower(const struct comparison *comparison, const struct compare_settings *settings)
{
    const struct compare_figure *figure = &comparison->figures[0];

    return settings->fail_if_slower >= 0 && figure->change_percent < -settings->fail_if_slower &&
           (compare_significant(figure, settings->alpha) ||
            compare_untold(figure, settings->alpha));
}

/* Compare with each of b, correct p for all of them, and report. */
static int compare_rivals(struct report *report, const struct group *a,
                          const struct group *const *b, const char *const *names, size_t count)
{
    const struct compare_settings *settings = report->settings;
    struct comparison comparisons[GROUPS_MAX];

    for (size_t i = 0; i < count; i++) {
        const struct compare_group one = {a->chosen, a->count}, other = {b[i]->chosen, b[i]->count};
        int code = compare_groups(&one, &other, &comparisons[i]);
        if (code)
            return code;
    }
    compare_correct(comparisons, count);
    for (size_t i = 0; i < count; i++) {
        const struct comparison *comparison = &comparisons[i];
        if (settings->json) {
            json_t *object = compare_json(names[i], comparison, settings->alpha);
            /* Add what the table says of both sides beside the figures. */
            put_reason(object, "a_invalid_reason", a, invalid_reason);
            put_reason(object, "b_invalid_reason", b[i], invalid_reason);
            put_reason(object, "a_degraded_reason", a, load_degraded);
            put_reason(object, "b_degraded_reason", b[i], load_degraded);
            json_object_set_new(object, "a_synthetic", json_boolean(is_synthetic(a)));
            json_object_set_new(object, "b_synthetic", json_boolean(is_synthetic(b[i])));
            json_object_set_new(object, "differences",
                                differences_of(a->chosen[0], b[i]->chosen[0]));
            json_array_append_new(report->all, object);
        } else {
            compare_text(stdout, names[i], comparison, settings->alpha);
            /* List the jobs to compare: the first job of each group. */
            json_t *list = differences_of(a->chosen[0], b[i]->chosen[0]);
            const json_t *difference;
            print_validity("A", a);
            print_validity("B", b[i]);
            size_t index;
            json_array_foreach(list, index, difference)
            {
                const json_t *other = json_object_get(difference, "b");
                char *left = json_dumps(json_object_get(difference, "a"), JSON_ENCODE_ANY);
                char *right = other ? json_dumps(other, JSON_ENCODE_ANY) : NULL;
                words_printf(stdout, "", 2, "%s: %s -> %s",
                             escape_shown(load_text(difference, "name")), left ? left : "?",
                             right ? right : "?");
                free(left);
                free(right);
            }
            json_decref(list);
        }
        if (!comparison->a.valid || !comparison->b.valid || comparison->a.degraded ||
            comparison->b.degraded || is_slower(comparison, settings))
            report->status = COMMAND_FAILED;
        if (is_slower(comparison, settings))
            fprintf(stderr, "iobench compare: B is slower than A by more than %g%%\n",
                    settings->fail_if_slower);
        report->compared++;
    }
    return 0;
}

/* Load the files of each group. Without ":" each file is one. Release the groups in any case. */
static int load_groups(const struct invocation *invocation, struct groups *groups)
{
    const size_t count = (size_t)invocation->count;
    bool is_grouped = false, begins = true;
    size_t file = 0;
    int code = 0;

    *groups = (struct groups){.documents = memory_array(count, sizeof *groups->documents),
                              .chosen = memory_array(count, sizeof *groups->chosen),
                              .paths = memory_array(count, sizeof *groups->paths)};
    if (!groups->documents || !groups->chosen || !groups->paths)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        is_grouped |= strcmp(invocation->operands[i], ":") == 0;
    for (size_t i = 0; i < count && code == 0; i++) {
        const char *path = invocation->operands[i];
        if (strcmp(path, ":") == 0) {
            begins = true;
            continue;
        }
        if ((begins || !is_grouped) && groups->count == GROUPS_MAX)
            return fail(EINVAL, "more than %d groups", GROUPS_MAX);
        if (begins || !is_grouped)
            groups->list[groups->count++] = (struct group){.documents = groups->documents + file,
                                                           .chosen = groups->chosen + file};
        begins = false;
        groups->paths[file] = path;
        groups->documents[file] = load_document(path);
        code = groups->documents[file] ? 0 : -EINVAL;
        for (size_t k = 0; k < file && code == 0; k++)
            code = load_refuse_copy(path, groups->documents[file], groups->paths[k],
                                    groups->documents[k]);
        groups->list[groups->count - 1].count++;
        file++;
    }
    return code;
}

static int compare_run(const struct invocation *invocation)
{
    struct report report = {.settings = invocation->settings, .all = json_array()};
    struct groups groups;
    int code = load_groups(invocation, &groups);

    if (code == 0 && groups.count == 1 && groups.list[0].count == 1) {
        /* The other jobs of the file with the first. */
        const json_t *jobs = json_object_get(groups.documents[0], "jobs"), *chosen[GROUPS_MAX];
        const struct group *rivals[GROUPS_MAX];
        struct group singles[GROUPS_MAX];
        const char *names[GROUPS_MAX];
        const size_t count = json_array_size(jobs);
        if (count < 2 || count > GROUPS_MAX)
            code = fail(EINVAL, "the file has %zu jobs; expected 2 to %d", count, GROUPS_MAX);
        for (size_t i = 0; i < count && code == 0; i++) {
            chosen[i] = json_array_get(jobs, i);
            singles[i] = (struct group){.chosen = &chosen[i], .count = 1};
            rivals[i] = &singles[i];
            names[i] = load_word(chosen[i], "label");
        }
        if (code == 0)
            code = compare_rivals(&report, &singles[0], rivals + 1, names + 1, count - 1);
    } else if (code == 0 && groups.count == 1)
        code = fail(EINVAL, "only one group: put ':' before the files of the next");
    else if (code == 0) {
        /* Compare each job of the first group with its counterparts. */
        struct group *a = &groups.list[0];
        const json_t *jobs = json_object_get(a->documents[0], "jobs");
        for (size_t i = 0; i < json_array_size(jobs) && code == 0; i++) {
            const json_t *job = json_array_get(jobs, i);
            const struct group *rivals[GROUPS_MAX];
            const char *names[GROUPS_MAX];
            char texts[GROUPS_MAX][256];
            size_t count = 0;
            const bool is_known = choose_counterpart(a, job, json_array_size(jobs));
            for (size_t k = 1; k < groups.count && is_known; k++) {
                if (!choose_counterpart(&groups.list[k], job, json_array_size(jobs)))
                    continue;
                snprintf(texts[count], sizeof texts[count], "%s%s", load_word(job, "label"),
                         groups.count > 2 ? (char[]){' ', '(', (char)('A' + k), ')', 0} : "");
                names[count] = texts[count];
                rivals[count++] = &groups.list[k];
            }
            if (count < groups.count - 1) {
                /* A job that a rival lacks cannot pass a gate. found: in that many of them. */
                fprintf(stderr, "iobench compare: job '%s' is %s\n",
                        escape_shown(load_word(job, "label")),
                        count ? "not in all of the files" : "only in the first file");
                if (report.settings->fail_if_slower >= 0)
                    report.status = COMMAND_FAILED;
            }
            if (count)
                code = compare_rivals(&report, a, rivals, names, count);
        }
    }
    if (code == 0 && report.compared == 0)
        code = fail(EINVAL, "the files have no job label in common");
    if (code == 0 && report.settings->json)
        code = json_file_write(report.settings->json, json_incref(report.all));
    json_decref(report.all);
    const int status = code ? command_failed(invocation) : report.status;
    const size_t files = (size_t)invocation->count;
    for (size_t i = 0; groups.documents && i < files; i++)
        json_decref(groups.documents[i]);
    free(groups.documents);
    free(groups.paths);
    free(groups.chosen);
    return status;
}

const struct command command_compare = {
    .name = "compare",
    .summary = "test whether one result is significantly faster than another",
    .operands = "A.json [B.json...]",
    .operands_minimum = 1,
    .operands_maximum = -1,
    .description =
        "Compares results written with --json to the first one, and lists the settings that "
        "differ. With several files, jobs are matched by label; with one file, its jobs are "
        "compared. Groups separated by ':' hold the same configuration measured in several "
        "sessions: A1 A2 A3 : B1 B2 B3.\n"
        "Runs that alternated in one session (iobench run --against) are compared pair by pair "
        "with a paired t test. Otherwise each session counts as one value, whatever its number of "
        "runs, and the test is Mann-Whitney; with one session on a side there is no p, since the "
        "machine may have changed in between. p is corrected for the number of comparisons (Holm). "
        "Exits with 1 if a result is invalid or degraded, or B fails the gate.",
    .examples = "iobench compare before.json after.json --fail-if-slower 5\ta gate for CI\n"
                "iobench compare a?.json : b?.json\ttwo versions, four sessions each\n",
    .options = compare_options,
    .settings_size = sizeof(struct compare_settings),
    .operands_exist = true,
    .operands_reach = {OPTION_READS, OPTION_READS},
    .is_confined = true,
    .run = compare_run,
};
