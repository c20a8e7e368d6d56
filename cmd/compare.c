/* SPDX-License-Identifier: Apache-2.0
 *
 * iobench compare: two result files, run by run; with an exit code for gates.
 */
#include "base/escape.h"
#include "base/fail.h"
#include "base/json.h"
#include "cmd/commands.h"
#include "cmd/json_file.h"
#include "report/compare.h"
#include "report/load.h"
#include "report/words.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct compare_settings {
    double fail_if_slower; /* percent; negative: no gate */
    double alpha;
    char *json; /* file, "-" the standard output; NULL: a table */
};

static const struct option_spec compare_options[] = {
    {"fail-if-slower", 0, OPTION_REAL, offsetof(struct compare_settings, fail_if_slower),
     .fallback = "-1", .metavar = "PERCENT",
     .summary = "exit with 1 when B delivers fewer samples/s by more than this, and that is "
                "significant or too few runs were made to tell; -1: never"},
    {"alpha", 0, OPTION_REAL, offsetof(struct compare_settings, alpha), .fallback = "0.05",
     .minimum = 1e-9, .maximum = 0.5, .metavar = "P",
     .summary = "a difference is significant when chance gives it less often than this"},
    {"json", 0, OPTION_TEXT, offsetof(struct compare_settings, json), .metavar = "FILE",
     .reach = OPTION_WRITES, .implied = "-",
     .summary = "write JSON instead; without FILE to the standard output"},
    {0},
};

static const char *label_of(const json_t *job)
{
    const char *label = load_text(job, "label");

    return label ? label : "";
}

/* The job of jobs that goes with job: the only one, else the one of the same label. */
static const json_t *find_partner(const json_t *job, size_t jobs_of_a, const json_t *jobs)
{
    if (jobs_of_a == 1 && json_array_size(jobs) == 1)
        return json_array_get(jobs, 0);
    for (size_t i = 0; i < json_array_size(jobs); i++)
        if (strcmp(label_of(json_array_get(jobs, i)), label_of(job)) == 0)
            return json_array_get(jobs, i);
    return NULL;
}

/* ---- the table ---- */

static const char *value_text(const struct compare_figure *figure, double value, char *text)
{
    if (strcmp(figure->unit, "s") == 0)
        return words_duration((uint64_t)(value * 1e9), text);
    if (strcmp(figure->unit, "B/s") == 0) {
        char number[WORDS_BYTES];
        snprintf(text, WORDS_BYTES, "%s MiB/s", words_rate(value / 1048576, number));
        return text;
    }
    if (strcmp(figure->unit, "%") == 0) {
        snprintf(text, WORDS_BYTES, "%.1f%%", value);
        return text;
    }
    return words_rate(value, text);
}

static const char *verdict_of(const struct compare_figure *figure, double alpha)
{
    bool better = (figure->change_percent > 0) == figure->more_is_better;

    if (compare_significant(figure, alpha))
        return better ? "better" : "worse";
    return figure->least_p >= alpha ? "too few runs" : "no difference";
}

static void print_figure(const struct compare_figure *figure, double alpha)
{
    char a[WORDS_BYTES], b[WORDS_BYTES], name[WORDS_BYTES], p[WORDS_BYTES];

    if (figure->a.count == 0 || figure->b.count == 0)
        return;
    snprintf(name, sizeof name, "%s%s%s", figure->name,
             strchr(figure->unit, '/') && figure->unit[0] == 's' ? ", " : "",
             strchr(figure->unit, '/') && figure->unit[0] == 's' ? figure->unit : "");
    snprintf(p, sizeof p, figure->p < 0.001 ? "%.0e" : "%.3f", figure->p);
    printf("  %-24s%14s%14s%+9.1f%%%10s  %s\n", name, value_text(figure, figure->a.median, a),
           value_text(figure, figure->b.median, b), figure->change_percent, p,
           verdict_of(figure, alpha));
}

/* Settings and places that are not the same: is like compared with like? */
static void print_differences(const json_t *a, const json_t *b, const char *part)
{
    const char *key;
    json_t *value;

    json_object_foreach(json_object_get(a, part), key, value)
    {
        const json_t *other = load_member(load_member(b, part), key);
        if (strcmp(key, "json") == 0 || strcmp(key, "csv") == 0 || strcmp(key, "label") == 0 ||
            strstr(key, "_reason") || (other && json_equal(value, other)))
            continue;
        char *left = json_dumps(value, JSON_ENCODE_ANY);
        char *right = other ? json_dumps(other, JSON_ENCODE_ANY) : NULL;
        printf("  %s.%s: %s -> %s\n", part, escape_shown(key), left ? left : "?",
               right ? right : "?");
        free(left);
        free(right);
    }
}

static void print_validity(const char *name, const json_t *job)
{
    const char *reason = load_text(job, "invalid_reason");

    if (!load_true(job, "valid"))
        printf("  %s is INVALID: %s\n", name, escape_shown(reason ? reason : "no reason is given"));
}

static void print_comparison(const json_t *a, const json_t *b, const struct comparison *comparison,
                             double alpha)
{
    const struct compare_figure *first = &comparison->figures[0];

    printf("%s%s  %-24s%14s%14s%10s%10s\n", escape_shown(label_of(a)), *label_of(a) ? "\n" : "",
           "median of runs", "A", "B", "change", "p");
    printf("  %-24s%14zu%14zu\n", "runs", first->a.count, first->b.count);
    for (int i = 0; i < COMPARE_FIGURES; i++)
        print_figure(&comparison->figures[i], alpha);
    print_validity("A", a);
    print_validity("B", b);
    if (first->least_p >= alpha)
        printf("  With %zu and %zu runs not even the clearest difference is significant (p >= "
               "%.2g): use --runs 5.\n",
               first->a.count, first->b.count, first->least_p);
    print_differences(a, b, "settings");
    print_differences(a, b, "dataset");
    print_differences(a, b, "engine");
    print_differences(a, b, "place");
}

/* ---- JSON ---- */

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *json_of(const json_t *a, const struct comparison *comparison, double alpha)
{
    json_t *object = json_object(), *figures = json_object();

    json_object_set_new(object, "label", json_text(label_of(a)));
    json_object_set_new(object, "a_valid", json_boolean(comparison->a_valid));
    json_object_set_new(object, "b_valid", json_boolean(comparison->b_valid));
    for (int i = 0; i < COMPARE_FIGURES; i++) {
        const struct compare_figure *figure = &comparison->figures[i];
        json_t *entry = json_object();
        json_object_set_new(entry, "a_median", number(figure->a.count ? figure->a.median : NAN));
        json_object_set_new(entry, "b_median", number(figure->b.count ? figure->b.median : NAN));
        json_object_set_new(entry, "a_runs", json_integer((json_int_t)figure->a.count));
        json_object_set_new(entry, "b_runs", json_integer((json_int_t)figure->b.count));
        json_object_set_new(entry, "change_percent", number(figure->change_percent));
        json_object_set_new(entry, "p", number(figure->p));
        json_object_set_new(entry, "significant", json_boolean(compare_significant(figure, alpha)));
        json_object_set_new(figures, figure->key, entry);
    }
    json_object_set_new(object, "figures", figures);
    return object;
}

/* ---- the command ---- */

/* Does B fall through the gate? */
static bool is_slower(const struct comparison *comparison, const struct compare_settings *settings)
{
    const struct compare_figure *figure = &comparison->figures[0];

    return settings->fail_if_slower >= 0 && figure->change_percent < -settings->fail_if_slower &&
           (compare_significant(figure, settings->alpha) || figure->least_p >= settings->alpha);
}

static int compare_all(const struct invocation *invocation, const json_t *a, const json_t *b)
{
    const struct compare_settings *settings = invocation->settings;
    const json_t *jobs_a = json_object_get(a, "jobs"), *jobs_b = json_object_get(b, "jobs");
    json_t *all = json_array();
    int status = COMMAND_OK, compared = 0;

    for (size_t i = 0; i < json_array_size(jobs_a); i++) {
        const json_t *job = json_array_get(jobs_a, i);
        const json_t *partner = find_partner(job, json_array_size(jobs_a), jobs_b);
        struct comparison comparison;
        if (!partner) {
            fprintf(stderr, "iobench compare: '%s' is only in %s\n", label_of(job),
                    invocation->operands[0]);
            continue;
        }
        if (compare_jobs(job, partner, &comparison)) {
            json_decref(all);
            return command_failed(invocation);
        }
        if (settings->json)
            json_array_append_new(all, json_of(job, &comparison, settings->alpha));
        else
            print_comparison(job, partner, &comparison, settings->alpha);
        if (!comparison.a_valid || !comparison.b_valid || is_slower(&comparison, settings))
            status = COMMAND_FAILED;
        if (is_slower(&comparison, settings))
            fprintf(stderr, "iobench compare: B is slower than A by more than %g%%\n",
                    settings->fail_if_slower);
        compared++;
    }
    if (!settings->json)
        json_decref(all);
    else if (json_file_write(settings->json, all))
        return command_failed(invocation);
    if (compared == 0) {
        fail(EINVAL, "no job of one has its label in the other");
        return command_failed(invocation);
    }
    return status;
}

static int compare_run(const struct invocation *invocation)
{
    json_t *a = load_document(invocation->operands[0]);
    json_t *b = a ? load_document(invocation->operands[1]) : NULL;
    int status = b ? compare_all(invocation, a, b) : command_failed(invocation);

    json_decref(a);
    json_decref(b);
    return status;
}

const struct command command_compare = {
    .name = "compare",
    .summary = "tell whether one result is really faster than another",
    .operands = "A.json B.json",
    .operands_minimum = 2,
    .operands_maximum = 2,
    .description = "Compares two results written with --json, run by run, with the Mann-Whitney "
                   "test, and lists the settings that differ. Jobs of several are matched by "
                   "label. Exits with 1 when a result is invalid or B falls through the gate.",
    .examples = "iobench compare before.json after.json --fail-if-slower 5\ta gate for CI\n",
    .options = compare_options,
    .settings_size = sizeof(struct compare_settings),
    .operands_reach = {OPTION_READS, OPTION_READS},
    .is_confined = true,
    .run = compare_run,
};
