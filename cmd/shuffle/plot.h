/* SPDX-License-Identifier: Apache-2.0
 *
 * shuffle_plot: charts orders in one SVG. Two maps per order: the labels in sample batches of an
 * epoch, and which label follows which. With throughputs also a chart of randomness against
 * throughput, with the Pareto front. Main thread.
 */
#ifndef IOBENCH_CMD_SHUFFLE_PLOT_H
#define IOBENCH_CMD_SHUFFLE_PLOT_H

#include "report/svg.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* Add the next draw of the surveyed rank. */
void plot_draw(struct plot_panel *panel, uint64_t draw, uint32_t label);

/* Begin a picture; without maps only the chart of randomness against throughput. *values: what its
 * maps show, to be freed after it. Returns 0 or -ENOMEM with a reason. */
int plot_begin(struct svg *svg, const struct plot_panel *panels, size_t count, bool has_maps,
               double **values);

#endif
