/* SPDX-License-Identifier: Apache-2.0
 *
 * The cpu backend in BF16 against the reference backend in FP32: gradients of each kind of layer,
 * inference, learning; masters in FP32.
 *
 * Tolerances are distances of whole tensors, as shares of their norms. BF16 has 8 significant bits:
 * rounding moves a value by up to EPSILON / 2, and a tensor here passes some five roundings, whose
 * errors add up to less than 2 EPSILON. Where ReLU or a max pool follows a rounding, about one in
 * 1 / EPSILON gradients goes the other way, each with its whole size, so the norm moves by about
 * the root of EPSILON. */
#include "tests/unit/training.h"

#include "trainer/cpu/cpu.h"

#include <errno.h>

static const double EPSILON = 0x1p-8;

enum { SIDE = 12, BATCH = 6, CLASSES = 7, CHANNELS = 16 };
static const char BF16[] = "cpu:precision=bf16";

/* ---- the format ---- */

static void numbers_are_rounded_to_the_nearest(void **unused)
{
    static const struct {
        float number, rounded;
    } cases[] = {
        {1, 1},
        {-3.5f, -3.5f},
        {1 + 0x1p-8f, 1}, /* ties to even */
        {1 + 0x3p-8f, 1 + 0x1p-6f},
        {1 + 0x1.01p-8f, 1 + 0x1p-7f},
        {-1 - 0x1.ffp-9f, -1},
        {0x1.ffp127f, INFINITY}, /* a tie above the largest number */
        {-INFINITY, -INFINITY},
        {0x1p-133f, 0x1p-133f}, /* subnormal */
        {0x1p-149f, 0},
    };
    const uint32_t payload = 0x7f800001;
    float nan;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_true(bf16_to_float(bf16_of_float(cases[i].number)) == cases[i].rounded);
    memcpy(&nan, &payload, sizeof nan);
    assert_true(isnan(bf16_to_float(bf16_of_float(nan))));
}

/* ---- one layer between a convolution and a fully connected one ---- */

static uint32_t layer_convolution(struct graph *graph, uint32_t x)
{
    return graph_convolution(graph, "layer", x, 20, graph_square(3, 2, 1), 1, true);
}

static uint32_t layer_groups(struct graph *graph, uint32_t x)
{
    return graph_convolution(graph, "layer", x, 24, graph_square(3, 1, 1), 4, false);
}

static uint32_t layer_norm(struct graph *graph, uint32_t x)
{
    return graph_batch_norm(graph, "layer", x, false);
}

static uint32_t layer_norm_relu(struct graph *graph, uint32_t x)
{
    return graph_relu(graph, graph_batch_norm(graph, "layer", x, false));
}

static uint32_t layer_relu(struct graph *graph, uint32_t x)
{
    return graph_relu(graph, x);
}

static uint32_t layer_max_pool(struct graph *graph, uint32_t x)
{
    return graph_max_pool(graph, x, graph_square(3, 2, 1));
}

static uint32_t layer_average_pool(struct graph *graph, uint32_t x)
{
    return graph_average_pool(graph, x, graph_square(3, 2, 1));
}

/* A ReLU that no other node computes. */
static uint32_t layer_pool_relu(struct graph *graph, uint32_t x)
{
    return graph_relu(graph, layer_average_pool(graph, x));
}

static uint32_t layer_lrn(struct graph *graph, uint32_t x)
{
    return graph_lrn(graph, x, 5, 1e-2, 0.75, 1);
}

static uint32_t layer_add(struct graph *graph, uint32_t x)
{
    return graph_add(graph, layer_groups(graph, x), layer_groups(graph, x));
}

/* The first ReLU has two consumers, whose gradients are summed. */
static uint32_t layer_add_relu(struct graph *graph, uint32_t x)
{
    uint32_t y = graph_convolution(graph, "one", x, CHANNELS, graph_square(1, 1, 0), 1, false);

    x = graph_relu(graph, graph_add(graph, x, y));
    y = graph_convolution(graph, "two", x, CHANNELS, graph_square(1, 1, 0), 1, false);
    return graph_add(graph, x, y);
}

static uint32_t layer_concat(struct graph *graph, uint32_t x)
{
    const uint32_t parts[] = {graph_convolution(graph, "odd", x, 20, graph_square(1, 1, 0), 1, 0),
                              x, x};

    return graph_concat(graph, parts, 3);
}

static uint32_t layer_dropout(struct graph *graph, uint32_t x)
{
    return graph_dropout(graph, x, 0.25);
}

static uint32_t layer_hidden(struct graph *graph, uint32_t x)
{
    return graph_fully_connected(graph, "hidden", x, 33);
}

static const struct {
    const char *name;
    uint32_t (*add)(struct graph *graph, uint32_t x);
    bool chooses; /* ReLU or max pool */
} layers[] = {
    {"convolution", layer_convolution, false},
    {"groups", layer_groups, false},
    {"batch norm", layer_norm, false},
    {"batch norm, relu", layer_norm_relu, true},
    {"relu", layer_relu, true},
    {"max pool", layer_max_pool, true},
    {"average pool", layer_average_pool, false},
    {"average pool, relu", layer_pool_relu, true},
    {"lrn", layer_lrn, false},
    {"add", layer_add, false},
    {"add, relu", layer_add_relu, true},
    {"concat", layer_concat, false},
    {"dropout", layer_dropout, false},
    {"hidden", layer_hidden, false},
};

/* ---- comparing ---- */

static double distance(const float *a, const float *b, uint64_t count)
{
    double size = 1e-30, difference = 0;

    for (uint64_t i = 0; i < count; i++) {
        size += (double)a[i] * a[i];
        difference += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
    }
    return sqrt(difference / size);
}

static float *gradients_by(const char *backend, struct graph *graph, double *loss)
{
    float *gradients = calloc(graph->parameter_floats, sizeof *gradients);
    struct lesson training;

    lesson_start(&training, backend, graph, BATCH, 5, 1);
    lesson_load(&training);
    lesson_batch(&training, 1);
    *loss = lesson_step(&training, 0.1).loss;
    assert_int_equal(backend_save(&training.backend, NULL, NULL, NULL, gradients), 0);
    lesson_end(&training);
    return gradients;
}

static void gradients_are_those_of_the_reference(void **unused)
{
    double loss, wanted_loss;

    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        struct graph *graph = graph_create((struct graph_shape){3, SIDE, SIDE}, CLASSES);
        const double tolerance = layers[i].chooses ? 1.5 * sqrt(EPSILON) : 2 * EPSILON;
        uint32_t x = graph_convolution(graph, "stem", 0, CHANNELS, graph_square(3, 1, 1), 1, false);
        graph_fully_connected(graph, "fc", layers[i].add(graph, x), CLASSES);
        assert_int_equal(graph_seal(graph), 0);
        float *wanted = gradients_by("reference", graph, &wanted_loss);
        float *found = gradients_by(BF16, graph, &loss);
        assert_true(fabs(loss - wanted_loss) < 2 * EPSILON * wanted_loss);
        for (uint32_t j = 0; j < graph->parameter_count; j++) {
            const struct graph_parameter *row = &graph->parameters[j];
            const double off = distance(wanted + row->offset, found + row->offset, row->count);
            if (getenv("IOBENCH_SHOW"))
                print_message("%s: %s: %.4f\n", layers[i].name, row->name, off);
            if (!(off < tolerance))
                fail_msg("%s: the gradient of %s is off by %.4f of its norm", layers[i].name,
                         row->name, off);
        }
        free(wanted);
        free(found);
        graph_destroy(graph);
    }
}

/* With BN, ReLU and sums fused into convolutions. */
static void inference_is_that_of_the_reference(void **unused)
{
    static const char *const backends[] = {"reference", BF16};
    struct graph *graph = lesson_graph("tiny", SIDE, CLASSES);
    float logits[2][BATCH * CLASSES];
    struct backend_loss loss;

    for (int i = 0; i < 2; i++) {
        struct lesson training;
        lesson_start(&training, backends[i], graph, BATCH, 5, 1);
        lesson_load(&training);
        lesson_batch(&training, 1);
        assert_int_equal(backend_infer(&training.backend, &training.batch, logits[i], &loss), 0);
        lesson_end(&training);
    }
    const double off = distance(logits[0], logits[1], BATCH * CLASSES);
    graph_destroy(graph);
    if (!(off < 4 * EPSILON))
        fail_msg("logits are off by %.4f of their norm", off);
}

/* ---- learning ---- */

/* Memorise a batch of noise. */
static void learn(const char *network, uint32_t side, double rate, int steps)
{
    struct graph *graph = lesson_graph(network, side, CLASSES);
    double first = 0, last = 0;
    float *parameters = calloc(graph->parameter_floats, sizeof *parameters);
    struct lesson training;

    lesson_start(&training, BF16, graph, BATCH, 1, 1);
    graph_initialise(graph, 2, parameters);
    assert_int_equal(backend_load(&training.backend, parameters, NULL, NULL), 0);
    lesson_batch(&training, 1);
    for (int i = 0; i < steps; i++) {
        training.batch.step = (uint64_t)i;
        last = lesson_step(&training, 0).loss;
        first = i ? first : last;
        if (getenv("IOBENCH_SHOW"))
            print_message("%s: %.4f\n", network, last);
        lesson_update(&training,
                      &(struct kernel_update){.rate = rate, .momentum = 0.9, .gradient_scale = 1});
    }
    lesson_end(&training);
    free(parameters);
    graph_destroy(graph);
    assert_true(last < 0.5 * first);
}

static void networks_learn(void **unused)
{
    learn("tiny", 16, 0.02, 12);
    learn("googlenet", 32, 0.002, 16);
}

/* ---- masters ---- */

/* An update far below BF16's resolution arrives whole, and FP32 reads and writes the same bits. */
static void masters_are_fp32(void **unused)
{
    struct graph *graph = lesson_graph("tiny", 16, CLASSES);
    const uint64_t count = graph->parameter_floats;
    float *before = calloc(count, sizeof *before), *after = calloc(count, sizeof *after);
    float *gradients = calloc(count, sizeof *gradients), *again = calloc(count, sizeof *again);
    const double rate = 1e-5;
    struct lesson training;

    lesson_start(&training, BF16, graph, BATCH, 1, 1);
    lesson_load(&training);
    lesson_batch(&training, 1);
    assert_int_equal(backend_save(&training.backend, before, NULL, NULL, NULL), 0);
    lesson_step(&training, 0);
    lesson_update(&training, &(struct kernel_update){.rate = rate, .gradient_scale = 1});
    assert_int_equal(backend_save(&training.backend, after, NULL, NULL, gradients), 0);
    lesson_end(&training);
    for (uint64_t i = 0; i < count; i++) {
        const double wanted = before[i] - rate * gradients[i];
        assert_true(fabs(after[i] - wanted) <= 2e-7 * fabs(wanted));
    }
    lesson_start(&training, "cpu", graph, BATCH, 1, 1);
    assert_int_equal(backend_load(&training.backend, after, NULL, NULL), 0);
    assert_int_equal(backend_save(&training.backend, again, NULL, NULL, NULL), 0);
    lesson_end(&training);
    assert_memory_equal(after, again, count * sizeof *after);
    free(before);
    free(after);
    free(gradients);
    free(again);
    graph_destroy(graph);
}

static void the_same_bits_come_twice(void **unused)
{
    struct graph *graph = lesson_graph("googlenet", 32, CLASSES);
    double loss, other_loss;
    float *one = gradients_by(BF16, graph, &loss), *other = gradients_by(BF16, graph, &other_loss);

    assert_memory_equal(one, other, graph->parameter_floats * sizeof *one);
    free(one);
    free(other);
    graph_destroy(graph);
}

/* ---- refusals ---- */

/* INT8 keeps the other layers in FP32. */
static void int8_is_refused(void **unused)
{
    struct graph *graph = lesson_graph("lenet", 28, CLASSES);
    float *ranges = calloc(graph->node_count, sizeof *ranges);
    const struct backend_config config = {.graph = graph, .batch_size = 1, .ranges = ranges};
    struct plugin_choice choice;
    struct backend backend;

    assert_int_equal(plugin_choose("backend", backend_registry, BF16, &choice), 0);
    assert_refused(backend_open(&backend, &choice, &config), -EINVAL, "leave out precision=bf16");
    backend_close(&backend);
    plugin_release(&choice);
    free(ranges);
    graph_destroy(graph);
}

/* tests/cli/plan.sh checks that only CPUs without the instructions refuse. */
static bool is_refused(void)
{
    struct graph *graph = lesson_graph("lenet", 28, CLASSES);
    const struct backend_config config = {.graph = graph, .batch_size = 1};
    struct plugin_choice choice;
    struct backend backend = {0};

    int code = plugin_choose("backend", backend_registry, BF16, &choice);
    if (code == 0)
        code = backend_open(&backend, &choice, &config);
    backend_close(&backend);
    plugin_release(&choice);
    graph_destroy(graph);
    return code == -ENOTSUP;
}

int main(void)
{
    const struct CMUnitTest format[] = {cmocka_unit_test(numbers_are_rounded_to_the_nearest)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_those_of_the_reference),
        cmocka_unit_test(inference_is_that_of_the_reference),
        cmocka_unit_test(networks_learn),
        cmocka_unit_test(masters_are_fp32),
        cmocka_unit_test(the_same_bits_come_twice),
        cmocka_unit_test(int8_is_refused),
    };

    if (cmocka_run_group_tests(format, NULL, NULL)) /* on any CPU */
        return 1;
    if (is_refused()) {
        print_message("skipped: %s\n", fail_reason());
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
