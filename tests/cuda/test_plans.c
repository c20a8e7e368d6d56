/* SPDX-License-Identifier: Apache-2.0
 *
 * Networks compiled for an A100 and an H200 that are only described: cuDNN has an engine for each
 * of their layers in each precision, forward and backward; the plans come back from their file; and
 * a ResNet-50 of batch 1024 fits. IOBENCH_LONG=1: every network of the zoo.
 */
#include "tests/unit/folder.h"
#include "tests/unit/unit.h"

#include "base/fail.h"
#include "trainer/cuda/cuda.h"

#include <stdlib.h>

static struct cuda_settings settings = {.deterministic = true};

/* Pointers that nobody follows: nothing is computed. */
static void *const somewhere = (void *)4096;

static void model_make(struct cuda_model *model, struct dnn *dnn, const struct graph *graph,
                       int precision)
{
    static const enum device_type types[] = {DEVICE_FP32, DEVICE_FP32, DEVICE_FP16, DEVICE_BF16};

    settings.precision = precision;
    *model = (struct cuda_model){.graph = graph,
                                 .settings = &settings,
                                 .dnn = dnn,
                                 .type = types[precision],
                                 .image_channels = types[precision] == DEVICE_FP32 ? 4 : 8,
                                 .parameters = somewhere,
                                 .gradients = somewhere,
                                 .header = somewhere};
    model->statistic_offsets = calloc(graph->node_count, sizeof(uint64_t));
    model->compute = calloc(graph->parameter_count, sizeof(void *));
    assert_true(model->statistic_offsets && model->compute);
}

static void model_unmake(struct cuda_model *model)
{
    free(model->statistic_offsets);
    free(model->compute);
}

static struct dnn *open_for(uint32_t capability, const char *file)
{
    struct dnn *dnn;

    if (dnn_open(&dnn,
                 &(struct dnn_site){.described = capability, .deterministic = true, .plans = file}))
        fail_msg("%s", fail_reason());
    return dnn;
}

/* Layers that cuDNN computes; every one of them must be. */
static uint32_t compile(struct dnn *dnn, const struct network *network, int precision,
                        uint32_t batch, uint64_t *arena_bytes)
{
    struct graph *graph = network->build(network->side, network->classes);
    struct cuda_model model;
    uint32_t found = 0;

    assert_non_null(graph);
    model_make(&model, dnn, graph, precision);
    struct cuda_plan *plan = cuda_plan_create(&model, batch, true);
    if (!plan)
        fail_msg("%s: %s", network->name, fail_reason());
    for (uint32_t i = 0; i < plan->step_count; i++) {
        const struct cuda_step *step = &plan->steps[i];
        if (step->shape.window.images == 0)
            continue;
        if (!step->dnn)
            fail_msg("%s: no engine for %s, kind %d", network->name, graph->nodes[step->node].name,
                     (int)step->shape.kind);
        assert_true(dnn_candidates(step->dnn) > 0);
        found++;
    }
    if (arena_bytes)
        *arena_bytes = plan->arena_bytes;
    cuda_plan_destroy(plan);
    model_unmake(&model);
    graph_destroy(graph);
    return found;
}

static void every_layer_has_an_engine(void **unused)
{
    static const uint32_t capabilities[] = {80, 90};

    (void)unused;
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

static void resnet50_has_engines_and_room(void **unused)
{
    struct dnn *dnn = open_for(90, NULL);
    const struct network *network = network_find("resnet50");
    uint64_t bytes = 0;

    (void)unused;
    /* 53 convolutions and the classifier: forward, weights, and all but the first one's data. */
    for (int precision = CUDA_FP32; precision <= CUDA_BF16; precision++)
        if (precision == CUDA_FP16 || getenv("IOBENCH_LONG"))
            assert_int_equal(compile(dnn, network, precision, 1024, &bytes), 54 * 3 - 1);
    print_message("resnet50, batch 1024: %.1f GB of activations and gradients\n",
                  (double)bytes * 1e-9);
    assert_true(bytes < 110000000000);
    dnn_close(dnn);
}

static void plans_come_back_from_their_file(void **unused)
{
    const char *file = folder_path("plans.json");

    (void)unused;
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

    /* What is damaged is made anew. */
    FILE *stream = fopen(file, "w");
    assert_non_null(stream);
    fputs("{\"x\": ", stream);
    fclose(stream);
    dnn = open_for(90, file);
    assert_int_equal(compile(dnn, network_find("tiny"), CUDA_FP16, 32, NULL), layers);
    dnn_close(dnn);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_layer_has_an_engine),
        cmocka_unit_test(resnet50_has_engines_and_room),
        cmocka_unit_test(plans_come_back_from_their_file),
    };

    return cmocka_run_group_tests(tests, folder_setup, folder_teardown);
}
