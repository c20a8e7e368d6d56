/* SPDX-License-Identifier: Apache-2.0
 * The front ends of the cuda backend and of the p2p exchange: their options; both are in the module
 * iobench-cuda.so. A program built with CUDA therefore starts on machines without it. */
#include "trainer/plugins.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/option.h"
#include "base/plugin.h"
#include "base/random.h"
#include "kernels/kernels.h"
#include "trainer/settings.h"
#include "trainer/quantise.h"

const struct module module_cuda = {
    .file = "iobench-cuda.so",
    .variable = "IOBENCH_CUDA_MODULE",
    .libraries = {"libcuda.so.1", "libcudnn.so.9"},
    .remedy = "install it (PyTorch's wheels bring it), or add its folder to LD_LIBRARY_PATH",
};

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
     .fallback = "no", .summary = "only algorithms that reproduce the same bits; slower"},
    {"tournament", 0, OPTION_COUNT, offsetof(struct cuda_settings, tournament), .fallback = "64",
     .minimum = 1, .maximum = 64, .summary = "engines timed per layer; 1: cuDNN's choice"},
    {"fusion", 0, OPTION_CHOICE, offsetof(struct cuda_settings, fusion), .fallback = "auto",
     .choices = fusions,
     .summary = "BN and ReLU in convolutions: where it is faster, nowhere, or wherever possible"},
    {"loss-scale", 0, OPTION_COUNT, offsetof(struct cuda_settings, loss_scale), .fallback = "1",
     .minimum = 1, .maximum = 32768,
     .summary = "with fp16, multiply the loss by this, and divide the gradients of weights again: "
                "small gradients of networks without BN then do not vanish; a power of two"},
    {"plans", 0, OPTION_TEXT, offsetof(struct cuda_settings, plans), .metavar = "FILE",
     .reach = OPTION_WRITES,
     .summary = "cache file of chosen cuDNN plans, or none; default: in the user's cache folder"},
    {0},
};

/* A function of each file that the module calls: referenced here so that every program that can
 * load the module links them. */
typedef void (*any_function)(void);
__attribute__((used)) static const any_function for_the_module[] = {
    (any_function)backend_rehearse,   (any_function)clock_now_ns, (any_function)fail,
    (any_function)kernel_dropout_key, (any_function)memory_array, (any_function)quantise_plan,
    (any_function)random_mix,         (any_function)ranks_meet,   (any_function)ranks_share};

const struct backend_ops backend_cuda = {
    .plugin = {.name = "cuda",
               .summary = "NVIDIA GPUs: cuDNN and own kernels, in FP16, BF16, TF32 or FP32; "
                          "INT8 inference",
               .options = cuda_options,
               .settings_size = sizeof(struct cuda_settings),
               .module = &module_cuda,
               .symbol = "iobench_backend_cuda"},
    .on_device = true,
};

/* ---- the p2p exchange ---- */

static const char *const shapes[] = {[P2P_RING] = "ring", [P2P_TREE] = "tree", NULL};

static const struct option_spec p2p_options[] = {
    {"shape", 0, OPTION_CHOICE, offsetof(struct p2p_settings, shape), .fallback = "ring",
     .choices = shapes, .summary = "which ranks copy from each other"},
    {0},
};

const struct exchange_ops exchange_p2p = {
    .plugin = {.name = "p2p",
               .summary = "copies between the GPUs of a host after the backward pass",
               .options = p2p_options,
               .settings_size = sizeof(struct p2p_settings),
               .module = &module_cuda,
               .symbol = "iobench_exchange_p2p"},
};
