/* SPDX-License-Identifier: Apache-2.0
 * Part of test_backend.c: updates of the weights, and clipping. */
#include "tests/unit/backends.h"

#include "kernels/kernels.h"

static double norm_of(const struct graph *graph, const struct saved *saved)
{
    double squares = 0;

    for (uint64_t i = 0; i < graph->parameter_floats; i++)
        squares += (double)saved->gradients[i] * (double)saved->gradients[i];
    return sqrt(squares);
}

/* Apply the recipe's update to saved arrays: the expected result of a step. */
static void update_saved(const struct graph *graph, const struct kernel_update *update,
                         struct saved *saved)
{
    const double norm = update->gradient_scale * norm_of(graph, saved);
    const double factor =
        update->clip_norm > 0 && norm > update->clip_norm ? update->clip_norm / norm : 1;
    const double scale = factor * update->gradient_scale;

    for (uint32_t i = 0; i < graph->parameter_count; i++) {
        const struct graph_parameter *parameter = &graph->parameters[i];
        const bool fc_bias = parameter->kind == GRAPH_BIAS &&
                             graph->nodes[parameter->node].kind == GRAPH_FULLY_CONNECTED;
        const bool is_weight = parameter->kind == GRAPH_WEIGHT;
        const bool decays = is_weight || (fc_bias && update->decays_fc_bias);
        float *weight = saved->parameters + parameter->offset;
        float *momenta = saved->momenta + parameter->offset;
        const float *gradient = saved->gradients + parameter->offset;
        if (!update->adapts)
            kernel_sgd(parameter->count, update->rate, update->momentum, decays ? update->decay : 0,
                       scale, gradient, weight, momenta);
        else
            kernel_lars(parameter->count, update->rate, update->rate_before, update->momentum,
                        decays ? update->decay : 0, is_weight ? update->eta : 0, scale, gradient,
                        weight, momenta);
    }
}

static void updated(const char *backend, struct graph *graph)
{
    const struct kernel_update updates[] = {
        {false, false, 0.5, 0.25, 0.8, 0.3, 0, 0.5, 0},
        {true, false, 0.5, 0.25, 0.8, 0.3, 0.2, 0.5, 0},
        {true, true, 0.5, 0, 0.8, 0.3, 0.2, 0.5, 0},
    };
    struct lesson training;

    lesson_start(&training, backend, graph, BATCH, 5, 0);
    lesson_load(&training);
    train(&training, 0, 1); /* momenta are not 0 */
    for (int i = 0; i < 3; i++) {
        lesson_batch(&training, 1);
        lesson_step(&training, 0);
        struct saved expected = save(&training);
        update_saved(graph, &updates[i], &expected);
        lesson_update(&training, &updates[i]);
        struct saved ours = save(&training);
        assert_true(distance(ours.parameters, expected.parameters, graph->parameter_floats) < 1e-6);
        assert_true(distance(ours.momenta, expected.momenta, graph->parameter_floats) < 1e-6);
        forget(&expected);
        forget(&ours);
    }
    lesson_end(&training);
}

void updates_are_as_the_kernels_have_them(void **unused)
{
    each_backend(small, updated);
}

static void clipped(const char *backend, struct graph *graph)
{
    static const double shares[] = {0.25, 0.99, 1.01};
    const struct kernel_update kinds[] = {{false, false, 0.1, 0.1, 0.8, 0.01, 0, 0.5, 0},
                                          {true, true, 0.1, 0.1, 0.8, 0.01, 0.2, 0.5, 0}};
    struct lesson training;

    lesson_start(&training, backend, graph, BATCH, 5, 0);
    for (int i = 0; i < 6; i++) {
        struct kernel_update update = kinds[i / 3];
        lesson_load(&training);
        lesson_batch(&training, 1);
        lesson_step(&training, 0);
        struct saved expected = save(&training), plain = save(&training);
        update.clip_norm = shares[i % 3] * update.gradient_scale * norm_of(graph, &expected);
        update_saved(graph, &update, &expected);
        update_saved(graph, &kinds[i / 3], &plain);
        lesson_update(&training, &update);
        struct saved ours = save(&training);
        const uint64_t floats = graph->parameter_floats;
        assert_true(distance(ours.parameters, expected.parameters, floats) < 1e-6);
        assert_true(distance(ours.momenta, expected.momenta, floats) < 1e-6);
        assert_true((distance(ours.momenta, plain.momenta, floats) > 1e-5) == (shares[i % 3] < 1));
        forget(&expected);
        forget(&plain);
        forget(&ours);
    }
    lesson_end(&training);
}

void gradients_are_clipped_by_the_norm_of_all(void **unused)
{
    each_backend(small, clipped);
}

static float *clip_by_threads(struct graph *graph, uint32_t threads)
{
    float *parameters = calloc(graph->parameter_floats, sizeof *parameters);
    struct kernel_update update = sgd;
    struct lesson training;

    update.clip_norm = 1e-3;
    lesson_start(&training, "cpu", graph, BATCH, 5, threads);
    lesson_load(&training);
    struct backend_memory memory;
    backend_memory(&training.backend, &memory);
    for (uint64_t i = 0; i < graph->parameter_floats; i++)
        memory.gradients[i] =
            (float)lesson_spread(lesson_key(TRAINING_PROJECTIONS, 0), i) * (float)(i % 7);
    lesson_update(&training, &update);
    assert_int_equal(backend_save(&training.backend, parameters, NULL, NULL, NULL), 0);
    lesson_end(&training);
    return parameters;
}

/* Ranks may have different numbers of threads, and must stay the same. */
void threads_do_not_change_the_norm(void **unused)
{
    struct plugin_choice choice;
    const bool absent = backend_choose("cpu", NULL, &choice);

    plugin_release(&choice);
    if (absent)
        skip();
    struct graph *graph = small();
    float *one = clip_by_threads(graph, 1), *three = clip_by_threads(graph, 3);
    assert_memory_equal(one, three, graph->parameter_floats * sizeof *one);
    free(one);
    free(three);
    graph_destroy(graph);
}
