/* SPDX-License-Identifier: Apache-2.0
 *
 * backend: computes a graph on some device: `reference` (the C kernels, the oracle), `cpu`
 * (oneDNN), later `cuda`. It knows neither data sets nor ranks nor recipes.
 *
 * One state, one thread. Parameters, gradients and momenta lie in three arenas of the graph's
 * parameter_floats, in the backend's own layout inside each parameter; ranks with the same backend
 * may add them up as plain floats. load() and save() speak the canonical layout of graph.h.
 */
#ifndef IOBENCH_TRAINER_BACKEND_H
#define IOBENCH_TRAINER_BACKEND_H

#include "base/plugin.h"
#include "trainer/graph.h"

struct backend_site {
    const struct graph *graph;
    uint32_t batch_size;
    bool training;    /* false: forward only, BN by running statistics, dropout off */
    uint64_t seed;    /* of dropout */
    uint32_t threads; /* 0: all CPUs */
};

struct backend_batch {
    const uint8_t *rows;   /* count x height x width x 3, RGB; normalised by the backend */
    const int32_t *labels; /* -1: no label, no gradient */
    uint32_t count;        /* up to batch_size */
    uint64_t step;
};

struct backend_loss {
    double loss;      /* mean cross-entropy over labelled rows */
    uint32_t correct; /* top-1 */
    uint32_t correct_top5;
    uint32_t counted; /* labelled rows */
};

/* The gradients of arena floats [0, done) are final; called in rising order during step(). */
typedef int (*backend_gradients_ready)(void *context, uint64_t done);

enum backend_recipe { BACKEND_SGD, BACKEND_LARS };

struct backend_update {
    enum backend_recipe recipe;
    double rate, rate_before; /* of this step and the one before: LARS momentum is rescaled */
    double momentum, decay, eta;
    double gradient_scale; /* 1 / ranks after a sum over ranks */
};

struct backend_memory {
    float *parameters, *gradients, *momenta, *statistics;
    uint64_t workspace_bytes, activation_bytes;
};

struct backend_ops {
    struct plugin plugin;
    int (*open)(void *state, const void *settings, const struct backend_site *site);
    void (*close)(void *state);
    /* Canonical layout. arrays may be NULL: left alone. */
    int (*load)(void *state, const float *parameters, const float *momenta,
                const float *statistics);
    int (*save)(void *state, float *parameters, float *momenta, float *statistics,
                float *gradients);
    /* Forward, loss with label smoothing, backward. */
    int (*step)(void *state, const struct backend_batch *batch, double label_smoothing,
                backend_gradients_ready ready, void *context, struct backend_loss *loss);
    int (*update)(void *state, const struct backend_update *update);
    /* Forward only; logits: count x classes, may be NULL. */
    int (*infer)(void *state, const struct backend_batch *batch, float *logits,
                 struct backend_loss *loss);
    void (*memory)(void *state, struct backend_memory *memory); /* for exchange and the report */
};

extern const struct plugin *const backend_registry[];

/* ImageNet mean and deviation per channel, of 0..255 values; every backend normalises with them. */
extern const float backend_mean[3], backend_deviation[3];

#endif
