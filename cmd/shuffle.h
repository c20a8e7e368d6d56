/* SPDX-License-Identifier: Apache-2.0
 *
 * shuffle: what the parts of `iobench shuffle` share: the survey of orders (cmd/shuffle.c), how
 * fast they are read (cmd/shuffle_measure.c), and what comes out (cmd/shuffle_report.c, and as
 * pictures cmd/shuffle_plot.h). Main thread.
 */
#ifndef IOBENCH_CMD_SHUFFLE_H
#define IOBENCH_CMD_SHUFFLE_H

#include "base/fail.h"
#include "base/stats.h"
#include "cmd/line.h"
#include "cmd/shuffle_plot.h"
#include "pack/labels.h"
#include "shuffle/quality.h"

enum { SHUFFLE_RUNS_MOST = 100 };

struct shuffle_settings {
    char *data, *format;
    int labels; /* enum shuffle_labels */
    uint64_t records, shards, sample_bytes, classes;
    char *partitions, *ranks;
    int remainder;
    uint64_t batch_size, epochs, seed, block_bytes, window;
    char *as; /* a preset of shuffle/preset.h */
    bool measure;
    char *reader;
    bool direct;
    uint64_t iodepth, memory_bytes, runs, limit_samples;
    char *plot, *json, *csv;
};

enum shuffle_labels { SHUFFLE_LABELS_AUTO, SHUFFLE_LABELS_SORTED, SHUFFLE_LABELS_READ };

/* How fast an order was read, in runs that were all told to be cold. */
struct shuffle_speed {
    uint32_t runs, cold_runs;
    double bytes_per_s[SHUFFLE_RUNS_MOST], samples_per_s[SHUFFLE_RUNS_MOST];
    struct stats_summary bytes, samples; /* of those */
    char warm_reason[FAIL_REASON_BYTES]; /* why the last one that is not cold is none; "" */
    char refused[FAIL_REASON_BYTES];     /* it cannot be read on this machine; "" */
    bool on_front;                       /* no other order is both more random and faster */
};

/* An order that is looked at: one line of the table. */
struct shuffle_row {
    const char *order;
    enum plan_partition partition;
    uint32_t ranks;
    char refused[FAIL_REASON_BYTES]; /* this order is not for this partition; "" */
    struct coalesce reads;           /* how its fetches become reads */
    struct quality quality;
    struct shuffle_speed speed;
};

struct survey {
    const struct shuffle_settings *settings;
    struct plugin_choice format; /* of --data */
    const char *preset_order;    /* of --as, else NULL */
    struct catalog *catalog;
    struct labels labels; /* of == NULL: taken as sorted */
    uint32_t classes;
    struct shuffle_row *rows;
    size_t row_count;
    struct plot_panel *panels; /* one a row, or NULL */
    struct line line;
};

/* Distinct labels a batch over those of a draw at random, at most 1; NAN without a whole batch. */
double shuffle_randomness(const struct shuffle_row *row);

/* ---- cmd/shuffle_measure.c ---- */

/* Read --data in each order, settings->runs rounds of one cold run each, so that all orders see the
 * same weather; then mark the Pareto front. What memory does not allow is noted and left out; 0 or
 * a negative errno for all else that fails. */
int shuffle_measure(struct survey *survey);

/* ---- cmd/shuffle_report.c ---- */

void shuffle_print_set(const struct survey *survey);
void shuffle_print_heading(const struct survey *survey, const struct shuffle_row *row);
void shuffle_print_row(const struct survey *survey, const struct shuffle_row *row);
void shuffle_print_legend(const struct survey *survey);
/* Throughputs as a table and as a chart of letters. */
void shuffle_print_speeds(const struct survey *survey);
/* Partition and ranks are named when there are several of them. */
const char *shuffle_title(const struct survey *survey, const struct shuffle_row *row, char *text,
                          size_t text_bytes);
/* --json and --csv. 0 or a negative errno. */
int shuffle_write_files(const struct survey *survey);

#endif
