/* SPDX-License-Identifier: Apache-2.0
 *
 * Inference in INT8. A convolution takes INT8 and computes what is behind it too, where it has no
 * other consumer: BN, which is in its weights; the sum with a tensor that is held in INT8; ReLU.
 * That is its chain, and only the last node's output is stored: in INT8 where the model has a step
 * for it, else in the backend's type.
 */
#include "trainer/cuda/cuda.h"

#include "base/fail.h"
#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 256 };

/* Nodes; 0 where there is none. */
struct chain {
    uint32_t norm, sum, other, relu, end;
};

/* ---- the graph ---- */

/* The only consumer, when it is of that kind; else 0. */
static uint32_t behind(const struct graph *graph, uint32_t number, enum graph_kind kind)
{
    uint32_t found = 0, count = 0;

    for (uint32_t i = number + 1; i < graph->node_count; i++)
        for (uint32_t j = 0; j < graph->nodes[i].input_count; j++)
            if (graph->nodes[i].inputs[j] == number) {
                found = i;
                count++;
            }
    return count == 1 && graph->nodes[found].kind == kind ? found : 0;
}

static struct chain chain_of(const struct cuda_model *model, uint32_t convolution)
{
    const struct graph *graph = model->graph;
    struct chain chain = {.end = convolution};

    chain.norm = behind(graph, chain.end, GRAPH_BATCH_NORM);
    chain.end = chain.norm ? chain.norm : chain.end;
    const uint32_t sum = behind(graph, chain.end, GRAPH_ADD);
    if (sum) {
        const uint32_t *inputs = graph->nodes[sum].inputs;
        const uint32_t other = inputs[0] == chain.end ? inputs[1] : inputs[0];
        if (other < convolution && model->quantised[other].step > 0) {
            chain.sum = chain.end = sum;
            chain.other = other;
        }
    }
    chain.relu = behind(graph, chain.end, GRAPH_RELU);
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

/* Of one convolution: the weights, and three vectors. */
static uint64_t bytes_of(const struct cuda_model *model, uint32_t node)
{
    const uint32_t channels = model->graph->nodes[node].shape.channels;

    return aligned(weight_count(model, node)) + 3 * aligned(channels * sizeof(float));
}

int cuda_int8_open(struct cuda_model *model)
{
    const struct graph *graph = model->graph;
    uint64_t bytes = 0;

    if (!model->site.ranges)
        return 0;
    model->quantised = memory_array(graph->node_count, sizeof *model->quantised);
    model->int8 = memory_array(graph->node_count, sizeof *model->int8);
    if (!model->quantised || !model->int8)
        return -ENOMEM;
    quantise_plan(graph, model->site.ranges, model->quantised);
    for (uint32_t i = 0; i < graph->node_count; i++)
        bytes += model->quantised[i].in_int8 ? bytes_of(model, i) : 0;
    char *next = model->int8_memory = cuda_allocate(model, bytes);
    if (!next)
        return -ENOMEM;
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
    runtime_release(model->int8_memory);
    free(model->int8);
    free(model->quantised);
}

/* Outputs x channels x plane as outputs x plane x channels. */
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

/* What is found on the host for one convolution, laid out as on the device. */
static int fill(const struct cuda_model *model, uint32_t number, const float *parameters,
                const float *statistics, char *filled)
{
    const struct graph *graph = model->graph;
    const struct graph_node *node = &graph->nodes[number];
    const struct chain chain = chain_of(model, number);
    const uint32_t channels = node->shape.channels;
    const uint64_t count = weight_count(model, number), vector = aligned(channels * sizeof(float));
    const float step = model->quantised[chain.end].step, unit = step > 0 ? step : 1;
    const float between = chain.sum ? model->quantised[chain.other].step : unit;
    const float step_in = model->quantised[node->inputs[0]].step;
    float *scale = (void *)(filled + aligned(count));
    float *bias = (void *)(filled + aligned(count) + vector);
    float *last = (void *)(filled + aligned(count) + 2 * vector);
    float *folded = memory_array(count, sizeof *folded);
    int8_t *quantised = memory_array(count, 1);

    if (folded && quantised) {
        graph_fold_norm(graph, number, chain.norm, parameters, statistics,
                        parameters + graph->parameters[node->weight].offset, folded, bias);
        quantise_weights(channels, count / channels, folded, quantised, scale);
        put_channels_last(node, count, quantised, (int8_t *)filled);
    }
    bool failed = !folded || !quantised;
    for (uint32_t i = 0; i < channels; i++) {
        scale[i] *= step_in / between;
        bias[i] /= between;
        last[i] = between / unit;
    }
    free(folded);
    free(quantised);
    return failed ? -ENOMEM : 0;
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

/* ---- steps ---- */

static uint64_t numbers(const struct cuda_plan *plan, uint32_t node)
{
    return plan->count * cuda_numbers(plan->model, node);
}

static int run_quantise(const struct cuda_plan *plan, const struct cuda_step *step)
{
    const struct cuda_model *model = plan->model;

    return device_quantise(model->type, numbers(plan, step->node), cuda_at(plan, step->in),
                           model->quantised[step->node].step, cuda_at(plan, step->out),
                           model->runtime.stream);
}

static int run_dequantise(const struct cuda_plan *plan, const struct cuda_step *step)
{
    const struct cuda_model *model = plan->model;

    return device_dequantise(model->type, numbers(plan, step->node), cuda_at(plan, step->in),
                             model->quantised[step->node].step, cuda_at(plan, step->out),
                             model->runtime.stream);
}

/* in, other: INT8; out: the end of the chain. */
static int run_convolution(const struct cuda_plan *plan, const struct cuda_step *step)
{
    const struct cuda_model *model = plan->model;
    const struct cuda_int8 *own = &model->int8[step->node];
    const struct device_int8 with = {.scale = own->scale,
                                     .bias = own->bias,
                                     .other = cuda_at(plan, step->other),
                                     .last = own->last,
                                     .relu = step->relu,
                                     .to_int8 = step->shape.int8_output,
                                     .type = model->type};

    if (!step->dnn)
        return device_convolution_int8(&step->shape.window, &with, cuda_at(plan, step->in),
                                       own->weight, cuda_at(plan, step->out),
                                       model->runtime.stream);
    const struct dnn_tensors tensors = {.at = {[DNN_INPUT] = cuda_at(plan, step->in),
                                               [DNN_WEIGHTS] = own->weight,
                                               [DNN_OUTPUT] = cuda_at(plan, step->out),
                                               [DNN_SCALE] = own->scale,
                                               [DNN_BIAS] = own->bias,
                                               [DNN_OTHER] = cuda_at(plan, step->other),
                                               [DNN_LAST] = own->last},
                                        .workspace = model->workspace};
    return dnn_run(model->dnn, step->dnn, &tensors);
}

/* ---- building ---- */

/* A sum that is computed by itself must not apply a BN that is in a convolution, and one in a
 * convolution applies none of the other side. */
static void settle_sum(struct cuda_plan *plan, uint32_t sum)
{
    struct cuda_node *own = &plan->nodes[sum];
    uint32_t *const norms[] = {&own->norm_other, &own->norm};

    for (int i = 0; i < 2; i++) {
        const uint32_t norm = *norms[i];
        if (norm == CUDA_NONE || (!own->chained && !plan->nodes[norm].chained))
            continue;
        plan->nodes[norm].absorbed = false;
        *norms[i] = CUDA_NONE;
    }
    if (own->norm == CUDA_NONE) {
        own->norm = own->norm_other;
        own->norm_other = CUDA_NONE;
    }
}

void cuda_int8_look(struct cuda_plan *plan)
{
    const struct cuda_model *model = plan->model;

    for (uint32_t i = 0; model->quantised && i < model->graph->node_count; i++) {
        if (!model->quantised[i].in_int8)
            continue;
        const struct chain chain = chain_of(model, i);
        const uint32_t parts[] = {i, chain.norm, chain.sum, chain.relu};
        for (size_t j = 0; j < sizeof parts / sizeof *parts; j++)
            if (parts[j])
                plan->nodes[parts[j]].chained = true;
    }
    for (uint32_t i = 0; model->quantised && i < model->graph->node_count; i++)
        if (model->graph->nodes[i].kind == GRAPH_ADD)
            settle_sum(plan, i);
}

bool cuda_int8_build(struct cuda_plan *plan, uint32_t node)
{
    const struct cuda_model *model = plan->model;

    if (!plan->nodes[node].chained)
        return false;
    if (!model->quantised[node].in_int8)
        return true; /* its convolution was built before */
    const struct chain chain = chain_of(model, node);
    struct cuda_node *end = &plan->nodes[chain.end];
    struct cuda_step step = cuda_step_of(run_convolution, node);
    step.in = plan->nodes[model->graph->nodes[node].inputs[0]].value8;
    step.other = chain.sum ? plan->nodes[chain.other].value8 : CUDA_NONE;
    step.relu = chain.relu != 0;
    step.shape = cuda_shape(plan, node, DNN_FORWARD);
    step.shape.int8 = true;
    step.shape.int8_output = model->quantised[chain.end].step > 0;
    step.shape.fusion = DNN_SCALED | DNN_BIASED | (step.relu ? DNN_RECTIFIED : 0u) |
                        (chain.sum ? DNN_ADDED | DNN_RESCALED : 0u);
    if (step.shape.int8_output)
        step.out = end->value8 = cuda_add_buffer(plan, numbers(plan, chain.end));
    else
        step.out = end->value = cuda_add_tensor(plan, chain.end);
    cuda_find_dnn(plan, &step);
    cuda_add_step(plan, &step);
    return true;
}

void cuda_int8_hold(struct cuda_plan *plan, uint32_t node)
{
    const struct cuda_model *model = plan->model;
    struct cuda_node *own = &plan->nodes[node];
    struct cuda_step step = cuda_step_of(run_quantise, node);

    if (!model->quantised || !(model->quantised[node].step > 0) || own->value == CUDA_NONE ||
        own->value8 != CUDA_NONE)
        return;
    step.in = own->value;
    step.out = own->value8 = cuda_add_buffer(plan, numbers(plan, node));
    cuda_add_step(plan, &step);
    own->value = CUDA_NONE; /* who wants it in floating point gets what INT8 holds */
}

uint32_t cuda_value(struct cuda_plan *plan, uint32_t node)
{
    struct cuda_node *own = &plan->nodes[node];
    struct cuda_step step = cuda_step_of(run_dequantise, node);

    if (own->value != CUDA_NONE || own->value8 == CUDA_NONE)
        return own->value;
    step.in = own->value8;
    step.out = own->value = cuda_add_tensor(plan, node);
    cuda_add_step(plan, &step);
    return own->value;
}
