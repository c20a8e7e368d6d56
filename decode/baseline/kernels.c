/* SPDX-License-Identifier: Apache-2.0 */
#include "decode/baseline/kernels.h"

int baseline_kernels_best_level(void)
{
#if defined KERNELS_X86
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi2"))
        return 0;
    return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") ? 2 : 1;
#elif defined KERNELS_NEON
    return 1;
#else
    return 0;
#endif
}

const struct kernels *baseline_kernels_progressive(const struct kernels *kernels)
{
#if defined KERNELS_X86
    if (__builtin_cpu_is("amdfam17h"))
        return &baseline_kernels_c;
    if (kernels == &baseline_kernels_avx512)
        return &baseline_kernels_avx2;
#endif
    return kernels;
}

const struct kernels *baseline_kernels_of(int level)
{
    static const struct kernels *const levels[] = {
        &baseline_kernels_c,
#if defined KERNELS_X86
        &baseline_kernels_avx2,
        &baseline_kernels_avx512,
#elif defined KERNELS_NEON
        &baseline_kernels_neon,
#endif
    };

    return levels[level];
}
