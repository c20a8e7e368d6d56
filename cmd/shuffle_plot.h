/* SPDX-License-Identifier: Apache-2.0
 *
 * shuffle_plot: pictures of orders as one SVG. For each order: which labels sample batches of an
 * epoch hold, and the label of a draw against that of the next one. With throughputs: randomness
 * against throughput, with the Pareto front. Main thread.
 */
#ifndef IOBENCH_CMD_SHUFFLE_PLOT_H
#define IOBENCH_CMD_SHUFFLE_PLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PLOT_BATCHES = 16, PLOT_LABELS = 128, PLOT_POINTS = 1024 };

/* What is drawn of one order, gathered draw by draw. */
struct plot_panel {
    char title[160];
    uint64_t draws; /* expected of the rank */
    uint32_t batch_size, classes;
    uint16_t labels[PLOT_BATCHES][PLOT_LABELS]; /* draws of the batch within so many labels */
    uint16_t points[PLOT_POINTS][2]; /* label of a draw and of the next, in 1/1000 of the classes */
    uint32_t point_count;
    uint32_t last_label;
    /* of the Pareto chart */
    double randomness;  /* distinct labels a batch over those of a random draw, 0 .. 1 */
    double bytes_per_s; /* 0: not measured */
};

/* A draw of the rank that is looked at, in order. */
void plot_draw(struct plot_panel *panel, uint64_t draw, uint32_t label);

/* Is no other panel both more random and faster? */
bool plot_on_front(const struct plot_panel *panels, size_t count, size_t index);

/* 0 or a negative errno. */
int plot_write(const char *path, const struct plot_panel *panels, size_t count);

#endif
