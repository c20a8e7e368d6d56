/* SPDX-License-Identifier: Apache-2.0
 * The options of the cuda backend: parsed by the program, used by its module. */
#ifndef IOBENCH_TRAINER_CUDA_SETTINGS_H
#define IOBENCH_TRAINER_CUDA_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

enum cuda_precision { CUDA_FP32, CUDA_TF32, CUDA_FP16, CUDA_BF16 };
enum cuda_fusion { CUDA_FUSE_AUTO, CUDA_FUSE_NONE, CUDA_FUSE_ALL };

struct cuda_settings {
    int precision;       /* enum cuda_precision */
    uint64_t device;     /* of those CUDA_VISIBLE_DEVICES leaves */
    bool graph;          /* a whole step is one CUDA graph */
    bool deterministic;  /* only algorithms that give the same bits again */
    uint64_t ahead;      /* batches that are uploaded while another one computes */
    uint64_t tournament; /* engines of cuDNN that compete for a layer */
    int fusion;          /* enum cuda_fusion */
    char *plans;         /* where chosen plans are kept; "none" */
};

#endif
