/* SPDX-License-Identifier: Apache-2.0
 *
 * shuffle_plot: pictures of orders as one SVG. For each order two maps: which labels sample batches
 * of an epoch hold, and which label follows which. With throughputs also a chart of randomness
 * against throughput, with the Pareto front. Main thread.
 */
#ifndef IOBENCH_CMD_SHUFFLE_PLOT_H
#define IOBENCH_CMD_SHUFFLE_PLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PLOT_BATCHES = 16, PLOT_LABELS = 64, PLOT_NEIGHBOURS = 32 };

/* What is drawn of one order, gathered draw by draw. More labels than there are columns are
 * counted together. */
struct plot_panel {
    char title[160]; /* "": nothing is drawn of it */
    uint64_t draws;  /* expected of the rank */
    uint32_t batch_size, classes;
    uint32_t labels[PLOT_BATCHES][PLOT_LABELS];            /* draws of a sample batch by label */
    uint32_t neighbours[PLOT_NEIGHBOURS][PLOT_NEIGHBOURS]; /* draws by their label and the next */
    uint32_t last_label;
    /* of the chart */
    double randomness;  /* distinct labels a batch over those of a random draw, 0 .. 1 */
    double bytes_per_s; /* 0: not measured */
    bool on_front;      /* no other is both as random and faster */
    bool verified;      /* all its runs were proven cold */
};

/* A draw of the rank that is looked at, in order. */
void plot_draw(struct plot_panel *panel, uint64_t draw, uint32_t label);

/* 0 or a negative errno. */
int plot_write(const char *path, const struct plot_panel *panels, size_t count);

#endif
