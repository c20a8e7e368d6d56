/* SPDX-License-Identifier: Apache-2.0
 *
 * A numbered lab for each kernel of kernels/device.h, at the shapes ResNet-50 uses it for (or, if
 * it does not, at its largest tensors), in FP16: the minimum bytes it must move, its time, and how
 * close that is to a copy on the same device. Memory-bound kernels make a claim, which requires a
 * batch of 256. Arguments: the batch (256), and lab numbers (all).
 */
#include "base/fail.h"
#include "base/random.h"
#include "base/stats.h"
#include "kernels/device.h"
#include "kernels/runtime.h"
#include "trainer/graph.h"

#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 5, REPEATS = 10, SIDE = 224, PLANE = 56 * 56, CHANNELS = 256, STEM_CHANNELS = 64 };
enum { PARAMETERS = 25557032, GOAL_PERCENT = 85, CLASSES = 1000, LAST_CHANNELS = 2048 };
enum { CLAIM_BATCH = 256 };
static const double SHORT_SHARE = 0.97; /* of the rate of a large copy */

static struct runtime runtime;
static uint32_t batch = 256;

/* Device memory shared by all kernels: four tensors, and vectors. */
static struct {
    uint64_t tensor_bytes;
    char *a, *b, *c, *d;
    float *vectors, *partial;
    int32_t *labels;
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

/* A square window over square planes. */
static struct kernel_window window_of(uint32_t channels, uint32_t in_side, uint32_t out_side,
                                      uint32_t side, uint32_t stride, uint32_t pad)
{
    return (struct kernel_window){.images = batch,
                                  .in_channels = channels,
                                  .in_height = in_side,
                                  .in_width = in_side,
                                  .out_channels = channels,
                                  .out_height = out_side,
                                  .out_width = out_side,
                                  .height = side,
                                  .width = side,
                                  .stride = stride,
                                  .pad_top = pad,
                                  .pad_left = pad,
                                  .groups = 1};
}

static struct kernel_window stem_window(void)
{
    return window_of(STEM_CHANNELS, 112, 56, 3, 2, 1);
}

/* ---- what is timed: starts the work, returns the bytes that it must move ---- */

/* Read and written: of a whole tensor, or as many as a short kernel moves, to see what its start
 * and end take. */
static uint64_t copied_bytes;

static uint64_t copy(void)
{
    must(runtime_copy(place.b, place.a, copied_bytes / 2, runtime.stream));
    return copied_bytes;
}

static void normalise_to(const char *rows, char *images, uint32_t channels)
{
    const struct device_input input = {DEVICE_FP16, batch,           SIDE,        SIDE,
                                       channels,    {124, 116, 104}, {58, 57, 57}};

    must(device_normalise(&input, (const uint8_t *)rows, images, runtime.stream));
}

static uint64_t normalise(void)
{
    normalise_to(place.a, place.b, 4);
    return (uint64_t)batch * SIDE * SIDE * (3 + 4 * 2);
}

static uint64_t statistics(void)
{
    const struct device_pixels shape = pixels();
    const struct device_norm with = norm();

    must(device_norm_statistics(&shape, &with, place.a, place.partial, runtime.stream));
    return place.tensor_bytes;
}

/* From a convolution's sums; includes the copies that the next convolution reads. */
static uint64_t norm_finish(void)
{
    const struct device_pixels shape = pixels();
    struct device_norm with = norm();
    float *at = place.vectors + 8 * CHANNELS;

    with.typed_scale = at + 2 * CHANNELS;
    with.typed_bias = at + 3 * CHANNELS;
    with.gamma_copy = at + 4 * CHANNELS;
    with.beta_copy = at + 5 * CHANNELS;
    must(device_norm_finish(&shape, &with, at, at + CHANNELS, runtime.stream));
    /* Reads two sums, both parameters, both running statistics; writes the latter, four results,
     * two copies, two more in FP16. */
    return CHANNELS * (14 * sizeof(float) + 2 * 2);
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

    must(device_norm_backward(&shape, &with, &gradient, place.a, at, at + CHANNELS,
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

static uint64_t stem_backward_of(const void *d_other)
{
    const struct kernel_window window = stem_window();
    const struct device_norm with = norm();
    float *at = place.vectors + 8 * CHANNELS;

    must(device_stem_backward(&window, DEVICE_FP16, &with, (uint8_t *)place.c, place.a, place.b,
                              d_other, place.d, at, at + CHANNELS, at + 2 * CHANNELS, place.partial,
                              runtime.stream));
    return (uint64_t)batch * STEM_CHANNELS * (2 * 112 * 112 * 2 + 56 * 56 * (d_other ? 5u : 3u));
}

static uint64_t stem_backward(void)
{
    return stem_backward_of(NULL);
}

/* Two gradients of the output, as ResNet-50 has. */
static uint64_t stem_backward_two(void)
{
    return stem_backward_of(place.b + place.tensor_bytes / 2);
}

static struct device_parameters parameters;

/* A layer's weight has a copy and gradients in FP16, of the first layer with pixels of 3 channels
 * padded to 4; parameters of BN and biases have neither. */
static struct device_parameter make_parameter(const struct graph_parameter *of, bool first,
                                              uint32_t first_chunk)
{
    const bool copied = of->kind == GRAPH_WEIGHT;
    const uint64_t bytes = 2 * (first ? of->count / 3 * 4 : of->count);

    return (struct device_parameter){.offset = of->offset,
                                     .count = of->count,
                                     .compute = copied ? memory(bytes) : NULL,
                                     .gradient = copied ? memory(bytes) : NULL,
                                     .type = DEVICE_FP16,
                                     .gradient_type = DEVICE_FP16,
                                     .channels = first ? 3 : 1,
                                     .padded = first ? 4 : 1,
                                     .decay = copied ? KERNEL_DECAY_WEIGHT : KERNEL_DECAY_NONE,
                                     .first_chunk = first_chunk,
                                     .chunk_count = device_chunks_of(of->count)};
}

static void *send(const void *rows, uint64_t bytes)
{
    void *made = memory(bytes);

    must(runtime_copy(made, rows, bytes, runtime.stream));
    must(runtime_wait(runtime.stream));
    return made;
}

/* ResNet-50's. */
static void make_parameters(void)
{
    struct graph *graph = network_build(network_find("resnet50"), SIDE, CLASSES);
    const uint32_t count = graph ? graph->parameter_count : 0;
    const uint64_t floats = graph ? graph->parameter_floats : 0;
    const uint64_t most = floats / DEVICE_CHUNK_FLOATS + count;
    struct device_parameter *all = calloc(count, sizeof *all);
    struct device_chunk *chunks = calloc(most, sizeof *chunks);
    uint32_t made = 0;

    must(all && chunks ? 0 : -1);
    for (uint32_t i = 0; i < count; i++) {
        all[i] = make_parameter(&graph->parameters[i], i == 0, made);
        made += device_chunks(i, all[i].offset, all[i].count, chunks + made);
    }
    parameters = (struct device_parameters){.parameters = send(all, count * sizeof *all),
                                            .chunks = send(chunks, made * sizeof *chunks),
                                            .parameter_count = count,
                                            .chunk_count = made,
                                            .weights = memory(4 * floats),
                                            .gradients = memory(4 * floats),
                                            .momenta = memory(4 * floats),
                                            .norms = memory(4 * (2 * (uint64_t)made + count + 1)),
                                            .unscale = memory(4)};
    free(all);
    free(chunks);
    graph_destroy(graph);
}

static uint64_t optimise(void)
{
    const struct kernel_update update = {
        .rate = 0.1, .momentum = 0.9, .decay = 1e-4, .gradient_scale = 1};

    must(device_optimise(&parameters, &update, runtime.stream));
    return (uint64_t)PARAMETERS * (4 * 4 + 2 * 2);
}

/* ---- what ResNet-50 has a small part of, or none ---- */

static uint64_t dual_affine(void)
{
    const struct device_pixels shape = pixels();
    const struct device_affine with = {.scale = place.vectors,
                                       .bias = place.vectors + CHANNELS,
                                       .other = place.b,
                                       .other_scale = place.vectors + 2 * CHANNELS,
                                       .other_bias = place.vectors + 3 * CHANNELS,
                                       .relu = true};

    must(device_affine(&shape, &with, place.a, place.c, runtime.stream));
    return 3 * place.tensor_bytes;
}

static uint64_t affine(void)
{
    const struct device_pixels shape = pixels();
    const struct device_affine with = {
        .scale = place.vectors, .bias = place.vectors + CHANNELS, .relu = true};

    must(device_affine(&shape, &with, place.a, place.c, runtime.stream));
    return 2 * place.tensor_bytes;
}

static uint64_t norm_infer(void)
{
    const struct device_norm with = norm();

    must(device_norm_infer(CHANNELS, &with, runtime.stream));
    return 6 * CHANNELS * sizeof(float);
}

static uint64_t bias_gradient(void)
{
    const struct device_pixels shape = pixels();

    must(device_bias_gradient(&shape, place.a, place.vectors, place.partial, runtime.stream));
    return place.tensor_bytes;
}

static uint64_t sum(void)
{
    must(device_sum(DEVICE_FP16, place.tensor_bytes / 2, place.a, place.b, true, place.c,
                    runtime.stream));
    return 3 * place.tensor_bytes;
}

static uint64_t relu_backward(void)
{
    must(device_relu_backward(DEVICE_FP16, place.tensor_bytes / 2, place.a, place.b, place.c,
                              runtime.stream));
    return 3 * place.tensor_bytes;
}

static uint64_t copy_part(void)
{
    const struct device_part part = {.type = DEVICE_FP16,
                                     .pixels = (uint64_t)batch * PLANE,
                                     .channels = CHANNELS / 2,
                                     .from_channels = CHANNELS / 2,
                                     .to_channels = CHANNELS,
                                     .to_offset = CHANNELS / 2};

    must(device_copy_part(&part, place.a, place.b, runtime.stream));
    return place.tensor_bytes;
}

static uint64_t dropout(void)
{
    const struct device_pixels shape = pixels();

    must(device_dropout(&shape, PLANE, (const uint64_t *)(const void *)place.vectors, 0.5, place.a,
                        place.b, runtime.stream));
    return 2 * place.tensor_bytes;
}

static struct kernel_lrn lrn_shape(void)
{
    return (struct kernel_lrn){.images = batch,
                               .channels = CHANNELS,
                               .plane = PLANE,
                               .size = 5,
                               .alpha = 1e-4,
                               .beta = 0.75,
                               .k = 1};
}

static uint64_t lrn(void)
{
    const struct kernel_lrn shape = lrn_shape();

    must(device_lrn(&shape, DEVICE_FP16, place.a, place.b, runtime.stream));
    return 2 * place.tensor_bytes;
}

static uint64_t lrn_backward(void)
{
    const struct kernel_lrn shape = lrn_shape();

    must(device_lrn_backward(&shape, DEVICE_FP16, place.a, place.b, place.c, runtime.stream));
    return 3 * place.tensor_bytes;
}

static uint64_t max_pool(void)
{
    const struct kernel_window window = stem_window();

    must(device_max_pool(&window, DEVICE_FP16, place.a, place.b, (uint8_t *)place.c,
                         runtime.stream));
    return (uint64_t)batch * STEM_CHANNELS * (112 * 112 * 2 + 56 * 56 * 3);
}

static uint64_t max_pool_backward(void)
{
    const struct kernel_window window = stem_window();

    must(device_max_pool_backward(&window, DEVICE_FP16, (uint8_t *)place.c, place.b, place.d,
                                  runtime.stream));
    return (uint64_t)batch * STEM_CHANNELS * (112 * 112 * 2 + 56 * 56 * 3);
}

static struct kernel_window head_window(void)
{
    return window_of(LAST_CHANNELS, 7, 1, 7, 1, 0);
}

static uint64_t average_pool(void)
{
    const struct kernel_window window = head_window();

    must(device_average_pool(&window, DEVICE_FP16, place.a, place.b, runtime.stream));
    return (uint64_t)batch * LAST_CHANNELS * (49 + 1) * 2;
}

static uint64_t average_pool_backward(void)
{
    const struct kernel_window window = head_window();

    must(device_average_pool_backward(&window, DEVICE_FP16, place.b, place.a, runtime.stream));
    return (uint64_t)batch * LAST_CHANNELS * (49 + 1) * 2;
}

static uint64_t cross_entropy(void)
{
    struct device_loss *losses = (void *)place.d;

    must(device_cross_entropy(DEVICE_FP16, batch, CLASSES, place.a, place.labels, 0.1,
                              place.vectors, place.b, losses + 1, losses, runtime.stream));
    return (uint64_t)batch * CLASSES * 2 * 2;
}

/* LARS reads weights and gradients once more first. */
static uint64_t optimise_lars(void)
{
    const struct kernel_update update = {.adapts = true,
                                         .rate = 0.1,
                                         .rate_before = 0.1,
                                         .momentum = 0.9,
                                         .decay = 1e-4,
                                         .eta = 0.001,
                                         .gradient_scale = 1};

    must(device_optimise(&parameters, &update, runtime.stream));
    return (uint64_t)PARAMETERS * (5 * 4 + 3 * 2);
}

static uint64_t renew(void)
{
    must(device_renew(&parameters, runtime.stream));
    return (uint64_t)PARAMETERS * (4 + 2);
}

static uint64_t collect(void)
{
    must(device_collect(&parameters, 0, parameters.chunk_count, runtime.stream));
    return (uint64_t)PARAMETERS * (2 + 4);
}

/* For shapes that cuDNN does not support: conv2 of the first stage. */
static struct kernel_window convolution_window(void)
{
    return window_of(STEM_CHANNELS, 56, 56, 3, 1, 1);
}

static const uint64_t convolution_weights = STEM_CHANNELS * STEM_CHANNELS * 9 * 2;

static uint64_t convolution(void)
{
    const struct kernel_window window = convolution_window();

    must(device_convolution(&window, DEVICE_FP16, place.a, place.d, place.b, runtime.stream));
    return (uint64_t)batch * STEM_CHANNELS * PLANE * 2 * 2 + convolution_weights;
}

static uint64_t convolution_data(void)
{
    const struct kernel_window window = convolution_window();

    must(device_convolution_data(&window, DEVICE_FP16, place.a, place.d, place.b, runtime.stream));
    return (uint64_t)batch * STEM_CHANNELS * PLANE * 2 * 2 + convolution_weights;
}

static uint64_t convolution_weight(void)
{
    const struct kernel_window window = convolution_window();

    must(
        device_convolution_weight(&window, DEVICE_FP16, place.a, place.b, place.d, runtime.stream));
    return (uint64_t)batch * STEM_CHANNELS * PLANE * 2 * 2 + convolution_weights;
}

static uint64_t quantise(void)
{
    must(device_quantise(DEVICE_FP16, place.tensor_bytes / 2, place.a, 0.1f, (int8_t *)place.b,
                         runtime.stream));
    return place.tensor_bytes / 2 * 3;
}

static uint64_t dequantise(void)
{
    must(device_dequantise(DEVICE_FP16, place.tensor_bytes / 2, (int8_t *)place.a, 0.1f, place.b,
                           runtime.stream));
    return place.tensor_bytes / 2 * 3;
}

static uint64_t convolution_int8(void)
{
    const struct kernel_window window = convolution_window();
    const struct device_int8 with = {
        .scale = place.vectors, .bias = place.vectors + CHANNELS, .relu = true, .to_int8 = true};

    must(device_convolution_int8(&window, &with, (int8_t *)place.a, (int8_t *)place.d, place.b,
                                 runtime.stream));
    return (uint64_t)batch * STEM_CHANNELS * PLANE * 2 + convolution_weights / 2;
}

static struct magnitudes *seen;
static uint32_t *scratch;

/* Random bytes as images; 5 of their 8 channels are zero, about as sparse as after a ReLU. */
static void make_images(void)
{
    static uint8_t bytes[SIDE * SIDE * 3];

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)random_mix(i);
    for (uint32_t i = 0; i < batch; i++)
        must(runtime_copy(place.b + i * sizeof bytes, bytes, sizeof bytes, runtime.stream));
    must(runtime_wait(runtime.stream));
    seen = memory(sizeof *seen);
    scratch = memory(sizeof *scratch);
}

/* The tensor is read twice. */
static uint64_t magnitudes(void)
{
    const uint64_t count = (uint64_t)batch * SIDE * SIDE * 8;

    if (!seen) {
        make_images();
        normalise_to(place.b, place.a, 8);
    }
    must(device_magnitudes(DEVICE_FP16, count, place.a, seen, scratch, runtime.stream));
    return 2 * count * 2;
}

/* ---- the labs ---- */

enum bound { BY_MEMORY, BY_START, BY_ARITHMETIC };

static const struct lab {
    const char *name;
    uint64_t (*run)(void);
    enum bound bound;
} table[] = {
    {"normalise", normalise, BY_MEMORY},
    {"norm_statistics", statistics, BY_MEMORY},
    {"norm_infer", norm_infer, BY_START},
    {"norm_finish", norm_finish, BY_START},
    {"scale_bias_relu", affine, BY_MEMORY},
    {"scale_bias_add_relu", add_relu, BY_MEMORY},
    {"dual_scale_bias_relu", dual_affine, BY_MEMORY},
    {"norm_backward", norm_backward, BY_MEMORY},
    {"norm_apply", norm_apply, BY_MEMORY},
    {"stem", stem, BY_MEMORY},
    {"stem_backward", stem_backward, BY_MEMORY},
    {"average_pool", average_pool, BY_MEMORY},
    {"average_pool_backward", average_pool_backward, BY_MEMORY},
    {"cross_entropy", cross_entropy, BY_START},
    {"optimise", optimise, BY_MEMORY},
    {"optimise_lars", optimise_lars, BY_MEMORY},
    {"renew", renew, BY_MEMORY},
    {"collect", collect, BY_MEMORY},
    {"sum_relu", sum, BY_MEMORY},
    {"relu_backward", relu_backward, BY_MEMORY},
    {"bias_gradient", bias_gradient, BY_MEMORY},
    {"copy_part", copy_part, BY_MEMORY},
    {"dropout", dropout, BY_MEMORY},
    {"lrn", lrn, BY_MEMORY},
    {"lrn_backward", lrn_backward, BY_MEMORY},
    {"max_pool", max_pool, BY_MEMORY},
    {"max_pool_backward", max_pool_backward, BY_MEMORY},
    {"convolution", convolution, BY_ARITHMETIC},
    {"convolution_data", convolution_data, BY_ARITHMETIC},
    {"convolution_weight", convolution_weight, BY_ARITHMETIC},
    {"quantise", quantise, BY_MEMORY},
    {"dequantise", dequantise, BY_MEMORY},
    {"convolution_int8", convolution_int8, BY_ARITHMETIC},
    {"magnitudes", magnitudes, BY_ARITHMETIC},
    {"stem_backward_two", stem_backward_two, BY_MEMORY},
};

enum { LABS = sizeof table / sizeof *table };

/* ---- timing ---- */

struct figure {
    uint64_t bytes;
    double seconds; /* per launch, median over rounds */
    double spread;  /* of the rounds */
};

static struct figure time_of(uint64_t (*run)(void), int repeats)
{
    struct figure figure = {.bytes = run()};
    void *first, *last;
    double seconds[ROUNDS];

    must(runtime_event_create(&first));
    must(runtime_event_create(&last));
    for (int round = 0; round < ROUNDS; round++) {
        double milliseconds = 0;
        must(runtime_event_record(first, runtime.stream));
        for (int i = 0; i < repeats; i++)
            run();
        must(runtime_event_record(last, runtime.stream));
        must(runtime_event_synchronise(last));
        must(runtime_event_elapsed(first, last, &milliseconds));
        seconds[round] = milliseconds * 1e-3 / repeats;
    }
    runtime_event_destroy(first);
    runtime_event_destroy(last);
    const struct stats_summary summary = stats_summarise(seconds, ROUNDS);
    figure.seconds = summary.median;
    figure.spread = summary.median > 0 ? (summary.maximum - summary.minimum) / summary.median : 0;
    return figure;
}

static double rate_of(const struct figure *figure)
{
    return figure->seconds > 0 ? (double)figure->bytes / figure->seconds * 1e-9 : 0;
}

static void hold(int number, double copy_rate)
{
    static const char *const why[] = {"", ", too small to claim: its start is most of it",
                                      ", arithmetic bounds it"};
    const struct lab *lab = &table[number];
    /* The plain convolutions take a tenth of a second each. */
    const struct figure figure = time_of(lab->run, lab->bound == BY_ARITHMETIC ? 1 : REPEATS);
    const double percent = 100 * rate_of(&figure) / copy_rate;

    printf("lab %2d %-22s %9.1f MB %9.4f ms %7.0f GB/s, %5.1f%% of a copy, spread %.0f%%%s\n",
           number + 1, lab->name, (double)figure.bytes * 1e-6, figure.seconds * 1e3,
           rate_of(&figure), percent, 100 * figure.spread, why[lab->bound]);
    if (lab->bound == BY_MEMORY && batch >= CLAIM_BATCH)
        printf("claim device_%s %.1f %% of the copy goal >=%d %s\n", lab->name, percent,
               GOAL_PERCENT, percent >= GOAL_PERCENT ? "ok" : "short");
    copied_bytes = figure.bytes;
    if (lab->bound == BY_MEMORY && copied_bytes / 2 <= place.tensor_bytes) {
        const struct figure alike = time_of(copy, REPEATS);
        if (rate_of(&alike) < SHORT_SHARE * copy_rate)
            printf("       a copy of as many bytes takes %.4f ms, %.1f%% of the large one's rate\n",
                   alike.seconds * 1e3, 100 * rate_of(&alike) / copy_rate);
    }
    fflush(stdout);
}

static void make_place(void)
{
    const struct device_pixels shape = pixels();
    const uint64_t bytes = (uint64_t)batch * PLANE * CHANNELS * 2;

    place.tensor_bytes = bytes;
    place.a = memory(bytes);
    place.b = memory(bytes);
    place.c = memory(bytes);
    place.d = memory(bytes);
    place.vectors = memory(16 * CHANNELS * sizeof(float));
    place.partial = memory(device_partial_floats(&shape) * sizeof(float) * 4);
    place.labels = memory(batch * sizeof *place.labels);
    make_parameters();
}

int main(int argc, char **argv)
{
    if (argc > 1 && atoi(argv[1]) > 0)
        batch = (uint32_t)atoi(argv[1]);
    if (runtime_usable()) {
        printf("skipped: %s\n", fail_reason());
        return 77;
    }
    must(runtime_open(&runtime, 0, 0));
    make_place();
    copied_bytes = 2 * place.tensor_bytes;
    const struct figure best = time_of(copy, REPEATS);
    printf("%s, batch %u, FP16: a copy moves %.0f GB/s\n", runtime.name, batch, rate_of(&best));
    for (int i = 2; i < argc; i++)
        if (atoi(argv[i]) > 0 && atoi(argv[i]) <= LABS)
            hold(atoi(argv[i]) - 1, rate_of(&best));
    for (int i = 0; argc < 3 && i < LABS; i++)
        hold(i, rate_of(&best));
    return 0;
}
