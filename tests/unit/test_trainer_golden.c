/* SPDX-License-Identifier: Apache-2.0
 *
 * Every backend against what PyTorch computes in double (tests/golden/make_trainer.py): loss, every
 * gradient tensor, ten losses of SGD and of LARS, running statistics, logits.
 *
 * Tolerances. Every result comes with the distance at which PyTorch's own single precision lands;
 * a backend may be four times as far, plus a floor. Rounding moves results smoothly but for one
 * thing: a ReLU whose input is within rounding of 0 may go either way, and where it does is luck.
 * One that flips moves a gradient by about the share of one activation; the floors allow a few of
 * those, by network. `pieces` has few enough activations that none flips: it holds the kernels to
 * single precision, the others hold the graph together.
 *
 * The reference computes `pieces` every day; tiny and ResNet-50 take it too long: IOBENCH_LONG=1.
 */
#include "tests/unit/training.h"

#include "kernels/kernels.h"

#include <stdio.h>

enum { STEPS = 10, SAMPLES = 4, VALUES_MAX = 256 };
static const double momentum = 0.9, decay = 1e-4, smoothing = 0.1, eta = 0.01;

struct figures {
    double losses[STEPS];
    float *gradients; /* of the first step */
    float *statistics;
    float *logits_first, *logits_end;
    struct backend_loss infer_loss;
};

struct golden_case {
    const char *network;
    double floor; /* for gradients; a tenth of it for the result of ten steps */
};

static const struct golden_case cases[] = {
    {"tiny", 4e-3},
    {"pieces", 3e-5},
    {"resnet50", 1e-2},
};

/* What tiny and resnet50 lack: LRN, groups, biases, concatenation, non-square windows, average
 * pools with and without padding in the count, a hidden layer. */
static struct graph *build_pieces(uint32_t side, uint32_t classes)
{
    struct graph *graph = graph_create((struct graph_shape){3, side, side}, classes);
    struct kernel_window flat = {
        .height = 1, .width = 3, .stride = 1, .pad_left = 1, .pad_right = 1};
    struct kernel_window whole = graph_square(3, 1, 1);

    whole.count_padding = true;
    uint32_t x =
        graph_relu(graph, graph_convolution(graph, "conv1", 0, 8, graph_square(5, 2, 2), 1, true));
    x = graph_max_pool(graph, graph_lrn(graph, x, 5, 0.5, 0.75, 1), graph_square(3, 2, 0));
    x = graph_relu(graph, graph_convolution(graph, "conv2", x, 12, graph_square(3, 1, 1), 2, true));
    uint32_t a =
        graph_relu(graph, graph_convolution(graph, "one", x, 6, graph_square(1, 1, 0), 1, true));
    uint32_t b = graph_relu(graph, graph_convolution(graph, "flat", x, 5, flat, 1, true));
    uint32_t c = graph_average_pool(graph, x, graph_square(3, 1, 1));
    c = graph_convolution(graph, "pooled", c, 4, graph_square(1, 1, 0), 1, false);
    uint32_t d = graph_average_pool(graph, x, whole);
    x = graph_concat(graph, (uint32_t[]){a, b, c, d}, 4);
    x = graph_relu(graph, graph_batch_norm(graph, "bn", x, false));
    x = graph_max_pool(graph, x, graph_square(3, 2, 1));
    x = graph_relu(graph, graph_fully_connected(graph, "hidden", graph_dropout(graph, x, 0), 16));
    graph_fully_connected(graph, "logits", x, classes);
    assert_int_equal(graph_seal(graph), 0);
    return graph;
}

static double rate_of(double rate, int step)
{
    return rate * (1 + step % 3);
}

static void infer(struct lesson *training, float *logits, struct backend_loss *loss)
{
    lesson_batch(training, 0);
    if (backend_infer(&training->backend, &training->batch, logits, loss))
        fail_msg("infer: %s", fail_reason());
}

static void run(const char *backend, struct graph *graph, uint32_t count,
                enum backend_recipe recipe, double rate, struct figures *figures)
{
    struct lesson training;

    lesson_start(&training, backend, graph, count, 1, 1);
    lesson_load(&training);
    for (int step = 0; step < STEPS; step++) {
        lesson_batch(&training, (uint64_t)step);
        figures->losses[step] = lesson_step(&training, smoothing).loss;
        if (step == 0 && recipe == BACKEND_SGD) {
            backend_save(&training.backend, NULL, NULL, NULL, figures->gradients);
            infer(&training, figures->logits_first, NULL);
        }
        lesson_update(&training, &(struct kernel_update){
                                     .adapts = recipe == BACKEND_LARS,
                                     .rate = rate_of(rate, step),
                                     .rate_before = step ? rate_of(rate, step - 1) : 0,
                                     .momentum = momentum,
                                     .decay = decay,
                                     .eta = eta,
                                     .gradient_scale = 1,
                                 });
    }
    if (recipe == BACKEND_SGD) {
        infer(&training, figures->logits_end, &figures->infer_loss);
        backend_save(&training.backend, NULL, NULL, figures->statistics, NULL);
        struct kernel_loss loss = kernel_cross_entropy(count, graph->classes, figures->logits_end,
                                                       training.labels, 0, NULL);
        assert_true(fabs(loss.loss - figures->infer_loss.loss) < 1e-5 * (1 + loss.loss));
        assert_int_equal(loss.correct, figures->infer_loss.correct);
        assert_int_equal(loss.correct_top5, figures->infer_loss.correct_top5);
        assert_int_equal(loss.counted, figures->infer_loss.counted);
    }
    lesson_end(&training);
}

/* ---- comparing ---- */

struct line {
    char what[16], name[64];
    double distance;
    double values[VALUES_MAX];
    size_t count;
    uint64_t number; /* within its case */
};

struct compared {
    const char *backend;
    const struct golden_case *of;
    const struct line *line;
};

static void compare(const struct compared *compared, const char *part, double ours, double right,
                    double allowed)
{
    if (!(fabs(ours - right) <= allowed))
        fail_msg("%s, %s: %s %s: %s is %.9g, PyTorch has %.9g, allowed distance %.2g",
                 compared->backend, compared->of->network, compared->line->what,
                 compared->line->name, part, ours, right, allowed);
}

/* Norm, projection and samples of a tensor. An error vector of norm e in any direction changes the
 * projection on a vector of random entries of deviation 1 by about e, and an element by about e /
 * sqrt(count). */
static void compare_tensor(const struct compared *compared, const float *ours, uint64_t count,
                           double floor)
{
    const struct line *line = compared->line;
    const double error = (floor + 4 * line->distance) * line->values[0];
    const uint64_t projections = lesson_key(TRAINING_PROJECTIONS, line->number);
    const uint64_t places = lesson_key(TRAINING_PLACES, line->number);
    double squares = 0, projection = 0;

    assert_int_equal(line->count, 2 + SAMPLES);
    for (uint64_t i = 0; i < count; i++) {
        squares += (double)ours[i] * ours[i];
        projection += ours[i] * lesson_spread(projections, i);
    }
    compare(compared, "the norm", sqrt(squares), line->values[0], error);
    compare(compared, "the projection", projection, line->values[1], 4 * error);
    for (int i = 0; i < SAMPLES; i++) {
        uint64_t at = lesson_bits(places, (uint64_t)i) % count;
        compare(compared, "a sample", ours[at], line->values[2 + i],
                8 * error / sqrt((double)count));
    }
}

static void compare_gradient(const struct compared *compared, const struct graph *graph,
                             const float *gradients)
{
    for (uint32_t i = 0; i < graph->parameter_count; i++) {
        const struct graph_parameter *parameter = &graph->parameters[i];
        if (strcmp(parameter->name, compared->line->name) == 0) {
            compare_tensor(compared, gradients + parameter->offset, parameter->count,
                           compared->of->floor);
            return;
        }
    }
    fail_msg("%s has no parameter %s", compared->of->network, compared->line->name);
}

static void compare_statistics(const struct compared *compared, const struct graph *graph,
                               const float *statistics)
{
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct graph_node *node = &graph->nodes[i];
        if (node->kind != GRAPH_BATCH_NORM)
            continue;
        if (strcmp(node->name, compared->line->name) == 0) {
            bool mean = strcmp(compared->line->what, "mean") == 0;
            compare_tensor(compared, statistics + (mean ? 0 : node->shape.channels),
                           node->shape.channels, compared->of->floor / 10);
            return;
        }
        statistics += 2 * (size_t)node->shape.channels;
    }
    fail_msg("%s has no BN %s", compared->of->network, compared->line->name);
}

static void compare_logits(const struct compared *compared, const float *ours, double floor)
{
    const struct line *line = compared->line;
    double squares = 0, right = 0;

    for (size_t i = 0; i < line->count; i++) {
        squares += (ours[i] - line->values[i]) * (ours[i] - line->values[i]);
        right += line->values[i] * line->values[i];
    }
    compare(compared, "the distance", sqrt(squares / right), 0, floor + 4 * line->distance);
}

static void compare_line(const struct compared *compared, const struct graph *graph,
                         const struct figures *sgd, const struct figures *lars)
{
    const struct line *line = compared->line;

    if (strcmp(line->what, "gradient") == 0) {
        compare_gradient(compared, graph, sgd->gradients);
    } else if (strcmp(line->what, "mean") == 0 || strcmp(line->what, "variance") == 0) {
        compare_statistics(compared, graph, sgd->statistics);
    } else if (strcmp(line->what, "infer") == 0) {
        /* No gradient has changed the first step: rounding only. */
        if (strcmp(line->name, "step0") == 0)
            compare_logits(compared, sgd->logits_first, 5e-6);
        else
            compare_logits(compared, sgd->logits_end, compared->of->floor / 10);
    } else {
        const struct figures *figures = line->name[0] == 's' ? sgd : lars;
        int step = line->name[strlen(line->name) - 1] - '0';
        const double floor = step == 0 ? 5e-6 : compared->of->floor / 10;
        assert_string_equal(line->what, "loss");
        compare(compared, "the loss", figures->losses[step], line->values[0],
                (floor + 4 * line->distance) * line->values[0]);
    }
}

/* ---- the file ---- */

static FILE *open_golden(void)
{
    const char *srcdir = getenv("srcdir");
    char path[512];

    snprintf(path, sizeof path, "%s/tests/golden/trainer.golden", srcdir ? srcdir : ".");
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    return file;
}

static bool next_line(FILE *file, struct line *line)
{
    static char text[8192];
    char *save = NULL;

    do {
        if (!fgets(text, sizeof text, file))
            return false;
    } while (text[0] == '#');
    snprintf(line->what, sizeof line->what, "%s", strtok_r(text, " \n", &save));
    snprintf(line->name, sizeof line->name, "%s", strtok_r(NULL, " \n", &save));
    line->distance = strtod(strtok_r(NULL, " \n", &save), NULL);
    line->count = 0;
    for (char *word; (word = strtok_r(NULL, " \n", &save)); line->count++) {
        assert_true(line->count < VALUES_MAX);
        line->values[line->count] = strtod(word, NULL);
    }
    line->number = strcmp(line->what, "network") == 0 ? 0 : line->number + 1;
    return true;
}

static void check_case(const char *backend, const struct golden_case *of)
{
    FILE *file = open_golden();
    struct line line = {0};
    uint32_t compared_count = 0;

    do
        assert_true(next_line(file, &line));
    while (strcmp(line.what, "network") != 0 || strcmp(line.name, of->network) != 0);
    assert_int_equal(line.count, 5);
    const uint32_t count = (uint32_t)line.values[0], side = (uint32_t)line.values[1];
    const uint32_t classes = (uint32_t)line.values[2];
    const double sgd_rate = line.values[3], lars_rate = line.values[4];
    struct graph *graph = strcmp(of->network, "pieces") == 0
                              ? build_pieces(side, classes)
                              : lesson_graph(of->network, side, classes);
    struct figures sgd = {.gradients = calloc(graph->parameter_floats, sizeof(float)),
                          .statistics = calloc(graph->statistic_floats, sizeof(float)),
                          .logits_first = calloc((size_t)count * classes, sizeof(float)),
                          .logits_end = calloc((size_t)count * classes, sizeof(float))};
    struct figures lars = {0};
    run(backend, graph, count, BACKEND_SGD, sgd_rate, &sgd);
    if (lars_rate > 0)
        run(backend, graph, count, BACKEND_LARS, lars_rate, &lars);
    line.number = UINT64_MAX; /* the next line is number 0 */
    while (next_line(file, &line) && strcmp(line.what, "network") != 0) {
        compare_line(&(struct compared){backend, of, &line}, graph, &sgd, &lars);
        compared_count++;
    }
    assert_true(compared_count >= graph->parameter_count + STEPS);
    fclose(file);
    free(sgd.gradients);
    free(sgd.statistics);
    free(sgd.logits_first);
    free(sgd.logits_end);
    graph_destroy(graph);
}

static void check_everywhere(const struct golden_case *of, bool with_reference)
{
    for (const struct plugin *const *plugin = backend_registry; *plugin; plugin++) {
        if (plugin_usable(*plugin)) {
            print_message("%s: not on this machine: %s\n", (*plugin)->name, fail_reason());
            continue;
        }
        if (!with_reference && strcmp((*plugin)->name, "reference") == 0)
            print_message("reference: set IOBENCH_LONG=1 for %s\n", of->network);
        else
            check_case((*plugin)->name, of);
    }
}

static void pieces_are_as_in_pytorch(void **unused)
{
    check_everywhere(&cases[1], true);
}

static void tiny_is_as_in_pytorch(void **unused)
{
    check_everywhere(&cases[0], getenv("IOBENCH_LONG") != NULL);
}

static void resnet50_is_as_in_pytorch(void **unused)
{
    check_everywhere(&cases[2], getenv("IOBENCH_LONG") != NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_as_in_pytorch),
        cmocka_unit_test(tiny_is_as_in_pytorch),
        cmocka_unit_test(resnet50_is_as_in_pytorch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
