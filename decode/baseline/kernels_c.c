/* SPDX-License-Identifier: Apache-2.0
 * The kernels in plain C, for any CPU; the reference of the others. */
#include "decode/baseline/kernels.h"

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
