/* SPDX-License-Identifier: Apache-2.0
 * Every backward kernel against the numeric derivative of its forward kernel, in double on tiny,
 * awkward shapes; and what derivatives cannot see: values, masks, ranks, formulas.
 */
#include "tests/unit/unit.h"

#include "base/random.h"
#include "kernels/kernels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static real *made(uint64_t seed, size_t count)
{
    struct random random = random_start(seed);
    real *values = calloc(count ? count : 1, sizeof *values);

    for (size_t i = 0; i < count; i++)
        values[i] = random_normal(&random);
    return values;
}

/* ---- numeric differentiation ---- */

enum { INPUTS = 3 };

struct check {
    const char *name;
    const void *shape;
    size_t counts[INPUTS], outputs;
    void (*forward)(const void *shape, real *const *inputs, real *output);
    /* Adds to the gradients. */
    void (*backward)(const void *shape, real *const *inputs, const real *d_output,
                     real *const *gradients);
};

static double projected(const struct check *check, real *const *inputs, const real *d_output,
                        real *output)
{
    double sum = 0;

    check->forward(check->shape, inputs, output);
    for (size_t i = 0; i < check->outputs; i++)
        sum += d_output[i] * output[i];
    return sum;
}

static void compare(const struct check *check, int input, size_t at, double ours, double numeric)
{
    if (!(fabs(ours - numeric) <= 1e-6 * (1 + fabs(numeric))))
        fail_msg("%s: the gradient of element %zu of input %d is %.9g, by differences %.9g",
                 check->name, at, input, ours, numeric);
}

static void differentiate(const struct check *check)
{
    const double step = 1e-5;
    real *inputs[INPUTS], *gradients[INPUTS];
    real *output = made(1, check->outputs), *d_output = made(2, check->outputs);

    for (int k = 0; k < INPUTS; k++) {
        inputs[k] = made(10 + (uint64_t)k, check->counts[k]);
        gradients[k] = made(20 + (uint64_t)k, check->counts[k]);
    }
    projected(check, inputs, d_output, output);
    check->backward(check->shape, inputs, d_output, gradients);
    for (int k = 0; k < INPUTS; k++) {
        real *before = made(20 + (uint64_t)k, check->counts[k]); /* backward ADDS */
        for (size_t i = 0; i < check->counts[k]; i++) {
            const real value = inputs[k][i];
            inputs[k][i] = value + step;
            double high = projected(check, inputs, d_output, output);
            inputs[k][i] = value - step;
            double low = projected(check, inputs, d_output, output);
            inputs[k][i] = value;
            compare(check, k, i, gradients[k][i] - before[i], (high - low) / (2 * step));
        }
        free(before);
    }
    for (int k = 0; k < INPUTS; k++) {
        free(inputs[k]);
        free(gradients[k]);
    }
    free(output);
    free(d_output);
}

/* ---- convolutions ---- */

static size_t in_count(const struct kernel_window *w)
{
    return (size_t)w->images * w->in_channels * w->in_height * w->in_width;
}

static size_t out_count(const struct kernel_window *w)
{
    return (size_t)w->images * w->out_channels * w->out_height * w->out_width;
}

static size_t weight_count(const struct kernel_window *w)
{
    return (size_t)w->out_channels * (w->in_channels / w->groups) * w->height * w->width;
}

static void conv_forward(const void *shape, real *const *inputs, real *output)
{
    real *workspace = made(3, kernel_convolution_workspace(shape));

    kernel_convolution(shape, inputs[0], inputs[1], inputs[2], output, workspace);
    free(workspace);
}

static void conv_backward(const void *shape, real *const *inputs, const real *d_output,
                          real *const *gradients)
{
    real *workspace = made(3, kernel_convolution_workspace(shape));

    kernel_convolution_backward(shape, inputs[0], inputs[1], d_output, gradients[0], gradients[1],
                                gradients[2], workspace);
    free(workspace);
}

static const struct kernel_window convolutions[] = {
    /* images, in, out, window, stride, pads, groups */
    {2, 3, 5, 4, 2, 5, 4, 3, 3, 1, 1, 1, 0, 0, 1, false},
    {3, 2, 7, 6, 3, 4, 3, 3, 2, 2, 1, 0, 0, 0, 1, false},
    {2, 4, 5, 5, 6, 3, 3, 3, 3, 2, 1, 1, 0, 0, 2, false},
    {5, 3, 2, 2, 4, 1, 1, 1, 1, 2, 0, 0, 0, 0, 1, false}, /* leaves out pixels */
    {2, 4, 3, 3, 4, 3, 3, 3, 3, 1, 1, 1, 0, 0, 4, false}, /* one group per channel */
    {1, 1, 1, 1, 2, 3, 3, 3, 3, 1, 2, 2, 0, 0, 1, false}, /* some windows cover only padding */
    {2, 2, 4, 9, 2, 4, 3, 1, 7, 1, 0, 0, 0, 0, 1, false}, /* non-square windows */
};
enum { CONVOLUTIONS = sizeof convolutions / sizeof *convolutions };

static void convolutions_differentiate(void **unused)
{
    for (int i = 0; i < CONVOLUTIONS; i++) {
        const struct kernel_window *w = &convolutions[i];
        differentiate(&(struct check){.name = "convolution",
                                      .shape = w,
                                      .counts = {in_count(w), weight_count(w), w->out_channels},
                                      .outputs = out_count(w),
                                      .forward = conv_forward,
                                      .backward = conv_backward});
    }
}

/* Compute one output pixel, by the definition. */
static double one_pixel(const struct kernel_window *w, const real *input, const real *weight,
                        uint32_t image, uint32_t channel, uint32_t y, uint32_t x)
{
    const uint32_t channels = w->in_channels / w->groups;
    const uint32_t first = channel / (w->out_channels / w->groups) * channels;
    double sum = 0;

    for (uint32_t c = 0; c < channels; c++)
        for (uint32_t i = 0; i < w->height; i++)
            for (uint32_t j = 0; j < w->width; j++) {
                uint32_t row = y * w->stride + i - w->pad_top;
                uint32_t column = x * w->stride + j - w->pad_left;
                if (row < w->in_height && column < w->in_width)
                    sum += weight[((channel * channels + c) * w->height + i) * w->width + j] *
                           input[((image * w->in_channels + first + c) * w->in_height + row) *
                                     w->in_width +
                                 column];
            }
    return sum;
}

static void convolutions_are_as_defined(void **unused)
{
    /* The last one has more pixels than a chunk, and chunks that split images. */
    const struct kernel_window large = {3, 5, 13, 11, 19, 13, 11, 3, 3, 1, 1, 1, 0, 0, 1, false};

    for (int i = 0; i <= CONVOLUTIONS; i++) {
        const struct kernel_window *w = i < CONVOLUTIONS ? &convolutions[i] : &large;
        real *inputs[] = {made(1, in_count(w)), made(2, weight_count(w)), made(3, w->out_channels)};
        real *output = made(4, out_count(w)), *at = output;
        conv_forward(w, inputs, output);
        for (uint32_t image = 0; image < w->images; image++)
            for (uint32_t channel = 0; channel < w->out_channels; channel++)
                for (uint32_t y = 0; y < w->out_height; y++)
                    for (uint32_t x = 0; x < w->out_width; x++, at++) {
                        double right = inputs[2][channel] +
                                       one_pixel(w, inputs[0], inputs[1], image, channel, y, x);
                        assert_true(fabs(*at - right) < 1e-12);
                    }
        for (int k = 0; k < INPUTS; k++)
            free(inputs[k]);
        free(output);
    }
}

/* ---- pools ---- */

static const struct kernel_window pools[] = {
    {2, 3, 5, 6, 3, 3, 3, 3, 3, 2, 1, 1, 0, 0, 1, false},
    {2, 2, 5, 6, 2, 3, 3, 3, 3, 2, 1, 1, 0, 0, 1, true},
    {1, 2, 5, 4, 2, 1, 1, 5, 4, 1, 0, 0, 0, 0, 1, false}, /* global */
    {2, 1, 6, 6, 1, 3, 3, 2, 2, 2, 0, 0, 0, 0, 1, false},
};

static void max_forward(const void *shape, real *const *inputs, real *output)
{
    kernel_max_pool(shape, inputs[0], output);
}

static void max_backward(const void *shape, real *const *inputs, const real *d_output,
                         real *const *gradients)
{
    kernel_max_pool_backward(shape, inputs[0], d_output, gradients[0]);
}

static void average_forward(const void *shape, real *const *inputs, real *output)
{
    kernel_average_pool(shape, inputs[0], output);
}

static void average_backward(const void *shape, real *const *inputs, const real *d_output,
                             real *const *gradients)
{
    kernel_average_pool_backward(shape, d_output, gradients[0]);
}

static void pools_differentiate(void **unused)
{
    for (size_t i = 0; i < sizeof pools / sizeof *pools; i++) {
        struct check check = {.name = "max pool",
                              .shape = &pools[i],
                              .counts = {in_count(&pools[i])},
                              .outputs = out_count(&pools[i]),
                              .forward = max_forward,
                              .backward = max_backward};
        differentiate(&check);
        check.name = "average pool";
        check.forward = average_forward;
        check.backward = average_backward;
        differentiate(&check);
    }
}

static void pools_at_the_border_are_as_defined(void **unused)
{
    const real input[] = {-1, -2, -3, -4};
    struct kernel_window w = {.images = 1,
                              .in_channels = 1,
                              .in_height = 2,
                              .in_width = 2,
                              .out_channels = 1,
                              .out_height = 1,
                              .out_width = 1,
                              .height = 3,
                              .width = 3,
                              .stride = 2,
                              .pad_top = 1,
                              .pad_left = 1,
                              .groups = 1};
    real output;

    kernel_max_pool(&w, input, &output);
    assert_true(output == -1); /* not the padding's 0 */
    kernel_average_pool(&w, input, &output);
    assert_true(output == -10.0 / 4);
    w.count_padding = true;
    kernel_average_pool(&w, input, &output);
    assert_true(fabs(output + 10.0 / 9) < 1e-12);

    const real same[] = {5, 5, 5, 5}, one = 1;
    real gradient[4] = {0};
    kernel_max_pool_backward(&w, same, &one, gradient);
    assert_true(gradient[0] == 1 && gradient[1] == 0 && gradient[2] == 0 && gradient[3] == 0);
}

/* ---- batch normalisation ---- */

enum {
    BN_IMAGES = 3,
    BN_CHANNELS = 4,
    BN_PLANE = 5,
    BN_COUNT = BN_IMAGES * BN_CHANNELS * BN_PLANE
};
static const double bn_epsilon = 1e-3;

static void bn_forward(const void *shape, real *const *inputs, real *output)
{
    real mean[BN_CHANNELS], variance[BN_CHANNELS];

    kernel_batch_norm(BN_IMAGES, BN_CHANNELS, BN_PLANE, bn_epsilon, inputs[0], inputs[1], inputs[2],
                      output, mean, variance);
}

static void bn_backward(const void *shape, real *const *inputs, const real *d_output,
                        real *const *gradients)
{
    real mean[BN_CHANNELS], variance[BN_CHANNELS], output[BN_COUNT];

    kernel_batch_norm(BN_IMAGES, BN_CHANNELS, BN_PLANE, bn_epsilon, inputs[0], inputs[1], inputs[2],
                      output, mean, variance);
    kernel_batch_norm_backward(BN_IMAGES, BN_CHANNELS, BN_PLANE, bn_epsilon, inputs[0], inputs[1],
                               mean, variance, d_output, gradients[0], gradients[1], gradients[2]);
}

static void batch_norm_differentiates(void **unused)
{
    differentiate(&(struct check){.name = "batch norm",
                                  .counts = {BN_COUNT, BN_CHANNELS, BN_CHANNELS},
                                  .outputs = BN_COUNT,
                                  .forward = bn_forward,
                                  .backward = bn_backward});
}

static void batch_norm_keeps_statistics(void **unused)
{
    const real input[] = {1, 2, 3, 6}, one = 1, zero = 0;
    real output[4], mean, variance, running_mean = 10, running_variance = 20;

    kernel_batch_norm(2, 1, 2, 0, input, &one, &zero, output, &mean, &variance);
    assert_true(mean == 3 && variance == 3.5);
    assert_true(fabs(output[3] - 3 / sqrt(3.5)) < 1e-12);
    kernel_batch_norm_statistics(1, 4, 0.1, &mean, &variance, &running_mean, &running_variance);
    assert_true(fabs(running_mean - 9.3) < 1e-12);
    assert_true(fabs(running_variance - (18 + 0.1 * 3.5 * 4 / 3)) < 1e-12);
    kernel_batch_norm_infer(2, 1, 2, 0, input, &one, &zero, &mean, &variance, output);
    assert_true(fabs(output[3] - 3 / sqrt(3.5)) < 1e-12);
}

/* ---- one value at a time ---- */

enum { POINTS = 40 };
static const double dropout_rate = 0.3;

static void relu_forward(const void *shape, real *const *inputs, real *output)
{
    kernel_relu(POINTS, inputs[0], output);
}

static void relu_backward(const void *shape, real *const *inputs, const real *d_output,
                          real *const *gradients)
{
    real output[POINTS];

    kernel_relu(POINTS, inputs[0], output);
    kernel_relu_backward(POINTS, output, d_output, gradients[0]);
}

static void add_forward(const void *shape, real *const *inputs, real *output)
{
    kernel_add(POINTS, inputs[0], inputs[1], output);
}

static void add_backward(const void *shape, real *const *inputs, const real *d_output,
                         real *const *gradients)
{
    kernel_accumulate(POINTS, d_output, gradients[0]);
    kernel_accumulate(POINTS, d_output, gradients[1]);
}

static void dropout_forward(const void *shape, real *const *inputs, real *output)
{
    kernel_dropout(POINTS, 77, dropout_rate, inputs[0], output);
}

static void dropout_backward(const void *shape, real *const *inputs, const real *d_output,
                             real *const *gradients)
{
    kernel_dropout_backward(POINTS, 77, dropout_rate, d_output, gradients[0]);
}

static void concat_forward(const void *shape, real *const *inputs, real *output)
{
    kernel_concat(4, 6, 0, 10, inputs[0], output);
    kernel_concat(4, 4, 6, 10, inputs[1], output);
}

static void concat_backward(const void *shape, real *const *inputs, const real *d_output,
                            real *const *gradients)
{
    kernel_concat_backward(4, 6, 0, 10, d_output, gradients[0]);
    kernel_concat_backward(4, 4, 6, 10, d_output, gradients[1]);
}

static void pointwise_kernels_differentiate(void **unused)
{
    const struct check checks[] = {
        {"relu", NULL, {POINTS}, POINTS, relu_forward, relu_backward},
        {"add", NULL, {POINTS, POINTS}, POINTS, add_forward, add_backward},
        {"dropout", NULL, {POINTS}, POINTS, dropout_forward, dropout_backward},
        {"concat", NULL, {24, 16}, 40, concat_forward, concat_backward},
    };
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        differentiate(&checks[i]);
}

static void relu_lets_no_number_vanish(void **unused)
{
    const real input[] = {-1, 0, 1, (real)NAN}, ones[] = {1, 1, 1, 1};
    real output[4], gradient[4] = {0};

    kernel_relu(4, input, output);
    kernel_relu_backward(4, output, ones, gradient);
    assert_true(output[0] == 0 && output[1] == 0 && output[2] == 1 && isnan(output[3]));
    assert_true(gradient[0] == 0 && gradient[1] == 0 && gradient[2] == 1);
}

/* Dropout depends on seed, step and node, and drops the requested share. */
static void dropout_masks_are_fair_and_differ(void **unused)
{
    enum { COUNT = 100000, KEYS = 6 };
    const uint64_t first = kernel_dropout_key(1, 0, 0);
    const uint64_t keys[KEYS] = {first,
                                 first ^ (uint64_t)1 << 40,
                                 first ^ 1,
                                 kernel_dropout_key(2, 0, 0),
                                 kernel_dropout_key(1, 1, 0),
                                 kernel_dropout_key(1, 0, 1)};

    for (int k = 0; k < KEYS; k++) {
        uint32_t kept = 0, same = 0, alike = 0;
        for (uint64_t i = 0; i < COUNT; i++) {
            bool keeps = kernel_dropout_keeps(keys[k], i, 0.5);
            kept += keeps;
            same += keeps == kernel_dropout_keeps(keys[(k + 1) % KEYS], i, 0.5);
            alike += keeps == kernel_dropout_keeps(keys[k], i + 1 + i % 64, 0.5);
        }
        /* Six deviations of a fair coin. */
        assert_true(abs((int)kept - COUNT / 2) < 3 * sqrt(COUNT));
        assert_true(abs((int)same - COUNT / 2) < 3 * sqrt(COUNT));
        assert_true(abs((int)alike - COUNT / 2) < 3 * sqrt(COUNT));
    }
    real input[COUNT / 100], output[COUNT / 100];
    for (int i = 0; i < COUNT / 100; i++)
        input[i] = 1;
    kernel_dropout(COUNT / 100, keys[0], 0.2, input, output);
    for (uint64_t i = 0; i < COUNT / 100; i++)
        assert_true(output[i] == (kernel_dropout_keeps(keys[0], i, 0.2) ? 1 / (1 - 0.2) : 0));
}

static void images_are_normalised_by_channel(void **unused)
{
    const uint8_t rows[] = {10, 20, 30, 40, 50, 60};
    const float mean[] = {10, 20, 40}, deviation[] = {1, 2, 5};
    const real right[] = {0, 30, 0, 15, -2, 4};
    real output[6];

    kernel_normalise(1, 2, rows, mean, deviation, output);
    assert_memory_equal(output, right, sizeof right);
}

/* ---- fully connected, LRN ---- */

static void fc_forward(const void *shape, real *const *inputs, real *output)
{
    real *workspace = made(3, 7 * 19);

    kernel_fully_connected(5, 7, 19, inputs[0], inputs[1], inputs[2], output, workspace);
    free(workspace);
}

static void fc_backward(const void *shape, real *const *inputs, const real *d_output,
                        real *const *gradients)
{
    kernel_fully_connected_backward(5, 7, 19, inputs[0], inputs[1], d_output, gradients[0],
                                    gradients[1], gradients[2]);
}

static void fully_connected_differentiates(void **unused)
{
    differentiate(&(struct check){
        "fully connected", NULL, {35, 7 * 19, 19}, 5 * 19, fc_forward, fc_backward});
}

static void lrn_forward(const void *shape, real *const *inputs, real *output)
{
    kernel_lrn(shape, inputs[0], output);
}

static void lrn_backward(const void *shape, real *const *inputs, const real *d_output,
                         real *const *gradients)
{
    kernel_lrn_backward(shape, inputs[0], d_output, gradients[0]);
}

static void lrn_differentiates(void **unused)
{
    const struct kernel_lrn wide = {2, 7, 3, 5, 0.9, 0.75, 1};
    const struct kernel_lrn narrow = {2, 2, 3, 5, 0.5, 0.6, 2}; /* fewer channels than size */

    differentiate(&(struct check){"lrn", &wide, {42}, 42, lrn_forward, lrn_backward});
    differentiate(&(struct check){"lrn", &narrow, {12}, 12, lrn_forward, lrn_backward});
}

/* ---- loss ---- */

static void the_loss_differentiates(void **unused)
{
    enum { IMAGES = 4, CLASSES = 7 };
    const int32_t labels[IMAGES] = {3, -1, 0, 6};
    real *logits = made(5, IMAGES * CLASSES), gradient[IMAGES * CLASSES];

    for (double smoothing = 0; smoothing < 0.2; smoothing += 0.1) {
        kernel_cross_entropy(IMAGES, CLASSES, logits, labels, smoothing, gradient);
        for (int i = 0; i < IMAGES * CLASSES; i++) {
            const double step = 1e-5, value = logits[i];
            logits[i] = value + step;
            double high =
                kernel_cross_entropy(IMAGES, CLASSES, logits, labels, smoothing, NULL).loss;
            logits[i] = value - step;
            double low =
                kernel_cross_entropy(IMAGES, CLASSES, logits, labels, smoothing, NULL).loss;
            logits[i] = value;
            assert_true(fabs(gradient[i] - (high - low) / (2 * step)) < 1e-9);
        }
    }
    free(logits);
}

static void the_loss_is_as_defined_and_counts_ranks(void **unused)
{
    const real logits[3][6] = {{1, 1, 1, 1, 1, 1}, {6, 5, 4, 3, 2, 1}, {6, 5, 4, 3, 2, 1}};
    const int32_t labels[] = {1, 4, 5}, none[] = {-1, -1, -1};
    real gradient[18];

    struct kernel_loss loss = kernel_cross_entropy(3, 6, logits[0], labels, 0, gradient);
    double sum = log(exp(6) + exp(5) + exp(4) + exp(3) + exp(2) + exp(1));
    assert_true(fabs(loss.loss - (log(6) + sum - 2 + sum - 1) / 3) < 1e-12);
    assert_int_equal(loss.counted, 3);
    assert_int_equal(loss.correct, 0); /* equal logits: the lower class comes first */
    assert_int_equal(loss.correct_top5, 2);

    loss = kernel_cross_entropy(3, 6, logits[0], none, 0, gradient);
    assert_int_equal(loss.counted, 0);
    assert_true(loss.loss == 0);
    for (int i = 0; i < 18; i++)
        assert_true(gradient[i] == 0);

    const real strange[] = {(real)NAN, 0, 1, 2, 3, 4}, huge[] = {1000, -1000, 0, 0, 0, 0};
    const int32_t zero = 0;
    assert_int_equal(kernel_cross_entropy(1, 6, strange, &zero, 0, NULL).correct, 0);
    assert_true(kernel_cross_entropy(1, 6, huge, &zero, 0, NULL).loss == 0);
}

/* ---- optimisers ---- */

static void sgd_is_as_defined(void **unused)
{
    const real gradient = 8;
    real weight = 3, momentum = 2;

    kernel_sgd(1, 0.5, 0.9, 0.1, 0.25, &gradient, &weight, &momentum);
    assert_true(fabs(momentum - (1.8 + 2 + 0.3)) < 1e-12);
    assert_true(fabs(weight - (3 - 0.5 * 4.1)) < 1e-12);
}

static void squares_are_added_up(void **unused)
{
    real values[67];
    double sum = 0;

    for (size_t i = 0; i < 67; i++) {
        values[i] = (real)(i + 1);
        sum += (double)((i + 1) * (i + 1));
        assert_true(kernel_squares(i + 1, values) == sum);
    }
    assert_true(kernel_squares(0, values) == 0);
}

static void lars_is_as_defined(void **unused)
{
    const real gradient[] = {6, 8};
    real weight[] = {3, 4}, momentum[] = {1, -1};

    kernel_lars(2, 2, 4, 0.9, 0.1, 0.01, 0.5, gradient, weight, momentum);
    double local = 0.01 * 5 / (5 + 0.1 * 5);
    assert_true(fabs(momentum[0] - (0.45 + 2 * local * (3 + 0.3))) < 1e-12);
    assert_true(fabs(weight[1] - (4 - (-0.45 + 2 * local * (4 + 0.4)))) < 1e-12);

    /* No weights yet, the first step, or no adaptation: the plain rate. */
    real zero = 0, still = 0, plain = 1, moved = 0;
    kernel_lars(1, 2, 0, 0.9, 0.1, 0.01, 1, gradient, &zero, &still);
    assert_true(fabs(zero + 12) < 1e-12);
    kernel_lars(1, 2, 0, 0.9, 0, 0, 1, gradient, &plain, &moved);
    assert_true(fabs(plain + 11) < 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions_differentiate),
        cmocka_unit_test(convolutions_are_as_defined),
        cmocka_unit_test(pools_differentiate),
        cmocka_unit_test(pools_at_the_border_are_as_defined),
        cmocka_unit_test(batch_norm_differentiates),
        cmocka_unit_test(batch_norm_keeps_statistics),
        cmocka_unit_test(pointwise_kernels_differentiate),
        cmocka_unit_test(relu_lets_no_number_vanish),
        cmocka_unit_test(dropout_masks_are_fair_and_differ),
        cmocka_unit_test(images_are_normalised_by_channel),
        cmocka_unit_test(fully_connected_differentiates),
        cmocka_unit_test(lrn_differentiates),
        cmocka_unit_test(the_loss_differentiates),
        cmocka_unit_test(the_loss_is_as_defined_and_counts_ranks),
        cmocka_unit_test(sgd_is_as_defined),
        cmocka_unit_test(squares_are_added_up),
        cmocka_unit_test(lars_is_as_defined),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
