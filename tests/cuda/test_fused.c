/* SPDX-License-Identifier: Apache-2.0
 *
 * Every fused plan's numbers against the reference in kernels/kernels.h: convolutions of ResNet-50
 * by cuDNN on a device, and, on the host, small ones by what stands in for it. Relative L2 distance
 * at most 1e-4 in FP32, 1e-2 in FP16, 2e-2 in BF16. With IOBENCH_SHOW=1 each distance is printed.
 */
#include "tests/cuda/place.h"

#include "trainer/cuda/dnn.h"

#include <errno.h>

static struct dnn *dnn;
static bool emulated, shows;
static uint32_t computed, refused;

/* A BN before the convolution: mean, inverse, gamma, beta; d_gamma, d_beta, a, b, c. */
struct before {
    float *vectors, *on_device;
    struct place scale, bias;
};

/* A convolution with everything around it, on host and device. */
struct layer {
    struct dnn_shape shape;
    struct place x, y, w, other_in, other_out, residual, sum;
    struct before norm, beside; /* of x, and of the residual */
    float *out_vectors;         /* scale, bias; sums, squares */
    float *on_out;
    float *workspace;
};

enum { BEFORE_VECTORS = 9, OUT_VECTORS = 4 };

static void check(const struct layer *layer, double distance, const char *what)
{
    const enum device_type type = layer->shape.type;
    const struct kernel_window *w = &layer->shape.window;
    const double most = type == DEVICE_FP32 ? 1e-4 : type == DEVICE_FP16 ? 1e-2 : 2e-2;
    static const char *const types[] = {"fp32", "fp16", "bf16"};
    char text[200];

    snprintf(text, sizeof text,
             "%s: %u x %u / %u, %u channels of %u x %u to %u, fusion %u: %s off by %.2g",
             types[type], w->height, w->width, w->stride, w->in_channels, w->in_height, w->in_width,
             w->out_channels, layer->shape.fusion, what, distance);
    if (shows)
        print_message("%s\n", text);
    if (!(distance <= most))
        fail_msg("%s", text);
}

static size_t in_plane(const struct layer *layer)
{
    return (size_t)layer->shape.window.in_height * layer->shape.window.in_width;
}

static size_t out_plane(const struct layer *layer)
{
    return (size_t)layer->shape.window.out_height * layer->shape.window.out_width;
}

/* One of the vectors, on the host or on the device. */
static float *before_vector(const struct layer *layer, float *vectors, uint32_t which)
{
    return vectors + (size_t)which * layer->shape.window.in_channels;
}

static float *out_vector(const struct layer *layer, float *vectors, uint32_t which)
{
    return vectors + (size_t)which * layer->shape.window.out_channels;
}

static size_t in_channel(const struct layer *layer, size_t i)
{
    return i / in_plane(layer) % layer->shape.window.in_channels;
}

static float normalised(const struct layer *layer, const struct before *norm, float value, size_t c)
{
    const uint32_t channels = layer->shape.window.in_channels;
    const float *v = norm->vectors;

    return (value - v[c]) * v[channels + c] * v[2 * channels + c] + v[3 * channels + c];
}

/* The input of the ReLU before. */
static float before_relu(const struct layer *layer, uint32_t fusion, size_t i)
{
    const size_t c = in_channel(layer, i);
    const float residual = layer->residual.host[i];

    return normalised(layer, &layer->norm, layer->x.host[i], c) +
           (fusion & DNN_DUAL     ? normalised(layer, &layer->beside, residual, c)
            : fusion & DNN_SUMMED ? residual
                                  : 0);
}

/* Keep the ReLU's input away from 0, where the last bit decides. */
static void keep_away(struct layer *layer)
{
    for (size_t i = 0; i < place_count(&layer->x); i++)
        while (fabsf(before_relu(layer, 0, i)) < 0.03f ||
               fabsf(before_relu(layer, DNN_SUMMED, i)) < 0.03f ||
               fabsf(before_relu(layer, DNN_SUMMED | DNN_DUAL, i)) < 0.03f)
            layer->x.host[i] = place_round(layer->shape.type, layer->x.host[i] + 0.11f);
    put(&layer->x);
}

static struct before before_make(enum device_type type, uint32_t channels, uint32_t seed)
{
    struct before norm = {.vectors = host_floats((size_t)BEFORE_VECTORS * channels),
                          .scale = place_random(type, 1, channels, 1, seed),
                          .bias = place_random(type, 1, channels, 1, seed + 1)};

    for (uint32_t c = 0; c < channels; c++) {
        norm.vectors[c] = (float)((c + seed) % 5) * 0.2f - 0.4f;
        norm.vectors[channels + c] = 0.5f + (float)((c + seed) % 3) * 0.4f;
        norm.vectors[2 * channels + c] = 0.6f + (float)((c + seed) % 7) * 0.1f;
        norm.vectors[3 * channels + c] = (float)((c + seed) % 4) * 0.3f - 0.4f;
    }
    norm.on_device = place_bytes(norm.vectors, (size_t)BEFORE_VECTORS * channels * sizeof(float));
    return norm;
}

static void before_unmake(struct before *norm)
{
    free(norm->vectors);
    runtime_release(norm->on_device);
    place_free(&norm->scale);
    place_free(&norm->bias);
}

static struct layer layer_make(enum device_type type, const struct kernel_window *w)
{
    struct layer layer = {.shape = {.type = type, .window = *w}};
    const uint32_t in = w->in_channels, out = w->out_channels;

    layer.x = place_random(type, w->images, in, in_plane(&layer), 1);
    layer.residual = place_random(type, w->images, in, in_plane(&layer), 2);
    layer.other_in = place_random(type, w->images, in, in_plane(&layer), 3);
    layer.y = place_random(type, w->images, out, out_plane(&layer), 4);
    layer.other_out = place_random(type, w->images, out, out_plane(&layer), 5);
    layer.sum = place_empty(type, w->images, in, in_plane(&layer));
    layer.w = place_random(type, out, in, (size_t)w->height * w->width, 6);
    for (size_t i = 0; i < place_count(&layer.w); i++)
        layer.w.host[i] /= sqrtf((float)(in * w->height * w->width));
    put(&layer.w);
    layer.norm = before_make(type, in, 7);
    layer.beside = before_make(type, in, 9);
    layer.out_vectors = host_floats((size_t)OUT_VECTORS * out);
    for (uint32_t c = 0; c < 2 * out; c++)
        layer.out_vectors[c] = (float)(c % 6) * 0.3f - 0.6f;
    layer.on_out = place_bytes(layer.out_vectors, (size_t)OUT_VECTORS * out * sizeof(float));
    layer.workspace = host_floats(kernel_convolution_workspace(w));
    keep_away(&layer);
    return layer;
}

static void layer_unmake(struct layer *layer)
{
    struct place *const places[] = {&layer->x,        &layer->y,         &layer->w,
                                    &layer->other_in, &layer->other_out, &layer->residual,
                                    &layer->sum};

    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        place_free(places[i]);
    before_unmake(&layer->norm);
    before_unmake(&layer->beside);
    free(layer->out_vectors);
    free(layer->workspace);
    runtime_release(layer->on_out);
}

/* Run the plan of a fusion with `result` as its output. false: there is no plan. */
static bool compute(struct layer *layer, enum dnn_kind kind, uint32_t fusion, struct place *result)
{
    static const enum dnn_tensor given[] = {
        [DNN_FORWARD] = DNN_OUTPUT, [DNN_DATA] = DNN_INPUT, [DNN_WEIGHT] = DNN_WEIGHTS};
    struct dnn_tensors tensors = {
        .at = {[DNN_INPUT] = layer->x.device,
               [DNN_WEIGHTS] = layer->w.device,
               [DNN_OUTPUT] = layer->y.device,
               [DNN_IN_SCALE] = layer->norm.scale.device,
               [DNN_IN_BIAS] = layer->norm.bias.device,
               [DNN_BESIDE] = layer->beside.scale.device,
               [DNN_BESIDE + 1] = layer->beside.bias.device,
               [DNN_OTHER] = kind == DNN_DATA ? layer->other_in.device : layer->other_out.device,
               [DNN_X] = layer->x.device,
               [DNN_RESIDUAL] = layer->residual.device,
               [DNN_SUM] = layer->sum.device}};
    const size_t before_bytes =
        (size_t)BEFORE_VECTORS * layer->shape.window.in_channels * sizeof(float);
    int code = 0;

    for (uint32_t i = 0; i < BEFORE_VECTORS; i++) {
        tensors.at[DNN_MEAN + i] = before_vector(layer, layer->norm.on_device, i);
        tensors.at[dnn_beside(DNN_MEAN) + i] = before_vector(layer, layer->beside.on_device, i);
    }
    tensors.at[DNN_SCALE] = out_vector(layer, layer->on_out, 0);
    tensors.at[DNN_BIAS] = out_vector(layer, layer->on_out, 1);
    tensors.at[DNN_SUMS] = out_vector(layer, layer->on_out, 2);
    tensors.at[DNN_SQUARES] = out_vector(layer, layer->on_out, 3);
    tensors.at[given[kind]] = result->device;
    layer->shape.kind = kind;
    layer->shape.fusion = fusion;
    const struct dnn_plan *plan = dnn_find(dnn, &layer->shape, &code);
    if (!plan && code != -ENOTSUP)
        fail_msg("%s", fail_reason());
    computed += plan != NULL;
    refused += plan == NULL;
    if (!plan && shows)
        print_message("kind %d, fusion %u is refused: %s\n", (int)kind, fusion, fail_reason());
    if (!plan)
        return false;
    tensors.workspace = runtime_allocate(plan->workspace_bytes + 1);
    assert_non_null(tensors.workspace);
    must(dnn_run(dnn, plan, &tensors));
    must(runtime_wait(place_runtime.stream));
    runtime_release(tensors.workspace);
    fetch_bytes(layer->norm.vectors, layer->norm.on_device, before_bytes);
    fetch_bytes(layer->beside.vectors, layer->beside.on_device, before_bytes);
    return true;
}

/* What the convolution reads. */
static float *taken(const struct layer *layer, uint32_t fusion)
{
    float *input = host_floats(place_count(&layer->x));

    for (size_t i = 0; i < place_count(&layer->x); i++) {
        const struct before *norm = &layer->norm, *beside = &layer->beside;
        const size_t c = in_channel(layer, i);
        float value = layer->x.host[i] * norm->scale.host[c] + norm->bias.host[c];
        if (fusion & DNN_DUAL)
            value += layer->residual.host[i] * beside->scale.host[c] + beside->bias.host[c];
        else if (fusion & DNN_SUMMED)
            value += layer->residual.host[i];
        input[i] = !(fusion & DNN_PROLOGUE) ? layer->x.host[i] : value > 0 ? value : 0;
    }
    return input;
}

static void forward(struct layer *layer, uint32_t fusion)
{
    const uint32_t channels = layer->shape.window.out_channels;
    struct place y = place_empty(layer->shape.type, layer->y.images, channels, out_plane(layer));
    float *input = taken(layer, fusion);
    float *sums = host_floats((size_t)2 * channels);
    const float *scale = layer->out_vectors, *bias = scale + channels;

    if (compute(layer, DNN_FORWARD, fusion, &y)) {
        kernel_convolution(&layer->shape.window, input, layer->w.host, NULL, y.host,
                           layer->workspace);
        for (size_t i = 0; i < place_count(&y); i++) {
            const size_t c = i / out_plane(layer) % channels;
            float *value = &y.host[i];
            *value *= fusion & DNN_SCALED ? scale[c] : 1;
            *value += fusion & DNN_BIASED ? bias[c] : 0;
            *value += fusion & DNN_ADDED ? layer->other_out.host[i] : 0;
            *value = fusion & DNN_RECTIFIED && *value < 0 ? 0 : *value;
            sums[c] += *value;
            sums[channels + c] += *value * *value;
        }
        check(layer, place_distance(&y, y.host), "output");
        if (fusion & DNN_SUMMED)
            check(layer, place_distance(&layer->sum, input), "sum");
        if (fusion & DNN_STATISTICS) {
            /* Compare sums relative to their terms: they may be near 0. */
            float *found = host_floats((size_t)2 * channels);
            double apart = 0, size = 0;
            fetch_bytes(found, out_vector(layer, layer->on_out, 2),
                        (size_t)2 * channels * sizeof(float));
            for (uint32_t c = 0; c < channels; c++) {
                apart += pow((double)found[c] - (double)sums[c], 2);
                size += (double)sums[channels + c] * (double)(out_plane(layer) * y.images);
            }
            check(layer, sqrt(apart / size), "sums");
            check(layer,
                  floats_distance(out_vector(layer, layer->on_out, 3), sums + channels, channels),
                  "squares");
            free(found);
        }
    }
    free(sums);
    free(input);
    place_free(&y);
}

static void weight(struct layer *layer, uint32_t fusion)
{
    struct place w =
        place_empty(layer->shape.type, layer->w.images, layer->w.channels, layer->w.plane);
    float *input = taken(layer, fusion);

    if (compute(layer, DNN_WEIGHT, fusion, &w)) {
        kernel_convolution_backward(&layer->shape.window, input, layer->w.host, layer->y.host, NULL,
                                    w.host, NULL, layer->workspace);
        check(layer, place_distance(&w, w.host), "gradient of weights");
    }
    free(input);
    place_free(&w);
}

/* Check the gradients of the parameters and of x, from the expected dz. */
static void check_norm(const struct layer *l, const struct before *norm, const struct place *from,
                       const struct place *dz)
{
    const uint32_t channels = l->shape.window.in_channels;
    const double count = (double)in_plane(l) * dz->images;
    const float *v = norm->vectors;
    float *wanted = host_floats((size_t)2 * channels);
    double apart = 0, size = 0;

    for (uint32_t c = 0; c < channels; c++) {
        const double mean = (double)v[c], inverse = (double)v[channels + c];
        double sum = 0, dot = 0;
        for (size_t n = 0; n < dz->images; n++)
            for (size_t p = 0; p < in_plane(l); p++) {
                const size_t i = (n * channels + c) * in_plane(l) + p;
                sum += (double)dz->host[i];
                dot += (double)dz->host[i] * ((double)from->host[i] - mean);
            }
        wanted[c] = (float)(dot * inverse);
        wanted[channels + c] = (float)sum;
        const double a = (double)v[2 * channels + c] * inverse;
        const double b = -a * inverse * inverse * dot / count, k = -a * sum / count - b * mean;
        for (size_t n = 0; n < dz->images; n++)
            for (size_t p = 0; p < in_plane(l); p++) {
                const size_t i = (n * channels + c) * in_plane(l) + p;
                const double x = (double)from->host[i], d = (double)dz->host[i];
                const double right = a * d + b * x + k;
                const double found = (double)v[6 * channels + c] * d +
                                     (double)v[7 * channels + c] * x + (double)v[8 * channels + c];
                apart += (right - found) * (right - found);
                size += right * right;
            }
    }
    check(l, floats_distance(before_vector(l, norm->on_device, 4), wanted, channels), "d_gamma");
    check(l, floats_distance(before_vector(l, norm->on_device, 5), wanted + channels, channels),
          "d_beta");
    check(l, sqrt(apart / size), "BN's a, b and c");
    free(wanted);
}

static void data(struct layer *layer, uint32_t fusion)
{
    struct place dz =
        place_empty(layer->shape.type, layer->x.images, layer->x.channels, in_plane(layer));
    float *unused = host_floats(place_count(&layer->w));

    if (compute(layer, DNN_DATA, fusion, &dz)) {
        kernel_convolution_backward(&layer->shape.window, layer->x.host, layer->w.host,
                                    layer->y.host, dz.host, unused, NULL, layer->workspace);
        for (size_t i = 0; i < place_count(&dz); i++) {
            dz.host[i] += fusion & DNN_ADDED ? layer->other_in.host[i] : 0;
            if (fusion & DNN_NORM && before_relu(layer, fusion, i) <= 0)
                dz.host[i] = 0;
        }
        check(layer, place_distance(&dz, dz.host), "gradient of the input");
        if (fusion & DNN_NORM)
            check_norm(layer, &layer->norm, &layer->x, &dz);
        if (fusion & DNN_DUAL)
            check_norm(layer, &layer->beside, &layer->residual, &dz);
    }
    free(unused);
    place_free(&dz);
}

static void all_of(enum device_type type, const struct kernel_window *window)
{
    struct layer layer = layer_make(type, window);

    forward(&layer, 0);
    forward(&layer, DNN_STATISTICS);
    forward(&layer, DNN_PROLOGUE | DNN_STATISTICS);
    forward(&layer, DNN_PROLOGUE | DNN_STATISTICS | DNN_SUMMED);
    forward(&layer, DNN_PROLOGUE | DNN_STATISTICS | DNN_SUMMED | DNN_DUAL);
    forward(&layer, DNN_BIASED | DNN_RECTIFIED);
    forward(&layer, DNN_SCALED | DNN_BIASED | DNN_RECTIFIED);
    forward(&layer, DNN_SCALED | DNN_BIASED | DNN_ADDED | DNN_RECTIFIED);
    weight(&layer, 0);
    weight(&layer, DNN_PROLOGUE);
    data(&layer, 0);
    data(&layer, DNN_NORM);
    data(&layer, DNN_NORM | DNN_ADDED);
    data(&layer, DNN_NORM | DNN_ADDED | DNN_SUMMED);
    data(&layer, DNN_NORM | DNN_SUMMED | DNN_DUAL);
    data(&layer, DNN_NORM | DNN_ADDED | DNN_SUMMED | DNN_DUAL);
    layer_unmake(&layer);
}

static struct kernel_window square(uint32_t in, uint32_t side, uint32_t out, uint32_t window,
                                   uint32_t stride)
{
    return (struct kernel_window){.images = 3,
                                  .in_channels = in,
                                  .in_height = side,
                                  .in_width = side,
                                  .out_channels = out,
                                  .out_height = (side + stride - 1) / stride,
                                  .out_width = (side + stride - 1) / stride,
                                  .height = window,
                                  .width = window,
                                  .stride = stride,
                                  .pad_top = window / 2,
                                  .pad_left = window / 2,
                                  .groups = 1};
}

static void plans_compute_as_the_reference(void **unused)
{
    /* ResNet-50: one of each kind per stage. */
    static const uint32_t layers[][5] = {
        {64, 56, 64, 1, 1},   {64, 56, 64, 3, 1},    {64, 56, 256, 1, 1},  {256, 56, 64, 1, 1},
        {128, 56, 128, 3, 2}, {256, 56, 512, 1, 2},  {128, 28, 128, 3, 1}, {512, 28, 128, 1, 1},
        {256, 28, 256, 3, 2}, {512, 28, 1024, 1, 2}, {256, 14, 256, 3, 1}, {1024, 14, 256, 1, 1},
        {512, 14, 512, 3, 2}, {512, 7, 512, 3, 1},   {512, 7, 2048, 1, 1}, {2048, 7, 512, 1, 1}};
    static const uint32_t small[][5] = {{16, 5, 8, 1, 1}, {8, 6, 16, 3, 1}, {8, 6, 16, 3, 2}};
    const size_t count = emulated ? sizeof small / sizeof *small : sizeof layers / sizeof *layers;

    for (enum device_type type = DEVICE_FP32; type <= DEVICE_BF16; type++)
        for (size_t i = 0; i < count; i++) {
            const uint32_t *l = emulated ? small[i] : layers[i];
            const struct kernel_window window = square(l[0], l[1], l[2], l[3], l[4]);
            if (emulated || type == DEVICE_FP16)
                all_of(type, &window);
        }
    print_message("%u plans, %u refused\n", computed, refused);
    assert_true(emulated ? refused == 0 : computed > refused);
}

/* ---- our kernels beside the plans: they must give what those do that are tested by themselves
 * ---- */

enum { NORM_ROWS = 16, NORM_CHANNELS = 24, NORM_PLANE = 35, NORM_IMAGES = 3 };

static struct device_norm norm_of(float *rows)
{
    float *row[NORM_ROWS];

    for (int i = 0; i < NORM_ROWS; i++)
        row[i] = rows + i * NORM_CHANNELS;
    return (struct device_norm){.epsilon = 1e-5,
                                .momentum = 0.1,
                                .gamma = row[0],
                                .beta = row[1],
                                .running_mean = row[2],
                                .running_variance = row[3],
                                .mean = row[4],
                                .inverse = row[5],
                                .scale = row[6],
                                .bias = row[7],
                                .typed_scale = row[8],
                                .typed_bias = row[9],
                                .gamma_copy = row[10],
                                .beta_copy = row[11]};
}

static void rows_alike(const float *wanted, const float *found, uint32_t first, uint32_t last)
{
    float *host = host_floats(NORM_ROWS * NORM_CHANNELS);

    fetch_bytes(host, wanted, NORM_ROWS * NORM_CHANNELS * sizeof *host);
    for (uint32_t i = first; i <= last; i++) {
        const double off =
            floats_distance(found + i * NORM_CHANNELS, host + i * NORM_CHANNELS, NORM_CHANNELS);
        if (!(off < 1e-5))
            fail_msg("row %u is off by %g", i, off);
    }
    free(host);
}

/* To the last bit. */
static void rows_same(const float *wanted, const float *found, uint32_t first, uint32_t last)
{
    const size_t start = (size_t)first * NORM_CHANNELS, count = (last - first + 1) * NORM_CHANNELS;
    float *host = host_floats(2 * count);

    fetch_bytes(host, wanted + start, count * sizeof *host);
    fetch_bytes(host + count, found + start, count * sizeof *host);
    assert_memory_equal(host, host + count, count * sizeof *host);
    free(host);
}

static void norms_beside(enum device_type type)
{
    const struct device_pixels pixels = {type, NORM_CHANNELS, NORM_IMAGES * NORM_PLANE};
    float *rows = host_floats(NORM_ROWS * NORM_CHANNELS);
    struct place x = place_random(type, NORM_IMAGES, NORM_CHANNELS, NORM_PLANE, 1);
    struct place d = place_random(type, NORM_IMAGES, NORM_CHANNELS, NORM_PLANE, 2);
    struct place mask = place_empty(type, NORM_IMAGES, NORM_CHANNELS, NORM_PLANE);
    struct place dz = place_empty(type, NORM_IMAGES, NORM_CHANNELS, NORM_PLANE);

    for (uint32_t i = 0; i < 2 * NORM_CHANNELS; i++)
        rows[i] = 0.5f + (float)(i % 5) * 0.25f;
    float *wanted = place_bytes(rows, NORM_ROWS * NORM_CHANNELS * sizeof *rows);
    float *found = place_bytes(rows, NORM_ROWS * NORM_CHANNELS * sizeof *rows);
    float *partial = place_bytes(NULL, device_partial_floats(&pixels) * sizeof *partial);
    const struct device_norm right = norm_of(wanted), ours = norm_of(found);
    must(device_norm_statistics(&pixels, &right, x.device, partial, place_runtime.stream));

    /* The sums that a convolution would leave. */
    float *sums = host_floats((size_t)2 * NORM_CHANNELS);
    for (size_t i = 0; i < place_count(&x); i++) {
        sums[i / NORM_PLANE % NORM_CHANNELS] += x.host[i];
        sums[NORM_CHANNELS + i / NORM_PLANE % NORM_CHANNELS] += x.host[i] * x.host[i];
    }
    float *left = place_bytes(sums, (size_t)2 * NORM_CHANNELS * sizeof *sums);
    must(device_norm_finish(&pixels, &ours, left, left + NORM_CHANNELS, place_runtime.stream));
    rows_alike(wanted, found, 2, 7);
    rows_alike(wanted, found, 10, 11);

    /* The ReLU's sign, from its output, in bits and recomputed; d_gamma, d_beta, then a, b and c.
     */
    assert_true(device_has_open(type, NORM_CHANNELS));
    uint8_t *open = place_bytes(NULL, place_count(&x) * device_type_bytes(type) / 16);
    const struct device_affine affine = {
        .scale = right.scale, .bias = right.bias, .relu = true, .open = open};
    must(device_affine(&pixels, &affine, x.device, mask.device, place_runtime.stream));
    struct device_norm_gradient gradient = {
        .d_output = d.device, .mask = mask.device, .dz = dz.device};
    float *at = wanted + 11 * NORM_CHANNELS;
    must(device_norm_backward(&pixels, &right, &gradient, x.device, at, at + NORM_CHANNELS,
                              at + 2 * NORM_CHANNELS, partial, place_runtime.stream));
    gradient.mask = NULL;
    gradient.open = open;
    at = found + 11 * NORM_CHANNELS;
    must(device_norm_backward(&pixels, &right, &gradient, x.device, at, at + NORM_CHANNELS,
                              at + 2 * NORM_CHANNELS, partial, place_runtime.stream));
    rows_same(wanted, found, 11, 15);
    gradient.open = NULL;
    gradient.rectified = true;
    at = found + 11 * NORM_CHANNELS;
    must(device_norm_backward(&pixels, &right, &gradient, x.device, at, at + NORM_CHANNELS,
                              at + 2 * NORM_CHANNELS, partial, place_runtime.stream));
    rows_alike(wanted, found, 11, 15);
    void *const memory[] = {wanted, found, partial, left, open};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        runtime_release(memory[i]);
    free(rows);
    free(sums);
    place_free(&x);
    place_free(&d);
    place_free(&mask);
    place_free(&dz);
}

static void sums_and_signs_are_those_of_whole_passes(void **unused)
{
    for (enum device_type type = DEVICE_FP32; type <= DEVICE_BF16; type++)
        norms_beside(type);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_compute_as_the_reference),
        cmocka_unit_test(sums_and_signs_are_those_of_whole_passes),
    };

    if (runtime_usable()) {
        printf("skipped: %s\n", fail_reason());
        return 77;
    }
    must(runtime_open(&place_runtime, 0, 0));
    emulated = strcmp(place_runtime.name, "emulated") == 0;
    shows = getenv("IOBENCH_SHOW") && *getenv("IOBENCH_SHOW");
    must(dnn_open(&dnn, &(struct dnn_config){.runtime = &place_runtime, .tournament = 1}));
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    dnn_close(dnn);
    runtime_close(&place_runtime);
    return failed;
}
