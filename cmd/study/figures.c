/* SPDX-License-Identifier: Apache-2.0
 * The figures of a study: its expressions, with cmd/study/prelude.jq before them, are one program
 * of jq(1), and the results its input. */
#include "cmd/study/study.h"

#include "base/child.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text_stream.h"
#include "report/load.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RESULT_BYTES_MAX = 256 << 20 };

static const uint64_t time_limit_ns = UINT64_C(120000000000);

/* ---- the program ---- */

/* Write the value of a key into the program, or the default. */
static void put_value(FILE *program, const struct study *study, const char *section,
                      const char *key, const char *fallback)
{
    char *value = study_value(study, section, key);

    fputs(value ? value : fallback, program);
    free(value);
}

static void put_string(FILE *program, const struct study *study, const char *section,
                       const char *key)
{
    char *value = study_value(study, section, key);
    json_t *string = json_text(value ? value : "");
    char *text = json_to_text(string, JSON_ENCODE_ANY);

    fputs(text ? text : "\"\"", program);
    free(text);
    json_decref(string);
    free(value);
}

/* A sentence whose run is missing is left out; a wrong expression fails. */
static char *make_program(const struct study *study)
{
    static const char *const sentences[] = {"first", "second", "third"};
    static const char *const labels[] = {"kind", "x", "y", "log", "bars", "across", "up", "by"};
    struct text_stream stream;
    char *text = NULL;
    size_t bytes;

    if (text_stream_open(&stream))
        return NULL;
    FILE *program = stream.stream;
    fprintf(program, "%s\ndef rows_of($run; $each; $also):\n", study_text_shipped("prelude.jq"));
    put_value(program, study, "table", "rows", "{}");
    fputs(";\ndef over_time_of:\n", program);
    put_value(program, study, "picture", "over-time", "[]");
    fputs(";\n[.runs[] | . as $r | .result | rows_of($r.name; $r.each; $r.also)"
          " | {run: $r.name} + .] as $all | . as $in\n| ($all |\n",
          program);
    put_value(program, study, "table", "all", ".");
    fputs("\n) as $rows | {rows: ($rows | without(", program);
    put_string(program, study, "table", "hidden");
    fputs(")), says: [", program);
    for (size_t i = 0; i < sizeof sentences / sizeof *sentences; i++) {
        char *value = study_value(study, "says", sentences[i]);
        if (value)
            fprintf(program, "%s($rows | said(\n%s\n))", i ? ", " : "", value);
        free(value);
    }
    fputs("], picture: ({", program);
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
        fprintf(program, "%s%s: ", i ? ", " : "", labels[i]);
        put_string(program, study, "picture", labels[i]);
    }
    fputs("} | picture($rows; $in; over_time_of)), machine: ($in | machine)}\n", program);
    int code = text_stream_take(&stream, &text, &bytes);
    return code ? NULL : text;
}

/* ---- input ---- */

static int load_result(const struct study_run *run, json_t **document)
{
    char *text;
    size_t bytes;
    int code = file_load(run->path, RESULT_BYTES_MAX, &text, &bytes);

    if (code)
        return code;
    *document = load_any(run->path, text, bytes);
    free(text);
    return *document ? 0 : -EINVAL;
}

static char *make_input(const struct study_plan *plan)
{
    json_t *input = json_object(), *runs = json_array(), *document;
    int code = 0;

    json_object_set_new(input, "runs", runs);
    for (size_t i = 0; i < plan->run_count && code == 0; i++) {
        const struct study_run *run = &plan->runs[i];
        if (run->state != STUDY_DONE)
            continue;
        json_t *member = json_object();
        json_array_append_new(runs, member);
        json_put_text(member, "name", run->name);
        json_put_text(member, "each", run->each);
        json_put_text(member, "also", run->also);
        code = load_result(run, &document);
        if (code == 0)
            json_object_set_new(member, "result", document);
    }
    char *text = code ? NULL : json_to_text(input, JSON_COMPACT);
    json_decref(input);
    return text;
}

void study_add_doubts(const struct study_plan *plan, json_t *figures)
{
    json_t *doubts = json_array();

    for (size_t i = 0; i < plan->run_count; i++) {
        const struct study_run *run = &plan->runs[i];
        if (!run->reason)
            continue;
        json_t *doubt = json_object();
        json_put_text(doubt, "run", run->name);
        json_object_set_new(doubt, "in_figures", json_boolean(run->state == STUDY_DONE));
        json_put_text(doubt, "reason", run->reason);
        json_array_append_new(doubts, doubt);
    }
    json_object_set_new(figures, "doubts", doubts);
}

/* ---- running jq ---- */

/* Unnamed files, so a killed process leaves none behind. */
static int make_file(const char *text)
{
    int file = memfd_create("study", MFD_CLOEXEC);

    if (file < 0)
        return fail(errno, "cannot create a file in memory: %s", fail_errno_text(errno));
    int code = file_write_at(file, text, strlen(text), 0, "jq");
    if (code == 0)
        return file;
    close(file);
    return code;
}

static json_t *run_jq(const char *program, int input, int output)
{
    const char *const argv[] = {"jq", "-c", program, NULL};
    const struct child_task task = {
        .argv = argv, .input = input, .output = output, .timeout_ns = time_limit_ns};
    struct child_result result;
    size_t bytes;
    int code = child_run(&task, &result);

    if (code == -ENOENT)
        fail(ENOENT, "jq is required for studies and not installed: apt-get install jq or similar");
    else if (code == 0 && result.status)
        fail(EINVAL, "the study's expressions: %s", result.output);
    if (code || result.status)
        return NULL;
    char *text = file_read_all(output, &bytes, "jq");
    json_t *figures = text ? load_any("jq", text, bytes) : NULL;
    free(text);
    return figures;
}

json_t *study_figures(const struct study_plan *plan)
{
    char *program = make_program(plan->study), *text = program ? make_input(plan) : NULL;
    int input = text ? make_file(text) : -1, output = input >= 0 ? make_file("") : -1;
    json_t *figures = output >= 0 ? run_jq(program, input, output) : NULL;

    if (output >= 0)
        close(output);
    if (input >= 0)
        close(input);
    free(text);
    free(program);
    return figures;
}
