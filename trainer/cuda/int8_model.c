/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/cuda/int8_model.h"

#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>

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

int cuda_int8_open(struct cuda_model *model)
{
    const struct graph *graph = model->graph;

    if (!model->config.ranges)
        return 0;
    model->quantised = memory_array(graph->node_count, sizeof *model->quantised);
    model->int8 = memory_array(graph->node_count, sizeof *model->int8);
    if (!model->quantised || !model->int8)
        return -ENOMEM;
    quantise_plan(graph, model->config.ranges, model->quantised);
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const uint64_t vector = graph->nodes[i].shape.channels * sizeof(float);
        if (model->quantised[i].in_int8)
            model->int8[i] = (struct cuda_int8){
                .weight = cuda_allocate(model, graph->parameters[graph->nodes[i].weight].count),
                .scale = cuda_allocate(model, vector),
                .bias = cuda_allocate(model, vector),
                .last = cuda_allocate(model, vector)};
    }
    return model->code;
}

void cuda_int8_close(struct cuda_model *model)
{
    free(model->int8);
    free(model->quantised);
}

/* Compute the parameters of one convolution on the host and send them. Rows of weights are
 * quantised in whatever order they are. */
static int load_layer(const struct cuda_model *model, uint32_t number, const float *parameters,
                      const float *statistics)
{
    const struct graph *graph = model->graph;
    const struct graph_node *node = &graph->nodes[number];
    const struct graph_parameter *weight = &graph->parameters[node->weight];
    const struct cuda_chain chain = cuda_chain_of(model, number);
    const struct cuda_int8 *to = &model->int8[number];
    const uint32_t channels = node->shape.channels;
    const float step = model->quantised[chain.end].step, unit = step > 0 ? step : 1;
    const float between = chain.sum ? model->quantised[chain.other].step : unit;
    const float step_in = model->quantised[node->inputs[0]].step;
    const uint64_t bytes = channels * sizeof(float);
    void *stream = model->runtime.stream;
    int8_t *quantised = memory_array(weight->count, 1);
    float *scale = memory_array(3 * (uint64_t)channels, sizeof *scale);
    float *bias = scale ? scale + channels : NULL, *last = scale ? bias + channels : NULL;

    int code = quantised && scale
                   ? quantise_layer(graph, number, chain.norm, parameters, statistics,
                                    parameters + weight->offset, quantised, scale, bias)
                   : -ENOMEM;
    for (uint32_t i = 0; i < channels && code == 0; i++) {
        scale[i] *= step_in / between;
        bias[i] /= between;
        last[i] = between / unit;
    }
    if (code == 0)
        code = runtime_copy(to->weight, quantised, weight->count, stream);
    if (code == 0)
        code = runtime_copy(to->scale, scale, bytes, stream);
    if (code == 0)
        code = runtime_copy(to->bias, bias, bytes, stream);
    if (code == 0)
        code = runtime_copy(to->last, last, bytes, stream);
    int waited = runtime_wait(stream);
    free(quantised);
    free(scale);
    return code ? code : waited;
}

int cuda_int8_load(struct cuda_model *model)
{
    const struct graph *graph = model->graph;
    void *stream = model->runtime.stream;

    if (!model->quantised)
        return 0;
    float *parameters = memory_array(graph->parameter_floats, sizeof *parameters);
    float *statistics = memory_array(graph->statistic_floats + 1, sizeof *statistics);
    int code = parameters && statistics ? 0 : -ENOMEM;
    if (code == 0)
        code = runtime_copy(parameters, model->parameters,
                            graph->parameter_floats * sizeof *parameters, stream);
    if (code == 0)
        code = runtime_copy(statistics, model->statistics,
                            graph->statistic_floats * sizeof *statistics, stream);
    int waited = runtime_wait(stream);
    code = code ? code : waited;
    for (uint32_t i = 0; i < graph->node_count && code == 0; i++)
        if (model->quantised[i].in_int8)
            code = load_layer(model, i, parameters, statistics);
    free(parameters);
    free(statistics);
    return code;
}
