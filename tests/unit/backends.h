/* SPDX-License-Identifier: Apache-2.0
 * What the tests of every backend share: a small network, a few steps, and what they leave. */
#ifndef IOBENCH_TESTS_BACKENDS_H
#define IOBENCH_TESTS_BACKENDS_H

#include "tests/unit/training.h"

enum { SIDE = 16, CLASSES = 6, BATCH = 4 };

static const struct kernel_update sgd = {
    .rate = 0.02, .momentum = 0.9, .decay = 0.01, .gradient_scale = 1};

/* A small network with BN and dropout. */
static inline struct graph *small(void)
{
    struct graph *graph = graph_create((struct graph_shape){3, SIDE, SIDE}, CLASSES);
    uint32_t x = graph_convolution(graph, "conv1", 0, 16, graph_square(3, 1, 1), 1, false);

    x = graph_relu(graph, graph_batch_norm(graph, "bn1", x, false));
    uint32_t y = graph_convolution(graph, "conv2", x, 16, graph_square(3, 1, 1), 1, true);
    x = graph_relu(graph, graph_add(graph, x, graph_batch_norm(graph, "bn2", y, false)));
    x = graph_dropout(graph, graph_max_pool(graph, x, graph_square(2, 2, 0)), 0.4);
    graph_fully_connected(graph, "fc", x, CLASSES);
    assert_int_equal(graph_seal(graph), 0);
    return graph;
}

/* Run a body with each backend available here. */
static inline void each_backend(struct graph *(*make)(void),
                                void (*body)(const char *backend, struct graph *graph))
{
    for (const struct plugin *const *plugin = backend_registry; *plugin; plugin++) {
        if (plugin_usable(*plugin)) {
            print_message("%s: not on this machine: %s\n", (*plugin)->name, fail_reason());
            continue;
        }
        struct graph *graph = make();
        body((*plugin)->name, graph);
        graph_destroy(graph);
    }
}

static inline void train(struct lesson *training, uint64_t first, uint64_t count)
{
    for (uint64_t step = first; step < first + count; step++) {
        lesson_batch(training, step);
        lesson_step(training, 0.1);
        lesson_update(training, &sgd);
    }
}

struct saved {
    float *parameters, *momenta, *statistics, *gradients;
};

static inline struct saved save(struct lesson *training)
{
    const struct graph *graph = training->graph;
    const size_t floats = graph->parameter_floats;
    struct saved saved = {calloc(floats, sizeof(float)), calloc(floats, sizeof(float)),
                          calloc(graph->statistic_floats, sizeof(float)),
                          calloc(floats, sizeof(float))};

    assert_int_equal(backend_save(&training->backend, saved.parameters, saved.momenta,
                                  saved.statistics, saved.gradients),
                     0);
    return saved;
}

static inline void forget(struct saved *saved)
{
    free(saved->parameters);
    free(saved->momenta);
    free(saved->statistics);
    free(saved->gradients);
}

static inline double distance(const float *a, const float *b, uint64_t count)
{
    double apart = 0, norm = 0;

    for (uint64_t i = 0; i < count; i++) {
        apart += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
        norm += (double)b[i] * b[i];
    }
    return sqrt(apart / (norm > 0 ? norm : 1));
}

/* backend_updates.c */
void updates_are_as_the_kernels_have_them(void **unused);
void gradients_are_clipped_by_the_norm_of_all(void **unused);
void threads_do_not_change_the_norm(void **unused);

#endif
