/* SPDX-License-Identifier: Apache-2.0
 *
 * Networks compiled for a described A100 and H200: cuDNN has an engine for each of their layers in
 * each precision, forward and backward; plans are read back from their file; and ResNet-50 fits
 * with a batch of 1024, and has the same plans on an H100. IOBENCH_LONG=1: every network of the
 * zoo, and ResNet-50 with smaller batches, too.
 */
#include "tests/unit/folder.h"
#include "tests/unit/unit.h"

#include "base/fail.h"
#include "trainer/cuda/program.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* NVIDIA's libraries keep memory until exit, some of it for modules that are unloaded by then, so
 * the leak sanitizer cannot suppress them by name. Leaks of trainer/cuda itself are found by the
 * emulated tests. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
    return 1;
}

extern const struct backend_ops iobench_backend_cuda;
static struct cuda_settings settings = {.deterministic = true};

static void model_make(struct cuda_model *model, struct dnn *dnn, const struct graph *graph,
                       int precision, const float *ranges)
{
    settings.precision = precision;
    *model = (struct cuda_model){.dnn = dnn, .outlined = true};
    assert_int_equal(cuda_model_open(model, &settings,
                                     &(struct backend_config){
                                         .graph = graph, .training = true, .ranges = ranges}),
                     0);
}

static struct dnn *open_for(uint32_t capability, const char *file)
{
    struct dnn *dnn;

    if (dnn_open(&dnn, &(struct dnn_config){.described = capability,
                                            .deterministic = true,
                                            .tournament = 1,
                                            .plans = file}))
        fail_msg("%s", fail_reason());
    return dnn;
}

/* Fused steps of the last network, by kind. */
static struct {
    uint32_t statistics, prologue, sum, dual, weight, back, back_sum, back_dual;
} fused;

static void count_fused(const struct cuda_step *step)
{
    const struct dnn_shape *shape = &step->convolution.shape;

    fused.statistics += (shape->fusion & DNN_STATISTICS) != 0;
    fused.prologue += shape->kind == DNN_FORWARD && shape->fusion & DNN_PROLOGUE;
    fused.sum += shape->kind == DNN_FORWARD && shape->fusion & DNN_SUMMED;
    fused.dual += shape->kind == DNN_FORWARD && shape->fusion & DNN_DUAL;
    fused.weight += shape->kind == DNN_WEIGHT && shape->fusion & DNN_PROLOGUE;
    fused.back += (shape->fusion & DNN_NORM) != 0;
    fused.back_sum += shape->kind == DNN_DATA && shape->fusion & DNN_SUMMED;
    fused.back_dual += shape->kind == DNN_DATA && shape->fusion & DNN_DUAL;
}

/* Everything that is stored is read. */
static void nothing_is_in_vain(const struct cuda_program *program, const struct graph *graph)
{
    for (uint32_t i = 0; i < program->buffer_count; i++) {
        const struct lifetime *life = &program->buffers[i];
        if (life->first == life->last)
            fail_msg("what step %u, %s, stores is not read", life->first,
                     graph->nodes[program->steps[life->first].node].name);
    }
}

/* Compiles a network; cuDNN must compute all of its layers. Returns how many. */
static uint32_t compile(struct dnn *dnn, const struct network *network, int precision,
                        uint32_t batch, uint64_t *arena_bytes)
{
    struct graph *graph = network_build(network, network->side, network->classes);
    struct cuda_model model;
    uint32_t found = 0;

    memset(&fused, 0, sizeof fused);
    assert_non_null(graph);
    model_make(&model, dnn, graph, precision, NULL);
    struct cuda_program *program = cuda_compile(&model, batch, true);
    if (!program)
        fail_msg("%s: %s", network->name, fail_reason());
    for (uint32_t i = 0; i < program->step_count; i++) {
        const struct cuda_step *step = &program->steps[i];
        if (!cuda_step_convolves(step))
            continue;
        if (!step->convolution.plan)
            fail_msg("%s: no engine for %s, kind %d", network->name, graph->nodes[step->node].name,
                     (int)step->convolution.shape.kind);
        assert_true(step->convolution.plan->candidates > 0);
        count_fused(step);
        found++;
    }
    nothing_is_in_vain(program, graph);
    if (arena_bytes)
        *arena_bytes = program->arena_bytes;
    cuda_program_destroy(program);
    cuda_model_close(&model);
    graph_destroy(graph);
    return found;
}

static void every_layer_has_an_engine(void **unused)
{
    static const uint32_t capabilities[] = {80, 90};

    for (int i = 0; i < 2; i++) {
        struct dnn *dnn = open_for(capabilities[i], NULL);
        for (int j = 0; network_registry[j]; j++) {
            const bool small = network_registry[j]->side <= 64;
            if (!small && !getenv("IOBENCH_LONG"))
                continue;
            assert_true(compile(dnn, network_registry[j], CUDA_FP16, 64, NULL) > 0);
            compile(dnn, network_registry[j], CUDA_FP32, 64, NULL);
            compile(dnn, network_registry[j], CUDA_TF32, 64, NULL);
            compile(dnn, network_registry[j], CUDA_BF16, 64, NULL);
        }
        dnn_close(dnn);
    }
}

/* In FP16. 53 convolutions and the classifier: forward, weight gradient, and all input gradients
 * but the first. */
static void plan_resnet50(struct dnn *dnn, uint32_t batch, uint64_t *bytes)
{
    assert_int_equal(compile(dnn, network_find("resnet50"), CUDA_FP16, batch, bytes), 54 * 3 - 1);
    /* All but the stem, and what follows the last sum. */
    assert_int_equal(fused.statistics, 52);
    assert_int_equal(fused.prologue, 32 + 15);
    assert_int_equal(fused.sum, 15);
    assert_int_equal(fused.dual, 4);
    assert_int_equal(fused.weight, 32);
    assert_int_equal(fused.back, 32 + 15);
    assert_int_equal(fused.back_sum, 15);
    assert_int_equal(fused.back_dual, 4);
}

static void resnet50_has_engines_and_room(void **unused)
{
    struct dnn *dnn = open_for(90, NULL);
    const struct network *network = network_find("resnet50");
    uint64_t bytes = 0;

    for (int precision = CUDA_FP32; precision <= CUDA_BF16; precision++)
        if (precision != CUDA_FP16 && getenv("IOBENCH_LONG"))
            assert_int_equal(compile(dnn, network, precision, 1024, NULL), 54 * 3 - 1);
    for (uint32_t batch = getenv("IOBENCH_LONG") ? 256 : 1024; batch <= 1024; batch *= 2)
        plan_resnet50(dnn, batch, &bytes);
    print_message("resnet50, batch 1024: %.1f GB of activations and gradients\n",
                  (double)bytes * 1e-9);
    assert_true(bytes < 110000000000);
    dnn_close(dnn);
}

static void an_h100_has_the_same_engines(void **unused)
{
    struct dnn *dnn;

    if (dnn_open(&dnn, &(struct dnn_config){.described = 90,
                                            .described_part = "H100",
                                            .deterministic = true,
                                            .tournament = 1}))
        fail_msg("%s", fail_reason());
    for (uint32_t batch = 256; batch <= 1024; batch *= 2)
        if (batch == 256 || getenv("IOBENCH_LONG"))
            plan_resnet50(dnn, batch, NULL);
    dnn_close(dnn);
}

/* On an A100 the engines that go back into a BN take a workspace of twice the tensor that they
 * save: they are used only when asked for. */
static void fusions_that_save_nothing_are_left_out(void **unused)
{
    struct dnn *dnn = open_for(80, NULL);
    const struct network *network = network_find("resnet50");

    compile(dnn, network, CUDA_FP16, 256, NULL);
    assert_int_equal(fused.statistics, 52);
    assert_int_equal(fused.prologue, 32);
    assert_int_equal(fused.back, 0);
    settings.fusion = CUDA_FUSE_ALL;
    compile(dnn, network, CUDA_FP16, 256, NULL);
    assert_int_equal(fused.back, 32 + 15);
    settings.fusion = CUDA_FUSE_AUTO;
    dnn_close(dnn);
}

/* Bytes that the steps of one image move. */
static double traffic(const struct graph *graph, uint32_t capability, int fusion, double *flops)
{
    enum { IMAGES = 64 };
    const struct schedule_request request = {
        .graph = graph, .batch_size = IMAGES, .training = true, .device = capability};
    struct schedule schedule = {0};
    double bytes = 0;

    settings.precision = CUDA_FP16;
    settings.fusion = fusion;
    if (iobench_backend_cuda.schedule(&settings, &request, &schedule))
        fail_msg("%s", fail_reason());
    *flops = 0;
    for (uint32_t i = 0; i < schedule.count; i++) {
        const struct schedule_step *step = &schedule.steps[i];
        assert_true(step->operation && step->engine[0] && step->read_bytes > 0);
        *flops += step->flops / IMAGES;
        if (step->phase != SCHEDULE_UPDATE)
            bytes += (double)(step->read_bytes + step->write_bytes) / IMAGES;
    }
    schedule_free(&schedule);
    settings.fusion = CUDA_FUSE_AUTO;
    return bytes;
}

/* ResNet-50 on an H200: what fusion saves in memory traffic, as counted by hand in docs/gpu.md. */
static void a_schedule_counts_what_is_moved(void **unused)
{
    struct graph *graph = network_build(network_find("resnet50"), 224, 1000);
    double flops, same;
    const double fused_bytes = traffic(graph, 90, CUDA_FUSE_AUTO, &flops);
    const double unfused_bytes = traffic(graph, 90, CUDA_FUSE_NONE, &same);

    print_message("resnet50, an image: %.1f MB, unfused %.1f MB, %.2f GFLOP\n", fused_bytes * 1e-6,
                  unfused_bytes * 1e-6, flops * 1e-9);
    assert_true(flops == same && flops == 2 * (double)graph_cost(graph).training_macs);
    assert_true(fused_bytes > 255e6 && fused_bytes < 272e6);
    assert_true(unfused_bytes > 335e6 && unfused_bytes < 349e6);
    assert_true(traffic(graph, 80, CUDA_FUSE_AUTO, &same) > fused_bytes);
    graph_destroy(graph);
}

static void nothing_is_fused_unasked(void **unused)
{
    struct dnn *dnn = open_for(90, NULL);

    settings.fusion = CUDA_FUSE_NONE;
    compile(dnn, network_find("tiny"), CUDA_FP16, 32, NULL);
    assert_int_equal(fused.statistics + fused.prologue + fused.weight + fused.back, 0);
    settings.fusion = CUDA_FUSE_AUTO;
    dnn_close(dnn);
}

/* Inference in INT8: the convolutions with everything after them; the input is quantised once and
 * nothing in between is converted back. cuDNN compiles their engines on a device, so none is
 * expected here. */
static void int8_runs_through(void **unused)
{
    struct graph *graph = network_build(network_find("resnet50"), 224, 1000);
    struct dnn *dnn = open_for(90, NULL);
    float *ranges = calloc(graph->node_count, sizeof *ranges);
    uint32_t layers = 0, sums = 0, changes = 0;
    struct cuda_model model;

    for (uint32_t i = 0; i < graph->node_count; i++)
        ranges[i] = 1;
    model_make(&model, dnn, graph, CUDA_FP16, ranges);
    struct cuda_program *program = cuda_compile(&model, 64, false);
    if (!program)
        fail_msg("%s", fail_reason());
    for (uint32_t i = 0; i < program->step_count; i++) {
        const struct cuda_step *step = &program->steps[i];
        const bool int8 = step->kernel == &cuda_kernel_convolution_int8;
        layers += int8;
        sums += int8 && step->convolution.shape.fusion & DNN_RESCALED;
        changes += i > 0 && !int8 && step[-1].kernel == &cuda_kernel_convolution_int8;
    }
    assert_int_equal(layers, 52);
    assert_int_equal(sums, 16);
    assert_int_equal(changes, 1); /* from the last convolution to the pool */
    cuda_program_destroy(program);
    cuda_model_close(&model);
    free(ranges);
    graph_destroy(graph);
    dnn_close(dnn);
}

/* A max-pool after BN and ReLU is no part of a stem where those are in an INT8 convolution. */
static void int8_keeps_every_pool(void **unused)
{
    struct graph *graph = network_build(network_find("inception-v3"), 299, 1000);
    float *ranges = calloc(graph->node_count, sizeof *ranges);
    uint32_t pools = 0, computed = 0;
    struct cuda_model model;

    for (uint32_t i = 0; i < graph->node_count; i++) {
        ranges[i] = 1;
        pools +=
            graph->nodes[i].kind == GRAPH_MAX_POOL || graph->nodes[i].kind == GRAPH_AVERAGE_POOL;
    }
    model_make(&model, NULL, graph, CUDA_FP16, ranges);
    struct cuda_program *program = cuda_compile(&model, 8, false);
    if (!program)
        fail_msg("%s", fail_reason());
    for (uint32_t i = 0; i < program->step_count; i++) {
        const struct cuda_kernel *kernel = program->steps[i].kernel;
        computed += kernel == &cuda_kernel_max_pool || kernel == &cuda_kernel_average_pool ||
                    kernel == &cuda_kernel_stem;
    }
    assert_int_equal(computed, pools);
    cuda_program_destroy(program);
    cuda_model_close(&model);
    free(ranges);
    graph_destroy(graph);
}

static void plans_come_back_from_their_file(void **unused)
{
    const char *file = folder_path("plans.json");

    struct dnn *dnn = open_for(90, file);
    const uint32_t layers = compile(dnn, network_find("tiny"), CUDA_FP16, 32, NULL);
    assert_int_equal(dnn_keep(dnn), 0);
    dnn_close(dnn);
    assert_int_equal(access(file, R_OK), 0);

    dnn = open_for(90, file);
    assert_int_equal(compile(dnn, network_find("tiny"), CUDA_FP16, 32, NULL), layers);
    unlink(file);
    assert_int_equal(dnn_keep(dnn), 0); /* nothing is new, so nothing is written */
    assert_int_not_equal(access(file, R_OK), 0);
    compile(dnn, network_find("tiny"), CUDA_FP16, 33, NULL);
    assert_int_equal(dnn_keep(dnn), 0);
    assert_int_equal(access(file, R_OK), 0);
    dnn_close(dnn);

    unlink(file);
}

/* ---- files of others ---- */

static json_t *tiny_plans(const char *file)
{
    struct dnn *dnn = open_for(90, file);

    compile(dnn, network_find("tiny"), CUDA_FP16, 32, NULL);
    assert_int_equal(dnn_keep(dnn), 0);
    dnn_close(dnn);
    json_t *whole = json_load_file(file, 0, NULL);
    assert_true(json_object_size(json_object_get(whole, "plans")) > 3);
    return whole;
}

/* All layers still get plans, and the file is repaired. */
static void survive(const char *file, const json_t *whole, const char *what)
{
    assert_int_equal(json_dump_file(whole, file, 0), 0);
    json_t *renewed = tiny_plans(file);
    const char *key;
    json_t *row;
    json_object_foreach(json_object_get(renewed, "plans"), key, row)
    {
        if (!json_is_integer(json_object_get(row, "engine")) ||
            json_integer_value(json_object_get(row, "engine")) > 10000 ||
            !json_is_array(json_object_get(row, "knobs")))
            fail_msg("%s: %s is still as it was", what, key);
    }
    json_decref(renewed);
}

static void hostile_rows_cost_a_tournament(void **unused)
{
    static const char *const rows[] = {
        "{}",
        "[]",
        "7",
        "{\"engine\": 99999, \"knobs\": [], \"candidates\": 1}",
        "{\"engine\": -1, \"knobs\": [], \"candidates\": 1, \"milliseconds\": 1.0}",
        "{\"engine\": 1048577, \"knobs\": [], \"candidates\": 1, \"milliseconds\": 1.0}",
        "{\"engine\": \"0\", \"knobs\": [], \"candidates\": 1, \"milliseconds\": 1.0}",
        "{\"engine\": 0, \"knobs\": 3, \"candidates\": 1, \"milliseconds\": 1.0}",
        "{\"engine\": 0, \"knobs\": [[999, 1]], \"candidates\": 1, \"milliseconds\": 1.0}",
        "{\"engine\": 0, \"knobs\": [[2, 9223372036854775807]], \"candidates\": 1, "
        "\"milliseconds\": 1.0}",
        "{\"engine\": 0, \"knobs\": [[1, 2, 3]], \"candidates\": 1, \"milliseconds\": 1.0}",
        "{\"engine\": 0, \"knobs\": [], \"candidates\": 4000000000, \"milliseconds\": 1.0}",
        "{\"engine\": 0, \"knobs\": [], \"candidates\": 1, \"milliseconds\": -1.0}"};
    const char *file = folder_path("hostile.json");
    json_t *good = tiny_plans(file);

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *whole = json_deep_copy(good), *plans = json_object_get(whole, "plans");
        const char *key;
        json_t *row;
        void *next;
        json_object_foreach_safe(plans, next, key, row)
            json_object_set_new(plans, key, json_loads(rows[i], JSON_DECODE_ANY, NULL));
        survive(file, whole, rows[i]);
        json_decref(whole);
    }
    json_decref(good);
    unlink(file);
}

/* Each row has the engine and knobs of another layer: another engine, or none; the same layer. */
static void rows_of_other_layers_compute_the_same_layer(void **unused)
{
    const char *file = folder_path("hostile.json");
    json_t *whole = tiny_plans(file), *plans = json_object_get(whole, "plans");
    json_t *before = NULL, *row;
    const char *key;
    void *next;

    json_object_foreach_safe(plans, next, key, row)
    {
        json_t *mine = json_incref(row);
        if (before)
            json_object_set_new(plans, key, before);
        before = mine;
    }
    survive(file, whole, "rows of others");
    json_decref(before);
    json_decref(whole);
    unlink(file);
}

static void files_that_are_none_are_left_out(void **unused)
{
    static const char *const texts[] = {"",
                                        "{\"x\": ",
                                        "[1, 2]",
                                        "{\"version\": 1}",
                                        "{\"version\": 2, \"plans\": {}}",
                                        "{\"version\": 1, \"plans\": []}"};
    const char *file = folder_path("hostile.json");

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        FILE *stream = fopen(file, "w");
        assert_non_null(stream);
        fputs(texts[i], stream);
        fclose(stream);
        json_decref(tiny_plans(file));
    }
    unlink(file);
    /* A pipe without a writer does not block; a folder cannot be replaced. */
    assert_int_equal(mkfifo(file, 0600), 0);
    struct dnn *dnn = open_for(90, file);
    dnn_close(dnn);
    unlink(file);
    assert_int_equal(mkdir(file, 0700), 0);
    dnn = open_for(90, file);
    compile(dnn, network_find("tiny"), CUDA_FP16, 32, NULL);
    assert_int_equal(dnn_keep(dnn), -EIO);
    dnn_close(dnn);
    rmdir(file);
}

/* Two processes at once: neither loses what the other found. */
static void what_others_added_stays(void **unused)
{
    const char *file = folder_path("both.json");
    struct dnn *first = open_for(90, file), *second = open_for(90, file);

    compile(first, network_find("tiny"), CUDA_FP16, 32, NULL);
    compile(second, network_find("tiny"), CUDA_FP16, 16, NULL);
    assert_int_equal(dnn_keep(first), 0);
    assert_int_equal(dnn_keep(second), 0);
    dnn_close(first);
    dnn_close(second);
    second = open_for(90, file);
    compile(second, network_find("tiny"), CUDA_FP16, 32, NULL);
    unlink(file);
    assert_int_equal(dnn_keep(second), 0); /* nothing was new */
    assert_int_not_equal(access(file, R_OK), 0);
    dnn_close(second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_layer_has_an_engine),
        cmocka_unit_test(resnet50_has_engines_and_room),
        cmocka_unit_test(an_h100_has_the_same_engines),
        cmocka_unit_test(fusions_that_save_nothing_are_left_out),
        cmocka_unit_test(a_schedule_counts_what_is_moved),
        cmocka_unit_test(nothing_is_fused_unasked),
        cmocka_unit_test(int8_runs_through),
        cmocka_unit_test(int8_keeps_every_pool),
        cmocka_unit_test(plans_come_back_from_their_file),
        cmocka_unit_test(hostile_rows_cost_a_tournament),
        cmocka_unit_test(rows_of_other_layers_compute_the_same_layer),
        cmocka_unit_test(files_that_are_none_are_left_out),
        cmocka_unit_test(what_others_added_stays),
    };

    return cmocka_run_group_tests(tests, folder_setup, folder_teardown);
}
