/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/cuda/model.h"

#include "base/fail.h"
#include "base/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 256, COPY_FLOATS = 4 };

/* ---- sizes ---- */

/* Channels are the last dimension of a weight here and the second one in the canonical layout. */
static void weight_shape(const struct cuda_model *model, const struct graph_parameter *parameter,
                         uint64_t *outputs, uint64_t *channels, uint64_t *plane)
{
    const struct graph_node *node = &model->graph->nodes[parameter->node];
    const struct graph_shape *in = &model->graph->nodes[node->inputs[0]].shape;

    *outputs = node->shape.channels;
    if (node->kind == GRAPH_FULLY_CONNECTED) {
        *channels = in->channels;
        *plane = (uint64_t)in->height * in->width;
    } else {
        *channels = in->channels / node->window.groups;
        *plane = (uint64_t)node->window.height * node->window.width;
    }
}

/* Size of a weight's copy, whose rows have the image's channels padded. */
static uint64_t copy_numbers(const struct cuda_model *model,
                             const struct graph_parameter *parameter)
{
    const struct graph_node *node = &model->graph->nodes[parameter->node];
    uint64_t outputs, channels, plane;

    weight_shape(model, parameter, &outputs, &channels, &plane);
    return node->inputs[0] == 0 ? outputs * plane * CUDA_IMAGE_CHANNELS : parameter->count;
}

/* cuDNN needs weights aligned to 16 bytes. */
static bool needs_copy(const struct cuda_model *model, const struct graph_parameter *parameter)
{
    return parameter->kind == GRAPH_WEIGHT &&
           (model->type != DEVICE_FP32 || parameter->offset % COPY_FLOATS ||
            copy_numbers(model, parameter) != parameter->count);
}

/* ---- memory ---- */

/* Allocate memory that is kept until the model is closed; if only outlined, reserve just an
 * address. */
static void *keep_memory(struct cuda_model *model, void *(*allocate)(uint64_t bytes),
                         void (*release)(void *memory), uint64_t bytes)
{
    if (model->code == 0)
        model->code = memory_room(&model->memory, model->memory_count, sizeof *model->memory,
                                  "memory of a device");
    if (model->code)
        return NULL;
    void *start = model->outlined
                      ? (void *)((uintptr_t)(model->memory_count + 1) << 40) /* NOLINT */
                      : allocate(bytes);
    if (start)
        model->memory[model->memory_count++] = (struct cuda_memory){start, release};
    return start;
}

/* The same; having none is an error. */
static void *keep_all(struct cuda_model *model, void *(*allocate)(uint64_t bytes),
                      void (*release)(void *memory), uint64_t bytes)
{
    void *start = keep_memory(model, allocate, release, bytes);

    if (!start && model->code == 0)
        model->code = -ENOMEM;
    return start;
}

void *cuda_allocate(struct cuda_model *model, uint64_t bytes)
{
    model->device_bytes += bytes;
    return keep_all(model, runtime_allocate, runtime_release, bytes);
}

void *cuda_pin(struct cuda_model *model, uint64_t bytes)
{
    model->pinned_bytes += bytes;
    return keep_all(model, runtime_pin, runtime_unpin, bytes);
}

void *cuda_zeros(struct cuda_model *model, uint64_t bytes)
{
    void *memory = cuda_allocate(model, bytes + ALIGNMENT);

    if (memory && !model->outlined)
        model->code = runtime_zero(memory, bytes, model->runtime.stream);
    return memory;
}

/* A copy of what is on the host. */
static void *send_copy(struct cuda_model *model, const void *from, uint64_t bytes)
{
    void *memory = cuda_allocate(model, bytes);

    if (memory && !model->outlined)
        model->code = runtime_copy(memory, from, bytes, NULL);
    if (memory && !model->outlined && model->code == 0)
        model->code = runtime_wait(NULL);
    return memory;
}

/* Return where layers write a parameter's gradient. It is not in the arena if its numbers have
 * another type, padding, or a divisor still to be applied, or if a cuDNN engine may write it (BN's
 * two vectors). */
static void *place_of_gradient(struct cuda_model *model, uint32_t i)
{
    const struct graph_parameter *parameter = &model->graph->parameters[i];

    switch (parameter->kind) {
    case GRAPH_GAMMA:
        return cuda_norm_row(model, parameter->node, CUDA_D_GAMMA);
    case GRAPH_BETA:
        return cuda_norm_row(model, parameter->node, CUDA_D_BETA);
    case GRAPH_BIAS:
        if (model->type == DEVICE_FP16 || model->config.accumulates)
            return cuda_zeros(model, parameter->count * sizeof(float));
        break;
    case GRAPH_WEIGHT:
        if (needs_copy(model, parameter))
            return cuda_zeros(model,
                              copy_numbers(model, parameter) * device_type_bytes(model->type));
        if (model->config.accumulates)
            return cuda_zeros(model, parameter->count * sizeof(float));
    }
    return model->gradients + parameter->offset;
}

/* The tables of device_optimise(). */
static void make_tables(struct cuda_model *model)
{
    const struct graph *graph = model->graph;
    const uint32_t count = graph->parameter_count;
    uint32_t chunk_count = 0, chunk = 0;

    for (uint32_t i = 0; i < count; i++)
        chunk_count += device_chunks_of(graph->parameters[i].count);
    struct device_parameter *parameters = memory_array(count, sizeof *parameters);
    struct device_chunk *chunks = memory_array(chunk_count, sizeof *chunks);
    if (!parameters || !chunks)
        model->code = model->code ? model->code : -ENOMEM;
    for (uint32_t i = 0; i < count && model->code == 0; i++) {
        const struct graph_parameter *parameter = &graph->parameters[i];
        const struct graph_node *node = &graph->nodes[parameter->node];
        const bool copied = needs_copy(model, parameter);
        const uint32_t channels = graph->nodes[node->inputs[0]].shape.channels;
        const bool padded = copied && node->inputs[0] == 0;
        const void *given = model->given ? model->given[i] : NULL;
        parameters[i] = (struct device_parameter){
            .offset = parameter->offset,
            .count = parameter->count,
            .compute = copied ? model->compute[i] : NULL,
            .gradient = given == model->gradients + parameter->offset ? NULL : given,
            .type = model->type,
            .gradient_type = copied ? model->type : DEVICE_FP32,
            .channels = channels,
            .padded = padded ? CUDA_IMAGE_CHANNELS : channels,
            .decay = parameter->decay,
            .first_chunk = chunk,
            .chunk_count = device_chunks_of(parameter->count)};
        chunk += device_chunks(i, parameter->offset, parameter->count, chunks + chunk);
    }
    model->table = (struct device_parameters){
        .parameters = send_copy(model, parameters, count * sizeof *parameters),
        .chunks = send_copy(model, chunks, chunk_count * sizeof *chunks),
        .parameter_count = count,
        .chunk_count = chunk_count,
        .weights = model->parameters,
        .gradients = model->gradients,
        .momenta = model->momenta,
        .norms = cuda_allocate(model, (2 * (uint64_t)chunk_count + count + 1) * sizeof(float)),
        .unscale = model->type == DEVICE_FP16 ? &model->header->unscale : NULL,
        .sum = model->config.accumulates ? model->header->sum : NULL,
        .collected = model->config.accumulates || model->config.enqueue ||
                     model->config.exchanged_by_host || model->config.gradients_on_host};
    free(parameters);
    free(chunks);
}

/* Zeros, in the exchange's memory if it has some; and where layers write each gradient. */
static void make_gradients(struct cuda_model *model)
{
    const struct graph *graph = model->graph;
    const struct backend_config *config = &model->config;
    const uint64_t bytes = graph->parameter_floats * sizeof *model->gradients;

    if (config->allocate_gradients) {
        model->gradients =
            keep_memory(model, config->allocate_gradients, config->release_gradients, bytes);
        if (!model->gradients && model->code == 0)
            snprintf(model->notice, sizeof model->notice,
                     "the gradients lie in memory that the exchange may have to copy: %s",
                     fail_reason());
    }
    if (model->gradients) {
        model->device_bytes += bytes;
        if (!model->outlined)
            model->code = runtime_zero(model->gradients, bytes, model->runtime.stream);
    } else {
        model->gradients = cuda_zeros(model, bytes);
    }
    model->given = memory_array(graph->parameter_count, sizeof *model->given);
    if (!model->given && model->code == 0)
        model->code = -ENOMEM;
    for (uint32_t i = 0; i < graph->parameter_count && model->code == 0; i++)
        model->given[i] = place_of_gradient(model, i);
}

/* ---- INT8 inference ---- */

/* The nodes that one INT8 convolution computes. */
static struct cuda_chain chain_of(const struct cuda_model *model, uint32_t convolution)
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

static int open_int8(struct cuda_model *model)
{
    const struct graph *graph = model->graph;

    model->quantised = memory_array(graph->node_count, sizeof *model->quantised);
    model->int8 = memory_array(graph->node_count, sizeof *model->int8);
    model->chains = memory_array(graph->node_count, sizeof *model->chains);
    if (!model->quantised || !model->int8 || !model->chains)
        return -ENOMEM;
    quantise_plan(graph, model->config.ranges, model->quantised);
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const uint32_t channels = graph->nodes[i].shape.channels;
        if (!model->quantised[i].in_int8)
            continue;
        model->chains[i] = chain_of(model, i);
        int8_t *weight = cuda_allocate(model, graph->parameters[graph->nodes[i].weight].count);
        float *scale = cuda_allocate(model, 3 * channels * sizeof *scale);
        if (!scale)
            return model->code;
        model->int8[i] =
            (struct cuda_int8){weight, scale, scale + channels, scale + 2 * (size_t)channels};
    }
    return model->code;
}

/* Compute the parameters of one convolution on the host and send them. Rows of weights are
 * quantised in whatever order they are. */
static int load_layer(const struct cuda_model *model, uint32_t number, const float *parameters,
                      const float *statistics)
{
    const struct graph *graph = model->graph;
    const struct graph_node *node = &graph->nodes[number];
    const struct graph_parameter *weight = &graph->parameters[node->weight];
    const struct cuda_chain chain = model->chains[number];
    const struct cuda_int8 *to = &model->int8[number];
    const uint32_t channels = node->shape.channels;
    const float step = model->quantised[chain.end].step, unit = step > 0 ? step : 1;
    const float between = chain.sum ? model->quantised[chain.other].step : unit;
    const float step_in = model->quantised[node->inputs[0]].step;
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
        code = runtime_copy(to->scale, scale, 3 * channels * sizeof *scale, stream);
    int waited = runtime_wait(stream);
    free(quantised);
    free(scale);
    return code ? code : waited;
}

static int load_int8(const struct cuda_model *model)
{
    const struct graph *graph = model->graph;
    void *stream = model->runtime.stream;
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

/* ---- opening ---- */

int cuda_model_open(struct cuda_model *model, const struct cuda_settings *settings,
                    const struct backend_config *config)
{
    static const enum device_type types[] = {[CUDA_FP32] = DEVICE_FP32,
                                             [CUDA_TF32] = DEVICE_FP32,
                                             [CUDA_FP16] = DEVICE_FP16,
                                             [CUDA_BF16] = DEVICE_BF16};
    const struct graph *graph = config->graph;
    const uint64_t bytes = graph->parameter_floats * sizeof(float), batch = config->batch_size;
    const uint64_t logits_bytes = batch * graph->classes * sizeof(float);
    uint64_t partial_floats = 0; /* of the largest sums over pixels */

    model->graph = graph;
    model->settings = settings;
    model->config = *config;
    model->type = types[settings->precision];
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct graph_shape *shape = &graph->nodes[i].shape;
        const struct device_pixels pixels = {model->type, shape->channels,
                                             batch * shape->height * shape->width};
        const uint64_t needed = device_partial_floats(&pixels);
        partial_floats = needed > partial_floats ? needed : partial_floats;
    }
    model->parameters = cuda_zeros(model, bytes);
    model->statistics = cuda_zeros(model, (graph->statistic_floats + 1) * sizeof(float));
    model->norms =
        cuda_zeros(model, (graph->statistic_floats / 2 * CUDA_NORM_ROWS + 1) * sizeof(float));
    model->partial = cuda_zeros(model, partial_floats * sizeof(float));
    if (config->training && config->gradients_on_host)
        model->host_gradients = cuda_pin(model, bytes);
    model->compute = memory_array(graph->parameter_count, sizeof *model->compute);
    if (!model->compute && model->code == 0)
        model->code = -ENOMEM;
    for (uint32_t i = 0; i < graph->parameter_count && model->code == 0; i++)
        model->compute[i] = needs_copy(model, &graph->parameters[i])
                                ? cuda_zeros(model, copy_numbers(model, &graph->parameters[i]) *
                                                        device_type_bytes(model->type))
                                : cuda_parameter(model, i);
    if (config->training) {
        model->momenta = cuda_zeros(model, bytes);
        make_gradients(model);
    }
    /* the input and the results of a batch */
    model->header_bytes =
        sizeof *model->header + graph->node_count * sizeof(uint64_t) + batch * sizeof(int32_t);
    model->header = cuda_allocate(model, model->header_bytes);
    model->per_image = cuda_allocate(model, batch * sizeof *model->per_image);
    model->report = cuda_allocate(model, sizeof *model->report);
    model->logits = cuda_allocate(model, logits_bytes);
    model->logits_result = cuda_pin(model, logits_bytes);
    make_tables(model);
    return model->code == 0 && config->ranges ? open_int8(model) : model->code;
}

void cuda_model_close(struct cuda_model *model)
{
    runtime_release(model->workspace);
    for (uint32_t i = 0; !model->outlined && i < model->memory_count; i++)
        model->memory[i].release(model->memory[i].start);
    free(model->memory);
    free(model->compute);
    free(model->given);
    free(model->chains);
    free(model->int8);
    free(model->quantised);
}

/* ---- the canonical layout ---- */

/* Permute the weights of an arena on the host between outputs x channels x plane and outputs x
 * plane x channels. home_first: from our layout to the canonical one. */
static void permute(const struct cuda_model *model, const float *from, float *to, bool home_first)
{
    const struct graph *graph = model->graph;

    for (uint32_t i = 0; i < graph->parameter_count; i++) {
        const struct graph_parameter *parameter = &graph->parameters[i];
        const float *source = from + parameter->offset;
        float *target = to + parameter->offset;
        uint64_t outputs, channels, plane;
        if (parameter->kind != GRAPH_WEIGHT) {
            memcpy(target, source, parameter->count * sizeof *target);
            continue;
        }
        weight_shape(model, parameter, &outputs, &channels, &plane);
        const uint64_t inner = home_first ? channels : plane, outer = home_first ? plane : channels;
        for (uint64_t k = 0; k < outputs; k++)
            for (uint64_t a = 0; a < outer; a++)
                for (uint64_t b = 0; b < inner; b++)
                    target[(k * inner + b) * outer + a] = source[(k * outer + a) * inner + b];
    }
}

/* Copy an arena of the device from or to the canonical layout. No-op if either is NULL. */
static int translate(const struct cuda_model *model, float *arena, float *canonical, bool to_device)
{
    const uint64_t count = model->graph->parameter_floats, bytes = count * sizeof *arena;
    void *stream = model->runtime.stream;

    if (!canonical || !arena)
        return 0;
    float *home = memory_array(count, sizeof *home);
    if (!home)
        return -ENOMEM;
    if (to_device)
        permute(model, canonical, home, false);
    int code = to_device ? runtime_copy(arena, home, bytes, stream)
                         : runtime_copy(home, arena, bytes, stream);
    int waited = runtime_wait(stream);
    code = code ? code : waited;
    if (code == 0 && !to_device)
        permute(model, home, canonical, true);
    free(home);
    return code;
}

int cuda_model_load(struct cuda_model *model, const float *parameters, const float *momenta,
                    const float *statistics)
{
    void *stream = model->runtime.stream;
    int code = translate(model, model->parameters, (float *)(uintptr_t)parameters, true);

    if (code == 0)
        code = translate(model, model->momenta, (float *)(uintptr_t)momenta, true);
    if (code == 0 && statistics)
        code = runtime_copy(model->statistics, statistics,
                            model->graph->statistic_floats * sizeof *statistics, stream);
    if (code == 0 && parameters)
        code = device_renew(&model->table, stream);
    if (code == 0)
        code = runtime_wait(stream);
    return code == 0 && model->quantised ? load_int8(model) : code;
}

int cuda_model_save(const struct cuda_model *model, float *parameters, float *momenta,
                    float *statistics, float *gradients)
{
    void *stream = model->runtime.stream;
    int code = translate(model, model->parameters, parameters, false);

    if (code == 0)
        code = translate(model, model->momenta, momenta, false);
    if (code == 0 && gradients && model->gradients && !model->table.collected)
        code = device_collect(&model->table, 0, model->table.chunk_count, stream);
    if (code == 0)
        code = translate(model, model->gradients, gradients, false);
    if (code == 0 && statistics)
        code = runtime_copy(statistics, model->statistics,
                            model->graph->statistic_floats * sizeof *statistics, stream);
    return code ? code : runtime_wait(stream);
}

/* ---- shapes and addresses of a node ---- */

uint32_t cuda_channels(const struct cuda_model *model, uint32_t node)
{
    return node == 0 ? CUDA_IMAGE_CHANNELS : model->graph->nodes[node].shape.channels;
}

uint64_t cuda_numbers(const struct cuda_model *model, uint32_t node)
{
    const struct graph_shape *shape = &model->graph->nodes[node].shape;

    return (uint64_t)cuda_channels(model, node) * shape->height * shape->width;
}

/* The channels of a fully connected layer are all numbers of an image. */
struct kernel_window cuda_window(const struct cuda_model *model, uint32_t images, uint32_t number)
{
    const struct graph_node *node = &model->graph->nodes[number];
    struct kernel_window window = node->window;

    window.images = images;
    window.in_channels = node->kind == GRAPH_FULLY_CONNECTED
                             ? (uint32_t)cuda_numbers(model, node->inputs[0])
                             : cuda_channels(model, node->inputs[0]);
    return window;
}

struct dnn_shape cuda_shape(const struct cuda_model *model, uint32_t images, uint32_t node,
                            enum dnn_kind kind, uint32_t fusion)
{
    return (struct dnn_shape){.kind = kind,
                              .type = model->type,
                              .tf32 = model->settings->precision == CUDA_TF32,
                              .window = cuda_window(model, images, node),
                              .fusion = fusion};
}

float *cuda_norm_row(const struct cuda_model *model, uint32_t node, enum cuda_norm_row row)
{
    return model->norms + model->graph->nodes[node].statistics / 2 * CUDA_NORM_ROWS +
           (uint64_t)row * model->graph->nodes[node].shape.channels;
}

struct device_norm cuda_norm(const struct cuda_model *model, uint32_t number)
{
    const struct graph_node *node = &model->graph->nodes[number];
    float *running = model->statistics + node->statistics;

    return (struct device_norm){
        .epsilon = node->epsilon,
        .momentum = node->momentum,
        .gamma = cuda_parameter(model, node->gamma),
        .beta = cuda_parameter(model, node->beta),
        .running_mean = running,
        .running_variance = running + node->shape.channels,
        .mean = cuda_norm_row(model, number, CUDA_MEAN),
        .inverse = cuda_norm_row(model, number, CUDA_INVERSE),
        .scale = cuda_norm_row(model, number, CUDA_SCALE),
        .bias = cuda_norm_row(model, number, CUDA_BIAS),
        .typed_scale = cuda_norm_row(model, number, CUDA_TYPED_SCALE),
        .typed_bias = cuda_norm_row(model, number, CUDA_TYPED_BIAS),
        .gamma_copy = cuda_norm_row(model, number, CUDA_GAMMA),
        .beta_copy = cuda_norm_row(model, number, CUDA_BETA),
    };
}

float *cuda_parameter(const struct cuda_model *model, uint32_t parameter)
{
    return model->parameters + model->graph->parameters[parameter].offset;
}

int32_t *cuda_labels(const struct cuda_model *model, struct cuda_header *header)
{
    return (int32_t *)(void *)((uint64_t *)(void *)(header + 1) + model->graph->node_count);
}

const struct dnn_plan *cuda_find_plan(struct cuda_model *model, uint32_t node,
                                      const char *operation, const struct dnn_shape *shape,
                                      int *code)
{
    static const char *const kinds[] = {"forward pass", "input gradient", "weight gradient"};
    const struct kernel_window *w = &shape->window;
    char wrong[DNN_WRONG_BYTES], layer[200];
    const struct dnn_plan *plan = dnn_find(model->dnn, shape, code);

    const bool is_wrong = dnn_take_wrong(model->dnn, wrong);
    if (model->notice[0])
        return plan;
    snprintf(layer, sizeof layer, "%.60s (batch %u, %u x %u x %u by %u x %u / %u in %u to %u)",
             model->graph->nodes[node].name, w->images, w->in_channels, w->in_height, w->in_width,
             w->height, w->width, w->stride, w->groups, w->out_channels);
    if (is_wrong)
        snprintf(model->notice, sizeof model->notice,
                 "an engine of cuDNN is not used for the %s of %s%s: it %s", kinds[shape->kind],
                 layer, shape->fusion ? ", fused" : "", wrong);
    else if (operation && *code == -ENOTSUP)
        snprintf(model->notice, sizeof model->notice,
                 "cuDNN has no engine for the %s of %s: a plain kernel computes it, up to 100 "
                 "times slower",
                 operation, layer);
    return plan;
}
