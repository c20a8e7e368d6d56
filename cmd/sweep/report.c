/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of a sweep. */
#include "cmd/sweep/sweep.h"

#include "base/escape.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text_stream.h"
#include "cmd/json_file.h"
#include "report/report.h"
#include "report/seal.h"
#include "report/words.h"

#include <errno.h>
#include <inttypes.h>
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

static const char *interval_text(const struct stats_summary *stats, char *text)
{
    char low[WORDS_BYTES], high[WORDS_BYTES];

    snprintf(text, WORDS_BYTES, "-");
    if (stats->count > 1)
        snprintf(text, WORDS_BYTES, "%.16s .. %.16s", words_rate(stats->low, low),
                 words_rate(stats->high, high));
    return text;
}

void sweep_print_cells(FILE *stream, const struct sweep *sweep, uint32_t first, uint32_t count)
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

    for (size_t i = 0; i < sweep->plan.axis_count; i++)
        if (columns.axes[i])
            fprintf(stream, "%-*s  ", columns.axes[i], sweep->plan.axes[i].name);
    if (columns.has_randomness)
        fprintf(stream, "%8s  ", "random");
    fprintf(stream, "%10s  %19s  %-*s  %-*s  %s\n", "samples/s",
            sweep->table.rounds > 2 ? "95% interval" : "range", columns.limit, "limit",
            columns.cache, "cache", "valid");
    for (uint32_t cell = first; cell < first + count; cell++) {
        const struct sweep_summary summary = sweep_summarise(&sweep->table, cell);
        const struct stats_summary *rates = &summary.samples_per_s;
        char rate[WORDS_BYTES], interval[WORDS_BYTES], valid[32] = "";
        for (size_t i = 0; i < sweep->plan.axis_count; i++)
            if (columns.axes[i])
                fprintf(stream, "%-*s  ", columns.axes[i],
                        escape_shown(sweep_value(&sweep->plan, cell, i)));
        if (summary.measured)
            snprintf(valid, sizeof valid, "%u/%u", summary.valid, summary.measured);
        if (columns.has_randomness)
            fprintf(stream, "%7.1f%%  ", 100 * summary.randomness);
        fprintf(stream, "%10s  %19s  %-*s  %-*s  %s\n",
                words_rate(rates->count ? rates->median : NAN, rate),
                interval_text(rates, interval), columns.limit, summary.limit, columns.cache,
                summary.cache, valid);
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
            char rate[WORDS_BYTES];
            fprintf(stream, "%6s %10s", scale.ranks,
                    words_rate(scale.summary.samples_per_s.count
                                   ? scale.summary.samples_per_s.median
                                   : NAN,
                               rate));
            if (scale.speed_up.pairs)
                fprintf(stream, " %8.2f %9.0f%%", scale.speed_up.ratio, 100 * scale.efficiency);
            else
                fprintf(stream, " %8s %10s", "-", "-");
            for (int i = 0; i < SWEEP_PARTS; i++)
                if (isfinite(scale.summary.shares[i]))
                    fprintf(stream, " %7.0f%%", 100 * scale.summary.shares[i]);
                else
                    fprintf(stream, " %8s", "-");
            fputc('\n', stream);
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
            ": sweep of %s, %u cells, %u runs of each: %zu measured, %zu valid\n\n",
            sweep->target->command->name, sweep->plan.cells, sweep->table.rounds, measured, valid);
    sweep_print_cells(stream, sweep, 0, sweep->plan.cells);
    print_effects(stream, sweep);
    print_scaling(stream, sweep);
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
    if (left_out)
        fprintf(stream, "\nLeft out: %zu of %zu measurements: %s\n", total - measured, total,
                escape_shown(left_out));
}

enum { SCHEMA_VERSION = 1 };

static json_t *known_text(const char *text)
{
    return text && *text ? json_text(text) : json_null();
}

static json_t *json_cell(const struct sweep *sweep, uint32_t cell)
{
    const struct sweep_plan *plan = &sweep->plan;
    const struct sweep_summary summary = sweep_summarise(&sweep->table, cell);
    const struct stats_summary *rates = &summary.samples_per_s;
    const bool known = rates->count > 0;
    json_t *options = json_object(), *shares = json_object(), *runs = json_array();

    for (size_t i = 0; i < plan->axis_count; i++)
        json_object_set_new(options, plan->axes[i].name, json_text(sweep_value(plan, cell, i)));
    for (int i = 0; i < SWEEP_PARTS; i++) {
        char key[32];
        snprintf(key, sizeof key, "%s_percent", sweep_part_names[i]);
        json_put_number(shares, key, 100 * summary.shares[i]);
    }
    for (uint32_t round = 0; round < sweep->table.rounds; round++) {
        const struct sweep_figures *figures = sweep_at(&sweep->table, cell, round);
        char *path = sweep_folder_file(sweep, cell, round);
        const char *slash = path ? strrchr(path, '/') : NULL;
        json_array_append_new(/* null where it was left out */
                              runs,
                              figures->is_measured
                                  ? json_pack("{s:b, s:o, s:o, s:o}", "valid",
                                              (int)figures->is_valid, "invalid_reason",
                                              known_text(figures->reason), "samples_per_s",
                                              json_number(figures->is_valid ? figures->samples_per_s
                                                                            : NAN),
                                              "file", json_text(slash ? slash + 1 : NULL))
                                  : json_null());
        free(path);
    }
    return json_pack(
        "{s:I, s:o, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "cell",
        (json_int_t)cell + 1, "options", options, "measured", (json_int_t)summary.measured, "valid",
        (json_int_t)summary.valid, "invalid_reason", known_text(summary.reason), "samples_per_s",
        json_number(known ? rates->median : NAN), "samples_per_s_low95",
        json_number(known ? rates->low : NAN), "samples_per_s_high95",
        json_number(known ? rates->high : NAN), "samples_per_s_min",
        json_number(known ? rates->minimum : NAN), "samples_per_s_max",
        json_number(known ? rates->maximum : NAN), "interval_coverage",
        json_number(known ? rates->coverage : NAN), "randomness",
        json_number(summary.randomness > 0 ? summary.randomness : NAN), "limit",
        known_text(summary.limit), "cache_before", known_text(summary.cache), "shares", shares,
        "runs", runs);
}

static json_t *json_effects(const struct sweep *sweep)
{
    size_t count;
    struct sweep_effect *effects = sweep_effects(&sweep->table, &count);
    json_t *list = json_array();

    for (size_t i = 0; effects && i < count; i++) {
        const struct sweep_axis *axis = &sweep->plan.axes[effects[i].axis];
        const struct paired *paired = &effects[i].paired;
        json_array_append_new(
            list,
            json_pack("{s:s, s:o, s:o, s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "option", axis->name,
                      "value", json_text(axis->values[effects[i].digit]), "against",
                      json_text(axis->values[0]), "pairs", (json_int_t)paired->pairs,
                      "pairs_of_other_caches", (json_int_t)effects[i].cache_pairs, "ratio",
                      json_number(paired->ratio), "ratio_low95", json_number(paired->low),
                      "ratio_high95", json_number(paired->high), "p", json_number(paired->p),
                      "p_corrected", json_number(effects[i].p_corrected)));
    }
    free(effects);
    return list;
}

static json_t *json_scaling(const struct sweep *sweep)
{
    const size_t axis = sweep_scaling_axis(&sweep->plan);
    json_t *cells = json_array();

    if (axis == SWEEP_NO_AXIS) {
        json_decref(cells);
        return json_null();
    }
    for (uint32_t cell = 0; cell < sweep->plan.cells; cell++) {
        const struct sweep_scale scale = sweep_scale_of(&sweep->table, cell, axis);
        json_array_append_new(
            cells, json_pack("{s:I, s:s, s:o, s:o, s:o, s:o}", "cell", (json_int_t)cell + 1, "kind",
                             sweep_scaling_kind(&sweep->plan, cell), "speed_up",
                             json_number(scale.speed_up.ratio), "speed_up_low95",
                             json_number(scale.speed_up.low), "speed_up_high95",
                             json_number(scale.speed_up.high), "efficiency_percent",
                             json_number(100 * scale.efficiency)));
    }
    return json_pack("{s:s, s:s, s:o}", "kind",
                     sweep_axis_named(&sweep->plan, SWEEP_SCALING)
                         ? "strong,weak"
                         : sweep_scaling_kind(&sweep->plan, 0),
                     "over", sweep->plan.axes[axis].name, "cells", cells);
}

static json_t *json_of(const struct sweep *sweep, const char *left_out)
{
    json_t *cells = json_array();
    char fingerprint[17], command[4096];

    for (uint32_t cell = 0; cell < sweep->plan.cells; cell++)
        json_array_append_new(cells, json_cell(sweep, cell));
    snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, sweep->fingerprint);
    command_text(sweep->invocation, command, sizeof command);
    json_t *document =
        json_pack("{s:s, s:i, s:s, s:o, s:s, s:o, s:s, s:I, s:I, s:o, s:o, s:o, s:o}", "schema",
                  "iobench-sweep", "schema_version", SCHEMA_VERSION, "iobench_version",
                  PACKAGE_VERSION, "command", json_text(command), "swept",
                  sweep->target->command->name, "folder", json_text(sweep->folder.path),
                  "fingerprint", fingerprint, "runs", (json_int_t)sweep->table.rounds, "order_seed",
                  (json_int_t)sweep->settings->order_seed, "left_out_reason", known_text(left_out),
                  "cells", cells, "effects", json_effects(sweep), "scaling", json_scaling(sweep));
    if (document && seal_add(document)) {
        json_decref(document);
        document = NULL;
    }
    return document;
}

/* ---- CSV ---- */

/* One row per measurement. */
static int write_csv(const struct sweep *sweep)
{
    struct text_stream csv;
    char *text = NULL;
    size_t bytes;
    int code = text_stream_open(&csv);

    if (code)
        return code;
    fputs("cell,run,", csv.stream);
    for (size_t i = 0; i < sweep->plan.axis_count; i++)
        fprintf(csv.stream, "%s,", sweep->plan.axes[i].name);
    fputs("valid,samples_per_s,limit,cache_before,invalid_reason\n", csv.stream);
    for (uint32_t cell = 0; cell < sweep->plan.cells; cell++)
        for (uint32_t round = 0; round < sweep->table.rounds; round++) {
            const struct sweep_figures *figures = sweep_at(&sweep->table, cell, round);
            if (!figures->is_measured)
                continue;
            fprintf(csv.stream, "%u,%u,", cell + 1, round + 1);
            for (size_t i = 0; i < sweep->plan.axis_count; i++) {
                report_csv_quoted(csv.stream, sweep_value(&sweep->plan, cell, i));
                fputc(',', csv.stream);
            }
            fputs(figures->is_valid ? "true," : "false,", csv.stream);
            if (figures->samples_per_s > 0)
                fprintf(csv.stream, "%.3f", figures->samples_per_s);
            fprintf(csv.stream, ",%s,", figures->limit);
            report_csv_quoted(csv.stream, figures->cache);
            fputc(',', csv.stream);
            report_csv_quoted(csv.stream, figures->reason);
            fputc('\n', csv.stream);
        }
    code = text_stream_take(&csv, &text, &bytes);
    if (code == 0 && strcmp(sweep->settings->csv, "-") == 0)
        fputs(text, stdout);
    else if (code == 0)
        code = report_write_file(sweep->settings->csv, text, bytes);
    free(text);
    return code;
}

int sweep_write_files(const struct sweep *sweep, const char *left_out)
{
    int code = 0;

    if (sweep->settings->csv)
        code = write_csv(sweep);
    if (code == 0 && sweep->settings->json)
        code = json_file_write(sweep->settings->json, json_of(sweep, left_out));
    return code;
}
