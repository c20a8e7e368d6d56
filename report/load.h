/* SPDX-License-Identifier: Apache-2.0
 *
 * load: reads results of report/result.c back for compare and size. Files are untrusted: everything
 * is checked. Any thread.
 */
#ifndef IOBENCH_REPORT_LOAD_H
#define IOBENCH_REPORT_LOAD_H

#include "base/json.h"

#include <jansson.h>
#include <stdbool.h>

/* Add "checksum", of the contents, independent of layout. It detects figures changed by hand or by
 * accident, not by somebody who recomputes it. Returns the document; if it is
 * incomplete, releases it and returns NULL with a reason. */
json_t *seal_add(json_t *document);

/* Is a document a result of this version, unchanged, whose "jobs" is an array of objects? Returns 0
 * or a negative errno with a reason. */
int load_check(const char *name, const json_t *document);
int load_check_version(const char *name, const json_t *document);
/* Is it of this version, and unchanged? A document that is no result, as that of an inference. */
int load_check_seal(const char *name, const json_t *document);
/* Load a result, or any JSON; json_decref() it. Return NULL with a reason. */
enum { LOAD_BYTES_MAX = 256 << 20 };
json_t *load_document(const char *path);
json_t *load_file(const char *path);
json_t *load_any(const char *name, const char *text, size_t bytes);
/* Fail if both are one result, given twice or copied: its runs would count twice. Returns 0 or
 * -EEXIST with a reason. */
int load_refuse_copy(const char *name, const json_t *document, const char *other_name,
                     const json_t *other);

/* Look up a member by a path like "summary.read_latency.p99_s". */
const json_t *load_member(const json_t *object, const char *path);
/* NAN if missing, null or not a number. */
double load_number(const json_t *object, const char *path);
/* NULL if missing or not a string. */
const char *load_text(const json_t *object, const char *path);
const char *load_word(const json_t *object, const char *path); /* "" for NULL */
bool load_true(const json_t *object, const char *path);
/* Why the figures of a job may mislead though it is valid; NULL: it is not degraded. */
const char *load_degraded(const json_t *job);

/* What two jobs (or inferences) read, by dataset.identity. */
enum load_data {
    LOAD_DATA_UNKNOWN, /* or of several paths or hosts */
    LOAD_DATA_SAME,    /* both read the same files */
    LOAD_DATA_REPLACED /* other files at one path of one host */
};
enum load_data load_compare_data(const json_t *a, const json_t *b);

#endif
