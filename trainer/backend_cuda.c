/* SPDX-License-Identifier: Apache-2.0
 *
 * The cuda backend's front end: its options, and calls forwarded to the module iobench-cuda.so. A
 * program built with CUDA therefore starts on machines without it.
 */
#include "trainer/plugins.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/option.h"
#include "base/random.h"
#include "kernels/kernels.h"
#include "trainer/cuda_settings.h"
#include "trainer/lifetimes.h"
#include "trainer/module.h"
#include "trainer/quantise.h"

#include <errno.h>
#include <stdlib.h>

static const char *const precisions[] = {
    [CUDA_FP32] = "fp32", [CUDA_TF32] = "tf32", [CUDA_FP16] = "fp16", [CUDA_BF16] = "bf16", NULL};

static const char *const fusions[] = {
    [CUDA_FUSE_AUTO] = "auto", [CUDA_FUSE_NONE] = "no", [CUDA_FUSE_ALL] = "all", NULL};

static const struct option_spec cuda_options[] = {
    {"precision", 0, OPTION_CHOICE, offsetof(struct cuda_settings, precision), .fallback = "fp16",
     .choices = precisions, .summary = "precision of layers; weights are kept and updated in FP32"},
    {"device", 0, OPTION_COUNT, offsetof(struct cuda_settings, device), .fallback = "0",
     .maximum = 63, .summary = "GPU number, as CUDA counts"},
    {"graph", 0, OPTION_FLAG, offsetof(struct cuda_settings, graph), .fallback = "yes",
     .summary = "launch a whole step as one CUDA graph"},
    {"ahead", 0, OPTION_COUNT, offsetof(struct cuda_settings, ahead), .fallback = "2",
     .maximum = 64, .summary = "batches uploaded while another is computed"},
    {"deterministic", 0, OPTION_FLAG, offsetof(struct cuda_settings, deterministic),
     .fallback = "yes", .summary = "use only deterministic algorithms"},
    {"tournament", 0, OPTION_COUNT, offsetof(struct cuda_settings, tournament), .fallback = "8",
     .minimum = 1, .maximum = 64, .summary = "engines timed per layer; 1: cuDNN's choice"},
    {"fusion", 0, OPTION_CHOICE, offsetof(struct cuda_settings, fusion), .fallback = "auto",
     .choices = fusions,
     .summary =
         "BN and ReLU in convolutions: where it saves traffic, nowhere, or wherever possible"},
    {"plans", 0, OPTION_TEXT, offsetof(struct cuda_settings, plans), .metavar = "FILE",
     .reach = OPTION_WRITES,
     .summary = "cache file of chosen cuDNN plans, or none; default: in the user's cache folder"},
    {0},
};

/* Functions that the module calls: referenced here so that every program that can load the module
 * links them. */
typedef void (*any_function)(void);
__attribute__((used)) static const any_function for_the_module[] = {
    (any_function)fail,
    (any_function)fail_reason,
    (any_function)memory_zeroed,
    (any_function)memory_array,
    (any_function)lifetimes_plan,
    (any_function)kernel_dropout_key,
    (any_function)random_mix,
    (any_function)quantise_plan,
    (any_function)quantise_weights,
    (any_function)graph_fold_norm,
    (any_function)calibration_check,
    (any_function)schedule_add,
    (any_function)schedule_add_update,
};

static const struct backend_ops *module_ops(void)
{
    static const char *const libraries[] = {"libcuda.so.1", "libcudnn.so.9", NULL};
    static const struct module module = {.file = "iobench-cuda.so",
                                         .variable = "IOBENCH_CUDA_MODULE",
                                         .symbol = "iobench_backend_cuda",
                                         .libraries = libraries};

    return module_find(&module);
}

struct remote {
    const struct backend_ops *ops;
    void *state;
};

static int remote_usable(void)
{
    const struct backend_ops *ops = module_ops();

    return ops ? plugin_usable(&ops->plugin) : -ENODEV;
}

static int remote_open(void *state, const void *settings, const struct backend_config *config)
{
    struct remote *remote = state;

    remote->ops = module_ops();
    if (!remote->ops)
        return -ENODEV;
    if (remote->ops->plugin.settings_size != sizeof(struct cuda_settings))
        return fail(EINVAL, "iobench-cuda.so is from another build: install both together");
    remote->state = memory_zeroed(remote->ops->plugin.state_size);
    return remote->state ? remote->ops->open(remote->state, settings, config) : -ENOMEM;
}

static void remote_close(void *state)
{
    struct remote *remote = state;

    if (remote->state)
        remote->ops->close(remote->state);
    free(remote->state);
}

static int remote_load(void *state, const float *parameters, const float *momenta,
                       const float *statistics)
{
    struct remote *remote = state;

    return remote->ops->load(remote->state, parameters, momenta, statistics);
}

static int remote_save(void *state, float *parameters, float *momenta, float *statistics,
                       float *gradients)
{
    struct remote *remote = state;

    return remote->ops->save(remote->state, parameters, momenta, statistics, gradients);
}

static int remote_run(void *state, const struct backend_pass *pass, struct backend_loss *loss)
{
    struct remote *remote = state;

    return remote->ops->run(remote->state, pass, loss);
}

static int remote_update(void *state, const struct backend_update *update)
{
    struct remote *remote = state;

    return remote->ops->update(remote->state, update);
}

static void remote_forget(void *state)
{
    struct remote *remote = state;

    if (remote->state)
        remote->ops->forget(remote->state);
}

static void *remote_allocate(void *state, size_t bytes)
{
    struct remote *remote = state;

    return remote->ops->allocate(remote->state, bytes);
}

static void remote_release(void *state, void *memory)
{
    struct remote *remote = state;

    remote->ops->release(remote->state, memory);
}

static void remote_memory(void *state, struct backend_memory *memory)
{
    struct remote *remote = state;

    remote->ops->memory(remote->state, memory);
}

static int remote_schedule(const void *settings, const struct schedule_request *request,
                           struct schedule *schedule)
{
    const struct backend_ops *ops = module_ops();

    if (!ops)
        return -ENODEV;
    if (!ops->schedule)
        return fail(ENOTSUP, "backend cuda lists no steps");
    return ops->schedule(settings, request, schedule);
}

const struct backend_ops backend_cuda = {
    .plugin = {.name = "cuda",
               .summary = "NVIDIA GPUs: cuDNN and own kernels, in FP16, BF16, TF32 or FP32; "
                          "INT8 inference",
               .options = cuda_options,
               .settings_size = sizeof(struct cuda_settings),
               .state_size = sizeof(struct remote),
               .usable = remote_usable},
    .open = remote_open,
    .close = remote_close,
    .load = remote_load,
    .save = remote_save,
    .run = remote_run,
    .forget = remote_forget,
    .update = remote_update,
    .allocate = remote_allocate,
    .release = remote_release,
    .memory = remote_memory,
    .schedule = remote_schedule,
};
