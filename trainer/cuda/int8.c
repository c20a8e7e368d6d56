/* SPDX-License-Identifier: Apache-2.0
 * INT8 inference: its parameters, convolutions, and conversions where an output is held in INT8. */
#include "trainer/cuda/build.h"

#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>

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

/* ---- steps ---- */

static void add_conversion(struct cuda_builder *builder, const struct cuda_kernel *kernel,
                           uint32_t node, uint32_t from, uint32_t to)
{
    struct cuda_step step = cuda_step_of(kernel, node);

    step.quantise.type = builder->model->type;
    step.quantise.count = cuda_numbers_of(builder, node);
    step.quantise.step = builder->model->quantised[node].step;
    cuda_reads(&step, &step.quantise.from, from);
    cuda_writes(&step, &step.quantise.to, to);
    cuda_add_step(builder, &step);
}

uint32_t cuda_input(struct cuda_builder *builder, const struct cuda_block *block, uint32_t n)
{
    struct cuda_value *value = n < block->input_count ? &builder->values[block->inputs[n]] : NULL;

    if (value && value->buffer == CUDA_NONE && value->int8 != CUDA_NONE) {
        value->buffer = cuda_add_tensor(builder, value->int8_node);
        add_conversion(builder, &cuda_kernel_dequantise, value->int8_node, value->int8,
                       value->buffer);
    }
    return value ? value->buffer : CUDA_NONE;
}

/* The step may belong to a node of the same output, such as a dropout in inference. */
void cuda_hold_int8(struct cuda_builder *builder, uint32_t block)
{
    struct cuda_value *value = &builder->values[block];

    for (uint32_t node = 0; node < builder->model->graph->node_count; node++) {
        if (builder->blocks.of_node[node] != block || value->int8 != CUDA_NONE ||
            value->buffer == CUDA_NONE || !(builder->model->quantised[node].step > 0))
            continue;
        value->int8_node = node;
        value->int8 = cuda_add_buffer(builder, cuda_numbers_of(builder, node));
        add_conversion(builder, &cuda_kernel_quantise, node, value->buffer, value->int8);
        value->buffer = CUDA_NONE;
    }
}

void cuda_emit_convolution_int8(struct cuda_builder *builder, const struct cuda_block *own)
{
    const struct cuda_model *model = builder->model;
    const struct cuda_int8 *parameters = &model->int8[own->node];
    const bool sum = own->input_count > 1;
    struct cuda_value *value = cuda_value(builder, own);
    const uint32_t fusion = DNN_SCALED | DNN_BIASED | (own->relu ? DNN_RECTIFIED : 0u) |
                            (sum ? DNN_ADDED | DNN_RESCALED : 0u);
    struct cuda_step step = cuda_step_of(&cuda_kernel_convolution_int8, own->node);
    struct dnn_shape *shape = &step.convolution.shape;
    void **at = step.convolution.tensors.at;

    *shape = cuda_shape(model, builder->program->count, own->node, DNN_FORWARD, fusion);
    shape->int8 = true;
    shape->int8_output = model->quantised[own->end].step > 0;
    at[DNN_WEIGHTS] = parameters->weight;
    at[DNN_SCALE] = parameters->scale;
    at[DNN_BIAS] = parameters->bias;
    at[DNN_LAST] = parameters->last;
    cuda_reads(&step, &at[DNN_INPUT], builder->values[own->inputs[0]].int8);
    if (sum)
        cuda_reads(&step, &at[DNN_OTHER], builder->values[own->inputs[1]].int8);
    if (shape->int8_output)
        value->int8 = cuda_add_buffer(builder, cuda_numbers_of(builder, own->end));
    else
        value->buffer = cuda_add_tensor(builder, own->end);
    value->int8_node = own->end;
    cuda_writes(&step, &at[DNN_OUTPUT], shape->int8_output ? value->int8 : value->buffer);
    cuda_add_convolution(builder, &step);
}
