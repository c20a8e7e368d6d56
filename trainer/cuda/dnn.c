/* SPDX-License-Identifier: Apache-2.0
 *
 * Autotuning: the engines that support a shape run on data of its size, and the fastest is kept
 * whose numbers are right. The file of plans is keyed by what determines the fastest: versions of
 * cuDNN and driver, GPU and shape. A plan from the file is checked like a new one.
 */
#include "trainer/cuda/dnn.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "trainer/cuda/dnn_choices.h"
#include "trainer/cuda/dnn_operations.h"
#include "trainer/cuda/dnn_trial.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_BYTES = 400 };

static const uint32_t of_norms = DNN_PROLOGUE | DNN_STATISTICS | DNN_NORM;
static const uint64_t workspace_limit_bytes = 4ull << 30;
static const uint64_t making_ns = 3000000000; /* limit for making one shape's plans */

struct dnn_found {
    struct dnn_plan known; /* first member */
    struct dnn_found *next;
    char key[KEY_BYTES];
    struct dnn_shape shape;
    cudnnBackendDescriptor_t plan; /* NULL: no engine supports the shape */
};

struct dnn {
    struct dnn_config config;
    cudnnHandle_t handle;
    cudnnBackendDescriptor_t described;
    struct dnn_found *plans;
    struct dnn_choices *kept; /* from the file, and new ones */
    bool changed;
    char *file;                  /* of plans; NULL: none */
    char wrong[DNN_WRONG_BYTES]; /* see dnn_take_wrong() */
};

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

/* Describe a device that need not be present. */
static int describe_device(const struct dnn_config *config, cudnnBackendDescriptor_t *device)
{
    const size_t count = sizeof described_devices / sizeof *described_devices;
    const struct described_device *like = described_devices;
    const char *part = config->described_part;
    char text[2048];

    while (like < described_devices + count - 1 &&
           (like->capability > config->described || (part && !strstr(like->name, part))))
        like++;
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
        config->described * 10, like->name, like->memory_bytes);
    *device = NULL;
    cudnnStatus_t status =
        cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, device);
    dnn_set(&status, *device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, bytes,
            text);
    if (!status)
        status = cudnnBackendFinalize(*device);
    return dnn_check(status, "describe a device");
}

/* ---- opening ---- */

int dnn_open(struct dnn **made, const struct dnn_config *config)
{
    struct dnn *dnn = *made = memory_zeroed(sizeof *dnn);
    char name[32];

    if (!dnn)
        return -ENOMEM;
    /* cuDNN loads the run-time compiler for each engine it considers and unloads it again: 100 MB
     * mapped and relocated a thousand times for one network. Holding it once avoids that; if it is
     * not found, cuDNN reports what is missing. */
    snprintf(name, sizeof name, "libnvrtc.so.%zu", cudnnGetCudartVersion() / 1000);
    dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    dnn->config = *config;
    dnn->file = config->plans ? strdup(config->plans) : NULL;
    dnn->kept = dnn_choices_read(config->plans);
    if (!dnn->kept || (config->plans && !dnn->file))
        return -ENOMEM;
    if (!config->runtime)
        return describe_device(config, &dnn->described);
    int code = dnn_check(cudnnCreate(&dnn->handle), "start");
    return code ? code
                : dnn_check(cudnnSetStream(dnn->handle, config->runtime->stream), "take a stream");
}

void dnn_close(struct dnn *dnn)
{
    if (!dnn)
        return;
    while (dnn->plans) {
        struct dnn_found *next = dnn->plans->next;
        dnn_destroy(dnn->plans->plan);
        free(dnn->plans);
        dnn->plans = next;
    }
    dnn_destroy(dnn->described);
    if (dnn->handle)
        cudnnDestroy(dnn->handle);
    dnn_choices_free(dnn->kept);
    free(dnn->file);
    free(dnn);
}

/* ---- names ---- */

void dnn_name_library(char *text, size_t bytes)
{
    const size_t version = cudnnGetVersion();

    snprintf(text, bytes, "cuDNN %zu.%zu.%zu", version / 10000, version / 100 % 100, version % 100);
}

static void name_shape(const struct dnn *dnn, const struct dnn_shape *shape, char key[KEY_BYTES])
{
    static const char *const kinds[] = {"forward", "data", "weight"};
    static const char *const types[] = {"fp32", "fp16", "bf16"};
    static const char *const parts[] = {"prologue", "statistics", "scale", "bias",    "add",
                                        "relu",     "norm",       "sum",   "rescale", "dual"};
    const struct kernel_window *w = &shape->window;
    const struct runtime *runtime = dnn->config.runtime;
    char fusions[80] = "";

    for (size_t i = 0, end = 0; i < sizeof parts / sizeof *parts; i++)
        if (shape->fusion >> i & 1)
            end += (size_t)snprintf(fusions + end, sizeof fusions - end, ", %s", parts[i]);
    snprintf(
        key, KEY_BYTES,
        "cudnn %zu, driver %u, %s sm_%u x %u%s, best of %u; %s %s%s batch %u, %u x %u x %u by "
        "%u x %u / %u "
        "+ %u,%u in "
        "%u to %u x %u x %u%s",
        cudnnGetVersion(), runtime ? runtime->driver : 0, runtime ? runtime->name : "described",
        runtime ? runtime->capability : dnn->config.described,
        runtime ? runtime->multiprocessors : 0, dnn->config.deterministic ? "" : " any",
        dnn->config.tournament, kinds[shape->kind], shape->int8 ? "int8 to " : "",
        shape->int8_output ? "int8"
        : shape->tf32      ? "tf32"
                           : types[shape->type],
        w->images, w->in_channels, w->in_height, w->in_width, w->height, w->width, w->stride,
        w->pad_top, w->pad_left, w->groups, w->out_channels, w->out_height, w->out_width, fusions);
}

/* ---- running ---- */

static int execute(const struct dnn *dnn, const struct dnn_shape *shape,
                   cudnnBackendDescriptor_t plan, const struct dnn_tensors *tensors)
{
    int64_t ids[DNN_TENSORS], count = 0;
    void *places[DNN_TENSORS];
    cudnnBackendDescriptor_t pack = NULL;
    cudnnStatus_t status =
        cudnnBackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack);

    for (enum dnn_tensor i = 0; i < DNN_TENSORS; i++)
        if (dnn_takes(shape, i)) {
            ids[count] = dnn_uid(i);
            places[count++] = tensors->at[i];
        }
    dnn_set(&status, pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, ids);
    dnn_set(&status, pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count,
            places);
    dnn_set(&status, pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1,
            &tensors->workspace);
    if (!status)
        status = cudnnBackendFinalize(pack);
    if (!status)
        status = cudnnBackendExecute(dnn->handle, plan, pack);
    dnn_destroy(pack);
    return dnn_check(status, "compute a convolution");
}

int dnn_run(const struct dnn *dnn, const struct dnn_plan *plan, const struct dnn_tensors *tensors)
{
    const struct dnn_found *found = (const struct dnn_found *)plan;

    return execute(dnn, &found->shape, found->plan, tensors);
}

/* ---- engines and plans ---- */

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
        /* partial sums in FP16 or BF16: dnn_trial.c says whether they are right */
        [CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION] = shape->type != DEVICE_FP32,
        [CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC] = !deterministic,
        [CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP] = true};
    for (int64_t i = 0; i < note_count && fit; i++)
        fit = notes[i] < CUDNN_NUMERICAL_NOTE_TYPE_COUNT && allowed[notes[i]];
    dnn_destroy(engine);
    return fit;
}

/* Find engine configurations for the shape: of its precision only, and deterministic if wanted;
 * cuDNN's favourites, likely fastest first, or its fallbacks. Destroy each of the `count`. -ENOTSUP
 * if there is none. */
static int find_engines(const struct dnn *dnn, const struct dnn_graph *graph,
                        const struct dnn_shape *shape, bool favourites,
                        cudnnBackendDescriptor_t configs[DNN_CONFIGS_MAX], uint32_t *count)
{
    const cudnnBackendHeurMode_t mode = favourites ? CUDNN_HEUR_MODE_A : CUDNN_HEUR_MODE_FALLBACK;
    cudnnBackendDescriptor_t heuristic = NULL;
    int64_t made = 0, found = 0;
    cudnnStatus_t status =
        cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, &heuristic);

    *count = 0;
    dnn_set(&status, heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
            CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph->whole);
    dnn_set(&status, heuristic, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (dnn->described)
        dnn_set(&status, heuristic, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                1, &dnn->described);
    if (!status)
        status = cudnnBackendFinalize(heuristic);
    while (!status && made < DNN_CONFIGS_MAX) {
        status = cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &configs[made]);
        made += !status;
    }
    if (!status)
        status = cudnnBackendGetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                          CUDNN_TYPE_BACKEND_DESCRIPTOR, DNN_CONFIGS_MAX, &found,
                                          configs);
    for (int64_t i = 0; i < made; i++)
        if (!status && i < found && fits(configs[i], shape, dnn->config.deterministic))
            configs[(*count)++] = configs[i];
        else
            dnn_destroy(configs[i]);
    dnn_destroy(heuristic);
    int code = dnn_check(status, "ask for engines");
    return *count > 0 ? 0 : code ? code : fail(ENOTSUP, "backend cuda: cuDNN has no engine");
}

static int make_plan(const struct dnn *dnn, cudnnBackendDescriptor_t config,
                     cudnnBackendDescriptor_t *plan)
{
    cudnnBackendDescriptor_t made = NULL;
    cudnnStatus_t status =
        cudnnBackendCreateDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &made);

    if (dnn->handle)
        dnn_set(&status, made, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1,
                &dnn->handle);
    if (dnn->described)
        dnn_set(&status, made, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                1, &dnn->described);
    dnn_set(&status, made, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR,
            1, &config);
    if (!status)
        status = cudnnBackendFinalize(made);
    if (status)
        dnn_destroy(made);
    *plan = status ? NULL : made;
    return dnn_check(status, "finish a plan");
}

static int plan_workspace(cudnnBackendDescriptor_t plan, uint64_t *bytes)
{
    int64_t wanted = 0, count = 0;
    int code = dnn_check(cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                                  CUDNN_TYPE_INT64, 1, &count, &wanted),
                         "ask for a plan's workspace");

    *bytes = (uint64_t)wanted;
    return code;
}

/* ---- the parts of a plan, from which it can be remade ---- */

static int take_choice(cudnnBackendDescriptor_t plan, struct dnn_choice *choice)
{
    cudnnBackendDescriptor_t config = NULL, engine = NULL, knobs[DNN_KNOBS_MAX] = {0};
    int64_t count = 0;
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
    for (int i = 0; i < DNN_KNOBS_MAX && !status; i++)
        status = cudnnBackendCreateDescriptor(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, &knobs[i]);
    if (!status)
        status =
            cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                                     CUDNN_TYPE_BACKEND_DESCRIPTOR, DNN_KNOBS_MAX, &count, knobs);
    for (int64_t i = 0; i < count && i < DNN_KNOBS_MAX && !status; i++) {
        int64_t value = 0;
        cudnnBackendKnobType_t type;
        dnn_get(&status, knobs[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, &type);
        dnn_get(&status, knobs[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, &value);
        if (!status)
            choice->knobs[choice->knob_count++] = (struct dnn_knob){(int32_t)type, value};
    }
    if (code == 0)
        code = dnn_check(status, "ask for knobs");
    for (int i = 0; i < DNN_KNOBS_MAX; i++)
        dnn_destroy(knobs[i]);
    dnn_destroy(engine);
    dnn_destroy(config);
    return code ? code : count > DNN_KNOBS_MAX ? fail(ENOTSUP, "a plan has too many knobs") : 0;
}

/* Make the configuration of a choice for this graph, which owns it. Fails if there is none or it
 * does not compute what the shape requires: whatever the source of the choice, the graph is what is
 * computed. */
static int remake_config(const struct dnn *dnn, struct dnn_graph *graph,
                         const struct dnn_shape *shape, const struct dnn_choice *choice,
                         cudnnBackendDescriptor_t *config)
{
    cudnnBackendDescriptor_t knobs[DNN_KNOBS_MAX];

    for (uint32_t i = 0; i < choice->knob_count; i++)
        if (choice->knobs[i].type >= CUDNN_KNOB_TYPE_COUNTS)
            return graph->code = fail(ENOTSUP, "a kept plan has a knob unknown to cuDNN");
    cudnnBackendDescriptor_t engine = dnn_part_begin(graph, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    dnn_part_set(graph, engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                 &graph->whole);
    dnn_part_set(graph, engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1,
                 &choice->engine);
    if (dnn->described)
        dnn_part_set(graph, engine, CUDNN_ATTR_ENGINE_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                     &dnn->described);
    dnn_part_finish(graph, engine);
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
    if (graph->code == 0 && !fits(*config, shape, dnn->config.deterministic))
        graph->code = fail(ENOTSUP, "a kept plan does not compute what the shape asks for");
    return graph->code;
}

/* ---- autotuning ---- */

bool dnn_has_device(const struct dnn *dnn)
{
    return dnn->config.runtime != NULL;
}

/* Make plans of the first configurations that finish with an acceptable workspace. Some engines
 * compile for seconds: a shape gets only as many as fit into its time limit. */
static uint32_t make_candidates(const struct dnn *dnn, const struct dnn_graph *graph,
                                const struct dnn_shape *shape, bool favourites,
                                cudnnBackendDescriptor_t plans[DNN_CONFIGS_MAX], int *code)
{
    cudnnBackendDescriptor_t configs[DNN_CONFIGS_MAX];
    /* without a device nothing is timed: take the first */
    const uint32_t most = dnn->handle ? dnn->config.tournament : 1;
    const uint64_t start_ns = clock_now_ns();
    uint32_t config_count = 0, count = 0;

    *code = find_engines(dnn, graph, shape, favourites, configs, &config_count);
    for (uint32_t i = 0; i < config_count; i++) {
        uint64_t bytes = 0;
        cudnnBackendDescriptor_t plan = NULL;
        if (count < most && (count == 0 || clock_now_ns() - start_ns < making_ns))
            make_plan(dnn, configs[i], &plan);
        if (plan && (plan_workspace(plan, &bytes) || bytes > workspace_limit_bytes)) {
            dnn_destroy(plan);
            plan = NULL;
        }
        if (plan)
            plans[count++] = plan;
        dnn_destroy(configs[i]);
    }
    return count;
}

/* Of some plans for a shape. */
struct rivals {
    const struct dnn *dnn;
    const struct dnn_shape *shape;
    cudnnBackendDescriptor_t *plans;
};

static int start_rival(const void *context, uint32_t which, const struct dnn_tensors *tensors)
{
    const struct rivals *rivals = context;

    return execute(rivals->dnn, rivals->shape, rivals->plans[which], tensors);
}

/* Move the fastest plan that computes the right numbers to the front. */
static int compete(struct dnn *dnn, const struct dnn_shape *shape, cudnnBackendDescriptor_t *plans,
                   uint32_t count, bool timed, struct dnn_found *winner)
{
    const struct rivals rivals = {dnn, shape, plans};
    const struct dnn_candidates candidates = {start_rival, &rivals, count, timed,
                                              dnn->config.deterministic};
    struct dnn_trial trial;
    char wrong[DNN_WRONG_BYTES] = "";
    uint64_t most = 0;
    uint32_t chosen = 0;

    for (uint32_t i = 0; i < count; i++) {
        uint64_t bytes = 0;
        plan_workspace(plans[i], &bytes);
        most = bytes > most ? bytes : most;
    }
    int code = dnn_trial_open(&trial, dnn->config.runtime, shape, most);
    if (code == 0)
        code = dnn_trial_choose(&trial, &candidates, &chosen, &winner->known.milliseconds, wrong);
    dnn_trial_close(&trial);
    if (wrong[0] && !dnn->wrong[0])
        snprintf(dnn->wrong, sizeof dnn->wrong, "%s", wrong);
    cudnnBackendDescriptor_t best = plans[chosen];
    plans[chosen] = plans[0];
    plans[0] = best;
    return code;
}

/* Choose the fastest of cuDNN's favourites or of its fallbacks. A plan that does not run, or
 * computes something else, is not used. */
static int choose_among(struct dnn *dnn, const struct dnn_graph *graph, bool favourites,
                        struct dnn_found *plan)
{
    cudnnBackendDescriptor_t plans[DNN_CONFIGS_MAX];
    int code = 0;
    const uint32_t count = make_candidates(dnn, graph, &plan->shape, favourites, plans, &code);

    if (code || count == 0)
        return code ? code : fail(ENOTSUP, "backend cuda: no cuDNN engine makes a plan");
    if (dnn->config.runtime)
        code = compete(dnn, &plan->shape, plans, count, dnn->config.tournament > 1, plan);
    plan->plan = code ? NULL : plans[0];
    plan->known.candidates = count;
    for (uint32_t i = code ? 0 : 1; i < count; i++)
        dnn_destroy(plans[i]);
    return code;
}

/* ---- choices on disk ---- */

/* Remake this shape's plan from the file. Returns whether it is of use; *code: no memory to try. */
static bool recall(struct dnn *dnn, const struct dnn_shape *shape, struct dnn_found *plan,
                   int *code)
{
    struct dnn_choice choice;
    struct dnn_graph graph;
    cudnnBackendDescriptor_t config = NULL;

    if (!dnn_choices_get(dnn->kept, plan->key, &choice, &plan->known.candidates,
                         &plan->known.milliseconds))
        return false;
    plan->known.engine = choice.engine;
    int failed = dnn_graph_make(&graph, dnn->handle, shape);
    if (failed == 0)
        failed = remake_config(dnn, &graph, shape, &choice, &config);
    if (failed == 0)
        failed = make_plan(dnn, config, &plan->plan);
    dnn_graph_destroy(&graph);
    if (failed == 0 && (plan_workspace(plan->plan, &plan->known.workspace_bytes) ||
                        plan->known.workspace_bytes > workspace_limit_bytes))
        failed = -ENOTSUP;
    if (failed == 0 && dnn->config.runtime)
        failed = compete(dnn, shape, &plan->plan, 1, false, plan);
    *code = failed == -ENOMEM ? failed : 0;
    if (failed) {
        dnn_destroy(plan->plan);
        plan->plan = NULL;
    }
    if (failed && *code == 0) { /* else each start would try it again, if no engine is better */
        *code = dnn_choices_drop(dnn->kept, plan->key);
        dnn->changed = true;
    }
    return failed == 0;
}

int dnn_keep(struct dnn *dnn)
{
    int code = dnn->changed && dnn->file ? dnn_choices_write(dnn->kept, dnn->file) : 0;

    dnn->changed = dnn->changed && code != 0;
    return code;
}

/* ---- finding ---- */

bool dnn_take_wrong(struct dnn *dnn, char wrong[DNN_WRONG_BYTES])
{
    memcpy(wrong, dnn->wrong, sizeof dnn->wrong);
    dnn->wrong[0] = '\0';
    return wrong[0] != '\0';
}

const struct dnn_plan *dnn_find(struct dnn *dnn, const struct dnn_shape *shape, int *code)
{
    char key[KEY_BYTES];
    struct dnn_found *plan;

    if (shape->type != DEVICE_FP16 && (shape->fusion & of_norms)) {
        *code = fail(ENOTSUP, "backend cuda: cuDNN fuses BN in FP16 only");
        return NULL; /* cuDNN would also refuse, but later */
    }
    name_shape(dnn, shape, key);
    for (plan = dnn->plans; plan; plan = plan->next)
        if (strcmp(plan->key, key) == 0)
            break;
    *code = 0;
    if (!plan) {
        plan = memory_zeroed(sizeof *plan);
        *code = plan ? 0 : -ENOMEM;
        if (*code)
            return NULL;
        memcpy(plan->key, key, sizeof key);
        plan->shape = *shape;
        plan->next = dnn->plans;
        dnn->plans = plan;
        if (!recall(dnn, shape, plan, code) && *code == 0) {
            struct dnn_graph graph;
            struct dnn_choice choice;
            *code = dnn_graph_make(&graph, dnn->handle, shape);
            if (*code == 0) {
                *code = choose_among(dnn, &graph, true, plan);
                if (*code && *code != -ENOMEM)
                    *code = choose_among(dnn, &graph, false, plan);
            }
            dnn_graph_destroy(&graph);
            if (*code && *code != -ENOMEM && shape->fusion)
                *code = -ENOTSUP; /* the unfused steps remain */
            if (*code == 0) {
                *code = take_choice(plan->plan, &choice);
                plan->known.engine = *code ? -1 : choice.engine;
                if (*code == 0)
                    *code = dnn_choices_put(dnn->kept, key, &choice, plan->known.candidates,
                                            plan->known.milliseconds);
                dnn->changed = dnn->changed || *code == 0;
            }
            if (dnn->handle)   /* an interrupted first start resumes here */
                dnn_keep(dnn); /* write errors are reported at the end */
        }
        if (*code == 0)
            *code = plan_workspace(plan->plan, &plan->known.workspace_bytes);
    }
    if (*code == 0 && !plan->plan)
        *code = fail(ENOTSUP, "backend cuda: cuDNN has no engine");
    return *code ? NULL : &plan->known;
}
