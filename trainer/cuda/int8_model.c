/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/cuda/int8_model.h"

#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 256 };

/* ---- the graph ---- */

struct cuda_chain cuda_chain_of(const struct cuda_model *model, uint32_t convolution)
{
    const struct graph *graph = model->graph;
    struct cuda_chain chain = {.end = convolution};

    chain.norm = graph_only_consumer(graph, chain.end, GRAPH_BATCH_NORM);
    chain.end = chain.norm ? chain.norm : chain.end;
    const uint32_t sum = graph_only_consumer(graph, chain.end, GRAPH_ADD);
    if (sum) {
        const uint32_t *inputs = graph->nodes[sum].inputs;
        const uint32_t other = inputs[0] == chain.end ? inputs[1] : inputs[0];
        if (other < convolution && model->quantised[other].step > 0) {
            chain.sum = chain.end = sum;
            chain.other = other;
        }
    }
    chain.relu = graph_only_consumer(graph, chain.end, GRAPH_RELU);
    chain.end = chain.relu ? chain.relu : chain.end;
    return chain;
}

/* ---- parameters ---- */

static uint64_t aligned(uint64_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static uint64_t weight_count(const struct cuda_model *model, uint32_t node)
{
    return model->graph->parameters[model->graph->nodes[node].weight].count;
}

/* A convolution has weights and three vectors. */
static uint64_t bytes_of(const struct cuda_model *model, uint32_t node)
{
    const uint32_t channels = model->graph->nodes[node].shape.channels;

    return aligned(weight_count(model, node)) + 3 * aligned(channels * sizeof(float));
}

int cuda_int8_open(struct cuda_model *model)
{
    const struct graph *graph = model->graph;
    uint64_t bytes = 0;

    if (!model->config.ranges)
        return 0;
    model->quantised = memory_array(graph->node_count, sizeof *model->quantised);
    model->int8 = memory_array(graph->node_count, sizeof *model->int8);
    if (!model->quantised || !model->int8)
        return -ENOMEM;
    quantise_plan(graph, model->config.ranges, model->quantised);
    for (uint32_t i = 0; i < graph->node_count; i++)
        bytes += model->quantised[i].in_int8 ? bytes_of(model, i) : 0;
    char *next = cuda_allocate(model, bytes);
    if (!next)
        return model->code;
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const uint64_t vector = aligned(graph->nodes[i].shape.channels * sizeof(float));
        if (!model->quantised[i].in_int8)
            continue;
        char *vectors = next + aligned(weight_count(model, i));
        model->int8[i] = (struct cuda_int8){.weight = (int8_t *)next,
                                            .scale = (void *)vectors,
                                            .bias = (void *)(vectors + vector),
                                            .last = (void *)(vectors + 2 * vector)};
        next += bytes_of(model, i);
    }
    return 0;
}

void cuda_int8_close(struct cuda_model *model)
{
    free(model->int8);
    free(model->quantised);
}

/* Permute outputs x channels x plane to outputs x plane x channels. */
static void put_channels_last(const struct graph_node *node, uint64_t count, const int8_t *from,
                              int8_t *to)
{
    const uint64_t plane = (uint64_t)node->window.height * node->window.width;
    const uint64_t channels = count / node->shape.channels / plane;

    for (uint64_t k = 0; k < node->shape.channels; k++)
        for (uint64_t c = 0; c < channels; c++)
            for (uint64_t p = 0; p < plane; p++)
                to[(k * plane + p) * channels + c] = from[(k * channels + c) * plane + p];
}

/* Compute the parameters of one convolution on the host, laid out as on the device. */
static int fill(const struct cuda_model *model, uint32_t number, const float *parameters,
                const float *statistics, char *filled)
{
    const struct graph *graph = model->graph;
    const struct graph_node *node = &graph->nodes[number];
    const struct cuda_chain chain = cuda_chain_of(model, number);
    const uint32_t channels = node->shape.channels;
    const uint64_t count = weight_count(model, number), vector = aligned(channels * sizeof(float));
    const float step = model->quantised[chain.end].step, unit = step > 0 ? step : 1;
    const float between = chain.sum ? model->quantised[chain.other].step : unit;
    const float step_in = model->quantised[node->inputs[0]].step;
    float *scale = (void *)(filled + aligned(count));
    float *bias = (void *)(filled + aligned(count) + vector);
    float *last = (void *)(filled + aligned(count) + 2 * vector);
    int8_t *quantised = memory_array(count, 1);
    int code = quantised ? quantise_layer(graph, number, chain.norm, parameters, statistics,
                                          parameters + graph->parameters[node->weight].offset,
                                          quantised, scale, bias)
                         : -ENOMEM;

    if (code == 0)
        put_channels_last(node, count, quantised, (int8_t *)filled);
    for (uint32_t i = 0; i < channels; i++) {
        scale[i] *= step_in / between;
        bias[i] /= between;
        last[i] = between / unit;
    }
    free(quantised);
    return code;
}

int cuda_int8_load(struct cuda_model *model)
{
    const struct graph *graph = model->graph;

    if (!model->quantised)
        return 0;
    float *parameters = memory_array(graph->parameter_floats, sizeof *parameters);
    float *statistics = memory_array(graph->statistic_floats + 1, sizeof *statistics);
    int code = parameters && statistics ? 0 : -ENOMEM;
    if (code == 0)
        code = cuda_model_save(model, parameters, NULL, statistics, NULL);
    for (uint32_t i = 0; i < graph->node_count && code == 0; i++) {
        if (!model->quantised[i].in_int8)
            continue;
        const uint64_t bytes = bytes_of(model, i);
        char *filled = NULL;
        code = posix_memalign((void **)&filled, ALIGNMENT, bytes) ? -ENOMEM : 0;
        if (code == 0)
            memset(filled, 0, bytes);
        if (code == 0)
            code = fill(model, i, parameters, statistics, filled);
        if (code == 0)
            code = runtime_copy(model->int8[i].weight, filled, bytes, model->runtime.stream);
        int waited = runtime_wait(model->runtime.stream);
        code = code ? code : waited;
        free(filled);
    }
    free(parameters);
    free(statistics);
    return code;
}
