/* SPDX-License-Identifier: Apache-2.0
 * Comparisons as text and JSON. */
#include "base/escape.h"
#include "base/json.h"
#include "report/compare.h"
#include "report/words.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

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
    if (strcmp(figure->unit, "samples/s") == 0) {
        char number[WORDS_BYTES];
        snprintf(text, WORDS_BYTES, "%s/s", words_rate(value, number));
        return text;
    }
    return words_rate(value, text);
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
                     comparison->a.runs, comparison->a.sittings,
                     comparison->a.sittings == 1 ? "session" : "sessions", comparison->b.runs,
                     comparison->b.sittings, comparison->b.sittings == 1 ? "session" : "sessions",
                     comparison->basis == COMPARE_SITTINGS
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
                     comparison->a.sittings, comparison->b.sittings, first->least_p);
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
    if (comparison->basis == COMPARE_SITTINGS && comparison->one_then_other)
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
    static const char *const bases[] = {"pairs", "sittings", "nothing"};
    json_t *object = json_object(), *figures = json_object();

    json_put_text(object, "label", label);
    json_put_text(object, "basis", bases[comparison->basis]);
    json_object_set_new(object, "pairs", json_integer((json_int_t)comparison->pairs));
    json_object_set_new(object, "turns", json_integer((json_int_t)comparison->turns));
    json_object_set_new(object, "a_sittings", json_integer((json_int_t)comparison->a.sittings));
    json_object_set_new(object, "b_sittings", json_integer((json_int_t)comparison->b.sittings));
    json_object_set_new(object, "a_runs", json_integer((json_int_t)comparison->a.runs));
    json_object_set_new(object, "b_runs", json_integer((json_int_t)comparison->b.runs));
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
    json_object_set_new(object, "comparisons_together",
                        json_integer((json_int_t)comparison->together));
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
