/* SPDX-License-Identifier: Apache-2.0
 *
 * outputs: result files. Several jobs may name the same file: each result is added, and the file is
 * replaced by one with all results so far. "-" is standard output. Main thread only.
 */
#ifndef IOBENCH_CMD_OUTPUTS_H
#define IOBENCH_CMD_OUTPUTS_H

#include "base/file.h"
#include "cmd/command.h"
#include "report/report.h"

#include <jansson.h>

enum output_kind { OUTPUT_JSON, OUTPUT_CSV, OUTPUT_SERIES };

struct output {
    const char *path; /* borrowed from the job */
    enum output_kind kind;
    json_t *jobs;           /* JSON file; else NULL */
    struct text_stream csv; /* CSV file */
};

struct outputs {
    struct output *files;
    size_t count, capacity;
    json_t *members; /* added to each JSON file; NULL: none */
};

/* Check that these files can be written without destroying others. Call first, so that hours of
 * work are not lost at the end. json, csv: how they begin, see replaced_check(). Returns 0
 * or -errno. */
int outputs_check(const struct job *job, const char *json, const char *csv);
/* The same for the files of jobs among each other. */
int outputs_check_jobs(const struct job *jobs, size_t count);
/* The same for one file; path: NULL is none; begin: NULL is any. */
int outputs_check_path(const char *path, const char *begin);
/* Check the files that a command's options name: they can be written, and none is an operand.
 * main() calls it for all commands. Returns 0 or a negative errno with a reason. */
int outputs_check_options(const struct invocation *invocation);

/* Close the stream and write its text to the file, or for "-" to standard output. Returns 0 or
 * -errno. */
int outputs_write(const char *path, struct text_stream *stream);

/* Write root to path ("-": standard output) and release it. Returns 0 or -errno. */
int json_file_write(const char *path, json_t *root);

int outputs_open(struct outputs *outputs, size_t jobs);
/* Add a result to the files named by its job and write them. Returns 0 or -errno. */
int outputs_add(struct outputs *outputs, const struct result *result,
                const struct summary *summary);
/* Add the comparisons once to each JSON file. Takes ownership of comparisons. */
int outputs_compare(struct outputs *outputs, json_t *comparisons);
/* Write the outputs that go to standard output. */
int outputs_finish(struct outputs *outputs);
void outputs_close(struct outputs *outputs);

#endif
