/* SPDX-License-Identifier: Apache-2.0
 *
 * What cuDNN fuses with the convolutions of ResNet-50 in FP16 on a described A100 and H200:
 * everything that is asked for, except what is listed here.
 */
#include "tests/unit/unit.h"

#include "base/fail.h"
#include "trainer/cuda/model.h"

#include <errno.h>
#include <string.h>

/* NVIDIA's libraries keep memory to the end; see test_plans.c. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
    return 1;
}

enum { BATCH = 64, SHAPES_MAX = 64 };

/* The distinct convolutions of the network; the image has 4 channels. */
static uint32_t convolutions(struct kernel_window *shapes)
{
    struct graph *graph = network_build(network_find("resnet50"), 224, 1000);
    struct cuda_model model = {.graph = graph, .type = DEVICE_FP16};
    uint32_t count = 0;

    assert_non_null(graph);
    for (uint32_t i = 0; i < graph->node_count; i++) {
        if (graph->nodes[i].kind != GRAPH_CONVOLUTION)
            continue;
        assert_true(count < SHAPES_MAX);
        shapes[count] = cuda_window(&model, BATCH, i);
        uint32_t same = 0;
        while (memcmp(&shapes[same], &shapes[count], sizeof *shapes) != 0)
            same++;
        count += same == count;
    }
    graph_destroy(graph);
    return count;
}

static bool accepts(struct dnn *dnn, enum dnn_kind kind, const struct kernel_window *window,
                    uint32_t fusion)
{
    int code = 0;
    const struct dnn_plan *plan = dnn_find(
        dnn,
        &(struct dnn_shape){.kind = kind, .type = DEVICE_FP16, .window = *window, .fusion = fusion},
        &code);

    if (!plan && code != -ENOTSUP)
        fail_msg("%s", fail_reason());
    return plan != NULL;
}

/* What is asked of which convolutions. A sum before the ReLU is for 1 x 1 of stride 1, where
 * ResNet-50 has it; in the convolution itself cuDNN has it from Hopper on: the engines for an A100
 * take no second tensor there (matcher->hasAdd()), the others are for sm_90
 * (CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH) or keep nothing that the convolution takes. */
static const struct form {
    enum dnn_kind kind;
    uint32_t fusion;
    bool single; /* windows of 1 x 1 and stride 1 only */
    uint32_t since;
} forms[] = {
    {DNN_FORWARD, DNN_STATISTICS, false, 80},
    {DNN_FORWARD, DNN_PROLOGUE | DNN_STATISTICS, false, 80},
    {DNN_FORWARD, DNN_PROLOGUE | DNN_STATISTICS | DNN_SUMMED, true, 90},
    {DNN_FORWARD, DNN_PROLOGUE | DNN_STATISTICS | DNN_SUMMED | DNN_DUAL, true, 90},
    {DNN_WEIGHT, DNN_PROLOGUE, false, 80},
    {DNN_DATA, DNN_NORM, false, 80},
    {DNN_DATA, DNN_NORM | DNN_ADDED, true, 80},
    {DNN_DATA, DNN_NORM | DNN_ADDED | DNN_SUMMED, true, 80},
    {DNN_DATA, DNN_NORM | DNN_SUMMED | DNN_DUAL, true, 80},
    {DNN_DATA, DNN_NORM | DNN_ADDED | DNN_SUMMED | DNN_DUAL, true, 80},
};

/* Known: the stem, with 4 channels and a window of 7, fuses backward on an A100 only, which is
 * never asked for. */
static void fuse_as_known(struct dnn *dnn, uint32_t capability, const struct form *form,
                          const struct kernel_window *w)
{
    const bool stem = w->in_channels == CUDA_IMAGE_CHANNELS,
               wanted = !stem && capability >= form->since;

    if ((stem && form->kind != DNN_FORWARD) || (form->single && (w->height > 1 || w->stride > 1)))
        return;
    if (accepts(dnn, form->kind, w, form->fusion) != wanted)
        fail_msg("sm_%u: %u x %u / %u in %u channels of %u x %u: kind %d, fusion %u is %s",
                 capability, w->height, w->width, w->stride, w->in_channels, w->in_height,
                 w->in_width, (int)form->kind, form->fusion, wanted ? "refused" : "taken");
}

static void resnet50_layers_fuse(void **unused)
{
    struct kernel_window shapes[SHAPES_MAX];
    const uint32_t count = convolutions(shapes);

    assert_int_equal(count, 23);
    for (uint32_t capability = 80; capability <= 90; capability += 10) {
        struct dnn *dnn;
        if (dnn_open(&dnn, &(struct dnn_config){
                               .described = capability, .deterministic = true, .tournament = 1}))
            fail_msg("%s", fail_reason());
        for (uint32_t i = 0; i < count; i++)
            for (size_t j = 0; j < sizeof forms / sizeof *forms; j++)
                fuse_as_known(dnn, capability, &forms[j], &shapes[i]);
        dnn_close(dnn);
    }
}

/* BN is fused in FP16 only. */
static void other_types_are_refused(void **unused)
{
    static const enum device_type types[] = {DEVICE_FP32, DEVICE_BF16};
    struct kernel_window shapes[SHAPES_MAX];
    struct dnn *dnn;
    int code;

    convolutions(shapes);
    assert_int_equal(dnn_open(&dnn, &(struct dnn_config){.described = 90, .tournament = 1}), 0);
    for (int i = 0; i < 2; i++) {
        assert_null(dnn_find(dnn,
                             &(struct dnn_shape){.kind = DNN_FORWARD,
                                                 .type = types[i],
                                                 .window = shapes[1],
                                                 .fusion = DNN_STATISTICS},
                             &code));
        assert_int_equal(code, -ENOTSUP);
    }
    dnn_close(dnn);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resnet50_layers_fuse),
        cmocka_unit_test(other_types_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
