/* SPDX-License-Identifier: Apache-2.0
 * Carries out the commands of a study, and keeps what is done. */
#include "cmd/study/study.h"

#include "base/child.h"
#include "base/clock.h"
#include "base/escape.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/json.h"
#include "cmd/command.h"
#include "cmd/json_file.h"
#include "cmd/line.h"
#include "cmd/program.h"
#include "report/load.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Time limit of one command. */
static const double run_limit_s = 3600;

/* Added to --budget for starting, indexing and exiting. */
static const double grace_s = 60;

/* ---- the record ---- */

enum { BUILD_BYTES = 17 };

static const char *build_text(char text[BUILD_BYTES])
{
    snprintf(text, BUILD_BYTES, "%016" PRIx64, program_build());
    return text;
}

static char *record_path(const struct study_plan *plan)
{
    return file_join(plan->options->folder, "study.json");
}

/* The paths of the sets that a run reads, which depend on what they were made of. */
static json_t *sets_of(const struct study_plan *plan, const struct study_run *run)
{
    json_t *sets = json_array();

    for (size_t i = 0; i < plan->set_count; i++)
        if (run->sets >> i & 1)
            json_array_append_new(sets, json_text(plan->sets[i].path));
    return sets;
}

static json_t *text_or_null(const char *text)
{
    return text ? json_text(text) : json_null();
}

/* Return whether both texts are absent, or equal. */
static bool is_same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* ---- results ---- */

static void set_reason(struct study_run *run, const char *reason)
{
    free(run->reason);
    run->reason = strdup(reason);
}

/* A ramp and a survey have no mark beside the reason. */
static const char *degraded_reason(const json_t *part)
{
    static const char *const keys[] = {"degraded_reason", "not_read_reason", "unverified_reason"};
    const char *reason = load_degraded(part);

    for (size_t i = 0; i < sizeof keys / sizeof *keys && !reason; i++)
        if (!json_object_get(part, "degraded"))
            reason = load_text(part, keys[i]);
    return reason;
}

/* Read from a result what it read, and why it should not be trusted. */
static bool read_doubts(struct study_run *run)
{
    json_t *document = file_exists(run->path) ? load_file(run->path) : NULL;
    json_t *parts = json_object_get(document, "jobs");
    json_t *ramp = json_object_get(document, "ramp");
    const char *invalid = NULL, *degraded = NULL;

    /* The parts that have figures: its jobs, its ramp, the shuffles of a survey, or itself. */
    parts = json_array_size(parts)    ? json_incref(parts)
            : json_is_array(document) ? json_incref(document)
            : document                ? json_pack("[O]", json_is_object(ramp) ? ramp : document)
                                      : NULL;
    json_decref(run->read);
    run->read = json_array();
    for (size_t i = 0; i < json_array_size(parts); i++) {
        const json_t *part = json_array_get(parts, i);
        invalid = invalid ? invalid : load_text(part, "invalid_reason");
        degraded = degraded ? degraded : degraded_reason(part);
        json_t *read = json_object(), *place = json_object();
        json_put_text(place, "host", load_text(part, "place.host"));
        json_object_set_new(read, "place", place);
        json_object_set(read, "dataset", json_object_get(part, "dataset"));
        json_array_append_new(run->read, read);
    }
    if (invalid || degraded)
        set_reason(run, invalid ? invalid : degraded);
    const bool is_whole = document && !invalid;
    json_decref(parts);
    json_decref(document);
    return is_whole;
}

/* ---- those of earlier calls ---- */

/* Reuse the results of an earlier call of this study, data, program and nodes with the same
 * commands. */
static void take_over(struct study_plan *plan)
{
    char *path = record_path(plan), build[BUILD_BYTES], nodes[STUDY_NODES_BYTES];
    json_t *document = path && file_exists(path) ? load_file(path) : NULL, *record;
    size_t index, replaced = 0;

    free(path);
    const bool is_fit =
        document && is_same(load_text(document, "study"), plan->study->name) &&
        is_same(load_text(document, "data"), plan->options->data) &&
        is_same(load_text(document, "build"), build_text(build)) &&
        is_same(load_text(document, "nodes"), study_nodes_text(plan->options, nodes));
    for (size_t i = 0; is_fit && i < plan->run_count; i++) {
        struct study_run *run = &plan->runs[i];
        json_array_foreach(json_object_get(document, "runs"), index, record)
        {
            if (run->state != STUDY_DUE || !is_same(load_text(record, "name"), run->name) ||
                !is_same(load_text(record, "command"), run->command.shown) ||
                !is_same(load_text(record, "launch"), run->launch) || !load_true(record, "done"))
                continue;
            json_t *sets = sets_of(plan, run);
            const bool is_same_set = json_equal(sets, json_object_get(record, "sets")) != 0;
            json_decref(sets);
            replaced += !is_same_set;
            if (!is_same_set || !read_doubts(run))
                continue;
            run->state = STUDY_DONE;
            run->is_kept = true;
            run->seconds = load_number(record, "seconds");
        }
    }
    if (replaced)
        fprintf(stderr,
                "iobench study: %zu result%s of other data sets (--data was replaced or written, "
                "or --sets names another folder): measured again\n",
                replaced, replaced == 1 ? " is" : "s are");
    json_decref(document);
    fail_clear();
}

/* ---- one command ---- */

/* Returns the exit status, or -errno with a reason. */
static int start(const struct study_command *command, struct child_result *result)
{
    const struct child_task task = {.argv = command->argv,
                                    .prefers = "iobench ", /* not the launcher's last words */
                                    .timeout_ns = (uint64_t)(run_limit_s * 1e9)};
    int code = child_run(&task, result);

    return code ? code : result->status;
}

/* Identifies the file: a new result replaces the old one of that name. */
static ino_t inode_of(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 ? status.st_ino : 0;
}

static int carry_out(const struct study_plan *plan, struct study_run *run)
{
    struct child_result result;
    const ino_t former = inode_of(run->path);
    const uint64_t start_ns = clock_now_ns();
    int status = start(&run->command, &result);

    run->seconds = (double)(clock_now_ns() - start_ns) * 1e-9;
    if (status == -EINTR)
        return status;
    const bool is_new = inode_of(run->path) && inode_of(run->path) != former;
    run->state = is_new && read_doubts(run) ? STUDY_DONE : STUDY_FAILED;
    /* Figures of two sets at one path are not compared: a study that goes on may find another one.
     */
    for (size_t i = 0; i < plan->run_count && run->state == STUDY_DONE; i++) {
        const struct study_run *other = &plan->runs[i];
        const json_t *one, *another;
        bool is_replaced = false;
        size_t k, l;
        if (other == run || other->state != STUDY_DONE)
            continue;
        json_array_foreach(run->read, k, one) json_array_foreach(other->read, l, another)
            is_replaced |= load_compare_data(one, another) == LOAD_DATA_REPLACED;
        if (!is_replaced)
            continue;
        char *reason = file_format_path("it read another data set than %s at the same path: it was "
                                        "replaced or written; name another folder with -o",
                                        other->name);
        run->state = STUDY_FAILED;
        set_reason(run, reason ? reason : "its data set was replaced");
        free(reason);
    }
    if (status == COMMAND_USAGE) /* the last line is only a hint */
        snprintf(result.output, sizeof result.output, "refused: iobench %s", run->command.shown);
    if (run->state == STUDY_FAILED && !run->reason)
        set_reason(run, status < 0 ? fail_reason() : result.output);
    json_t *document = json_object();
    char *path = record_path(plan), text[BUILD_BYTES], nodes[STUDY_NODES_BYTES];
    json_object_set_new(document, "schema", json_string("iobench-study"));
    json_object_set_new(document, "iobench_version", json_string(PACKAGE_VERSION));
    json_put_text(document, "study", plan->study->name);
    json_put_text(document, "build", build_text(text));
    json_put_text(document, "data", plan->options->data);
    json_put_text(document, "nodes", study_nodes_text(plan->options, nodes));
    json_t *runs = json_put_new(document, "runs", json_array());
    for (size_t i = 0; i < plan->run_count; i++)
        json_array_append_new(runs, json_pack("{s:o, s:o, s:o, s:o, s:b, s:o, s:o}", "name",
                                              json_text(plan->runs[i].name), "command",
                                              json_text(plan->runs[i].command.shown), "launch",
                                              text_or_null(plan->runs[i].launch), "sets",
                                              sets_of(plan, &plan->runs[i]), "done",
                                              plan->runs[i].state == STUDY_DONE, "seconds",
                                              json_number(plan->runs[i].seconds), "reason",
                                              text_or_null(plan->runs[i].reason)));
    int code = path ? json_file_write(path, document) : -ENOMEM;
    free(path);
    return code;
}

/* ---- all of them ---- */

/* Make a set, which if it cannot be made only fails the runs that read it. Results of a set that is
 * made again are not of its files. Returns 1 if that makes other runs due, 0, -EINTR, or another
 * -errno with a reason. */
static int make_set(struct study_plan *plan, struct line *line, size_t number)
{
    struct study_set *set = &plan->sets[number];
    struct child_result result;
    char text[sizeof line->last];
    size_t count = 0;
    int code = folder_make_parent(set->path);

    if (code)
        return code;
    snprintf(text, sizeof text, "making the data set %s", set->name);
    line_show(line, text);
    code = start(&set->command, &result);
    if (code > 0)
        set->lack = file_format_path("data set %s: %s", set->name, result.output);
    if (code)
        return code > 0 ? 0 : code;
    for (size_t i = 0; i < plan->run_count; i++) {
        struct study_run *run = &plan->runs[i];
        if (run->state != STUDY_DONE || !(run->sets >> number & 1))
            continue;
        free(run->reason);
        run->reason = NULL;
        run->state = STUDY_DUE;
        run->is_kept = false;
        count++;
    }
    line_clear(line);
    if (count)
        fprintf(stderr,
                "iobench study: data set %s was gone and is made again: its %zu result%s measured "
                "again\n",
                escape_shown(set->name), count, count == 1 ? " is" : "s are");
    return count > 0;
}

/* Make the sets of the runs that are due, until no other becomes due. */
static int make_sets(struct study_plan *plan, struct line *line)
{
    bool more_due = true;
    int code = 0;

    while (more_due && code == 0) {
        uint32_t due = 0;
        more_due = false;
        for (size_t i = 0; i < plan->run_count; i++)
            due |= plan->runs[i].state == STUDY_DUE ? plan->runs[i].sets : 0;
        for (size_t i = 0; i < plan->set_count && code == 0; i++) {
            if (!(due >> i & 1) || plan->sets[i].lack || study_set_exists(&plan->sets[i]))
                continue;
            code = make_set(plan, line, i);
            more_due |= code == 1;
            code = code == 1 ? 0 : code;
        }
    }
    for (size_t i = 0; i < plan->run_count; i++) {
        struct study_run *run = &plan->runs[i];
        const char *lack = study_lacking_set(plan, run);
        if (run->state == STUDY_DUE && lack) {
            run->state = STUDY_FAILED;
            set_reason(run, lack);
        }
    }
    return code;
}

int study_carry_out(struct study_plan *plan)
{
    /* Open MPI refuses root and more ranks than cores unless told otherwise. */
    static const char *const settings[][2] = {
        {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
        {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
        {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
        {"OMPI_MCA_hwloc_base_binding_policy", "none"},
        {"PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"},
    };
    struct line line = line_start();
    char text[sizeof line.last];
    bool has_run = false;
    unsigned nodes = 0;
    int code = folder_make_path(plan->options->folder);

    if (code == 0)
        take_over(plan);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        setenv(settings[i][0], settings[i][1], 0);
    if (code == 0)
        code = make_sets(plan, &line);
    /* As many nodes as the largest run that is due has ranks. */
    for (size_t i = 0; i < plan->run_count; i++)
        if (plan->runs[i].state == STUDY_DUE && plan->runs[i].launch && plan->runs[i].ranks > nodes)
            nodes = plan->runs[i].ranks;
    if (code == 0 && plan->options->emulates_nodes && nodes)
        code = study_nodes_emulate(nodes, plan->options->link_bytes_per_s);
    const uint64_t start_ns = clock_now_ns();
    for (size_t i = 0; i < plan->run_count && code == 0; i++) {
        struct study_run *run = &plan->runs[i];
        const double elapsed_s = (double)(clock_now_ns() - start_ns) * 1e-9;
        if (run->state != STUDY_DUE)
            continue;
        if (has_run && elapsed_s > plan->options->budget_s + grace_s) { /* never the first */
            run->state = STUDY_LEFT_OUT;
            set_reason(run, "left out: the time of --budget was over");
            continue;
        }
        snprintf(text, sizeof text, "%s: %s (%zu of %zu), %.0f s", plan->study->name, run->name,
                 i + 1, plan->run_count, elapsed_s);
        line_show(&line, text);
        code = carry_out(plan, run);
        has_run = true;
    }
    line_clear(&line);
    return code;
}
