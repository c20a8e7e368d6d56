/* SPDX-License-Identifier: Apache-2.0
 *
 * device: the operations of kernels.h on a CUDA device, and those only a device needs (weight
 * copies in the compute type, many parameters at once). Convolutions by cuDNN are elsewhere; those
 * here are simple, for shapes that cuDNN does not support.
 *
 * Tensors are dense, images x height x width x channels (NHWC) in one of three types; sums and
 * statistics are float, from partial sums in a fixed order, so that equal inputs give equal bits. A
 * "pixel" is a position in one image; a tensor has images x height x width of them. Unlike in
 * kernels.h, backward calls SET their results.
 *
 * All calls enqueue work on `stream` (a cudaStream_t) and return at once: 0, or -EIO with a reason
 * if the work could not be enqueued. Every pointer is to device memory, 16-byte aligned for
 * tensors. Any thread.
 */
#ifndef IOBENCH_KERNELS_DEVICE_H
#define IOBENCH_KERNELS_DEVICE_H

#include "kernels/kernels.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum device_type { DEVICE_FP32, DEVICE_FP16, DEVICE_BF16, DEVICE_INT8 };

static inline size_t device_type_bytes(enum device_type type)
{
    return type == DEVICE_FP32 ? 4 : type == DEVICE_INT8 ? 1 : 2;
}

/* The shape of a tensor, as most operations need it. */
struct device_pixels {
    enum device_type type;
    uint32_t channels;
    uint64_t count;
};

/* ---- device_ends.cu ---- */

/* kernel_normalise() has the formula. */
struct device_input {
    enum device_type type;
    uint32_t images, height, width;
    uint32_t channels; /* of the output, at least 3; those after 3 are zero */
    float mean[3], deviation[3];
};

int device_normalise(const struct device_input *input, const uint8_t *rows, void *output,
                     void *stream);

/* moment = the device's clock in ns when all previous work is done, also in each replay of a CUDA
 * graph. */
int device_stamp(uint64_t *moment, void *stream);

/* ---- device_resize.cu: kernels/resize.h for images in device memory, with the same bytes ---- */

/* A struct resize_axis in device memory. */
struct device_axis {
    const uint32_t *first;
    const uint16_t *weights;
    uint32_t taps, widest, high;
};

enum { DEVICE_MARK_BYTES = 16 };

struct device_resized {
    /* Rows of RGB bytes: address and pitch are multiples of 16, and whole pitches are readable. */
    uint8_t *image;
    uint32_t pitch, width, height; /* width * 3 is at least DEVICE_MARK_BYTES */
    struct device_axis x, y;
    uint32_t tile; /* columns of the output at a time: device_resize_tile() */
    uint32_t mirror;
    uint8_t *output; /* the caller's width x height x 3 */
};

/* Return how many columns fit into a block; 0: even the fewest need too many source columns, and
 * the image cannot be resized. first is in host memory. */
uint32_t device_resize_tile(const uint32_t *first, uint32_t widest, uint32_t width);
/* tiles: the most of any image, width / tile rounded up. */
int device_resize(const struct device_resized *images, uint32_t count, uint32_t width,
                  uint32_t height, uint32_t tiles, void *stream);
/* Mark images before they are decoded, and find those (marked: 1) that were not written. */
int device_mark(const struct device_resized *images, uint32_t count, void *stream);
int device_find_marks(const struct device_resized *images, uint32_t count, uint8_t *marked,
                      void *stream);

/* ---- device_pointwise.cu ---- */

/* sum = a + b, or a if b is NULL; then an optional ReLU. */
int device_sum(enum device_type type, uint64_t count, const void *a, const void *b, bool relu,
               void *sum, void *stream);
/* d_input = d_output where output > 0. */
int device_relu_backward(enum device_type type, uint64_t count, const void *output,
                         const void *d_output, void *d_input, void *stream);
/* Copy `part` channels of each pixel between tensors with different channel counts. */
struct device_part {
    enum device_type type;
    uint64_t pixels;
    uint32_t channels;
    uint32_t from_channels, from_offset, to_channels, to_offset;
};
int device_copy_part(const struct device_part *part, const void *from, void *to, void *stream);
/* Used forward and backward. plane: pixels per image. key: one number in device memory; drops what
 * kernel_dropout() drops. */
int device_dropout(const struct device_pixels *pixels, uint32_t plane, const uint64_t *key,
                   double rate, const void *input, void *output, void *stream);
int device_lrn(const struct kernel_lrn *lrn, enum device_type type, const void *input, void *output,
               void *stream);
int device_lrn_backward(const struct kernel_lrn *lrn, enum device_type type, const void *input,
                        const void *d_output, void *d_input, void *stream);

/* ---- device_norm.cu ---- */

/* Floats needed for the partial sums of any tensor with these pixels. */
size_t device_partial_floats(const struct device_pixels *pixels);

/* Each of `channels` floats. */
struct device_norm {
    double epsilon, momentum;
    const float *gamma, *beta;
    float *running_mean, *running_variance;
    float *mean, *inverse; /* of this batch; inverse: 1 / sqrt(variance + epsilon) */
    float *scale, *bias;   /* BN as a whole: y = scale * x + bias */
    /* For convolutions that apply BN to their input: scale and bias in the tensors' type, and
     * aligned copies of gamma and beta. All NULL: not needed. */
    void *typed_scale, *typed_bias;
    float *gamma_copy, *beta_copy;
};

/* Compute statistics of x into norm: mean, inverse, scale, bias; update the running ones. */
int device_norm_statistics(const struct device_pixels *pixels, const struct device_norm *norm,
                           const void *x, float *partial, void *stream);
/* The same from a convolution's sums and sums of squares of x over its pixels: `channels` floats
 * each, in FP32, so a mean far from 0 costs precision. */
int device_norm_finish(const struct device_pixels *pixels, const struct device_norm *norm,
                       const float *sums, const float *squares, void *stream);
/* scale and bias from the running statistics. */
int device_norm_infer(uint32_t channels, const struct device_norm *norm, void *stream);

/* Where a ReLU was open, in bits: a byte for each 16 bytes of its output, the lowest bit first.
 * Not for every number of channels. */
static inline bool device_has_open(enum device_type type, uint32_t channels)
{
    return channels * device_type_bytes(type) % 16 == 0;
}

/* y = x * scale + bias (+ other, or other * other_scale + other_bias); then an optional ReLU. scale
 * and bias may be NULL (1 and 0), as may other and other_scale. */
struct device_affine {
    const float *scale, *bias;
    const void *other;
    const float *other_scale, *other_bias;
    bool relu;
    uint8_t *open; /* NULL, or where to keep where it was open */
};
int device_affine(const struct device_pixels *pixels, const struct device_affine *affine,
                  const void *x, void *y, void *stream);

/* Source of the gradient of BN's output: dz = (d_output + d_other) where the ReLU that follows was
 * open. One of three members tells where; if none is set, there is no ReLU. */
struct device_norm_gradient {
    const void *d_output;
    const void *d_other; /* NULL, or a second gradient to add */
    const void *mask;    /* its output; */
    const uint8_t *open; /* that as device_affine() kept it; */
    bool rectified;      /* or BN's output, recomputed, if nothing is added to it */
    void *dz;            /* stored here; NULL: d_output already is dz. May equal d_output. */
};
/* Compute dz, d_gamma, d_beta and the three vectors of `channels` floats with which d_input = a *
 * dz
 * + b * x + c. */
int device_norm_backward(const struct device_pixels *pixels, const struct device_norm *norm,
                         const struct device_norm_gradient *gradient, const void *x, float *d_gamma,
                         float *d_beta, float *abc, float *partial, void *stream);
int device_norm_backward_apply(const struct device_pixels *pixels, const float *abc, const void *dz,
                               const void *x, void *d_input, void *stream);
/* d_bias = sum over pixels. */
int device_bias_gradient(const struct device_pixels *pixels, const void *d_output, float *d_bias,
                         float *partial, void *stream);

/* ---- device_pool.cu: windows have equal in_ and out_channels ---- */

/* which: the position in its window of each output's maximum, in row order; windows of at most 255
 * pixels. */
int device_max_pool(const struct kernel_window *window, enum device_type type, const void *input,
                    void *output, uint8_t *which, void *stream);
int device_max_pool_backward(const struct kernel_window *window, enum device_type type,
                             const uint8_t *which, const void *d_output, void *d_input,
                             void *stream);
int device_average_pool(const struct kernel_window *window, enum device_type type,
                        const void *input, void *output, void *stream);
int device_average_pool_backward(const struct kernel_window *window, enum device_type type,
                                 const void *d_output, void *d_input, void *stream);

/* The stem: BN (scale, bias), ReLU and max pool in one; intermediate results are never stored. */
int device_stem(const struct kernel_window *window, enum device_type type, const float *scale,
                const float *bias, const void *x, void *output, uint8_t *which, void *stream);
/* Backward through pool and ReLU: dz of BN's output, and the results of device_norm_backward().
 * d_other: NULL, or a second gradient of the output. */
int device_stem_backward(const struct kernel_window *window, enum device_type type,
                         const struct device_norm *norm, const uint8_t *which, const void *x,
                         const void *d_output, const void *d_other, void *dz, float *d_gamma,
                         float *d_beta, float *abc, float *partial, void *stream);

/* ---- device_ends.cu: the loss ---- */

struct device_loss {
    double loss; /* summed over labelled images */
    uint32_t counted, correct, correct_top5, unused;
};
/* kernel_cross_entropy(). labels: -1 for none. gradient_scale: one number in device memory that
 * scales d_logits; d_logits may be NULL. per_image: `images` of the result. */
int device_cross_entropy(enum device_type type, uint32_t images, uint32_t classes,
                         const void *logits, const int32_t *labels, double smoothing,
                         const float *gradient_scale, void *d_logits, struct device_loss *per_image,
                         struct device_loss *total, void *stream);

/* ---- device_optimise.cu ---- */

/* One parameter. Masters, gradients and momenta are FP32, in arenas; compute is the copy that
 * layers read, and gradient what they write, rows of `channels` numbers padded to `padded`. */
struct device_parameter {
    uint64_t offset, count; /* float offset in the arenas */
    void *compute;          /* NULL: layers read the master */
    const void *gradient;   /* NULL: layers write to the arena; else to be multiplied by *unscale */
    enum device_type type, gradient_type;
    uint32_t channels, padded;
    enum kernel_decay decay;
    uint32_t first_chunk, chunk_count;
};

/* Two vectors per thread: successive blocks then read adjacent memory, and the last ones keep few
 * multiprocessors waiting. */
enum { DEVICE_CHUNK_FLOATS = 2048 };

/* One block's part of a parameter. */
struct device_chunk {
    uint32_t parameter, count;
    uint64_t start; /* offset in the arenas */
};

static inline uint32_t device_chunks_of(uint64_t count)
{
    return (uint32_t)((count + DEVICE_CHUNK_FLOATS - 1) / DEVICE_CHUNK_FLOATS);
}

/* Fill in device_chunks_of(count) chunks of a parameter at `offset`. Returns how many they are. */
static inline uint32_t device_chunks(uint32_t parameter, uint64_t offset, uint64_t count,
                                     struct device_chunk *chunks)
{
    const uint32_t made = device_chunks_of(count);

    for (uint32_t i = 0; i < made; i++) {
        const uint64_t start = (uint64_t)i * DEVICE_CHUNK_FLOATS, left = count - start;
        chunks[i].parameter = parameter;
        chunks[i].count = (uint32_t)(left < DEVICE_CHUNK_FLOATS ? left : DEVICE_CHUNK_FLOATS);
        chunks[i].start = offset + start;
    }
    return made;
}

/* All arrays are in device memory. norms: 2 * chunks + parameters + 1 floats. */
struct device_parameters {
    const struct device_parameter *parameters;
    const struct device_chunk *chunks;
    uint32_t parameter_count, chunk_count;
    float *weights, *gradients, *momenta, *norms;
    const float *unscale; /* NULL: 1 */
    /* Two factors with which gradients are collected: of what the arena has, and of the new ones.
     * NULL: 0 and 1. */
    const float *sum;
    bool collected; /* all gradients are in the arena when they are used */
};

/* kernel_sgd() or kernel_lars() on all parameters at once, the rate of weights alone adapted;
 * refresh the compute copies. */
int device_optimise(const struct device_parameters *parameters, const struct kernel_update *update,
                    void *stream);
/* Refresh the compute copies after the masters changed elsewhere. */
int device_renew(const struct device_parameters *parameters, void *stream);
/* Convert the gradients of `count` chunks to FP32 in the arena, from where layers wrote them, or
 * add them to it. */
int device_collect(const struct device_parameters *parameters, uint32_t first, uint32_t count,
                   void *stream);

/* ---- device_wire.cu: between FP32 and another type ---- */

/* to = from * factor */
int device_widen(enum device_type type, uint64_t count, const void *from, float factor, float *to,
                 void *stream);
int device_narrow(enum device_type type, uint64_t count, const float *from, float factor, void *to,
                  void *stream);

/* ---- device_convolution.cu: tensors of whole numbers from -127 to 127 ---- */

/* value / step, rounded and clipped, and the inverse. count: a multiple of 16. */
int device_quantise(enum device_type type, uint64_t count, const void *from, float step, int8_t *to,
                    void *stream);
int device_dequantise(enum device_type type, uint64_t count, const int8_t *from, float step,
                      void *to, void *stream);
/* relu(sum * scale + bias + other) * last, rounded and clipped; vectors have one float per output
 * channel. */
struct device_int8 {
    const float *scale, *bias;
    const int8_t *other; /* NULL: none, and last is not used */
    const float *last;
    bool relu, to_int8;    /* false: the output is of */
    enum device_type type; /* this type, and not rounded */
};
/* Unoptimised; weight as in device_convolution(). */
int device_convolution_int8(const struct kernel_window *window, const struct device_int8 *with,
                            const int8_t *input, const int8_t *weight, void *output, void *stream);

/* ---- device_magnitudes.cu ---- */

/* magnitudes_observe(). magnitudes: in device memory. scratch: 4 bytes of it, 0 before and after.
 */
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

/* ---- device_convolution.cu: what the results of others are compared with ---- */

enum device_noise_kind {
    DEVICE_NOISE_RECTIFIED, /* half of it 0, the rest positive */
    DEVICE_NOISE_SIGNED,
    DEVICE_NOISE_POSITIVE, /* in [0.5, 1); the others are halved up to 12 times, as often as a coin
                            * shows heads */
    DEVICE_NOISE_POISON,   /* NaN; INT8: -128 */
};
/* Numbers below `scale` that do not repeat; in INT8 of 127 times the size. */
struct device_noise {
    enum device_type type;
    enum device_noise_kind kind;
    uint64_t seed;
    float scale;
};
int device_noise(const struct device_noise *noise, uint64_t count, void *to, void *stream);

enum device_way { DEVICE_TO_OUTPUT, DEVICE_TO_INPUT, DEVICE_TO_WEIGHT };

/* A convolution, or one of its gradients: the tensors that it reads; output and input are gradients
 * if so. The input is relu(input * scale + bias + (other, or other * other_scale + other_bias)), in
 * `type`, if there is a scale; the four vectors are of `type`. */
struct device_convolved {
    enum device_way way;
    enum device_type type;
    struct kernel_window window;
    const void *input, *weight, *output;
    const void *scale, *bias, *other, *other_scale, *other_bias;
};
/* Sum and sum of squares of the terms of one element, in FP64. */
struct device_sample {
    double sum, squares;
};
/* Terms of each element, those in the padding included. */
static inline uint64_t device_convolution_terms(const struct kernel_window *w, enum device_way way)
{
    const uint64_t pixels = (uint64_t)w->images * w->out_height * w->out_width;
    const uint32_t channels = way == DEVICE_TO_INPUT ? w->out_channels : w->in_channels;

    return way == DEVICE_TO_WEIGHT ? pixels
                                   : (uint64_t)w->height * w->width * (channels / w->groups);
}
/* The elements at `positions` of the result. */
int device_convolution_samples(const struct device_convolved *of, const uint64_t *positions,
                               uint32_t count, struct device_sample *samples, void *stream);

#endif
