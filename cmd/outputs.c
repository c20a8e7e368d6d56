/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/outputs.h"

#include "base/draft.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "formats/format.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool is_stdout(const char *path)
{
    return strcmp(path, "-") == 0;
}

static int write_text(const char *path, const char *text, size_t bytes)
{
    if (!is_stdout(path))
        return report_write_file(path, text, bytes);
    fwrite(text, 1, bytes, stdout);
    return 0;
}

int outputs_write(const char *path, struct text_stream *stream)
{
    char *text = NULL;
    size_t bytes = 0;
    int code = text_stream_take(stream, &text, &bytes);

    if (code == 0)
        code = write_text(path, text, bytes);
    free(text);
    return code;
}

int json_file_write(const char *path, json_t *root)
{
    if (!root)
        return fail(ENOMEM, "out of memory for JSON");
    char *text = report_json_text(root, REPORT_DIGITS);
    int code = text ? 0 : -ENOMEM;

    if (text && is_stdout(path))
        puts(text);
    else if (text)
        code = report_write_file(path, text, strlen(text));
    free(text);
    json_decref(root);
    return code;
}

/* set: a data set that the command reads; or NULL. */
static int check_path(const char *path, const char *begin, const char *set)
{
    if (!path || is_stdout(path) || file_is_stream(path))
        return 0;
    int code = file_draft_check(path);
    if (code == 0)
        code = format_check_apart(path, set);
    return code || !begin ? code : replaced_check(path, begin, strlen(begin));
}

int outputs_check_path(const char *path, const char *begin)
{
    return check_path(path, begin, NULL);
}

/* The folder of a path: "" is the current one. Returns the name within it. */
static const char *split(const char *path, struct stat *folder)
{
    const char *slash = strrchr(path, '/');
    char *above = slash ? strndup(path, (size_t)(slash - path) + 1) : NULL;

    if (stat(above ? above : ".", folder))
        *folder = (struct stat){0};
    free(above);
    return slash ? slash + 1 : path;
}

/* Refuse two outputs in one file: the second would replace the first, or be refused when its work
 * is done. */
static int check_apart(const char *path, const char *other)
{
    struct stat one, two;

    if (!path || !other || is_stdout(path) || is_stdout(other) || file_is_stream(path))
        return 0;
    const bool is_one = strcmp(split(path, &one), split(other, &two)) == 0 &&
                        one.st_dev == two.st_dev && one.st_ino == two.st_ino;
    return is_one ? fail(EINVAL, "%s: named for two outputs; name two files", path) : 0;
}

/* Jobs, or a job and itself. They may add their results to one JSON, CSV or series, of one kind. A
 * profile or trace holds one. */
static int check_two_jobs(const struct job *job, const struct job *other)
{
    static const char *const hold_one[] = {"profile", "trace"};
    int code = 0;

    for (const struct option_spec *one = job_options; one->name; one++)
        for (const struct option_spec *two = job_options; two->name && code == 0; two++)
            if (one != two)
                code = check_apart(job_output(job, one), job_output(other, two));
            else if (job != other &&
                     (strcmp(one->name, hold_one[0]) == 0 || strcmp(one->name, hold_one[1]) == 0) &&
                     check_apart(job_output(job, one), job_output(other, one)))
                return fail(EINVAL,
                            "--%s %s: named for two jobs, but a %s holds one; name two files",
                            one->name, job_output(job, one), one->name);
    return code;
}

int outputs_check(const struct job *job, const char *json, const char *csv)
{
    const struct {
        const char *path, *begin;
    } files[] = {
        {job->output.json, json},
        {job->output.csv, csv},
        {job->output.profile, report_profile_mark},
        {job->output.trace, "{\"otherData\": {\"iobench\":"},
        {job->output.series, "time_s,phases"},
    };
    int code = check_two_jobs(job, job);

    for (size_t i = 0; i < sizeof files / sizeof *files && code == 0; i++)
        code = check_path(files[i].path, files[i].begin, job->read.data);
    return code;
}

int outputs_check_jobs(const struct job *jobs, size_t count)
{
    int code = 0;

    for (size_t i = 1; i < count; i++)
        for (size_t k = 0; k < i && code == 0; k++)
            code = check_two_jobs(&jobs[i], &jobs[k]);
    return code;
}

static const char *value_of(const struct invocation *invocation, const struct option_spec *row)
{
    return *(char *const *)((const char *)invocation->settings + row->offset);
}

enum { OUTPUTS_MOST = 16 };

int outputs_check_options(const struct invocation *invocation)
{
    const struct option_spec *const options = invocation->command->options;
    const char *data = NULL, *paths[OUTPUTS_MOST];
    size_t count = 0;
    int code = 0;

    for (const struct option_spec *row = options; row && row->name && !data; row++)
        if (row->reach == OPTION_INDEXES_SET && row->type == OPTION_TEXT)
            data = value_of(invocation, row);
    for (const struct option_spec *row = options; row && row->name && code == 0; row++) {
        if (row->reach != OPTION_WRITES || row->type != OPTION_TEXT)
            continue;
        const char *path = value_of(invocation, row);
        paths[count] = path;
        count += path && count + 1 < OUTPUTS_MOST;
        if (path && !ranks_are_launched()) /* else rank 0 checks: it alone writes */
            code = check_path(path, row->begins, data);
        for (int i = 0; path && code == 0 && i < invocation->count; i++)
            code = format_check_apart(path, invocation->operands[i]);
        struct stat one, two;
        for (int i = 0; path && i < invocation->count; i++)
            if (stat(path, &one) == 0 && stat(invocation->operands[i], &two) == 0 &&
                S_ISREG(one.st_mode) && one.st_dev == two.st_dev && one.st_ino == two.st_ino)
                return fail(EEXIST, "--%s %s: is the file to be read; name another", row->name,
                            path);
    }
    if (code)
        return code;
    for (size_t i = 1; i < count; i++)
        for (size_t k = 0; k < i && code == 0; k++)
            code = check_apart(paths[i], paths[k]);
    return code;
}

int outputs_open(struct outputs *outputs, size_t jobs)
{
    assert(jobs > 0);
    *outputs = (struct outputs){.capacity = 3 * jobs};
    outputs->files = memory_array(outputs->capacity, sizeof *outputs->files);
    return outputs->files ? 0 : -ENOMEM;
}

/* Return the output of this path, adding it if it is new. */
static struct output *output_of(struct outputs *outputs, const char *path, enum output_kind kind)
{
    for (size_t i = 0; i < outputs->count; i++) {
        struct output *file = &outputs->files[i];
        if (strcmp(file->path, path) == 0 && file->kind == kind)
            return file;
    }
    assert(outputs->count < outputs->capacity);
    struct output *file = &outputs->files[outputs->count++];
    *file = (struct output){.path = path, .kind = kind};
    if (kind == OUTPUT_JSON)
        file->jobs = json_array();
    else
        text_stream_open(&file->csv);
    return file;
}

/* Write a file that grew; standard output waits for outputs_finish(). */
static int write_grown(const struct outputs *outputs, struct output *file)
{
    if (file->kind == OUTPUT_JSON)
        return is_stdout(file->path)
                   ? 0
                   : json_file_write(file->path,
                                     report_json_document(file->jobs, outputs->members));
    const int code = text_stream_flush(&file->csv);
    return code || is_stdout(file->path) ? code
                                         : write_text(file->path, file->csv.text, file->csv.bytes);
}

int outputs_add(struct outputs *outputs, const struct result *result, const struct summary *summary)
{
    const char *const paths[] = {[OUTPUT_JSON] = result->job->output.json,
                                 [OUTPUT_CSV] = result->job->output.csv,
                                 [OUTPUT_SERIES] = result->job->output.series};
    int code = 0;

    for (enum output_kind kind = OUTPUT_JSON; kind <= OUTPUT_SERIES && code == 0; kind++) {
        if (!paths[kind])
            continue;
        struct output *file = output_of(outputs, paths[kind], kind);
        if (kind == OUTPUT_JSON
                ? json_array_append_new(file->jobs, report_json(result, summary)) || json_check()
                : !file->csv.stream)
            return fail(ENOMEM, "%s: out of memory", file->path);
        if (kind == OUTPUT_SERIES && !result->timeline)
            return fail(ENODATA, "--series %s: nothing was sampled: %s", file->path,
                        result->timeline_reason);
        if (kind == OUTPUT_CSV)
            report_csv(file->csv.stream, result, file->csv.bytes == 0);
        else if (kind == OUTPUT_SERIES) {
            /* Those of several jobs follow each other, separated by an empty line: their columns
             * differ. */
            if (file->csv.bytes)
                fputc('\n', file->csv.stream);
            report_series_csv(file->csv.stream, result->timeline);
        }
        code = write_grown(outputs, file);
    }
    if (code == 0 && result->trace) {
        struct text_stream stream;
        if (text_stream_open(&stream))
            return -ENOMEM;
        trace_print(result->trace, stream.stream);
        code = outputs_write(result->job->output.trace, &stream);
    }
    return code;
}

int outputs_compare(struct outputs *outputs, json_t *comparisons)
{
    int code = 0;

    outputs->members = json_pack("{s:o}", "comparisons", comparisons);
    for (size_t i = 0; i < outputs->count && code == 0; i++)
        if (outputs->files[i].kind == OUTPUT_JSON)
            code = write_grown(outputs, &outputs->files[i]);
    return code;
}

int outputs_finish(struct outputs *outputs)
{
    int code = 0;

    for (size_t i = 0; i < outputs->count && code == 0; i++) {
        const struct output *file = &outputs->files[i];
        if (is_stdout(file->path))
            code = file->kind == OUTPUT_JSON
                       ? json_file_write(file->path,
                                         report_json_document(file->jobs, outputs->members))
                       : write_text(file->path, file->csv.text, file->csv.bytes);
    }
    return code;
}

void outputs_close(struct outputs *outputs)
{
    for (size_t i = 0; i < outputs->count; i++) {
        json_decref(outputs->files[i].jobs);
        text_stream_close(&outputs->files[i].csv);
    }
    json_decref(outputs->members);
    free(outputs->files);
}
