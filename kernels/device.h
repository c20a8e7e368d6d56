/* SPDX-License-Identifier: Apache-2.0
 *
 * device: the operations of kernels.h on a CUDA device, and those that only a device needs (copies
 * of the weights in its number type, several parameters at once). Convolutions by cuDNN are
 * elsewhere; those here are plain, for shapes that it does not take.
 *
 * Tensors are dense, images x height x width x channels (NHWC) in one of three number types; sums
 * and statistics are float, made of partial sums in a fixed order, so that the same input gives
 * the same bits. A "pixel" is one image's place; a tensor has images x height x width of them.
 * Unlike those in kernels.h, backward calls SET what they give.
 *
 * All calls start work on `stream` (a cudaStream_t) and return at once: 0, or -EIO with a reason
 * when the work could not start. Every pointer is to device memory, 16-byte aligned where it is
 * a tensor. Any thread.
 */
#ifndef IOBENCH_KERNELS_DEVICE_H
#define IOBENCH_KERNELS_DEVICE_H

#include "kernels/kernels.h"
#include "kernels/magnitudes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum device_type { DEVICE_FP32, DEVICE_FP16, DEVICE_BF16 };

static inline size_t device_type_bytes(enum device_type type)
{
    return type == DEVICE_FP32 ? 4 : 2;
}

/* The shape that most operations need to know of a tensor. */
struct device_pixels {
    enum device_type type;
    uint32_t channels;
    uint64_t count;
};

/* ---- device_input.cu ---- */

/* What is taken of a source image; kernel_normalise() has the formula. */
struct device_view {
    uint16_t top, left;
    uint8_t mirror;
};

struct device_input {
    enum device_type type;
    uint32_t images, height, width;       /* of the output */
    uint32_t source_height, source_width; /* of the rows: bytes, RGB */
    uint32_t channels;                    /* of the output, at least 3; those behind are zero */
    float mean[3], deviation[3];
    const struct device_view *views; /* one an image; NULL: from the corner, as they are */
};

int device_normalise(const struct device_input *input, const uint8_t *rows, void *output,
                     void *stream);

/* *moment = the device's clock in ns, when all before it is done: also in each run of a CUDA graph.
 */
int device_stamp(uint64_t *moment, void *stream);

/* ---- device_pointwise.cu ---- */

/* sum = a + b, or a alone where b is NULL; then ReLU, if asked for. */
int device_sum(enum device_type type, uint64_t count, const void *a, const void *b, bool relu,
               void *sum, void *stream);
/* d_input = d_output where output is above 0. */
int device_relu_backward(enum device_type type, uint64_t count, const void *output,
                         const void *d_output, void *d_input, void *stream);
/* `part` channels of each pixel, from one tensor into another of other channels. */
struct device_part {
    enum device_type type;
    uint64_t pixels;
    uint32_t channels;
    uint32_t from_channels, from_offset, to_channels, to_offset;
};
int device_copy_part(const struct device_part *part, const void *from, void *to, void *stream);
/* Forward and backward are the same. plane: pixels of an image. key: one number in device memory;
 * drops what kernel_dropout() drops. */
int device_dropout(const struct device_pixels *pixels, uint32_t plane, const uint64_t *key,
                   double rate, const void *input, void *output, void *stream);
int device_lrn(const struct kernel_lrn *lrn, enum device_type type, const void *input, void *output,
               void *stream);
int device_lrn_backward(const struct kernel_lrn *lrn, enum device_type type, const void *input,
                        const void *d_output, void *d_input, void *stream);

/* ---- device_norm.cu ---- */

/* Floats that the partial sums of any tensor of these pixels take. */
size_t device_partial_floats(const struct device_pixels *pixels);

/* All of `channels` floats. */
struct device_norm {
    double epsilon, momentum;
    const float *gamma, *beta;
    float *running_mean, *running_variance;
    float *mean, *inverse; /* of this batch; inverse: 1 / sqrt(variance + epsilon) */
    float *scale, *bias;   /* y = scale * x + bias does it all */
    /* For convolutions that apply BN to their input: the same in the tensors' type; and aligned
     * copies of gamma and beta. All NULL: nobody asks. */
    void *typed_scale, *typed_bias;
    float *gamma_copy, *beta_copy;
};

/* Statistics of x into norm: mean, inverse, scale, bias; running ones go on. */
int device_norm_statistics(const struct device_pixels *pixels, const struct device_norm *norm,
                           const void *x, float *partial, void *stream);
/* The same from sums and squares of x over its pixels, which a convolution left: `channels` floats
 * each. In FP32, so a mean far from 0 costs digits. */
int device_norm_finish(const struct device_pixels *pixels, const struct device_norm *norm,
                       const float *sums, const float *squares, void *stream);
/* scale and bias by the running statistics. */
int device_norm_infer(uint32_t channels, const struct device_norm *norm, void *stream);

/* y = x * scale + bias (+ other, or other * other_scale + other_bias); then ReLU, if asked for.
 * scale and bias may be NULL: 1 and 0; other too, and other_scale. */
struct device_affine {
    const float *scale, *bias;
    const void *other;
    const float *other_scale, *other_bias;
    bool relu;
};
int device_affine(const struct device_pixels *pixels, const struct device_affine *affine,
                  const void *x, void *y, void *stream);

/* Where the gradient of BN's output comes from. dz = (d_output + d_other) where mask > 0. */
struct device_norm_gradient {
    const void *d_output;
    const void *d_other; /* NULL, or a second gradient to add */
    const void *mask;    /* output of the ReLU behind; NULL: there is none */
    void *dz;            /* kept here; NULL: d_output is dz already. May be d_output. */
    bool rectified;      /* without mask: the ReLU of BN's output, which is computed anew */
};
/* Gives dz, d_gamma, d_beta (times *unscale, when there is one) and the three vectors of
 * `channels` floats with which d_input = a * dz + b * x + c. */
int device_norm_backward(const struct device_pixels *pixels, const struct device_norm *norm,
                         const struct device_norm_gradient *gradient, const void *x,
                         const float *unscale, float *d_gamma, float *d_beta, float *abc,
                         float *partial, void *stream);
/* Gradients of both parameters to the arena, times *unscale, where a convolution left them. */
int device_norm_parameters(uint32_t channels, const float *gamma, const float *beta,
                           const float *unscale, float *d_gamma, float *d_beta, void *stream);
int device_norm_backward_apply(const struct device_pixels *pixels, const float *abc, const void *dz,
                               const void *x, void *d_input, void *stream);
/* d_bias = sum over pixels, times *unscale. */
int device_bias_gradient(const struct device_pixels *pixels, const void *d_output,
                         const float *unscale, float *d_bias, float *partial, void *stream);

/* ---- device_pool.cu: windows have equal in_ and out_channels ---- */

/* which: for each output the place in its window that won, row by row; windows of at most 255. */
int device_max_pool(const struct kernel_window *window, enum device_type type, const void *input,
                    void *output, uint8_t *which, void *stream);
int device_max_pool_backward(const struct kernel_window *window, enum device_type type,
                             const uint8_t *which, const void *d_output, void *d_input,
                             void *stream);
int device_average_pool(const struct kernel_window *window, enum device_type type,
                        const void *input, void *output, void *stream);
int device_average_pool_backward(const struct kernel_window *window, enum device_type type,
                                 const void *d_output, void *d_input, void *stream);

/* The stem: BN (scale, bias), ReLU and max-pool at once; what lies between is never stored. */
int device_stem(const struct kernel_window *window, enum device_type type, const float *scale,
                const float *bias, const void *x, void *output, uint8_t *which, void *stream);
/* Back through pool and ReLU: dz of BN's output, and what device_norm_backward() gives. d_other:
 * NULL, or a second gradient of the output. */
int device_stem_backward(const struct kernel_window *window, enum device_type type,
                         const struct device_norm *norm, const uint8_t *which, const void *x,
                         const void *d_output, const void *d_other, void *dz, const float *unscale,
                         float *d_gamma, float *d_beta, float *abc, float *partial, void *stream);

/* ---- device_head.cu ---- */

struct device_loss {
    double loss; /* summed over the labelled images */
    uint32_t counted, correct, correct_top5, unused;
};
/* kernel_cross_entropy(). labels: -1 for none. gradient_scale: one number in device memory that
 * d_logits are multiplied by; d_logits may be NULL. per_image: `images` of the result. */
int device_cross_entropy(enum device_type type, uint32_t images, uint32_t classes,
                         const void *logits, const int32_t *labels, double smoothing,
                         const float *gradient_scale, void *d_logits, struct device_loss *per_image,
                         struct device_loss *total, void *stream);

/* ---- device_optimise.cu ---- */

/* One parameter of the network. Masters, gradients and momenta are FP32, in arenas; compute is the
 * copy that layers work with, in whose rows of `channels` numbers are made `padded` long. */
struct device_parameter {
    uint64_t offset, count; /* floats in the arenas */
    void *compute;          /* NULL: layers take the master */
    enum device_type type;
    uint32_t channels, padded;
    uint32_t decays;
    uint32_t first_chunk, chunk_count;
};

enum { DEVICE_CHUNK_FLOATS = 8192 };

/* A piece of a parameter: what one block takes. */
struct device_chunk {
    uint32_t parameter, count;
    uint64_t start; /* in the arenas */
};

/* All arrays in device memory. norms: 2 * chunks + parameters floats. */
struct device_parameters {
    const struct device_parameter *parameters;
    const struct device_chunk *chunks;
    uint32_t parameter_count, chunk_count;
    float *weights, *gradients, *momenta, *norms;
};

struct device_update {
    bool adapts; /* LARS, else SGD */
    double rate, rate_before, momentum, decay, eta, gradient_scale;
};
/* kernel_sgd() and kernel_lars(), all parameters at once; renews the compute copies. */
int device_optimise(const struct device_parameters *parameters, const struct device_update *update,
                    void *stream);
/* Compute copies after the masters were changed by somebody else. */
int device_renew(const struct device_parameters *parameters, void *stream);
/* A weight gradient in a layer's type and padding to the arena: to = from * *unscale. */
int device_gradient(enum device_type type, uint64_t count, uint32_t channels, uint32_t padded,
                    const void *from, const float *unscale, float *to, void *stream);

/* ---- device_int8.cu: tensors of whole numbers from -127 to 127 ---- */

/* value / step, rounded and clipped, and back. count: a multiple of 16. */
int device_quantise(enum device_type type, uint64_t count, const void *from, float step, int8_t *to,
                    void *stream);
int device_dequantise(enum device_type type, uint64_t count, const int8_t *from, float step,
                      void *to, void *stream);
/* relu(sum * scale + bias + other) * last, rounded and clipped; the vectors have a float an output
 * channel. */
struct device_int8 {
    const float *scale, *bias;
    const int8_t *other; /* NULL: none, and no last */
    const float *last;
    bool relu, to_int8;    /* else the output is of */
    enum device_type type; /* this type, and not rounded */
};
/* Plain; weight as device_convolution() has it. */
int device_convolution_int8(const struct kernel_window *window, const struct device_int8 *with,
                            const int8_t *input, const int8_t *weight, void *output, void *stream);

/* ---- device_magnitudes.cu ---- */

/* magnitudes_observe(). magnitudes: on the device. scratch: 4 bytes of it, which are 0 before and
 * after. */
int device_magnitudes(enum device_type type, uint64_t count, const void *values,
                      struct magnitudes *magnitudes, uint32_t *scratch, void *stream);

/* ---- device_convolution.cu: plain; slow, but for any shape ---- */

/* weight: out_channels x height x width x (in_channels / groups). */
int device_convolution(const struct kernel_window *window, enum device_type type, const void *input,
                       const void *weight, void *output, void *stream);
int device_convolution_data(const struct kernel_window *window, enum device_type type,
                            const void *d_output, const void *weight, void *d_input, void *stream);
int device_convolution_weight(const struct kernel_window *window, enum device_type type,
                              const void *input, const void *d_output, void *d_weight,
                              void *stream);

#endif
