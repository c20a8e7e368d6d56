/* SPDX-License-Identifier: Apache-2.0
 *
 * The reference backend: the graph, node by node, on the kernels of kernels/kernels.h.
 *
 * Moments: node i is computed at moment i, its backward pass runs at moment 2 * nodes - i. In
 * training, an output is live until its node's backward pass, since the backward passes of the node
 * and of its consumers read it; its gradient is live from the backward pass of the last consumer.
 * Memory is planned by these lifetimes.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "kernels/kernels.h"
#include "trainer/plugins.h"
#include "trainer/quantise.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reference {
    const struct graph *graph;
    struct backend_config config;
    float *parameters, *gradients, *momenta, *statistics; /* one allocation, as the next one */
    float *batch_statistics;                              /* same layout as statistics */
    float *arena;                                         /* holds values and d_values */
    float **values;                                       /* output of each node */
    float **d_values;                /* its gradient; NULL for an image that only weights read */
    struct quantise_node *quantised; /* per node, for INT8; NULL: all in FP32 */
    float *rounded;                  /* the parameters, with weights rounded to INT8 */
    float *workspace;
    uint64_t arena_bytes, workspace_bytes;
    uint64_t *took_ns; /* per moment, the loss at `nodes`; NULL: not timed */
};

static size_t plane_of(const struct graph_node *node)
{
    return (size_t)node->shape.height * node->shape.width;
}

/* ---- memory ---- */

/* A convolution unfolds its input. */
static uint64_t workspace_bytes(const struct reference *reference, uint32_t number)
{
    const struct graph_node *node = &reference->graph->nodes[number];

    return node->kind == GRAPH_CONVOLUTION
               ? kernel_convolution_workspace(&node->window) * sizeof(float)
               : 0;
}

/* Bytes of a tensor of a batch, in FP32. */
static uint64_t tensor_bytes(const struct reference *reference, uint32_t number)
{
    return reference->config.batch_size * graph_node_floats(&reference->graph->nodes[number]) *
           sizeof(float);
}

static int reference_open(void *state, const void *settings, const struct backend_config *config)
{
    struct reference *reference = state;
    const struct graph *graph = config->graph;
    const uint64_t parameters = graph->parameter_floats, statistics = graph->statistic_floats;
    const uint64_t trained = config->training ? parameters : 0;
    const uint32_t nodes = graph->node_count;
    bool image_needs = false; /* a gradient: only if a node without weights reads the image */

    (void)settings;
    reference->graph = graph;
    reference->config = *config;
    for (uint32_t i = 0; i < nodes; i++) {
        uint64_t bytes = workspace_bytes(reference, i);
        for (uint32_t j = 0; j < graph->nodes[i].input_count; j++)
            image_needs |= graph->nodes[i].inputs[j] == 0 && graph->nodes[i].weight == UINT32_MAX;
        if (graph->nodes[i].kind == GRAPH_FULLY_CONNECTED)
            bytes = graph->parameters[graph->nodes[i].weight].count * sizeof(float);
        if (bytes > reference->workspace_bytes)
            reference->workspace_bytes = bytes;
    }
    reference->workspace = memory_array(reference->workspace_bytes, 1);
    reference->values = memory_array(2 * (size_t)nodes, sizeof(float *));
    reference->parameters = memory_array(parameters + 2 * trained + 2 * statistics, sizeof(float));
    if (!reference->workspace || !reference->values || !reference->parameters)
        return -ENOMEM;
    reference->d_values = reference->values + nodes;
    reference->gradients = reference->parameters + parameters;
    reference->momenta = reference->gradients + trained;
    reference->statistics = reference->momenta + trained;
    reference->batch_statistics = reference->statistics + statistics;
    graph_initialise_statistics(graph, reference->statistics);
    if (config->ranges) {
        reference->quantised = memory_array(nodes, sizeof *reference->quantised);
        reference->rounded = memory_array(parameters, sizeof(float));
        if (!reference->quantised || !reference->rounded)
            return -ENOMEM;
        quantise_plan(graph, config->ranges, reference->quantised);
    }
    /* Place outputs and their gradients: two lifetimes per node. */
    struct lifetime *lifetimes = memory_array(2 * (size_t)nodes, sizeof *lifetimes);
    if (!lifetimes)
        return -ENOMEM;
    for (uint32_t i = 0; i < nodes; i++) {
        const struct graph_node *node = &graph->nodes[i];
        assert(node->consumers || i + 1 == nodes); /* every output is used */
        const uint32_t last = node->consumers ? node->consumer : i, end = 2 * nodes - i;
        const uint64_t bytes = tensor_bytes(reference, i);
        lifetimes[2 * i] = (struct lifetime){i, config->training ? end : last, .bytes = bytes};
        lifetimes[2 * i + 1] = (struct lifetime){
            2 * nodes - last, end, .bytes = config->training && (i > 0 || image_needs) ? bytes : 0};
    }
    int code = lifetimes_plan(lifetimes, sizeof *lifetimes, 2 * nodes, &reference->arena_bytes);
    if (code == 0) {
        reference->arena = memory_array(reference->arena_bytes, 1);
        code = reference->arena ? 0 : -ENOMEM;
    }
    for (uint32_t i = 0; code == 0 && i < nodes; i++) {
        reference->values[i] = reference->arena + lifetimes[2 * i].offset / sizeof(float);
        if (lifetimes[2 * i + 1].bytes > 0)
            reference->d_values[i] = reference->arena + lifetimes[2 * i + 1].offset / sizeof(float);
    }
    free(lifetimes);
    return code;
}

static void reference_close(void *state)
{
    struct reference *reference = state;

    free(reference->parameters);
    free(reference->arena);
    free(reference->values);
    free(reference->quantised);
    free(reference->rounded);
    free(reference->workspace);
    free(reference->took_ns);
}

static void copy(float *to, const float *from, uint64_t count)
{
    if (to && from)
        memcpy(to, from, count * sizeof *to);
}

static int reference_load(void *state, const float *parameters, const float *momenta,
                          const float *statistics)
{
    struct reference *reference = state;
    const struct graph *graph = reference->graph;

    copy(reference->parameters, parameters, graph->parameter_floats);
    if (reference->config.training)
        copy(reference->momenta, momenta, graph->parameter_floats);
    copy(reference->statistics, statistics, graph->statistic_floats);
    if (!reference->rounded)
        return 0;
    /* A following BN scales whole channels, so rounding is the same with or without it. */
    copy(reference->rounded, reference->parameters, graph->parameter_floats);
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const uint32_t channels = graph->nodes[i].shape.channels;
        if (!reference->quantised[i].in_int8)
            continue;
        const struct graph_parameter *weight = &graph->parameters[graph->nodes[i].weight];
        quantise_round(channels, weight->count / channels, reference->rounded + weight->offset);
    }
    return 0;
}

static int reference_save(void *state, float *parameters, float *momenta, float *statistics,
                          float *gradients)
{
    struct reference *reference = state;
    const struct graph *graph = reference->graph;

    copy(parameters, reference->parameters, graph->parameter_floats);
    copy(statistics, reference->statistics, graph->statistic_floats);
    if (reference->config.training) {
        copy(momenta, reference->momenta, graph->parameter_floats);
        copy(gradients, reference->gradients, graph->parameter_floats);
    }
    return 0;
}

/* ---- steps ---- */

/* A node's parameter in one of the arenas; NULL if it has none. */
static float *part(const struct reference *reference, float *arena, uint32_t parameter)
{
    if (parameter == UINT32_MAX)
        return NULL;
    return arena + reference->graph->parameters[parameter].offset;
}

/* Add the time since *since_ns to a moment's, if steps are timed. */
static void lap(const struct reference *reference, uint32_t moment, uint64_t *since_ns)
{
    schedule_lap(reference->took_ns ? &reference->took_ns[moment] : NULL, since_ns);
}

/* Compute one node. While learning, BN uses and records batch statistics, and dropout is on. */
static void node_forward(struct reference *reference, const struct trainer_batch *batch,
                         uint32_t number)
{
    const struct graph *graph = reference->graph;
    const struct graph_node *node = &graph->nodes[number];
    const struct graph_node *before = &graph->nodes[node->inputs[0]];
    struct kernel_window window = node->window;
    struct kernel_lrn lrn = node->lrn;
    const size_t floats = graph_node_floats(node), count = batch->count * floats;
    const size_t plane = plane_of(node);
    const uint32_t channels = node->shape.channels;
    const float *input = reference->values[node->inputs[0]];
    const float *weight = part(
        reference, reference->rounded ? reference->rounded : reference->parameters, node->weight);
    const float *bias = part(reference, reference->parameters, node->bias);
    const float *gamma = part(reference, reference->parameters, node->gamma);
    const float *beta = part(reference, reference->parameters, node->beta);
    float *output = reference->values[number], *statistics, *running;
    size_t offset = 0;

    window.images = lrn.images = batch->count;
    switch (node->kind) {
    case GRAPH_INPUT:
        return;
    case GRAPH_CONVOLUTION:
        return kernel_convolution(&window, input, weight, bias, output, reference->workspace);
    case GRAPH_BATCH_NORM:
        running = reference->statistics + node->statistics;
        statistics = reference->batch_statistics + node->statistics;
        if (!batch->learns)
            return kernel_batch_norm_infer(batch->count, channels, plane, node->epsilon, input,
                                           gamma, beta, running, running + channels, output);
        kernel_batch_norm(batch->count, channels, plane, node->epsilon, input, gamma, beta, output,
                          statistics, statistics + channels);
        return kernel_batch_norm_statistics(channels, batch->count * plane, node->momentum,
                                            statistics, statistics + channels, running,
                                            running + channels);
    case GRAPH_RELU:
        return kernel_relu(count, input, output);
    case GRAPH_MAX_POOL:
        return kernel_max_pool(&window, input, output);
    case GRAPH_AVERAGE_POOL:
        return kernel_average_pool(&window, input, output);
    case GRAPH_ADD:
        return kernel_add(count, input, reference->values[node->inputs[1]], output);
    case GRAPH_CONCAT:
        for (uint32_t i = 0; i < node->input_count; i++) {
            const size_t own = graph_node_floats(&graph->nodes[node->inputs[i]]);
            kernel_concat(batch->count, own, offset, floats, reference->values[node->inputs[i]],
                          output);
            offset += own;
        }
        return;
    case GRAPH_FULLY_CONNECTED:
        return kernel_fully_connected(batch->count, graph_node_floats(before), floats, input,
                                      weight, bias, output, reference->workspace);
    case GRAPH_LRN:
        return kernel_lrn(&lrn, input, output);
    case GRAPH_DROPOUT:
        if (batch->learns)
            kernel_dropout(count, kernel_dropout_key(reference->config.seed, batch->step, number),
                           node->dropout_rate, input, output);
        else
            copy(output, input, count);
        return;
    }
}

/* INT8 rounds values to INT8 and sums in float: as integer arithmetic except for rare ties. */
static int forward(struct reference *reference, const struct trainer_batch *batch)
{
    const struct graph *graph = reference->graph;
    struct calibration *calibration = reference->config.calibration;
    uint64_t since_ns = clock_now_ns();

    kernel_normalise(batch->count, plane_of(&graph->nodes[0]), batch->rows, backend_mean,
                     backend_deviation, reference->values[0]);
    lap(reference, 0, &since_ns);
    for (uint32_t i = 1; i < graph->node_count; i++) {
        const size_t count = batch->count * graph_node_floats(&graph->nodes[i]);
        const float step = reference->quantised ? reference->quantised[i].step : 0;
        float *output = reference->values[i];
        int code = tick_ask(batch->tick);
        if (code)
            return code;
        node_forward(reference, batch, i);
        for (size_t k = 0; step > 0 && k < count; k++)
            output[k] = quantise_value(output[k], step);
        code = calibration ? calibration_observe(calibration, i, output, count) : 0;
        if (code)
            return code;
        lap(reference, i, &since_ns);
    }
    return 0;
}

/* Add a node's gradients to those of its inputs and parameters. */
static void node_backward(struct reference *reference, const struct trainer_batch *batch,
                          uint32_t number)
{
    const struct graph *graph = reference->graph;
    const struct graph_node *node = &graph->nodes[number];
    const struct graph_node *before = &graph->nodes[node->inputs[0]];
    struct kernel_window window = node->window;
    struct kernel_lrn lrn = node->lrn;
    const size_t floats = graph_node_floats(node), count = batch->count * floats;
    const float *input = reference->values[node->inputs[0]];
    const float *weight = part(reference, reference->parameters, node->weight);
    const float *d_output = reference->d_values[number], *statistics;
    float *d_input = reference->d_values[node->inputs[0]];
    float *d_weight = part(reference, reference->gradients, node->weight);
    float *d_bias = part(reference, reference->gradients, node->bias);
    size_t offset = 0;

    window.images = lrn.images = batch->count;
    switch (node->kind) {
    case GRAPH_INPUT:
        return;
    case GRAPH_CONVOLUTION:
        return kernel_convolution_backward(&window, input, weight, d_output, d_input, d_weight,
                                           d_bias, reference->workspace);
    case GRAPH_FULLY_CONNECTED:
        return kernel_fully_connected_backward(batch->count, graph_node_floats(before), floats,
                                               input, weight, d_output, d_input, d_weight, d_bias);
    case GRAPH_BATCH_NORM:
        statistics = reference->batch_statistics + node->statistics;
        return kernel_batch_norm_backward(
            batch->count, node->shape.channels, plane_of(node), node->epsilon, input,
            part(reference, reference->parameters, node->gamma), statistics,
            statistics + node->shape.channels, d_output, d_input,
            part(reference, reference->gradients, node->gamma),
            part(reference, reference->gradients, node->beta));
    case GRAPH_RELU:
        return kernel_relu_backward(count, reference->values[number], d_output, d_input);
    case GRAPH_MAX_POOL:
        return kernel_max_pool_backward(&window, input, d_output, d_input);
    case GRAPH_AVERAGE_POOL:
        return kernel_average_pool_backward(&window, d_output, d_input);
    case GRAPH_ADD:
        kernel_accumulate(count, d_output, d_input);
        return kernel_accumulate(count, d_output, reference->d_values[node->inputs[1]]);
    case GRAPH_CONCAT:
        for (uint32_t i = 0; i < node->input_count; i++) {
            const size_t own = graph_node_floats(&graph->nodes[node->inputs[i]]);
            kernel_concat_backward(batch->count, own, offset, floats, d_output,
                                   reference->d_values[node->inputs[i]]);
            offset += own;
        }
        return;
    case GRAPH_LRN:
        return kernel_lrn_backward(&lrn, input, d_output, d_input);
    case GRAPH_DROPOUT:
        return kernel_dropout_backward(
            count, kernel_dropout_key(reference->config.seed, batch->step, number),
            node->dropout_rate, d_output, d_input);
    }
}

/* Compute all parameter gradients from the gradient of the logits. */
static int backward(struct reference *reference, const struct trainer_batch *batch)
{
    const struct graph *graph = reference->graph;
    uint64_t since_ns = clock_now_ns();

    memset(reference->gradients, 0, graph->parameter_floats * sizeof(float));
    for (uint32_t i = graph->node_count; i-- > 1;) {
        const struct graph_node *node = &graph->nodes[i];
        int code = tick_ask(batch->tick);
        if (code)
            return code;
        for (uint32_t j = 0; j < node->input_count; j++) { /* zero what it is the first to add to */
            const struct graph_node *input = &graph->nodes[node->inputs[j]];
            float *d_input = reference->d_values[node->inputs[j]];
            if (input->consumer == i && d_input)
                memset(d_input, 0, batch->count * graph_node_floats(input) * sizeof *d_input);
        }
        node_backward(reference, batch, i);
        lap(reference, 2 * graph->node_count - i, &since_ns);
        const uint64_t done = graph_final_floats(graph, i);
        code = done ? batch->ready(batch->context, done) : 0;
        if (code)
            return code;
    }
    return 0;
}

static int reference_run(void *state, const struct trainer_batch *batch, struct backend_loss *loss)
{
    struct reference *reference = state;
    const struct graph *graph = reference->graph;
    const uint32_t last = graph->node_count - 1;
    const float *logits = reference->values[last];
    struct kernel_loss found = {0};

    if (!batch->rows)
        return 0; /* nothing is ever in flight */
    int code = forward(reference, batch);
    if (code)
        return code;
    copy(batch->logits, logits, (uint64_t)batch->count * graph->classes);
    uint64_t since_ns = clock_now_ns();
    if (batch->labels)
        found = kernel_cross_entropy(batch->count, graph->classes, logits, batch->labels,
                                     batch->label_smoothing,
                                     batch->learns ? reference->d_values[last] : NULL);
    lap(reference, last + 1, &since_ns);
    *loss = backend_loss_of(batch->count, &found);
    return batch->learns ? backward(reference, batch) : 0;
}

static void reference_memory(void *state, struct backend_memory *memory)
{
    const struct reference *reference = state;

    *memory = (struct backend_memory){.parameters = reference->parameters,
                                      .gradients = reference->gradients,
                                      .momenta = reference->momenta,
                                      .statistics = reference->statistics,
                                      .workspace_bytes = reference->workspace_bytes,
                                      .activation_bytes = reference->arena_bytes};
}

static int reference_update(void *state, const struct kernel_update *update)
{
    struct reference *reference = state;
    const uint64_t floats = reference->graph->parameter_floats;
    struct kernel_update wanted = *update;
    struct backend_memory arenas;

    reference_memory(reference, &arenas);
    if (update->clip_norm > 0)
        wanted = backend_clip(update, kernel_squares(floats, arenas.gradients));
    backend_update_host(reference->graph, &arenas, &wanted, 0, floats);
    return 0;
}

/* ---- the schedule: one kernel call per node and pass ---- */

/* Backward kernels have "_backward" appended. */
static const struct {
    const char *operation, *kernel;
} names[] = {
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

/* Backward kernels add to existing gradients, so they read those too. */
static int list_node(const struct reference *reference, uint32_t number, bool backward,
                     uint32_t passes, struct schedule *schedule)
{
    const struct graph *graph = reference->graph;
    const struct graph_node *node = &graph->nodes[number];
    const uint32_t own[] = {node->weight, node->bias, node->gamma, node->beta};
    const bool weighted = node->weight != UINT32_MAX, alone = weighted && node->inputs[0] == 0;
    const bool forgets =
        node->kind == GRAPH_ADD || node->kind == GRAPH_CONCAT || node->kind == GRAPH_AVERAGE_POOL;
    const uint32_t moment = backward ? 2 * graph->node_count - number : number;
    const uint32_t products = backward && !alone ? 2 : 1;
    const uint64_t output = tensor_bytes(reference, number);
    uint64_t input = 0, parameters = 0;
    struct schedule_step step = {
        .phase = backward ? SCHEDULE_BACKWARD : SCHEDULE_FORWARD,
        .node = number,
        .operation = names[node->kind].operation,
        .workspace_bytes = workspace_bytes(reference, number),
        .flops = 2.0 * (double)(graph_node_macs(graph, number) * products) *
                 reference->config.batch_size,
        .measured_ns = reference->took_ns ? (double)reference->took_ns[moment] / passes : 0};

    for (uint32_t i = 0; i < node->input_count; i++)
        input += tensor_bytes(reference, node->inputs[i]);
    for (int i = 0; i < 4; i++)
        if (own[i] != UINT32_MAX)
            parameters += graph->parameters[own[i]].count * sizeof(float);
    snprintf(step.engine, sizeof step.engine, "%s%s", names[node->kind].kernel,
             backward ? "_backward" : "");
    if (backward) {
        const uint64_t d_input = alone ? 0 : input;
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

static int start_timing(void *state)
{
    struct reference *reference = state;

    reference->took_ns = memory_array(2 * (size_t)reference->graph->node_count, sizeof(uint64_t));
    return reference->took_ns ? 0 : -ENOMEM;
}

/* Tensors are allocated only if steps are timed. */
static int reference_schedule(const void *settings, const struct schedule_request *request,
                              struct schedule *schedule)
{
    const struct backend_config config = {
        .graph = request->graph, .batch_size = request->batch_size, .training = request->training};
    const uint32_t nodes = config.graph->node_count, passes = request->passes;
    struct reference reference = {.graph = config.graph, .config = config};
    const uint64_t bytes = tensor_bytes(&reference, nodes - 1);
    struct schedule_step step = {.phase = SCHEDULE_LOSS,
                                 .node = nodes - 1,
                                 .operation = "softmax, cross-entropy",
                                 .engine = "kernel_cross_entropy",
                                 .read_bytes = bytes,
                                 .write_bytes = request->training ? bytes : 0};
    double update_ns = 0;
    int code = 0;

    if (passes) {
        code = reference_open(&reference, settings, &config);
        if (code == 0)
            code =
                backend_rehearse(&backend_reference, &reference, request, start_timing, &update_ns);
    }
    for (uint32_t i = 0; i < nodes && code == 0; i++)
        code = list_node(&reference, i, false, passes, schedule);
    if (code == 0 && reference.took_ns)
        step.measured_ns = (double)reference.took_ns[nodes] / passes;
    if (code == 0)
        code = schedule_add(schedule, &step);
    for (uint32_t i = nodes; request->training && i-- > 1 && code == 0;)
        code = list_node(&reference, i, true, passes, schedule);
    if (code == 0 && request->training)
        code = schedule_add_update(schedule, request->graph, "kernel_sgd", update_ns);
    reference_close(&reference);
    return code;
}

const struct backend_ops backend_reference = {
    .plugin = {.name = "reference",
               .summary = "plain C on one core: slow; the others are tested against it",
               .state_size = sizeof(struct reference)},
    .open = reference_open,
    .close = reference_close,
    .load = reference_load,
    .save = reference_save,
    .run = reference_run,
    .update = reference_update,
    .memory = reference_memory,
    .schedule = reference_schedule,
};
