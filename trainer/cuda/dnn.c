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
#include "trainer/cuda/dnn_engines.h"
#include "trainer/cuda/dnn_trial.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CANDIDATES_MAX = DNN_CONFIGS_MAX,
    KEY_BYTES = 400,
};

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

/* ---- opening ---- */

/* cuDNN loads the run-time compiler for each engine it considers and unloads it again: 100 MB
 * mapped and relocated a thousand times for one network. Holding it once avoids that; if it is not
 * found, cuDNN reports what is missing. */
static void hold_compiler(void)
{
    char name[32];

    snprintf(name, sizeof name, "libnvrtc.so.%zu", cudnnGetCudartVersion() / 1000);
    dlopen(name, RTLD_LAZY | RTLD_LOCAL);
}

int dnn_open(struct dnn **made, const struct dnn_config *config)
{
    struct dnn *dnn = *made = memory_zeroed(sizeof *dnn);

    if (!dnn)
        return -ENOMEM;
    hold_compiler();
    dnn->config = *config;
    dnn->file = config->plans ? strdup(config->plans) : NULL;
    dnn->kept = dnn_choices_read(config->plans);
    if (!dnn->kept || (config->plans && !dnn->file))
        return -ENOMEM;
    if (!config->runtime)
        return dnn_describe_device(config->described, config->described_part, &dnn->described);
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

/* ---- autotuning ---- */

bool dnn_has_device(const struct dnn *dnn)
{
    return dnn->config.runtime != NULL;
}

/* Make plans of the first configurations that finish with an acceptable workspace. Some engines
 * compile for seconds: a shape gets only as many as fit into its time limit. */
static uint32_t make_candidates(const struct dnn *dnn, const struct dnn_graph *graph,
                                const struct dnn_shape *shape, bool favourites,
                                cudnnBackendDescriptor_t plans[CANDIDATES_MAX], int *code)
{
    cudnnBackendDescriptor_t configs[DNN_CONFIGS_MAX];
    /* without a device nothing is timed: take the first */
    const uint32_t most = dnn->handle ? dnn->config.tournament : 1;
    const uint64_t start_ns = clock_now_ns();
    uint32_t config_count = 0, count = 0;

    *code = dnn_engines_find(graph, shape, dnn->described, dnn->config.deterministic, favourites,
                             configs, &config_count);
    for (uint32_t i = 0; i < config_count; i++) {
        uint64_t bytes = 0;
        cudnnBackendDescriptor_t plan = NULL;
        if (count < most && (count == 0 || clock_now_ns() - start_ns < making_ns))
            dnn_plan_make(dnn->handle, dnn->described, configs[i], &plan);
        if (plan && (dnn_plan_workspace(plan, &bytes) || bytes > workspace_limit_bytes)) {
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
        dnn_plan_workspace(plans[i], &bytes);
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
    cudnnBackendDescriptor_t plans[CANDIDATES_MAX];
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

static int choose(struct dnn *dnn, struct dnn_found *plan)
{
    struct dnn_graph graph;
    int code = dnn_graph_make(&graph, dnn->handle, &plan->shape);

    if (code == 0) {
        code = choose_among(dnn, &graph, true, plan);
        if (code && code != -ENOMEM)
            code = choose_among(dnn, &graph, false, plan);
    }
    dnn_graph_destroy(&graph);
    return code;
}

/* ---- choices on disk ---- */

/* Remake this shape's plan from the file. Returns whether it is of use; *code: no memory to try. */
static bool recall(struct dnn *dnn, const struct dnn_shape *shape, struct dnn_found *plan,
                   int *code)
{
    struct dnn_choice choice;
    struct dnn_graph graph;
    cudnnBackendDescriptor_t config;

    if (!dnn_choices_get(dnn->kept, plan->key, &choice, &plan->known.candidates,
                         &plan->known.milliseconds))
        return false;
    plan->known.engine = choice.engine;
    int failed = dnn_graph_make(&graph, dnn->handle, shape);
    if (failed == 0)
        failed = dnn_engines_choose(&graph, shape, dnn->described, dnn->config.deterministic,
                                    &choice, &config);
    if (failed == 0)
        failed = dnn_plan_make(dnn->handle, dnn->described, config, &plan->plan);
    dnn_graph_destroy(&graph);
    if (failed == 0 && (dnn_plan_workspace(plan->plan, &plan->known.workspace_bytes) ||
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

static int remember(struct dnn *dnn, struct dnn_found *plan)
{
    struct dnn_choice choice;
    int code = dnn_plan_choice(plan->plan, &choice);

    plan->known.engine = code ? -1 : choice.engine;
    if (code == 0)
        code = dnn_choices_put(dnn->kept, plan->key, &choice, plan->known.candidates,
                               plan->known.milliseconds);
    dnn->changed = dnn->changed || code == 0;
    return code;
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
            *code = choose(dnn, plan);
            if (*code && *code != -ENOMEM && shape->fusion)
                *code = -ENOTSUP; /* the unfused steps remain */
            if (*code == 0)
                *code = remember(dnn, plan);
            if (dnn->handle)   /* an interrupted first start resumes here */
                dnn_keep(dnn); /* write errors are reported at the end */
        }
        if (*code == 0)
            *code = dnn_plan_workspace(plan->plan, &plan->known.workspace_bytes);
    }
    if (*code == 0 && !plan->plan)
        *code = fail(ENOTSUP, "backend cuda: cuDNN has no engine");
    return *code ? NULL : &plan->known;
}
