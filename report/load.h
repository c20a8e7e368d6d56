/* SPDX-License-Identifier: Apache-2.0
 *
 * load: results written by report/json.c, read back for compare and size. Files may come from
 * anybody: everything is checked. Any thread.
 */
#ifndef IOBENCH_REPORT_LOAD_H
#define IOBENCH_REPORT_LOAD_H

#include <jansson.h>
#include <stdbool.h>

/* The document, whose "jobs" is an array of objects; json_decref() it. NULL with a reason. */
json_t *load_document(const char *path);
json_t *load_parse(const char *name, const char *text, size_t bytes);
/* Any JSON, as of a training, which has no jobs. */
json_t *load_any(const char *name, const char *text, size_t bytes);

/* Members by a path like "summary.read_latency.p99_s". */
const json_t *load_member(const json_t *object, const char *path);
/* NAN when it is missing, null or no number. */
double load_number(const json_t *object, const char *path);
/* NULL when it is missing or no text. */
const char *load_text(const json_t *object, const char *path);
bool load_true(const json_t *object, const char *path);

/* The numbers at path of each member of the array at list ("runs"), those that are known, into
 * values (at most capacity). Returns how many. */
size_t load_series(const json_t *job, const char *list, const char *path, double *values,
                   size_t capacity);

#endif
