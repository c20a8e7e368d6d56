/* SPDX-License-Identifier: Apache-2.0
 *
 * report: a result as people and programs read it. Everything is a rendering of pipeline/result.h
 * and report/summary.h; nothing is measured or judged here. Streams are the caller's. Any thread.
 */
#ifndef IOBENCH_REPORT_REPORT_H
#define IOBENCH_REPORT_REPORT_H

#include "pipeline/result.h"
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
/* The document around jobs (an array, borrowed); NULL with a reason. */
json_t *report_json_document(json_t *jobs);

/* One row an epoch; heading: the names of the columns before them. */
void report_csv(FILE *stream, const struct result *result, bool heading);

/* Write all of text to path at once: a reader of path sees the old file or the whole new one. */
int report_write_file(const char *path, const char *text, size_t bytes);

#endif
