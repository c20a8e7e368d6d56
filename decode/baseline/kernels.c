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

/* ---- in plain C, for any CPU; the reference of the others ---- */

#define BASELINE_NAME(name) plain_##name
#define BASELINE_TARGET
#define BASELINE_AT_END(entry, a, x, b, y, c, z) \
    do {                                         \
        if ((entry)&0x80) {                      \
            a = x;                               \
            b = y;                               \
            c = z;                               \
        }                                        \
    } while (0)

static bool plain_idct(const struct idct_block *blocks, size_t count,
                       const struct idct_quantisers *quantisers, size_t stride)
{
    for (size_t i = 0; i < count; i++)
        baseline_idct_reference(&blocks[i], quantisers, stride);
    return true;
}

#define BASELINE_KERNELS baseline_kernels_c
#include "decode/baseline/kernels_template.h"
