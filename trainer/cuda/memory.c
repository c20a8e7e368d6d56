/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/cuda/memory.h"

#include "trainer/cuda/runtime.h"

#include <stddef.h>

void *cuda_allocate(struct cuda_memory *memory, uint64_t bytes)
{
    void *allocated = runtime_allocate(bytes);

    if (allocated)
        memory->device_bytes += bytes;
    return allocated;
}

void *cuda_pin(struct cuda_memory *memory, uint64_t bytes)
{
    void *pinned = runtime_pin(bytes);

    if (pinned)
        memory->pinned_bytes += bytes;
    return pinned;
}
