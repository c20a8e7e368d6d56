/* SPDX-License-Identifier: Apache-2.0
 * The reference backend: its memory and the backend contract. reference_pass.c computes. */
#include "trainer/reference.h"

#include "base/clock.h"
#include "base/memory.h"
#include "trainer/lifetimes.h"
#include "trainer/plugins.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static size_t workspace_floats(const struct reference *reference)
{
    const struct graph *graph = reference->graph;
    size_t most = 0;

    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct graph_node *node = &graph->nodes[i];
        size_t floats = 0;
        if (node->kind == GRAPH_CONVOLUTION) {
            struct kernel_window window =
                graph_kernel_window(graph, i, reference->config.batch_size);
            floats = kernel_convolution_workspace(&window);
        } else if (node->kind == GRAPH_FULLY_CONNECTED) {
            floats = graph->parameters[node->weight].count;
        }
        most = floats > most ? floats : most;
    }
    return most;
}

/* The image itself needs a gradient only if a node without weights reads it. */
static bool needs_gradient(const struct graph *graph, uint32_t number)
{
    if (number > 0)
        return true;
    for (uint32_t i = 0; i < graph->node_count; i++)
        for (uint32_t j = 0; j < graph->nodes[i].input_count; j++)
            if (graph->nodes[i].inputs[j] == 0 && graph->nodes[i].weight == UINT32_MAX)
                return true;
    return false;
}

/* lifetimes: two per node, for its output and the output's gradient. */
static void fill_lifetimes(const struct reference *reference, struct lifetime *lifetimes)
{
    const struct graph *graph = reference->graph;
    const bool training = reference->config.training;

    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct graph_node *node = &graph->nodes[i];
        assert(node->consumers || i + 1 == graph->node_count); /* every output is used */
        const uint32_t last = node->consumers ? node->consumer : i, end = 2 * graph->node_count - i;
        const uint64_t bytes =
            graph_node_floats(node) * reference->config.batch_size * sizeof(float);
        lifetimes[2 * i] = (struct lifetime){i, training ? end : last, .bytes = bytes};
        lifetimes[2 * i + 1] =
            (struct lifetime){2 * graph->node_count - last, end,
                              .bytes = training && needs_gradient(graph, i) ? bytes : 0};
    }
}

static int plan_tensors(struct reference *reference)
{
    const uint32_t nodes = reference->graph->node_count;
    struct lifetime *lifetimes = memory_array(2 * (size_t)nodes, sizeof *lifetimes);

    if (!lifetimes)
        return -ENOMEM;
    fill_lifetimes(reference, lifetimes);
    int code = lifetimes_plan(lifetimes, 2 * nodes, &reference->arena_bytes);
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

static int plan_int8(struct reference *reference)
{
    const struct graph *graph = reference->graph;

    reference->quantised = memory_array(graph->node_count, sizeof *reference->quantised);
    reference->rounded = memory_array(graph->parameter_floats, sizeof(float));
    if (!reference->quantised || !reference->rounded)
        return -ENOMEM;
    quantise_plan(graph, reference->config.ranges, reference->quantised);
    return 0;
}

static int reference_open(void *state, const void *settings, const struct backend_config *config)
{
    struct reference *reference = state;
    const struct graph *graph = config->graph;
    const uint64_t parameters = graph->parameter_floats, statistics = graph->statistic_floats;
    const uint64_t trained = config->training ? parameters : 0;

    (void)settings;
    reference->graph = graph;
    reference->config = *config;
    reference->workspace_bytes = workspace_floats(reference) * sizeof(float);
    reference->workspace = memory_array(reference->workspace_bytes, 1);
    reference->values = memory_array(2 * (size_t)graph->node_count, sizeof(float *));
    reference->parameters = memory_array(parameters + 2 * trained + 2 * statistics, sizeof(float));
    if (!reference->workspace || !reference->values || !reference->parameters)
        return -ENOMEM;
    reference->d_values = reference->values + graph->node_count;
    reference->gradients = reference->parameters + parameters;
    reference->momenta = reference->gradients + trained;
    reference->statistics = reference->momenta + trained;
    reference->batch_statistics = reference->statistics + statistics;
    graph_initialise_statistics(graph, reference->statistics);
    int code = config->ranges ? plan_int8(reference) : 0;
    return code ? code : plan_tensors(reference);
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

/* A following BN scales whole channels, so rounding is the same with or without it. */
static void round_weights(struct reference *reference)
{
    const struct graph *graph = reference->graph;

    copy(reference->rounded, reference->parameters, graph->parameter_floats);
    for (uint32_t i = 0; i < graph->node_count; i++) {
        if (!reference->quantised[i].in_int8)
            continue;
        const struct graph_parameter *weight = &graph->parameters[graph->nodes[i].weight];
        const uint32_t channels = graph->nodes[i].shape.channels;
        quantise_round(channels, weight->count / channels, reference->rounded + weight->offset);
    }
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
    if (reference->rounded)
        round_weights(reference);
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

static int reference_run(void *state, const struct backend_pass *pass, struct backend_loss *loss)
{
    struct reference *reference = state;
    const struct graph *graph = reference->graph;
    const struct backend_batch *batch = pass->batch;
    const float *logits;

    if (!batch)
        return 0; /* nothing is ever in flight */
    int code = reference_forward(reference, batch, pass->learns, &logits);
    if (code)
        return code;
    copy(pass->logits, logits, (uint64_t)batch->count * graph->classes);
    struct kernel_loss found = {0};
    uint64_t since_ns = clock_now_ns();
    if (batch->labels)
        found = kernel_cross_entropy(
            batch->count, graph->classes, logits, batch->labels, pass->label_smoothing,
            pass->learns ? reference->d_values[graph->node_count - 1] : NULL);
    schedule_lap(reference_timer(reference, graph->node_count), &since_ns);
    *loss = backend_loss_of(batch->count, &found);
    if (!pass->learns)
        return 0;
    memset(reference->gradients, 0, graph->parameter_floats * sizeof(float));
    return reference_backward(reference, batch, pass->ready, pass->context);
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

static int reference_update(void *state, const struct backend_update *update)
{
    struct reference *reference = state;
    const uint64_t floats = reference->graph->parameter_floats;
    struct backend_update wanted = *update;
    struct backend_memory arenas;

    reference_memory(reference, &arenas);
    if (update->clip_norm > 0)
        wanted = backend_clip(update, kernel_squares(floats, arenas.gradients));
    backend_update_host(reference->graph, &arenas, &wanted, 0, floats);
    return 0;
}

/* ---- the schedule ---- */

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
    struct reference reference = {.graph = config.graph, .config = config};
    double update_ns = 0;
    int code = 0;

    if (request->passes) {
        code = reference_open(&reference, settings, &config);
        if (code == 0)
            code =
                backend_rehearse(&backend_reference, &reference, request, start_timing, &update_ns);
    }
    if (code == 0)
        code = reference_list(&reference, request->passes, schedule);
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
