/* SPDX-License-Identifier: Apache-2.0
 * What all plans share: parameters in their layouts, and memory of fixed size. */
#include "trainer/cuda/cuda.h"

#include "base/fail.h"
#include "base/memory.h"

#include <errno.h>
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
        *channels = in->channels / node->groups;
        *plane = (uint64_t)node->window.height * node->window.width;
    }
}

/* Numbers of a weight's copy, in whose rows the image's channels are padded. */
static uint64_t copy_numbers(const struct cuda_model *model,
                             const struct graph_parameter *parameter)
{
    const struct graph_node *node = &model->graph->nodes[parameter->node];
    uint64_t outputs, channels, plane;

    weight_shape(model, parameter, &outputs, &channels, &plane);
    return node->inputs[0] == 0 ? outputs * plane * model->image_channels : parameter->count;
}

/* cuDNN takes weights at 16 bytes. */
static bool needs_copy(const struct cuda_model *model, const struct graph_parameter *parameter)
{
    return parameter->kind == GRAPH_WEIGHT &&
           (model->type != DEVICE_FP32 || parameter->offset % COPY_FLOATS ||
            copy_numbers(model, parameter) != parameter->count);
}

static uint64_t aligned(uint64_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* ---- memory ---- */

void *cuda_allocate(struct cuda_model *model, uint64_t bytes)
{
    void *memory = runtime_allocate(bytes);

    if (memory)
        model->device_bytes += bytes;
    return memory;
}

void *cuda_pin(struct cuda_model *model, uint64_t bytes)
{
    void *memory = runtime_pin(bytes);

    if (memory)
        model->pinned_bytes += bytes;
    return memory;
}

/* The compute copies, one behind the other. */
static int make_copies(struct cuda_model *model)
{
    const struct graph *graph = model->graph;
    uint64_t bytes = 0;

    model->compute = memory_array(graph->parameter_count, sizeof *model->compute);
    if (!model->compute)
        return -ENOMEM;
    for (uint32_t i = 0; i < graph->parameter_count; i++)
        if (needs_copy(model, &graph->parameters[i]))
            bytes += aligned(copy_numbers(model, &graph->parameters[i]) *
                             device_type_bytes(model->type));
    model->compute_memory = cuda_allocate(model, bytes);
    if (!model->compute_memory)
        return -ENOMEM;
    int code = runtime_zero(model->compute_memory, bytes, model->runtime.stream);
    char *next = model->compute_memory;
    for (uint32_t i = 0; i < graph->parameter_count; i++) {
        const struct graph_parameter *parameter = &graph->parameters[i];
        model->compute[i] = model->parameters + parameter->offset;
        if (!needs_copy(model, parameter))
            continue;
        model->compute[i] = next;
        next += aligned(copy_numbers(model, parameter) * device_type_bytes(model->type));
    }
    return code;
}

static uint32_t chunks_of(uint64_t count)
{
    return (uint32_t)((count + DEVICE_CHUNK_FLOATS - 1) / DEVICE_CHUNK_FLOATS);
}

/* What device_optimise() needs to know, on the host. */
static void fill_tables(const struct cuda_model *model, struct device_parameter *parameters,
                        struct device_chunk *chunks)
{
    const struct graph *graph = model->graph;
    uint32_t chunk = 0;

    for (uint32_t i = 0; i < graph->parameter_count; i++) {
        const struct graph_parameter *parameter = &graph->parameters[i];
        const struct graph_node *node = &graph->nodes[parameter->node];
        const bool copied = needs_copy(model, parameter);
        const uint32_t channels = graph->nodes[node->inputs[0]].shape.channels;
        const bool padded = copied && node->inputs[0] == 0;
        parameters[i] =
            (struct device_parameter){.offset = parameter->offset,
                                      .count = parameter->count,
                                      .compute = copied ? model->compute[i] : NULL,
                                      .type = model->type,
                                      .channels = channels,
                                      .padded = padded ? model->image_channels : channels,
                                      .decays = parameter->decays,
                                      .first_chunk = chunk,
                                      .chunk_count = chunks_of(parameter->count)};
        for (uint64_t start = 0; start < parameter->count; start += DEVICE_CHUNK_FLOATS) {
            const uint64_t left = parameter->count - start;
            chunks[chunk++] = (struct device_chunk){
                .parameter = i,
                .count = (uint32_t)(left < DEVICE_CHUNK_FLOATS ? left : DEVICE_CHUNK_FLOATS),
                .start = parameter->offset + start};
        }
    }
}

/* On the device, from the host's. */
static void *send(struct cuda_model *model, const void *from, uint64_t bytes, int *code)
{
    void *memory = *code ? NULL : cuda_allocate(model, bytes);

    if (!memory) {
        *code = *code ? *code : -ENOMEM;
        return NULL;
    }
    *code = runtime_copy(memory, from, bytes, NULL);
    if (*code == 0)
        *code = runtime_wait(NULL);
    return memory;
}

static int make_tables(struct cuda_model *model)
{
    const struct graph *graph = model->graph;
    uint32_t chunk_count = 0;
    int code = 0;

    for (uint32_t i = 0; i < graph->parameter_count; i++)
        chunk_count += chunks_of(graph->parameters[i].count);
    struct device_parameter *parameters = memory_array(graph->parameter_count, sizeof *parameters);
    struct device_chunk *chunks = memory_array(chunk_count, sizeof *chunks);
    if (!parameters || !chunks)
        code = -ENOMEM;
    else
        fill_tables(model, parameters, chunks);
    model->table.parameter_count = graph->parameter_count;
    model->table.chunk_count = chunk_count;
    model->table.parameters =
        send(model, parameters, graph->parameter_count * sizeof *parameters, &code);
    model->table.chunks = send(model, chunks, chunk_count * sizeof *chunks, &code);
    free(parameters);
    free(chunks);
    model->table.norms =
        code ? NULL
             : cuda_allocate(model,
                             (2 * (uint64_t)chunk_count + graph->parameter_count) * sizeof(float));
    if (code == 0 && !model->table.norms)
        code = -ENOMEM;
    model->table.weights = model->parameters;
    model->table.gradients = model->gradients;
    model->table.momenta = model->momenta;
    return code;
}

static float *floats(struct cuda_model *model, uint64_t count, int *code)
{
    float *memory = *code ? NULL : cuda_allocate(model, count * sizeof *memory + ALIGNMENT);

    if (!memory)
        *code = *code ? *code : -ENOMEM;
    else
        *code = runtime_zero(memory, count * sizeof *memory, model->runtime.stream);
    return memory;
}

/* What each batch brings and takes away. */
static int make_slots(struct cuda_model *model)
{
    const uint64_t batch = model->site.batch_size;
    int code = cuda_flights_open(model);

    if (code)
        return code;
    model->header = cuda_allocate(model, model->header_bytes);
    model->per_image = cuda_allocate(model, batch * sizeof *model->per_image);
    model->report = cuda_allocate(model, sizeof *model->report);
    model->logits = cuda_allocate(model, batch * model->graph->classes * sizeof(float));
    model->logits_result = cuda_pin(model, batch * model->graph->classes * sizeof(float));
    return model->header && model->per_image && model->report && model->logits &&
                   model->logits_result
               ? 0
               : -ENOMEM;
}

/* How much room the largest sums over pixels take. */
static void look_at_sums(struct cuda_model *model)
{
    const struct graph *graph = model->graph;

    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct graph_shape *shape = &graph->nodes[i].shape;
        const struct device_pixels pixels = {model->type, shape->channels,
                                             (uint64_t)model->site.batch_size * shape->height *
                                                 shape->width};
        const uint64_t needed = device_partial_floats(&pixels);
        if (needed > model->partial_floats)
            model->partial_floats = needed;
    }
}

int cuda_model_open(struct cuda_model *model, const struct cuda_settings *settings,
                    const struct backend_config *site)
{
    static const enum device_type types[] = {[CUDA_FP32] = DEVICE_FP32,
                                             [CUDA_TF32] = DEVICE_FP32,
                                             [CUDA_FP16] = DEVICE_FP16,
                                             [CUDA_BF16] = DEVICE_BF16};
    const struct graph *graph = site->graph;

    model->graph = graph;
    model->settings = settings;
    model->site = *site;
    model->type = types[settings->precision];
    model->image_channels = model->type == DEVICE_FP32 ? 4 : 8;
    look_at_sums(model);
    int code = 0;
    model->parameters = floats(model, graph->parameter_floats, &code);
    if (site->training) {
        model->gradients = floats(model, graph->parameter_floats, &code);
        model->momenta = floats(model, graph->parameter_floats, &code);
    }
    model->statistics = floats(model, graph->statistic_floats + 1, &code);
    model->norms = floats(model, graph->statistic_floats / 2 * CUDA_NORM_ROWS + 1, &code);
    model->partial = floats(model, model->partial_floats, &code);
    if (code == 0 && site->training && site->gradients_on_host) {
        model->host_gradients = cuda_pin(model, graph->parameter_floats * sizeof(float));
        code = model->host_gradients ? 0 : -ENOMEM;
    }
    if (code == 0)
        code = make_copies(model);
    if (code == 0)
        code = make_tables(model);
    if (code == 0)
        code = cuda_int8_open(model);
    if (code == 0)
        code = cuda_observe_open(model);
    return code ? code : make_slots(model);
}

void cuda_model_close(struct cuda_model *model)
{
    void *const on_device[] = {model->parameters,
                               model->gradients,
                               model->momenta,
                               model->statistics,
                               model->norms,
                               model->partial,
                               model->table.norms,
                               model->compute_memory,
                               model->workspace,
                               model->header,
                               model->per_image,
                               model->report,
                               model->logits,
                               (void *)(uintptr_t)model->table.parameters,
                               (void *)(uintptr_t)model->table.chunks};

    for (size_t i = 0; i < sizeof on_device / sizeof *on_device; i++)
        runtime_release(on_device[i]);
    cuda_flights_close(model);
    runtime_unpin(model->host_gradients);
    runtime_unpin(model->logits_result);
    free(model->compute);
    cuda_int8_close(model);
    cuda_observe_close(model);
}

/* ---- the canonical layout ---- */

/* One arena on the host: weights between outputs x channels x plane and outputs x plane x channels.
 * home_first: from ours to the canonical one. */
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

static int bring(struct cuda_model *model, const float *canonical, float *arena)
{
    const uint64_t count = model->graph->parameter_floats;
    float *home = canonical && arena ? memory_array(count, sizeof *home) : NULL;

    if (!canonical || !arena)
        return 0;
    if (!home)
        return -ENOMEM;
    permute(model, canonical, home, false);
    int code = runtime_copy(arena, home, count * sizeof *home, model->runtime.stream);
    int waited = runtime_wait(model->runtime.stream);
    free(home);
    return code ? code : waited;
}

static int fetch(const struct cuda_model *model, const float *arena, float *canonical)
{
    const uint64_t count = model->graph->parameter_floats;
    float *home = canonical && arena ? memory_array(count, sizeof *home) : NULL;

    if (!canonical || !arena)
        return 0;
    if (!home)
        return -ENOMEM;
    int code = runtime_copy(home, arena, count * sizeof *home, model->runtime.stream);
    if (code == 0)
        code = runtime_wait(model->runtime.stream);
    if (code == 0)
        permute(model, home, canonical, true);
    free(home);
    return code;
}

int cuda_model_load(struct cuda_model *model, const float *parameters, const float *momenta,
                    const float *statistics)
{
    void *stream = model->runtime.stream;
    int code = bring(model, parameters, model->parameters);

    if (code == 0)
        code = bring(model, momenta, model->momenta);
    if (code == 0 && statistics)
        code = runtime_copy(model->statistics, statistics,
                            model->graph->statistic_floats * sizeof *statistics, stream);
    if (code == 0 && parameters)
        code = device_renew(&model->table, stream);
    if (code == 0)
        code = runtime_wait(stream);
    return code ? code : cuda_int8_load(model);
}

int cuda_model_save(const struct cuda_model *model, float *parameters, float *momenta,
                    float *statistics, float *gradients)
{
    void *stream = model->runtime.stream;
    int code = fetch(model, model->parameters, parameters);

    if (code == 0)
        code = fetch(model, model->momenta, momenta);
    if (code == 0)
        code = fetch(model, model->gradients, gradients);
    if (code == 0 && statistics)
        code = runtime_copy(statistics, model->statistics,
                            model->graph->statistic_floats * sizeof *statistics, stream);
    return code ? code : runtime_wait(stream);
}
