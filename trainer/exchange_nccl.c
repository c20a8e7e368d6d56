/* SPDX-License-Identifier: Apache-2.0
 * The nccl exchange's front end: its options; the exchange is in the module iobench-nccl.so. */
#include "trainer/plugins.h"

#include "base/option.h"
#include "base/plugin.h"
#include "trainer/settings.h"

static const char *const wires[] = {[EXCHANGE_FP32] = "fp32", [EXCHANGE_FP16] = "fp16", NULL};

/* NCCL has 64 channels. */
static const struct option_spec nccl_options[] = {
    {"ctas", 0, OPTION_COUNT, offsetof(struct nccl_settings, ctas), .fallback = "auto",
     .zero = "auto", .maximum = 64,
     .summary = "multiprocessors that NCCL may take from compute (maxCTAs); auto: 16 with several "
                "buckets, NCCL's own choice with one"},
    {"wire", 0, OPTION_CHOICE, offsetof(struct nccl_settings, wire), .fallback = "fp32",
     .choices = wires,
     .summary = "type in which gradients are sent and added up: fp16 halves the bytes, and rounds"},
    {0},
};

static const struct module module_nccl = {
    .file = "iobench-nccl.so",
    .variable = "IOBENCH_NCCL_MODULE",
    .libraries = {"libcuda.so.1", "libnccl.so.2"},
    .remedy = "install it (PyTorch's wheels bring it), or add its folder to LD_LIBRARY_PATH",
};

const struct exchange_ops exchange_nccl = {
    .plugin = {.name = "nccl",
               .summary = "NCCL's all-reduce between GPUs, a bucket at a time behind the backward "
                          "pass",
               .options = nccl_options,
               .settings_size = sizeof(struct nccl_settings),
               .module = &module_nccl,
               .symbol = "iobench_exchange_nccl"},
};
