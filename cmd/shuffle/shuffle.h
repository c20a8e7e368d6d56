/* SPDX-License-Identifier: Apache-2.0
 *
 * shuffle: a survey of orders, its tables, files and charts. Main thread.
 */
#ifndef IOBENCH_CMD_SHUFFLE_SHUFFLE_H
#define IOBENCH_CMD_SHUFFLE_SHUFFLE_H

#include "base/fail.h"
#include "base/stats.h"
#include "cmd/line.h"
#include "cmd/pack/cursor.h"
#include "pipeline/settings/job.h"
#include "report/svg.h"
#include "shuffle/quality.h"

/* ---- charts of orders in one SVG ----
 *
 * Two maps per order: the labels in sample batches of an epoch, and which label follows which. With
 * throughputs also a chart of randomness against throughput, with the Pareto front. */

enum { PLOT_BATCHES = 16, PLOT_LABELS = 64, PLOT_NEIGHBOURS = 32 };

/* Data of one order's maps, gathered draw by draw. Labels share columns if there are too many. */
struct plot_panel {
    char title[160]; /* "": not drawn */
    uint64_t draws;  /* expected draws of the rank */
    uint32_t batch_size, classes;
    uint32_t labels[PLOT_BATCHES][PLOT_LABELS];            /* draws of a sample batch by label */
    uint32_t neighbours[PLOT_NEIGHBOURS][PLOT_NEIGHBOURS]; /* draws by their label and the next */
    uint32_t last_label;
    /* for the chart */
    double randomness;  /* distinct labels per batch relative to a random draw, 0 .. 1 */
    double bytes_per_s; /* 0: not measured */
    bool on_front;      /* no other order is as random and faster */
    bool verified;      /* all runs were verified cold */
};

/* Begin a picture; without maps only the chart of randomness against throughput. *values: what its
 * maps show, to be freed after it. Returns 0 or -ENOMEM with a reason. */
int plot_begin(struct svg *svg, const struct plot_panel *panels, size_t count, bool has_maps,
               double **values);

/* ---- a survey ---- */

enum { SHUFFLE_RUNS_MOST = 100 };

struct shuffle_settings {
    struct job job; /* a read of --measure; also what orders and their reads depend on */
    int labels;     /* enum shuffle_labels */
    uint64_t records, shards, sample_bytes, classes;
    char *partitions, *ranks;
    uint64_t epochs, runs;
    char *as; /* a preset of shuffle/preset.h */
    bool measure;
    char *plot, *json, *csv;
};

/* Throughput of an order, in runs after dropping caches. */
struct shuffle_speed {
    uint32_t runs, cold_runs;
    double bytes_per_s[SHUFFLE_RUNS_MOST], samples_per_s[SHUFFLE_RUNS_MOST];
    struct stats_summary bytes, samples; /* of the counted runs */
    char warm_reason[FAIL_REASON_BYTES]; /* why the last unverified run is not cold, or degraded */
    char refused[FAIL_REASON_BYTES];     /* why it cannot be read on this machine; "" */
    bool on_front;                       /* no other order is both more random and faster */
};

/* One row of the table: a surveyed order. */
struct shuffle_row {
    const char *order;
    enum plan_partition partition;
    uint32_t ranks;
    char refused[FAIL_REASON_BYTES]; /* why the order does not suit the partition; "" */
    struct coalesce reads;           /* how fetches are coalesced into reads */
    struct quality quality;
    struct shuffle_speed speed;
};

struct survey {
    const struct shuffle_settings *settings;
    struct plugin_choice format; /* format of --data */
    const char *preset_order;    /* of --as, else NULL */
    struct catalog *catalog;
    struct labels labels; /* of == NULL: assumed sorted */
    uint32_t classes;
    struct shuffle_row *rows;
    size_t row_count;
    struct plot_panel *panels; /* one per row, or NULL */
    struct line line;
};

void shuffle_print_set(const struct survey *survey);
void shuffle_print_heading(const struct shuffle_row *row);
void shuffle_print_row(const struct shuffle_row *row);
void shuffle_print_legend(const struct survey *survey);
/* Print throughputs as a table and as a letter chart. */
void shuffle_print_speeds(const struct survey *survey);
/* Write --json and --csv. Returns 0 or -errno. */
int shuffle_write_files(const struct survey *survey);

#endif
