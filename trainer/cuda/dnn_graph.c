/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/cuda/dnn_graph.h"

#include "base/fail.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TENSOR_ALIGNMENT = 16 };

int dnn_check(cudnnStatus_t status, const char *what)
{
    if (status == CUDNN_STATUS_SUCCESS)
        return 0;
    char more[256] = "";
    cudnnGetLastErrorString(more, sizeof more);
    /* The 3000s say: not supported. */
    return fail(status >= CUDNN_STATUS_NOT_SUPPORTED && status < 4000 ? ENOTSUP : EIO,
                "backend cuda: cuDNN: %s: %s %s", what, cudnnGetErrorString(status), more);
}

/* ---- descriptors ---- */

static cudnnBackendDescriptor_t begin(struct dnn_graph *graph, cudnnBackendDescriptorType_t type)
{
    cudnnBackendDescriptor_t made = NULL;

    if (graph->code)
        return NULL;
    assert(graph->part_count < sizeof graph->parts / sizeof *graph->parts);
    graph->code = dnn_check(cudnnBackendCreateDescriptor(type, &made), "make a descriptor");
    if (made)
        graph->parts[graph->part_count++] = made;
    return made;
}

static void set(struct dnn_graph *graph, cudnnBackendDescriptor_t descriptor,
                cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                const void *values)
{
    if (graph->code == 0)
        graph->code = dnn_check(cudnnBackendSetAttribute(descriptor, name, type, count, values),
                                "describe a convolution");
}

static void finish(struct dnn_graph *graph, cudnnBackendDescriptor_t descriptor)
{
    if (graph->code == 0)
        graph->code = dnn_check(cudnnBackendFinalize(descriptor), "describe a convolution");
}

static cudnnDataType_t data_type(enum device_type type)
{
    switch (type) {
    case DEVICE_FP16:
        return CUDNN_DATA_HALF;
    case DEVICE_BF16:
        return CUDNN_DATA_BFLOAT16;
    case DEVICE_FP32:
        break;
    }
    return CUDNN_DATA_FLOAT;
}

/* Dimensions in the order N, C, H, W; memory as NHWC. */
static cudnnBackendDescriptor_t tensor(struct dnn_graph *graph, enum dnn_uid uid,
                                       cudnnDataType_t type, const int64_t dims[4])
{
    const int64_t strides[] = {dims[1] * dims[2] * dims[3], 1, dims[1] * dims[3], dims[1]};
    const int64_t id = uid, alignment = TENSOR_ALIGNMENT;
    cudnnBackendDescriptor_t made = begin(graph, CUDNN_BACKEND_TENSOR_DESCRIPTOR);

    set(graph, made, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    set(graph, made, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dims);
    set(graph, made, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides);
    set(graph, made, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
    set(graph, made, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    finish(graph, made);
    return made;
}

/* What is padded behind the input, as the output's size has it; below zero it is input that no
 * window reaches. */
static int64_t behind(uint32_t in, uint32_t out, uint32_t window, uint32_t stride, uint32_t before)
{
    const int64_t needed = ((int64_t)out - 1) * stride + window - in - before;

    return needed > 0 ? needed : 0;
}

static cudnnBackendDescriptor_t convolution(struct dnn_graph *graph,
                                            const struct kernel_window *window)
{
    const cudnnDataType_t compute = CUDNN_DATA_FLOAT;
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    const int64_t dimensions = 2, ones[] = {1, 1};
    const int64_t strides[] = {window->stride, window->stride};
    const int64_t before[] = {window->pad_top, window->pad_left};
    const int64_t after[] = {behind(window->in_height, window->out_height, window->height,
                                    window->stride, window->pad_top),
                             behind(window->in_width, window->out_width, window->width,
                                    window->stride, window->pad_left)};
    cudnnBackendDescriptor_t made = begin(graph, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);

    set(graph, made, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &dimensions);
    set(graph, made, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute);
    set(graph, made, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    set(graph, made, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, before);
    set(graph, made, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, after);
    set(graph, made, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, ones);
    set(graph, made, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, strides);
    finish(graph, made);
    return made;
}

/* ---- operations ---- */

/* The attributes of the three kinds are called alike, and numbered differently. */
static const struct operation_kind {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t alpha, beta, convolution, input, weight, output;
} kinds[] = {
    [DNN_FORWARD] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
    [DNN_DATA] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY},
    [DNN_WEIGHT] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY},
};

static cudnnBackendDescriptor_t operation(struct dnn_graph *graph, const struct dnn_shape *shape,
                                          cudnnBackendDescriptor_t output)
{
    const struct kernel_window *window = &shape->window;
    const struct operation_kind *kind = &kinds[shape->kind];
    const cudnnDataType_t type = data_type(shape->type);
    const int64_t input_dims[] = {window->images, window->in_channels, window->in_height,
                                  window->in_width};
    const int64_t weight_dims[] = {window->out_channels, window->in_channels / window->groups,
                                   window->height, window->width};
    const float one = 1, zero = 0;
    cudnnBackendDescriptor_t input = tensor(graph, DNN_INPUT, type, input_dims);
    cudnnBackendDescriptor_t weight = tensor(graph, DNN_WEIGHTS, type, weight_dims);
    cudnnBackendDescriptor_t form = convolution(graph, window);
    cudnnBackendDescriptor_t made = begin(graph, kind->type);

    set(graph, made, kind->input, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &input);
    set(graph, made, kind->weight, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &weight);
    set(graph, made, kind->output, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &output);
    set(graph, made, kind->convolution, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &form);
    set(graph, made, kind->alpha, CUDNN_TYPE_FLOAT, 1, &one);
    set(graph, made, kind->beta, CUDNN_TYPE_FLOAT, 1, &zero);
    finish(graph, made);
    return made;
}

int dnn_graph_make(struct dnn_graph *graph, cudnnHandle_t handle, const struct dnn_shape *shape)
{
    const struct kernel_window *window = &shape->window;
    const cudnnDataType_t type = data_type(shape->type);
    const int64_t dims[] = {window->images, window->out_channels, window->out_height,
                            window->out_width};

    *graph = (struct dnn_graph){0};
    cudnnBackendDescriptor_t output = tensor(graph, DNN_OUTPUT, type, dims);
    cudnnBackendDescriptor_t made = operation(graph, shape, output);
    graph->operations = begin(graph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    set(graph, graph->operations, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
        &made);
    if (handle)
        set(graph, graph->operations, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1,
            &handle);
    finish(graph, graph->operations);
    return graph->code;
}

void dnn_graph_destroy(struct dnn_graph *graph)
{
    while (graph->part_count > 0)
        cudnnBackendDestroyDescriptor(graph->parts[--graph->part_count]);
}

/* ---- engines ---- */

/* Does the engine compute as asked for? */
static bool fits(cudnnBackendDescriptor_t config, const struct dnn_shape *shape, bool deterministic)
{
    cudnnBackendDescriptor_t engine = NULL;
    cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    int64_t count = 0, note_count = 0;
    bool fit = true;

    if (cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine))
        return false;
    if (cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                 1, &count, &engine) ||
        cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                 CUDNN_TYPE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT,
                                 &note_count, notes))
        fit = false;
    for (int64_t i = 0; i < note_count && fit; i++)
        switch (notes[i]) {
        case CUDNN_NUMERICAL_NOTE_TENSOR_CORE: /* with FP32 tensors: TF32 */
        case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
            fit = shape->type != DEVICE_FP32 || shape->tf32;
            break;
        case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC:
            fit = !deterministic;
            break;
        case CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP:
            break;
        case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION:
        case CUDNN_NUMERICAL_NOTE_FFT:
        case CUDNN_NUMERICAL_NOTE_WINOGRAD:
        case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4:
        case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6:
        case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13:
        case CUDNN_NUMERICAL_NOTE_TYPE_COUNT:
            fit = false;
            break;
        }
    cudnnBackendDestroyDescriptor(engine);
    return fit;
}

/* What one of cuDNN's heuristics names, appended to configs. */
static int ask(const struct dnn_graph *graph, cudnnBackendHeurMode_t mode,
               cudnnBackendDescriptor_t device, cudnnBackendDescriptor_t *configs, int64_t room,
               int64_t *found)
{
    cudnnBackendDescriptor_t heuristic = NULL;
    int64_t made = 0;

    int code =
        dnn_check(cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, &heuristic),
                  "ask for engines");
    if (code)
        return code;
    cudnnStatus_t status =
        cudnnBackendSetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph->operations);
    if (!status)
        status = cudnnBackendSetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_MODE,
                                          CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (!status && device)
        status = cudnnBackendSetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP,
                                          CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &device);
    if (!status)
        status = cudnnBackendFinalize(heuristic);
    for (; !status && made < room; made++) {
        status = cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &configs[made]);
        if (status)
            break;
    }
    *found = 0;
    if (!status)
        status = cudnnBackendGetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                          CUDNN_TYPE_BACKEND_DESCRIPTOR, room, found, configs);
    if (status)
        *found = 0;
    while (made > *found)
        cudnnBackendDestroyDescriptor(configs[--made]);
    cudnnBackendDestroyDescriptor(heuristic);
    return dnn_check(status, "ask for engines");
}

int dnn_graph_configs(const struct dnn_graph *graph, const struct dnn_shape *shape,
                      cudnnBackendDescriptor_t device, bool deterministic, bool favourites,
                      cudnnBackendDescriptor_t configs[DNN_CONFIGS_MAX], uint32_t *count)
{
    int64_t found = 0;

    *count = 0;
    int code = ask(graph, favourites ? CUDNN_HEUR_MODE_A : CUDNN_HEUR_MODE_FALLBACK, device,
                   configs, DNN_CONFIGS_MAX, &found);
    for (int64_t i = 0; i < found; i++) {
        if (fits(configs[i], shape, deterministic))
            configs[(*count)++] = configs[i];
        else
            cudnnBackendDestroyDescriptor(configs[i]);
    }
    return *count > 0 ? 0 : code ? code : fail(ENOTSUP, "backend cuda: cuDNN has no engine");
}

/* ---- plans ---- */

int dnn_plan_make(cudnnHandle_t handle, cudnnBackendDescriptor_t device,
                  cudnnBackendDescriptor_t config, cudnnBackendDescriptor_t *plan)
{
    cudnnBackendDescriptor_t made = NULL;
    cudnnStatus_t status =
        cudnnBackendCreateDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &made);

    if (!status && handle)
        status = cudnnBackendSetAttribute(made, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE,
                                          1, &handle);
    if (!status && device)
        status = cudnnBackendSetAttribute(made, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP,
                                          CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &device);
    if (!status)
        status = cudnnBackendSetAttribute(made, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                                          CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &config);
    if (!status)
        status = cudnnBackendFinalize(made);
    if (status && made)
        cudnnBackendDestroyDescriptor(made);
    *plan = status ? NULL : made;
    return dnn_check(status, "finish a plan");
}

/* ---- what a plan is made of, so that it can be made again ---- */

static int take_knob(cudnnBackendDescriptor_t knob, struct dnn_choice *choice)
{
    int64_t count = 0, value = 0;
    cudnnBackendKnobType_t type;
    cudnnStatus_t status = cudnnBackendGetAttribute(knob, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE,
                                                    CUDNN_TYPE_KNOB_TYPE, 1, &count, &type);

    if (!status)
        status = cudnnBackendGetAttribute(knob, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64,
                                          1, &count, &value);
    if (!status)
        choice->knobs[choice->knob_count++] = (struct dnn_knob){(int32_t)type, value};
    return dnn_check(status, "ask for a knob");
}

static int take_knobs(cudnnBackendDescriptor_t config, struct dnn_choice *choice)
{
    cudnnBackendDescriptor_t knobs[DNN_KNOBS_MAX] = {0};
    int64_t count = 0;
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;

    for (int i = 0; i < DNN_KNOBS_MAX && !status; i++)
        status = cudnnBackendCreateDescriptor(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, &knobs[i]);
    if (!status)
        status =
            cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                                     CUDNN_TYPE_BACKEND_DESCRIPTOR, DNN_KNOBS_MAX, &count, knobs);
    int code = dnn_check(status, "ask for knobs");
    for (int64_t i = 0; i < count && i < DNN_KNOBS_MAX && code == 0; i++)
        code = take_knob(knobs[i], choice);
    for (int i = 0; i < DNN_KNOBS_MAX; i++)
        if (knobs[i])
            cudnnBackendDestroyDescriptor(knobs[i]);
    return code ? code : count > DNN_KNOBS_MAX ? fail(ENOTSUP, "a plan of too many knobs") : 0;
}

int dnn_plan_choice(cudnnBackendDescriptor_t plan, struct dnn_choice *choice)
{
    cudnnBackendDescriptor_t config = NULL, engine = NULL;
    int64_t count = 0;
    cudnnStatus_t status =
        cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &config);

    *choice = (struct dnn_choice){0};
    if (!status)
        status = cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine);
    if (!status)
        status = cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                                          CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &config);
    if (!status)
        status = cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE,
                                          CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &engine);
    if (!status)
        status = cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64,
                                          1, &count, &choice->engine);
    int code = dnn_check(status, "ask for a plan's engine");
    if (code == 0)
        code = take_knobs(config, choice);
    if (engine)
        cudnnBackendDestroyDescriptor(engine);
    if (config)
        cudnnBackendDestroyDescriptor(config);
    return code;
}

/* Parts are kept with the graph, and go with it. */
static cudnnBackendDescriptor_t engine_of(struct dnn_graph *graph, cudnnBackendDescriptor_t device,
                                          int64_t index)
{
    cudnnBackendDescriptor_t engine = begin(graph, CUDNN_BACKEND_ENGINE_DESCRIPTOR);

    set(graph, engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
        &graph->operations);
    set(graph, engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &index);
    if (device)
        set(graph, engine, CUDNN_ATTR_ENGINE_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &device);
    finish(graph, engine);
    return engine;
}

int dnn_graph_choose(struct dnn_graph *graph, const struct dnn_shape *shape,
                     cudnnBackendDescriptor_t device, bool deterministic,
                     const struct dnn_choice *choice, cudnnBackendDescriptor_t *config)
{
    cudnnBackendDescriptor_t knobs[DNN_KNOBS_MAX];
    cudnnBackendDescriptor_t engine = engine_of(graph, device, choice->engine);

    for (uint32_t i = 0; i < choice->knob_count; i++) {
        const cudnnBackendKnobType_t type = (cudnnBackendKnobType_t)choice->knobs[i].type;
        knobs[i] = begin(graph, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
        set(graph, knobs[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type);
        set(graph, knobs[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1,
            &choice->knobs[i].value);
        finish(graph, knobs[i]);
    }
    *config = begin(graph, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    set(graph, *config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &engine);
    if (choice->knob_count > 0)
        set(graph, *config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
            choice->knob_count, knobs);
    finish(graph, *config);
    if (graph->code == 0 && !fits(*config, shape, deterministic))
        graph->code = fail(ENOTSUP, "a kept plan does not compute as asked for");
    return graph->code;
}

int dnn_plan_workspace(cudnnBackendDescriptor_t plan, uint64_t *bytes)
{
    int64_t wanted = 0, count = 0;
    int code = dnn_check(cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                                  CUDNN_TYPE_INT64, 1, &count, &wanted),
                         "ask for a plan's workspace");

    *bytes = (uint64_t)wanted;
    return code;
}

/* ---- devices that are not there ---- */

int dnn_describe_device(uint32_t capability, cudnnBackendDescriptor_t *device)
{
    /* NVIDIA A100-SXM4-80GB and H200, as their own tools tell. */
    const bool hopper = capability >= 90;
    char text[2048];
    int bytes = snprintf(
        text, sizeof text,
        "{\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],"
        "\"regsPerBlock\":65536,\"multiProcessorCount\":%d,\"smClockRateKHz\":%d,"
        "\"memClockRateKHz\":%d,\"l2CacheSize\":%d,\"warpSize\":32,"
        "\"maxSharedMemoryPerBlock\":49152,\"maxSharedMemoryPerBlockOptin\":%d,"
        "\"reservedSharedMemoryPerBlock\":1024,\"maxRegistersPerSM\":65536,\"pciDeviceId\":0,"
        "\"maxCtasPerSM\":32,\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":2048,"
        "\"isTccDriver\":0,\"supportCoopLaunch\":1,\"deviceVer\":%u,\"driverVer\":13000,"
        "\"deviceName\":\"%s\",\"cudaDeviceId\":0,\"totalGlobalMem\":%lld}",
        hopper ? 132 : 108, hopper ? 1980000 : 1410000, hopper ? 3201000 : 1593000,
        hopper ? 62914560 : 41943040, hopper ? 232448 : 166912, capability * 10,
        hopper ? "NVIDIA H200" : "NVIDIA A100-SXM4-80GB", hopper ? 150754820096LL : 85097971712LL);

    *device = NULL;
    cudnnStatus_t status =
        cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, device);
    if (!status)
        status = cudnnBackendSetAttribute(*device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                                          CUDNN_TYPE_CHAR, bytes, text);
    if (!status)
        status = cudnnBackendFinalize(*device);
    return dnn_check(status, "describe a device");
}
