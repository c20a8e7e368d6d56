/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/cuda/dnn_engines.h"

#include "base/fail.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- engines ---- */

/* Return whether an engine has the requested precision and determinism. */
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
    const bool low = shape->type != DEVICE_FP32 || shape->tf32 || shape->int8;
    const bool allowed[CUDNN_NUMERICAL_NOTE_TYPE_COUNT] = {
        [CUDNN_NUMERICAL_NOTE_TENSOR_CORE] = low, /* with FP32 tensors: TF32 */
        [CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS] = low,
        /* partial sums in FP16 or BF16: dnn_verify() says whether they are right */
        [CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION] = shape->type != DEVICE_FP32,
        [CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC] = !deterministic,
        [CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP] = true};
    for (int64_t i = 0; i < note_count && fit; i++)
        fit = notes[i] < CUDNN_NUMERICAL_NOTE_TYPE_COUNT && allowed[notes[i]];
    dnn_destroy(engine);
    return fit;
}

/* Append what one of cuDNN's heuristics suggests. */
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
                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph->whole);
    dnn_set(&status, heuristic, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (device)
        dnn_set(&status, heuristic, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                1, &device);
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
        dnn_destroy(configs[--made]);
    dnn_destroy(heuristic);
    return dnn_check(status, "ask for engines");
}

int dnn_engines_find(const struct dnn_graph *graph, const struct dnn_shape *shape,
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
            dnn_destroy(configs[i]);
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

    if (handle)
        dnn_set(&status, made, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    if (device)
        dnn_set(&status, made, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                1, &device);
    dnn_set(&status, made, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR,
            1, &config);
    if (!status)
        status = cudnnBackendFinalize(made);
    if (status)
        dnn_destroy(made);
    *plan = status ? NULL : made;
    return dnn_check(status, "finish a plan");
}

/* ---- the parts of a plan, from which it can be remade ---- */

static int take_knob(cudnnBackendDescriptor_t knob, struct dnn_choice *choice)
{
    int64_t value = 0;
    cudnnBackendKnobType_t type;
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;

    dnn_get(&status, knob, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, &type);
    dnn_get(&status, knob, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, &value);
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
        dnn_destroy(knobs[i]);
    return code ? code : count > DNN_KNOBS_MAX ? fail(ENOTSUP, "a plan has too many knobs") : 0;
}

int dnn_plan_choice(cudnnBackendDescriptor_t plan, struct dnn_choice *choice)
{
    cudnnBackendDescriptor_t config = NULL, engine = NULL;
    cudnnStatus_t status =
        cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &config);

    *choice = (struct dnn_choice){0};
    if (!status)
        status = cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine);
    dnn_get(&status, plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR,
            &config);
    dnn_get(&status, config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, &engine);
    dnn_get(&status, engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, &choice->engine);
    int code = dnn_check(status, "ask for a plan's engine");
    if (code == 0)
        code = take_knobs(config, choice);
    dnn_destroy(engine);
    dnn_destroy(config);
    return code;
}

/* The graph owns the parts. */
static cudnnBackendDescriptor_t engine_of(struct dnn_graph *graph, cudnnBackendDescriptor_t device,
                                          int64_t index)
{
    cudnnBackendDescriptor_t engine = dnn_part_begin(graph, CUDNN_BACKEND_ENGINE_DESCRIPTOR);

    dnn_part_set(graph, engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                 &graph->whole);
    dnn_part_set(graph, engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &index);
    if (device)
        dnn_part_set(graph, engine, CUDNN_ATTR_ENGINE_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                     &device);
    dnn_part_finish(graph, engine);
    return engine;
}

int dnn_engines_choose(struct dnn_graph *graph, const struct dnn_shape *shape,
                       cudnnBackendDescriptor_t device, bool deterministic,
                       const struct dnn_choice *choice, cudnnBackendDescriptor_t *config)
{
    cudnnBackendDescriptor_t knobs[DNN_KNOBS_MAX];

    for (uint32_t i = 0; i < choice->knob_count; i++)
        if (choice->knobs[i].type >= CUDNN_KNOB_TYPE_COUNTS)
            return graph->code = fail(ENOTSUP, "a kept plan has a knob unknown to cuDNN");
    cudnnBackendDescriptor_t engine = engine_of(graph, device, choice->engine);
    for (uint32_t i = 0; i < choice->knob_count; i++) {
        const cudnnBackendKnobType_t type = (cudnnBackendKnobType_t)choice->knobs[i].type;
        knobs[i] = dnn_part_begin(graph, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
        dnn_part_set(graph, knobs[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1,
                     &type);
        dnn_part_set(graph, knobs[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1,
                     &choice->knobs[i].value);
        dnn_part_finish(graph, knobs[i]);
    }
    *config = dnn_part_begin(graph, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    dnn_part_set(graph, *config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                 &engine);
    if (choice->knob_count > 0)
        dnn_part_set(graph, *config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                     CUDNN_TYPE_BACKEND_DESCRIPTOR, choice->knob_count, knobs);
    dnn_part_finish(graph, *config);
    if (graph->code == 0 && !fits(*config, shape, deterministic))
        graph->code = fail(ENOTSUP, "a kept plan does not compute what the shape asks for");
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

/* ---- absent devices ---- */

/* As NVIDIA's tools report them. */
static const struct described_device {
    const char *name;
    uint32_t capability;
    int processors, clock_khz, memory_khz, l2_bytes, shared_bytes;
    long long memory_bytes;
} described_devices[] = {
    {"NVIDIA H200", 90, 132, 1980000, 3201000, 62914560, 232448, 150754820096},
    {"NVIDIA H100 80GB HBM3", 90, 132, 1980000, 2619000, 52428800, 232448, 85028765696},
    {"NVIDIA A100-SXM4-80GB", 80, 108, 1410000, 1593000, 41943040, 166912, 85097971712},
};

static const struct described_device *find_described(uint32_t capability, const char *part)
{
    const size_t count = sizeof described_devices / sizeof *described_devices;
    const struct described_device *device = described_devices;

    while (device < described_devices + count - 1 &&
           (device->capability > capability || (part && !strstr(device->name, part))))
        device++;
    return device;
}

int dnn_describe_device(uint32_t capability, const char *part, cudnnBackendDescriptor_t *device)
{
    const struct described_device *like = find_described(capability, part);
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
        like->processors, like->clock_khz, like->memory_khz, like->l2_bytes, like->shared_bytes,
        capability * 10, like->name, like->memory_bytes);

    *device = NULL;
    cudnnStatus_t status =
        cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, device);
    dnn_set(&status, *device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, bytes,
            text);
    if (!status)
        status = cudnnBackendFinalize(*device);
    return dnn_check(status, "describe a device");
}
