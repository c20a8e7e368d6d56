/* SPDX-License-Identifier: Apache-2.0
 *
 * KL: S. Migacz, 8-bit Inference with TensorRT, GTC 2017. For each number of bins kept, the counts
 * beyond them are added to the last bin kept: the reference distribution. The candidate is what 128
 * levels of equal width retain of the kept bins: each level's counts spread evenly over its
 * non-empty bins.
 */
#include "trainer/quantise.h"

#include "base/fail.h"
#include "base/memory.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

static const double percentile = 0.9999;

const char *const quantise_methods[] = {
    [QUANTISE_KL] = "kl", [QUANTISE_ABSMAX] = "absmax", [QUANTISE_PERCENTILE] = "percentile", NULL};

/* ---- histograms ---- */

/* Divergence between the counts clipped after `kept` bins and what the levels retain; infinite if
 * clipping fills an empty bin. kept_sum: of the first `kept` counts. */
static double divergence(const uint64_t *counts, uint32_t kept, double kept_sum, double sum)
{
    double spread[QUANTISE_BINS], total = 0;

    for (uint32_t level = 0; level < QUANTISE_LEVELS; level++) {
        const uint32_t first = level * kept / QUANTISE_LEVELS;
        const uint32_t end = (level + 1) * kept / QUANTISE_LEVELS;
        uint64_t level_sum = 0;
        uint32_t filled = 0;
        for (uint32_t i = first; i < end; i++) {
            level_sum += counts[i];
            filled += counts[i] > 0;
        }
        for (uint32_t i = first; i < end; i++)
            spread[i] = counts[i] > 0 ? (double)level_sum / filled : 0;
    }
    for (uint32_t i = 0; i < kept; i++) {
        const double clipped = i + 1 == kept ? sum - kept_sum : 0;
        const double p = ((double)counts[i] + clipped) / sum, q = spread[i] / kept_sum;
        if (p > 0 && q <= 0)
            return INFINITY;
        if (p > 0)
            total += p * log(p / q);
    }
    return total;
}

uint32_t quantise_bins_kept(const uint64_t *counts)
{
    double kept_sum = 0, sum = 0, least = INFINITY;
    uint32_t used = QUANTISE_BINS;

    while (used > 0 && counts[used - 1] == 0)
        used--;
    uint32_t best = used;
    for (uint32_t i = 0; i < used; i++)
        sum += (double)counts[i];
    for (uint32_t kept = 1; kept <= used; kept++) {
        kept_sum += (double)counts[kept - 1];
        if (kept < QUANTISE_LEVELS)
            continue;
        const double found = divergence(counts, kept, kept_sum, sum);
        if (found < least) {
            least = found;
            best = kept;
        }
    }
    return best;
}

float quantise_range(const struct magnitudes *histogram, enum quantise_method method)
{
    double range = histogram->largest;

    if (range > 0 && method == QUANTISE_KL)
        range = quantise_bins_kept(histogram->counts) * histogram->range / QUANTISE_BINS;
    if (range > 0 && method == QUANTISE_PERCENTILE) {
        double sum = (double)histogram->zeros, below = sum;
        for (uint32_t i = 0; i < QUANTISE_BINS; i++)
            sum += (double)histogram->counts[i];
        for (uint32_t i = 0; i < QUANTISE_BINS; i++) {
            below += (double)histogram->counts[i];
            if (below >= percentile * sum && histogram->counts[i] > 0) {
                range = (i + 1) * histogram->range / QUANTISE_BINS;
                break;
            }
        }
    }
    return (float)(range < histogram->largest ? range : histogram->largest);
}

/* ---- values ---- */

static float nearest(float value, float step)
{
    const float q = nearbyintf(value / step);

    return q > QUANTISE_MOST ? QUANTISE_MOST : q < -QUANTISE_MOST ? -QUANTISE_MOST : q;
}

float quantise_value(float value, float step)
{
    return nearest(value, step) * step;
}

static float step_of(const float *row, uint64_t count)
{
    float largest = 0;

    for (uint64_t i = 0; i < count; i++)
        largest = fabsf(row[i]) > largest ? fabsf(row[i]) : largest;
    return largest > 0 ? largest / QUANTISE_MOST : 1;
}

void quantise_weights(uint32_t channels, uint64_t count, const float *weights, int8_t *quantised,
                      float *steps)
{
    for (uint32_t c = 0; c < channels; c++) {
        const float *row = weights + c * count;
        steps[c] = step_of(row, count);
        for (uint64_t i = 0; i < count; i++)
            quantised[c * count + i] = (int8_t)nearest(row[i], steps[c]);
    }
}

void quantise_round(uint32_t channels, uint64_t count, float *weights)
{
    for (uint32_t c = 0; c < channels; c++) {
        const float step = step_of(weights + c * count, count);
        for (uint64_t i = c * count; i < (c + 1) * count; i++)
            weights[i] = quantise_value(weights[i], step);
    }
}

int quantise_layer(const struct graph *graph, uint32_t convolution, uint32_t norm,
                   const float *parameters, const float *statistics, const float *weight,
                   int8_t *quantised, float *steps, float *bias)
{
    const uint32_t channels = graph->nodes[convolution].shape.channels;
    const uint64_t count = graph->parameters[graph->nodes[convolution].weight].count;
    float *folded = memory_array(count, sizeof *folded);

    if (!folded)
        return -ENOMEM;
    graph_fold_norm(graph, convolution, norm, parameters, statistics, weight, folded, bias);
    quantise_weights(channels, count / channels, folded, quantised, steps);
    free(folded);
    return 0;
}

/* ---- a network ---- */

/* The INT8 convolution that produces this output, possibly through a BN, and no other; or 0. */
static uint32_t sole_convolution(const struct graph *graph, const struct quantise_node *nodes,
                                 uint32_t number)
{
    if (graph->nodes[number].kind == GRAPH_BATCH_NORM && graph->nodes[number].consumers == 1)
        number = graph->nodes[number].inputs[0];
    return nodes[number].in_int8 && graph->nodes[number].consumers == 1 ? number : 0;
}

void quantise_plan(const struct graph *graph, const float *ranges, struct quantise_node *nodes)
{
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct graph_node *node = &graph->nodes[i];
        const uint32_t input = node->inputs[0];
        if (node->kind != GRAPH_CONVOLUTION || input == 0 || !(ranges[input] > 0) ||
            graph->nodes[input].shape.channels / node->window.groups % 16 != 0 ||
            node->shape.channels / node->window.groups % 16 != 0)
            continue;
        nodes[i].in_int8 = true;
        nodes[input].step = ranges[input] / QUANTISE_MOST;
    }
    /* The later convolution of a sum adds the other operand to its own result, which is never
     * stored. */
    for (uint32_t i = 0; i < graph->node_count; i++) {
        if (graph->nodes[i].kind != GRAPH_ADD)
            continue;
        const uint32_t *sides = graph->nodes[i].inputs;
        const uint32_t first = sole_convolution(graph, nodes, sides[0]);
        const uint32_t second = sole_convolution(graph, nodes, sides[1]);
        const uint32_t other = first > second ? sides[1] : sides[0];
        if ((first || second) && ranges[other] > 0)
            nodes[other].step = ranges[other] / QUANTISE_MOST;
    }
}

int quantise_count(const struct graph *graph, const float *ranges, struct quantise_share *share)
{
    struct quantise_node *nodes = memory_array(graph->node_count, sizeof *nodes);

    *share = (struct quantise_share){0};
    if (!nodes)
        return -ENOMEM;
    quantise_plan(graph, ranges, nodes);
    for (uint32_t i = 0; i < graph->node_count; i++) {
        share->in_int8 += nodes[i].in_int8;
        share->layers += graph->nodes[i].kind == GRAPH_CONVOLUTION ||
                         graph->nodes[i].kind == GRAPH_FULLY_CONNECTED;
    }
    free(nodes);
    return 0;
}

int calibration_open(struct calibration *calibration, const struct graph *graph)
{
    calibration->graph = graph;
    calibration->histograms = memory_array(graph->node_count, sizeof *calibration->histograms);
    return calibration->histograms ? 0 : -ENOMEM;
}

void calibration_close(struct calibration *calibration)
{
    free(calibration->histograms);
    calibration->histograms = NULL;
}

static int check_learnt(const struct calibration *calibration, uint32_t node)
{
    return isfinite(calibration->histograms[node].largest)
               ? 0
               : fail(ERANGE, "the output of %s is not a number: the network has not learnt",
                      calibration->graph->nodes[node].name);
}

int calibration_observe(struct calibration *calibration, uint32_t node, const float *values,
                        uint64_t count)
{
    magnitudes_observe(&calibration->histograms[node], count, values);
    return check_learnt(calibration, node);
}

int calibration_check(const struct calibration *calibration)
{
    int code = 0;

    for (uint32_t i = 0; i < calibration->graph->node_count && code == 0; i++)
        code = check_learnt(calibration, i);
    return code;
}

void calibration_ranges(const struct calibration *calibration, enum quantise_method method,
                        float *ranges)
{
    for (uint32_t i = 0; i < calibration->graph->node_count; i++)
        ranges[i] = quantise_range(&calibration->histograms[i], method);
}
