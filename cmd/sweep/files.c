/* SPDX-License-Identifier: Apache-2.0
 *
 * The result of a sweep as JSON and CSV. */
#include "cmd/sweep/sweep.h"

#include "base/fail.h"
#include "base/json.h"
#include "base/text_stream.h"
#include "cmd/json_file.h"
#include "cmd/sweep/scaling.h"
#include "report/report.h"
#include "report/seal.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SCHEMA_VERSION = 1 };

static json_t *known_text(const char *text)
{
    return text && *text ? json_text(text) : json_null();
}

static json_t *json_options(const struct sweep_plan *plan, uint32_t cell)
{
    json_t *options = json_object();

    for (size_t i = 0; i < plan->axis_count; i++)
        json_object_set_new(options, plan->axes[i].name, json_text(sweep_value(plan, cell, i)));
    return options;
}

static json_t *json_shares(const struct sweep_summary *summary)
{
    json_t *shares = json_object();
    char key[32];

    for (int i = 0; i < SWEEP_PARTS; i++) {
        snprintf(key, sizeof key, "%s_percent", sweep_part_names[i]);
        json_put_number(shares, key, 100 * summary->shares[i]);
    }
    return shares;
}

/* Return the rate and file of each measurement; null where it was left out. */
static json_t *json_runs(const struct sweep *sweep, uint32_t cell)
{
    json_t *runs = json_array();

    for (uint32_t round = 0; round < sweep->table.rounds; round++) {
        const struct sweep_figures *figures = sweep_at(&sweep->table, cell, round);
        char *path = sweep_folder_file(sweep, cell, round);
        const char *slash = path ? strrchr(path, '/') : NULL;
        json_array_append_new(
            runs, figures->is_measured
                      ? json_pack("{s:b, s:o, s:o, s:o}", "valid", (int)figures->is_valid,
                                  "invalid_reason", known_text(figures->reason), "samples_per_s",
                                  json_number(figures->is_valid ? figures->samples_per_s : NAN),
                                  "file", json_text(slash ? slash + 1 : NULL))
                      : json_null());
        free(path);
    }
    return runs;
}

static json_t *json_cell(const struct sweep *sweep, uint32_t cell)
{
    const struct sweep_summary summary = sweep_summarise(&sweep->table, cell);
    const struct stats_summary *rates = &summary.samples_per_s;
    const bool known = rates->count > 0;

    return json_pack(
        "{s:I, s:o, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "cell",
        (json_int_t)cell + 1, "options", json_options(&sweep->plan, cell), "measured",
        (json_int_t)summary.measured, "valid", (json_int_t)summary.valid, "invalid_reason",
        known_text(summary.reason), "samples_per_s", json_number(known ? rates->median : NAN),
        "samples_per_s_low95", json_number(known ? rates->low : NAN), "samples_per_s_high95",
        json_number(known ? rates->high : NAN), "samples_per_s_min",
        json_number(known ? rates->minimum : NAN), "samples_per_s_max",
        json_number(known ? rates->maximum : NAN), "interval_coverage",
        json_number(known ? rates->coverage : NAN), "randomness",
        json_number(summary.randomness > 0 ? summary.randomness : NAN), "limit",
        known_text(summary.limit), "cache_before", known_text(summary.cache), "shares",
        json_shares(&summary), "runs", json_runs(sweep, cell));
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

static void print_measurement(FILE *csv, const struct sweep *sweep, uint32_t cell, uint32_t round)
{
    const struct sweep_figures *figures = sweep_at(&sweep->table, cell, round);

    fprintf(csv, "%u,%u,", cell + 1, round + 1);
    for (size_t i = 0; i < sweep->plan.axis_count; i++) {
        report_csv_quoted(csv, sweep_value(&sweep->plan, cell, i));
        fputc(',', csv);
    }
    fputs(figures->is_valid ? "true," : "false,", csv);
    if (figures->samples_per_s > 0)
        fprintf(csv, "%.3f", figures->samples_per_s);
    fprintf(csv, ",%s,", figures->limit);
    report_csv_quoted(csv, figures->cache);
    fputc(',', csv);
    report_csv_quoted(csv, figures->reason);
    fputc('\n', csv);
}

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
        for (uint32_t round = 0; round < sweep->table.rounds; round++)
            if (sweep_at(&sweep->table, cell, round)->is_measured)
                print_measurement(csv.stream, sweep, cell, round);
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
