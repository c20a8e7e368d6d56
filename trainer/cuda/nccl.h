/* SPDX-License-Identifier: Apache-2.0
 *
 * nccl: the interface of the module iobench-nccl.so: sums over the GPUs of all ranks on a stream of
 * its own, ordered with the backend's by events. A captured step contains both. The ranks have
 * already found each other. One thread.
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
    /* Wait for the other ranks. Close it in either case: before the gradients are freed and after
     * all graphs that captured ready(). */
    int (*open)(void *state, const struct nccl_site *site);
    void (*close)(void *state, bool failed);
    int (*ready)(void *state, uint64_t done);
    int (*finish)(void *state); /* reports asynchronous errors */
};

#endif
