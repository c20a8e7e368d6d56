/* SPDX-License-Identifier: Apache-2.0
 * Ranges against NumPy's (tests/golden/make_quantise.py); what becomes INT8; the backends' INT8
 * against the reference's, which computes with the same values in floats. */
#include "tests/unit/training.h"

#include "trainer/quantise.h"

#include <errno.h>

enum { SIDE = 16, CLASSES = 10, BATCH = 4 };

/* ---- ranges ---- */

static uint64_t even(uint64_t i)
{
    return i < QUANTISE_BINS ? 1000 : 0;
}

static uint64_t long_tail(uint64_t i)
{
    return 1000000000 / (1000 + i * i);
}

static uint64_t steep(uint64_t i)
{
    const uint64_t x = 100 + i;

    return 1000000000000 / (x * x * x * x);
}

static uint64_t bell(uint64_t i)
{
    return (i * i < 100000 ? 100000 - i * i : 0) + (i % 7 == 0 ? 5 : 0);
}

static uint64_t outliers(uint64_t i)
{
    return (i < 600 ? 600 - i : 0) + (i % 300 == 299);
}

static uint64_t few_bins(uint64_t i)
{
    return i < 90 ? 5 : 0;
}

static uint64_t gaps(uint64_t i)
{
    return i % 3 == 0 ? 3000000 / (50 + i) : 0;
}

static void ranges_are_those_of_numpy(void **unused)
{
    static const struct {
        uint64_t (*count)(uint64_t bin);
        uint32_t kept;
    } shapes[] = {{even, 2048},    {long_tail, 2047}, {steep, 895}, {bell, 316},
                  {outliers, 600}, {few_bins, 90},    {gaps, 2047}};
    uint64_t counts[QUANTISE_BINS];

    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        for (uint64_t j = 0; j < QUANTISE_BINS; j++)
            counts[j] = shapes[i].count(j);
        assert_int_equal(quantise_bins_kept(counts), shapes[i].kept);
    }
}

static void a_histogram_widens_and_loses_nothing(void **unused)
{
    struct magnitudes histogram = {0};
    const float small[] = {0, 0.5f, -1, 0.25f}, large[] = {-3, 0, 100}, bad[] = {1, NAN};
    uint64_t sum = 0;

    assert_true(quantise_range(&histogram, QUANTISE_KL) == 0);
    magnitudes_observe(&histogram, 4, small);
    assert_true(histogram.range == 1 && histogram.counts[QUANTISE_BINS - 1] == 1);
    magnitudes_observe(&histogram, 3, large);
    assert_true(histogram.range == 128 && histogram.zeros == 2);
    for (uint32_t i = 0; i < QUANTISE_BINS; i++)
        sum += histogram.counts[i];
    assert_int_equal(sum, 5);
    assert_true(histogram.counts[4] == 1 && histogram.counts[8] == 1); /* bins of a 16th */
    assert_int_equal(histogram.counts[1600], 1);
    assert_true(quantise_range(&histogram, QUANTISE_ABSMAX) == 100);
    magnitudes_observe(&histogram, 2, bad);
    assert_true(isinf(histogram.largest));
}

/* 1 to 100,000: one in 10,000 is above 99,990, and bins are at most 128 wide. */
static void a_percentile_leaves_one_in_10000(void **unused)
{
    struct magnitudes histogram = {0};

    for (uint32_t i = 100000; i > 0; i--) {
        const float value = i % 2 ? (float)i : -(float)i;
        magnitudes_observe(&histogram, 1, &value);
    }
    const double range = quantise_range(&histogram, QUANTISE_PERCENTILE);
    assert_true(range >= 99990 && range < 99990 + 128);
    assert_true(quantise_range(&histogram, QUANTISE_ABSMAX) == 100000);
}

static void weights_fill_their_channel(void **unused)
{
    const float weights[3][3] = {{-2, 1, 0.01f}, {0, 0, 0}, {127, 63.4f, -126.6f}};
    int8_t quantised[3][3];
    float steps[3];

    quantise_weights(3, 3, &weights[0][0], &quantised[0][0], steps);
    const int8_t wanted[3][3] = {{-127, 64, 1}, {0, 0, 0}, {127, 63, -127}};
    assert_memory_equal(quantised, wanted, sizeof wanted);
    assert_true(steps[0] == 2.0f / 127 && steps[2] == 1);
    assert_true(quantise_value(1000, 0.5f) == 63.5f && quantise_value(-0.3f, 0.5f) == -0.5f);
}

/* ---- nodes that become INT8 ---- */

/* Residuals with and without a convolution in the shortcut, groups, a node read by both INT8 and
 * FP32, and channel counts that INT8 does not support. */
static struct graph *mixed(void)
{
    struct graph *graph = graph_create((struct graph_shape){3, SIDE, SIDE}, CLASSES);
    uint32_t x = graph_convolution(graph, "stem", 0, 16, graph_square(3, 1, 1), 1, false);
    x = graph_relu(graph, graph_batch_norm(graph, "stem.bn", x, false));
    uint32_t y = graph_convolution(graph, "a", x, 16, graph_square(3, 1, 1), 1, true);
    x = graph_relu(graph, graph_add(graph, x, graph_batch_norm(graph, "a.bn", y, false)));
    y = graph_convolution(graph, "b", x, 32, graph_square(3, 2, 1), 1, false);
    y = graph_batch_norm(graph, "b.bn", y, false);
    x = graph_convolution(graph, "aside", x, 32, graph_square(1, 2, 0), 1, false);
    x = graph_relu(graph, graph_add(graph, y, graph_batch_norm(graph, "aside.bn", x, false)));
    uint32_t parts[] = {
        graph_relu(graph, graph_convolution(graph, "c", x, 32, graph_square(3, 1, 1), 2, true)),
        graph_lrn(graph, x, 5, 1e-2, 0.75, 1),
        graph_relu(graph, graph_convolution(graph, "d", x, 20, graph_square(1, 1, 0), 1, true)),
    };
    x = graph_max_pool(graph, graph_concat(graph, parts, 3), graph_square(2, 2, 0));
    x = graph_convolution(graph, "e", x, 16, graph_square(1, 1, 0), 1, true);
    graph_fully_connected(graph, "fc", graph_global_pool(graph, x), CLASSES);
    assert_int_equal(graph_seal(graph), 0);
    return graph;
}

static uint32_t named(const struct graph *graph, const char *name)
{
    for (uint32_t i = 0; i < graph->node_count; i++)
        if (strcmp(graph->nodes[i].name, name) == 0)
            return i;
    fail_msg("no node %s", name);
    return 0;
}

static void convolutions_of_sixteens_become_int8(void **unused)
{
    static const char *const yes[] = {"a", "b", "aside", "c"};
    static const char *const no[] = {"stem", "d", "e", "fc"};
    struct graph *graph = mixed();
    struct quantise_node *nodes = calloc(graph->node_count, sizeof *nodes);
    float *ranges = calloc(graph->node_count, sizeof *ranges);

    struct quantise_share share;
    quantise_plan(graph, ranges, nodes); /* no range is known */
    assert_int_equal(quantise_count(graph, ranges, &share), 0);
    assert_int_equal(share.in_int8, 0);
    for (uint32_t i = 0; i < graph->node_count; i++)
        assert_true(!nodes[i].in_int8 && nodes[i].step == 0);
    for (uint32_t i = 0; i < graph->node_count; i++)
        ranges[i] = 127;
    quantise_plan(graph, ranges, nodes);
    assert_int_equal(quantise_count(graph, ranges, &share), 0);
    assert_int_equal(share.in_int8, sizeof yes / sizeof *yes);
    assert_int_equal(share.layers, sizeof yes / sizeof *yes + sizeof no / sizeof *no);
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        assert_true(nodes[named(graph, yes[i])].in_int8);
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        assert_false(nodes[named(graph, no[i])].in_int8);
    /* In a sum of two BNs, the first is stored; the second is fused into the convolution with the
     * sum. */
    assert_true(nodes[named(graph, "b.bn")].step == 1);
    assert_true(nodes[named(graph, "aside.bn")].step == 0);
    assert_true(nodes[named(graph, "aside")].step == 0);
    assert_true(nodes[graph->nodes[named(graph, "c")].inputs[0]].step == 1);
    assert_true(nodes[named(graph, "e")].step == 0);
    free(nodes);
    free(ranges);
    graph_destroy(graph);
}

/* ---- backends ---- */

struct answers {
    float logits[BATCH * CLASSES];
};

/* Open a backend with this setting, to observe ranges or to compute, and run one inference. */
static struct answers answer(const char *name, struct graph *graph, struct calibration *calibration,
                             const float *ranges)
{
    struct backend_config config = {.graph = graph,
                                    .batch_size = BATCH,
                                    .threads = 1,
                                    .ranges = ranges,
                                    .calibration = calibration};
    uint8_t rows[BATCH * SIDE * SIDE * 3];
    int32_t labels[BATCH];
    struct lesson training = {
        .graph = graph, .rows = rows, .labels = labels, .batch = {.rows = rows, .count = BATCH}};
    struct answers answers;

    if (plugin_choose("backend", backend_registry, lesson_text(name), &training.choice) ||
        backend_open(&training.backend, &training.choice, &config))
        fail_msg("%s: %s", name, fail_reason());
    lesson_load(&training);
    lesson_batch(&training, 1);
    if (backend_infer(&training.backend, &training.batch, answers.logits, NULL))
        fail_msg("%s: %s", name, fail_reason());
    /* Load other weights, then the first ones again: no data derived from others is kept. */
    float *others = calloc(graph->parameter_floats, sizeof *others);
    struct answers again;
    assert_int_equal(backend_load(&training.backend, others, NULL, NULL), 0);
    lesson_load(&training);
    assert_int_equal(backend_infer(&training.backend, &training.batch, again.logits, NULL), 0);
    assert_memory_equal(&again, &answers, sizeof again);
    free(others);
    backend_close(&training.backend);
    plugin_release(&training.choice);
    return answers;
}

static float *find_ranges(const char *name, struct graph *graph, enum quantise_method method)
{
    struct calibration calibration;
    float *ranges = calloc(graph->node_count, sizeof *ranges);

    assert_int_equal(calibration_open(&calibration, graph), 0);
    answer(name, graph, &calibration, NULL);
    calibration_ranges(&calibration, method, ranges);
    calibration_close(&calibration);
    return ranges;
}

static double distance(const struct answers *a, const struct answers *b)
{
    double sum = 0, difference = 0;

    for (int i = 0; i < BATCH * CLASSES; i++) {
        sum += (double)a->logits[i] * a->logits[i];
        difference += pow((double)a->logits[i] - (double)b->logits[i], 2);
    }
    return sqrt(difference / sum);
}

static bool has_int8(const char *name)
{
#ifdef __x86_64__
    return strcmp(name, "cpu") != 0 || __builtin_cpu_supports("avx512vnni");
#else
    return strcmp(name, "cpu") != 0;
#endif
}

static void compare(const char *name, struct graph *graph)
{
    float *ranges = find_ranges("reference", graph, QUANTISE_ABSMAX);
    const struct answers exact = answer("reference", graph, NULL, NULL);
    const struct answers wanted = answer("reference", graph, NULL, ranges);
    const struct answers found = answer(name, graph, NULL, ranges);
    const double cost = distance(&exact, &wanted), off = distance(&wanted, &found);

    print_message("%s: INT8 is off by %.4f from FP32, from the reference's by %.5f\n", name, cost,
                  off);
    assert_true(cost > 1e-3 && cost < 0.1); /* INT8 is in use */
    /* Without INT8 instructions, oneDNN uses one bit less of the weights. */
    assert_true(off < (has_int8(name) ? 0.1 * cost : 2 * cost + 0.01));
    free(ranges);
}

static bool there_is(const char *name)
{
    const struct plugin *plugin = plugin_find(backend_registry, name);

    return plugin && plugin_usable(plugin) == 0;
}

static void int8_is_that_of_the_reference(void **unused)
{
    static const char *const names[] = {"reference", "cpu", "cuda", NULL};

    for (int i = 0; names[i]; i++) {
        struct graph *graphs[] = {mixed(), lesson_graph("tiny", SIDE, CLASSES)};
        for (int j = 0; j < 2 && there_is(names[i]); j++)
            compare(names[i], graphs[j]);
        graph_destroy(graphs[0]);
        graph_destroy(graphs[1]);
    }
}

/* Backends store different nodes, but all store those that INT8 needs, in FP32 and thus equal up to
 * rounding: 1e-4 of a range, or one bin where one bin must be chosen. */
static void find_same(const char *name, struct graph *graph, enum quantise_method method)
{
    const double most = method == QUANTISE_ABSMAX ? 1e-4 : 1e-4 + 2.0 / QUANTISE_BINS;
    float *wanted = find_ranges("reference", graph, method);
    float *found = find_ranges(name, graph, method);
    struct quantise_node *nodes = calloc(graph->node_count, sizeof *nodes);

    quantise_plan(graph, wanted, nodes);
    for (uint32_t i = 0; i < graph->node_count; i++)
        if (nodes[i].step > 0 && !(fabsf(wanted[i] - found[i]) <= most * wanted[i]))
            fail_msg("%s, by %s, %s: %g and %g", name, quantise_methods[method],
                     graph->nodes[i].name, (double)wanted[i], (double)found[i]);
    free(nodes);
    free(found);
    free(wanted);
}

static void all_backends_find_the_same_ranges(void **unused)
{
    static const char *const names[] = {"cpu", "cuda", NULL};
    struct graph *graph = mixed();

    for (int i = 0; names[i]; i++)
        for (int method = 0; there_is(names[i]) && quantise_methods[method]; method++)
            find_same(names[i], graph, (enum quantise_method)method);
    graph_destroy(graph);
}

/* A network whose weights are all infinite. */
static void what_is_no_number_is_told_of(void **unused)
{
    static const char *const names[] = {"reference", "cpu", "cuda", NULL};
    struct graph *graph = mixed();
    struct calibration calibration;
    uint8_t rows[SIDE * SIDE * 3] = {0};
    const struct trainer_batch batch = {.rows = rows, .count = 1};
    float *weights = calloc(graph->parameter_floats, sizeof *weights);

    weights[0] = INFINITY;
    for (int i = 0; names[i]; i++) {
        struct plugin_choice choice;
        struct backend backend;
        if (!there_is(names[i]))
            continue;
        assert_int_equal(calibration_open(&calibration, graph), 0);
        const struct backend_config config = {
            .graph = graph, .batch_size = 1, .threads = 1, .calibration = &calibration};
        assert_int_equal(plugin_choose("backend", backend_registry, lesson_text(names[i]), &choice),
                         0);
        assert_int_equal(backend_open(&backend, &choice, &config), 0);
        assert_int_equal(backend_load(&backend, weights, NULL, NULL), 0);
        assert_refused(backend_infer(&backend, &batch, NULL, NULL), -ERANGE, "is not a number");
        backend_close(&backend);
        plugin_release(&choice);
        calibration_close(&calibration);
    }
    free(weights);
    graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_are_those_of_numpy),
        cmocka_unit_test(a_histogram_widens_and_loses_nothing),
        cmocka_unit_test(a_percentile_leaves_one_in_10000),
        cmocka_unit_test(weights_fill_their_channel),
        cmocka_unit_test(convolutions_of_sixteens_become_int8),
        cmocka_unit_test(int8_is_that_of_the_reference),
        cmocka_unit_test(all_backends_find_the_same_ranges),
        cmocka_unit_test(what_is_no_number_is_told_of),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
