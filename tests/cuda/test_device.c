/* SPDX-License-Identifier: Apache-2.0
 *
 * Every device kernel against its reference in kernels/kernels.h, in each number type and with
 * channels that make vectors, that do not, and that fill more than one block. Relative L2 distance
 * at most 1e-5 in FP32, 2e-3 in FP16, 1.5e-2 in BF16. Built twice: for the host, where
 * threads run one after the other, and for a device.
 */
#include "tests/cuda/place.h"

#include <errno.h>

#define STREAM place_runtime.stream

static const enum device_type types[] = {DEVICE_FP32, DEVICE_FP16, DEVICE_BF16};
static const uint32_t channel_counts[] = {8, 20, 7, 64, 600};

static void check(double distance, enum device_type type, uint32_t channels, const char *what)
{
    const double most = type == DEVICE_FP32 ? 1e-5 : type == DEVICE_FP16 ? 2e-3 : 1.5e-2;

    if (!(distance <= most))
        fail_msg("%s, type %d, %u channels: off by %g", what, (int)type, channels, distance);
}

static void each(void (*body)(enum device_type type, uint32_t channels))
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        for (size_t j = 0; j < sizeof channel_counts / sizeof *channel_counts; j++)
            body(types[i], channel_counts[j]);
}

/* ---- input ---- */

/* Rows of whole vectors of pixels, or not. */
static void normalised_to(enum device_type type, uint32_t channels, uint32_t width)
{
    enum { IMAGES = 2, WIDTH_MOST = 8, HEIGHT = 5 };
    const struct device_input input = {.type = type,
                                       .images = IMAGES,
                                       .height = HEIGHT,
                                       .width = width,
                                       .channels = channels == 8 ? 8 : 4,
                                       .mean = {100, 110, 120},
                                       .deviation = {50, 60, 70}};
    uint8_t rows[IMAGES * HEIGHT * WIDTH_MOST * 3];
    struct place out = place_empty(type, IMAGES, input.channels, HEIGHT * width);

    for (size_t i = 0; i < sizeof rows; i++)
        rows[i] = (uint8_t)(random_mix(i) >> 56);
    for (uint32_t i = 0; i < IMAGES; i++)
        for (uint32_t y = 0; y < HEIGHT; y++)
            for (uint32_t x = 0; x < width; x++)
                for (uint32_t c = 0; c < 3; c++) {
                    const uint8_t byte = rows[((i * HEIGHT + y) * width + x) * 3 + c];
                    out.host[((i * input.channels + c) * HEIGHT + y) * width + x] =
                        ((float)byte - input.mean[c]) / input.deviation[c];
                }
    uint8_t *given = place_bytes(rows, sizeof rows);
    must(device_normalise(&input, given, out.device, STREAM));
    check(place_distance(&out, out.host), type, input.channels, "normalise");
    runtime_release(given);
    place_free(&out);
}

static void normalised(enum device_type type, uint32_t channels)
{
    normalised_to(type, channels, 5);
    normalised_to(type, channels, 8);
}

static void images_are_normalised(void **unused)
{
    each(normalised);
}

/* ---- pointwise ---- */

/* The highest rate, of 32 bits, at which a number is kept. */
static double last_rate(uint64_t key, uint64_t index)
{
    double rate = 0;

    for (double step = 0.5; step >= 0x1p-32; step /= 2)
        if (kernel_dropout_keeps(key, index, rate + step))
            rate += step;
    return rate;
}

static void pointwise(enum device_type type, uint32_t channels)
{
    enum { IMAGES = 2, PLANE = 15 };
    struct place a = place_random(type, IMAGES, channels, PLANE, 1);
    struct place b = place_random(type, IMAGES, channels, PLANE, 2);
    struct place out = place_empty(type, IMAGES, channels, PLANE);
    const size_t count = place_count(&a);
    const struct device_pixels pixels = {type, channels, IMAGES * PLANE};
    const uint64_t key = kernel_dropout_key(3, 4, 5);
    uint64_t *given_key = place_bytes(&key, sizeof key);

    kernel_add(count, a.host, b.host, out.host);
    must(device_sum(type, count, a.device, b.device, false, out.device, STREAM));
    check(place_distance(&out, out.host), type, channels, "sum");
    kernel_relu(count, out.host, out.host);
    must(device_sum(type, count, a.device, b.device, true, out.device, STREAM));
    check(place_distance(&out, out.host), type, channels, "sum and ReLU");
    memset(out.host, 0, count * sizeof(float));
    kernel_relu_backward(count, a.host, b.host, out.host);
    must(device_relu_backward(type, count, a.device, b.device, out.device, STREAM));
    check(place_distance(&out, out.host), type, channels, "ReLU backward");
    /* Rates at which number 7 is just kept, and just not. */
    const double last = last_rate(key, 7), rates[] = {0.3, 0, last, last + 0x1p-32};
    assert_true(kernel_dropout_keeps(key, 7, rates[2]) && !kernel_dropout_keeps(key, 7, rates[3]));
    for (int i = 0; i < 4; i++) {
        kernel_dropout(count, key, rates[i], a.host, out.host);
        must(device_dropout(&pixels, PLANE, given_key, rates[i], a.device, out.device, STREAM));
        check(place_distance(&out, out.host), type, channels, "dropout");
    }
    runtime_release(given_key);
    place_free(&a);
    place_free(&b);
    place_free(&out);
}

static void numbers_one_by_one(void **unused)
{
    each(pointwise);
}

static void joined(enum device_type type, uint32_t channels)
{
    enum { IMAGES = 2, PLANE = 6 };
    struct place first = place_random(type, IMAGES, 24, PLANE, 1);
    struct place second = place_random(type, IMAGES, channels, PLANE, 2);
    struct place whole = place_empty(type, IMAGES, 24 + channels, PLANE);
    struct place back = place_empty(type, IMAGES, channels, PLANE);
    struct device_part part = {type, IMAGES * PLANE, 24, 24, 0, 24 + channels, 0};

    kernel_concat(IMAGES, 24 * PLANE, 0, (24 + channels) * PLANE, first.host, whole.host);
    kernel_concat(IMAGES, channels * PLANE, 24 * PLANE, (24 + channels) * PLANE, second.host,
                  whole.host);
    must(device_copy_part(&part, first.device, whole.device, STREAM));
    part = (struct device_part){type, IMAGES * PLANE, channels, channels, 0, 24 + channels, 24};
    must(device_copy_part(&part, second.device, whole.device, STREAM));
    assert_true(place_distance(&whole, whole.host) == 0);
    part = (struct device_part){type, IMAGES * PLANE, channels, 24 + channels, 24, channels, 0};
    must(device_copy_part(&part, whole.device, back.device, STREAM));
    assert_true(place_distance(&back, second.host) == 0);
    place_free(&first);
    place_free(&second);
    place_free(&whole);
    place_free(&back);
}

static void parts_are_joined_and_split(void **unused)
{
    each(joined);
}

static void local_response_of(enum device_type type, uint32_t channels, uint32_t size)
{
    const struct kernel_lrn lrn = {2, channels, 6, size, 0.5, 0.75, 1};
    struct place x = place_random(type, lrn.images, channels, lrn.plane, 1);
    struct place d = place_random(type, lrn.images, channels, lrn.plane, 2);
    struct place out = place_empty(type, lrn.images, channels, lrn.plane);

    kernel_lrn(&lrn, x.host, out.host);
    must(device_lrn(&lrn, type, x.device, out.device, STREAM));
    check(place_distance(&out, out.host), type, channels, "LRN");
    memset(out.host, 0, place_count(&out) * sizeof(float));
    kernel_lrn_backward(&lrn, x.host, d.host, out.host);
    must(device_lrn_backward(&lrn, type, x.device, d.device, out.device, STREAM));
    check(place_distance(&out, out.host), type, channels, "LRN backward");
    place_free(&x);
    place_free(&d);
    place_free(&out);
}

static void local_response(enum device_type type, uint32_t channels)
{
    local_response_of(type, channels, 5);
    local_response_of(type, channels, 3);
}

static void local_responses_are_normalised(void **unused)
{
    each(local_response);
}

/* ---- BN ---- */

enum { NORM_VECTORS = 14 };

static uint32_t rows_off; /* floats by which written vectors are misaligned: norm_make() */

/* Vectors of `channels` floats on the device, and what they start from on the host. */
struct norm_place {
    uint32_t channels;
    float *host; /* gamma, beta, running mean, running variance */
    float *device;
    struct device_norm norm;
    float *abc, *d_gamma, *d_beta, *partial;
};

static struct norm_place norm_make(const struct device_pixels *pixels)
{
    const uint32_t channels = pixels->channels;
    struct norm_place place = {.channels = channels,
                               .host = host_floats((size_t)NORM_VECTORS * channels + 1)};

    for (uint32_t c = 0; c < channels; c++) {
        place.host[c] = (float)(c % 7) * 0.4f - 0.8f; /* 0 too: all are the maximum then */
        place.host[channels + c] = (float)(c % 5) * 0.3f - 0.5f;
        place.host[2 * channels + c] = (float)(c % 3);
        place.host[3 * channels + c] = 1 + (float)(c % 4);
    }
    place.device = place_bytes(place.host, ((size_t)NORM_VECTORS * channels + 1) * sizeof(float));
    float *next = place.device, *written = next + rows_off;
    place.norm = (struct device_norm){.epsilon = 1e-5,
                                      .momentum = 0.1,
                                      .gamma = next,
                                      .beta = next + channels,
                                      .running_mean = next + 2 * channels,
                                      .running_variance = next + 3 * channels,
                                      .mean = written + 4 * channels,
                                      .inverse = written + 5 * channels,
                                      .scale = written + 6 * channels,
                                      .bias = written + 7 * channels};
    place.d_gamma = written + 8 * channels;
    place.d_beta = written + 9 * channels;
    place.abc = written + 11 * channels;
    place.partial = place_bytes(NULL, device_partial_floats(pixels) * sizeof(float));
    return place;
}

static void norm_unmake(struct norm_place *place)
{
    free(place->host);
    runtime_release(place->device);
    runtime_release(place->partial);
}

static void norm_forward(enum device_type type, uint32_t channels)
{
    enum { IMAGES = 3, PLANE = 77 };
    const struct device_pixels pixels = {type, channels, IMAGES * PLANE};
    struct norm_place place = norm_make(&pixels);
    struct place x = place_random(type, IMAGES, channels, PLANE, 1);
    struct place other = place_random(type, IMAGES, channels, PLANE, 2);
    struct place y = place_empty(type, IMAGES, channels, PLANE);
    float *mean = host_floats(channels), *variance = host_floats(channels);
    float *gamma = place.host, *beta = gamma + channels;

    for (size_t i = 0; i < place_count(&x); i++)
        x.host[i] = x.host[i] * 0.5f + 30; /* a large mean */
    put(&x);
    kernel_batch_norm(IMAGES, channels, PLANE, 1e-5, x.host, gamma, beta, y.host, mean, variance);
    kernel_batch_norm_statistics(channels, IMAGES * PLANE, 0.1, mean, variance, beta + channels,
                                 beta + 2 * channels);
    must(device_norm_statistics(&pixels, &place.norm, x.device, place.partial, STREAM));
    check(floats_distance(place.norm.mean, mean, channels), DEVICE_FP32, channels, "mean");
    check(floats_distance(place.norm.running_mean, beta + channels, 2 * channels), DEVICE_FP32,
          channels, "running statistics");

    struct device_affine affine = {.scale = place.norm.scale, .bias = place.norm.bias};
    must(device_affine(&pixels, &affine, x.device, y.device, STREAM));
    /* x * scale and bias nearly cancel out, here where the mean is large. */
    check(place_distance(&y, y.host) / 10, type, channels, "BN");
    affine.other = other.device;
    affine.relu = true;
    kernel_add(place_count(&y), y.host, other.host, y.host);
    kernel_relu(place_count(&y), y.host, y.host);
    must(device_affine(&pixels, &affine, x.device, y.device, STREAM));
    check(place_distance(&y, y.host) / 10, type, channels, "BN, sum and ReLU");

    kernel_batch_norm_infer(IMAGES, channels, PLANE, 1e-5, other.host, gamma, beta, beta + channels,
                            beta + 2 * channels, y.host);
    must(device_norm_infer(channels, &place.norm, STREAM));
    affine = (struct device_affine){.scale = place.norm.scale, .bias = place.norm.bias};
    must(device_affine(&pixels, &affine, other.device, y.device, STREAM));
    check(place_distance(&y, y.host), type, channels, "BN by running statistics");
    free(mean);
    free(variance);
    norm_unmake(&place);
    place_free(&x);
    place_free(&other);
    place_free(&y);
}

static void batches_are_normalised(void **unused)
{
    for (rows_off = 0; rows_off < 2; rows_off++)
        each(norm_forward);
}

/* dz = d + d_other where the ReLU was open, then BN's backward pass. */
static void norm_backward(enum device_type type, uint32_t channels)
{
    enum { IMAGES = 3, PLANE = 77 };
    const struct device_pixels pixels = {type, channels, IMAGES * PLANE};
    struct norm_place place = norm_make(&pixels);
    struct place x = place_random(type, IMAGES, channels, PLANE, 1);
    struct place d = place_random(type, IMAGES, channels, PLANE, 2);
    struct place d_other = place_random(type, IMAGES, channels, PLANE, 3);
    struct place mask = place_random(type, IMAGES, channels, PLANE, 4);
    struct place dz = place_empty(type, IMAGES, channels, PLANE);
    struct place d_x = place_empty(type, IMAGES, channels, PLANE);
    const size_t count = place_count(&x);
    float *mean = host_floats(channels), *variance = host_floats(channels);
    float *d_gamma = host_floats(channels), *d_beta = host_floats(channels);
    float *sum = host_floats(count);

    kernel_batch_norm(IMAGES, channels, PLANE, 1e-5, x.host, place.host, place.host + channels, sum,
                      mean, variance);
    kernel_add(count, d.host, d_other.host, sum);
    kernel_relu_backward(count, mask.host, sum, dz.host);
    for (size_t i = 0; i < count; i++)
        dz.host[i] = place_round(type, dz.host[i]);
    kernel_batch_norm_backward(IMAGES, channels, PLANE, 1e-5, x.host, place.host, mean, variance,
                               dz.host, d_x.host, d_gamma, d_beta);
    const struct device_norm_gradient gradient = {
        .d_output = d.device, .d_other = d_other.device, .mask = mask.device, .dz = dz.device};
    must(device_norm_statistics(&pixels, &place.norm, x.device, place.partial, STREAM));
    must(device_norm_backward(&pixels, &place.norm, &gradient, x.device, place.d_gamma,
                              place.d_beta, place.abc, place.partial, STREAM));
    must(device_norm_backward_apply(&pixels, place.abc, dz.device, x.device, d_x.device, STREAM));
    check(place_distance(&dz, dz.host), type, channels, "dz");
    check(floats_distance(place.d_gamma, d_gamma, channels), DEVICE_FP32, channels, "d_gamma");
    check(floats_distance(place.d_beta, d_beta, channels), DEVICE_FP32, channels, "d_beta");
    check(place_distance(&d_x, d_x.host), type, channels, "BN backward");

    memset(d_beta, 0, channels * sizeof *d_beta);
    for (size_t i = 0; i < count; i++)
        d_beta[i / PLANE % channels] += d.host[i];
    must(device_bias_gradient(&pixels, d.device, place.d_beta, place.partial, STREAM));
    check(floats_distance(place.d_beta, d_beta, channels), DEVICE_FP32, channels, "d_bias");
    free(mean);
    free(variance);
    free(d_gamma);
    free(d_beta);
    free(sum);
    norm_unmake(&place);
    place_free(&x);
    place_free(&d);
    place_free(&d_other);
    place_free(&mask);
    place_free(&dz);
    place_free(&d_x);
}

static void gradients_pass_through_bn(void **unused)
{
    for (rows_off = 0; rows_off < 2; rows_off++)
        each(norm_backward);
}

/* ---- pools ---- */

/* Images, input, output, window, stride, padding, groups; channels are filled in. The windows of
 * the second reach beyond the input. */
static const struct kernel_window pool_windows[] = {
    {2, 0, 9, 7, 0, 5, 4, 3, 3, 2, 1, 1, 0, 0, 1, false},
    {2, 0, 8, 6, 0, 4, 3, 3, 3, 2, 0, 0, 0, 0, 1, false},
    {2, 0, 6, 8, 0, 3, 4, 2, 2, 2, 0, 0, 0, 0, 1, false},
    {2, 0, 9, 11, 0, 4, 4, 5, 4, 3, 2, 1, 0, 0, 1, false},
    {1, 0, 7, 7, 0, 1, 1, 7, 7, 1, 0, 0, 0, 0, 1, true},
    {2, 0, 5, 3, 0, 1, 1, 5, 3, 1, 0, 0, 0, 0, 1, false},
    {1, 0, 5, 5, 0, 5, 5, 3, 3, 1, 1, 1, 0, 0, 1, true},
};

static void pool(enum device_type type, uint32_t channels, struct kernel_window window)
{
    const size_t in = (size_t)window.in_height * window.in_width;
    const size_t out = (size_t)window.out_height * window.out_width;

    window.in_channels = window.out_channels = channels;
    struct place x = place_random(type, window.images, channels, in, 1);
    struct place d = place_random(type, window.images, channels, out, 2);
    struct place y = place_empty(type, window.images, channels, out);
    struct place d_x = place_empty(type, window.images, channels, in);
    uint8_t *which = place_bytes(NULL, place_count(&y));

    kernel_max_pool(&window, x.host, y.host);
    must(device_max_pool(&window, type, x.device, y.device, which, STREAM));
    assert_true(place_distance(&y, y.host) == 0);
    kernel_max_pool_backward(&window, x.host, d.host, d_x.host);
    must(device_max_pool_backward(&window, type, which, d.device, d_x.device, STREAM));
    check(place_distance(&d_x, d_x.host), type, channels, "max-pool backward");
    kernel_average_pool(&window, x.host, y.host);
    must(device_average_pool(&window, type, x.device, y.device, STREAM));
    check(place_distance(&y, y.host), type, channels, "average-pool");
    memset(d_x.host, 0, place_count(&d_x) * sizeof(float));
    kernel_average_pool_backward(&window, d.host, d_x.host);
    must(device_average_pool_backward(&window, type, d.device, d_x.device, STREAM));
    check(place_distance(&d_x, d_x.host), type, channels, "average-pool backward");
    runtime_release(which);
    place_free(&x);
    place_free(&d);
    place_free(&y);
    place_free(&d_x);
}

static void pool_all(enum device_type type, uint32_t channels)
{
    for (size_t i = 0; i < sizeof pool_windows / sizeof *pool_windows; i++)
        pool(type, channels, pool_windows[i]);
}

static void pools_both_ways(void **unused)
{
    each(pool_all);
}

static void too_large_pools_are_refused(void **unused)
{
    struct kernel_window window = pool_windows[0];

    window.in_channels = window.out_channels = 8;
    window.images = UINT32_MAX / (9 * 7) + 1;
    assert_int_equal(device_max_pool_backward(&window, DEVICE_FP16, NULL, NULL, NULL, STREAM),
                     -EINVAL);
}

/* BN, ReLU and max-pool in one kernel against three. two: of the pool's output there are two
 * gradients. */
static void stem(enum device_type type, uint32_t channels, bool two)
{
    struct kernel_window window = pool_windows[0];
    const size_t in = (size_t)window.in_height * window.in_width;
    const size_t out = (size_t)window.out_height * window.out_width;
    const struct device_pixels pixels = {type, channels, window.images * in};

    window.in_channels = window.out_channels = channels;
    struct norm_place place = norm_make(&pixels);
    struct place x = place_random(type, window.images, channels, in, 1);
    struct place d = place_random(type, window.images, channels, out, 2);
    struct place other = place_random(type, window.images, channels, out, 3);
    struct place y = place_empty(type, window.images, channels, out);
    struct place dz = place_empty(type, window.images, channels, in);
    struct place d_x = place_empty(type, window.images, channels, in);
    const size_t count = place_count(&x);
    float *mean = host_floats(channels), *variance = host_floats(channels);
    float *d_gamma = host_floats(channels), *d_beta = host_floats(channels);
    float *hidden = host_floats(count), *d_hidden = host_floats(count);
    uint8_t *which = place_bytes(NULL, place_count(&y));

    kernel_batch_norm(window.images, channels, in, 1e-5, x.host, place.host, place.host + channels,
                      hidden, mean, variance);
    kernel_relu(count, hidden, hidden);
    kernel_max_pool(&window, hidden, y.host);
    if (two)
        kernel_add(place_count(&d), d.host, other.host, d.host);
    kernel_max_pool_backward(&window, hidden, d.host, d_hidden);
    kernel_relu_backward(count, hidden, d_hidden, dz.host);
    kernel_batch_norm_backward(window.images, channels, in, 1e-5, x.host, place.host, mean,
                               variance, dz.host, d_x.host, d_gamma, d_beta);
    must(device_norm_statistics(&pixels, &place.norm, x.device, place.partial, STREAM));
    must(device_stem(&window, type, place.norm.scale, place.norm.bias, x.device, y.device, which,
                     STREAM));
    check(place_distance(&y, y.host), type, channels, "stem");
    must(device_stem_backward(&window, type, &place.norm, which, x.device, d.device,
                              two ? other.device : NULL, dz.device, place.d_gamma, place.d_beta,
                              place.abc, place.partial, STREAM));
    must(device_norm_backward_apply(&pixels, place.abc, dz.device, x.device, d_x.device, STREAM));
    check(place_distance(&dz, dz.host), type, channels, "stem backward");
    check(place_distance(&d_x, d_x.host), type, channels, "stem backward, to the input");
    check(floats_distance(place.d_gamma, d_gamma, channels), type, channels, "stem's d_gamma");
    check(floats_distance(place.d_beta, d_beta, channels), type, channels, "stem's d_beta");
    free(mean);
    free(variance);
    free(d_gamma);
    free(d_beta);
    free(hidden);
    free(d_hidden);
    runtime_release(which);
    norm_unmake(&place);
    place_free(&x);
    place_free(&d);
    place_free(&other);
    place_free(&y);
    place_free(&dz);
    place_free(&d_x);
}

static void stem_both_ways(enum device_type type, uint32_t channels)
{
    stem(type, channels, false);
    stem(type, channels, true);
}

static void stems_both_ways(void **unused)
{
    for (rows_off = 0; rows_off < 2; rows_off++)
        each(stem_both_ways);
}

/* ---- the head ---- */

static void head(enum device_type type, uint32_t classes)
{
    enum { IMAGES = 9 };
    struct place logits = place_random(type, IMAGES, classes, 1, 1);
    struct place d = place_empty(type, IMAGES, classes, 1);
    int32_t labels[IMAGES];
    const float scale = 1.0f / (IMAGES - 1);

    for (int i = 0; i < IMAGES; i++)
        labels[i] = (int32_t)(random_mix((uint64_t)i) % classes);
    labels[4] = -1;
    for (uint32_t c = 0; c < classes; c++)
        logits.host[c] = 1; /* all equal: the lowest number wins */
    put(&logits);
    labels[0] = 0;
    for (int smooth = 0; smooth < 2; smooth++) {
        const double smoothing = smooth * 0.1;
        const struct kernel_loss wanted =
            kernel_cross_entropy(IMAGES, classes, logits.host, labels, smoothing, d.host);
        int32_t *given = place_bytes(labels, sizeof labels);
        float *given_scale = place_bytes(&scale, sizeof scale);
        struct device_loss *per_image = place_bytes(NULL, IMAGES * sizeof *per_image), found;
        struct device_loss *total = place_bytes(NULL, sizeof *total);
        must(device_cross_entropy(type, IMAGES, classes, logits.device, given, smoothing,
                                  given_scale, d.device, per_image, total, STREAM));
        fetch_bytes(&found, total, sizeof found);
        assert_int_equal(found.counted, wanted.counted);
        assert_int_equal(found.correct, wanted.correct);
        assert_int_equal(found.correct_top5, wanted.correct_top5);
        assert_true(fabs(found.loss / found.counted - wanted.loss) < 1e-5 * wanted.loss);
        check(place_distance(&d, d.host), type, classes, "gradient of the logits");
        runtime_release(given);
        runtime_release(given_scale);
        runtime_release(per_image);
        runtime_release(total);
    }
    place_free(&logits);
    place_free(&d);
}

static void losses_and_their_gradients(void **unused)
{
    each(head);
}

/* ---- convolutions ---- */

static void convolved(enum device_type type, uint32_t channels)
{
    const struct kernel_window window = {.images = 2,
                                         .in_channels = channels % 2 ? 3 : 4,
                                         .in_height = 7,
                                         .in_width = 6,
                                         .out_channels = 6,
                                         .out_height = 4,
                                         .out_width = 3,
                                         .height = 3,
                                         .width = 2,
                                         .stride = 2,
                                         .pad_top = 1,
                                         .pad_left = 1,
                                         .groups = channels % 2 ? 1 : 2};
    const uint32_t ins = window.in_channels / window.groups;
    struct place x = place_random(type, 2, window.in_channels, 42, 1);
    struct place w = place_random(type, 6, ins, 6, 2), d = place_random(type, 2, 6, 12, 3);
    struct place y = place_empty(type, 2, 6, 12),
                 d_x = place_empty(type, 2, window.in_channels, 42);
    struct place d_w = place_empty(type, 6, ins, 6);
    float *workspace = host_floats(kernel_convolution_workspace(&window));

    kernel_convolution(&window, x.host, w.host, NULL, y.host, workspace);
    must(device_convolution(&window, type, x.device, w.device, y.device, STREAM));
    check(place_distance(&y, y.host), type, channels, "convolution");
    kernel_convolution_backward(&window, x.host, w.host, d.host, d_x.host, d_w.host, NULL,
                                workspace);
    must(device_convolution_data(&window, type, d.device, w.device, d_x.device, STREAM));
    check(place_distance(&d_x, d_x.host), type, channels, "convolution, to the input");
    must(device_convolution_weight(&window, type, x.device, d.device, d_w.device, STREAM));
    check(place_distance(&d_w, d_w.host), type, channels, "convolution, to the weight");
    free(workspace);
    place_free(&x);
    place_free(&w);
    place_free(&d);
    place_free(&y);
    place_free(&d_x);
    place_free(&d_w);
}

static void plain_convolutions(void **unused)
{
    each(convolved);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_are_normalised),
        cmocka_unit_test(numbers_one_by_one),
        cmocka_unit_test(parts_are_joined_and_split),
        cmocka_unit_test(local_responses_are_normalised),
        cmocka_unit_test(batches_are_normalised),
        cmocka_unit_test(gradients_pass_through_bn),
        cmocka_unit_test(pools_both_ways),
        cmocka_unit_test(too_large_pools_are_refused),
        cmocka_unit_test(stems_both_ways),
        cmocka_unit_test(losses_and_their_gradients),
        cmocka_unit_test(plain_convolutions),
    };

    if (runtime_usable()) {
        printf("skipped: %s\n", fail_reason());
        return 77;
    }
    must(runtime_open(&place_runtime, 0, 0));
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    runtime_close(&place_runtime);
    return failed;
}
