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
#include "decode/baseline/entropy_template.h"
#include "decode/baseline/colour_template.h"
#include "decode/baseline/progressive_template.h"
#include "decode/baseline/reduced_template.h"

static bool plain_idct(const struct idct_block *blocks, size_t count,
                       const struct idct_quantisers *quantisers, size_t stride)
{
    for (size_t i = 0; i < count; i++)
        baseline_idct_reference(&blocks[i], quantisers, stride);
    return true;
}

const struct kernels baseline_kernels_c = {
    .run = plain_run,
    .skip = plain_skip,
    .sum_dc = plain_sum_dc,
    .first_ac = plain_first_ac,
    .refine_ac = plain_refine_ac,
    .idct = plain_idct,
    .idct_to_four = plain_to_four,
    .idct_to_two = plain_to_two,
    .idct_to_one = plain_to_one,
    .blend = plain_blend,
    .twice = plain_double,
    .quarter = plain_quarter,
    .rgbx = plain_rgbx,
    .rgbx_twice = plain_rgbx_twice,
    .grey = plain_grey,
};
