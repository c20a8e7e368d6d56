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

/* Backward kernels add to existing gradients, so they read those too. */
static int list_node(const struct reference *reference, uint32_t number, bool backward,
                     uint32_t passes, struct schedule *schedule)
{
    const struct graph *graph = reference->graph;
    const struct graph_node *node = &graph->nodes[number];
    const bool weighted = node->weight != UINT32_MAX, alone = weighted && node->inputs[0] == 0;
    const bool forgets =
        node->kind == GRAPH_ADD || node->kind == GRAPH_CONCAT || node->kind == GRAPH_AVERAGE_POOL;
    const uint64_t output = tensor_bytes(reference, number), input = input_bytes(reference, node);
    const uint64_t d_input = alone ? 0 : input, parameters = parameter_bytes(graph, node);
    const uint32_t moment = backward ? 2 * graph->node_count - number : number;
    const uint32_t products = backward && !alone ? 2 : 1;
    struct schedule_step step = {.phase = backward ? SCHEDULE_BACKWARD : SCHEDULE_FORWARD,
                                 .node = number,
                                 .operation = names[node->kind].operation,
                                 .workspace_bytes = workspace_bytes(reference, number),
                                 .flops = 2.0 *
                                          (double)(graph_node_macs(graph, number) * products) *
                                          reference->config.batch_size,
                                 .measured_ns = measured_ns(reference, moment, passes)};

    snprintf(step.engine, sizeof step.engine, "%s%s", names[node->kind].kernel,
             backward ? "_backward" : "");
    if (backward) {
        step.read_bytes = output + d_input + 2 * parameters + (forgets ? 0 : input);
        step.write_bytes = d_input + parameters;
        if (weighted)
            step.operation = alone ? "weight gradient" : "data and weight gradient";
        if (node->kind == GRAPH_ADD)
            snprintf(step.engine, sizeof step.engine, "kernel_accumulate");
    } else {
        step.read_bytes = (number ? input : output / sizeof(float)) + parameters;
        step.write_bytes = output;
    }
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
        code = list_node(reference, i, false, passes, schedule);
    if (code == 0)
        code = list_loss(reference, passes, schedule);
    for (uint32_t i = nodes; reference->config.training && i-- > 1 && code == 0;)
        code = list_node(reference, i, true, passes, schedule);
    return code;
}
