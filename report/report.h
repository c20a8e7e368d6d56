/* SPDX-License-Identifier: Apache-2.0
 *
 * report: a result as people and programs read it. Everything is a rendering of
 * pipeline/result/result.h and report/summary.h; nothing is measured or judged here. Streams are
 * the caller's. Any thread.
 */
#ifndef IOBENCH_REPORT_REPORT_H
#define IOBENCH_REPORT_REPORT_H

#include "pipeline/result/result.h"
#include "report/summary.h"

#include <jansson.h>
#include <stdio.h>

enum { REPORT_WIDTH = 90 };

/* The table. color: for a terminal. */
void report_text(FILE *stream, const struct result *result, const struct summary *summary,
                 bool color);

/* What would be done (run_plan() filled the result). */
void report_plan(FILE *stream, const struct result *result);

/* One member of "jobs" of the JSON document (docs/json.md); NULL with a reason. */
json_t *report_json(const struct result *result, const struct summary *summary);
/* The document around jobs (an array) and further members (an object, or NULL), sealed: nothing may
 * be added to it. Both are borrowed. NULL with a reason. */
json_t *report_json_document(json_t *jobs, json_t *members);

/* The "series" of a job: figures over time, phases, where the bytes came from (docs/json.md). */
json_t *report_timeline(const struct timeline *timeline);
/* What it was made of, but for the single counters, which are in no JSON. name: for messages. NULL
 * with a reason. */
struct timeline *report_timeline_load(const char *name, const json_t *series);

/* Of a result: 60 s is written 60.0, not 60.000000000000007, and a time of this century to a
 * microsecond. */
enum { REPORT_DIGITS = 15 };

/* Any document as text, to be freed: arrays of plain values on one line, real numbers with so many
 * digits (in such arrays with 6). NULL with a reason. */
char *report_json_text(const json_t *value, int digits);

/* A row a bin of time: figures, then every counter; of several nodes the sums, then each node's. */
void report_series_csv(FILE *stream, const struct timeline *timeline);
/* What it was made of, but for what is not in the table: phases begin and end with rows, and have
 * no run; nodes have the rows and phases of all. text is used up. NULL with a reason. */
struct timeline *report_series_load(const char *name, char *text);

/* The lines of `iobench monitor --json`. NULL with a reason. */
struct timeline *report_lines_load(const char *name, const char *text);

/* A column of the epochs' time as a few characters; returns what a full one stands for, 0 when
 * there is nothing to show. text: REPORT_SPARK_BYTES. */
enum { REPORT_SPARK_BYTES = 256 };
double report_spark(const struct timeline *timeline, const char *key, char *text);

/* What happened over time and where the bytes came from, in a few lines of which the first begins
 * with a heading. */
void report_timeline_text(FILE *stream, const struct timeline *timeline);

/* One row an epoch; heading: the names of the columns before them. */
void report_csv(FILE *stream, const struct result *result, bool heading);

/* May a text that begins like this one take the place of what is at path? Only of an older one of
 * its kind (JSON, CSV, SVG, gnuplot script) or of an empty file: a path given by mistake costs
 * nobody a file. 0 or a negative errno, -EEXIST when not. */
int report_check_replaced(const char *path, const char *text, size_t bytes);

/* Write all of text to path at once: a reader of path sees the old file or the whole new one. Asks
 * report_check_replaced() first. */
int report_write_file(const char *path, const char *text, size_t bytes);

#endif
