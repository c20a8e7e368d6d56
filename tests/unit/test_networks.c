/* SPDX-License-Identifier: Apache-2.0
 * Every network against its published figures. */
#include "tests/unit/golden.h"

#include "base/fail.h"
#include "trainer/graph.h"

#include <errno.h>
#include <math.h>

static void parameters_and_operations_are_as_published(void **unused)
{
    for (const struct network *const *n = network_registry; *n; n++) {
        const struct network *network = *n;
        struct graph *graph = network_build(network, network->side, network->classes);
        if (!graph)
            fail_msg("%s: %s", network->name, fail_reason());
        struct graph_cost cost = graph_cost(graph);
        if (network->published_parameters && cost.parameters != network->published_parameters)
            fail_msg("%s has %llu parameters, published are %llu", network->name,
                     (unsigned long long)cost.parameters,
                     (unsigned long long)network->published_parameters);
        double gmacs = (double)cost.forward_macs * 1e-9;
        if (network->published_gmacs > 0 && fabs(gmacs / network->published_gmacs - 1) > 0.01)
            fail_msg("%s takes %.3f GMAC, published are %.3f", network->name, gmacs,
                     network->published_gmacs);
        graph_destroy(graph);
    }
}

/* Nodes and parameters of all networks, but for repeated blocks of the deep ones. ResNet-50 takes
 * 24.30 GFLOP per image trained, at two per multiply-accumulate. */
static void networks_are_as_saved(void **unused)
{
    golden_begin();
    for (const struct network *const *n = network_registry; *n; n++) {
        struct graph *graph = network_build(*n, (*n)->side, (*n)->classes);
        const struct graph_cost cost = graph_cost(graph);
        fprintf(golden,
                "%s: %u nodes, %u parameters of %llu floats, %llu statistics, %llu MACs forward, "
                "%llu training, %llu activation bytes, %llu kept\n",
                (*n)->name, graph->node_count, graph->parameter_count,
                (unsigned long long)graph->parameter_floats,
                (unsigned long long)graph->statistic_floats, (unsigned long long)cost.forward_macs,
                (unsigned long long)cost.training_macs, (unsigned long long)cost.activation_bytes,
                (unsigned long long)cost.kept_bytes);
        for (uint32_t i = 0; i<graph->node_count; i += i> 120 ? 7 : 1) {
            const struct graph_node *node = &graph->nodes[i];
            const struct kernel_window *w = &node->window;
            fprintf(golden, "  %u %s %d %ux%ux%u by %ux%u/%u+%u,%u,%u,%u%s of %u:", i, node->name,
                    (int)node->kind, node->shape.channels, node->shape.height, node->shape.width,
                    w->height, w->width, w->stride, w->pad_top, w->pad_left, w->pad_bottom,
                    w->pad_right, w->count_padding ? "p" : "", node->window.groups);
            for (uint32_t k = 0; k < node->input_count; k++)
                fprintf(golden, " %u", node->inputs[k]);
            fprintf(golden,
                    "; %g %g %llu; %g %g %g; %g; %d %d %d %d; read by %u, last %u%s; %llu final\n",
                    node->epsilon, node->momentum, (unsigned long long)node->statistics,
                    node->lrn.alpha, node->lrn.beta, node->lrn.k, node->dropout_rate,
                    (int)node->weight, (int)node->bias, (int)node->gamma, (int)node->beta,
                    node->consumers, node->consumer, node->needs_gradient ? " back" : "",
                    (unsigned long long)graph_final_floats(graph, i));
        }
        for (uint32_t i = 0; i<graph->parameter_count; i += i> 80 ? 7 : 1) {
            const struct graph_parameter *row = &graph->parameters[i];
            fprintf(golden, "  %s %d of %u: %llu at %llu, %.6g %g decay %d%s\n", row->name,
                    (int)row->kind, row->node, (unsigned long long)row->count,
                    (unsigned long long)row->offset, row->deviation, row->start, (int)row->decay,
                    row->ends_block ? " ends" : "");
        }
        graph_destroy(graph);
    }
    golden_end("networks.txt");
}

/* Finished gradients must be a growing prefix of the arena. */
static void parameters_lie_in_backward_order(void **unused)
{
    const struct network *network = network_find("resnet50");
    struct graph *graph = network_build(network, 64, 10);

    assert_non_null(graph);
    for (uint32_t i = 1; i < graph->parameter_count; i++) {
        const struct graph_parameter *first = &graph->parameters[i - 1];
        const struct graph_parameter *later = &graph->parameters[i];
        assert_true(later->node >= first->node);
        assert_int_equal(later->offset + later->count, first->offset);
    }
    assert_int_equal(graph->parameters[0].offset + graph->parameters[0].count,
                     graph->parameter_floats);
    graph_destroy(graph);
}

static void starting_values_are_as_asked(void **unused)
{
    const struct network *network = network_find("tiny");
    struct graph *graph = network_build(network, 32, 10);
    float *values = calloc(graph->parameter_floats, sizeof *values);
    float *again = calloc(graph->parameter_floats, sizeof *again);

    graph_initialise(graph, 7, values);
    graph_initialise(graph, 7, again);
    assert_memory_equal(values, again, graph->parameter_floats * sizeof *values);
    for (uint32_t parts = 2; parts <= 7; parts += 5) { /* threads may come in any order */
        memset(again, 0xff, graph->parameter_floats * sizeof *again);
        for (uint32_t part = parts; part-- > 0;)
            graph_initialise_part(graph, 7, part, parts, again);
        for (uint32_t i = 0; i < graph->parameter_count; i++)
            assert_memory_equal(values + graph->parameters[i].offset,
                                again + graph->parameters[i].offset,
                                graph->parameters[i].count * sizeof *values);
    }
    for (uint32_t i = 0; i < graph->parameter_count; i++) {
        const struct graph_parameter *parameter = &graph->parameters[i];
        const float *v = values + parameter->offset;
        double sum = 0, squares = 0, count = (double)parameter->count;
        for (uint64_t j = 0; j < parameter->count; j++) {
            sum += v[j];
            squares += (double)v[j] * v[j];
        }
        if (parameter->deviation == 0) {
            assert_true(fabs(sum / count - parameter->start) < 1e-6);
            continue;
        }
        double deviation = sqrt(squares / count), error = 5 / sqrt(2 * count);
        assert_true(fabs(deviation / parameter->deviation - 1) < error);
        assert_true(fabs(sum / count) < 5 * parameter->deviation / sqrt(count));
    }
    free(values);
    free(again);
    graph_destroy(graph);
}

/* How many gammas start with 0; the rest with 1. Values start as parameters say: shown above. */
static uint32_t zero_gammas(const struct graph *graph, const char *part)
{
    uint32_t zero = 0;

    for (uint32_t i = 0; i < graph->parameter_count; i++) {
        const struct graph_parameter *parameter = &graph->parameters[i];
        if (parameter->kind != GRAPH_GAMMA)
            continue;
        const bool ends =
            part && strstr(parameter->name, ".block") && strstr(parameter->name, part);
        if (parameter->deviation != 0 || parameter->start != (ends ? 0 : 1))
            fail_msg("%s starts with %g", parameter->name, parameter->start);
        zero += ends;
    }
    return zero;
}

/* The last BN of each residual block, and no other, starts with gamma 0, once asked for. */
static void residual_blocks_start_as_identities(void **unused)
{
    static const struct {
        const char *name, *part;
        uint32_t blocks;
    } residual[] = {{"resnet50", ".bn3.", 16},
                    {"resnet101", ".bn3.", 33},
                    {"resnet152", ".bn3.", 50},
                    {"resnet110", ".bn2.", 54}};
    const size_t count = sizeof residual / sizeof *residual;

    for (const struct network *const *n = network_registry; *n; n++) {
        struct graph *graph = network_build(*n, (*n)->side, 10);
        size_t i = 0;
        while (i < count && strcmp(residual[i].name, (*n)->name) != 0)
            i++;
        assert_int_equal(zero_gammas(graph, NULL), 0);
        assert_int_equal(graph_start_as_identities(graph), i < count ? residual[i].blocks : 0);
        assert_int_equal(zero_gammas(graph, i < count ? residual[i].part : NULL),
                         i < count ? residual[i].blocks : 0);
        graph_destroy(graph);
    }
}

/* The first mistake is the one that is told. */
static void tensors_that_do_not_join(void **unused)
{
    static const char *const reasons[] = {"cannot add big and small: their shapes differ",
                                          "cannot add big and wide: their shapes differ",
                                          "cannot join big and small: their sizes differ",
                                          "cannot join 0 tensors",
                                          "cannot join 9 tensors",
                                          NULL};

    assert_int_equal(GRAPH_INPUTS_MAX, 8);
    for (int i = 0; i < 6; i++) {
        struct graph *graph = graph_create((struct graph_shape){3, 8, 8}, 10);
        const uint32_t big = graph_convolution(graph, "big", 0, 4, graph_square(3, 1, 1), 1, false);
        const uint32_t small =
            graph_convolution(graph, "small", 0, 4, graph_square(3, 2, 1), 1, false);
        const uint32_t wide =
            graph_convolution(graph, "wide", 0, 5, graph_square(3, 1, 1), 1, false);
        const uint32_t parts[9] = {big, i == 2 ? small : wide};
        const uint32_t joined = i < 2 ? graph_add(graph, big, i ? wide : small)
                                      : graph_concat(graph, parts,
                                                     i == 3   ? 0
                                                     : i == 4 ? 9
                                                              : 2);
        if (reasons[i]) {
            assert_int_equal(graph_seal(graph), -EINVAL);
            assert_string_equal(fail_reason(), reasons[i]);
        } else {
            assert_int_equal(graph->code, 0);
            assert_int_equal(graph->nodes[joined].shape.channels, 9);
            assert_int_equal(graph->nodes[joined].shape.height, 8);
        }
        graph_destroy(graph);
    }
}

static void a_network_that_does_not_fit_is_refused(void **unused)
{
    assert_null(network_build(network_find("vgg16"), 16, 10));
    assert_non_null(strstr(fail_reason(), "window does not fit"));
    assert_null(network_find("nonesuch"));
    assert_non_null(strstr(fail_reason(), "resnet50"));
}

int main(int argument_count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_and_operations_are_as_published),
        cmocka_unit_test(networks_are_as_saved),
        cmocka_unit_test(parameters_lie_in_backward_order),
        cmocka_unit_test(starting_values_are_as_asked),
        cmocka_unit_test(residual_blocks_start_as_identities),
        cmocka_unit_test(tensors_that_do_not_join),
        cmocka_unit_test(a_network_that_does_not_fit_is_refused),
    };

    renew = argument_count > 1 ? arguments[1] : NULL;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
