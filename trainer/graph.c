/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/graph.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/random.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double bn_epsilon = 1e-5, bn_momentum = 0.1;

void graph_destroy(struct graph *graph)
{
    if (!graph)
        return;
    free(graph->nodes);
    free(graph->parameters);
    free(graph);
}

/* Keep the first error; building continues, so that a network reads as a list. */
__attribute__((format(printf, 3, 4))) static void refuse(struct graph *graph, int code,
                                                         const char *format, ...)
{
    va_list arguments;

    if (graph->code)
        return;
    graph->code = code;
    va_start(arguments, format);
    vsnprintf(graph->reason, sizeof graph->reason, format, arguments);
    va_end(arguments);
}

/* ---- nodes ---- */

static uint32_t add_node(struct graph *graph, enum graph_kind kind, const char *name,
                         const uint32_t *inputs, uint32_t input_count, struct graph_shape shape)
{
    if (memory_room(&graph->nodes, graph->node_count, sizeof *graph->nodes, "nodes")) {
        refuse(graph, ENOMEM, "%s", fail_reason());
        return 0;
    }
    uint32_t number = graph->node_count++;
    struct graph_node *node = &graph->nodes[number];
    *node = (struct graph_node){.kind = kind,
                                .input_count = input_count,
                                .shape = shape,
                                .window.groups = 1,
                                .weight = UINT32_MAX,
                                .bias = UINT32_MAX,
                                .gamma = UINT32_MAX,
                                .beta = UINT32_MAX};
    for (uint32_t i = 0; i < input_count; i++)
        node->inputs[i] = inputs[i];
    if (name)
        snprintf(node->name, sizeof node->name, "%s", name);
    else
        snprintf(node->name, sizeof node->name, "node%u", number);
    return number;
}

struct graph *graph_create(struct graph_shape input, uint32_t classes)
{
    struct graph *graph = memory_zeroed(sizeof *graph);

    if (!graph)
        return NULL;
    graph->classes = classes;
    /* Element 0 exists from the start: it is returned in place of a rejected node. */
    if (memory_room(&graph->nodes, 0, sizeof *graph->nodes, "nodes") ||
        memory_room(&graph->parameters, 0, sizeof *graph->parameters, "parameters")) {
        graph_destroy(graph);
        return NULL;
    }
    add_node(graph, GRAPH_INPUT, "input", NULL, 0, input);
    return graph;
}

/* Add a node with another node's shape. */
static uint32_t add_like(struct graph *graph, enum graph_kind kind, const char *name,
                         uint32_t input)
{
    return add_node(graph, kind, name, &input, 1, graph->nodes[input].shape);
}

static uint32_t add_parameter(struct graph *graph, uint32_t node, enum graph_parameter_kind kind,
                              uint64_t count)
{
    static const char *const names[] = {[GRAPH_WEIGHT] = "weight",
                                        [GRAPH_BIAS] = "bias",
                                        [GRAPH_GAMMA] = "gamma",
                                        [GRAPH_BETA] = "beta"};

    if (memory_room(&graph->parameters, graph->parameter_count, sizeof *graph->parameters,
                    "parameters")) {
        refuse(graph, ENOMEM, "%s", fail_reason());
        return 0;
    }
    uint32_t number = graph->parameter_count++;
    struct graph_parameter *parameter = &graph->parameters[number];
    *parameter = (struct graph_parameter){
        .kind = kind, .node = node, .count = count, .decay = KERNEL_DECAY_NONE};
    if (kind == GRAPH_WEIGHT)
        parameter->decay = KERNEL_DECAY_WEIGHT;
    if (kind == GRAPH_BIAS && graph->nodes[node].kind == GRAPH_FULLY_CONNECTED)
        parameter->decay = KERNEL_DECAY_FC_BIAS;
    snprintf(parameter->name, sizeof parameter->name, "%s.%s", graph->nodes[node].name,
             names[kind]);
    return number;
}

/* Weights and bias of a node; it starts as in He et al. 2015. */
static void add_weight(struct graph *graph, uint32_t number, uint64_t fan_in, bool bias)
{
    const uint32_t channels = graph->nodes[number].shape.channels;
    const uint32_t weight = add_parameter(graph, number, GRAPH_WEIGHT, fan_in * channels);

    graph->parameters[weight].deviation = sqrt(2.0 / (double)fan_in);
    graph->nodes[number].weight = weight;
    if (bias)
        graph->nodes[number].bias = add_parameter(graph, number, GRAPH_BIAS, channels);
}

/* Output size of a window along one side, or 0 if it does not fit. */
static uint32_t windowed(uint32_t side, uint32_t window, uint32_t stride, uint32_t pads)
{
    if (stride == 0 || window == 0 || side + pads < window)
        return 0;
    return (side + pads - window) / stride + 1;
}

/* Complete a window over an input; return the shape of its output. */
static struct graph_shape place_window(struct graph *graph, uint32_t input, uint32_t channels,
                                       uint32_t groups, struct kernel_window *window)
{
    const struct graph_node *from = &graph->nodes[input];

    window->groups = groups;
    window->in_channels = from->shape.channels;
    window->in_height = from->shape.height;
    window->in_width = from->shape.width;
    window->out_channels = channels;
    window->out_height = windowed(window->in_height, window->height, window->stride,
                                  window->pad_top + window->pad_bottom);
    window->out_width = windowed(window->in_width, window->width, window->stride,
                                 window->pad_left + window->pad_right);
    if (window->out_height == 0 || window->out_width == 0)
        refuse(graph, EINVAL, "a %u x %u window does not fit the %u x %u output of %s",
               window->height, window->width, from->shape.height, from->shape.width, from->name);
    return (struct graph_shape){channels, window->out_height, window->out_width};
}

uint32_t graph_convolution(struct graph *graph, const char *name, uint32_t input, uint32_t channels,
                           struct kernel_window window, uint32_t groups, bool bias)
{
    uint32_t in = graph->nodes[input].shape.channels;
    struct graph_shape shape = place_window(graph, input, channels, groups, &window);

    if (groups == 0 || in % groups || channels % groups) {
        refuse(graph, EINVAL, "%s: %u groups do not divide %u and %u channels", name, groups, in,
               channels);
        return 0;
    }
    uint32_t number = add_node(graph, GRAPH_CONVOLUTION, name, &input, 1, shape);
    graph->nodes[number].window = window;
    add_weight(graph, number, (uint64_t)in / groups * window.height * window.width, bias);
    return number;
}

uint32_t graph_batch_norm(struct graph *graph, const char *name, uint32_t input, bool ends_block)
{
    uint32_t number = add_like(graph, GRAPH_BATCH_NORM, name, input);
    uint32_t channels = graph->nodes[number].shape.channels;

    graph->nodes[number].epsilon = bn_epsilon;
    graph->nodes[number].momentum = bn_momentum;
    graph->nodes[number].gamma = add_parameter(graph, number, GRAPH_GAMMA, channels);
    graph->parameters[graph->nodes[number].gamma].start = 1;
    graph->parameters[graph->nodes[number].gamma].ends_block = ends_block;
    graph->nodes[number].beta = add_parameter(graph, number, GRAPH_BETA, channels);
    graph->nodes[number].statistics = graph->statistic_floats;
    graph->statistic_floats += 2 * (uint64_t)channels;
    return number;
}

uint32_t graph_relu(struct graph *graph, uint32_t input)
{
    return add_like(graph, GRAPH_RELU, NULL, input);
}

static uint32_t add_pool(struct graph *graph, enum graph_kind kind, uint32_t input,
                         struct kernel_window window)
{
    struct graph_shape shape =
        place_window(graph, input, graph->nodes[input].shape.channels, 1, &window);
    uint32_t number = add_node(graph, kind, NULL, &input, 1, shape);

    graph->nodes[number].window = window;
    return number;
}

uint32_t graph_max_pool(struct graph *graph, uint32_t input, struct kernel_window window)
{
    return add_pool(graph, GRAPH_MAX_POOL, input, window);
}

uint32_t graph_average_pool(struct graph *graph, uint32_t input, struct kernel_window window)
{
    return add_pool(graph, GRAPH_AVERAGE_POOL, input, window);
}

uint32_t graph_global_pool(struct graph *graph, uint32_t input)
{
    const struct graph_shape *shape = &graph->nodes[input].shape;

    return add_pool(
        graph, GRAPH_AVERAGE_POOL, input,
        (struct kernel_window){.height = shape->height, .width = shape->width, .stride = 1});
}

uint32_t graph_add(struct graph *graph, uint32_t a, uint32_t b)
{
    const struct graph_shape *x = &graph->nodes[a].shape, *y = &graph->nodes[b].shape;

    if (x->channels != y->channels || x->height != y->height || x->width != y->width)
        refuse(graph, EINVAL, "cannot add %s and %s: their shapes differ", graph->nodes[a].name,
               graph->nodes[b].name);
    return add_node(graph, GRAPH_ADD, NULL, (uint32_t[]){a, b}, 2, *x);
}

uint32_t graph_concat(struct graph *graph, const uint32_t *inputs, uint32_t count)
{
    if (count == 0 || count > GRAPH_INPUTS_MAX) {
        refuse(graph, EINVAL, "cannot join %u tensors", count);
        return 0;
    }
    struct graph_shape shape = graph->nodes[inputs[0]].shape;
    for (uint32_t i = 1; i < count; i++) {
        const struct graph_shape *other = &graph->nodes[inputs[i]].shape;
        if (other->height != shape.height || other->width != shape.width)
            refuse(graph, EINVAL, "cannot join %s and %s: their sizes differ",
                   graph->nodes[inputs[0]].name, graph->nodes[inputs[i]].name);
        shape.channels += other->channels;
    }
    return add_node(graph, GRAPH_CONCAT, NULL, inputs, count, shape);
}

uint32_t graph_fully_connected(struct graph *graph, const char *name, uint32_t input,
                               uint32_t channels)
{
    const struct graph_shape from = graph->nodes[input].shape;
    uint64_t in = (uint64_t)from.channels * from.height * from.width;
    uint32_t number = add_node(graph, GRAPH_FULLY_CONNECTED, name, &input, 1,
                               (struct graph_shape){channels, 1, 1});

    graph->nodes[number].window = (struct kernel_window){.in_channels = (uint32_t)in,
                                                         .in_height = 1,
                                                         .in_width = 1,
                                                         .out_channels = channels,
                                                         .out_height = 1,
                                                         .out_width = 1,
                                                         .height = 1,
                                                         .width = 1,
                                                         .stride = 1,
                                                         .groups = 1};
    add_weight(graph, number, in, true);
    if (channels == graph->classes) /* the classifier starts small */
        graph->parameters[graph->nodes[number].weight].deviation = 0.01;
    return number;
}

uint32_t graph_lrn(struct graph *graph, uint32_t input, uint32_t size, double alpha, double beta,
                   double k)
{
    uint32_t number = add_like(graph, GRAPH_LRN, NULL, input);
    const struct graph_shape *shape = &graph->nodes[number].shape;

    graph->nodes[number].lrn = (struct kernel_lrn){.channels = shape->channels,
                                                   .plane = (size_t)shape->height * shape->width,
                                                   .size = size,
                                                   .alpha = alpha,
                                                   .beta = beta,
                                                   .k = k};
    return number;
}

uint32_t graph_dropout(struct graph *graph, uint32_t input, double rate)
{
    uint32_t number = add_like(graph, GRAPH_DROPOUT, NULL, input);

    graph->nodes[number].dropout_rate = rate;
    return number;
}

/* ---- the whole graph ---- */

int graph_seal(struct graph *graph)
{
    if (graph->code)
        return fail(graph->code, "%s", graph->reason);
    const struct graph_shape *last = &graph->nodes[graph->node_count - 1].shape;
    if (last->channels != graph->classes || last->height != 1 || last->width != 1)
        return fail(EINVAL, "the network ends with %u x %u x %u numbers, not %u logits",
                    last->channels, last->height, last->width, graph->classes);
    graph->parameter_floats = 0;
    for (uint32_t i = graph->parameter_count; i-- > 0;) {
        graph->parameters[i].offset = graph->parameter_floats;
        graph->parameter_floats += graph->parameters[i].count;
    }
    for (uint32_t i = 0; i < graph->node_count; i++) {
        struct graph_node *node = &graph->nodes[i];
        node->needs_gradient = node->weight != UINT32_MAX || node->gamma != UINT32_MAX;
        for (uint32_t j = 0; j < node->input_count; j++) {
            struct graph_node *input = &graph->nodes[node->inputs[j]];
            node->needs_gradient |= input->needs_gradient;
            input->consumers++;
            input->consumer = i;
        }
    }
    return 0;
}

uint32_t graph_only_consumer(const struct graph *graph, uint32_t number, enum graph_kind kind)
{
    const struct graph_node *node = &graph->nodes[number];

    return node->consumers == 1 && graph->nodes[node->consumer].kind == kind ? node->consumer : 0;
}

/* A node's parameters have ascending numbers and so descending offsets: once its first one is
 * final, so are those of this node and of all later nodes. */
uint64_t graph_final_floats(const struct graph *graph, uint32_t number)
{
    const struct graph_node *node = &graph->nodes[number];
    const uint32_t first = node->weight != UINT32_MAX ? node->weight : node->gamma;

    if (first == UINT32_MAX)
        return 0;
    return graph->parameters[first].offset + graph->parameters[first].count;
}

uint64_t graph_node_floats(const struct graph_node *node)
{
    return (uint64_t)node->shape.channels * node->shape.height * node->shape.width;
}

/* Each weight is used once per output pixel; a fully connected layer has one pixel. */
uint64_t graph_node_macs(const struct graph *graph, uint32_t number)
{
    const struct graph_node *node = &graph->nodes[number];

    if (node->kind != GRAPH_CONVOLUTION && node->kind != GRAPH_FULLY_CONNECTED)
        return 0;
    return graph->parameters[node->weight].count * node->shape.height * node->shape.width;
}

struct graph_cost graph_cost(const struct graph *graph)
{
    /* The gradients of these are computed from their input. That of a ReLU follows from its output,
     * and dropout's mask can be drawn again. */
    static const bool keeps_input[GRAPH_DROPOUT + 1] = {[GRAPH_CONVOLUTION] = true,
                                                        [GRAPH_FULLY_CONNECTED] = true,
                                                        [GRAPH_BATCH_NORM] = true,
                                                        [GRAPH_LRN] = true};
    struct graph_cost cost = {.parameters = graph->parameter_floats};

    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct graph_node *node = &graph->nodes[i];
        const uint64_t macs = graph_node_macs(graph, i);
        const uint64_t bytes = graph_node_floats(node) * sizeof(float);
        bool kept = false;
        for (uint32_t reader = i + 1; reader < graph->node_count && !kept; reader++)
            for (uint32_t k = 0; k < graph->nodes[reader].input_count; k++)
                kept |=
                    graph->nodes[reader].inputs[k] == i && keeps_input[graph->nodes[reader].kind];
        cost.kept_bytes += kept ? bytes : 0;
        cost.activation_bytes += bytes;
        cost.forward_macs += macs;
        cost.training_macs += macs * (node->inputs[0] == 0 ? 2 : 3);
    }
    return cost;
}

void graph_initialise_part(const struct graph *graph, uint64_t seed, uint64_t part, uint64_t parts,
                           float *parameters)
{
    for (uint32_t i = 0; i < graph->parameter_count; i++) {
        const struct graph_parameter *parameter = &graph->parameters[i];
        const uint64_t pairs = (parameter->count + 1) / 2, end = pairs * (part + 1) / parts * 2,
                       first = pairs * part / parts * 2,
                       last = end < parameter->count ? end : parameter->count;
        float *values = parameters + parameter->offset + first;
        if (parameter->deviation > 0)
            random_normals(random_hash(seed, i, parameter->count), first, last - first,
                           parameter->deviation, values);
        for (uint64_t j = 0; parameter->deviation <= 0 && j < last - first; j++)
            values[j] = (float)parameter->start;
    }
}

void graph_initialise(const struct graph *graph, uint64_t seed, float *parameters)
{
    graph_initialise_part(graph, seed, 0, 1, parameters);
}

uint32_t graph_start_as_identities(struct graph *graph)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < graph->parameter_count; i++)
        if (graph->parameters[i].ends_block) {
            graph->parameters[i].start = 0;
            count++;
        }
    return count;
}

void graph_initialise_statistics(const struct graph *graph, float *statistics)
{
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct graph_node *node = &graph->nodes[i];
        if (node->kind != GRAPH_BATCH_NORM)
            continue;
        for (uint32_t j = 0; j < node->shape.channels; j++) {
            statistics[node->statistics + j] = 0;
            statistics[node->statistics + node->shape.channels + j] = 1;
        }
    }
}

void graph_fold_norm(const struct graph *graph, uint32_t convolution, uint32_t norm,
                     const float *parameters, const float *statistics, const float *weight,
                     float *folded, float *shift)
{
    const struct graph_node *node = &graph->nodes[convolution], *behind = &graph->nodes[norm];
    const uint32_t channels = node->shape.channels;
    const uint64_t count = graph->parameters[node->weight].count / channels;
    const float *bias =
        node->bias == UINT32_MAX ? NULL : parameters + graph->parameters[node->bias].offset;
    const float *running = statistics + behind->statistics; /* means, then variances */

    for (uint32_t i = 0; i < channels; i++) {
        double scale = 1, start = bias ? bias[i] : 0;
        if (norm) {
            scale = parameters[graph->parameters[behind->gamma].offset + i] /
                    sqrt((double)running[channels + i] + behind->epsilon);
            start = parameters[graph->parameters[behind->beta].offset + i] +
                    (start - running[i]) * scale;
        }
        shift[i] = (float)start;
        for (uint64_t j = i * count; j < (i + 1) * count; j++)
            folded[j] = (float)(weight[j] * scale);
    }
}
