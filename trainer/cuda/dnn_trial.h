/* SPDX-License-Identifier: Apache-2.0
 *
 * dnn_trial: which convolution is computed, alone or fused with what surrounds it, and its tensors;
 * and what runs an engine for it on noise, times it and compares its results with the reference
 * kernels. A fully connected layer is a convolution of one pixel. Knows no cuDNN: an engine is a
 * function that starts it. One thread.
 */
#ifndef IOBENCH_TRAINER_CUDA_DNN_TRIAL_H
#define IOBENCH_TRAINER_CUDA_DNN_TRIAL_H

#include "kernels/device.h"
#include "kernels/runtime.h"

enum dnn_kind {
    DNN_FORWARD, /* output = input * weight */
    DNN_DATA,    /* d_input, from d_output and weight */
    DNN_WEIGHT,  /* d_weight, from input and d_output */
};

/* Operations computed in the same pass over memory, as bits; cuDNN supports those of BN in FP16
 * only. */
enum dnn_fusion {
    DNN_PROLOGUE = 1,   /* forward, weight: of relu(input * in_scale + in_bias) */
    DNN_STATISTICS = 2, /* forward: sums and squares of the output, over its pixels */
    DNN_SCALED = 4,     /* forward: output * scale, */
    DNN_BIASED = 8,     /* forward: + bias, */
    DNN_ADDED = 16,     /* forward: + other; data, with DNN_NORM: of d_input + other */
    DNN_RECTIFIED = 32, /* forward: and ReLU of the result */
    DNN_NORM = 64,      /* data: back through a ReLU into a BN of x: the input's gradient is
                         * dz = d_input where the ReLU was open; with d_gamma, d_beta and a, b, c:
                         * the gradient of x is a * dz + b * x + c */
    DNN_SUMMED = 128,   /* with DNN_PROLOGUE or DNN_NORM: the ReLU is of BN's output + residual;
                         * forward also outputs its result, as sum */
    DNN_RESCALED = 256, /* forward, INT8: the result * last */
    DNN_DUAL = 512, /* with DNN_SUMMED: the residual also has a BN, with its own set of BN tensors,
                     * see dnn_beside() */
};

/* NHWC tensors, weights out_channels x height x width x in_channels / groups. The output's size
 * implies pad_bottom and pad_right. */
struct dnn_shape {
    enum dnn_kind kind;
    enum device_type type;
    bool tf32; /* FP32 multiplied in TF32 */
    bool int8; /* forward: input, weights and other are INT8 */
    bool int8_output;
    struct kernel_window window;
    uint32_t fusion; /* of enum dnn_fusion */
};

/* Tensors of a plan. Input, weights and output stand for their gradients if the kind says so. */
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
    /* The preceding BN. */
    DNN_IN_SCALE, /* these two in the tensors' type; all other numbers per channel in FP32 */
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
    DNN_BESIDE, /* the BN of the residual: as for the preceding BN */
    DNN_TENSORS = DNN_BESIDE + DNN_BESIDE - DNN_IN_SCALE,
};

/* Return the tensor of the residual's BN that corresponds to `which` of the preceding BN. */
static inline enum dnn_tensor dnn_beside(enum dnn_tensor which)
{
    return (enum dnn_tensor)(DNN_BESIDE + (which - DNN_IN_SCALE));
}

/* Tensors in device memory; those that the shape does not use may be NULL. */
struct dnn_tensors {
    void *at[DNN_TENSORS];
    void *workspace;
};

bool dnn_takes(const struct dnn_shape *shape, enum dnn_tensor which);
bool dnn_writes(const struct dnn_shape *shape, enum dnn_tensor which);    /* of those it takes */
uint64_t dnn_count(const struct dnn_shape *shape, enum dnn_tensor which); /* its numbers */
uint64_t dnn_tensor_bytes(const struct dnn_shape *shape, enum dnn_tensor which);

/* ---- each tensor ---- */

enum dnn_extent {
    DNN_IN_PIXELS,
    DNN_OUT_PIXELS,
    DNN_FILTER,
    DNN_IN_CHANNELS, /* from here on one number per channel */
    DNN_OUT_CHANNELS,
};

enum dnn_extent dnn_extent(const struct dnn_shape *shape, enum dnn_tensor which);
enum device_type dnn_type(const struct dnn_shape *shape, enum dnn_tensor which);
/* Get the sizes in the order N, C, H, W. */
void dnn_dims(const struct dnn_shape *shape, enum dnn_extent extent, int64_t dims[4]);

/* ---- trials ---- */

/* DNN_CONFIGS_MAX: candidates. */
enum { DNN_WRONG_BYTES = 160, DNN_CONFIGS_MAX = 64 };

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
