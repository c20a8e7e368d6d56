/* SPDX-License-Identifier: Apache-2.0
 *
 * Each kind of network learns by the recipe it gets by default: a batch of images, a few steps, and
 * the loss is well below that of guessing (the logarithm of the classes). The images are small, so
 * that all together take seconds. LeNet diverged at the rate of ResNet, the more the larger the
 * batch. Dropout makes the loss of some jump; the seeds are fixed. Networks that get the recipe of
 * one that is tried anyway, and AlexNet with its 60 million parameters, follow with IOBENCH_LONG=1;
 * Inception-v3, whose rate is low, needs more steps.
 */
#include "tests/unit/training.h"

#include "trainer/backend.h"

enum { CLASSES = 4, STEPS = 12 };

/* The smallest square that leaves pixels after the last pool, with some margin. */
static const struct {
    const char *network;
    uint32_t side, batch, steps;
    bool is_long;
} courses[] = {
    {"lenet", 28, 8, STEPS, false},        {"lenet", 28, 64, STEPS, true},
    {"lenet", 28, 256, STEPS, false},      {"alexnet", 67, 8, STEPS, true},
    {"vgg16", 32, 8, STEPS, true},         {"googlenet", 32, 8, STEPS, false},
    {"inception-bn", 32, 8, STEPS, false}, {"inception-v3", 75, 16, 24, true},
    {"resnet50", 32, 8, STEPS, true},
};

/* Each class has its own colour, with noise added. */
static void make_batch(struct lesson *training, uint32_t batch)
{
    const struct graph_shape *shape = &training->graph->nodes[0].shape;
    const size_t pixels = (size_t)shape->height * shape->width;

    lesson_batch(training, 0);
    for (uint32_t i = 0; i < batch; i++) {
        training->labels[i] = (int32_t)(i % CLASSES);
        for (size_t j = 0; j < pixels * 3; j++) {
            uint8_t *value = &training->rows[i * pixels * 3 + j];
            *value = (uint8_t)(*value / 2 + ((i % CLASSES) >> (j % 3) & 1) * 127);
        }
    }
}

static void course(const char *network, uint32_t side, uint32_t batch, uint32_t steps)
{
    const struct recipe recipe =
        recipe_choose(BACKEND_SGD, network_find(network), batch, 90, steps);
    struct graph *graph = lesson_graph(network, side, CLASSES);
    float *parameters = calloc(graph->parameter_floats, sizeof *parameters);
    double first = 0, last = 0;
    struct lesson training;

    if (recipe.zero_gammas)
        graph_start_as_identities(graph);
    lesson_start(&training, "cpu", graph, batch, 1, 1);
    graph_initialise(graph, 2, parameters);
    assert_int_equal(backend_load(&training.backend, parameters, NULL, NULL), 0);
    make_batch(&training, batch);
    for (uint64_t step = 0; step < steps; step++) {
        training.batch.step = step;
        last = lesson_step(&training, 0).loss;
        if (getenv("IOBENCH_SHOW"))
            print_message("  %.4f\n", last);
        if (step == 0)
            first = last;
        lesson_update(&training, &(struct kernel_update){.rate = recipe.rate,
                                                         .momentum = recipe.momentum,
                                                         .clip_norm = recipe.clip_norm,
                                                         .gradient_scale = 1});
    }
    print_message("%s at %u pixels, %u images at %.4f: loss %.3f, after %u steps %.3f\n", network,
                  side, batch, recipe.rate, first, steps - 1, last);
    lesson_end(&training);
    free(parameters);
    graph_destroy(graph);
    assert_true(last < first && last < 0.7 * log(CLASSES));
}

static void every_kind_of_network_learns(void **unused)
{
    for (size_t i = 0; i < sizeof courses / sizeof *courses; i++)
        if (!courses[i].is_long || getenv("IOBENCH_LONG"))
            course(courses[i].network, courses[i].side, courses[i].batch, courses[i].steps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_network_learns),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
