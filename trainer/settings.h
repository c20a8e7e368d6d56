/* SPDX-License-Identifier: Apache-2.0
 * The options of backends and exchanges in modules: parsed by the program, used by the modules. */
#ifndef IOBENCH_TRAINER_SETTINGS_H
#define IOBENCH_TRAINER_SETTINGS_H

#include "base/plugin.h"

#include <stdbool.h>
#include <stdint.h>

enum cpu_precision { CPU_FP32, CPU_BF16 };

/* How gradients of the weights of 1 x 1 convolutions are computed. */
enum cpu_gradients { CPU_GRADIENTS_AUTO, CPU_GRADIENTS_PRODUCTS, CPU_GRADIENTS_CONVOLUTIONS };

struct cpu_settings {
    int precision; /* enum cpu_precision */
    int gradients; /* enum cpu_gradients */
};

extern const struct module module_cuda; /* iobench-cuda.so */

enum cuda_precision { CUDA_FP32, CUDA_TF32, CUDA_FP16, CUDA_BF16 };
enum cuda_fusion { CUDA_FUSE_AUTO, CUDA_FUSE_NONE, CUDA_FUSE_ALL };

struct cuda_settings {
    int precision;       /* enum cuda_precision */
    uint64_t device;     /* of those CUDA_VISIBLE_DEVICES leaves */
    bool graph;          /* a whole step is one CUDA graph */
    bool deterministic;  /* only algorithms that reproduce the same bits */
    uint64_t ahead;      /* batches uploaded while another one is computed */
    uint64_t tournament; /* cuDNN engines timed per layer */
    int fusion;          /* enum cuda_fusion */
    uint64_t loss_scale; /* FP16: gradients are computed as of that many times the loss */
    char *plans;         /* file of chosen plans; "none" */
};

enum p2p_shape { P2P_RING, P2P_TREE };

struct p2p_settings {
    int shape; /* enum p2p_shape */
};

struct nccl_settings {
    int wire;      /* enum exchange_wire */
    uint64_t ctas; /* thread blocks, one per multiprocessor, at most; 0: by the buckets */
};

#endif
