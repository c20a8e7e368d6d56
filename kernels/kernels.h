/* SPDX-License-Identifier: Apache-2.0
 *
 * kernels: every operation of a network in plain C, forward and backward. They define what is
 * correct: the other backends are tested against these, and the `reference` backend runs on them.
 * Clear before fast; still, matrix products are blocked so that small networks train.
 *
 * Tensors are dense, images x channels x height x width (NCHW). "plane" is height * width. Long
 * sums are kept in double. Kernels neither allocate nor keep state; any thread, each kernel
 * single-threaded.
 *
 * EVERY backward kernel ADDS to the gradients it is passed (d_input, d_weight, ...), since a tensor
 * used twice gets the sum of both; the caller zeroes them first.
 *
 * The same source serves float and, with KERNELS_DOUBLE, double: the unit test is built that way
 * and differentiates each kernel numerically.
 */
#ifndef IOBENCH_KERNELS_KERNELS_H
#define IOBENCH_KERNELS_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef KERNELS_DOUBLE
typedef double real;
#else
typedef float real;
#endif

/* ---- convolutions ---- */

/* Sliding window of a convolution or pool. Output pixel (y, x) reads input rows y * stride -
 * pad_top + [0, height); padding surrounds the input on all sides. */
struct kernel_window {
    uint32_t images;
    uint32_t in_channels, in_height, in_width;
    uint32_t out_channels, out_height, out_width;
    uint32_t height, width, stride;
    uint32_t pad_top, pad_left, pad_bottom, pad_right; /* kernels need not know the last two */
    uint32_t groups;    /* convolutions: group g of the output reads only group g of the input */
    bool count_padding; /* average pools: divide by height * width even at borders */
};

/* Cross-correlation, which all frameworks call convolution. weight: out_channels x (in_channels /
 * groups) x height x width; bias: out_channels or NULL. workspace: kernel_convolution_workspace()
 * reals. */
size_t kernel_convolution_workspace(const struct kernel_window *window);
void kernel_convolution(const struct kernel_window *window, const real *input, const real *weight,
                        const real *bias, real *output, real *workspace);
/* d_input may be NULL (first layer), d_bias too. */
void kernel_convolution_backward(const struct kernel_window *window, const real *input,
                                 const real *weight, const real *d_output, real *d_input,
                                 real *d_weight, real *d_bias, real *workspace);

/* ---- pools ---- */

/* Padding is never the maximum. Of equal values, the first in row order gets the gradient. Every
 * window must overlap the input. */
void kernel_max_pool(const struct kernel_window *window, const real *input, real *output);
void kernel_max_pool_backward(const struct kernel_window *window, const real *input,
                              const real *d_output, real *d_input);
void kernel_average_pool(const struct kernel_window *window, const real *input, real *output);
void kernel_average_pool_backward(const struct kernel_window *window, const real *d_output,
                                  real *d_input);

/* ---- batch norm: Ioffe and Szegedy 2015 ---- */

/* output = gamma * (input - mean) / sqrt(variance + epsilon) + beta, with this batch's mean and
 * (biased) variance, `channels` values each, returned for the backward pass and the statistics. */
void kernel_batch_norm(uint32_t images, uint32_t channels, size_t plane, double epsilon,
                       const real *input, const real *gamma, const real *beta, real *output,
                       real *mean, real *variance);
void kernel_batch_norm_backward(uint32_t images, uint32_t channels, size_t plane, double epsilon,
                                const real *input, const real *gamma, const real *mean,
                                const real *variance, const real *d_output, real *d_input,
                                real *d_gamma, real *d_beta);
/* The same with given statistics. */
void kernel_batch_norm_infer(uint32_t images, uint32_t channels, size_t plane, double epsilon,
                             const real *input, const real *gamma, const real *beta,
                             const real *mean, const real *variance, real *output);
/* running = (1 - momentum) * running + momentum * new; the new variance is made unbiased by count /
 * (count - 1), count = images * plane (unless that is 1). */
void kernel_batch_norm_statistics(uint32_t channels, size_t count, double momentum,
                                  const real *mean, const real *variance, real *running_mean,
                                  real *running_variance);

/* ---- pointwise ---- */

/* rows: images x plane x 3 bytes, RGB. output: images x 3 x plane; (byte - mean) / deviation. */
void kernel_normalise(uint32_t images, size_t plane, const uint8_t *rows, const float mean[3],
                      const float deviation[3], real *output);

void kernel_relu(size_t count, const real *input, real *output);
/* The gradient at 0 is 0. NaN stays NaN, so that a diverged training run is visible. */
void kernel_relu_backward(size_t count, const real *output, const real *d_output, real *d_input);

void kernel_add(size_t count, const real *a, const real *b, real *sum);
/* sum += term: the backward pass of an addition, for each operand. */
void kernel_accumulate(size_t count, const real *term, real *sum);

/* One input of a concatenation: `part` reals of each image, at `offset` of its `whole` reals. */
void kernel_concat(uint32_t images, size_t part, size_t offset, size_t whole, const real *input,
                   real *output);
void kernel_concat_backward(uint32_t images, size_t part, size_t offset, size_t whole,
                            const real *d_output, real *d_input);

/* Inverted dropout (Srivastava et al. 2014, section 10): kept values are divided by 1 - rate.
 * Whether element `index` (in NCHW order of the whole batch) is kept is a pure function of key and
 * index, so that every layout, thread count and device drops the same ones. key:
 * kernel_dropout_key(seed, step, node). */
uint64_t kernel_dropout_key(uint64_t seed, uint64_t step, uint32_t node);
bool kernel_dropout_keeps(uint64_t key, uint64_t index, double rate);
/* Return the least 32-bit hash with which an element is kept. */
static inline uint32_t kernel_dropout_least(double rate)
{
    return (uint32_t)(rate * 0x1p32);
}
void kernel_dropout(size_t count, uint64_t key, double rate, const real *input, real *output);
void kernel_dropout_backward(size_t count, uint64_t key, double rate, const real *d_output,
                             real *d_input);

/* ---- fully connected layers: output = input * weight^T + bias; weight: outputs x inputs ---- */

/* workspace: outputs * inputs reals. d_input may be NULL. */
void kernel_fully_connected(uint32_t images, size_t inputs, size_t outputs, const real *input,
                            const real *weight, const real *bias, real *output, real *workspace);
void kernel_fully_connected_backward(uint32_t images, size_t inputs, size_t outputs,
                                     const real *input, const real *weight, const real *d_output,
                                     real *d_input, real *d_weight, real *d_bias);

/* ---- LRN ---- */

/* Across channels, Krizhevsky et al. 2012, section 3.3, with alpha divided by the size as in Caffe
 * and everything since: output = input * (k + alpha / size * sum of input^2 over the `size`
 * channels around)^-beta. size is odd. */
struct kernel_lrn {
    uint32_t images, channels;
    size_t plane;
    uint32_t size;
    double alpha, beta, k;
};

void kernel_lrn(const struct kernel_lrn *lrn, const real *input, real *output);
void kernel_lrn_backward(const struct kernel_lrn *lrn, const real *input, const real *d_output,
                         real *d_input);

/* ---- loss ---- */

struct kernel_loss {
    double loss;      /* mean over labelled images */
    uint32_t counted; /* images whose label is not -1 */
    uint32_t correct, correct_top5;
};

/* Softmax and cross-entropy against (1 - smoothing) * one-hot + smoothing / classes (Szegedy et al.
 * 2016, section 7). d_logits may be NULL; it is SET to the gradient of the mean loss, zero for
 * unlabelled images. An image is correct if fewer than 1 (or 5) classes have a larger logit, or an
 * equal one with a lower number; a NaN logit is never correct. */
struct kernel_loss kernel_cross_entropy(uint32_t images, uint32_t classes, const real *logits,
                                        const int32_t *labels, double smoothing, real *d_logits);

/* ---- updates: one parameter tensor; gradients are multiplied by `scale` first ---- */

/* Which weight decay applies to a parameter; recipes differ in biases of fully connected layers. */
enum kernel_decay {
    KERNEL_DECAY_NONE, /* BN, biases of convolutions */
    KERNEL_DECAY_FC_BIAS,
    KERNEL_DECAY_WEIGHT,
};

/* An update of all parameters, by a backend. */
struct kernel_update {
    bool adapts;              /* LARS; false: SGD */
    bool decays_fc_bias;      /* weight decay also applies to biases of fully connected layers */
    double rate, rate_before; /* of this step and the previous one: LARS rescales momentum */
    double momentum, decay, eta;
    double gradient_scale; /* 1 / ranks after a sum over ranks */
    /* Maximum norm of the scaled gradients over all parameters: longer ones are shortened to it. 0:
     * none. */
    double clip_norm;
};

/* momentum = rate_of_decay * momentum + gradient + decay * weight; weight -= rate * momentum.
 * (Sutskever et al. 2013 as in PyTorch: the rate is not part of the momentum.) */
void kernel_sgd(size_t count, double rate, double momentum, double decay, double scale,
                const real *gradient, real *weight, real *momenta);

/* The sum of their squares. */
double kernel_squares(size_t count, const real *values);

/* LARS (You, Gitman, Ginsburg 2017): a tensor's rate is multiplied by eta * |weight| / (|gradient|
 * + decay * |weight|), or by 1 if either norm or eta is 0 (parameters of BN, biases). The rate is
 * part of the momentum, which is rescaled by rate / rate_before so that a change of rate takes
 * effect at once: momentum = m * rate / rate_before * momentum + rate * local
 * * (gradient + decay * weight); weight -= momentum. rate_before 0: no rescaling. */
void kernel_lars(size_t count, double rate, double rate_before, double momentum, double decay,
                 double eta, double scale, const real *gradient, real *weight, real *momenta);

/* ---- magnitudes: a histogram of a tensor's values over many batches ---- */

enum { MAGNITUDES_BINS = 2048 };

/* When a value exceeds the range, the range doubles and pairs of bins are merged; so at least half
 * of the bins are in use. Zeroed: no values yet. */
struct magnitudes {
    double range;   /* end of the last bin; 0: only zeros so far */
    double largest; /* infinite: a value was not finite, and the rest is meaningless */
    uint64_t zeros;
    uint64_t counts[MAGNITUDES_BINS];
};

void magnitudes_observe(struct magnitudes *magnitudes, uint64_t count, const float *values);

#endif
