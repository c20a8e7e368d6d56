/* SPDX-License-Identifier: Apache-2.0
 *
 * peer: the interface of the p2p exchange to the module iobench-cuda.so: floats on one process's
 * GPU that the GPUs of other processes on this host read. Knows no ranks: the caller orders reads
 * and writes. One thread. 0 or a negative errno with a reason.
 */
#ifndef IOBENCH_TRAINER_CUDA_PEER_H
#define IOBENCH_TRAINER_CUDA_PEER_H

#include "trainer/cuda/runtime.h"

#include <stddef.h>

struct peer_site {
    float *floats;
    uint64_t count;
    uint32_t device;
};

struct peer_ops {
    size_t state_size; /* zeroed by the caller */
    /* handle: lets other processes map the floats. Close it in either case. */
    int (*open)(void *state, const struct peer_site *site, uint8_t handle[RUNTIME_HANDLE_BYTES]);
    void (*close)(void *state);
    /* Map the floats of another process; leave() before that process closes. */
    int (*reach)(const uint8_t handle[RUNTIME_HANDLE_BYTES], void **theirs);
    void (*leave)(void *theirs);
    /* Copy their floats [start, start + count) into ours, or add them. Returns when done. */
    int (*pull)(void *state, const void *theirs, uint64_t start, uint64_t count, bool adds);
};

#endif
