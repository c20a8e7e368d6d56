/* SPDX-License-Identifier: Apache-2.0
 *
 * report: renders pipeline/result/result.h and report/summary.h as text, JSON and CSV; measures and
 * judges nothing. The caller owns the streams. Any thread.
 */
#ifndef IOBENCH_REPORT_REPORT_H
#define IOBENCH_REPORT_REPORT_H

#include "base/json.h"
#include "pipeline/result/result.h"
#include "report/summary.h"

#include <jansson.h>
#include <stdio.h>

/* "schema_version" of every document; a change of meaning raises it (docs/json.md). */
enum { SCHEMA_VERSION = 2 };

/* Print the table. color: for a terminal. */
void report_text(FILE *stream, const struct result *result, const struct summary *summary,
                 bool color);

/* Print what would be done (result of run_jobs()). */
void report_plan(FILE *stream, const struct result *result);

/* One member of "jobs" in the JSON document (docs/json.md). Returns NULL with a reason. */
json_t *report_json(const struct result *result, const struct summary *summary);
/* The document around jobs (an array) and further members (an object or NULL), sealed: add nothing
 * afterwards. Borrows both. Returns NULL with a reason. */
json_t *report_json_document(json_t *jobs, json_t *members);

/* The "place" of a document: the machine; the same and its storage. */
json_t *report_machine(const struct environment *environment);
json_t *report_environment(const struct environment *environment);
/* Put whether a result is valid or degraded, why, and its notices. */
void report_verdict(json_t *document, const struct result *result);
/* The "dataset" of a document, as described by result_describe(). */
json_t *report_dataset(const struct result *result);

/* The "series" of a job: figures over time, phases, provenance of the bytes (docs/json.md). */
json_t *report_timeline(const struct timeline *timeline);
/* Read a series back, without the single counters, which JSON omits. name: for messages. Returns
 * NULL with a reason. */
struct timeline *report_timeline_load(const char *name, const json_t *series);

/* Put null, and why in KEY_reason; a reason has none itself. */
void report_null(json_t *object, const char *key, const char *reason);
/* Put the figures of an object, or null with KEY_reason where one is unknown. */
void report_figures(json_t *object, const struct figure *rows, size_t count, const void *of);
/* Read them back: numbers, times and flags; 0 or NAN where one is unknown. Texts, and what follows
 * from other figures, stay as they are. */
void report_figures_load(const json_t *object, const struct figure *rows, size_t count, void *of);

/* docs/json.md, "read_latency"; with quantiles for curves. kinds: one histogram per
 * result_epoch_kind. */
json_t *latency_json(const struct histogram *all, const struct histogram *kinds, bool quantiles);
/* "p50 3.16 ms, ..., max 10.5 ms" of all. Returns text. */
char *latency_text(const struct histogram *all, char *text, size_t bytes);
/* "; first epoch p50 ..., p99 ...; later epochs ...", or "" of one epoch. Returns text. */
char *latency_text_by_epoch(const struct histogram *kinds, char *text, size_t bytes);

/* Print a table of lowest, median and highest rank, and the straggler; nothing for one rank. */
void report_ranks_text(FILE *stream, const struct result_comparison *comparison);
/* docs/json.md, "ranks_compared"; null for one rank. */
json_t *report_ranks_json(const struct result_comparison *comparison);
/* One rank of a run. */
json_t *report_ranks_json_one(const struct result_rank *rank);
/* Describe a step of the mean rank: "63.4 ms: wait for batches 0.5%, upload 0.0%, ...". total: over
 * all ranks. Returns text. */
char *report_step(const struct result_epoch *total, uint32_t ranks, char *text, size_t text_bytes);
/* Describe the trainer's device memory: "; 3.2 GiB of the GPU, ...", or "". Returns text. */
char *report_device_memory(const struct trainer_memory *memory, char *text, size_t text_bytes);

/* Digits in results: 60 s is 60.0, not 60.000000000000007, and a time of today has microseconds. */
enum { REPORT_DIGITS = 15 };

/* Format a document as text, to be freed: arrays of plain values on one line, real numbers with
 * `digits` digits (6 in such arrays). Returns NULL with a reason. */
char *report_json_text(const json_t *value, int digits);

/* Write a row per time bin: figures, then counters; of several nodes the sums, then each node's. */
void report_series_csv(FILE *stream, const struct timeline *timeline);
/* Read a table back, as far as it holds the series: phases start and end with rows and have no run;
 * nodes have the rows and phases of all. Modifies text. Returns NULL with a reason. */
struct timeline *report_series_load(const char *name, char *text);

/* Read the lines of `iobench monitor --json`. Returns NULL with a reason. */
struct timeline *report_lines_load(const char *name, const char *text);

/* Draw a column over the epochs as a sparkline. text: REPORT_SPARK_BYTES. Returns the value of a
 * full character, 0 without data. */
enum { REPORT_SPARK_BYTES = 256 };
double report_spark(const struct timeline *timeline, const char *key, char *text);

/* Print time series and provenance in a few lines, the first with a heading. */
void report_timeline_text(FILE *stream, const struct timeline *timeline);

/* Write one row per epoch; heading: column names first. */
void report_csv(FILE *stream, const struct result *result, bool heading);
/* The last columns of a row, which say whether to use it. run: NULL for one of the whole job.
 * degraded: as of the job's JSON. */
#define REPORT_CSV_MARKS "degraded,job_valid,synthetic,reason"
bool report_is_degraded(const struct result *result);
void report_csv_marks(FILE *stream, const struct result *result, const struct result_run *run,
                      bool degraded);

/* Write a text as a field of CSV per RFC 4180, without line breaks. */
void report_csv_quoted(FILE *stream, const char *text);

/* Figures that a training run adds to a profile. */
struct report_trained {
    const char *network, *gpu;
    double batch, parameters, gradient_bytes;
    struct stats_summary samples_per_s; /* of one rank, without waits and exchange */
};

/* Write the figures of a result with samples as a profile (base/profiles/profiles.h). trained: NULL
 * for a run; a training says nothing about storage that was not its bottleneck. Also the first line
 * of a profile, and of an acceptance test. */
void report_profile(FILE *stream, const struct result *result, const struct summary *summary,
                    const struct report_trained *trained);
extern const char report_profile_mark[], report_acceptance_mark[];

/* The first line of a page of a study. */
extern const char report_page_mark[];

/* Write text to path atomically: readers see the old file or the complete new one. Calls
 * replaced_check() first. */
int report_write_file(const char *path, const char *text, size_t bytes);

/* ---- reading results back. Files are untrusted: everything is checked ---- */

/* Add "checksum", of the contents, independent of layout. It detects figures changed by hand or by
 * accident, not by somebody who recomputes it. Returns the document; if it is
 * incomplete, releases it and returns NULL with a reason. */
json_t *seal_add(json_t *document);

/* Is a document a result of this version, unchanged, whose "jobs" is an array of objects? Returns 0
 * or a negative errno with a reason. */
int load_check(const char *name, const json_t *document);
int load_check_version(const char *name, const json_t *document);
/* The same for a document that is no result, such as an inference. */
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
