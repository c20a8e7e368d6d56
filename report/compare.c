/* SPDX-License-Identifier: Apache-2.0 */
#include "report/compare.h"

#include "base/memory.h"
#include "report/load.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct compare_source {
    struct compare_figure figure;
    const char *path; /* in a run */
    int epoch;        /* index of the epoch; -1: the whole run, -2: all later epochs together */
} sources[COMPARE_FIGURES] = {
    {{.name = "Throughput", .unit = "samples/s", .key = "samples_per_s", .more_is_better = true},
     "samples_per_s",
     -1},
    {{.name = "Records", .unit = "B/s", .key = "record_bytes_per_s", .more_is_better = true},
     "record_bytes_per_s",
     -1},
    {{.name = "First epoch",
      .unit = "samples/s",
      .key = "first_epoch_samples_per_s",
      .more_is_better = true},
     "samples_per_s",
     0},
    {{.name = "Later epochs",
      .unit = "samples/s",
      .key = "later_epochs_samples_per_s",
      .more_is_better = true},
     NULL,
     -2},
    {{.name = "AU", .unit = "%", .key = "au_percent", .more_is_better = true}, "au_percent", -1},
    {{.name = "Read p99", .unit = "s", .key = "read_latency_p99_s", .more_is_better = false},
     "read_latency.p99_s",
     -1},
};

/* Samples of the later epochs over their time: the mean of rates counts fast epochs too much. */
static double later_rate(const json_t *epochs)
{
    double samples = 0, seconds = 0;

    for (size_t i = 1; i < json_array_size(epochs); i++) {
        samples += load_number(json_array_get(epochs, i), "samples");
        seconds += load_number(json_array_get(epochs, i), "wall_s");
    }
    return seconds > 0 ? samples / seconds : NAN;
}

static double run_value(const json_t *run, const struct compare_source *source)
{
    const json_t *epochs = json_object_get(run, "epochs");

    if (source->epoch == -1)
        return load_number(run, source->path);
    if (source->epoch >= 0)
        return load_number(json_array_get(epochs, (size_t)source->epoch), source->path);
    return later_rate(epochs);
}

/* Collect the values of a job's runs, in order; NAN if unknown. Returns their count. */
static size_t collect(const json_t *job, const struct compare_source *source, double *values)
{
    const json_t *runs = json_object_get(job, "runs");
    size_t count = json_array_size(runs);

    if (count > COMPARE_RUNS_MAX)
        count = COMPARE_RUNS_MAX;
    for (size_t i = 0; i < count; i++)
        values[i] = run_value(json_array_get(runs, i), source);
    return count;
}

static size_t keep_known(double *values, size_t count)
{
    size_t known = 0;

    for (size_t i = 0; i < count; i++)
        if (isfinite(values[i]))
            values[known++] = values[i];
    return known;
}

/* ---- sessions ---- */

/* A result without an id, of an earlier version, counts as a session of its own. */
static bool same_sitting(const json_t *a, const json_t *b)
{
    const char *one = load_text(a, "sitting.id"), *other = load_text(b, "sitting.id");

    return a == b || (one && other && *one && strcmp(one, other) == 0);
}

static bool took_turns(const json_t *a, const json_t *b)
{
    return a != b && same_sitting(a, b) && load_number(a, "sitting.jobs") > 1;
}

static const json_t *partner_of(const json_t *job, const struct compare_group *group)
{
    for (size_t i = 0; i < group->count; i++)
        if (took_turns(job, group->jobs[i]))
            return group->jobs[i];
    return NULL;
}

static bool is_first_of_sitting(const struct compare_group *group, size_t job)
{
    for (size_t i = 0; i < job; i++)
        if (same_sitting(group->jobs[i], group->jobs[job]))
            return false;
    return true;
}

static size_t count_sittings(const struct compare_group *group)
{
    size_t count = 0;

    for (size_t i = 0; i < group->count; i++)
        count += is_first_of_sitting(group, i);
    return count;
}

/* Compute the median of all runs of each session. work: COMPARE_RUNS_MAX values. */
static size_t sitting_values(const struct compare_group *group, const struct compare_source *source,
                             double *values, double *work)
{
    size_t sittings = 0;

    for (size_t i = 0; i < group->count && sittings < COMPARE_RUNS_MAX; i++) {
        if (!is_first_of_sitting(group, i))
            continue;
        size_t count = 0;
        for (size_t k = i; k < group->count && count == 0; k++)
            if (same_sitting(group->jobs[i], group->jobs[k]))
                count = keep_known(work, collect(group->jobs[k], source, work));
        if (count)
            values[sittings++] = stats_summarise(work, count).median;
    }
    return sittings;
}

static size_t turns_of(const json_t *job)
{
    const double turns = load_number(job, "sitting.turns");

    return turns > 1 ? (size_t)turns : 1; /* absent in results of earlier versions */
}

/* Pair the turns of both, in all sessions in which they alternated. Unknown values stay, so that
 * the turns of a pair stay together. */
static size_t pair_values(const struct compare_group *a, const struct compare_group *b,
                          const struct compare_source *source, size_t turns, double *a_values,
                          double *b_values, double *work)
{
    size_t pairs = 0;

    for (size_t i = 0; i < a->count; i++) {
        const json_t *partner = partner_of(a->jobs[i], b);
        if (!partner || turns_of(partner) != turns)
            continue;
        size_t mine = collect(a->jobs[i], source, work);
        size_t its = collect(partner, source, work + COMPARE_RUNS_MAX);
        const size_t both = mine < its ? mine : its;
        for (size_t k = 0; k < both - both % turns && pairs < COMPARE_RUNS_MAX; k++) {
            a_values[pairs] = work[k];
            b_values[pairs++] = work[COMPARE_RUNS_MAX + k];
        }
    }
    return pairs;
}

/* ---- figures ---- */

static double percent(double ratio)
{
    return 100 * (ratio - 1);
}

/* Sorts a and b. Returns the number of pairs. */
static size_t compare_pairs(double *a, double *b, size_t count, const struct comparison *comparison,
                            struct compare_figure *figure)
{
    const struct paired paired = paired_test(a, b, count, comparison->turns, comparison->is_until);

    if (paired.pairs == 0)
        return 0;
    figure->a = stats_summarise(a, keep_known(a, count)).median;
    figure->b = stats_summarise(b, keep_known(b, count)).median;
    figure->change_percent = percent(paired.ratio);
    figure->low_percent = percent(paired.low);
    figure->high_percent = percent(paired.high);
    figure->p = paired.p;
    figure->sign_flip_p = paired.sign_flip_p;
    figure->least_p = 0;
    return paired.pairs;
}

static void compare_sittings(const double *a, size_t a_count, const double *b, size_t b_count,
                             struct compare_figure *figure)
{
    figure->a = stats_summarise(a, a_count).median;
    figure->b = stats_summarise(b, b_count).median;
    if (figure->a > 0)
        figure->change_percent = percent(figure->b / figure->a);
    if (a_count < 2 || b_count < 2)
        return;
    figure->p = stats_mann_whitney_p(a, a_count, b, b_count);
    figure->least_p = compare_least_p(a_count, b_count);
}

/* Returns the number of pairs, 0 on another basis. */
static size_t compare_one(const struct compare_group *a, const struct compare_group *b,
                          const struct compare_source *source, double *values,
                          const struct comparison *comparison, struct compare_figure *figure)
{
    size_t pairs = 0;
    double *a_values = values, *b_values = values + COMPARE_RUNS_MAX;
    double *work = values + 2 * (size_t)COMPARE_RUNS_MAX;

    *figure = source->figure;
    figure->a = figure->b = figure->change_percent = figure->p = figure->least_p = NAN;
    figure->low_percent = figure->high_percent = figure->sign_flip_p = NAN;
    if (comparison->basis == COMPARE_PAIRS) {
        const size_t count = pair_values(a, b, source, comparison->turns, a_values, b_values, work);
        pairs = compare_pairs(a_values, b_values, count, comparison, figure);
    } else {
        size_t a_count = sitting_values(a, source, a_values, work);
        size_t b_count = sitting_values(b, source, b_values, work);
        if (a_count && b_count)
            compare_sittings(a_values, a_count, b_values, b_count, figure);
    }
    figure->p_corrected = figure->p;
    return pairs;
}

/* ---- basis ---- */

static bool all_valid(const struct compare_group *group)
{
    for (size_t i = 0; i < group->count; i++)
        if (!load_true(group->jobs[i], "valid"))
            return false;
    return true;
}

static bool any_degraded(const struct compare_group *group)
{
    for (size_t i = 0; i < group->count; i++)
        if (load_degraded(group->jobs[i]))
            return true;
    return false;
}

/* The state of the caches before the runs; its text belongs to a job. */
static const char *cache_of(const struct compare_group *group)
{
    const char *cache = "";

    for (size_t i = 0; i < group->count; i++) {
        const char *its = load_text(group->jobs[i], "summary.cache_before");
        if (i > 0 && strcmp(its ? its : "", cache) != 0)
            return "mixed";
        cache = its ? its : "";
    }
    return cache;
}

/* Time stamps sort as text. */
static bool all_before(const struct compare_group *one, const struct compare_group *other)
{
    for (size_t i = 0; i < one->count; i++)
        for (size_t k = 0; k < other->count; k++) {
            const char *early = load_text(one->jobs[i], "started");
            const char *late = load_text(other->jobs[k], "started");
            if (!early || !late || strcmp(early, late) >= 0)
                return false;
        }
    return true;
}

static size_t count_runs(const struct compare_group *group)
{
    size_t count = 0;

    for (size_t i = 0; i < group->count; i++)
        count += json_array_size(json_object_get(group->jobs[i], "runs"));
    return count;
}

static bool makes_entry_points(const struct compare_group *group)
{
    bool makes = false;

    for (size_t i = 0; i < group->count; i++)
        makes |= json_is_object(json_object_get(group->jobs[i], "entry_points"));
    return makes;
}

/* Each result of both sides with each other one: a set may be replaced between those of one side.
 */
static enum load_data data_of_groups(const struct compare_group *a, const struct compare_group *b)
{
    enum load_data data = LOAD_DATA_SAME;

    for (size_t i = 0; i < a->count + b->count; i++)
        for (size_t k = 0; k < i; k++) {
            const enum load_data pair =
                load_compare_data(i < a->count ? a->jobs[i] : b->jobs[i - a->count],
                                  k < a->count ? a->jobs[k] : b->jobs[k - a->count]);
            if (pair == LOAD_DATA_REPLACED)
                return pair;
            data = pair == LOAD_DATA_UNKNOWN ? pair : data;
        }
    return data;
}

int compare_groups(const struct compare_group *a, const struct compare_group *b,
                   struct comparison *comparison)
{
    double *values = memory_array(4 * (size_t)COMPARE_RUNS_MAX, sizeof *values);

    *comparison = (struct comparison){
        .basis = COMPARE_NOTHING,
        .a_valid = all_valid(a),
        .b_valid = all_valid(b),
        .a_degraded = any_degraded(a),
        .b_degraded = any_degraded(b),
        .a_cache = cache_of(a),
        .b_cache = cache_of(b),
        .a_makes = makes_entry_points(a),
        .b_makes = makes_entry_points(b),
        .data = data_of_groups(a, b),
        .a_runs = count_runs(a),
        .b_runs = count_runs(b),
        .a_sittings = count_sittings(a),
        .b_sittings = count_sittings(b),
        .one_then_other = all_before(a, b) || all_before(b, a),
        .together = 1,
    };
    if (!values)
        return -ENOMEM;
    for (size_t i = 0; i < a->count; i++) {
        if (!partner_of(a->jobs[i], b))
            continue;
        if (comparison->basis == COMPARE_NOTHING)
            comparison->turns = turns_of(a->jobs[i]);
        comparison->basis = COMPARE_PAIRS;
        comparison->is_until |= load_true(a->jobs[i], "sitting.runs_auto");
    }
    if (comparison->basis == COMPARE_NOTHING && comparison->a_sittings > 1 &&
        comparison->b_sittings > 1)
        comparison->basis = COMPARE_SITTINGS;
    for (int i = COMPARE_FIGURES; i-- > 0;)
        comparison->pairs =
            compare_one(a, b, &sources[i], values, comparison, &comparison->figures[i]);
    free(values);
    return 0;
}

void compare_correct(struct comparison *comparisons, size_t count)
{
    double p[PAIRED_HOLM_MAX];

    for (int i = 0; i < COMPARE_FIGURES; i++) {
        size_t known = 0;
        for (size_t k = 0; k < count && known < PAIRED_HOLM_MAX; k++)
            if (isfinite(comparisons[k].figures[i].p))
                p[known++] = comparisons[k].figures[i].p;
        paired_holm(p, known);
        known = 0;
        for (size_t k = 0; k < count && known < PAIRED_HOLM_MAX; k++)
            if (isfinite(comparisons[k].figures[i].p))
                comparisons[k].figures[i].p_corrected = p[known++];
    }
    for (size_t k = 0; k < count; k++)
        comparisons[k].together = count;
}

double compare_least_p(size_t a_count, size_t b_count)
{
    double orders = 1; /* C(a + b, a) */

    for (size_t i = 1; i <= a_count; i++)
        orders = orders * (double)(b_count + i) / (double)i;
    return fmin(1, 2 / orders);
}

bool compare_significant(const struct compare_figure *figure, double alpha)
{
    return isfinite(figure->p_corrected) && figure->p_corrected < alpha;
}

bool compare_untold(const struct compare_figure *figure, double alpha)
{
    return !isfinite(figure->p) || figure->least_p >= alpha ||
           figure->low_percent < -COMPARE_RULED_OUT_PERCENT ||
           figure->high_percent > COMPARE_RULED_OUT_PERCENT;
}
