/* SPDX-License-Identifier: Apache-2.0
 *
 * All kernels of a level, as the constant BASELINE_KERNELS. Included by kernels_LEVEL.c, which
 * defines what each template wants; with BASELINE_NOT_PROGRESSIVE the level has none for scans of
 * progressive images.
 */
#include "decode/baseline/entropy_template.h"
#include "decode/baseline/colour_template.h"
#ifndef BASELINE_NOT_PROGRESSIVE
#include "decode/baseline/progressive_template.h"
#endif
#ifdef IDCT_VECTOR
#include "decode/baseline/idct_template.h"
#endif
#include "decode/baseline/reduced_template.h"

const struct kernels BASELINE_KERNELS = {
    .run = BASELINE_NAME(run),
    .skip = BASELINE_NAME(skip),
    .sum_dc = BASELINE_NAME(sum_dc),
#ifndef BASELINE_NOT_PROGRESSIVE
    .first_ac = BASELINE_NAME(first_ac),
    .refine_ac = BASELINE_NAME(refine_ac),
#endif
    .idct = BASELINE_NAME(idct),
    .idct_to_four = BASELINE_NAME(to_four),
    .idct_to_two = BASELINE_NAME(to_two),
    .idct_to_one = BASELINE_NAME(to_one),
    .blend = BASELINE_NAME(blend),
    .twice = BASELINE_NAME(double),
    .quarter = BASELINE_NAME(quarter),
    .rgbx = BASELINE_NAME(rgbx),
    .rgbx_twice = BASELINE_NAME(rgbx_twice),
    .grey = BASELINE_NAME(grey),
};
