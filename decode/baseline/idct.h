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

enum { IDCT_BLOCKS = 64 }; /* at most per call */

/* 64 coefficients in zigzag order, and where their samples go. */
struct idct_block {
    const int16_t *coefficients;
    uint8_t *output;
};

/* The same ones in each order that a level wants. */
struct idct_quantisers {
    uint16_t natural[64], zigzag[64];
    uint16_t twice[8][16]; /* each eight of zigzag, for two blocks side by side */
};

void baseline_idct_prepare(struct idct_quantisers *quantisers, const uint16_t natural[64]);

/* Transform to 8 x 8 samples, or to fewer: 4 x 4, 2 x 2 or 1 x 1. All outputs have the same stride.
 * Returns false, the samples then arbitrary, if libjpeg's plain and vector code for fewer samples
 * may differ, since coefficients are as no encoder writes them. */
typedef bool idct_each(const struct idct_block *blocks, size_t count,
                       const struct idct_quantisers *quantisers, size_t stride);

/* Zigzag position of each coefficient in natural order. */
extern const uint16_t baseline_idct_positions[64];

/* The same in the order of vector code: idct_template.h says which. Of the low 4 x 4 alone, only
 * the first 16 count. */
extern const uint16_t baseline_idct_pairs[64], baseline_idct_low_pairs[64];

/* Bytes of a row, its columns in that order, that coefficients [8 x from, 8 x from + 8) in zigzag
 * order contribute: an index into those, or 0x80 for a zero. For two blocks side by side. */
extern const uint8_t baseline_idct_zigzag[8][8][32], baseline_idct_low_zigzag[2][4][32];

/* All ones at zigzag positions outside of the low 4 x 4. */
extern const uint16_t baseline_idct_high[64];

/* Transform one block in plain C: the reference, and the only code for extreme coefficients. */
void baseline_idct_reference(const struct idct_block *block,
                             const struct idct_quantisers *quantisers, size_t stride);

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
enum { IDCT_TWO_SHIFT_1 = 13, IDCT_TWO_SHIFT_2 = 20 };   /* to 2 x 2 */

/* A dequantised DC beyond this may overflow where the two forms of pass 1 differ; two such values
 * do not where only their 16-bit sum would. */
enum { IDCT_SANE = 8191 };

/* Bound at which 1 x 1 samples clamp; beyond, libjpeg's table wraps. */
enum { IDCT_SANE_ONE = 4000 };

#endif
