/* SPDX-License-Identifier: Apache-2.0
 *
 * iobench sweep: measures a command over all combinations of its options' values. A measurement's
 * file appears complete, by renaming, so a kill at any moment loses at most the measurement that
 * ran. That measurement continues without its sweep: it holds the folder's lock, and a resumed
 * sweep waits for its result.
 */
#include "cmd/sweep/sweep.h"

#include "base/child.h"
#include "base/clock.h"
#include "base/draft.h"
#include "base/escape.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/stop.h"
#include "cmd/arguments.h"
#include "cmd/commands.h"
#include "cmd/outputs.h"
#include "cmd/command.h"
#include "report/report.h"
#include "report/words.h"
#include "shuffle/plan.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum sweep_scaling { SWEEP_SCALING_AUTO, SWEEP_STRONG, SWEEP_WEAK, SWEEP_STRONG_WEAK };

/* Name of the axis of both kinds of scaling. */
#define SWEEP_SCALING "scaling"

struct sweep_scale {
    const char *ranks; /* the cell's value on the axis */
    struct sweep_summary summary;
    struct paired speed_up; /* samples/s over those at the axis's first value, round by round */
    double efficiency;      /* speed-up over the growth in ranks */
};

/* ---- scaling: speed-up and efficiency over ranks or nodes, and where their time went ---- */

static const char per_rank[] = "limit-samples-per-rank";

/* Return the scaling axis: ranks, else nodes, if it has several values; SWEEP_NO_AXIS: none. */
static size_t sweep_scaling_axis(const struct sweep_plan *plan)
{
    static const char *const names[] = {"ranks", "nodes"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct sweep_axis *axis = sweep_axis_named(plan, names[i]);
        if (axis && axis->count > 1 && !axis->row)
            return (size_t)(axis - plan->axes);
    }
    return SWEEP_NO_AXIS;
}

/* Return "strong" if any number of ranks has the same samples in all, "weak" if each rank has. */
static const char *sweep_scaling_kind(const struct sweep_plan *plan, uint32_t cell)
{
    const struct sweep_axis *both = sweep_axis_named(plan, SWEEP_SCALING);

    if (both)
        return sweep_value(plan, cell, (size_t)(both - plan->axes));
    return sweep_axis_named(plan, per_rank) ? "weak" : "strong";
}

/* Check --scaling against the other options, and add the axis of both kinds of scaling if it asks
 * for them. Returns 0, or a negative errno with a reason. */
static int sweep_scaling_plan(struct sweep *sweep)
{
    const bool weak = sweep_axis_named(&sweep->plan, per_rank);
    const int wanted = sweep->settings->scaling;

    if (wanted != SWEEP_SCALING_AUTO && sweep_scaling_axis(&sweep->plan) == SWEEP_NO_AXIS)
        return fail(EINVAL, "--scaling needs several values of --ranks or --nodes");
    if (wanted == SWEEP_STRONG_WEAK) {
        const struct sweep_axis *job = sweep_axis_named(&sweep->plan, "limit-samples");
        const struct sweep_axis *rank = sweep_axis_named(&sweep->plan, per_rank);
        if (!rank || rank->count > 1 || (job && job->count > 1))
            return fail(EINVAL,
                        "--scaling strong,weak needs one --%s, and at most one --limit-samples for "
                        "the job",
                        per_rank);
        return sweep_add(&sweep->plan, SWEEP_SCALING, NULL, NULL, "strong,weak");
    }
    if (weak && sweep_axis_named(&sweep->plan, "limit-samples"))
        return fail(EINVAL,
                    "only one of --limit-samples and --%s applies, unless --scaling is strong,weak",
                    per_rank);
    if (wanted == SWEEP_WEAK && !weak)
        return fail(EINVAL, "--scaling weak needs --%s, the samples of each rank", per_rank);
    if (wanted == SWEEP_STRONG && weak)
        return fail(EINVAL,
                    "--scaling strong keeps the samples of the job: use --limit-samples "
                    "instead of --%s",
                    per_rank);
    return 0;
}

static struct sweep_scale sweep_scale_of(const struct sweep_table *table, uint32_t cell,
                                         size_t axis)
{
    const uint32_t first = sweep_neighbour(table->plan, cell, axis, 0);
    struct sweep_scale scale = {.ranks = sweep_value(table->plan, cell, axis),
                                .summary = sweep_summarise(table, cell),
                                .speed_up = sweep_against_first(table, cell, axis)};

    scale.efficiency =
        scale.speed_up.pairs
            ? scale.speed_up.ratio /
                  (strtod(scale.ranks, NULL) / strtod(sweep_value(table->plan, first, axis), NULL))
            : NAN;
    return scale;
}

/* ---- folder ---- */

enum { POLL_NS = 250000000 };

static const char plan_name[] = "sweep.json", lock_name[] = ".sweep.lock";
static const char plan_schema[] = "iobench-sweep-plan", failure_schema[] = "iobench-sweep-failure";

/* ---- measurements ---- */

/* Return the malloc()ed path of a measurement, or NULL with a reason. */
static char *sweep_folder_file(const struct sweep *sweep, uint32_t cell, uint32_t round)
{
    return file_format_path("%s/cell-%05u-run-%u.json", sweep->folder.path, cell + 1, round + 1);
}

/* Load a measurement; -ENOENT if it is missing. */
static int load_measurement(struct sweep *sweep, uint32_t cell, uint32_t round)
{
    struct sweep_figures *figures = &sweep->table.figures[(size_t)round * sweep->plan.cells + cell];
    char *path = sweep_folder_file(sweep, cell, round);
    int code = 0;

    *figures = (struct sweep_figures){0};
    if (!path || !file_exists(path)) {
        code = path ? -ENOENT : -ENOMEM;
        free(path);
        return code;
    }
    json_t *document = load_file(path);
    const char *schema = load_text(document, "schema"), *reason = load_text(document, "reason");
    figures->is_measured = document;
    if (!document)
        code = -EINVAL;
    else if (!schema || strcmp(schema, failure_schema) != 0)
        code = sweep->target->read(document, figures);
    else
        snprintf(figures->reason, sizeof figures->reason, "%s", reason ? reason : "it failed");
    json_decref(document);
    /* Measurements of two sets are no pairs: a sweep that is resumed may find another one at the
     * path. */
    const struct sweep_figures *other =
        code == 0 && figures->is_valid ? sweep_of_other_set(&sweep->table, figures) : NULL;
    if (other) {
        figures->is_valid = false;
        figures->is_replaced = true;
        if (figures->set_samples == other->set_samples && figures->set_bytes == other->set_bytes)
            snprintf(
                figures->reason, sizeof figures->reason,
                "the files of the data set are not those of another measurement, though it has as "
                "many samples and bytes: it was replaced or written; name another folder with -o");
        else
            snprintf(figures->reason, sizeof figures->reason,
                     "the data set has %.0f samples of %.0f bytes in all, and had %.0f of %.0f in "
                     "another measurement: it was replaced; name another folder with -o",
                     figures->set_samples, figures->set_bytes, other->set_samples,
                     other->set_bytes);
    }
    if (code)
        code = fail(EINVAL, "%s: %s: remove it to measure this cell again", path, fail_reason());
    free(path);
    return code;
}

static int remove_measurement(struct sweep *sweep, uint32_t cell, uint32_t round)
{
    char *path = sweep_folder_file(sweep, cell, round);
    struct folder folder;
    const char *name;
    int code = path ? folder_open_parent(&folder, path, &name) : -ENOMEM;

    if (code == 0)
        code = folder_remove(&folder, name, NULL);
    if (path)
        folder_close(&folder);
    free(path);
    return code == -ENOENT ? 0 : code;
}

/* ---- the plan ---- */

/* Return whether it is the draft of a file that sweeps write. */
static bool is_left_draft(const char *name)
{
    return file_is_draft_name(name) &&
           (strncmp(name, ".sweep.json.", 12) == 0 || strncmp(name, ".cell-", 6) == 0);
}

static int open_plan(struct sweep *sweep)
{
    char *path = file_join(sweep->folder.path, plan_name);
    const bool has_plan = path && file_exists(path);
    int code = path ? 0 : -ENOMEM;

    if (code == 0 && has_plan) {
        json_t *document = load_file(path);
        const char *schema = load_text(document, "schema");
        const char *fingerprint = load_text(document, "fingerprint");
        const char *command = load_text(document, "command");
        code = document ? 0 : -EINVAL;
        if (document && (!schema || strcmp(schema, plan_schema) != 0))
            code = fail(EEXIST, "%s: is not the plan of a sweep", path);
        else if (document && (!fingerprint || strcmp(fingerprint, sweep->fingerprint) != 0))
            code = fail(EEXIST,
                        "%s: holds another sweep (%s), or that of another build: name another "
                        "folder with -o",
                        sweep->folder.path, command ? command : "unknown");
        json_decref(document);
    }
    /* Remove drafts that a killed sweep left behind; refuse a folder of other files without a plan,
     * whose drafts are not a sweep's. */
    struct folder_names names = {0};
    struct folder folder = {.fd = -1};
    if (code == 0)
        code = folder_open(&folder, sweep->folder.path);
    if (code == 0)
        code = folder_names_read(&names, &folder);
    for (size_t i = 0; i < names.count && code == 0 && !has_plan; i++)
        if (!is_left_draft(names.list[i]) && strcmp(names.list[i], lock_name) != 0)
            code = fail(EEXIST, "%s: holds other files and no sweep: name another folder with -o",
                        sweep->folder.path);
    for (size_t i = 0; i < names.count && code == 0; i++)
        if (is_left_draft(names.list[i]))
            code = folder_remove(&folder, names.list[i], NULL);
    folder_names_release(&names);
    folder_close(&folder);
    if (code == 0 && !has_plan) {
        json_t *options = json_object();
        char command[4096];
        for (size_t i = 0; i < sweep->plan.axis_count; i++) {
            const struct sweep_axis *axis = &sweep->plan.axes[i];
            json_t *values = json_array();
            for (size_t k = 0; k < axis->count; k++)
                json_array_append_new(values, json_text(axis->values[k]));
            json_object_set_new(options, axis->name, values);
        }
        command_text(sweep->invocation, command, sizeof command);
        code = json_file_write(
            path,
            json_pack("{s:s, s:i, s:s, s:s, s:o, s:s, s:I, s:o, s:o}", "schema", plan_schema,
                      "schema_version", SCHEMA_VERSION, "iobench_version", PACKAGE_VERSION,
                      "fingerprint", sweep->fingerprint, "command", json_text(command), "swept",
                      sweep->target->command->name, "cells", (json_int_t)sweep->plan.cells,
                      "launch", json_text(sweep->launch), "options", options));
    }
    free(path);
    return code;
}

/* ---- the folder ---- */

/* Create or reopen the folder, wait until no measurement runs in it, and load its contents.
 * Returns 0, -EEXIST if it belongs to another sweep, or another negative errno with a reason. */
static int sweep_folder_open(struct sweep *sweep)
{
    sweep->folder.lock.fd = -1;
    sweep->folder.path = sweep->settings->output
                             ? strdup(sweep->settings->output)
                             : file_format_path("iobench-sweep-%.8s", sweep->fingerprint);
    int code = sweep->folder.path ? folder_make_path(sweep->folder.path) : -ENOMEM;
    char *path = code == 0 ? file_join(sweep->folder.path, lock_name) : NULL;

    for (bool is_told = false; path;) {
        code = file_lock_acquire(&sweep->folder.lock, path);
        if (code != -EBUSY)
            break;
        if (!is_told)
            fprintf(stderr, "iobench sweep: a measurement is still running there: %s\n",
                    escape_shown(fail_reason()));
        is_told = true;
        if ((code = stop_check()))
            break;
        clock_sleep_ns(POLL_NS);
    }
    if (code == 0 && !path)
        code = -ENOMEM;
    free(path);
    if (code == 0)
        code = open_plan(sweep);
    for (uint32_t round = 0; round < sweep->table.rounds && code == 0; round++)
        for (uint32_t cell = 0; cell < sweep->plan.cells && code == 0; cell++) {
            code = load_measurement(sweep, cell, round);
            const struct sweep_figures *figures = sweep_at(&sweep->table, cell, round);
            if (code == 0 &&
                (figures->is_interrupted || (sweep->settings->retry && !figures->is_valid)))
                code = remove_measurement(sweep, cell, round) ? -EIO : -ENOENT;
            if (code == -ENOENT)
                sweep->table.figures[(size_t)round * sweep->plan.cells + cell] =
                    (struct sweep_figures){0};
            sweep->folder.kept += code == 0;
            code = code == -ENOENT ? 0 : code;
        }
    return code;
}

/* ---- command line ---- */

/* Return a cell's command line, NULL-terminated, or NULL with a reason. json: where it writes its
 * result; NULL: not said. */
static char **sweep_cell_words(const struct sweep *sweep, uint32_t cell, const char *json)
{
    const struct sweep_plan *plan = &sweep->plan;
    const struct option_spec *options = sweep->target->command->options;
    const struct sweep_axis *operand =
        sweep->target->members ? sweep_axis_named(plan, "order") : NULL;
    const bool is_weak = strcmp(sweep_scaling_kind(plan, cell), "weak") == 0;
    char *launch = strdup(sweep->launch ? sweep->launch : ""), title[512];
    const size_t most = (launch ? strlen(launch) : 0) + plan->axis_count + 8; /* words */
    char **words = memory_array(most + 1, sizeof *words);
    /* Split first and filled afterwards, so a value never spans words. */
    const int launched = launch && words ? arguments_split(launch, words) : -ENOMEM;
    size_t count = launched < 0 ? 0 : (size_t)launched;

    for (size_t i = 0; i < count; i++)
        words[i] = sweep_fill(plan, cell, words[i]);
    free(launch);
    if (launched < 0) {
        free(words);
        return NULL;
    }
    words[count++] = program_path();
    words[count++] = strdup(sweep->target->command->name);
    for (size_t i = 0; i < plan->axis_count; i++) {
        const struct sweep_axis *axis = &plan->axes[i];
        /* Skip axes of the launcher, an operand, and the limit on samples of the other scaling. */
        if (!axis->row || (sweep_axis_named(plan, SWEEP_SCALING) &&
                           strcmp(axis->name, is_weak ? "limit-samples" : per_rank) == 0))
            continue;
        char *value = sweep_fill(plan, cell, sweep_value(plan, cell, i));
        words[count++] = value ? file_format_path("--%s=%s", axis->name, value) : NULL;
        free(value);
    }
    sweep_title_without(plan, cell, SWEEP_NO_AXIS, NULL, title, sizeof title);
    if (option_find(options, "runs"))
        words[count++] = strdup("--runs=1");
    if (*title && option_find(options, "label") && !sweep_axis_named(plan, "label"))
        words[count++] = file_format_path("--label=%s", title);
    if (sweep->invocation->sandbox != SANDBOX_AUTO)
        words[count++] =
            file_format_path("--sandbox=%s", sandbox_choices[sweep->invocation->sandbox]);
    if (json)
        words[count++] = file_format_path("--json=%s", json);
    if (operand) {
        words[count++] = strdup("--");
        words[count++] = strdup(sweep_value(plan, cell, (size_t)(operand - plan->axes)));
    }
    assert(count <= most);
    for (size_t i = 0; i < count; i++)
        if (!words[i]) {
            while (count)
                free(words[--count]);
            free(words);
            fail(ENOMEM, "out of memory");
            return NULL;
        }
    return words;
}

static void sweep_words_release(char **words)
{
    for (size_t i = 0; words && words[i]; i++)
        free(words[i]);
    free(words);
}

/* ---- process ---- */

/* Measure a cell and load its figures. tick: called about ten times a second. Returns 0 even if the
 * measurement failed, which is recorded; -EINTR; or another negative errno with a reason. */
static int sweep_cell_run(struct sweep *sweep, uint32_t cell, uint32_t round,
                          bool (*tick)(void *context), void *context)
{
    char *json = sweep_folder_file(sweep, cell, round);
    char **words = json ? sweep_cell_words(sweep, cell, json) : NULL;
    struct child_result result;
    int code = words ? 0 : -ENOMEM;
    const int nowhere = file_open_quietly("/dev/null", O_RDWR);

    if (code == 0) {
        const struct child_task task = {.argv = (const char *const *)words,
                                        .input = sweep->folder.lock.fd,
                                        .output = nowhere < 0 ? 0 : nowhere,
                                        .prefers = "iobench",
                                        .stop = tick,
                                        .context = context};
        code = child_run(&task, &result);
        if (code == -EINTR) /* discard what an interrupted process wrote */
            remove_measurement(sweep, cell, round);
        const bool has_ended = code == 0;
        if (has_ended)
            code = load_measurement(sweep, cell, round);
        const bool is_lost = has_ended && code == -ENOENT; /* it failed before writing the file */
        if (is_lost)
            code = stop_check(); /* what interrupts this sweep may have ended it, too */
        if (is_lost && code == 0) {
            char reason[CHILD_OUTPUT_BYTES + 64];
            if (result.status > 128)
                snprintf(reason, sizeof reason, "ended by signal %d: %s", result.status - 128,
                         result.output);
            else
                snprintf(reason, sizeof reason, "exit status %d: %s", result.status, result.output);
            code = json_file_write(json, json_pack("{s:s, s:i, s:o}", "schema", failure_schema,
                                                   "schema_version", SCHEMA_VERSION, "reason",
                                                   json_text(reason)));
            if (code == 0)
                code = load_measurement(sweep, cell, round);
        }
    }
    if (nowhere >= 0)
        close(nowhere);
    sweep_words_release(words);
    free(json);
    return code;
}

/* ---- tables: cells ---- */

static int wider(int width, const char *text)
{
    const int length = (int)strlen(escape_shown(text));

    return length > width ? length : width;
}

void sweep_print_cells(FILE *stream, const struct sweep *sweep, uint32_t first, uint32_t count)
{
    const struct sweep_plan *plan = &sweep->plan;
    int axes[SWEEP_AXES_MAX] = {0}, limit = 5, cache = 5; /* widths; axes 0: single, not shown */
    bool has_randomness = false;

    for (size_t i = 0; i < plan->axis_count; i++) {
        const struct sweep_axis *axis = &plan->axes[i];
        for (size_t k = 0; axis->count > 1 && k < axis->count; k++)
            axes[i] = wider(wider(axes[i], axis->name), axis->values[k]);
    }
    for (size_t i = 0; i < (size_t)plan->cells * sweep->table.rounds; i++) {
        const struct sweep_figures *figures = &sweep->table.figures[i];
        limit = wider(limit, figures->limit);
        cache = wider(cache, figures->cache);
        has_randomness |= figures->randomness > 0;
    }

    for (size_t i = 0; i < sweep->plan.axis_count; i++)
        if (axes[i])
            fprintf(stream, "%-*s  ", axes[i], sweep->plan.axes[i].name);
    if (has_randomness)
        fprintf(stream, "%8s  ", "random");
    fprintf(stream, "%10s  %19s  %-*s  %-*s  %s\n", "samples/s",
            sweep->table.rounds > 2 ? "95% interval" : "range", limit, "limit", cache, "cache",
            "valid");
    for (uint32_t cell = first; cell < first + count; cell++) {
        const struct sweep_summary summary = sweep_summarise(&sweep->table, cell);
        const struct stats_summary *rates = &summary.samples_per_s;
        char rate[WORDS_BYTES], low[WORDS_BYTES], interval[WORDS_BYTES] = "-", valid[32] = "";
        if (rates->count > 1)
            snprintf(interval, sizeof interval, "%.16s .. %.16s", words_rate(rates->low, low),
                     words_rate(rates->high, rate));
        for (size_t i = 0; i < sweep->plan.axis_count; i++)
            if (axes[i])
                fprintf(stream, "%-*s  ", axes[i],
                        escape_shown(sweep_value(&sweep->plan, cell, i)));
        if (summary.measured)
            snprintf(valid, sizeof valid, "%u/%u", summary.valid, summary.measured);
        if (has_randomness)
            fprintf(stream, "%7.1f%%  ", 100 * summary.randomness);
        fprintf(stream, "%10s  %19s  %-*s  %-*s  %s\n",
                words_rate(rates->count ? rates->median : NAN, rate), interval, limit,
                summary.limit, cache, summary.cache, valid);
    }
}

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
    size_t count; /* of effects */
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
        const double p = effects[i].p_corrected;
        char p_text[WORDS_BYTES] = "-", interval[WORDS_BYTES] = "-";
        if (isfinite(p))
            snprintf(p_text, sizeof p_text, p < 0.001 ? "%.0e" : "%.3f", p);
        if (paired->pairs > 1)
            snprintf(interval, sizeof interval, "%.3f .. %.3f", paired->low, paired->high);
        if (paired->pairs)
            fprintf(stream, "%-*s  %-*s  %-*s  %6.3f  %15s  %6s  %5zu\n", option, axis->name, value,
                    escape_shown(axis->values[effects[i].digit]), against,
                    escape_shown(axis->values[0]), paired->ratio, interval, p_text, paired->pairs);
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
    const size_t axis = sweep_scaling_axis(&sweep->plan); /* a table for each first value on it */
    for (uint32_t cell = 0; axis != SWEEP_NO_AXIS && cell < sweep->plan.cells; cell++) {
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
    any = false;
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

static json_t *known_text(const char *text)
{
    return text && *text ? json_text(text) : json_null();
}

static json_t *json_of(const struct sweep *sweep, const char *left_out)
{
    const struct sweep_plan *plan = &sweep->plan;
    const size_t axis = sweep_scaling_axis(plan);
    json_t *cells = json_array(), *list = json_array(), *scaling = json_null();
    char command[4096];
    size_t count;
    struct sweep_effect *effects = sweep_effects(&sweep->table, &count);

    for (uint32_t cell = 0; cell < plan->cells; cell++) {
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
                                                  json_number(figures->is_valid
                                                                  ? figures->samples_per_s
                                                                  : NAN),
                                                  "file", json_text(slash ? slash + 1 : NULL))
                                      : json_null());
            free(path);
        }
        json_array_append_new(
            cells,
            json_pack(
                "{s:I, s:o, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
                "cell", (json_int_t)cell + 1, "options", options, "measured",
                (json_int_t)summary.measured, "valid", (json_int_t)summary.valid, "invalid_reason",
                known_text(summary.reason), "samples_per_s",
                json_number(known ? rates->median : NAN), "samples_per_s_low95",
                json_number(known ? rates->low : NAN), "samples_per_s_high95",
                json_number(known ? rates->high : NAN), "samples_per_s_min",
                json_number(known ? rates->minimum : NAN), "samples_per_s_max",
                json_number(known ? rates->maximum : NAN), "interval_coverage",
                json_number(known ? rates->coverage : NAN), "randomness",
                json_number(summary.randomness > 0 ? summary.randomness : NAN), "limit",
                known_text(summary.limit), "cache_before", known_text(summary.cache), "shares",
                shares, "runs", runs));
    }
    for (size_t i = 0; effects && i < count; i++) {
        const struct sweep_axis *of = &plan->axes[effects[i].axis];
        const struct paired *paired = &effects[i].paired;
        json_array_append_new(
            list, json_pack("{s:s, s:o, s:o, s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "option",
                            of->name, "value", json_text(of->values[effects[i].digit]), "against",
                            json_text(of->values[0]), "pairs", (json_int_t)paired->pairs,
                            "pairs_of_other_caches", (json_int_t)effects[i].cache_pairs, "ratio",
                            json_number(paired->ratio), "ratio_low95", json_number(paired->low),
                            "ratio_high95", json_number(paired->high), "p", json_number(paired->p),
                            "p_corrected", json_number(effects[i].p_corrected)));
    }
    free(effects);
    if (axis != SWEEP_NO_AXIS) {
        json_t *scales = json_array();
        for (uint32_t cell = 0; cell < plan->cells; cell++) {
            const struct sweep_scale scale = sweep_scale_of(&sweep->table, cell, axis);
            json_array_append_new(
                scales, json_pack("{s:I, s:s, s:o, s:o, s:o, s:o}", "cell", (json_int_t)cell + 1,
                                  "kind", sweep_scaling_kind(plan, cell), "speed_up",
                                  json_number(scale.speed_up.ratio), "speed_up_low95",
                                  json_number(scale.speed_up.low), "speed_up_high95",
                                  json_number(scale.speed_up.high), "efficiency_percent",
                                  json_number(100 * scale.efficiency)));
        }
        scaling = json_pack("{s:s, s:s, s:o}", "kind",
                            sweep_axis_named(plan, SWEEP_SCALING) ? "strong,weak"
                                                                  : sweep_scaling_kind(plan, 0),
                            "over", plan->axes[axis].name, "cells", scales);
    }
    command_text(sweep->invocation, command, sizeof command);
    return seal_add(
        json_pack("{s:s, s:i, s:s, s:o, s:s, s:o, s:s, s:I, s:I, s:o, s:o, s:o, s:o}", "schema",
                  "iobench-sweep", "schema_version", SCHEMA_VERSION, "iobench_version",
                  PACKAGE_VERSION, "command", json_text(command), "swept",
                  sweep->target->command->name, "folder", json_text(sweep->folder.path),
                  "fingerprint", sweep->fingerprint, "runs", (json_int_t)sweep->table.rounds,
                  "order_seed", (json_int_t)sweep->settings->order_seed, "left_out_reason",
                  known_text(left_out), "cells", cells, "effects", list, "scaling", scaling));
}

/* ---- CSV ---- */

int sweep_write_files(const struct sweep *sweep, const char *left_out)
{
    const struct sweep_plan *plan = &sweep->plan;
    struct text_stream csv;
    int code = sweep->settings->csv ? text_stream_open(&csv) : 0;

    if (code == 0 && sweep->settings->csv) { /* one row per measurement */
        fputs("cell,run,", csv.stream);
        for (size_t i = 0; i < plan->axis_count; i++)
            fprintf(csv.stream, "%s,", plan->axes[i].name);
        fputs("valid,samples_per_s,limit,cache_before,invalid_reason\n", csv.stream);
        for (uint32_t i = 0; i < plan->cells * sweep->table.rounds; i++) {
            const uint32_t cell = i / sweep->table.rounds, round = i % sweep->table.rounds;
            const struct sweep_figures *figures = sweep_at(&sweep->table, cell, round);
            if (!figures->is_measured)
                continue;
            fprintf(csv.stream, "%u,%u,", cell + 1, round + 1);
            for (size_t k = 0; k < plan->axis_count; k++) {
                report_csv_quoted(csv.stream, sweep_value(plan, cell, k));
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
        code = outputs_write(sweep->settings->csv, &csv);
    }
    if (code == 0 && sweep->settings->json)
        code = json_file_write(sweep->settings->json, json_of(sweep, left_out));
    return code;
}

/* ---- options ---- */

static const char *const scaling_names[] = {"auto", "strong", "weak", "strong,weak", NULL};

/* clang-format off: one or two rows each */
#define FIELD(field) .offset = offsetof(struct sweep_settings, field)
static const struct option_spec sweep_options[] = {
    {"output", 'o', OPTION_TEXT, FIELD(output), .metavar = "FOLDER", .reach = OPTION_WRITES_IN,
     .summary = "folder that keeps each measurement as it ends; the same command resumes there; "
                "default: iobench-sweep-ID here, the same for the same sweep"},
    {"runs", 'n', OPTION_COUNT, FIELD(runs), .fallback = "3", .minimum = 1, .maximum = 1000,
     .summary = "rounds, each measuring every cell once in newly drawn order"},
    {"budget", 0, OPTION_DURATION, FIELD(budget_ns), .fallback = "none", .zero = "none",
     .summary =
         "measure the most telling cells first, and none that would not end within this time "
         "at the mean time so far"},
    {"ranks", 0, OPTION_TEXT, FIELD(ranks), .metavar = "LIST",
     .summary = "numbers of ranks, started by --launch"},
    {"nodes", 0, OPTION_TEXT, FIELD(nodes), .metavar = "LIST",
     .summary = "numbers of nodes, for --launch"},
    {"launch", 0, OPTION_TEXT, FIELD(launch), .metavar = "'COMMAND'", .reach = OPTION_RUNS,
     .summary = "what starts each measurement; {ranks}, {nodes} and any swept {option} are filled "
                "in; default: mpirun -n {ranks} with --ranks"},
    {"scaling", 0, OPTION_CHOICE, FIELD(scaling), .fallback = "auto", .choices = scaling_names,
     .summary = "with several --ranks or --nodes, check that the job keeps its samples (strong) or "
                "each rank does (weak, --limit-samples-per-rank); strong,weak measures both"},
    {"order-seed", 0, OPTION_COUNT, FIELD(order_seed), .fallback = "1",
     .summary = "random seed of the order of the rounds"},
    {"retry", 0, OPTION_FLAG, FIELD(retry), .fallback = "no",
     .summary = "measure again what was not valid when the sweep was interrupted or ended"},
    {"json", 'j', OPTION_TEXT, FIELD(json), .metavar = "FILE", .reach = OPTION_WRITES,
     .section = "Output",
     .summary = "write cells, effects and scaling as JSON; - is standard output instead of the "
                "tables"},
    {"csv", 0, OPTION_TEXT, FIELD(csv), .metavar = "FILE", .reach = OPTION_WRITES,
     .summary = "write one CSV row per measurement; - is standard output instead of the tables"},
    {"dry-run", 0, OPTION_FLAG, FIELD(dry_run), .fallback = "no",
     .summary = "print the command of each cell in the order of the first round; run nothing"},
    {0},
};
#undef FIELD
/* clang-format on */

/* ---- figures from the results of the swept commands ---- */

static uint32_t count_of(const json_t *object, const char *path)
{
    const double count = load_number(object, path);

    return count >= 1 && count < UINT32_MAX ? (uint32_t)count : 1;
}

/* Read the identity of the set at the path. Results of earlier versions have no identity; those of
 * infer, and of orders of no data, no set. */
static void read_set(const json_t *job, struct sweep_figures *figures)
{
    const char *path = load_text(job, "dataset.path"), *format = load_text(job, "dataset.format");
    const char *files = load_text(job, "dataset.identity"), *host = load_text(job, "place.host");

    figures->set_samples = load_number(job, "dataset.samples");
    figures->set_bytes = load_number(job, "dataset.record_bytes");
    if (path && format && isfinite(figures->set_samples) && isfinite(figures->set_bytes))
        figures->set = random_hash_text(random_hash_text(1, path), format);
    figures->files = files && host ? random_hash_text(1, files) | 1 : 0;
    figures->host = random_hash_text(1, host ? host : "");
}

int sweep_read_job(const json_t *document, struct sweep_figures *figures)
{
    const json_t *job = json_array_get(json_object_get(document, "jobs"), 0);

    if (!json_is_object(job))
        return fail(EINVAL, "it has no jobs");
    const char *degraded = load_degraded(job);
    figures->is_valid = load_true(job, "valid") && !degraded;
    figures->is_interrupted = load_true(job, "interrupted");
    snprintf(figures->reason, sizeof figures->reason, "%s",
             degraded ? degraded : load_word(job, "invalid_reason"));
    figures->samples_per_s = load_number(job, "summary.samples_per_s");
    snprintf(figures->limit, sizeof figures->limit, "%s", load_word(job, "summary.limit"));
    snprintf(figures->cache, sizeof figures->cache, "%s", load_word(job, "summary.cache_before"));
    figures->ranks = count_of(job, "engine.ranks");
    struct result_epoch total = {0}; /* of all runs */
    const json_t *run, *one;
    size_t i, k;
    json_array_foreach(json_object_get(job, "runs"), i, run)
    {
        json_array_foreach(json_object_get(run, "epochs"), k, one)
        {
            struct result_epoch epoch = {0};
            report_figures_load(one, figures_of_epoch, figures_of_epoch_count, &epoch);
            result_epoch_add(&total, &epoch);
        }
    }
    for (int phase = 0; phase < RESULT_PHASES; phase++)
        figures->parts_s[phase] =
            (double)result_epoch_phase_ns(&total, (enum result_phase)phase) * 1e-9;
    figures->parts_s[SWEEP_BARRIER] =
        (double)(total.start_barrier_ns + total.stop_barrier_ns) * 1e-9;
    figures->wall_s = (double)total.wall_ns * 1e-9 + figures->parts_s[SWEEP_BARRIER];
    read_set(job, figures);
    return 0;
}

int sweep_read_inference(const json_t *document, struct sweep_figures *figures)
{
    const json_t *row = json_array_get(json_object_get(document, "batch_sizes"), 0);

    if (!json_is_object(row))
        return fail(EINVAL, "it has no batch sizes");
    const char *degraded = load_degraded(document);
    figures->is_valid = !degraded;
    snprintf(figures->reason, sizeof figures->reason, "%s", degraded ? degraded : "");
    figures->samples_per_s = load_number(row, "samples_per_s");
    figures->wall_s = load_number(row, "wall_s");
    figures->parts_s[SWEEP_WAIT] = load_number(row, "wait_s");
    figures->parts_s[SWEEP_COMPUTE] = load_number(row, "compute_s");
    /* An inference uses caches as it finds them: where its bytes came from. "": unknown. */
    const double percent = load_number(row, "storage_percent");
    snprintf(figures->cache, sizeof figures->cache, "%s",
             !isfinite(percent) ? ""
             : percent >= 98    ? "all from storage"
             : percent <= 2     ? "all in memory"
                                : "partly in memory");
    read_set(document, figures);
    figures->ranks = 1;
    return 0;
}

int sweep_read_survey(const json_t *document, struct sweep_figures *figures)
{
    const json_t *row = json_array_get(document, 0);
    const char *refused = load_text(row, "refused");

    if (!json_is_object(row))
        return fail(EINVAL, "it has no orders");
    if (json_array_size(document) > 1)
        refused = "it has several rows: give the values of a list one by one";
    refused = refused ? refused : load_text(row, "not_read_reason");
    refused = refused ? refused : load_text(row, "unverified_reason");
    figures->is_valid = !refused;
    snprintf(figures->reason, sizeof figures->reason, "%s", refused ? refused : "");
    figures->samples_per_s = load_number(row, "samples_per_s");
    figures->randomness = fmin(1, load_number(row, "labels_per_batch") /
                                      load_number(row, "labels_per_batch_at_random"));
    figures->ranks = count_of(row, "ranks");
    read_set(row, figures);
    return 0;
}

static const struct sweep_target targets[] = {
    {&command_run, .is_launched = true, .read = sweep_read_job},
    {&command_train, .is_launched = true, .read = sweep_read_job},
    {&command_infer, .read = sweep_read_inference},
    {&command_shuffle, .members = shuffle_registry, .read = sweep_read_survey},
};

enum { TARGETS = sizeof targets / sizeof targets[0] };

/* Static: options are parsed before the command runs, and the command may then be refused. */
static struct sweep swept;

/* ---- options of the swept command ---- */

static int take_option(void *context, const struct option_spec *row, const char *value,
                       const char *as_given)
{
    struct sweep *sweep = context;

    if (row->reach == OPTION_WRITES || row->reach == OPTION_WRITES_IN)
        return fail(EINVAL,
                    "%s: each cell would write the same file: results are kept in -o FOLDER",
                    as_given);
    if (row->repeats)
        return fail(EINVAL, "%s: a sweep compares its cells itself: give several values instead",
                    as_given);
    const struct family *family = family_table;
    while (family->name && (row->type != OPTION_TEXT || strcmp(family->option, row->name) != 0))
        family++;
    int code = sweep_add(&sweep->plan, row->name, row, family->registry, value);
    if (code)
        return code;
    const struct command *command = sweep->target->command;
    const struct sweep_axis *axis = sweep_axis_named(&sweep->plan, row->name);
    void *scratch = memory_zeroed(command->settings_size + 1);
    code = scratch ? 0 : -ENOMEM;
    for (size_t i = 0; code == 0 && i < axis->count; i++)
        code = option_set(command->options, scratch, row->name, axis->values[i], as_given);
    if (scratch)
        option_release(command->options, scratch);
    free(scratch);
    return code;
}

/* The first word may name the command, whose options the sweep then accepts. */
static int adopt(const struct invocation *invocation, struct arguments_scope *scope)
{
    const char *word = invocation->argc ? invocation->argv[0] : "-";

    swept = (struct sweep){
        .invocation = invocation, .settings = invocation->settings, .target = &targets[0]};
    for (int i = 0; i < TARGETS; i++)
        if (strcmp(word, targets[i].command->name) == 0)
            swept.target = &targets[i];
    if (*word != '-' && strcmp(word, swept.target->command->name) != 0)
        return fail(EINVAL, "'%s' cannot be swept: expected run, train, infer or shuffle", word);
    *scope = (struct arguments_scope){
        .table = swept.target->command->options, .settings = &swept, .take = take_option};
    return 0;
}

/* ---- the plan ---- */

/* Add a number for the launcher (ranks, nodes), or for that option of a command of one process. */
static int add_number(struct sweep *sweep, const char *name, const char *list)
{
    const struct option_spec *row =
        sweep->target->is_launched ? NULL : option_find(sweep->target->command->options, name);
    uint64_t number;

    if (!list)
        return 0;
    if (!sweep->target->is_launched && !row)
        return fail(EINVAL, "--%s: iobench %s runs as one process", name,
                    sweep->target->command->name);
    int code = sweep_add(&sweep->plan, name, row, NULL, list);
    const struct sweep_axis *axis = sweep_axis_named(&sweep->plan, name);
    for (size_t i = 0; axis && i < axis->count && code == 0; i++) {
        code = option_parse_count(axis->values[i], &number);
        if (code == 0 && (number == 0 || number > 1 << 20))
            code = fail(EINVAL, "--%s: '%s' is not within 1 .. %d", name, axis->values[i], 1 << 20);
    }
    return code;
}

static int make_plan(struct sweep *sweep)
{
    static const char *const names[] = {"{ranks}", "{nodes}"}; /* each needs an axis */
    const struct sweep_settings *settings = sweep->settings;
    const struct sweep_target *target = sweep->target;
    const struct invocation *invocation = sweep->invocation;
    const int named = invocation->argc && invocation->argv[0][0] != '-';
    char list[4096] = "";
    size_t used = 0;
    int code = 0;

    /* Options whose default is a list are axes even if not given. */
    for (const struct option_spec *row = sweep->target->command->options; row->name && code == 0;
         row++)
        if (row->fallback && row->metavar && strstr(row->metavar, "[,") &&
            !sweep_axis_named(&sweep->plan, row->name))
            code = sweep_add(&sweep->plan, row->name, row, NULL, row->fallback);
    /* The operands after the command's name are one axis. */
    for (int i = named; i < invocation->count && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used ? "," : "",
                                 invocation->operands[i]);
    if (code == 0 && !target->members && invocation->count > named)
        code = fail(EINVAL, "unexpected operand '%s'", invocation->operands[named]);
    else if (code == 0 && used >= sizeof list)
        code = fail(EINVAL, "too many operands");
    else if (code == 0 && target->members)
        code = sweep_add(&sweep->plan, "order", NULL, target->members, used ? list : "all");
    if (code == 0)
        code = add_number(sweep, "nodes", settings->nodes);
    if (code == 0)
        code = add_number(sweep, "ranks", settings->ranks);
    if (code == 0 && settings->launch && !target->is_launched)
        code = fail(EINVAL, "--launch: iobench %s runs as one process", target->command->name);
    const struct sweep_axis *ranks = sweep_axis_named(&sweep->plan, "ranks");
    sweep->launch = settings->launch       ? settings->launch
                    : ranks && !ranks->row ? "mpirun -n {ranks}"
                                           : NULL;
    if (code == 0 && !sweep->launch && settings->nodes)
        code = fail(EINVAL, "--nodes needs --launch, as in --launch 'srun -N {nodes}'");
    char *filled = code == 0 && sweep->launch ? sweep_fill(&sweep->plan, 0, sweep->launch) : NULL;
    if (code == 0 && sweep->launch && !filled)
        code = -ENOMEM;
    for (size_t i = 0; filled && code == 0 && i < sizeof names / sizeof *names; i++)
        if (strstr(filled, names[i]))
            code = fail(EINVAL, "--launch has %s: give --%.*s", names[i], (int)strlen(names[i]) - 2,
                        names[i] + 1);
    free(filled);
    if (code == 0)
        code = sweep_scaling_plan(sweep);
    if (code == 0)
        code = sweep_count(&sweep->plan);
    if (code == 0 && sweep->plan.cells * settings->runs > SWEEP_MEASUREMENTS_MAX)
        code = fail(EINVAL, "%u cells, %llu runs of each: more than %d measurements",
                    sweep->plan.cells, (unsigned long long)settings->runs, SWEEP_MEASUREMENTS_MAX);
    /* Are the data sets there? --launch may start cells where other files are. */
    const bool is_here = !settings->dry_run && !settings->launch;
    for (size_t axis = 0; axis < sweep->plan.axis_count && code == 0 && is_here; axis++) {
        const struct option_spec *row = sweep->plan.axes[axis].row;
        if (!row || (row->reach != OPTION_INDEXES_SET && row->reach != OPTION_READS_SET))
            continue;
        for (uint32_t cell = 0; cell < sweep->plan.cells && code == 0; cell++) {
            char *path = sweep_fill(&sweep->plan, cell, sweep_value(&sweep->plan, cell, axis));
            code = path ? arguments_check_data(row->name, path) : -ENOMEM;
            free(path);
        }
    }
    if (code == 0)
        code = outputs_check_path(settings->json, "{\"schema\"");
    if (code == 0)
        code = outputs_check_path(settings->csv, "cell,run");
    if (code == 0 && ranks_are_launched())
        code = fail(EINVAL, "start it once, without mpirun or srun: --launch starts the ranks");
    if (code)
        return code;
    ranks_permit();
    uint64_t print = random_hash_text(program_build(), sweep->target->command->name);
    print = random_hash_text(print, sweep->launch ? sweep->launch : "");
    for (size_t i = 0; i < sweep->plan.axis_count; i++) {
        print = random_hash_text(print, sweep->plan.axes[i].name);
        for (size_t k = 0; k < sweep->plan.axes[i].count; k++)
            print = random_hash_text(print, sweep->plan.axes[i].values[k]);
        print = random_hash(print, i, sweep->plan.axes[i].count);
    }
    snprintf(sweep->fingerprint, sizeof sweep->fingerprint, "%016" PRIx64, print);
    sweep->table = (struct sweep_table){.plan = &sweep->plan, .rounds = (uint32_t)settings->runs};
    sweep->table.figures =
        memory_array(settings->runs * sweep->plan.cells, sizeof *sweep->table.figures);
    return sweep->table.figures ? 0 : -ENOMEM;
}

/* ---- what it shows while it runs ---- */

/* On stderr: on a terminal the table so far with the time left, else a line per measurement. */
struct sweep_live {
    const struct sweep *sweep;
    struct line line;
    unsigned drawn;                  /* table lines now on the screen */
    uint32_t cell, round;            /* being measured */
    size_t done, total;              /* measurements */
    bool told_replaced;              /* that a data set was replaced */
    uint64_t cell_start_ns, left_ns; /* left_ns: 0 while unknown */
    uint64_t start_ns, spent_ns;     /* spent_ns: on this call's measurements */
    size_t measured;                 /* by this call */
};

enum { ROWS_AROUND = 4 }; /* heading, status line and prompt */

static void time_left(char text[LINE_PART_BYTES], uint64_t left_ns)
{
    const uint64_t seconds = left_ns / 1000000000;

    text[0] = '\0';
    if (left_ns)
        snprintf(text, LINE_PART_BYTES, ", %u:%02u:%02u left", (unsigned)(seconds / 3600),
                 (unsigned)(seconds / 60 % 60), (unsigned)(seconds % 60));
}

static void erase_table(struct sweep_live *live)
{
    line_clear(&live->line);
    if (live->drawn)
        dprintf(STDERR_FILENO, "\033[%uA\033[J", live->drawn);
    live->drawn = 0;
}

static void show_status(struct sweep_live *live)
{
    const struct sweep *sweep = live->sweep;
    char text[sizeof live->line.last], title[128], left[LINE_PART_BYTES];
    const uint64_t seconds = (clock_now_ns() - live->cell_start_ns) / 1000000000;

    time_left(left, live->left_ns);
    snprintf(text, sizeof text, "%zu of %zu%s; run %u of %u, %u s: %s", live->done + 1, live->total,
             left, live->round + 1, sweep->table.rounds, (unsigned)seconds,
             sweep_title(&sweep->plan, live->cell, title, sizeof title));
    line_show(&live->line, text);
}

static bool show_tick(void *context)
{
    show_status(context);
    return false;
}

static void show_end(struct sweep_live *live)
{
    const struct sweep *sweep = live->sweep;
    const struct sweep_figures *figures = sweep_at(&sweep->table, live->cell, live->round);
    char title[512], rate[WORDS_BYTES], left[LINE_PART_BYTES];

    live->done++;
    if (figures->is_replaced && !live->told_replaced) { /* the table does not show it */
        live->told_replaced = true;
        erase_table(live);
        fprintf(stderr, "iobench sweep: what is measured of it now is not valid: %s\n",
                escape_shown(figures->reason));
    }
    if (live->line.shown) {
        struct winsize size;
        const bool has_size = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0;
        const uint32_t cells = live->sweep->plan.cells;
        const uint32_t rows =
            has_size && size.ws_row >= 2 * ROWS_AROUND ? size.ws_row - ROWS_AROUND : 20;
        const unsigned columns = has_size && size.ws_col >= 20 ? size.ws_col : 80;
        const uint32_t count = cells < rows ? cells : rows;
        uint32_t first = live->cell > count / 2 ? live->cell - count / 2 : 0;
        struct text_stream table;
        char *text = NULL, *rest, *line;
        size_t bytes;
        first = first + count > cells ? cells - count : first;
        if (text_stream_open(&table) == 0)
            sweep_print_cells(table.stream, live->sweep, first, count);
        if (text_stream_take(&table, &text, &bytes) == 0) {
            erase_table(live);
            for (rest = text; (line = strsep(&rest, "\n")) && rest; live->drawn++)
                dprintf(STDERR_FILENO, "%.*s\n", (int)columns - 1, escape_shown(line));
        }
        free(text);
        return;
    }
    time_left(left, live->left_ns);
    sweep_title(&sweep->plan, live->cell, title, sizeof title);
    if (figures->is_valid)
        fprintf(stderr, "%zu of %zu%s: %s: %s samples/s%s%s\n", live->done, live->total, left,
                escape_shown(title), words_rate(figures->samples_per_s, rate),
                *figures->limit ? ", limit " : "", figures->limit);
    else
        fprintf(stderr, "%zu of %zu%s: %s: not valid: %s\n", live->done, live->total, left,
                escape_shown(title), escape_shown(figures->reason));
}

/* ---- measuring ---- */

static uint64_t mean_ns(const struct sweep_live *live)
{
    return live->measured ? live->spent_ns / live->measured : 0;
}

/* Return whether this many measurements would end within the budget. */
static bool fits(const struct sweep_live *live, size_t count)
{
    const uint64_t budget_ns = live->sweep->settings->budget_ns;

    return !budget_ns || live->measured == 0 ||
           clock_now_ns() - live->start_ns + count * mean_ns(live) <= budget_ns;
}

/* Returns 0, 1 if the budget allows no other measurement, or a negative errno with a reason. */
static int measure_all(struct sweep *sweep)
{
    const struct sweep_settings *settings = sweep->settings;
    const uint32_t cells = sweep->plan.cells, rounds = sweep->table.rounds;
    struct sweep_live live = {.sweep = sweep,
                              .start_ns = clock_now_ns(),
                              .line = line_start(),
                              .total = (size_t)cells * rounds,
                              .done = sweep->folder.kept};
    uint32_t *order = memory_array(cells, sizeof *order);
    int code = order ? 0 : -ENOMEM;

    fprintf(stderr, "iobench sweep: %u cells, %u runs of each, kept in %s\n", cells, rounds,
            escape_shown(sweep->folder.path));
    if (sweep->folder.kept)
        fprintf(stderr, "iobench sweep: %zu of %zu measurements are there already\n",
                sweep->folder.kept, live.total);
    for (uint32_t round = 0; round < rounds && code == 0; round++) {
        /* A round that fits the budget is in random order, so drift affects all cells alike. */
        size_t due = 0;
        for (uint32_t i = 0; i < cells; i++)
            due += !sweep_at(&sweep->table, i, round)->is_measured;
        const bool is_certain = live.measured > 0 && fits(&live, due);
        sweep_order(&sweep->plan, settings->order_seed, round, settings->budget_ns && !is_certain,
                    order);
        for (uint32_t i = 0; i < cells && code == 0; i++) {
            const size_t missing = live.total - live.done;
            assert(live.done <= live.total);
            if (sweep_at(&sweep->table, order[i], round)->is_measured)
                continue;
            if (!fits(&live, 1)) {
                code = 1;
                break;
            }
            live.cell = order[i];
            live.round = round;
            live.left_ns = mean_ns(&live) * missing;
            live.cell_start_ns = clock_now_ns();
            show_status(&live);
            code = sweep_cell_run(sweep, order[i], round, show_tick, &live);
            live.spent_ns += clock_now_ns() - live.cell_start_ns;
            live.measured++;
            live.left_ns = mean_ns(&live) * (missing - 1);
            if (code == 0)
                show_end(&live);
        }
    }
    erase_table(&live);
    free(order);
    return code;
}

/* ---- the command ---- */

static int run_sweep(const struct invocation *invocation)
{
    struct sweep *sweep = &swept;
    int status, code = make_plan(sweep);

    if (code) {
        status = command_misused(invocation);
    } else if (sweep->settings->dry_run) {
        uint32_t *order = memory_array(sweep->plan.cells, sizeof *order);
        code = order ? 0 : -ENOMEM;
        if (order)
            sweep_order(&sweep->plan, sweep->settings->order_seed, 0, sweep->settings->budget_ns,
                        order);
        for (uint32_t i = 0; i < sweep->plan.cells && code == 0; i++) {
            char **words = sweep_cell_words(sweep, order[i], NULL);
            code = words ? 0 : -ENOMEM;
            for (size_t k = 0; words && words[k]; k++)
                printf("%s%s", k ? " " : "", escape_shown(words[k]));
            putchar('\n');
            sweep_words_release(words);
        }
        free(order);
        status = code ? command_failed(invocation) : COMMAND_OK;
    } else {
        command_on_interrupt();
        code = sweep_folder_open(sweep);
        const bool is_open = code == 0;
        if (code == 0)
            code = measure_all(sweep);
        status = code < 0 ? command_failed(invocation) : COMMAND_OK;
        if (is_open && (code >= 0 || code == -EINTR)) {
            const struct sweep_settings *settings = sweep->settings;
            const char *left_out = code == 1        ? "they would not end within --budget"
                                   : code == -EINTR ? "interrupted; the same command resumes"
                                                    : NULL;
            const bool on_stdout = (settings->json && strcmp(settings->json, "-") == 0) ||
                                   (settings->csv && strcmp(settings->csv, "-") == 0);
            status = code == -EINTR ? COMMAND_FAILED : COMMAND_OK;
            for (size_t i = 0; i < (size_t)sweep->plan.cells * sweep->table.rounds; i++)
                if (sweep->table.figures[i].is_measured && !sweep->table.figures[i].is_valid)
                    status = COMMAND_FAILED;
            if (!on_stdout)
                sweep_print(stdout, sweep, left_out);
            status =
                sweep_write_files(sweep, left_out) ? command_failed(sweep->invocation) : status;
        }
        file_lock_release(&sweep->folder.lock);
        free(sweep->folder.path);
    }
    free(sweep->table.figures);
    sweep_release(&sweep->plan);
    return status;
}

const struct command command_sweep = {
    .name = "sweep",
    .summary = "measure all combinations of options: effects, scaling",
    .operands = "[run|train|infer|shuffle] OPTIONS...",
    .operands_maximum = -1,
    .description =
        "Takes every option of the command (run if none is named) and measures all combinations of "
        "their values. Values are separated by commas: --shuffle epoch,tfdata. A comma within a "
        "value is written '\\,'; it may be plain before KEY=VALUE in the arguments of a plug-in: "
        "--trainer none,replay:h200,gpus=8 has two values. Numbers have ranges: 32:1024:x2 "
        "doubles, 1:16:+5 adds 5. 'all' stands for every plug-in that can be used here (--format "
        "all), every choice, or no and yes of a flag (--direct=all). A value may hold those of "
        "other options: --data '/mnt/set-{format}'.\n"
        "A cell is a combination. Each round runs every cell once, in newly drawn order, each in a "
        "process of its own. Results are kept in a folder as they end: the same command resumes a "
        "sweep that was interrupted or killed, and --runs may be raised later. With --budget the "
        "most telling cells come first: the base cell (the first value of each option), then those "
        "with one option changed, to its last value and then to the others, then combinations, "
        "those of first and last values before the others. How many were left out is printed.\n"
        "The tables show each cell, the main effect of each value (the ratio to the first value "
        "over all pairs of cells of a round that differ in this option alone, paired t test of "
        "logarithms), and with several --ranks or --nodes the scaling: speed-up, efficiency, and "
        "where the time of a rank went. Strong scaling is the default: --limit-samples is the "
        "job's. --limit-samples-per-rank measures weak scaling; with --scaling strong,weak one "
        "sweep measures both. Measurements that are not valid are shown with their reason and "
        "enter no figure.",
    .examples =
        "iobench sweep --data /mnt/set -c --decode-threads 1,2,4 --batch-size 32:1024:x2\tall "
        "combinations, three runs each\n"
        "iobench sweep --data '/mnt/set-{format}' --format all --shuffle epoch,tfdata --budget "
        "30m\tthe most telling cells in half an hour\n"
        "iobench sweep --data /mnt/set --ranks 1,2,4,8 --launch 'srun -N {ranks} -n "
        "{ranks}'\tstrong scaling, one rank a node\n"
        "iobench sweep train --data /mnt/set --network resnet50,vgg16 --limit-samples-per-rank 10k "
        "--ranks 1:8:x2\tweak scaling of two networks\n",
    .options = sweep_options,
    .settings_size = sizeof(struct sweep_settings),
    .adopt = adopt,
    .run = run_sweep,
};
