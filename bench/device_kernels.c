/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels that are bound by memory, at ResNet-50's shapes in FP16: bytes that each must move at
 * least, and how near that comes to a copy on the same device. Arguments: the batch (256).
 */
#include "base/fail.h"
#include "base/stats.h"
#include "kernels/device.h"
#include "trainer/cuda/runtime.h"

#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 7, REPEATS = 10, SIDE = 224, PLANE = 56 * 56, CHANNELS = 256, STEM_CHANNELS = 64 };
enum { PARAMETERS = 25557032, GOAL_PERCENT = 85 };

static struct runtime runtime;
static uint32_t batch = 256;

/* Device memory that all kernels share: four tensors, and vectors. */
static struct {
    uint64_t tensor_bytes;
    char *a, *b, *c, *d;
    float *vectors, *partial;
} place;

static void must(int code)
{
    if (code == 0)
        return;
    fprintf(stderr, "bench/device_kernels: %s\n", fail_reason());
    exit(1);
}

static void *memory(uint64_t bytes)
{
    void *made = runtime_allocate(bytes);

    must(made ? runtime_zero(made, bytes, runtime.stream) : -1);
    return made;
}

static struct device_pixels pixels(void)
{
    return (struct device_pixels){DEVICE_FP16, CHANNELS, (uint64_t)batch * PLANE};
}

static struct device_norm norm(void)
{
    float *at = place.vectors;

    return (struct device_norm){.epsilon = 1e-5,
                                .momentum = 0.1,
                                .gamma = at,
                                .beta = at + CHANNELS,
                                .running_mean = at + 2 * CHANNELS,
                                .running_variance = at + 3 * CHANNELS,
                                .mean = at + 4 * CHANNELS,
                                .inverse = at + 5 * CHANNELS,
                                .scale = at + 6 * CHANNELS,
                                .bias = at + 7 * CHANNELS};
}

static struct kernel_window stem_window(void)
{
    return (struct kernel_window){.images = batch,
                                  .in_channels = STEM_CHANNELS,
                                  .in_height = 112,
                                  .in_width = 112,
                                  .out_channels = STEM_CHANNELS,
                                  .out_height = 56,
                                  .out_width = 56,
                                  .height = 3,
                                  .width = 3,
                                  .stride = 2,
                                  .pad_top = 1,
                                  .pad_left = 1,
                                  .groups = 1};
}

/* ---- what is timed: starts the work, returns the bytes that it must move ---- */

static uint64_t copy(void)
{
    must(runtime_copy(place.b, place.a, place.tensor_bytes, runtime.stream));
    return 2 * place.tensor_bytes;
}

static uint64_t normalise(void)
{
    const struct device_input input = {DEVICE_FP16, batch,           SIDE,         SIDE, SIDE, SIDE,
                                       8,           {124, 116, 104}, {58, 57, 57}, NULL};

    must(device_normalise(&input, (const uint8_t *)place.a, place.b, runtime.stream));
    return (uint64_t)batch * SIDE * SIDE * (3 + 8 * 2);
}

static uint64_t statistics(void)
{
    const struct device_pixels shape = pixels();
    const struct device_norm with = norm();

    must(device_norm_statistics(&shape, &with, place.a, place.partial, runtime.stream));
    return place.tensor_bytes;
}

static uint64_t add_relu(void)
{
    const struct device_pixels shape = pixels();
    const struct device_affine with = {
        .scale = place.vectors, .bias = place.vectors + CHANNELS, .other = place.b, .relu = true};

    must(device_affine(&shape, &with, place.a, place.c, runtime.stream));
    return 3 * place.tensor_bytes;
}

static uint64_t norm_backward(void)
{
    const struct device_pixels shape = pixels();
    const struct device_norm with = norm();
    const struct device_norm_gradient gradient = {
        .d_output = place.b, .mask = place.c, .dz = place.d};
    float *at = place.vectors + 8 * CHANNELS;

    must(device_norm_backward(&shape, &with, &gradient, place.a, NULL, at, at + CHANNELS,
                              at + 2 * CHANNELS, place.partial, runtime.stream));
    return 4 * place.tensor_bytes;
}

static uint64_t norm_apply(void)
{
    const struct device_pixels shape = pixels();

    must(device_norm_backward_apply(&shape, place.vectors, place.a, place.b, place.c,
                                    runtime.stream));
    return 3 * place.tensor_bytes;
}

static uint64_t stem(void)
{
    const struct kernel_window window = stem_window();

    must(device_stem(&window, DEVICE_FP16, place.vectors, place.vectors + CHANNELS, place.a,
                     place.b, (uint8_t *)place.c, runtime.stream));
    return (uint64_t)batch * STEM_CHANNELS * (112 * 112 * 2 + 56 * 56 * 3);
}

static uint64_t stem_backward(void)
{
    const struct kernel_window window = stem_window();
    const struct device_norm with = norm();
    float *at = place.vectors + 8 * CHANNELS;

    must(device_stem_backward(&window, DEVICE_FP16, &with, (uint8_t *)place.c, place.a, place.b,
                              NULL, place.d, NULL, at, at + CHANNELS, at + 2 * CHANNELS,
                              place.partial, runtime.stream));
    return (uint64_t)batch * STEM_CHANNELS * (2 * 112 * 112 * 2 + 56 * 56 * 3);
}

static struct device_parameters parameters;

/* One parameter of the size of all of them. */
static void make_parameters(void)
{
    const uint32_t chunks = (PARAMETERS + DEVICE_CHUNK_FLOATS - 1) / DEVICE_CHUNK_FLOATS;
    struct device_chunk *rows = calloc(chunks, sizeof *rows);
    struct device_parameter all = {.count = PARAMETERS,
                                   .compute = memory(2 * (uint64_t)PARAMETERS),
                                   .type = DEVICE_FP16,
                                   .channels = 1,
                                   .padded = 1,
                                   .decays = 1,
                                   .chunk_count = chunks};
    void *on_device = memory(sizeof all), *rows_there = memory(chunks * sizeof *rows);

    must(rows ? 0 : -1);
    for (uint32_t i = 0; i < chunks; i++) {
        const uint32_t start = i * DEVICE_CHUNK_FLOATS, left = PARAMETERS - start;
        rows[i] = (struct device_chunk){
            .count = left < DEVICE_CHUNK_FLOATS ? left : DEVICE_CHUNK_FLOATS, .start = start};
    }
    must(runtime_copy(on_device, &all, sizeof all, runtime.stream));
    must(runtime_copy(rows_there, rows, chunks * sizeof *rows, runtime.stream));
    must(runtime_wait(runtime.stream));
    free(rows);
    parameters = (struct device_parameters){.parameters = on_device,
                                            .chunks = rows_there,
                                            .parameter_count = 1,
                                            .chunk_count = chunks,
                                            .weights = memory(4 * (uint64_t)PARAMETERS),
                                            .gradients = memory(4 * (uint64_t)PARAMETERS),
                                            .momenta = memory(4 * (uint64_t)PARAMETERS),
                                            .norms = memory(4 * (2 * (uint64_t)chunks + 1))};
}

static uint64_t optimise(void)
{
    const struct device_update update = {
        .rate = 0.1, .momentum = 0.9, .decay = 1e-4, .gradient_scale = 1};

    must(device_optimise(&parameters, &update, runtime.stream));
    return (uint64_t)PARAMETERS * (5 * 4 + 2);
}

/* ---- timing ---- */

/* GB/s, the median of the rounds. */
static double rate_of(uint64_t (*run)(void))
{
    void *first, *last;
    double rates[ROUNDS];

    must(runtime_event_create(&first));
    must(runtime_event_create(&last));
    run();
    for (int round = 0; round < ROUNDS; round++) {
        double milliseconds = 0;
        uint64_t bytes = 0;
        must(runtime_event_record(first, runtime.stream));
        for (int i = 0; i < REPEATS; i++)
            bytes += run();
        must(runtime_event_record(last, runtime.stream));
        must(runtime_event_synchronise(last));
        must(runtime_event_elapsed(first, last, &milliseconds));
        rates[round] = (double)bytes / milliseconds * 1e-6;
    }
    runtime_event_destroy(first);
    runtime_event_destroy(last);
    return stats_summarise(rates, ROUNDS).median;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        uint64_t (*run)(void);
    } kernels[] = {{"normalise", normalise},          {"norm_statistics", statistics},
                   {"scale_bias_add_relu", add_relu}, {"norm_backward", norm_backward},
                   {"norm_apply", norm_apply},        {"stem", stem},
                   {"stem_backward", stem_backward},  {"optimise", optimise}};

    if (argc > 1 && atoi(argv[1]) > 0)
        batch = (uint32_t)atoi(argv[1]);
    if (runtime_usable()) {
        printf("skipped: %s\n", fail_reason());
        return 77;
    }
    must(runtime_open(&runtime, 0, 0));
    const struct device_pixels shape = pixels();
    place.tensor_bytes = (uint64_t)batch * PLANE * CHANNELS * 2;
    place.a = memory(place.tensor_bytes);
    place.b = memory(place.tensor_bytes);
    place.c = memory(place.tensor_bytes);
    place.d = memory(place.tensor_bytes);
    place.vectors = memory(16 * CHANNELS * sizeof(float));
    place.partial = memory(device_partial_floats(&shape) * sizeof(float) * 4);
    make_parameters();
    const double best = rate_of(copy);
    printf("%s, batch %u, FP16: a copy moves %.0f GB/s\n", runtime.name, batch, best);
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        const double rate = rate_of(kernels[i].run), percent = 100 * rate / best;
        printf("claim device_%s %.1f %% of the copy goal >=%d %s\n", kernels[i].name, percent,
               GOAL_PERCENT, percent >= GOAL_PERCENT ? "ok" : "short");
    }
    return 0;
}
