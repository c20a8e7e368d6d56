/* SPDX-License-Identifier: Apache-2.0
 *
 * Each kind of network learns: eight images, a few steps, and the loss is well below that of
 * guessing (the logarithm of the classes). The images are small, so that all together take seconds.
 * Dropout makes the loss of some jump; the seeds are fixed.
 */
#include "tests/unit/training.h"

enum { BATCH = 8, CLASSES = 4, STEPS = 12 };

/* The smallest square that has pixels left behind the last pool, with some to spare. */
static const struct {
    const char *network;
    uint32_t side;
    double rate;
} courses[] = {
    {"lenet", 28, 0.002},     {"alexnet", 67, 0.002},     {"vgg16", 32, 0.002},
    {"googlenet", 32, 0.006}, {"inception-bn", 32, 0.01}, {"inception-v3", 75, 0.01},
    {"resnet50", 32, 0.005},
};

/* Each class has a colour of its own, under noise. */
static void make_batch(struct training *training)
{
    const struct graph_shape *shape = &training->graph->nodes[0].shape;
    const size_t pixels = (size_t)shape->height * shape->width;

    training_batch(training, 0);
    for (uint32_t i = 0; i < BATCH; i++) {
        training->labels[i] = (int32_t)(i % CLASSES);
        for (size_t j = 0; j < pixels * 3; j++) {
            uint8_t *value = &training->rows[i * pixels * 3 + j];
            *value = (uint8_t)(*value / 2 + ((i % CLASSES) >> (j % 3) & 1) * 127);
        }
    }
}

static void course(const char *network, uint32_t side, double rate)
{
    struct graph *graph = training_graph(network, side, CLASSES);
    float *parameters = calloc(graph->parameter_floats, sizeof *parameters);
    double first = 0, last = 0;
    struct training training;

    training_start(&training, "cpu", graph, BATCH, 1, 1);
    graph_initialise(graph, 3, parameters);
    assert_int_equal(backend_load(&training.backend, parameters, NULL, NULL), 0);
    make_batch(&training);
    for (uint64_t step = 0; step < STEPS; step++) {
        training.batch.step = step;
        last = training_step(&training, 0).loss;
        if (getenv("IOBENCH_SHOW"))
            print_message("  %.4f\n", last);
        if (step == 0)
            first = last;
        training_update(&training, &(struct backend_update){.recipe = BACKEND_SGD,
                                                            .rate = rate,
                                                            .momentum = 0.9,
                                                            .gradient_scale = 1});
    }
    print_message("%s at %u pixels: loss %.3f, after %d steps %.3f\n", network, side, first,
                  STEPS - 1, last);
    training_end(&training);
    free(parameters);
    graph_destroy(graph);
    assert_true(last < first && last < 0.7 * log(CLASSES));
}

static void every_kind_of_network_learns(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof courses / sizeof *courses; i++)
        course(courses[i].network, courses[i].side, courses[i].rate);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_network_learns),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
