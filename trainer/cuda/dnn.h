/* SPDX-License-Identifier: Apache-2.0
 *
 * dnn: convolutions, and fully connected layers as convolutions of one pixel, by cuDNN's graph
 * interface. A plan is made once for a shape: all engines that take it are found, timed on the
 * device, and the fastest is kept, on disk too. One thread.
 */
#ifndef IOBENCH_TRAINER_CUDA_DNN_H
#define IOBENCH_TRAINER_CUDA_DNN_H

#include "kernels/device.h"
#include "trainer/cuda/runtime.h"

enum dnn_kind {
    DNN_FORWARD, /* output = input * weight */
    DNN_DATA,    /* d_input, from d_output and weight */
    DNN_WEIGHT,  /* d_weight, from input and d_output */
};

/* NHWC tensors, weights out_channels x height x width x in_channels / groups. pad_bottom and
 * pad_right are what the output's size implies. */
struct dnn_shape {
    enum dnn_kind kind;
    enum device_type type;
    bool tf32; /* FP32 multiplied in TF32 */
    struct kernel_window window;
};

/* What a plan computes with, in device memory. */
struct dnn_tensors {
    void *input, *weight, *output; /* or their gradients, as the kind says */
    void *workspace;
};

struct dnn;

struct dnn_site {
    const struct runtime *runtime; /* with a stream; NULL: no device, `described` takes its place */
    uint32_t described;            /* 80 or 90: plans are made as for an A100 or an H200 */
    bool deterministic;
    uint32_t tournament; /* at most so many engines are timed; 1: none, the first is taken */
    const char *plans;   /* file that chosen plans are kept in; NULL: none */
};

int dnn_open(struct dnn **dnn, const struct dnn_site *site);
void dnn_close(struct dnn *dnn);

struct dnn_plan;

/* The best plan for a shape; asked again, the same one. NULL with a reason: -ENOTSUP in *code when
 * no engine takes it, else an error. It belongs to dnn. */
const struct dnn_plan *dnn_find(struct dnn *dnn, const struct dnn_shape *shape, int *code);
uint64_t dnn_workspace_bytes(const struct dnn_plan *plan);
/* How many engines took it, and the milliseconds of the one kept (0: not timed). */
uint32_t dnn_candidates(const struct dnn_plan *plan);
double dnn_milliseconds(const struct dnn_plan *plan);
/* Starts it on the runtime's stream. */
int dnn_run(const struct dnn *dnn, const struct dnn_plan *plan, const struct dnn_tensors *tensors);
/* Writes newly chosen plans to the file. */
int dnn_keep(struct dnn *dnn);

#endif
