/* SPDX-License-Identifier: Apache-2.0
 *
 * A measurement's file appears complete, by renaming, so a kill at any moment loses at most the
 * measurement that ran. That one goes on without its sweep: it holds the folder's lock, and who
 * resumes the sweep waits for its result.
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
#include "base/stop.h"
#include "cmd/arguments.h"
#include "cmd/json_file.h"
#include "cmd/program.h"
#include "cmd/sandbox.h"
#include "report/load.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SCHEMA_VERSION = 1, POLL_NS = 250000000 };

static const char plan_name[] = "sweep.json", lock_name[] = ".sweep.lock";
static const char plan_schema[] = "iobench-sweep-plan", failure_schema[] = "iobench-sweep-failure";

static const char *fingerprint_text(const struct sweep *sweep, char text[17])
{
    snprintf(text, 17, "%016" PRIx64, sweep->fingerprint);
    return text;
}

/* ---- measurements ---- */

char *sweep_folder_file(const struct sweep *sweep, uint32_t cell, uint32_t round)
{
    return file_format_path("%s/cell-%05u-run-%u.json", sweep->folder.path, cell + 1, round + 1);
}

/* Load a measurement; -ENOENT if it is missing or was interrupted. */
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
    /* Measurements of two sets are no pairs: a sweep that goes on may find another at the path. */
    const struct sweep_figures *other =
        code == 0 && figures->is_valid ? sweep_of_other_set(&sweep->table, figures) : NULL;
    if (other) {
        figures->is_valid = false;
        figures->is_replaced = true;
        if (figures->set_samples == other->set_samples && figures->set_bytes == other->set_bytes)
            snprintf(figures->reason, sizeof figures->reason,
                     "the files of the data set are not those of another measurement, though "
                     "samples and bytes are as many: it was replaced or written; name another "
                     "folder with -o");
        else
            snprintf(figures->reason, sizeof figures->reason,
                     "the data set has %.0f samples of %.0f bytes in all, and had %.0f of %.0f in "
                     "another measurement: it was replaced; name another folder with -o",
                     figures->set_samples, figures->set_bytes, other->set_samples,
                     other->set_bytes);
    }
    if (code)
        code = fail(EINVAL, "%s: %s: remove it to measure this cell again", path, fail_reason());
    else if (!figures->is_valid && strstr(figures->reason, "interrupted"))
        code = -ENOENT;
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

/* Remove drafts that a killed sweep left behind; refuse a folder of other files without a plan,
 * whose drafts are not a sweep's. */
static int check_names(const struct sweep *sweep, bool has_plan)
{
    struct folder_names names;
    struct folder folder;
    int code = folder_open(&folder, sweep->folder.path);

    if (code == 0)
        code = folder_names_read(&names, &folder);
    else
        names = (struct folder_names){0};
    for (size_t i = 0; i < names.count && code == 0 && !has_plan; i++)
        if (!is_left_draft(names.list[i]) && strcmp(names.list[i], lock_name) != 0)
            code = fail(EEXIST, "%s: holds other files and no sweep: name another folder with -o",
                        sweep->folder.path);
    for (size_t i = 0; i < names.count && code == 0; i++)
        if (is_left_draft(names.list[i]))
            code = folder_remove(&folder, names.list[i], NULL);
    folder_names_release(&names);
    folder_close(&folder);
    return code;
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
        char text[17];
        code = document ? 0 : -EINVAL;
        if (document && (!schema || strcmp(schema, plan_schema) != 0))
            code = fail(EEXIST, "%s: is not the plan of a sweep", path);
        else if (document &&
                 (!fingerprint || strcmp(fingerprint, fingerprint_text(sweep, text)) != 0))
            code = fail(EEXIST,
                        "%s: holds another sweep (%s), or that of another build: name another "
                        "folder with -o",
                        sweep->folder.path, command ? command : "unknown");
        json_decref(document);
    }
    if (code == 0)
        code = check_names(sweep, has_plan);
    if (code == 0 && !has_plan) {
        json_t *options = json_object();
        char text[17], command[4096];
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
                      "fingerprint", fingerprint_text(sweep, text), "command", json_text(command),
                      "swept", sweep->target->command->name, "cells", (json_int_t)sweep->plan.cells,
                      "launch", json_text(sweep->launch), "options", options));
    }
    free(path);
    return code;
}

/* ---- the folder ---- */

int sweep_folder_open(struct sweep *sweep)
{
    sweep->folder.lock.fd = -1;
    sweep->folder.path =
        sweep->settings->output
            ? strdup(sweep->settings->output)
            : file_format_path("iobench-sweep-%08x", (unsigned)(sweep->fingerprint >> 32));
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
            if (code == 0 && sweep->settings->retry && !figures->is_valid)
                code = remove_measurement(sweep, cell, round) ? -EIO : -ENOENT;
            if (code == -ENOENT)
                sweep->table.figures[(size_t)round * sweep->plan.cells + cell] =
                    (struct sweep_figures){0};
            sweep->folder.kept += code == 0;
            code = code == -ENOENT ? 0 : code;
        }
    return code;
}

void sweep_folder_close(struct sweep *sweep)
{
    file_lock_release(&sweep->folder.lock);
    free(sweep->folder.path);
}

/* ---- command line ---- */

/* Take ownership of word, unless an earlier one failed. */
static int add_word(struct sweep_words *words, char *word, int code)
{
    if (code == 0 &&
        (!word || memory_room(&words->list, words->count + 1, sizeof *words->list, "words")))
        code = fail(ENOMEM, "out of memory");
    if (code == 0) {
        words->list[words->count++] = word;
        words->list[words->count] = NULL;
    } else {
        free(word);
    }
    return code;
}

void sweep_words_release(struct sweep_words *words)
{
    for (size_t i = 0; i < words->count; i++)
        free(words->list[i]);
    free(words->list);
    *words = (struct sweep_words){0};
}

int sweep_cell_words(const struct sweep *sweep, uint32_t cell, const char *json,
                     struct sweep_words *words)
{
    const struct sweep_plan *plan = &sweep->plan;
    const struct option_spec *options = sweep->target->command->options;
    const struct sweep_axis *operand =
        sweep->target->members ? sweep_axis_named(plan, "order") : NULL;
    char title[512];
    int code = 0;

    *words = (struct sweep_words){0};
    if (sweep->launch) { /* split first and filled afterwards, so a value never spans words */
        char *copy = strdup(sweep->launch);
        char **parts = memory_array(strlen(sweep->launch) + 1, sizeof *parts);
        const int count = copy && parts ? arguments_split(copy, parts) : -ENOMEM;
        code = count < 0 ? count : 0;
        for (int i = 0; i < count && code == 0; i++)
            code = add_word(words, sweep_fill(plan, cell, parts[i]), code);
        free(parts);
        free(copy);
    }
    code = add_word(words, program_path(), code);
    code = add_word(words, strdup(sweep->target->command->name), code);
    for (size_t i = 0; i < plan->axis_count && code == 0; i++) {
        if (!plan->axes[i].row || !sweep_scaling_has(plan, cell, plan->axes[i].name))
            continue; /* for the launcher, an operand, or not this cell's */
        char *value = sweep_fill(plan, cell, sweep_value(plan, cell, i));
        code = value ? add_word(words, file_format_path("--%s=%s", plan->axes[i].name, value), code)
                     : -ENOMEM;
        free(value);
    }
    sweep_title_without(plan, cell, SWEEP_NO_AXIS, NULL, title, sizeof title);
    if (option_find(options, "runs"))
        code = add_word(words, strdup("--runs=1"), code);
    if (*title && option_find(options, "label") && !sweep_axis_named(plan, "label"))
        code = add_word(words, file_format_path("--label=%s", title), code);
    if (sweep->invocation->sandbox != SANDBOX_AUTO)
        code = add_word(
            words, file_format_path("--sandbox=%s", sandbox_choices[sweep->invocation->sandbox]),
            code);
    if (json)
        code = add_word(words, file_format_path("--json=%s", json), code);
    if (operand) {
        code = add_word(words, strdup("--"), code);
        code =
            add_word(words, strdup(sweep_value(plan, cell, (size_t)(operand - plan->axes))), code);
    }
    if (code)
        sweep_words_release(words);
    return code;
}

/* ---- process ---- */

int sweep_cell_run(struct sweep *sweep, uint32_t cell, uint32_t round, bool (*tick)(void *context),
                   void *context)
{
    char *json = sweep_folder_file(sweep, cell, round);
    struct sweep_words words = {0};
    struct child_result result;
    int code = json ? sweep_cell_words(sweep, cell, json, &words) : -ENOMEM;
    const int nowhere = file_open_quietly("/dev/null", O_RDWR);

    if (code == 0) {
        const struct child_task task = {.argv = (const char *const *)words.list,
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
        if (has_ended && code == -ENOENT) { /* it failed before writing the file */
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
    sweep_words_release(&words);
    free(json);
    return code;
}
