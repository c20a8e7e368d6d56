/* SPDX-License-Identifier: Apache-2.0
 * The cpu backend's front end: its options; the backend is in the module iobench-cpu.so, as oneDNN
 * takes longer to load than the rest of the program. */
#include "trainer/plugins.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/option.h"
#include "base/plugin.h"
#include "base/random.h"
#include "base/thread.h"
#include "kernels/kernels.h"
#include "trainer/settings.h"
#include "trainer/quantise.h"

static const struct module module_cpu = {
    .file = "iobench-cpu.so",
    .variable = "IOBENCH_CPU_MODULE",
    .libraries = {NULL},
    .remedy = "install oneDNN (libdnnl)",
};

static const char *const precisions[] = {[CPU_FP32] = "fp32", [CPU_BF16] = "bf16", NULL};

static const char *const gradients[] = {[CPU_GRADIENTS_AUTO] = "auto",
                                        [CPU_GRADIENTS_PRODUCTS] = "products",
                                        [CPU_GRADIENTS_CONVOLUTIONS] = "convolutions",
                                        NULL};

static const struct option_spec cpu_options[] = {
    {"precision", 0, OPTION_CHOICE, offsetof(struct cpu_settings, precision), .fallback = "fp32",
     .choices = precisions,
     .summary = "precision of layers; weights are kept and updated in FP32; bf16 needs a CPU with "
                "AVX512-BF16 or AMX"},
    {"gradients", 0, OPTION_CHOICE, offsetof(struct cpu_settings, gradients), .fallback = "auto",
     .choices = gradients,
     .summary = "how to compute gradients of 1 x 1 convolutions' weights; products: as matrix "
                "products with a row per pixel; auto: products in bf16 where images are such rows "
                "anyway, as with AMX"},
    {0},
};

/* A function of each file that the module calls: referenced here so that every program that can
 * load the module links them. */
typedef void (*any_function)(void);
__attribute__((used)) static const any_function for_the_module[] = {
    (any_function)backend_rehearse, (any_function)clock_now_ns,     (any_function)fail,
    (any_function)graph_fold_norm,  (any_function)kernel_normalise, (any_function)memory_zeroed,
    (any_function)quantise_layer,   (any_function)random_hash,      (any_function)thread_cpu_count};

const struct backend_ops backend_cpu = {
    .plugin = {.name = "cpu",
               .summary = "oneDNN on this machine's CPUs, in FP32 or BF16; INT8 inference",
               .options = cpu_options,
               .settings_size = sizeof(struct cpu_settings),
               .module = &module_cpu,
               .symbol = "iobench_backend_cpu"},
};
