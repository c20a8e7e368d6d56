/* SPDX-License-Identifier: Apache-2.0
 *
 * idct: dequantisation and the inverse DCT, the accurate integer one of libjpeg ("islow"). Equal to
 * libjpeg-turbo's vector code for x86 for any coefficients: products and sums of inputs wrap to 16
 * bits, results of both passes saturate.
 */
#ifndef IOBENCH_DECODE_BASELINE_IDCT_H
#define IOBENCH_DECODE_BASELINE_IDCT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { IDCT_BLOCKS = 4 }; /* per call */

/* 64 coefficients each in zigzag order, quantisers in natural order; a block may be given more than
 * once. All outputs have the same stride. */
struct idct_blocks {
    const int16_t *coefficients[IDCT_BLOCKS];
    uint8_t *output[IDCT_BLOCKS];
};

/* To 8 x 8 samples, or to fewer: 4 x 4, 2 x 2 or 1 x 1. Returns false, the samples then arbitrary,
 * if libjpeg's plain and vector code for fewer samples may differ, since coefficients are as no
 * encoder writes them. */
typedef bool idct_four(const struct idct_blocks *blocks, const uint16_t *quantisers, size_t stride);

/* Zigzag position of each coefficient in natural order. */
extern const uint16_t baseline_idct_positions[64];

/* Bytes of row `row` in natural order that coefficients [8 x from, 8 x from + 8) in zigzag order
 * contribute: an index into those, or 0x80 for a zero. For two blocks side by side. */
extern const uint8_t baseline_idct_zigzag[8][8][32];

/* One block, in plain C: the reference, and the only code for extreme coefficients. */
void baseline_idct_reference(const int16_t *coefficients, const uint16_t *quantisers,
                             uint8_t *output, size_t stride);

/* Constants with 13 fractional bits. */
enum {
    IDCT_0_211 = 1730,
    IDCT_0_298 = 2446,
    IDCT_0_390 = 3196,
    IDCT_0_509 = 4176,
    IDCT_0_541 = 4433,
    IDCT_0_601 = 4926,
    IDCT_0_720 = 5906,
    IDCT_0_765 = 6270,
    IDCT_0_850 = 6967,
    IDCT_0_899 = 7373,
    IDCT_1_061 = 8697,
    IDCT_1_175 = 9633,
    IDCT_1_272 = 10426,
    IDCT_1_451 = 11893,
    IDCT_1_501 = 12299,
    IDCT_1_847 = 15137,
    IDCT_1_961 = 16069,
    IDCT_2_053 = 16819,
    IDCT_2_172 = 17799,
    IDCT_2_562 = 20995,
    IDCT_3_072 = 25172,
    IDCT_3_624 = 29692,
};

enum { IDCT_SHIFT_1 = 11, IDCT_SHIFT_2 = 18 };           /* of the two passes */
enum { IDCT_FOUR_SHIFT_1 = 12, IDCT_FOUR_SHIFT_2 = 19 }; /* to 4 x 4 samples */

/* A dequantised DC beyond this may overflow where the two forms of pass 1 differ. */
enum { IDCT_SANE = 8191 };

/* Where 1 x 1 samples clamp; beyond, libjpeg's table wraps. */
enum { IDCT_SANE_ONE = 4000 };

#endif
