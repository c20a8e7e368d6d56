/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of a sweep. */
#include "cmd/sweep/sweep.h"

#include "base/escape.h"
#include "base/memory.h"
#include "cmd/sweep/scaling.h"
#include "report/words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- cells ---- */

struct sweep_columns {
    int axes[SWEEP_AXES_MAX]; /* 0: single value, not shown */
    int limit, cache;
    bool has_rates, has_randomness;
};

static int wider(int width, const char *text)
{
    const int length = (int)strlen(escape_shown(text));

    return length > width ? length : width;
}

static struct sweep_columns columns_of(const struct sweep *sweep)
{
    const struct sweep_plan *plan = &sweep->plan;
    struct sweep_columns columns = {.limit = 5, .cache = 5};

    for (size_t i = 0; i < plan->axis_count; i++) {
        const struct sweep_axis *axis = &plan->axes[i];
        for (size_t k = 0; axis->count > 1 && k < axis->count; k++)
            columns.axes[i] = wider(wider(columns.axes[i], axis->name), axis->values[k]);
    }
    for (size_t i = 0; i < (size_t)plan->cells * sweep->table.rounds; i++) {
        const struct sweep_figures *figures = &sweep->table.figures[i];
        columns.limit = wider(columns.limit, figures->limit);
        columns.cache = wider(columns.cache, figures->cache);
        columns.has_rates |= figures->samples_per_s > 0;
        columns.has_randomness |= figures->randomness > 0;
    }
    return columns;
}

static void print_cell_heading(FILE *stream, const struct sweep *sweep,
                               const struct sweep_columns *columns)
{
    for (size_t i = 0; i < sweep->plan.axis_count; i++)
        if (columns->axes[i])
            fprintf(stream, "%-*s  ", columns->axes[i], sweep->plan.axes[i].name);
    if (columns->has_randomness)
        fprintf(stream, "%8s  ", "random");
    fprintf(stream, "%10s  %19s  %-*s  %-*s  %s\n", "samples/s",
            sweep->table.rounds > 2 ? "95% interval" : "range", columns->limit, "limit",
            columns->cache, "cache", "valid");
}

static const char *interval_text(const struct stats_summary *stats, char *text)
{
    char low[WORDS_BYTES], high[WORDS_BYTES];

    snprintf(text, WORDS_BYTES, "-");
    if (stats->count > 1)
        snprintf(text, WORDS_BYTES, "%.16s .. %.16s", words_rate(stats->low, low),
                 words_rate(stats->high, high));
    return text;
}

static void print_cell(FILE *stream, const struct sweep *sweep, const struct sweep_columns *columns,
                       uint32_t cell)
{
    const struct sweep_summary summary = sweep_summarise(&sweep->table, cell);
    const struct stats_summary *rates = &summary.samples_per_s;
    char rate[WORDS_BYTES], interval[WORDS_BYTES], valid[32] = "";

    for (size_t i = 0; i < sweep->plan.axis_count; i++)
        if (columns->axes[i])
            fprintf(stream, "%-*s  ", columns->axes[i],
                    escape_shown(sweep_value(&sweep->plan, cell, i)));
    if (summary.measured)
        snprintf(valid, sizeof valid, "%u/%u", summary.valid, summary.measured);
    if (columns->has_randomness)
        fprintf(stream, "%7.1f%%  ", 100 * summary.randomness);
    fprintf(stream, "%10s  %19s  %-*s  %-*s  %s\n",
            words_rate(rates->count ? rates->median : NAN, rate), interval_text(rates, interval),
            columns->limit, summary.limit, columns->cache, summary.cache, valid);
}

void sweep_print_cells(FILE *stream, const struct sweep *sweep, uint32_t first, uint32_t count)
{
    const struct sweep_columns columns = columns_of(sweep);

    print_cell_heading(stream, sweep, &columns);
    for (uint32_t cell = first; cell < first + count; cell++)
        print_cell(stream, sweep, &columns, cell);
}

static void print_failures(FILE *stream, const struct sweep *sweep)
{
    bool any = false;

    for (uint32_t cell = 0; cell < sweep->plan.cells; cell++) {
        const struct sweep_summary summary = sweep_summarise(&sweep->table, cell);
        char title[512];
        if (!summary.reason)
            continue;
        if (!any)
            fprintf(stream, "\nNot valid, and in no figure:\n");
        any = true;
        fprintf(stream, "  %s: %s\n",
                escape_shown(sweep_title(&sweep->plan, cell, title, sizeof title)),
                escape_shown(summary.reason));
    }
}

/* ---- effects ---- */

static const char *p_text(double p, char *text)
{
    if (isfinite(p))
        snprintf(text, WORDS_BYTES, p < 0.001 ? "%.0e" : "%.3f", p);
    else
        snprintf(text, WORDS_BYTES, "-");
    return text;
}

static const char *ratio_text(const struct paired *paired, char *text)
{
    snprintf(text, WORDS_BYTES, "-");
    if (paired->pairs > 1)
        snprintf(text, WORDS_BYTES, "%.3f .. %.3f", paired->low, paired->high);
    return text;
}

static void print_effects(FILE *stream, const struct sweep *sweep)
{
    size_t count;
    struct sweep_effect *effects = sweep_effects(&sweep->table, &count);
    int option = 6, value = 5, against = 7;
    bool any = false;

    for (size_t i = 0; effects && i < count; i++) {
        const struct sweep_axis *axis = &sweep->plan.axes[effects[i].axis];
        any |= effects[i].paired.pairs > 0;
        option = wider(option, axis->name);
        value = wider(value, axis->values[effects[i].digit]);
        against = wider(against, axis->values[0]);
    }
    if (any)
        fprintf(
            stream,
            "\nMain effects: ratio of samples/s to that of the first value, over all pairs of a "
            "round\nthat differ in this option alone\n%-*s  %-*s  %-*s  %6s  %15s  %6s  %5s\n",
            option, "option", value, "value", against, "against", "ratio", "95% interval", "p",
            "pairs");
    for (size_t i = 0; any && i < count; i++) {
        const struct sweep_axis *axis = &sweep->plan.axes[effects[i].axis];
        const struct paired *paired = &effects[i].paired;
        char p[WORDS_BYTES], interval[WORDS_BYTES];
        if (paired->pairs)
            fprintf(stream, "%-*s  %-*s  %-*s  %6.3f  %15s  %6s  %5zu\n", option, axis->name, value,
                    escape_shown(axis->values[effects[i].digit]), against,
                    escape_shown(axis->values[0]), paired->ratio, ratio_text(paired, interval),
                    p_text(effects[i].p_corrected, p), paired->pairs);
    }
    for (size_t i = 0; any && i < count; i++)
        if (effects[i].cache_pairs)
            fprintf(stream,
                    "%s=%s: the caches differed in %zu of %zu pairs: one may have read from "
                    "memory\n",
                    sweep->plan.axes[effects[i].axis].name,
                    escape_shown(sweep->plan.axes[effects[i].axis].values[effects[i].digit]),
                    effects[i].cache_pairs, effects[i].paired.pairs);
    free(effects);
}

/* ---- scaling ---- */

static void print_scale(FILE *stream, const struct sweep_scale *scale)
{
    char rate[WORDS_BYTES];

    fprintf(
        stream, "%6s %10s", scale->ranks,
        words_rate(scale->summary.samples_per_s.count ? scale->summary.samples_per_s.median : NAN,
                   rate));
    if (scale->speed_up.pairs)
        fprintf(stream, " %8.2f %9.0f%%", scale->speed_up.ratio, 100 * scale->efficiency);
    else
        fprintf(stream, " %8s %10s", "-", "-");
    for (int i = 0; i < SWEEP_PARTS; i++)
        if (isfinite(scale->summary.shares[i]))
            fprintf(stream, " %7.0f%%", 100 * scale->summary.shares[i]);
        else
            fprintf(stream, " %8s", "-");
    fputc('\n', stream);
}

static void print_scaling(FILE *stream, const struct sweep *sweep)
{
    const size_t axis = sweep_scaling_axis(&sweep->plan);

    if (axis == SWEEP_NO_AXIS)
        return;
    for (uint32_t cell = 0; cell < sweep->plan.cells; cell++) {
        char title[512];
        if (sweep_digit(&sweep->plan, cell, axis))
            continue;
        sweep_title_without(&sweep->plan, cell, axis, SWEEP_SCALING, title, sizeof title);
        const bool weak = strcmp(sweep_scaling_kind(&sweep->plan, cell), "weak") == 0;
        fprintf(stream, "\n%s scaling%s%s; shares of the time of a rank\n%6s %10s %8s %10s",
                weak ? "Weak" : "Strong", *title ? ", " : "", escape_shown(title),
                sweep->plan.axes[axis].name, "samples/s", "speed-up", "efficiency");
        for (int i = 0; i < SWEEP_PARTS; i++)
            fprintf(stream, " %8s", sweep_part_names[i]);
        fputc('\n', stream);
        for (size_t digit = 0; digit < sweep->plan.axes[axis].count; digit++) {
            const struct sweep_scale scale = sweep_scale_of(
                &sweep->table, sweep_neighbour(&sweep->plan, cell, axis, digit), axis);
            print_scale(stream, &scale);
        }
    }
}

/* ---- */

void sweep_print(FILE *stream, const struct sweep *sweep, const char *left_out)
{
    const size_t total = (size_t)sweep->plan.cells * sweep->table.rounds;
    size_t measured = 0, valid = 0;

    for (size_t i = 0; i < total; i++) {
        measured += sweep->table.figures[i].is_measured;
        valid += sweep->table.figures[i].is_valid;
    }
    fprintf(stream,
            "iobench " PACKAGE_VERSION
            ": sweep of %s, %u cells, %u runs of each: %zu measured, %zu "
            "valid\n\n",
            sweep->target->command->name, sweep->plan.cells, sweep->table.rounds, measured, valid);
    sweep_print_cells(stream, sweep, 0, sweep->plan.cells);
    print_effects(stream, sweep);
    print_scaling(stream, sweep);
    print_failures(stream, sweep);
    if (left_out)
        fprintf(stream, "\nLeft out: %zu of %zu measurements: %s\n", total - measured, total,
                escape_shown(left_out));
}
