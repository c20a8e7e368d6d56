/* SPDX-License-Identifier: Apache-2.0
 *
 * trainer/cuda/dnn.h without cuDNN: convolutions by the plain kernels, and what is fused with them
 * before and after, by our kernels and loops over floats. Groups and INT8 are
 * refused, as by a cuDNN that lacks an engine.
 */
#include "trainer/cuda/dnn.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/random.h"
#include "tests/cuda/emulated.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct dnn_found {
    struct dnn_plan known; /* first member */
    struct dnn_found *next;
    struct dnn_shape shape;
    const struct dnn *dnn;
};

struct dnn {
    struct dnn_found *plans;
    void *stream;
    bool has_device;
    const struct runtime *runtime;
    char *file; /* of plans; NULL: none */
    char wrong[DNN_WRONG_BYTES];
};

int dnn_open(struct dnn **made, const struct dnn_config *config)
{
    struct dnn *dnn = *made = memory_zeroed(sizeof *dnn);

    if (!dnn)
        return -ENOMEM;
    dnn->runtime = config->runtime;
    dnn->has_device = config->runtime != NULL;
    dnn->file = config->plans ? strdup(config->plans) : NULL;
    dnn->stream = dnn->has_device ? config->runtime->stream : NULL;
    return 0;
}

void dnn_close(struct dnn *dnn)
{
    while (dnn && dnn->plans) {
        struct dnn_found *next = dnn->plans->next;
        free(dnn->plans);
        dnn->plans = next;
    }
    free(dnn ? dnn->file : NULL);
    free(dnn);
}

void dnn_name_library(char *text, size_t bytes)
{
    snprintf(text, bytes, "emulated cuDNN");
}

/* Of different sizes, as cuDNN's are; for some fused shapes too large to pay, so that fusion=auto
 * is a mixture. */
static uint64_t workspace_of(const struct dnn_shape *shape)
{
    const struct kernel_window *w = &shape->window;
    const uint64_t seed = shape->fusion * 64 + w->in_channels * 16 + w->out_channels + w->height +
                          (uint64_t)shape->kind;
    const uint64_t tensor = (uint64_t)w->images * w->in_height * w->in_width *
                            (w->in_channels + w->out_channels) * sizeof(float);

    return 1000 + w->in_channels + (shape->fusion && random_mix(seed) % 3 == 0 ? tensor : 0);
}

/* IOBENCH_EMULATED_WRONG: the forward pass to so many output channels doubles half of its result,
 * so the check of engines rejects it. */
static bool is_wrong(const struct dnn_shape *shape)
{
    const char *wrong = getenv("IOBENCH_EMULATED_WRONG");

    return wrong && shape->kind == DNN_FORWARD &&
           shape->window.out_channels == (uint32_t)atoi(wrong);
}

/* IOBENCH_EMULATED_MS="FUSED PLAIN": how long engines take, which are not timed otherwise. */
static double milliseconds_of(const struct dnn_shape *shape)
{
    const char *given = getenv("IOBENCH_EMULATED_MS");
    double fused = 0, plain = 0;

    if (given && sscanf(given, "%lf %lf", &fused, &plain) != 2)
        abort();
    return shape->fusion ? fused : plain;
}

static int start(const void *context, uint32_t which, const struct dnn_tensors *tensors)
{
    const struct dnn_found *plan = context;

    (void)which;
    return dnn_run(plan->dnn, &plan->known, tensors);
}

static int check_plan(struct dnn *dnn, const struct dnn_found *plan)
{
    const struct dnn_candidates candidates = {start, plan, 1, false, false};
    struct dnn_trial trial;
    double milliseconds;
    uint32_t chosen;

    int code = dnn_trial_open(&trial, dnn->runtime, &plan->shape, plan->known.workspace_bytes);
    if (code == 0)
        code = dnn_trial_choose(&trial, &candidates, &chosen, &milliseconds, dnn->wrong);
    dnn_trial_close(&trial);
    return code;
}

const struct dnn_plan *dnn_find(struct dnn *dnn, const struct dnn_shape *shape, int *code)
{
    *code = 0;
    const char *refused = getenv("IOBENCH_EMULATED_REFUSED"); /* a number of output channels */
    if (shape->window.groups > 1 || shape->int8 ||
        (refused && shape->window.out_channels == (uint32_t)atoi(refused))) {
        *code = fail(ENOTSUP, "no such convolution");
        return NULL;
    }
    struct dnn_found *plan = memory_zeroed(sizeof *plan);
    if (!plan) {
        *code = -ENOMEM;
        return NULL;
    }
    *plan = (struct dnn_found){
        {.workspace_bytes = workspace_of(shape), .milliseconds = milliseconds_of(shape)},
        dnn->plans,
        *shape,
        dnn};
    dnn->plans = plan;
    *code = dnn->has_device && is_wrong(shape) ? check_plan(dnn, plan) : 0;
    return *code ? NULL : &plan->known;
}

bool dnn_take_wrong(struct dnn *dnn, char wrong[DNN_WRONG_BYTES])
{
    memcpy(wrong, dnn->wrong, sizeof dnn->wrong);
    dnn->wrong[0] = '\0';
    return wrong[0] != '\0';
}

/* Only tries whether the file could be written. */
int dnn_keep(struct dnn *dnn)
{
    FILE *file = dnn->file ? fopen(dnn->file, "ae") : NULL;
    int code = dnn->file && !file ? fail(errno, "%s: cannot be written", dnn->file) : 0;

    if (file)
        fclose(file);
    return code;
}

/* ---- computing ---- */

/* One run, as a single task of the stream, with scratch memory that is freed at its end. */
struct run {
    const struct dnn_shape *shape;
    struct dnn_tensors tensors;
    uint64_t workspace_bytes;
    void *memory[16];
    uint32_t count;
    int code;
};

static void *scratch(struct run *run, uint64_t bytes)
{
    void *memory = emulated_scratch(bytes);

    if (!memory)
        run->code = -ENOMEM;
    else
        run->memory[run->count++] = memory;
    return memory;
}

/* A tensor's numbers as floats. */
static float *floats_of(struct run *run, enum device_type type, const void *from, uint64_t count)
{
    float *to = scratch(run, count * sizeof *to);

    if (run->code == 0)
        run->code = device_widen(type, count, from, 1, to, NULL);
    return to;
}

static struct device_pixels pixels_in(const struct dnn_shape *shape)
{
    const struct kernel_window *w = &shape->window;

    return (struct device_pixels){shape->type, w->in_channels,
                                  (uint64_t)w->images * w->in_height * w->in_width};
}

static struct device_pixels pixels_out(const struct dnn_shape *shape)
{
    const struct kernel_window *w = &shape->window;

    return (struct device_pixels){shape->type, w->out_channels,
                                  (uint64_t)w->images * w->out_height * w->out_width};
}

static uint64_t bytes_of(const struct device_pixels *pixels)
{
    return pixels->count * pixels->channels * device_type_bytes(pixels->type);
}

/* What the convolution reads; a sum is stored if wanted. */
static const void *prologue(struct run *run)
{
    const struct device_pixels pixels = pixels_in(run->shape);
    const uint32_t fusion = run->shape->fusion, channels = pixels.channels;
    void *const *at = run->tensors.at;

    if (!(fusion & DNN_PROLOGUE))
        return at[DNN_INPUT];
    void *input = fusion & DNN_SUMMED ? at[DNN_SUM] : scratch(run, bytes_of(&pixels));
    struct device_affine affine = {.scale = floats_of(run, pixels.type, at[DNN_IN_SCALE], channels),
                                   .bias = floats_of(run, pixels.type, at[DNN_IN_BIAS], channels),
                                   .other = fusion & DNN_SUMMED ? at[DNN_RESIDUAL] : NULL,
                                   .relu = true};
    if (fusion & DNN_DUAL) {
        affine.other_scale = floats_of(run, pixels.type, at[dnn_beside(DNN_IN_SCALE)], channels);
        affine.other_bias = floats_of(run, pixels.type, at[dnn_beside(DNN_IN_BIAS)], channels);
    }
    if (run->code == 0)
        run->code = device_affine(&pixels, &affine, at[DNN_INPUT], input, NULL);
    return input;
}

static void statistics(struct run *run)
{
    const struct device_pixels pixels = pixels_out(run->shape);
    const float *y =
        floats_of(run, pixels.type, run->tensors.at[DNN_OUTPUT], pixels.count * pixels.channels);
    float *sums = run->tensors.at[DNN_SUMS], *squares = run->tensors.at[DNN_SQUARES];

    for (uint32_t c = 0; c < pixels.channels && run->code == 0; c++) {
        double sum = 0, square = 0;
        for (uint64_t i = c; i < pixels.count * pixels.channels; i += pixels.channels) {
            sum += (double)y[i];
            square += (double)y[i] * (double)y[i];
        }
        sums[c] = (float)sum;
        squares[c] = (float)square;
    }
}

static void forward(struct run *run)
{
    const struct device_pixels pixels = pixels_out(run->shape);
    void *const *at = run->tensors.at;
    const uint32_t fusion = run->shape->fusion;
    const void *input = prologue(run);
    const struct device_affine affine = {.scale = fusion & DNN_SCALED ? at[DNN_SCALE] : NULL,
                                         .bias = fusion & DNN_BIASED ? at[DNN_BIAS] : NULL,
                                         .other = fusion & DNN_ADDED ? at[DNN_OTHER] : NULL,
                                         .relu = (fusion & DNN_RECTIFIED) != 0};

    if (run->code == 0)
        run->code = device_convolution(&run->shape->window, pixels.type, input, at[DNN_WEIGHTS],
                                       at[DNN_OUTPUT], NULL);
    if (run->code == 0 && fusion & (DNN_SCALED | DNN_BIASED | DNN_ADDED | DNN_RECTIFIED))
        run->code = device_affine(&pixels, &affine, at[DNN_OUTPUT], at[DNN_OUTPUT], NULL);
    if (run->code == 0 && fusion & DNN_STATISTICS)
        statistics(run);
    if (run->code == 0 && is_wrong(run->shape))
        run->code = device_sum(pixels.type, pixels.count * pixels.channels / 2, at[DNN_OUTPUT],
                               at[DNN_OUTPUT], false, at[DNN_OUTPUT], NULL);
}

/* The vectors of the BN before, or of the residual's BN. */
static void rows_of(const struct run *run, bool beside, float *rows[DNN_BESIDE])
{
    for (int i = DNN_MEAN; i < DNN_BESIDE; i++)
        rows[i] = run->tensors.at[beside ? dnn_beside((enum dnn_tensor)i) : (enum dnn_tensor)i];
}

/* Gradient sums over dz and what follows from them, as in kernels/launch.cuh. */
static void norm_weights(struct run *run, bool beside)
{
    const struct device_pixels pixels = pixels_in(run->shape);
    const uint64_t count = pixels.count * pixels.channels;
    const float *dz = floats_of(run, pixels.type, run->tensors.at[DNN_INPUT], count);
    const float *x =
        floats_of(run, pixels.type, run->tensors.at[beside ? DNN_RESIDUAL : DNN_X], count);
    float *rows[DNN_BESIDE];

    rows_of(run, beside, rows);
    for (uint32_t c = 0; c < pixels.channels && run->code == 0; c++) {
        const double mean = (double)rows[DNN_MEAN][c], inverse = (double)rows[DNN_INVERSE][c];
        const double a = (double)rows[DNN_GAMMA][c] * inverse;
        double sum = 0, dot = 0;
        for (uint64_t i = c; i < count; i += pixels.channels) {
            sum += (double)dz[i];
            dot += (double)dz[i] * ((double)x[i] - mean);
        }
        const double b = -a * inverse * inverse * dot / (double)pixels.count;
        rows[DNN_D_GAMMA][c] = (float)(dot * inverse);
        rows[DNN_D_BETA][c] = (float)sum;
        rows[DNN_A][c] = (float)a;
        rows[DNN_B][c] = (float)b;
        rows[DNN_C][c] = (float)(-a * sum / (double)pixels.count - b * mean);
    }
}

/* BN as a scale and a bias per channel. */
static void coefficients(struct run *run, bool beside, const float **scale, const float **bias)
{
    const uint32_t channels = run->shape->window.in_channels;
    float *factors = scratch(run, channels * sizeof *factors);
    float *terms = scratch(run, channels * sizeof *terms), *rows[DNN_BESIDE];

    rows_of(run, beside, rows);
    for (uint32_t c = 0; c < channels && run->code == 0; c++) {
        factors[c] = rows[DNN_GAMMA][c] * rows[DNN_INVERSE][c];
        terms[c] = rows[DNN_BETA][c] - factors[c] * rows[DNN_MEAN][c];
    }
    *scale = factors;
    *bias = terms;
}

/* The ReLU's input; rounded unlike cuDNN's, but of the same sign. */
static const void *before_relu(struct run *run)
{
    const struct device_pixels pixels = pixels_in(run->shape);
    void *const *at = run->tensors.at;
    void *value = scratch(run, bytes_of(&pixels));
    struct device_affine affine = {.other =
                                       run->shape->fusion & DNN_SUMMED ? at[DNN_RESIDUAL] : NULL};

    coefficients(run, false, &affine.scale, &affine.bias);
    if (run->shape->fusion & DNN_DUAL)
        coefficients(run, true, &affine.other_scale, &affine.other_bias);
    if (run->code == 0)
        run->code = device_affine(&pixels, &affine, at[DNN_X], value, NULL);
    return value;
}

static void data(struct run *run)
{
    const struct device_pixels pixels = pixels_in(run->shape);
    const uint64_t numbers = pixels.count * pixels.channels;
    void *const *at = run->tensors.at;
    const bool back = (run->shape->fusion & DNN_NORM) != 0;
    void *d = back ? scratch(run, bytes_of(&pixels)) : at[DNN_INPUT];

    if (run->code == 0)
        run->code = device_convolution_data(&run->shape->window, pixels.type, at[DNN_OUTPUT],
                                            at[DNN_WEIGHTS], d, NULL);
    if (!back || run->code)
        return;
    if (run->shape->fusion & DNN_ADDED)
        run->code = device_sum(pixels.type, numbers, d, at[DNN_OTHER], false, d, NULL);
    const void *value = before_relu(run);
    if (run->code == 0)
        run->code = device_relu_backward(pixels.type, numbers, value, d, at[DNN_INPUT], NULL);
    norm_weights(run, false);
    if (run->shape->fusion & DNN_DUAL)
        norm_weights(run, true);
}

static void weight(struct run *run)
{
    void *const *at = run->tensors.at;
    const void *input = prologue(run);

    if (run->code == 0)
        run->code = device_convolution_weight(&run->shape->window, run->shape->type, input,
                                              at[DNN_OUTPUT], at[DNN_WEIGHTS], NULL);
}

static void compute(const void *work, uint64_t late_ns)
{
    struct run copy = *(const struct run *)work, *run = &copy;

    clock_sleep_ns(late_ns);
    memset(run->tensors.workspace, 0xff, run->workspace_bytes);
    switch (run->shape->kind) {
    case DNN_FORWARD:
        forward(run);
        break;
    case DNN_DATA:
        data(run);
        break;
    case DNN_WEIGHT:
        weight(run);
        break;
    }
    while (run->count > 0)
        free(run->memory[--run->count]);
    if (run->code)
        abort(); /* out of memory */
}

/* IOBENCH_EMULATED_SLOW: weight gradients with so many output channels take 20 ms longer. */
static uint64_t late_ns_of(const struct dnn_shape *shape)
{
    const char *slow = getenv("IOBENCH_EMULATED_SLOW");

    return slow && shape->kind == DNN_WEIGHT && shape->window.out_channels == (uint32_t)atoi(slow)
               ? 20000000
               : 0;
}

/* All tensors are in device memory, aligned to 16 bytes as the graph says. */
int dnn_run(const struct dnn *dnn, const struct dnn_plan *plan, const struct dnn_tensors *tensors)
{
    const struct run run = {.shape = &((const struct dnn_found *)plan)->shape,
                            .tensors = *tensors,
                            .workspace_bytes = plan->workspace_bytes};

    for (int i = 0; i < DNN_TENSORS; i++)
        if (tensors->at[i] &&
            ((uintptr_t)tensors->at[i] % 16 || !emulated_on_device(tensors->at[i], 1)))
            emulated_refuse("cuDNN takes a tensor that is not aligned, or not on the device");
    if (!emulated_on_device(tensors->workspace, run.workspace_bytes))
        emulated_refuse("cuDNN's workspace is too small");
    return emulated_start(compute, &run, sizeof run, late_ns_of(run.shape), dnn->stream);
}
