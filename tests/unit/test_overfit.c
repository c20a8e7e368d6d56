/* SPDX-License-Identifier: Apache-2.0
 * A network that trains can memorise 256 images: the mean loss of a pass over them falls
 * under 0.05 within 60 steps. The images are noise and the labels chance, so that nothing but
 * working gradients helps. They have 16 pixels a side; with IOBENCH_LONG=1 they have 32, and the
 * reference learns them too.
 */
#include "tests/unit/training.h"

enum { IMAGES = 256, BATCH = 64, STEPS = 60, BATCHES = IMAGES / BATCH };

static double overfit(const char *backend)
{
    struct graph *graph = lesson_graph("tiny", getenv("IOBENCH_LONG") ? 32 : 16, 10);
    struct lesson training;
    float *parameters = calloc(graph->parameter_floats, sizeof *parameters);
    double losses[BATCHES], mean = 0;
    int step;

    lesson_start(&training, backend, graph, BATCH, 1, 1);
    graph_initialise(graph, 3, parameters);
    assert_int_equal(backend_load(&training.backend, parameters, NULL, NULL), 0);
    for (step = 0; step < STEPS; step++) {
        lesson_batch(&training, (uint64_t)step % BATCHES);
        losses[step % BATCHES] = lesson_step(&training, 0).loss;
        lesson_update(&training,
                      &(struct kernel_update){.rate = 0.05, .momentum = 0.9, .gradient_scale = 1});
        mean = 0;
        for (int i = 0; i < BATCHES; i++)
            mean += losses[i] / BATCHES;
        if (getenv("IOBENCH_SHOW"))
            print_message("step %d: %.4f\n", step, losses[step % BATCHES]);
        if (step >= BATCHES && mean < 0.05)
            break;
    }
    print_message("%s: mean loss %.4f after %d steps\n", backend, mean, step + 1);
    lesson_end(&training);
    free(parameters);
    graph_destroy(graph);
    return mean;
}

static void images_are_learnt_by_heart(void **unused)
{
    for (const struct plugin *const *plugin = backend_registry; *plugin; plugin++) {
        if (plugin_usable(*plugin))
            print_message("%s: not on this machine: %s\n", (*plugin)->name, fail_reason());
        else if (strcmp((*plugin)->name, "reference") == 0 && !getenv("IOBENCH_LONG"))
            print_message("reference: set IOBENCH_LONG=1\n");
        else
            assert_true(overfit((*plugin)->name) < 0.05);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_are_learnt_by_heart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
