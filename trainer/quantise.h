/* SPDX-License-Identifier: Apache-2.0
 *
 * quantise: a network's inference in INT8. Values are step * q with a whole q from -127 to 127: a
 * step for each tensor between layers, found by calibrating, and one for each output channel of a
 * convolution's weights, from their largest magnitude. Here is what every backend has in common;
 * it computes no network. Pure but for the calibration, which is one thread's.
 *
 * In INT8 are convolutions whose channels come in sixteens, but for the one that sees the image;
 * and the sums behind them. All else stays in floating point.
 */
#ifndef IOBENCH_TRAINER_QUANTISE_H
#define IOBENCH_TRAINER_QUANTISE_H

#include "kernels/magnitudes.h"
#include "trainer/graph.h"

enum { QUANTISE_BINS = MAGNITUDES_BINS, QUANTISE_LEVELS = 128, QUANTISE_MOST = 127 };

/* What becomes of values beyond the range: they are clipped. */
enum quantise_method {
    QUANTISE_KL,         /* the range whose 128 levels tell least different a story (Migacz 2017) */
    QUANTISE_ABSMAX,     /* nothing is clipped */
    QUANTISE_PERCENTILE, /* one in 10,000 */
};

extern const char *const quantise_methods[]; /* their names; ends with NULL */

/* The magnitude that q = 127 stands for; 0 when there were only zeros. */
float quantise_range(const struct magnitudes *histogram, enum quantise_method method);
/* For the method KL: how many of the first bins to keep, of counts of which one is not 0. */
uint32_t quantise_bins_kept(const uint64_t *counts);

/* weights: rows of `count`, one an output channel. steps: `channels`. */
void quantise_weights(uint32_t channels, uint64_t count, const float *weights, int8_t *quantised,
                      float *steps);
/* The nearest value that INT8 can hold. */
float quantise_value(float value, float step);

/* ---- a network ---- */

struct quantise_node {
    float step;   /* of the output; 0: it is in floating point */
    bool in_int8; /* a convolution that takes INT8 */
};

/* What each node becomes. ranges: of each node's output; 0: unknown. nodes: node_count, zeroed. */
void quantise_plan(const struct graph *graph, const float *ranges, struct quantise_node *nodes);

/* Of the layers with weights, how many quantise_plan() puts into INT8. */
struct quantise_share {
    uint32_t in_int8, layers;
};
int quantise_count(const struct graph *graph, const float *ranges, struct quantise_share *share);

/* What each node puts out over some batches. */
struct calibration {
    const struct graph *graph;
    struct magnitudes *histograms; /* one a node; zeros count for the percentile alone */
};

int calibration_open(struct calibration *calibration, const struct graph *graph);
void calibration_close(struct calibration *calibration);
/* A node puts this out. */
int calibration_observe(struct calibration *calibration, uint32_t node, const float *values,
                        uint64_t count);
/* -ERANGE when one of the values was not finite. */
int calibration_check(const struct calibration *calibration);
/* ranges: node_count. */
void calibration_ranges(const struct calibration *calibration, enum quantise_method method,
                        float *ranges);

#endif
