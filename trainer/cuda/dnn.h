/* SPDX-License-Identifier: Apache-2.0
 *
 * dnn: convolutions, and fully connected layers as convolutions of one pixel, by cuDNN's graph
 * interface, alone or with what stands around them. A plan is made once for a shape: all engines
 * that take it are found, timed on the device, and the fastest is kept, on disk too. One thread.
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

/* What is computed in the same pass over memory. Bits; cuDNN takes BN's in FP16 alone. */
enum dnn_fusion {
    DNN_PROLOGUE = 1,   /* forward, weight: of relu(input * in_scale + in_bias) */
    DNN_STATISTICS = 2, /* forward: sums and squares of the output, over its pixels */
    DNN_SCALED = 4,     /* forward: output * scale, */
    DNN_BIASED = 8,     /* forward: + bias, */
    DNN_ADDED = 16,     /* forward: + other; data, with DNN_NORM: of d_input + other */
    DNN_RECTIFIED = 32, /* forward: and ReLU of all that */
    DNN_NORM = 64,      /* data: back through a ReLU and into a BN of x: the input's gradient is
                           dz = d_input where the ReLU was open; with d_gamma, d_beta and
                           a, b, c: the gradient of x is a * dz + b * x + c */
    DNN_SUMMED = 128, /* with DNN_PROLOGUE or DNN_NORM: the ReLU is that of BN's output + residual;
                         forward also gives what comes out of it, as sum */
    DNN_RESCALED = 256, /* forward, INT8: all that * last */
    DNN_DUAL = 512, /* with DNN_SUMMED: the residual goes through a BN of its own, too, which has
                       the tensors of a BN a second time, see dnn_beside() */
};

/* NHWC tensors, weights out_channels x height x width x in_channels / groups. pad_bottom and
 * pad_right are what the output's size implies. */
struct dnn_shape {
    enum dnn_kind kind;
    enum device_type type;
    bool tf32; /* FP32 multiplied in TF32 */
    bool int8; /* forward: input, weights and other are INT8 */
    bool int8_output;
    struct kernel_window window;
    uint32_t fusion; /* of enum dnn_fusion */
};

/* What a plan computes with. Input, weights and output are their gradients where the kind says so.
 */
enum dnn_tensor {
    DNN_INPUT,
    DNN_WEIGHTS,
    DNN_OUTPUT,
    DNN_SUMS,
    DNN_SQUARES,
    DNN_SCALE,
    DNN_BIAS,
    DNN_OTHER,
    DNN_LAST,
    DNN_X,
    DNN_RESIDUAL,
    DNN_SUM,
    /* The BN before. */
    DNN_IN_SCALE, /* these two in the tensors' type; all others of one number a channel in FP32 */
    DNN_IN_BIAS,
    DNN_MEAN,
    DNN_INVERSE,
    DNN_GAMMA,
    DNN_BETA,
    DNN_D_GAMMA,
    DNN_D_BETA,
    DNN_A,
    DNN_B,
    DNN_C,
    DNN_BESIDE, /* the BN of the residual: as those of the BN before */
    DNN_TENSORS = DNN_BESIDE + DNN_BESIDE - DNN_IN_SCALE,
};

/* Of the residual's BN, what `which` is of the BN before. */
static inline enum dnn_tensor dnn_beside(enum dnn_tensor which)
{
    return (enum dnn_tensor)(DNN_BESIDE + (which - DNN_IN_SCALE));
}

/* In device memory; those that the shape does not take may be NULL. */
struct dnn_tensors {
    void *at[DNN_TENSORS];
    void *workspace;
};

bool dnn_takes(const struct dnn_shape *shape, enum dnn_tensor which);
uint64_t dnn_tensor_bytes(const struct dnn_shape *shape, enum dnn_tensor which);

struct dnn;

struct dnn_config {
    const struct runtime *runtime; /* with a stream; NULL: no device, `described` takes its place */
    uint32_t described;            /* 80 or 90: plans are made as for an A100 or an H200 */
    bool deterministic;
    uint32_t tournament; /* at most this many engines are timed; 1: none, the first is taken */
    const char *plans;   /* file that chosen plans are kept in; NULL: none */
};

int dnn_open(struct dnn **dnn, const struct dnn_config *site);
void dnn_close(struct dnn *dnn);

struct dnn_plan;

/* The best plan for a shape; asked again, the same one. NULL with a reason: -ENOTSUP in *code when
 * no engine takes it, else an error. It belongs to dnn. */
const struct dnn_plan *dnn_find(struct dnn *dnn, const struct dnn_shape *shape, int *code);
uint64_t dnn_workspace_bytes(const struct dnn_plan *plan);
uint32_t dnn_candidates(const struct dnn_plan *plan); /* engines that took it */
/* Whether plans are for a device that is there, not a described one. */
bool dnn_has_device(const struct dnn *dnn);

/* Starts it on the runtime's stream. */
int dnn_run(const struct dnn *dnn, const struct dnn_plan *plan, const struct dnn_tensors *tensors);
/* Writes newly chosen plans to the file. */
int dnn_keep(struct dnn *dnn);

#endif
