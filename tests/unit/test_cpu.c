/* SPDX-License-Identifier: Apache-2.0
 * The cpu backend against the reference one: networks that hold every kind of node, whole and short
 * batches, training and inference, both recipes; the same bits twice. */
#include "tests/unit/unit.h"

#include "base/fail.h"
#include "base/random.h"
#include "trainer/backend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef BACKEND
#define BACKEND "cpu" /* tests/cuda/local.mk overrides it */
#endif

static const char *options = BACKEND; /* of the backend to test */

/* The environment may give the same backend with other options. */
static const char *tested(void)
{
    const char *named = getenv("IOBENCH_TEST_BACKEND");

    return named ? named : options;
}

/* The time, 1 ms later with each look, and more with the number of looks; 0: that of the kernel. */
static uint64_t set_ns, looks, more_ns;

int clock_gettime(clockid_t id, struct timespec *now)
{
    if (set_ns == 0)
        return (int)syscall(SYS_clock_gettime, id, now);
    set_ns += 1000000 + more_ns * ++looks;
    *now = (struct timespec){.tv_sec = (time_t)(set_ns / 1000000000),
                             .tv_nsec = (long)(set_ns % 1000000000)};
    return 0;
}

enum { BATCH = 6, CLASSES = 7, SIDE = 16 };

/* All state of a backend in the canonical layout, after some steps. */
struct outcome {
    double losses[4];
    uint32_t correct;
    float *parameters, *momenta, *statistics, *gradients, *logits;
};

static uint8_t rows[BATCH * SIDE * SIDE * 3];
static int32_t labels[BATCH];

static struct graph *start(void)
{
    return graph_create((struct graph_shape){3, SIDE, SIDE}, CLASSES);
}

static struct graph *finish(struct graph *graph)
{
    if (graph_seal(graph))
        fail_msg("%s", fail_reason());
    return graph;
}

/* Convolutions with and without bias, grouped, of odd sizes; ReLU fused and not; a residual. */
static struct graph *residual(void)
{
    struct graph *graph = start();
    uint32_t x = graph_convolution(graph, "a", 0, 16, graph_square(3, 1, 1), 1, false);
    x = graph_relu(graph, graph_batch_norm(graph, "a.bn", x, false));
    uint32_t y = graph_convolution(graph, "b", x, 16, graph_square(3, 1, 1), 1, false);
    y = graph_batch_norm(graph, "b.bn", y, false);
    x = graph_relu(graph, graph_add(graph, y, x));
    x = graph_relu(graph, graph_convolution(graph, "c", x, 32, graph_square(5, 2, 2), 2, true));
    x = graph_max_pool(graph, x, graph_square(3, 2, 1));
    x = graph_convolution(graph, "d", x, 10, graph_square(1, 1, 0), 1, true);
    x = graph_relu(graph, graph_average_pool(graph, x, graph_square(2, 2, 0)));
    graph_fully_connected(graph, "fc", x, CLASSES);
    return finish(graph);
}

static uint32_t normalised(struct graph *graph, const char *name, uint32_t input, uint32_t channels,
                           uint32_t side, uint32_t stride)
{
    const uint32_t x = graph_convolution(graph, name, input, channels,
                                         graph_square(side, stride, side / 2), 1, false);

    return graph_batch_norm(graph, name, x, false);
}

static uint32_t bottleneck(struct graph *graph, uint32_t input, uint32_t stride, bool projects)
{
    uint32_t x = graph_relu(graph, normalised(graph, "one", input, 8, 1, 1));

    x = graph_relu(graph, normalised(graph, "two", x, 8, 3, stride));
    x = normalised(graph, "three", x, 32, 1, 1);
    const uint32_t other = projects ? normalised(graph, "other", input, 32, 1, stride) : input;
    return graph_relu(graph, graph_add(graph, x, other));
}

/* BN and ReLU between convolutions, standalone, with two consumers, and with all kinds of sums. */
static struct graph *bottlenecks(void)
{
    struct graph *graph = start();
    uint32_t x = graph_relu(graph, normalised(graph, "stem", 0, 16, 3, 1));

    x = bottleneck(graph, x, 2, true);
    x = bottleneck(graph, x, 1, false);
    x = bottleneck(graph, x, 1, false);
    x = graph_relu(graph, graph_convolution(graph, "last", x, 16, graph_square(1, 1, 0), 1, true));
    x = graph_global_pool(graph, x);
    graph_fully_connected(graph, "fc", x, CLASSES);
    return finish(graph);
}

/* Branches whose channel counts fit no block, LRN, an odd window, a hidden layer, dropout. */
static struct graph *branches(void)
{
    struct graph *graph = start();
    uint32_t x =
        graph_relu(graph, graph_convolution(graph, "stem", 0, 16, graph_square(3, 1, 0), 1, true));
    x = graph_lrn(graph, x, 5, 1e-2, 0.75, 1);
    uint32_t wide = graph_convolution(
        graph, "wide", x, 20,
        (struct kernel_window){.height = 1, .width = 7, .stride = 1, .pad_left = 3, .pad_right = 3},
        1, false);
    uint32_t parts[] = {
        graph_relu(graph, graph_batch_norm(graph, "wide.bn", wide, false)),
        graph_relu(graph, graph_convolution(graph, "one", x, 16, graph_square(1, 1, 0), 1, true)),
        graph_max_pool(graph, x, graph_square(3, 1, 1)),
        x,
    };
    x = graph_concat(graph, parts, 4);
    struct kernel_window padded = graph_square(3, 2, 1);
    padded.count_padding = true;
    x = graph_average_pool(graph, x, padded);
    x = graph_dropout(graph, x, 0.25);
    x = graph_relu(graph, graph_fully_connected(graph, "hidden", x, 33));
    graph_fully_connected(graph, "fc", graph_dropout(graph, x, 0.5), CLASSES);
    return finish(graph);
}

static void make_batch(uint64_t seed)
{
    struct random random = random_start(seed);

    for (size_t i = 0; i < sizeof rows; i++)
        rows[i] = (uint8_t)random_below(&random, 256);
    for (int i = 0; i < BATCH; i++)
        labels[i] = (int32_t)random_below(&random, CLASSES);
    labels[1] = -1;
}

static void require(int code)
{
    if (code)
        fail_msg("%s", fail_reason());
}

static float *floats(uint64_t count)
{
    float *memory = calloc(count + 1, sizeof *memory);

    assert_non_null(memory);
    return memory;
}

/* Run three full steps and a partial one, then inference. steps: fewer for exact gradients. */
static struct outcome train(const char *name, const struct graph *graph, int steps,
                            enum backend_recipe recipe, uint32_t threads)
{
    struct outcome outcome = {
        .parameters = floats(graph->parameter_floats),
        .momenta = floats(graph->parameter_floats),
        .gradients = floats(graph->parameter_floats),
        .statistics = floats(graph->statistic_floats),
        .logits = floats(BATCH * CLASSES),
    };
    struct backend_config config = {
        .graph = graph, .batch_size = BATCH, .training = true, .seed = 5, .threads = threads};
    struct plugin_choice choice;
    struct backend backend;

    require(plugin_choose("backend", backend_registry, name, &choice));
    require(backend_open(&backend, &choice, &config));
    graph_initialise(graph, 1, outcome.parameters);
    require(backend_load(&backend, outcome.parameters, NULL, NULL));
    for (int i = 0; i < steps; i++) {
        const struct kernel_update update = {.adapts = recipe == BACKEND_LARS,
                                             .rate = recipe == BACKEND_LARS ? 2 : 0.02,
                                             .rate_before = i ? 1.5 : 0,
                                             .momentum = 0.9,
                                             .decay = 1e-3,
                                             .eta = 0.01,
                                             .gradient_scale = 0.5};
        struct trainer_batch batch = {.rows = rows, .labels = labels, .step = (uint64_t)i};
        struct backend_loss loss;
        make_batch((uint64_t)i + 1);
        batch.count = i == 3 ? BATCH - 2 : BATCH;
        require(backend_step(&backend, &batch, 0.1, NULL, NULL, &loss));
        outcome.losses[i] = loss.loss;
        outcome.correct = loss.correct;
        assert_int_equal(loss.counted, batch.count - 1);
        if (i + 1 < steps)
            require(backend_update(&backend, &update));
    }
    struct trainer_batch batch = {.rows = rows, .labels = labels, .count = BATCH - 1};
    struct backend_loss loss;
    require(backend_infer(&backend, &batch, outcome.logits, &loss));
    require(backend_save(&backend, outcome.parameters, outcome.momenta, outcome.statistics,
                         outcome.gradients));
    backend_close(&backend);
    plugin_release(&choice);
    return outcome;
}

static void forget(struct outcome *outcome)
{
    free(outcome->parameters);
    free(outcome->momenta);
    free(outcome->gradients);
    free(outcome->statistics);
    free(outcome->logits);
}

/* Return the largest difference over the largest value. */
static double distance(const float *a, const float *b, uint64_t count)
{
    double most = 1e-6, difference = 0;

    for (uint64_t i = 0; i < count; i++) {
        assert_true(isfinite(a[i]) && isfinite(b[i]));
        most = fmax(most, fabs((double)a[i]));
        difference = fmax(difference, fabs((double)a[i] - (double)b[i]));
    }
    return difference / most;
}

static void compare_gradients(const struct graph *graph, const struct outcome *wanted,
                              const struct outcome *found, double tolerance)
{
    for (uint32_t i = 0; i < graph->parameter_count; i++) {
        const struct graph_parameter *parameter = &graph->parameters[i];
        double off = distance(wanted->gradients + parameter->offset,
                              found->gradients + parameter->offset, parameter->count);
        if (off > tolerance)
            fail_msg("the gradient of %s is off by %g of its size", parameter->name, off);
    }
}

static void compare(struct graph *graph, int steps, enum backend_recipe recipe, double tolerance)
{
    struct outcome wanted = train("reference", graph, steps, recipe, 1);
    struct outcome found = train(tested(), graph, steps, recipe, 1);

    for (int i = 0; i < steps; i++)
        assert_true(fabs(wanted.losses[i] - found.losses[i]) < tolerance * wanted.losses[i]);
    assert_int_equal(wanted.correct, found.correct);
    compare_gradients(graph, &wanted, &found, tolerance * 10);
    assert_true(distance(wanted.parameters, found.parameters, graph->parameter_floats) < tolerance);
    assert_true(distance(wanted.momenta, found.momenta, graph->parameter_floats) < tolerance * 10);
    assert_true(distance(wanted.statistics, found.statistics, graph->statistic_floats) < tolerance);
    assert_true(distance(wanted.logits, found.logits, (BATCH - 1) * CLASSES) < tolerance * 10);
    forget(&wanted);
    forget(&found);
    graph_destroy(graph);
}

static void one_step_is_that_of_the_reference(void **unused)
{
    compare(residual(), 1, BACKEND_SGD, 1e-5);
    compare(branches(), 1, BACKEND_SGD, 1e-5);
    compare(bottlenecks(), 1, BACKEND_SGD, 1e-5);
}

static void four_steps_are_those_of_the_reference(void **unused)
{
    compare(residual(), 4, BACKEND_SGD, 1e-3);
    compare(branches(), 4, BACKEND_SGD, 1e-3);
    compare(residual(), 4, BACKEND_LARS, 1e-3);
    compare(bottlenecks(), 4, BACKEND_SGD, 1e-3);
}

static void networks_are_those_of_the_reference(void **unused)
{
    compare(network_build(network_find("tiny"), SIDE, CLASSES), 1, BACKEND_SGD, 1e-4);
}

/* The same seed gives the same bits, and a saved and loaded state continues unchanged. */
/* Gradients as products of matrices, in any layout, with and without bias. */
static void products_are_those_of_the_reference(void **unused)
{
    if (strcmp(tested(), "cpu") != 0)
        skip();
    options = "cpu:gradients=products";
    compare(residual(), 1, BACKEND_SGD, 1e-5);
    compare(bottlenecks(), 1, BACKEND_SGD, 1e-5);
    options = BACKEND;
}

static void the_same_bits_come_twice(void **unused)
{
    struct graph *graph = branches();
    struct outcome first = train(tested(), graph, 4, BACKEND_SGD, 2);
    struct outcome second = train(tested(), graph, 4, BACKEND_SGD, 2);

    assert_memory_equal(first.parameters, second.parameters, 4 * graph->parameter_floats);
    assert_memory_equal(first.momenta, second.momenta, 4 * graph->parameter_floats);
    assert_memory_equal(first.statistics, second.statistics, 4 * graph->statistic_floats);
    forget(&first);
    forget(&second);
    graph_destroy(graph);
}

/* save() and load() change no bit, whatever the internal layout. */
static void saving_and_loading_change_no_bit(void **unused)
{
    struct graph *graph = residual();
    struct backend_config config = {
        .graph = graph, .batch_size = 2, .training = true, .threads = 1};
    struct plugin_choice choice;
    struct backend backend;
    const uint64_t count = graph->parameter_floats;
    float *given = floats(count), *saved = floats(count), *momenta = floats(count);
    float *statistics = floats(graph->statistic_floats);

    for (uint64_t i = 0; i < count; i++)
        given[i] = (float)i;
    require(plugin_choose("backend", backend_registry, tested(), &choice));
    require(backend_open(&backend, &choice, &config));
    require(backend_load(&backend, given, given, NULL));
    require(backend_save(&backend, saved, momenta, statistics, NULL));
    assert_memory_equal(given, saved, count * sizeof *given);
    assert_memory_equal(given, momenta, count * sizeof *given);
    assert_true(statistics[0] == 0 && statistics[16] == 1); /* as open() left them */
    backend_close(&backend);
    plugin_release(&choice);
    free(given);
    free(saved);
    free(momenta);
    free(statistics);
    graph_destroy(graph);
}

/* Each look at the clock is 1 ms after the one before it: so long takes each step. */
static void times_are_of_one_pass(void **unused)
{
    static const char *const backends[] = {"cpu", "reference"};

    if (strcmp(tested(), "cpu") != 0)
        skip();
    struct graph *graph = residual();
    const struct schedule_request request = {
        .graph = graph, .batch_size = 2, .training = true, .passes = 3, .threads = 1};
    for (int i = 0; i < 2; i++) {
        struct plugin_choice choice;
        struct schedule schedule;
        require(plugin_choose("backend", backend_registry, backends[i], &choice));
        set_ns = 1;
        require(backend_schedule(&choice, &request, &schedule));
        set_ns = 0;
        for (uint32_t k = 0; k < schedule.count; k++)
            assert_near(schedule.steps[k].measured_ns, 1e6, 1e-3);
        if (i == 0) {
            assert_near(schedule.flops_per_s, 2.0 * (1 << 30) / 1e-3, 1);
            assert_near(schedule.bytes_per_s, 3.0 * 4 * (16 << 20) / 1e-3, 1);
        }
        schedule_free(&schedule);
        plugin_release(&choice);
    }

    /* Rounds of two looks each: after one that warms up, the first of five is the fastest. */
    struct plugin_choice choice;
    struct schedule schedule;
    require(plugin_choose("backend", backend_registry, "cpu", &choice));
    looks = 0;
    more_ns = 1000;
    set_ns = 1;
    require(backend_schedule(&choice, &request, &schedule));
    set_ns = more_ns = 0;
    assert_equal(schedule.flops_per_s, 2e9 * (1 << 30) / (1e6 + 1e3 * (double)(looks - 20)));
    assert_equal(schedule.bytes_per_s, 3e9 * 4 * (16 << 20) / (1e6 + 1e3 * (double)(looks - 8)));
    schedule_free(&schedule);
    plugin_release(&choice);
    graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_step_is_that_of_the_reference),
        cmocka_unit_test(four_steps_are_those_of_the_reference),
        cmocka_unit_test(networks_are_those_of_the_reference),
        cmocka_unit_test(products_are_those_of_the_reference),
        cmocka_unit_test(the_same_bits_come_twice),
        cmocka_unit_test(saving_and_loading_change_no_bit),
        cmocka_unit_test(times_are_of_one_pass),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
