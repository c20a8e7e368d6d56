/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of the reference backend, for its two files alone.
 *
 * Moments: node i is computed at moment i, its backward pass runs at moment 2 * nodes - i. While
 * training, an output is needed until its node's backward pass, since the passes of the node and
 * of its consumers look at it; its gradient is needed from the backward pass of the last consumer
 * on. The memory of both is planned with these lifetimes.
 */
#ifndef IOBENCH_TRAINER_REFERENCE_H
#define IOBENCH_TRAINER_REFERENCE_H

#include "kernels/kernels.h"
#include "trainer/backend.h"
#include "trainer/quantise.h"

struct reference {
    const struct graph *graph;
    struct backend_config config;
    float *parameters, *gradients, *momenta, *statistics;
    float *batch_statistics; /* laid out as statistics */
    float *arena;            /* values and d_values lie in it */
    float **values;          /* output of each node */
    float **d_values;        /* its gradient; NULL for an input that only weights look at */
    uint32_t *last_consumer; /* the last node that takes the output; itself for the logits */
    struct quantise_node *quantised; /* of each node, in INT8; NULL: all in FP32 */
    float *rounded;                  /* the parameters, weights as INT8 holds them */
    float *workspace;
    uint64_t arena_bytes, workspace_bytes;
    uint64_t *took_ns; /* at each moment, of the loss at `nodes`; NULL: not timed */
};

static inline uint64_t *reference_timer(const struct reference *reference, uint32_t moment)
{
    return reference->took_ns ? &reference->took_ns[moment] : NULL;
}

static inline size_t reference_plane(const struct graph_node *node)
{
    return (size_t)node->shape.height * node->shape.width;
}

/* The window of a convolution or a pool. */
struct kernel_window reference_window(const struct reference *reference,
                                      const struct graph_node *node, uint32_t images);

/* training: BN by the batch, which enters the running statistics, and dropout on. In INT8
 * the values are those that INT8 can hold, the sums in floats: the same but for rare ties. */
int reference_forward(struct reference *reference, const struct backend_batch *batch, bool training,
                      const float **logits);
/* From the gradient of the logits, which is there, to those of all parameters. */
int reference_backward(struct reference *reference, const struct backend_batch *batch,
                       backend_gradients_ready ready, void *context);

/* ---- reference_schedule.c ---- */

/* Appends the steps of one batch; passes: how many were timed. */
int reference_list(const struct reference *reference, uint32_t passes, struct schedule *schedule);

#endif
