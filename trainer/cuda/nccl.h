/* SPDX-License-Identifier: Apache-2.0
 *
 * nccl: what the program takes of the module iobench-nccl.so: sums over the GPUs of all ranks, put
 * on a stream of its own that waits for the backend's and is waited for by it. In a captured step
 * both become part of the graph. The ranks know each other already. One thread.
 */
#ifndef IOBENCH_TRAINER_CUDA_NCCL_H
#define IOBENCH_TRAINER_CUDA_NCCL_H

#include "trainer/exchange.h"

#include <stddef.h>

enum { NCCL_ID_BYTES = 128 };

struct nccl_site {
    uint8_t id[NCCL_ID_BYTES]; /* of the first rank */
    uint32_t rank, ranks;
    struct exchange_config exchange;
};

struct nccl_ops {
    size_t state_size; /* zeroed by the caller */
    int (*identify)(uint8_t id[NCCL_ID_BYTES]);
    /* Waits for the other ranks. Close it in either case, before the gradients go, and after all
     * graphs that ready() became part of. */
    int (*open)(void *state, const struct nccl_site *site);
    void (*close)(void *state, bool failed);
    int (*ready)(void *state, uint64_t done);
    int (*finish)(void *state); /* did anything fail on the way? */
};

#endif
