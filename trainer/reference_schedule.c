/* SPDX-License-Identifier: Apache-2.0
 * The reference backend's steps: one kernel call per node and pass. */
#include "trainer/reference.h"

#include <stdio.h>

struct node_names {
    const char *operation, *kernel;
};

/* Backward kernels have "_backward" appended. */
static const struct node_names names[] = {
    [GRAPH_INPUT] = {"normalise", "kernel_normalise"},
    [GRAPH_CONVOLUTION] = {"convolution", "kernel_convolution"},
    [GRAPH_BATCH_NORM] = {"batch norm", "kernel_batch_norm"},
    [GRAPH_RELU] = {"relu", "kernel_relu"},
    [GRAPH_MAX_POOL] = {"max pool", "kernel_max_pool"},
    [GRAPH_AVERAGE_POOL] = {"average pool", "kernel_average_pool"},
    [GRAPH_ADD] = {"add", "kernel_add"},
    [GRAPH_CONCAT] = {"concat", "kernel_concat"},
    [GRAPH_FULLY_CONNECTED] = {"fully connected", "kernel_fully_connected"},
    [GRAPH_LRN] = {"lrn", "kernel_lrn"},
    [GRAPH_DROPOUT] = {"dropout", "kernel_dropout"},
};

/* All in FP32. */
static uint64_t tensor_bytes(const struct reference *reference, uint32_t number)
{
    return reference->config.batch_size * graph_node_floats(&reference->graph->nodes[number]) *
           sizeof(float);
}

static uint64_t input_bytes(const struct reference *reference, const struct graph_node *node)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < node->input_count; i++)
        bytes += tensor_bytes(reference, node->inputs[i]);
    return bytes;
}

static uint64_t parameter_bytes(const struct graph *graph, const struct graph_node *node)
{
    const uint32_t parameters[] = {node->weight, node->bias, node->gamma, node->beta};
    uint64_t floats = 0;

    for (int i = 0; i < 4; i++)
        if (parameters[i] != UINT32_MAX)
            floats += graph->parameters[parameters[i]].count;
    return floats * sizeof(float);
}

static uint64_t workspace_bytes(const struct reference *reference, uint32_t number)
{
    if (reference->graph->nodes[number].kind != GRAPH_CONVOLUTION)
        return 0;
    const struct kernel_window window =
        graph_kernel_window(reference->graph, number, reference->config.batch_size);
    return kernel_convolution_workspace(&window) * sizeof(float);
}

static double measured_ns(const struct reference *reference, uint32_t moment, uint32_t passes)
{
    return reference->took_ns ? (double)reference->took_ns[moment] / passes : 0;
}

static int list_forward(const struct reference *reference, uint32_t number, uint32_t passes,
                        struct schedule *schedule)
{
    const struct graph_node *node = &reference->graph->nodes[number];
    const uint64_t bytes = tensor_bytes(reference, number);
    struct schedule_step step = {.phase = SCHEDULE_FORWARD,
                                 .node = number,
                                 .operation = names[node->kind].operation,
                                 .read_bytes =
                                     number ? input_bytes(reference, node) : bytes / sizeof(float),
                                 .write_bytes = bytes,
                                 .workspace_bytes = workspace_bytes(reference, number),
                                 .flops = 2.0 * (double)graph_node_macs(reference->graph, number) *
                                          reference->config.batch_size,
                                 .measured_ns = measured_ns(reference, number, passes)};

    step.read_bytes += parameter_bytes(reference->graph, node);
    snprintf(step.engine, sizeof step.engine, "%s", names[node->kind].kernel);
    return schedule_add(schedule, &step);
}

/* Kernels add to existing gradients, so they read those too. */
static int list_backward(const struct reference *reference, uint32_t number, uint32_t passes,
                         struct schedule *schedule)
{
    const struct graph *graph = reference->graph;
    const struct graph_node *node = &graph->nodes[number];
    const bool input_alone = node->weight != UINT32_MAX && node->inputs[0] == 0;
    const uint64_t d_input = input_alone ? 0 : input_bytes(reference, node);
    const uint64_t d_parameters = parameter_bytes(graph, node);
    const uint64_t macs = graph_node_macs(graph, number) * (input_alone ? 1 : 2);
    const uint32_t moment = 2 * graph->node_count - number;
    struct schedule_step step = {.phase = SCHEDULE_BACKWARD,
                                 .node = number,
                                 .read_bytes =
                                     tensor_bytes(reference, number) + d_input + 2 * d_parameters,
                                 .write_bytes = d_input + d_parameters,
                                 .workspace_bytes = workspace_bytes(reference, number),
                                 .flops = 2.0 * (double)macs * reference->config.batch_size,
                                 .measured_ns = measured_ns(reference, moment, passes)};

    step.operation = input_alone                  ? "weight gradient"
                     : node->weight != UINT32_MAX ? "data and weight gradient"
                                                  : names[node->kind].operation;
    if (node->kind != GRAPH_ADD && node->kind != GRAPH_CONCAT && node->kind != GRAPH_AVERAGE_POOL)
        step.read_bytes += input_bytes(reference, node);
    snprintf(step.engine, sizeof step.engine, "%s_backward", names[node->kind].kernel);
    if (node->kind == GRAPH_ADD)
        snprintf(step.engine, sizeof step.engine, "kernel_accumulate");
    return schedule_add(schedule, &step);
}

static int list_loss(const struct reference *reference, uint32_t passes, struct schedule *schedule)
{
    const uint32_t last = reference->graph->node_count - 1;
    const uint64_t bytes = tensor_bytes(reference, last);
    struct schedule_step step = {.phase = SCHEDULE_LOSS,
                                 .node = last,
                                 .operation = "softmax, cross-entropy",
                                 .engine = "kernel_cross_entropy",
                                 .read_bytes = bytes,
                                 .write_bytes = reference->config.training ? bytes : 0,
                                 .measured_ns = measured_ns(reference, last + 1, passes)};

    return schedule_add(schedule, &step);
}

int reference_list(const struct reference *reference, uint32_t passes, struct schedule *schedule)
{
    const uint32_t nodes = reference->graph->node_count;
    int code = 0;

    for (uint32_t i = 0; i < nodes && code == 0; i++)
        code = list_forward(reference, i, passes, schedule);
    if (code == 0)
        code = list_loss(reference, passes, schedule);
    for (uint32_t i = nodes; reference->config.training && i-- > 1 && code == 0;)
        code = list_backward(reference, i, passes, schedule);
    return code;
}
