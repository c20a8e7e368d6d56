/* SPDX-License-Identifier: Apache-2.0
 *
 * progressive: all scans of a progressive image (ITU-T T.81, annex G), into coefficients of the
 * whole image, which are transformed afterwards as those of a baseline image are.
 *
 * Most blocks of most scans are empty, so a block without AC coefficients is a DC value and a mask
 * alone, and runs of such blocks cost nothing. What libjpeg would warn of, and what it would smooth
 * since bits are missing at the end, is left to it.
 */
#ifndef IOBENCH_DECODE_BASELINE_PROGRESSIVE_H
#define IOBENCH_DECODE_BASELINE_PROGRESSIVE_H

#include "decode/baseline/mcus.h"

/* Return how many scans there are at most, from the data of the first to the end of the file. */
uint32_t baseline_progressive_scans(const uint8_t *from, const uint8_t *end);

/* Returns 0 or BASELINE_OTHER. */
int baseline_progressive_decode(struct baseline *decoder);

#endif
