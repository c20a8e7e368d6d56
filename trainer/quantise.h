/* SPDX-License-Identifier: Apache-2.0
 *
 * quantise: INT8 inference. A value is step * q, q an integer from -127 to 127: one step per tensor
 * between layers, found by calibration, and one per output channel of a convolution's weights, from
 * their largest magnitude. Shared by all backends; computes no network. Pure except for
 * calibration, which belongs to one thread.
 *
 * INT8 covers convolutions whose channel counts are multiples of 16, except the one that reads the
 * image, and the sums that follow them. Everything else stays in floating point.
 */
#ifndef IOBENCH_TRAINER_QUANTISE_H
#define IOBENCH_TRAINER_QUANTISE_H

#include "kernels/kernels.h"
#include "trainer/graph.h"

enum { QUANTISE_BINS = MAGNITUDES_BINS, QUANTISE_LEVELS = 128, QUANTISE_MOST = 127 };

/* How to choose the range; values beyond it are clipped. */
enum quantise_method {
    QUANTISE_KL,         /* least KL divergence with 128 levels (Migacz 2017) */
    QUANTISE_ABSMAX,     /* no clipping */
    QUANTISE_PERCENTILE, /* clips one in 10,000 */
};

extern const char *const quantise_methods[]; /* their names; ends with NULL */

/* The magnitude that maps to q = 127; 0 if all values are zero. */
float quantise_range(const struct magnitudes *histogram, enum quantise_method method);
/* For method KL: return how many leading bins to keep. At least one count is not 0. */
uint32_t quantise_bins_kept(const uint64_t *counts);

/* weights: rows of `count`, one per output channel. steps: `channels`. */
void quantise_weights(uint32_t channels, uint64_t count, const float *weights, int8_t *quantised,
                      float *steps);
/* Round them to what quantise_weights() represents. */
void quantise_round(uint32_t channels, uint64_t count, float *weights);
/* Weights of a convolution with a BN folded in, and the bias; arguments as graph_fold_norm(). */
int quantise_layer(const struct graph *graph, uint32_t convolution, uint32_t norm,
                   const float *parameters, const float *statistics, const float *weight,
                   int8_t *quantised, float *steps, float *bias);
/* The nearest representable value. */
float quantise_value(float value, float step);

/* ---- a network ---- */

struct quantise_node {
    float step;   /* of the output; 0: floating point */
    bool in_int8; /* a convolution with INT8 input */
};

/* Decide which nodes use INT8. ranges: of each node's output; 0: unknown. nodes: node_count,
 * zeroed. */
void quantise_plan(const struct graph *graph, const float *ranges, struct quantise_node *nodes);

/* Return how many of the layers with weights quantise_plan() puts into INT8. */
struct quantise_share {
    uint32_t in_int8, layers;
};
int quantise_count(const struct graph *graph, const float *ranges, struct quantise_share *share);

/* Histograms of each node's output over several batches. */
struct calibration {
    const struct graph *graph;
    struct magnitudes *histograms; /* one per node; zeros count for the percentile only */
};

int calibration_open(struct calibration *calibration, const struct graph *graph);
void calibration_close(struct calibration *calibration);
/* Add an output of a node. */
int calibration_observe(struct calibration *calibration, uint32_t node, const float *values,
                        uint64_t count);
/* Returns -ERANGE if a value was not finite. */
int calibration_check(const struct calibration *calibration);
/* ranges: node_count. */
void calibration_ranges(const struct calibration *calibration, enum quantise_method method,
                        float *ranges);

#endif
