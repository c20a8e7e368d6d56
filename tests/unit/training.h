/* SPDX-License-Identifier: Apache-2.0
 * A backend with a network, weights and images of the documented generator: the same that
 * tests/golden/make_trainer.py makes. */
#ifndef IOBENCH_TESTS_TRAINING_H
#define IOBENCH_TESTS_TRAINING_H

#include "tests/unit/unit.h"

#include "base/fail.h"
#include "base/random.h"
#include "trainer/backend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum training_stream {
    TRAINING_PARAMETERS,
    TRAINING_IMAGES,
    TRAINING_LABELS,
    TRAINING_PROJECTIONS,
    TRAINING_PLACES,
};

struct lesson {
    struct graph *graph; /* owned by the caller */
    struct plugin_choice choice;
    struct backend backend;
    struct trainer_batch batch;
    uint8_t *rows;
    int32_t *labels;
};

static inline uint64_t lesson_key(enum training_stream stream, uint64_t number)
{
    return random_hash(20240607, stream, number);
}

static inline uint64_t lesson_bits(uint64_t key, uint64_t index)
{
    return random_mix(key + index * 0x9e3779b97f4a7c15u);
}

/* Mean 0, deviation 1, uniform; 24 bits. */
static inline double lesson_spread(uint64_t key, uint64_t index)
{
    return ((double)(lesson_bits(key, index) >> 40) * 0x1p-24 - 0.5) * sqrt(12);
}

/* Fill training->batch with the images and labels of a step. */
static inline void lesson_batch(struct lesson *training, uint64_t step)
{
    const struct graph_shape *shape = &training->graph->nodes[0].shape;
    const size_t bytes = (size_t)training->batch.count * shape->height * shape->width * 3;
    const uint64_t images = lesson_key(TRAINING_IMAGES, step);
    const uint64_t labels = lesson_key(TRAINING_LABELS, step);

    for (size_t i = 0; i < bytes; i++)
        training->rows[i] = (uint8_t)(lesson_bits(images, i) >> 56);
    for (uint32_t i = 0; i < training->batch.count; i++)
        training->labels[i] = (int32_t)(lesson_bits(labels, i) % training->graph->classes);
    training->batch.step = step;
}

static inline double lesson_deviation(const struct graph *graph,
                                      const struct graph_parameter *parameter)
{
    const struct graph_node *node = &graph->nodes[parameter->node];

    if (parameter->kind != GRAPH_WEIGHT)
        return 0.1;
    uint64_t fan_in = parameter->count / node->shape.channels;
    return sqrt((node->kind == GRAPH_CONVOLUTION ? 2.0 : 1.0) / (double)fan_in);
}

/* Parameters unlike the initial ones, so that each one matters. */
static inline void lesson_load(struct lesson *training)
{
    const struct graph *graph = training->graph;
    float *values = calloc(graph->parameter_floats, sizeof *values);

    for (uint32_t i = 0; i < graph->parameter_count; i++) {
        const struct graph_parameter *parameter = &graph->parameters[i];
        const double deviation = lesson_deviation(graph, parameter);
        const uint64_t key = lesson_key(TRAINING_PARAMETERS, i);
        double center = 0;
        if (parameter->kind == GRAPH_GAMMA)
            center = strstr(parameter->name, "bn3.gamma") ? 0.25 : 1;
        for (uint64_t j = 0; j < parameter->count; j++)
            values[parameter->offset + j] = (float)(center + deviation * lesson_spread(key, j));
    }
    if (backend_load(&training->backend, values, NULL, NULL))
        fail_msg("load: %s", fail_reason());
    free(values);
}

/* Return the backend to compare with the reference: in FP32 unless requested otherwise. */
static inline const char *lesson_text(const char *backend)
{
    const char *wanted = getenv("IOBENCH_CUDA");

    if (strcmp(backend, "cuda") != 0)
        return backend;
    return wanted ? wanted : "cuda:fp32,deterministic=yes,plans=none,tournament=1";
}

static inline void lesson_open(struct lesson *training, const char *backend,
                               const struct backend_config *config)
{
    const struct graph_shape *shape = &config->graph->nodes[0].shape;
    const uint32_t count = config->batch_size;

    training->batch.count = count;
    if (plugin_choose("backend", backend_registry, lesson_text(backend), &training->choice) ||
        backend_open(&training->backend, &training->choice, config))
        fail_msg("%s: %s", backend, fail_reason());
    training->rows = calloc((size_t)count * shape->height * shape->width, 3);
    training->labels = calloc(count, sizeof *training->labels);
    training->batch.rows = training->rows;
    training->batch.labels = training->labels;
}

/* threads: 0 is all CPUs; long computations take 1, since threads that wait for each other on a
 * busy machine take far longer. */
static inline void lesson_start(struct lesson *training, const char *backend, struct graph *graph,
                                uint32_t batch_size, uint64_t seed, uint32_t threads)
{
    const struct backend_config config = {.graph = graph,
                                          .batch_size = batch_size,
                                          .training = true,
                                          .seed = seed,
                                          .threads = threads};

    *training = (struct lesson){.graph = graph};
    lesson_open(training, backend, &config);
}

static inline void lesson_end(struct lesson *training)
{
    backend_close(&training->backend);
    plugin_release(&training->choice);
    free(training->rows);
    free(training->labels);
}

static inline struct backend_loss lesson_step(struct lesson *training, double smoothing)
{
    struct backend_loss loss;

    if (backend_step(&training->backend, &training->batch, smoothing, NULL, NULL, &loss))
        fail_msg("step: %s", fail_reason());
    return loss;
}

static inline void lesson_update(struct lesson *training, const struct kernel_update *update)
{
    if (backend_update(&training->backend, update))
        fail_msg("update: %s", fail_reason());
}

static inline struct graph *lesson_graph(const char *network, uint32_t side, uint32_t classes)
{
    const struct network *found = network_find(network);
    struct graph *graph = found ? network_build(found, side, classes) : NULL;

    if (!graph)
        fail_msg("%s: %s", network, fail_reason());
    return graph;
}

#endif
