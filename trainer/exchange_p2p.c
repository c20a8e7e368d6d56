/* SPDX-License-Identifier: Apache-2.0
 * The p2p exchange's front end: its options; the exchange is in the module iobench-cuda.so. */
#include "trainer/plugins.h"

#include "base/module.h"
#include "base/option.h"
#include "trainer/cuda_settings.h"

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
