/* SPDX-License-Identifier: Apache-2.0
 * The options of the transports between GPUs: parsed by the program, used by the modules. */
#ifndef IOBENCH_CMD_NET_GPU_SETTINGS_H
#define IOBENCH_CMD_NET_GPU_SETTINGS_H

#include "base/option.h"

#include <stdint.h>

struct net_gpu_settings {
    uint64_t device; /* of those CUDA_VISIBLE_DEVICES leaves */
};

extern const struct option_spec gpu_options[];

#endif
