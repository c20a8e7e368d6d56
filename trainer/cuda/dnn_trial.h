/* SPDX-License-Identifier: Apache-2.0
 * dnn_trial: runs an engine for a shape on noise, times it and compares its results with the
 * reference kernels. Knows no cuDNN: an engine is a function that starts it. One thread. */
#ifndef IOBENCH_TRAINER_CUDA_DNN_TRIAL_H
#define IOBENCH_TRAINER_CUDA_DNN_TRIAL_H

#include "kernels/runtime.h"
#include "trainer/cuda/dnn_shape.h"

enum { DNN_WRONG_BYTES = 160 };

/* Start candidate number `which` on the runtime's stream. */
struct dnn_candidates {
    int (*start)(const void *context, uint32_t which, const struct dnn_tensors *tensors);
    const void *context;
    uint32_t count;
    bool timed;   /* a single one, too */
    bool repeats; /* one that computes other bits the next time is not used */
};

struct dnn_trial {
    const struct dnn_shape *shape;
    const struct runtime *runtime;
    struct dnn_tensors tensors;
    uint64_t workspace_bytes;
    void *first, *last; /* events */
};

/* Allocate all tensors, and fill those that are read with noise. Close it in either case. */
int dnn_trial_open(struct dnn_trial *trial, const struct runtime *runtime,
                   const struct dnn_shape *shape, uint64_t workspace_bytes);
void dnn_trial_close(struct dnn_trial *trial);

/* Choose the fastest candidate whose results are right. -ENOTSUP: none
 * is. wrong: what the first of those that computes something else does, or why it does not run,
 * also if another one was chosen; "": none. */
int dnn_trial_choose(struct dnn_trial *trial, const struct dnn_candidates *candidates,
                     uint32_t *chosen, double *milliseconds, char wrong[DNN_WRONG_BYTES]);

#endif
