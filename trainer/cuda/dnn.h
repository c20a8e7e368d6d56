/* SPDX-License-Identifier: Apache-2.0
 *
 * dnn: computes convolutions with cuDNN. A plan is made once for a shape: the engines that support
 * it are timed on the device, and the fastest is kept, on disk too. One thread.
 */
#ifndef IOBENCH_TRAINER_CUDA_DNN_H
#define IOBENCH_TRAINER_CUDA_DNN_H

#include "trainer/cuda/dnn_shape.h"
#include "trainer/cuda/runtime.h"

struct dnn;

struct dnn_config {
    const struct runtime *runtime; /* with a stream; NULL: no device, `described` takes its place */
    uint32_t described;            /* 80 or 90: plans are made as for an A100 or an H200 */
    bool deterministic;
    uint32_t tournament; /* at most this many engines are timed; 1: none, the first is taken */
    const char *plans;   /* file that chosen plans are kept in; NULL: none */
};

int dnn_open(struct dnn **dnn, const struct dnn_config *config);
void dnn_close(struct dnn *dnn);

struct dnn_plan;

/* The best plan for a shape; asked again, the same one. NULL with a reason: -ENOTSUP in *code when
 * no engine takes it, else an error. It belongs to dnn. */
const struct dnn_plan *dnn_find(struct dnn *dnn, const struct dnn_shape *shape, int *code);
uint64_t dnn_workspace_bytes(const struct dnn_plan *plan);
int64_t dnn_engine(const struct dnn_plan *plan);      /* cuDNN's number of it */
uint32_t dnn_candidates(const struct dnn_plan *plan); /* engines that took it */
/* Whether plans are for a device that is there, not a described one. */
bool dnn_has_device(const struct dnn *dnn);

/* Starts it on the runtime's stream. */
int dnn_run(const struct dnn *dnn, const struct dnn_plan *plan, const struct dnn_tensors *tensors);
/* Writes newly chosen plans to the file. */
int dnn_keep(struct dnn *dnn);

#endif
