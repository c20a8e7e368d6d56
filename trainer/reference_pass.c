/* SPDX-License-Identifier: Apache-2.0
 * The reference backend's forward and backward passes: the graph, node by node, on the kernels. */
#include "trainer/reference.h"

#include "base/clock.h"

#include <string.h>

static const struct graph_node *input_of(const struct reference *reference,
                                         const struct graph_node *node)
{
    return &reference->graph->nodes[node->inputs[0]];
}

/* A node's parameter in one of the arenas; NULL if it has none. */
static float *part(const struct reference *reference, float *arena, uint32_t parameter)
{
    if (parameter == UINT32_MAX)
        return NULL;
    return arena + reference->graph->parameters[parameter].offset;
}

/* ---- forward ---- */

/* Shared by both passes. */
struct pass {
    struct reference *reference;
    uint32_t images;
    bool training;
    uint64_t step;
};

static void concat_forward(const struct pass *pass, const struct graph_node *node, float *output)
{
    const struct reference *reference = pass->reference;
    size_t offset = 0;

    for (uint32_t i = 0; i < node->input_count; i++) {
        size_t floats = graph_node_floats(&reference->graph->nodes[node->inputs[i]]);
        kernel_concat(pass->images, floats, offset, graph_node_floats(node),
                      reference->values[node->inputs[i]], output);
        offset += floats;
    }
}

static void batch_norm_forward(const struct pass *pass, uint32_t number)
{
    struct reference *reference = pass->reference;
    const struct graph_node *node = &reference->graph->nodes[number];
    const uint32_t channels = node->shape.channels;
    const size_t plane = reference_plane(node);
    const float *input = reference->values[node->inputs[0]];
    const float *gamma = part(reference, reference->parameters, node->gamma);
    const float *beta = part(reference, reference->parameters, node->beta);
    float *output = reference->values[number];
    float *running = reference->statistics + node->statistics;
    float *batch = reference->batch_statistics + node->statistics;

    if (!pass->training) {
        kernel_batch_norm_infer(pass->images, channels, plane, node->epsilon, input, gamma, beta,
                                running, running + channels, output);
        return;
    }
    kernel_batch_norm(pass->images, channels, plane, node->epsilon, input, gamma, beta, output,
                      batch, batch + channels);
    kernel_batch_norm_statistics(channels, pass->images * plane, node->momentum, batch,
                                 batch + channels, running, running + channels);
}

static uint64_t pass_key(const struct pass *pass, uint32_t number)
{
    return kernel_dropout_key(pass->reference->config.seed, pass->step, number);
}

static void dropout_forward(const struct pass *pass, uint32_t number)
{
    struct reference *reference = pass->reference;
    const struct graph_node *node = &reference->graph->nodes[number];
    const float *input = reference->values[node->inputs[0]];
    const size_t count = pass->images * graph_node_floats(node);

    if (pass->training)
        kernel_dropout(count, pass_key(pass, number), node->dropout_rate, input,
                       reference->values[number]);
    else
        memcpy(reference->values[number], input, count * sizeof *input);
}

static void node_forward(const struct pass *pass, uint32_t number)
{
    struct reference *reference = pass->reference;
    const struct graph_node *node = &reference->graph->nodes[number];
    const struct kernel_window window = graph_kernel_window(reference->graph, number, pass->images);
    const struct kernel_lrn lrn = graph_kernel_lrn(node, pass->images);
    const size_t count = pass->images * graph_node_floats(node);
    const float *input = reference->values[node->inputs[0]];
    float *parameters = reference->rounded ? reference->rounded : reference->parameters;
    float *output = reference->values[number];

    switch (node->kind) {
    case GRAPH_INPUT:
        return;
    case GRAPH_CONVOLUTION:
        return kernel_convolution(&window, input, part(reference, parameters, node->weight),
                                  part(reference, reference->parameters, node->bias), output,
                                  reference->workspace);
    case GRAPH_BATCH_NORM:
        return batch_norm_forward(pass, number);
    case GRAPH_RELU:
        return kernel_relu(count, input, output);
    case GRAPH_MAX_POOL:
        return kernel_max_pool(&window, input, output);
    case GRAPH_AVERAGE_POOL:
        return kernel_average_pool(&window, input, output);
    case GRAPH_ADD:
        return kernel_add(count, input, reference->values[node->inputs[1]], output);
    case GRAPH_CONCAT:
        return concat_forward(pass, node, output);
    case GRAPH_FULLY_CONNECTED:
        return kernel_fully_connected(
            pass->images, graph_node_floats(input_of(reference, node)), graph_node_floats(node),
            input, part(reference, reference->parameters, node->weight),
            part(reference, reference->parameters, node->bias), output, reference->workspace);
    case GRAPH_LRN:
        return kernel_lrn(&lrn, input, output);
    case GRAPH_DROPOUT:
        return dropout_forward(pass, number);
    }
}

/* Round an INT8 output and pass it to calibration. */
static int pass_on(const struct pass *pass, uint32_t number)
{
    const struct reference *reference = pass->reference;
    const struct backend_config *config = &reference->config;
    const size_t count = pass->images * graph_node_floats(&reference->graph->nodes[number]);
    const float step = reference->quantised ? reference->quantised[number].step : 0;
    float *output = reference->values[number];

    for (size_t i = 0; step > 0 && i < count; i++)
        output[i] = quantise_value(output[i], step);
    return config->calibration ? calibration_observe(config->calibration, number, output, count)
                               : 0;
}

int reference_forward(struct reference *reference, const struct backend_batch *batch, bool training,
                      const float **logits)
{
    const struct graph *graph = reference->graph;
    const struct pass pass = {reference, batch->count, training, batch->step};
    uint64_t since_ns = clock_now_ns();
    int code = 0;

    kernel_normalise(batch->count, reference_plane(&graph->nodes[0]), batch->rows, backend_mean,
                     backend_deviation, reference->values[0]);
    schedule_lap(reference_timer(reference, 0), &since_ns);
    for (uint32_t i = 1; i < graph->node_count && code == 0; i++) {
        code = tick_ask(batch->tick);
        if (code)
            return code;
        node_forward(&pass, i);
        code = pass_on(&pass, i);
        schedule_lap(reference_timer(reference, i), &since_ns);
    }
    *logits = reference->values[graph->node_count - 1];
    return code;
}

/* ---- backward ---- */

static void concat_backward(const struct pass *pass, const struct graph_node *node,
                            const float *d_output)
{
    const struct reference *reference = pass->reference;
    size_t offset = 0;

    for (uint32_t i = 0; i < node->input_count; i++) {
        size_t floats = graph_node_floats(&reference->graph->nodes[node->inputs[i]]);
        kernel_concat_backward(pass->images, floats, offset, graph_node_floats(node), d_output,
                               reference->d_values[node->inputs[i]]);
        offset += floats;
    }
}

/* Convolutions and fully connected layers. */
static void weights_backward(const struct pass *pass, uint32_t number)
{
    struct reference *reference = pass->reference;
    const struct graph_node *node = &reference->graph->nodes[number];
    const struct kernel_window window = graph_kernel_window(reference->graph, number, pass->images);
    const float *input = reference->values[node->inputs[0]];
    const float *weight = part(reference, reference->parameters, node->weight);
    const float *d_output = reference->d_values[number];
    float *d_input = reference->d_values[node->inputs[0]];
    float *d_weight = part(reference, reference->gradients, node->weight);
    float *d_bias = part(reference, reference->gradients, node->bias);

    if (node->kind == GRAPH_CONVOLUTION)
        kernel_convolution_backward(&window, input, weight, d_output, d_input, d_weight, d_bias,
                                    reference->workspace);
    else
        kernel_fully_connected_backward(pass->images, graph_node_floats(input_of(reference, node)),
                                        graph_node_floats(node), input, weight, d_output, d_input,
                                        d_weight, d_bias);
}

static void batch_norm_backward(const struct pass *pass, uint32_t number)
{
    struct reference *reference = pass->reference;
    const struct graph_node *node = &reference->graph->nodes[number];
    const float *batch = reference->batch_statistics + node->statistics;

    kernel_batch_norm_backward(
        pass->images, node->shape.channels, reference_plane(node), node->epsilon,
        reference->values[node->inputs[0]], part(reference, reference->parameters, node->gamma),
        batch, batch + node->shape.channels, reference->d_values[number],
        reference->d_values[node->inputs[0]], part(reference, reference->gradients, node->gamma),
        part(reference, reference->gradients, node->beta));
}

static void node_backward(const struct pass *pass, uint32_t number)
{
    struct reference *reference = pass->reference;
    const struct graph_node *node = &reference->graph->nodes[number];
    const struct kernel_window window = graph_kernel_window(reference->graph, number, pass->images);
    const struct kernel_lrn lrn = graph_kernel_lrn(node, pass->images);
    const size_t count = pass->images * graph_node_floats(node);
    const float *input = reference->values[node->inputs[0]];
    const float *d_output = reference->d_values[number];
    float *d_input = reference->d_values[node->inputs[0]];

    switch (node->kind) {
    case GRAPH_INPUT:
        return;
    case GRAPH_CONVOLUTION:
    case GRAPH_FULLY_CONNECTED:
        return weights_backward(pass, number);
    case GRAPH_BATCH_NORM:
        return batch_norm_backward(pass, number);
    case GRAPH_RELU:
        return kernel_relu_backward(count, reference->values[number], d_output, d_input);
    case GRAPH_MAX_POOL:
        return kernel_max_pool_backward(&window, input, d_output, d_input);
    case GRAPH_AVERAGE_POOL:
        return kernel_average_pool_backward(&window, d_output, d_input);
    case GRAPH_ADD:
        kernel_accumulate(count, d_output, d_input);
        kernel_accumulate(count, d_output, reference->d_values[node->inputs[1]]);
        return;
    case GRAPH_CONCAT:
        return concat_backward(pass, node, d_output);
    case GRAPH_LRN:
        return kernel_lrn_backward(&lrn, input, d_output, d_input);
    case GRAPH_DROPOUT:
        return kernel_dropout_backward(count, pass_key(pass, number), node->dropout_rate, d_output,
                                       d_input);
    }
}

/* Zero the gradients that this consumer is the first to add to. */
static void zero_gradients(const struct pass *pass, uint32_t consumer)
{
    struct reference *reference = pass->reference;
    const struct graph_node *node = &reference->graph->nodes[consumer];

    for (uint32_t i = 0; i < node->input_count; i++) {
        const uint32_t input = node->inputs[i];
        const struct graph_node *row = &reference->graph->nodes[input];
        if (row->consumer == consumer && reference->d_values[input])
            memset(reference->d_values[input], 0,
                   pass->images * graph_node_floats(row) * sizeof(float));
    }
}

int reference_backward(struct reference *reference, const struct backend_batch *batch,
                       backend_gradients_ready ready, void *context)
{
    const struct graph *graph = reference->graph;
    const struct pass pass = {reference, batch->count, true, batch->step};
    uint64_t since_ns = clock_now_ns();

    for (uint32_t i = graph->node_count; i-- > 1;) {
        int code = tick_ask(batch->tick);
        if (code)
            return code;
        zero_gradients(&pass, i);
        node_backward(&pass, i);
        schedule_lap(reference_timer(reference, 2 * graph->node_count - i), &since_ns);
        uint64_t done = graph_final_floats(graph, i);
        code = done ? ready(context, done) : 0;
        if (code)
            return code;
    }
    return 0;
}
