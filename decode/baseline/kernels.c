/* SPDX-License-Identifier: Apache-2.0 */
#include "decode/baseline/kernels.h"

int kernels_best_level(void)
{
#ifdef __x86_64__
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi2"))
        return 0;
    return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") ? 2 : 1;
#else
    return 0;
#endif
}

const struct kernels *kernels_of(int level)
{
#ifdef __x86_64__
    static const struct kernels *const levels[] = {&kernels_c, &kernels_avx2, &kernels_avx512};

    return levels[level];
#else
    (void)level;
    return &kernels_c;
#endif
}
