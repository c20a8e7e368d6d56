/* SPDX-License-Identifier: Apache-2.0
 *
 * Results are compared with the reference kernels: elements one by one, all numbers per channel,
 * and that every element was written.
 *
 * Tolerance. u is the unit round-off of the type in which numbers are multiplied (FP32 2^-24, TF32
 * and FP16 2^-11, BF16 2^-8), n the number of terms of an element, R the root of the sum of their
 * squares: the noise has random signs, so R is about the size of the sum. An element may be off by
 * 8 u (|element| + R) + 2^-20 sqrt(n) R: roundings of inputs, between fused operations, and of the
 * result; and the random roundings of a sum in FP32, expected within 2^-24 sqrt(n) R, 16 times over
 * for tensor cores, which truncate. Leaving out one of m equal parts of a sum changes it by
 * about R / sqrt(m), in FP16 more than that for parts up to some thousand.
 */
#include "trainer/cuda/dnn_trial.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/random.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROUNDS = 2,
    LAUNCHES = 8, /* of a round: queued, as in a step */
    SLOW = 2,
    REPEATS = 3,
    SAMPLES = 64, /* elements compared */
};

static const uint64_t compared_bytes = 4 << 20; /* of a tensor */

static const double start_ms = 0.05; /* a single launch also waits for the host */

/* ---- shapes ---- */

/* The size of each tensor, and the fusions that must all be present for it. */
static const struct {
    enum dnn_extent extent;
    uint32_t fusion;
} tensor_rows[DNN_BESIDE] = {
    [DNN_INPUT] = {DNN_IN_PIXELS, 0},
    [DNN_WEIGHTS] = {DNN_FILTER, 0},
    [DNN_OUTPUT] = {DNN_OUT_PIXELS, 0},
    [DNN_SUMS] = {DNN_OUT_CHANNELS, DNN_STATISTICS},
    [DNN_SQUARES] = {DNN_OUT_CHANNELS, DNN_STATISTICS},
    [DNN_SCALE] = {DNN_OUT_CHANNELS, DNN_SCALED},
    [DNN_BIAS] = {DNN_OUT_CHANNELS, DNN_BIASED},
    [DNN_OTHER] = {DNN_OUT_PIXELS, DNN_ADDED}, /* the input's pixels if d_input is the output */
    [DNN_LAST] = {DNN_OUT_CHANNELS, DNN_RESCALED},
    [DNN_X] = {DNN_IN_PIXELS, DNN_NORM},
    [DNN_RESIDUAL] = {DNN_IN_PIXELS, DNN_SUMMED},
    [DNN_SUM] = {DNN_IN_PIXELS, DNN_PROLOGUE | DNN_SUMMED},
    [DNN_IN_SCALE] = {DNN_IN_CHANNELS, DNN_PROLOGUE},
    [DNN_IN_BIAS] = {DNN_IN_CHANNELS, DNN_PROLOGUE},
    [DNN_MEAN] = {DNN_IN_CHANNELS, DNN_NORM},
    [DNN_INVERSE] = {DNN_IN_CHANNELS, DNN_NORM},
    [DNN_GAMMA] = {DNN_IN_CHANNELS, DNN_NORM},
    [DNN_BETA] = {DNN_IN_CHANNELS, DNN_NORM},
    [DNN_D_GAMMA] = {DNN_IN_CHANNELS, DNN_NORM},
    [DNN_D_BETA] = {DNN_IN_CHANNELS, DNN_NORM},
    [DNN_A] = {DNN_IN_CHANNELS, DNN_NORM},
    [DNN_B] = {DNN_IN_CHANNELS, DNN_NORM},
    [DNN_C] = {DNN_IN_CHANNELS, DNN_NORM},
};

static bool is_beside(enum dnn_tensor which)
{
    return which >= DNN_BESIDE;
}

/* For a tensor of the residual's BN, return its counterpart of the preceding BN. */
static enum dnn_tensor twin_of(enum dnn_tensor which)
{
    return is_beside(which) ? (enum dnn_tensor)(which - (DNN_BESIDE - DNN_IN_SCALE)) : which;
}

bool dnn_takes(const struct dnn_shape *shape, enum dnn_tensor which)
{
    const uint32_t fusion = tensor_rows[twin_of(which)].fusion | (is_beside(which) ? DNN_DUAL : 0);

    return (shape->fusion & fusion) == fusion;
}

bool dnn_writes(const struct dnn_shape *shape, enum dnn_tensor which)
{
    switch (shape->kind) {
    case DNN_FORWARD:
        return which == DNN_OUTPUT || which == DNN_SUMS || which == DNN_SQUARES || which == DNN_SUM;
    case DNN_WEIGHT:
        return which == DNN_WEIGHTS;
    case DNN_DATA:
        break;
    }
    return which == DNN_INPUT || twin_of(which) >= DNN_D_GAMMA;
}

enum dnn_extent dnn_extent(const struct dnn_shape *shape, enum dnn_tensor which)
{
    return which == DNN_OTHER && shape->kind == DNN_DATA ? DNN_IN_PIXELS
                                                         : tensor_rows[twin_of(which)].extent;
}

/* Numbers per channel are FP32, except those of a prologue, which cuDNN takes in the tensors' own
 * type. */
enum device_type dnn_type(const struct dnn_shape *shape, enum dnn_tensor which)
{
    const bool tensor = dnn_extent(shape, which) < DNN_IN_CHANNELS;
    const enum dnn_tensor twin = twin_of(which);

    if (tensor && (which == DNN_OUTPUT ? shape->int8_output : shape->int8))
        return DEVICE_INT8;
    return tensor || twin == DNN_IN_SCALE || twin == DNN_IN_BIAS ? shape->type : DEVICE_FP32;
}

void dnn_dims(const struct dnn_shape *shape, enum dnn_extent extent, int64_t dims[4])
{
    const struct kernel_window *w = &shape->window;
    const int64_t all[][4] = {
        [DNN_IN_PIXELS] = {w->images, w->in_channels, w->in_height, w->in_width},
        [DNN_OUT_PIXELS] = {w->images, w->out_channels, w->out_height, w->out_width},
        [DNN_FILTER] = {w->out_channels, w->in_channels / w->groups, w->height, w->width},
        [DNN_IN_CHANNELS] = {1, w->in_channels, 1, 1},
        [DNN_OUT_CHANNELS] = {1, w->out_channels, 1, 1}};

    for (int i = 0; i < 4; i++)
        dims[i] = all[extent][i];
}

uint64_t dnn_count(const struct dnn_shape *shape, enum dnn_tensor which)
{
    int64_t dims[4];

    dnn_dims(shape, dnn_extent(shape, which), dims);
    return (uint64_t)(dims[0] * dims[1] * dims[2] * dims[3]);
}

uint64_t dnn_tensor_bytes(const struct dnn_shape *shape, enum dnn_tensor which)
{
    return dnn_count(shape, which) * device_type_bytes(dnn_type(shape, which));
}

/* ---- trials ---- */

/* Fill a tensor with noise; poison results. */
static int fill_noise(const struct dnn_trial *trial, enum dnn_tensor which)
{
    const struct dnn_shape *shape = trial->shape;
    struct device_noise noise = {.type = dnn_type(shape, which),
                                 .kind = DEVICE_NOISE_SIGNED,
                                 .seed = (uint64_t)which,
                                 .scale = 1};

    if (dnn_writes(shape, which))
        noise.kind = DEVICE_NOISE_POISON;
    else if (dnn_extent(shape, which) >= DNN_IN_CHANNELS)
        noise.kind = DEVICE_NOISE_POSITIVE;
    else if (which == DNN_INPUT && !(shape->fusion & DNN_PROLOGUE))
        noise.kind = DEVICE_NOISE_RECTIFIED;
    if (which == DNN_SCALE && shape->int8) /* results of some 40 */
        noise.scale =
            0.04f / sqrtf((float)device_convolution_terms(&shape->window, DEVICE_TO_OUTPUT));
    return device_noise(&noise, dnn_count(shape, which), trial->tensors.at[which],
                        trial->runtime->stream);
}

int dnn_trial_open(struct dnn_trial *trial, const struct runtime *runtime,
                   const struct dnn_shape *shape, uint64_t workspace_bytes)
{
    int code = 0;

    *trial =
        (struct dnn_trial){.shape = shape, .runtime = runtime, .workspace_bytes = workspace_bytes};
    for (enum dnn_tensor i = 0; i < DNN_TENSORS && code == 0; i++) {
        if (!dnn_takes(shape, i))
            continue;
        trial->tensors.at[i] = runtime_allocate(dnn_tensor_bytes(shape, i));
        code = trial->tensors.at[i] ? fill_noise(trial, i) : -ENOMEM;
    }
    if (code == 0)
        code = runtime_event_create(&trial->first);
    if (code == 0)
        code = runtime_event_create(&trial->last);
    if (code)
        return code;
    trial->tensors.workspace = runtime_allocate(workspace_bytes);
    return trial->tensors.workspace ? 0 : -ENOMEM;
}

void dnn_trial_close(struct dnn_trial *trial)
{
    if (trial->runtime)
        runtime_wait(trial->runtime->stream); /* after an error some work may still use it */
    for (int i = 0; i < DNN_TENSORS; i++)
        runtime_release(trial->tensors.at[i]);
    runtime_release(trial->tensors.workspace);
    runtime_event_destroy(trial->first);
    runtime_event_destroy(trial->last);
}

/* ---- verification ---- */

struct verifier {
    const struct dnn_trial *trial;
    const struct dnn_shape *shape;
    void *stream;
    double slack; /* 8 u */
    char *wrong;
    int code;
};

/* What is right, and how far off it may be. */
struct element {
    double value, within;
    bool or_zero; /* where the sign before a ReLU is a matter of rounding */
};

static enum dnn_tensor result_of(const struct dnn_shape *shape)
{
    return shape->kind == DNN_FORWARD ? DNN_OUTPUT
           : shape->kind == DNN_DATA  ? DNN_INPUT
                                      : DNN_WEIGHTS;
}

/* SAMPLES at most: both ends, and one at random in each part between. */
static uint32_t choose_positions(uint64_t count, uint64_t positions[SAMPLES])
{
    const uint64_t part = count / SAMPLES;

    for (uint64_t i = 0; i < SAMPLES && i < count; i++)
        positions[i] = part > 0 ? i * part + random_mix(i) % part : i;
    positions[0] = 0;
    if (part > 0)
        positions[SAMPLES - 1] = count - 1;
    return count < SAMPLES ? (uint32_t)count : SAMPLES;
}

/* Copy from the device. */
static void transfer(struct verifier *v, void *to, const void *from, uint64_t bytes)
{
    if (v->code == 0)
        v->code = runtime_copy(to, from, bytes, v->stream);
    if (v->code == 0)
        v->code = runtime_wait(v->stream);
}

static double value_of_bits(enum device_type type, uint32_t bits)
{
    const uint32_t wide = type == DEVICE_BF16 ? bits << 16 : bits;
    const int exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
    float value;

    memcpy(&value, &wide, sizeof value);
    if (type == DEVICE_INT8)
        return (int8_t)bits;
    if (type != DEVICE_FP16)
        return (double)value;
    const double size = exponent == 31 ? (fraction ? NAN : INFINITY)
                        : exponent     ? ldexp(fraction | 0x400, exponent - 25)
                                       : ldexp(fraction, -24);
    return bits & 0x8000 ? -size : size;
}

/* Elements of a tensor; of one with a number per channel, those of the positions' channels. */
static void fetch_samples(struct verifier *v, enum dnn_tensor which, const uint64_t *positions,
                          uint32_t count, double *values)
{
    const bool of_channels = dnn_extent(v->shape, which) >= DNN_IN_CHANNELS;
    const uint64_t all = dnn_count(v->shape, which), size = dnn_tensor_bytes(v->shape, which) / all;
    uint32_t bits[SAMPLES] = {0}; /* little-endian, as the GPU */

    for (uint32_t i = 0; i < count && v->code == 0; i++) {
        const uint64_t at = of_channels ? positions[i] % all : positions[i];
        v->code = runtime_copy(&bits[i], (const char *)v->trial->tensors.at[which] + at * size,
                               size, v->stream);
    }
    if (v->code == 0)
        v->code = runtime_wait(v->stream);
    for (uint32_t i = 0; i < count; i++)
        values[i] = value_of_bits(dnn_type(v->shape, which), bits[i]);
}

static double tolerance(const struct verifier *v, double value, double root, double terms)
{
    return v->slack * (fabs(value) + root) + ldexp(sqrt(terms), -20) * root;
}

static bool is_off(const struct verifier *v, const char *what, uint64_t at,
                   const struct element *right, double found)
{
    if (fabs(found - right->value) <= right->within ||
        (right->or_zero && fabs(found) <= right->within)) /* NaN is neither */
        return false;
    snprintf(v->wrong, DNN_WRONG_BYTES,
             "computes %.5g instead of %.5g (+- %.1g) as number %llu of %s", found, right->value,
             right->within, (unsigned long long)at, what);
    return true;
}

static void compare_samples(struct verifier *v, const char *what, enum dnn_tensor which,
                            const uint64_t *positions, uint32_t count, const struct element *right)
{
    double found[SAMPLES];

    fetch_samples(v, which, positions, count, found);
    for (uint32_t i = 0; i < count && v->code == 0 && !v->wrong[0]; i++)
        is_off(v, what, positions[i], &right[i], found[i]);
}

/* Compute the convolution alone at these positions. */
static void convolve(struct verifier *v, const uint64_t *positions, uint32_t count,
                     struct element *right)
{
    void *const *at = v->trial->tensors.at;
    const bool prologue = (v->shape->fusion & DNN_PROLOGUE) != 0;
    const bool dual = prologue && v->shape->fusion & DNN_DUAL;
    const struct device_convolved of = {
        .way = v->shape->kind == DNN_FORWARD ? DEVICE_TO_OUTPUT
               : v->shape->kind == DNN_DATA  ? DEVICE_TO_INPUT
                                             : DEVICE_TO_WEIGHT,
        .type = v->shape->int8 ? DEVICE_INT8 : v->shape->type,
        .window = v->shape->window,
        .input = at[DNN_INPUT],
        .weight = at[DNN_WEIGHTS],
        .output = at[DNN_OUTPUT],
        .scale = prologue ? at[DNN_IN_SCALE] : NULL,
        .bias = prologue ? at[DNN_IN_BIAS] : NULL,
        .other = prologue && v->shape->fusion & DNN_SUMMED ? at[DNN_RESIDUAL] : NULL,
        .other_scale = dual ? at[dnn_beside(DNN_IN_SCALE)] : NULL,
        .other_bias = dual ? at[dnn_beside(DNN_IN_BIAS)] : NULL};
    const double terms = (double)device_convolution_terms(&of.window, of.way);
    const uint64_t bytes = count * sizeof *positions;
    struct device_sample samples[SAMPLES];
    struct device_sample *results = runtime_allocate(sizeof samples + SAMPLES * sizeof *positions);
    uint64_t *places = results ? (uint64_t *)(void *)(results + SAMPLES) : NULL;

    if (v->code == 0)
        v->code = results ? runtime_copy(places, positions, bytes, v->stream) : -ENOMEM;
    if (v->code == 0)
        v->code = device_convolution_samples(&of, places, count, results, v->stream);
    transfer(v, samples, results, count * sizeof *samples);
    for (uint32_t i = 0; i < count && v->code == 0; i++)
        right[i] = (struct element){
            samples[i].sum, tolerance(v, samples[i].sum, sqrt(samples[i].squares), terms), false};
    runtime_release(results);
}

/* value *= or += each element's number in a tensor. */
static void multiply_numbers(struct verifier *v, enum dnn_tensor by, const uint64_t *positions,
                             uint32_t count, struct element *right)
{
    double factors[SAMPLES];

    fetch_samples(v, by, positions, count, factors);
    for (uint32_t i = 0; i < count; i++) {
        right[i].value *= factors[i];
        right[i].within *= fabs(factors[i]);
    }
}

static void add_numbers(struct verifier *v, enum dnn_tensor more, const uint64_t *positions,
                        uint32_t count, struct element *right)
{
    double terms[SAMPLES];

    fetch_samples(v, more, positions, count, terms);
    for (uint32_t i = 0; i < count; i++) {
        right[i].value += terms[i];
        right[i].within += v->slack * fabs(terms[i]);
    }
}

/* BN's output: (x - mean) * inverse * gamma + beta. */
static void add_norm(struct verifier *v, bool beside, const uint64_t *positions, uint32_t count,
                     struct element *right)
{
    static const enum dnn_tensor vectors[] = {DNN_MEAN, DNN_INVERSE, DNN_GAMMA, DNN_BETA};
    double x[SAMPLES], rows[4][SAMPLES];

    fetch_samples(v, beside ? DNN_RESIDUAL : DNN_X, positions, count, x);
    for (int i = 0; i < 4; i++)
        fetch_samples(v, beside ? dnn_beside(vectors[i]) : vectors[i], positions, count, rows[i]);
    for (uint32_t i = 0; i < count; i++) {
        const double off = (x[i] - rows[0][i]) * rows[1][i] * rows[2][i];
        right[i].value += off + rows[3][i];
        right[i].within += v->slack * (fabs(off) + fabs(rows[3][i]));
    }
}

static void verify_elements(struct verifier *v)
{
    struct element right[SAMPLES] = {0}, before[SAMPLES] = {0};
    uint64_t positions[SAMPLES];
    const uint32_t fusion = v->shape->fusion;
    const bool forward = v->shape->kind == DNN_FORWARD;
    const enum dnn_tensor result = result_of(v->shape);
    const uint32_t count = choose_positions(dnn_count(v->shape, result), positions);

    convolve(v, positions, count, right);
    if (forward && fusion & DNN_SCALED)
        multiply_numbers(v, DNN_SCALE, positions, count, right);
    if (forward && fusion & DNN_BIASED)
        add_numbers(v, DNN_BIAS, positions, count, right);
    if (fusion & DNN_ADDED)
        add_numbers(v, DNN_OTHER, positions, count, right);
    for (uint32_t i = 0; i < count && forward && fusion & DNN_RECTIFIED; i++)
        right[i].value = fmax(right[i].value, 0);
    if (forward && fusion & DNN_RESCALED)
        multiply_numbers(v, DNN_LAST, positions, count, right);
    for (uint32_t i = 0; i < count && v->shape->int8_output; i++) {
        right[i].value = fmin(fmax(right[i].value, INT8_MIN), INT8_MAX);
        right[i].within += 1; /* however it is rounded */
    }
    if (fusion & DNN_NORM) { /* back through the ReLU before the convolution */
        add_norm(v, false, positions, count, before);
        if (fusion & DNN_DUAL)
            add_norm(v, true, positions, count, before);
        else if (fusion & DNN_SUMMED)
            add_numbers(v, DNN_RESIDUAL, positions, count, before);
    }
    for (uint32_t i = 0; i < count && fusion & DNN_NORM; i++) {
        right[i].or_zero = fabs(before[i].value) <= before[i].within;
        if (before[i].value <= 0 && !right[i].or_zero)
            right[i] = (struct element){0};
    }
    compare_samples(v, "its result", result, positions, count, right);
}

/* Compute sums and sums of squares of a tensor, 2 x channels; by the kernel of BN. */
static double *moments_of(struct verifier *v, enum dnn_tensor which,
                          const struct device_pixels *pixels)
{
    enum { ROWS = 8 };
    const uint64_t channels = pixels->channels, bytes = ROWS * channels * sizeof(float);
    float *rows = runtime_allocate(bytes);
    float *partial = runtime_allocate(device_partial_floats(pixels) * sizeof *partial);
    float *host = memory_array(2 * channels, sizeof *host);
    double *moments = memory_array(2 * channels, sizeof *moments);
    const double count = (double)pixels->count;

    if (v->code == 0)
        v->code =
            rows && partial && host && moments ? runtime_zero(rows, bytes, v->stream) : -ENOMEM;
    if (v->code == 0) {
        const struct device_norm norm = {.momentum = 1,
                                         .epsilon = 1,
                                         .running_mean = rows,
                                         .running_variance = rows + channels,
                                         .mean = rows + 2 * channels,
                                         .inverse = rows + 3 * channels,
                                         .scale = rows + 4 * channels,
                                         .bias = rows + 5 * channels,
                                         .gamma = rows + 6 * channels,
                                         .beta = rows + 7 * channels};
        v->code =
            device_norm_statistics(pixels, &norm, v->trial->tensors.at[which], partial, v->stream);
    }
    transfer(v, host, rows, 2 * channels * sizeof *host);
    for (uint64_t c = 0; c < channels && v->code == 0; c++) {
        const double mean = (double)host[c], variance = (double)host[channels + c];
        moments[c] = mean * count;
        moments[channels + c] = variance * fmax(count - 1, 1) + mean * mean * count;
        if (!isfinite(mean) && !v->wrong[0])
            snprintf(v->wrong, DNN_WRONG_BYTES,
                     "leaves numbers of channel %llu of %s unwritten or not finite",
                     (unsigned long long)c, which == DNN_SUM ? "the sum" : "its result");
    }
    runtime_release(rows);
    runtime_release(partial);
    free(host);
    return moments;
}

static struct device_pixels pixels_of(const struct dnn_shape *shape, enum dnn_tensor which)
{
    int64_t dims[4];

    dnn_dims(shape, dnn_extent(shape, which), dims);
    return (struct device_pixels){shape->type, (uint32_t)dims[1],
                                  (uint64_t)(dims[0] * dims[2] * dims[3])};
}

/* The input of the convolution, which it stores for others. */
static void verify_sum(struct verifier *v)
{
    struct element right[SAMPLES] = {0};
    uint64_t positions[SAMPLES];
    const struct device_pixels pixels = pixels_of(v->shape, DNN_SUM);
    const uint32_t count = choose_positions(dnn_count(v->shape, DNN_SUM), positions);

    for (int beside = 0; beside < 2; beside++) {
        struct element norm[SAMPLES] = {0};
        add_numbers(v, beside ? DNN_RESIDUAL : DNN_INPUT, positions, count, norm);
        if (!beside || v->shape->fusion & DNN_DUAL) {
            multiply_numbers(v, beside ? dnn_beside(DNN_IN_SCALE) : DNN_IN_SCALE, positions, count,
                             norm);
            add_numbers(v, beside ? dnn_beside(DNN_IN_BIAS) : DNN_IN_BIAS, positions, count, norm);
        }
        for (uint32_t i = 0; i < count; i++) {
            right[i].value += norm[i].value;
            right[i].within += norm[i].within;
        }
    }
    for (uint32_t i = 0; i < count; i++)
        right[i].value = fmax(right[i].value, 0);
    compare_samples(v, "the sum", DNN_SUM, positions, count, right);
    if (v->code == 0 && !v->wrong[0])
        free(moments_of(v, DNN_SUM, &pixels));
}

static float *fetch_row(struct verifier *v, enum dnn_tensor which)
{
    const uint64_t bytes = dnn_tensor_bytes(v->shape, which);
    float *row = memory_zeroed(bytes);

    if (!row)
        v->code = -ENOMEM;
    transfer(v, row, v->trial->tensors.at[which], bytes);
    return row;
}

static void verify_statistics(struct verifier *v, const double *moments,
                              const struct device_pixels *pixels)
{
    float *sums = fetch_row(v, DNN_SUMS), *squares = fetch_row(v, DNN_SQUARES);

    for (uint32_t c = 0; c < pixels->channels && v->code == 0 && !v->wrong[0]; c++) {
        const double sum = moments[c], square = moments[pixels->channels + c];
        const struct element sum_right = {
            sum, tolerance(v, sum, sqrt(square), (double)pixels->count), false};
        const struct element square_right = {square, v->slack * square, false};
        if (!is_off(v, "the sums", c, &sum_right, (double)sums[c]))
            is_off(v, "the sums of squares", c, &square_right, (double)squares[c]);
    }
    free(sums);
    free(squares);
}

enum { ROW_D_GAMMA, ROW_D_BETA, ROW_ABC, NORM_ROWS = ROW_ABC + 3 };

/* Gradients of gamma and beta, and a, b, c made of them: kernels/launch.cuh. |x| is below 1. */
static void verify_norm(struct verifier *v, bool beside, const double *moments,
                        const struct device_pixels *pixels)
{
    static const enum dnn_tensor tensors[] = {DNN_D_GAMMA, DNN_D_BETA, DNN_A, DNN_B, DNN_C};
    static const char *const names[] = {"d_gamma", "d_beta", "a", "b", "c"};
    const uint64_t channels = pixels->channels;
    const double count = (double)pixels->count;
    const enum dnn_tensor mean_of = beside ? dnn_beside(DNN_MEAN) : DNN_MEAN;
    const enum dnn_tensor inverse_of = beside ? dnn_beside(DNN_INVERSE) : DNN_INVERSE;
    void *const *at = v->trial->tensors.at;
    const int off = beside ? DNN_BESIDE - DNN_IN_SCALE : 0;
    const struct device_norm norm = {
        .gamma = at[DNN_GAMMA + off], .mean = at[DNN_MEAN + off], .inverse = at[DNN_INVERSE + off]};
    const struct device_norm_gradient gradient = {.d_output = at[DNN_INPUT]};
    const uint64_t bytes = NORM_ROWS * channels * sizeof(float);
    float *rows = runtime_allocate(bytes), *right = memory_zeroed(bytes), *found[NORM_ROWS];
    float *partial = runtime_allocate(device_partial_floats(pixels) * sizeof *partial);
    float *means = fetch_row(v, mean_of), *inverses = fetch_row(v, inverse_of);

    /* What the kernel of BN computes from the engine's own dz. */
    if (v->code == 0)
        v->code = rows && partial && right
                      ? device_norm_backward(
                            pixels, &norm, &gradient, at[beside ? DNN_RESIDUAL : DNN_X], rows,
                            rows + channels, rows + ROW_ABC * channels, partial, v->stream)
                      : -ENOMEM;
    transfer(v, right, rows, bytes);
    runtime_release(rows);
    runtime_release(partial);
    for (int i = 0; i < NORM_ROWS; i++)
        found[i] = fetch_row(v, beside ? dnn_beside(tensors[i]) : tensors[i]);
    for (uint64_t c = 0; c < channels && v->code == 0 && !v->wrong[0]; c++) {
        const double mean = (double)means[c], inverse = (double)inverses[c];
        const double a = (double)right[ROW_ABC * channels + c];
        const double root = sqrt(moments[channels + c]);
        const double d_gamma = (double)right[c], d_beta = (double)right[channels + c];
        const double b = (double)right[(ROW_ABC + 1) * channels + c];
        double within[NORM_ROWS];
        within[0] =
            inverse * (1 + fabs(mean)) * tolerance(v, 0, root, count) + v->slack * fabs(d_gamma);
        within[1] = tolerance(v, d_beta, root, count);
        within[2] = v->slack * fabs(a);
        within[3] = a * inverse * within[0] / count + v->slack * fabs(b);
        within[4] = a * within[1] / count + fabs(mean) * within[3] +
                    v->slack * (fabs(a * d_beta / count) + fabs(b * mean));
        for (int i = 0; i < NORM_ROWS && !v->wrong[0]; i++) {
            const struct element element = {(double)right[(uint64_t)i * channels + c], within[i],
                                            false};
            is_off(v, names[i], c, &element, (double)found[i][c]);
        }
    }
    for (int i = 0; i < NORM_ROWS; i++)
        free(found[i]);
    free(means);
    free(inverses);
    free(right);
}

/* ---- choice ---- */

static int time_launches(const struct dnn_trial *trial, const struct dnn_candidates *candidates,
                         uint32_t which, int launches, double *milliseconds)
{
    void *stream = trial->runtime->stream;
    double elapsed = 0;
    int code = runtime_event_record(trial->first, stream);

    for (int launch = 0; launch < launches && code == 0; launch++)
        code = candidates->start(candidates->context, which, &trial->tensors);
    if (code == 0)
        code = runtime_event_record(trial->last, stream);
    if (code == 0)
        code = runtime_event_synchronise(trial->last);
    if (code == 0)
        code = runtime_event_elapsed(trial->first, trial->last, &elapsed);
    *milliseconds = elapsed / launches;
    return code;
}

/* best: of those before. A candidate that is far slower is not measured further: some take a
 * hundred times as long as the best. */
static int time_candidate(const struct dnn_trial *trial, const struct dnn_candidates *candidates,
                          uint32_t which, double best, double *milliseconds)
{
    int code = candidates->start(candidates->context, which, &trial->tensors); /* warm */

    if (code == 0)
        code = time_launches(trial, candidates, which, 1, milliseconds);
    if (code == 0 && *milliseconds > SLOW * best + start_ms)
        return 0;
    for (int i = 0; i < ROUNDS && code == 0; i++) {
        double each = 0;
        code = time_launches(trial, candidates, which, LAUNCHES, &each);
        *milliseconds = i == 0 ? each : fmin(*milliseconds, each);
    }
    if (code)
        *milliseconds = INFINITY;
    return code;
}

/* Run it once more, with nothing left of what an earlier run wrote, and compare. wrong: "" if it is
 * right. */
static int judge_candidate(const struct dnn_trial *trial, const struct dnn_candidates *candidates,
                           uint32_t which, char wrong[DNN_WRONG_BYTES])
{
    static const struct device_noise nan = {.kind = DEVICE_NOISE_POISON};
    const struct dnn_shape *shape = trial->shape;
    const double round_off = shape->type == DEVICE_BF16                  ? ldexp(1, -8)
                             : shape->type == DEVICE_FP16 || shape->tf32 ? ldexp(1, -11)
                                                                         : ldexp(1, -24);
    struct verifier v = {.trial = trial,
                         .shape = shape,
                         .stream = trial->runtime->stream,
                         .slack = 8 * round_off,
                         .wrong = wrong};
    int code = device_noise(&nan, trial->workspace_bytes / sizeof(float), trial->tensors.workspace,
                            v.stream);

    wrong[0] = '\0';
    for (enum dnn_tensor i = 0; i < DNN_TENSORS && code == 0; i++)
        if (dnn_takes(shape, i) && dnn_writes(shape, i))
            code = fill_noise(trial, i);
    if (code)
        return code;
    code = candidates->start(candidates->context, which, &trial->tensors);
    if (code == 0)
        code = runtime_wait(v.stream);
    if (code) {
        snprintf(wrong, DNN_WRONG_BYTES, "does not run: %s", fail_reason());
        return 0;
    }
    verify_elements(&v);
    if (v.code == 0 && !wrong[0] && dnn_takes(shape, DNN_SUM))
        verify_sum(&v);
    if (v.code || wrong[0] || shape->int8_output)
        return v.code;
    /* What needs all of a result: that all of it was written, and sums over it. */
    const enum dnn_tensor result = result_of(shape);
    const struct device_pixels pixels = pixels_of(shape, result);
    double *moments = moments_of(&v, result, &pixels);
    if (v.code == 0 && !wrong[0] && shape->fusion & DNN_STATISTICS)
        verify_statistics(&v, moments, &pixels);
    for (int beside = 0; beside <= ((shape->fusion & DNN_DUAL) != 0); beside++)
        if (v.code == 0 && !wrong[0] && shape->fusion & DNN_NORM)
            verify_norm(&v, beside, moments, &pixels);
    free(moments);
    return v.code;
}

/* Run it and copy the first part of each tensor it wrote to the host. copied: bytes in all. */
static int copy_results(const struct dnn_trial *trial, const struct dnn_candidates *candidates,
                        uint32_t which, uint8_t *to, uint64_t *copied)
{
    void *stream = trial->runtime->stream;
    int code = candidates->start(candidates->context, which, &trial->tensors);

    *copied = 0;
    for (enum dnn_tensor i = 0; i < DNN_TENSORS && code == 0; i++) {
        if (!dnn_takes(trial->shape, i) || !dnn_writes(trial->shape, i))
            continue;
        const uint64_t bytes = dnn_tensor_bytes(trial->shape, i);
        const uint64_t part = bytes < compared_bytes ? bytes : compared_bytes;
        code = runtime_copy(to + *copied, trial->tensors.at[i], part, stream);
        *copied += part;
    }
    int waited = runtime_wait(stream);
    return code ? code : waited;
}

int dnn_trial_choose(struct dnn_trial *trial, const struct dnn_candidates *candidates,
                     uint32_t *chosen, double *milliseconds, char wrong[DNN_WRONG_BYTES])
{
    double times[DNN_CONFIGS_MAX] = {0};
    bool dropped[DNN_CONFIGS_MAX] = {false};
    const bool timed = candidates->timed || candidates->count > 1;
    double least = INFINITY;

    wrong[0] = '\0';
    if (timed)
        for (uint32_t i = 0; i < candidates->count; i++) { /* one that fails is the slowest */
            time_candidate(trial, candidates, i, least, &times[i]);
            least = fmin(least, times[i]);
        }
    for (uint32_t tried = 0; tried < candidates->count; tried++) {
        char reason[DNN_WRONG_BYTES];
        uint32_t best = candidates->count;
        for (uint32_t i = 0; i < candidates->count; i++)
            if (!dropped[i] && (best == candidates->count || times[i] < times[best]))
                best = i;
        int code = judge_candidate(trial, candidates, best, reason);
        if (code)
            return code;
        *chosen = best;
        if (timed)
            *milliseconds = isfinite(times[best]) ? times[best] : 0;
        /* Does it write the same bits each time? Sums by atomic operations do not, and cuDNN does
         * not say so of all engines that have them: those that add up statistics of a convolution.
         */
        bool same = true;
        if (!reason[0] && candidates->repeats) {
            uint64_t bytes = 0;
            uint8_t *first = malloc(DNN_TENSORS * compared_bytes);
            uint8_t *again = malloc(DNN_TENSORS * compared_bytes);
            code = first && again ? copy_results(trial, candidates, best, first, &bytes)
                                  : fail(ENOMEM, "out of memory to compare engines");
            for (int i = 0; i < REPEATS && code == 0 && same; i++) {
                code = copy_results(trial, candidates, best, again, &bytes);
                same = code || memcmp(first, again, bytes) == 0;
            }
            free(first);
            free(again);
        }
        if (code || (!reason[0] && same))
            return code;
        dropped[best] = true;
        if (!wrong[0])
            snprintf(wrong, DNN_WRONG_BYTES, "%s", reason);
    }
    return wrong[0] ? fail(ENOTSUP, "no engine computes it right: the fastest %s", wrong)
                    : fail(ENOTSUP, "no engine computes the same bits twice");
}
