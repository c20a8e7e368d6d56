/* SPDX-License-Identifier: Apache-2.0
 *
 * The reference backend's internals, for trainer/backend_reference.c and trainer/reference_*.c
 * only.
 *
 * Moments: node i is computed at moment i, its backward pass runs at moment 2 * nodes - i. In
 * training, an output is live until its node's backward pass, since the backward passes of the node
 * and of its consumers read it; its gradient is live from the backward pass of the last consumer.
 * Memory is planned by these lifetimes.
 */
#ifndef IOBENCH_TRAINER_REFERENCE_H
#define IOBENCH_TRAINER_REFERENCE_H

#include "kernels/kernels.h"
#include "trainer/backend.h"
#include "trainer/quantise.h"

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

static inline uint64_t *reference_timer(const struct reference *reference, uint32_t moment)
{
    return reference->took_ns ? &reference->took_ns[moment] : NULL;
}

static inline size_t reference_plane(const struct graph_node *node)
{
    return (size_t)node->shape.height * node->shape.width;
}

/* training: BN uses and records batch statistics, dropout is on. INT8 rounds values to INT8 and
 * sums in float: equal to integer arithmetic except for rare ties. */
int reference_forward(struct reference *reference, const struct backend_batch *batch, bool training,
                      const float **logits);
/* Compute all parameter gradients from the gradient of the logits. */
int reference_backward(struct reference *reference, const struct backend_batch *batch,
                       backend_gradients_ready ready, void *context);

/* ---- reference_schedule.c ---- */

/* Append the steps of one batch. passes: number of timed batches. */
int reference_list(const struct reference *reference, uint32_t passes, struct schedule *schedule);

#endif
