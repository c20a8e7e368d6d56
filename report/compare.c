/* SPDX-License-Identifier: Apache-2.0 */
#include "report/compare.h"

#include "base/escape.h"
#include "base/json.h"
#include "base/memory.h"
#include "report/report.h"
#include "report/words.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WHOLE_RUN = -1, LATER_EPOCHS = -2 };

static const struct compare_source {
    const char *name, *unit, *key;
    const char *path; /* in a run, or in the epoch */
    int epoch;        /* its index, or one of the above */
    bool less_is_better;
} sources[COMPARE_FIGURES] = {
    {"Throughput", "samples/s", "samples_per_s", "samples_per_s", WHOLE_RUN, false},
    {"Records", "B/s", "record_bytes_per_s", "record_bytes_per_s", WHOLE_RUN, false},
    {"First epoch", "samples/s", "first_epoch_samples_per_s", "samples_per_s", 0, false},
    {"Later epochs", "samples/s", "later_epochs_samples_per_s", NULL, LATER_EPOCHS, false},
    {"AU", "%", "au_percent", "au_percent", WHOLE_RUN, false},
    {"Read p99", "s", "read_latency_p99_s", "read_latency.p99_s", WHOLE_RUN, true},
};

/* Collect the values of a job's runs, in order; NAN if unknown. Returns their count. */
static size_t run_values(const json_t *job, const struct compare_source *source, double *values)
{
    const json_t *runs = json_object_get(job, "runs");
    size_t count = json_array_size(runs);

    if (count > COMPARE_RUNS_MAX)
        count = COMPARE_RUNS_MAX;
    for (size_t i = 0; i < count; i++) {
        const json_t *run = json_array_get(runs, i), *epochs = json_object_get(run, "epochs");
        if (source->epoch == WHOLE_RUN) {
            values[i] = load_number(run, source->path);
        } else if (source->epoch >= 0) {
            values[i] = load_number(json_array_get(epochs, (size_t)source->epoch), source->path);
        } else { /* samples over time: the mean of rates counts fast epochs too much */
            double samples = 0, seconds = 0;
            for (size_t k = 1; k < json_array_size(epochs); k++) {
                samples += load_number(json_array_get(epochs, k), "samples");
                seconds += load_number(json_array_get(epochs, k), "wall_s");
            }
            values[i] = seconds > 0 ? samples / seconds : NAN;
        }
    }
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
static bool same_session(const json_t *a, const json_t *b)
{
    const char *one = load_text(a, "session.id"), *other = load_text(b, "session.id");

    return a == b || (one && other && *one && strcmp(one, other) == 0);
}

/* Return the job of the group that took turns with this one, or NULL. */
static const json_t *partner_of(const json_t *job, const struct compare_group *group)
{
    for (size_t i = 0; i < group->count; i++)
        if (job != group->jobs[i] && same_session(job, group->jobs[i]) &&
            load_number(job, "session.jobs") > 1)
            return group->jobs[i];
    return NULL;
}

static bool is_first_of_session(const struct compare_group *group, size_t job)
{
    for (size_t i = 0; i < job; i++)
        if (same_session(group->jobs[i], group->jobs[job]))
            return false;
    return true;
}

/* Compute the median of all runs of each session. work: COMPARE_RUNS_MAX values. */
static size_t session_values(const struct compare_group *group, const struct compare_source *source,
                             double *values, double *work)
{
    size_t sessions = 0;

    for (size_t i = 0; i < group->count && sessions < COMPARE_RUNS_MAX; i++) {
        if (!is_first_of_session(group, i))
            continue;
        size_t count = 0;
        for (size_t k = i; k < group->count && count == 0; k++)
            if (same_session(group->jobs[i], group->jobs[k]))
                count = keep_known(work, run_values(group->jobs[k], source, work));
        if (count)
            values[sessions++] = stats_summarise(work, count).median;
    }
    return sessions;
}

static size_t turns_of(const json_t *job)
{
    const double turns = load_number(job, "session.turns");

    return turns > 1 ? (size_t)turns : 1; /* absent in results of earlier versions */
}

/* Returns the number of pairs, 0 on another basis. values: 4 * COMPARE_RUNS_MAX. */
static size_t compare_one(const struct compare_group *a, const struct compare_group *b,
                          const struct compare_source *source, double *values,
                          const struct comparison *comparison, struct compare_figure *figure)
{
    double *a_values = values, *b_values = values + COMPARE_RUNS_MAX;
    double *work = values + 2 * (size_t)COMPARE_RUNS_MAX;
    const size_t turns = comparison->turns;

    *figure = (struct compare_figure){.name = source->name,
                                      .unit = source->unit,
                                      .key = source->key,
                                      .more_is_better = !source->less_is_better,
                                      .a = NAN,
                                      .b = NAN,
                                      .change_percent = NAN,
                                      .low_percent = NAN,
                                      .high_percent = NAN,
                                      .p = NAN,
                                      .p_corrected = NAN,
                                      .sign_flip_p = NAN,
                                      .least_p = NAN};
    if (comparison->basis != COMPARE_PAIRS) {
        const size_t a_count = session_values(a, source, a_values, work);
        const size_t b_count = session_values(b, source, b_values, work);
        if (a_count == 0 || b_count == 0)
            return 0;
        figure->a = stats_summarise(a_values, a_count).median;
        figure->b = stats_summarise(b_values, b_count).median;
        if (figure->a > 0)
            figure->change_percent = 100 * (figure->b / figure->a - 1);
        if (a_count > 1 && b_count > 1) {
            figure->p = stats_mann_whitney_p(a_values, a_count, b_values, b_count);
            figure->least_p = compare_least_p(a_count, b_count);
        }
        figure->p_corrected = figure->p;
        return 0;
    }
    /* Pair the turns of both, in all sessions in which they alternated. Unknown values stay, so
     * that the turns of a pair stay together. */
    size_t count = 0;
    for (size_t i = 0; i < a->count; i++) {
        const json_t *partner = partner_of(a->jobs[i], b);
        if (!partner || turns_of(partner) != turns)
            continue;
        const size_t mine = run_values(a->jobs[i], source, work);
        const size_t its = run_values(partner, source, work + COMPARE_RUNS_MAX);
        const size_t both = mine < its ? mine : its;
        for (size_t k = 0; k < both - both % turns && count < COMPARE_RUNS_MAX; k++) {
            a_values[count] = work[k];
            b_values[count++] = work[COMPARE_RUNS_MAX + k];
        }
    }
    const struct paired paired =
        paired_test(a_values, b_values, count, turns, comparison->is_until);
    if (paired.pairs == 0)
        return 0;
    figure->a = stats_summarise(a_values, keep_known(a_values, count)).median;
    figure->b = stats_summarise(b_values, keep_known(b_values, count)).median;
    figure->change_percent = 100 * (paired.ratio - 1);
    figure->low_percent = 100 * (paired.low - 1);
    figure->high_percent = 100 * (paired.high - 1);
    figure->p = figure->p_corrected = paired.p;
    figure->sign_flip_p = paired.sign_flip_p;
    figure->least_p = 0;
    return paired.pairs;
}

/* ---- basis ---- */

/* The text of the cache belongs to a job. */
static struct compare_side side_of(const struct compare_group *group)
{
    struct compare_side side = {.valid = true, .cache = ""};

    for (size_t i = 0; i < group->count; i++) {
        const json_t *job = group->jobs[i];
        const char *cache = load_text(job, "summary.cache_before");
        cache = cache ? cache : "";
        side.runs += json_array_size(json_object_get(job, "runs"));
        side.sessions += is_first_of_session(group, i);
        side.valid &= load_true(job, "valid");
        side.degraded |= load_degraded(job) != NULL;
        side.makes |= json_is_object(json_object_get(job, "entry_points"));
        side.cache = i == 0 || strcmp(cache, side.cache) == 0 ? cache : "mixed";
    }
    return side;
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

int compare_groups(const struct compare_group *a, const struct compare_group *b,
                   struct comparison *comparison)
{
    double *values = memory_array(4 * (size_t)COMPARE_RUNS_MAX, sizeof *values);

    *comparison = (struct comparison){
        .basis = COMPARE_NOTHING,
        .a = side_of(a),
        .b = side_of(b),
        .data = LOAD_DATA_SAME,
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
        comparison->is_until |= load_true(a->jobs[i], "session.runs_auto");
    }
    if (comparison->basis == COMPARE_NOTHING && comparison->a.sessions > 1 &&
        comparison->b.sessions > 1)
        comparison->basis = COMPARE_SESSIONS;
    /* Each result with each other one: a set may be replaced between those of one side, too. */
    for (size_t i = 0; i < a->count + b->count; i++)
        for (size_t k = 0; k < i; k++) {
            const enum load_data pair =
                load_compare_data(i < a->count ? a->jobs[i] : b->jobs[i - a->count],
                                  k < a->count ? a->jobs[k] : b->jobs[k - a->count]);
            if (pair != LOAD_DATA_SAME && comparison->data != LOAD_DATA_REPLACED)
                comparison->data = pair;
        }
    for (int i = COMPARE_FIGURES; i-- > 0;)
        comparison->pairs =
            compare_one(a, b, &sources[i], values, comparison, &comparison->figures[i]);
    free(values);
    return 0;
}

void compare_correct(struct comparison *comparisons, size_t count)
{
    double p[PAIRED_HOLM_MAX];

    assert(count <= PAIRED_HOLM_MAX);
    for (int i = 0; i < COMPARE_FIGURES; i++) {
        for (size_t k = 0; k < count; k++)
            p[k] = comparisons[k].figures[i].p;
        paired_holm(p, count);
        for (size_t k = 0; k < count; k++)
            comparisons[k].figures[i].p_corrected = p[k];
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
    /* Sessions have no interval, which rules out nothing. */
    return !isfinite(figure->p) || figure->least_p >= alpha ||
           !(figure->low_percent >= -COMPARE_RULED_OUT_PERCENT &&
             figure->high_percent <= COMPARE_RULED_OUT_PERCENT);
}

/* ---- text and JSON ---- */

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
    char number[WORDS_BYTES];
    snprintf(text, WORDS_BYTES, "%s/s", words_rate(value, number)); /* samples */
    return text;
}

static const char *verdict_of(const struct compare_figure *figure, double alpha)
{
    if (compare_significant(figure, alpha))
        return (figure->change_percent > 0) == figure->more_is_better ? "better" : "worse";
    return compare_untold(figure, alpha) ? "inconclusive" : "no difference";
}

static const char *cache_text(const char *cache)
{
    return escape_shown(*cache ? cache : "unknown");
}

void compare_basis(FILE *stream, const struct comparison *comparison, double alpha)
{
    const struct compare_figure *first = &comparison->figures[0];

    if (comparison->basis == COMPARE_PAIRS && comparison->turns > 1)
        words_printf(
            stream, "", 2,
            "%zu pairs, each the interquartile mean of %zu alternating runs, so rare stalls "
            "of one side do not count; change is the mean of their ratios, tested by the "
            "paired t test of logarithms",
            comparison->pairs, comparison->turns);
    else if (comparison->basis == COMPARE_PAIRS)
        words_printf(stream, "", 2,
                     "%zu pairs of alternating runs in random order; change is the mean of their "
                     "ratios, tested by the paired t test of logarithms",
                     comparison->pairs);
    else
        words_printf(stream, "", 2, "A: %zu runs in %zu %s, B: %zu runs in %zu %s%s",
                     comparison->a.runs, comparison->a.sessions,
                     comparison->a.sessions == 1 ? "session" : "sessions", comparison->b.runs,
                     comparison->b.sessions, comparison->b.sessions == 1 ? "session" : "sessions",
                     comparison->basis == COMPARE_SESSIONS
                         ? "; a session is one value, Mann-Whitney test"
                         : "");
    if (comparison->together > 1)
        words_printf(stream, "", 2, "p is corrected for %zu comparisons (Holm)",
                     comparison->together);
    if (comparison->basis == COMPARE_NOTHING)
        words_printf(stream, "", 2,
                     "Only one session on a side: the difference cannot be separated from "
                     "changes on the machine in between, however many runs a session has. "
                     "Alternate both in one session (iobench run --against 'OPTIONS'), or "
                     "measure each in 4 or more sessions.");
    else if (comparison->basis == COMPARE_PAIRS && comparison->pairs < 2)
        words_printf(stream, "", 2, "One pair is not enough: use --runs 5.");
    else if (first->least_p >= alpha)
        words_printf(stream, "", 2,
                     "With %zu and %zu sessions even the largest difference is not significant (p "
                     ">= %.2g).",
                     comparison->a.sessions, comparison->b.sessions, first->least_p);
    if (comparison->a.makes || comparison->b.makes)
        words_printf(stream, "", 2,
                     "%s made entry points, which slows the first epoch of the first run.",
                     comparison->a.makes && comparison->b.makes ? "A and B"
                     : comparison->a.makes                      ? "A"
                                                                : "B");
    if (comparison->data == LOAD_DATA_REPLACED)
        words_printf(stream, "", 2,
                     "The data set was replaced or written between the results: not all read the "
                     "same files, though at the same path.");
    if (strcmp(comparison->a.cache, comparison->b.cache) != 0 ||
        strcmp(comparison->a.cache, "mixed") == 0)
        words_printf(stream, "", 2,
                     "Caches before the runs: A %s, B %s, so what one had in memory the other may "
                     "have read from storage.",
                     cache_text(comparison->a.cache), cache_text(comparison->b.cache));
    if (comparison->basis == COMPARE_SESSIONS && comparison->one_then_other)
        words_printf(stream, "", 2,
                     "All sessions of one side came before those of the other: any other "
                     "change in between looks like a difference.");
}

void compare_text(FILE *stream, const char *name, const struct comparison *comparison, double alpha)
{
    if (*name)
        words_print(stream, "", 0, escape_shown(name));
    fprintf(stream, "  %-22s%s%12s%8s%15s%6s\n",
            comparison->basis == COMPARE_PAIRS ? "median of runs" : "median of sessions", "A", "B",
            "change", "95% interval", "p");
    for (int i = 0; i < COMPARE_FIGURES; i++) {
        const struct compare_figure *figure = &comparison->figures[i];
        char a[WORDS_BYTES], b[WORDS_BYTES], p[WORDS_BYTES] = "-", interval[WORDS_BYTES] = "-";
        if (!isfinite(figure->a) || !isfinite(figure->b))
            continue;
        if (isfinite(figure->p_corrected))
            snprintf(p, sizeof p, figure->p_corrected < 0.001 ? "%.0e" : "%.3f",
                     figure->p_corrected);
        if (isfinite(figure->low_percent) && figure->high_percent < 1000)
            snprintf(interval, sizeof interval, "%+.1f .. %+.1f", figure->low_percent,
                     figure->high_percent);
        else if (isfinite(figure->low_percent)) /* beyond 1000% digits mean nothing */
            snprintf(interval, sizeof interval, "%+.1f .. >1000", fmin(figure->low_percent, 1000));
        fprintf(stream, "  %-12s%11s%12s%+7.1f%% %14s%6s %s\n", figure->name,
                value_text(figure, figure->a, a), value_text(figure, figure->b, b),
                figure->change_percent, interval, p, verdict_of(figure, alpha));
    }
    compare_basis(stream, comparison, alpha);
}

json_t *compare_json(const char *label, const struct comparison *comparison, double alpha)
{
    static const char *const bases[] = {"pairs", "sessions", "nothing"};
    json_t *object = json_object(), *figures = json_object();

    json_put_text(object, "label", label);
    json_put_text(object, "basis", bases[comparison->basis]);
    json_put_count(object, "pairs", comparison->pairs);
    json_put_count(object, "turns", comparison->turns);
    json_put_count(object, "a_sessions", comparison->a.sessions);
    json_put_count(object, "b_sessions", comparison->b.sessions);
    json_put_count(object, "a_runs", comparison->a.runs);
    json_put_count(object, "b_runs", comparison->b.runs);
    json_object_set_new(object, "a_valid", json_boolean(comparison->a.valid));
    json_object_set_new(object, "b_valid", json_boolean(comparison->b.valid));
    json_object_set_new(object, "a_degraded", json_boolean(comparison->a.degraded));
    json_object_set_new(object, "b_degraded", json_boolean(comparison->b.degraded));
    json_put_text(object, "a_cache_before", *comparison->a.cache ? comparison->a.cache : NULL);
    json_put_text(object, "b_cache_before", *comparison->b.cache ? comparison->b.cache : NULL);
    json_object_set_new(object, "a_made_entry_points", json_boolean(comparison->a.makes));
    json_object_set_new(object, "b_made_entry_points", json_boolean(comparison->b.makes));
    json_object_set_new(object, "same_data",
                        comparison->data == LOAD_DATA_UNKNOWN
                            ? json_null()
                            : json_boolean(comparison->data == LOAD_DATA_SAME));
    json_put_count(object, "comparisons_together", comparison->together);
    for (int i = 0; i < COMPARE_FIGURES; i++) {
        const struct compare_figure *figure = &comparison->figures[i];
        json_t *entry = json_object();
        json_put_number(entry, "a_median", figure->a);
        json_put_number(entry, "b_median", figure->b);
        json_put_number(entry, "change_percent", figure->change_percent);
        json_put_number(entry, "change_low95_percent", figure->low_percent);
        json_put_number(entry, "change_high95_percent", figure->high_percent);
        json_put_number(entry, "p", figure->p);
        json_put_number(entry, "p_corrected", figure->p_corrected);
        json_put_number(entry, "sign_flip_p", figure->sign_flip_p);
        json_object_set_new(entry, "significant", json_boolean(compare_significant(figure, alpha)));
        json_put_text(entry, "verdict", verdict_of(figure, alpha));
        json_object_set_new(figures, figure->key, entry);
    }
    json_object_set_new(object, "figures", figures);
    return object;
}
