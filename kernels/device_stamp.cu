/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/launch.cuh"

#ifdef KERNELS_EMULATED
#include <time.h>
#endif

namespace {

struct stamp {
    uint64_t *moment;

    KERNEL_CODE void each(uint32_t) const
    {
#ifdef __CUDA_ARCH__
        uint64_t now;
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
        *moment = now;
#elif defined KERNELS_EMULATED
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        *moment = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
#endif
    }
};

} // namespace

int device_stamp(uint64_t *moment, void *stream)
{
    return launch_each("stamp", stamp{moment}, 1, stream);
}
