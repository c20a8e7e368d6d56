/* SPDX-License-Identifier: Apache-2.0
 *
 * memory: allocates device memory and pinned host memory, and counts both. NULL with a reason.
 */
#ifndef IOBENCH_TRAINER_CUDA_MEMORY_H
#define IOBENCH_TRAINER_CUDA_MEMORY_H

#include <stdint.h>

struct cuda_memory {
    uint64_t device_bytes, pinned_bytes; /* allocated so far */
};

/* Free with runtime_release() and runtime_unpin(). */
void *cuda_allocate(struct cuda_memory *memory, uint64_t bytes);
void *cuda_pin(struct cuda_memory *memory, uint64_t bytes);

#endif
