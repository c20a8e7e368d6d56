/* SPDX-License-Identifier: Apache-2.0
 *
 * peer: what the p2p exchange takes of the module iobench-cuda.so: floats on this process' GPU that
 * the GPUs of other processes on this host may read, and the other way round. It knows no ranks:
 * who may read when is the caller's. One thread. 0 or a negative errno with a reason.
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
    /* handle: tells other processes where the floats are. Close it in either case. */
    int (*open)(void *state, const struct peer_site *site, uint8_t handle[RUNTIME_HANDLE_BYTES]);
    void (*close)(void *state);
    /* The floats of another process; leave them before it closes. */
    int (*reach)(const uint8_t handle[RUNTIME_HANDLE_BYTES], void **theirs);
    void (*leave)(void *theirs);
    /* Floats [start, start + count) of theirs into ours, or added to ours; done when it returns. */
    int (*pull)(void *state, const void *theirs, uint64_t start, uint64_t count, bool adds);
};

#endif
