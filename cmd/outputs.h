/* SPDX-License-Identifier: Apache-2.0
 *
 * outputs: the files that results go to. Several jobs may name the same file: each result is
 * added and the file replaced by one that holds all so far. "-" is the standard output.
 * Main thread only.
 */
#ifndef IOBENCH_CMD_OUTPUTS_H
#define IOBENCH_CMD_OUTPUTS_H

#include "base/text_stream.h"
#include "cmd/command.h"
#include "report/report.h"

enum output_kind { OUTPUT_JSON, OUTPUT_CSV, OUTPUT_SERIES };

struct output {
    const char *path; /* borrowed from the job */
    enum output_kind kind;
    json_t *jobs;           /* of a JSON file, else NULL */
    struct text_stream csv; /* of the others */
};

struct outputs {
    struct output *files;
    size_t count, capacity;
    json_t *comparisons; /* that each JSON file gets as well; NULL: none */
};

/* Can these files be made, and is nothing else lost by it? Asked first, so that hours are not lost
 * at the end. 0 or a negative errno. */
int outputs_check(const struct job *job);
/* No output of the command is one of its operands. 0 or -EEXIST with a reason. */
int outputs_check_operands(const struct invocation *invocation);

int outputs_open(struct outputs *outputs, size_t jobs);
/* Add a result to the files its job names and write them. 0 or a negative errno. */
int outputs_add(struct outputs *outputs, const struct result *result,
                const struct summary *summary);
/* Add what was compared, once, to the JSON files that there are. comparisons: taken over. */
int outputs_compare(struct outputs *outputs, json_t *comparisons);
/* Write what goes to the standard output. */
int outputs_finish(struct outputs *outputs);
void outputs_close(struct outputs *outputs);

#endif
