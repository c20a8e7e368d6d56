/* SPDX-License-Identifier: Apache-2.0
 *
 * The inverse DCT of several blocks side by side, each in a 128-bit lane; all operations stay in
 * their lane. Compiled by kernels_LEVEL.c, which defines
 *     IDCT_VECTOR, IDCT_LANES     the type, and its blocks
 *     IDCT_OP(name)               the intrinsic of this width
 *     IDCT_NATURAL(blocks, v)     load rows of each block, in natural order; or
 *     IDCT_LOAD(blocks, row)      load eight coefficients, 8 x `row`, of each block, and
 *     IDCT_BYTES(at)              load a vector
 *     IDCT_EXTREME(v)             is a 16-bit value outside of IDCT_SANE?
 *     IDCT_PAIRS                  type of half the columns of two rows, and what is done with it;
 *                                 the default is that of x86
 *     IDCT_STORE(output, stride, rows, v)  8 bytes of rows `rows` and `rows` + 1 of each block
 */
#include "decode/baseline/idct.h"

#include <stdbool.h>
#include <string.h>

#ifndef IDCT_PAIRS
#define IDCT_PAIRS IDCT_VECTOR
#define IDCT_JOIN(half, a, b) IDCT_OP(unpack##half##_epi16)(a, b)
#define IDCT_BOTH(a, b) \
    IDCT_OP(set1_epi32)((int32_t)((uint32_t)(a)&0xffff) | (int32_t)((uint32_t)(b) << 16))
/* a x the first row + b x the second, in 32 bits. */
#define IDCT_PRODUCTS(pairs, a, b) IDCT_OP(madd_epi16)(pairs, IDCT_BOTH(a, b))
/* Half of v, in 32 bits, x 2^bits. */
#define IDCT_WIDEN(half, v, bits) \
    IDCT_OP(srai_epi32)(IDCT_OP(unpack##half##_epi16)(IDCT_OP(set1_epi32)(0), v), 16 - (bits))

BASELINE_TARGET static inline IDCT_VECTOR BASELINE_NAME(descale)(IDCT_VECTOR low, IDCT_VECTOR high,
                                                                 int shift)
{
    const __m128i count = _mm_cvtsi32_si128(shift);

    return IDCT_OP(packs_epi32)(IDCT_OP(sra_epi32)(low, count), IDCT_OP(sra_epi32)(high, count));
}
#endif

/* Constants a, b and c, d: two sums of products of the same inputs, for half the columns. */
#define IDCT_SUMS(in, a, b, c, d, first, second)       \
    const IDCT_VECTOR first = IDCT_PRODUCTS(in, a, b); \
    const IDCT_VECTOR second = IDCT_PRODUCTS(in, c, d)

/* Half the columns: pairs of inputs interleaved, as wide sums. */
#define IDCT_HALF(half, sum, difference, out)                                                      \
    do {                                                                                           \
        const IDCT_PAIRS in26 = IDCT_JOIN(half, v[2], v[6]), in71 = IDCT_JOIN(half, v[7], v[1]);   \
        const IDCT_PAIRS in53 = IDCT_JOIN(half, v[5], v[3]), s34 = IDCT_JOIN(half, s3, s4);        \
        IDCT_SUMS(in26, IDCT_0_541, IDCT_0_541 - IDCT_1_847, IDCT_0_541 + IDCT_0_765, IDCT_0_541,  \
                  e2, e3);                                                                         \
        IDCT_SUMS(s34, IDCT_1_175 - IDCT_1_961, IDCT_1_175, IDCT_1_175, IDCT_1_175 - IDCT_0_390,   \
                  z3, z4);                                                                         \
        IDCT_SUMS(in71, IDCT_0_298 - IDCT_0_899, -IDCT_0_899, -IDCT_0_899,                         \
                  IDCT_1_501 - IDCT_0_899, o0, o3);                                                \
        IDCT_SUMS(in53, IDCT_2_053 - IDCT_2_562, -IDCT_2_562, -IDCT_2_562,                         \
                  IDCT_3_072 - IDCT_2_562, o1, o2);                                                \
        const IDCT_VECTOR wide = IDCT_OP(add_epi32)(IDCT_WIDEN(half, sum, 13), round);             \
        const IDCT_VECTOR other = IDCT_OP(add_epi32)(IDCT_WIDEN(half, difference, 13), round);     \
        const IDCT_VECTOR even[4] = {IDCT_OP(add_epi32)(wide, e3), IDCT_OP(add_epi32)(other, e2),  \
                                     IDCT_OP(sub_epi32)(other, e2), IDCT_OP(sub_epi32)(wide, e3)}; \
        const IDCT_VECTOR odd[4] = {IDCT_OP(add_epi32)(o3, z4), IDCT_OP(add_epi32)(o2, z3),        \
                                    IDCT_OP(add_epi32)(o1, z4), IDCT_OP(add_epi32)(o0, z3)};       \
        for (int i = 0; i < 4; i++) {                                                              \
            out[i] = IDCT_OP(add_epi32)(even[i], odd[i]);                                          \
            out[7 - i] = IDCT_OP(sub_epi32)(even[i], odd[i]);                                      \
        }                                                                                          \
    } while (0)

BASELINE_TARGET static inline void BASELINE_NAME(pass)(IDCT_VECTOR v[8], int shift)
{
    const IDCT_VECTOR round = IDCT_OP(set1_epi32)(1 << (shift - 1)); /* once for all sums */
    const IDCT_VECTOR sum = IDCT_OP(add_epi16)(v[0], v[4]);
    const IDCT_VECTOR difference = IDCT_OP(sub_epi16)(v[0], v[4]);
    const IDCT_VECTOR s3 = IDCT_OP(add_epi16)(v[7], v[3]), s4 = IDCT_OP(add_epi16)(v[5], v[1]);
    IDCT_VECTOR low[8], high[8];

    IDCT_HALF(lo, sum, difference, low);
    IDCT_HALF(hi, sum, difference, high);
    for (int i = 0; i < 8; i++)
        v[i] = BASELINE_NAME(descale)(low[i], high[i], shift);
}

BASELINE_TARGET static inline void BASELINE_NAME(transpose)(IDCT_VECTOR v[8])
{
    IDCT_VECTOR a[8], b[8];

    for (int i = 0; i < 4; i++) {
        a[2 * i] = IDCT_OP(unpacklo_epi16)(v[2 * i], v[2 * i + 1]);
        a[2 * i + 1] = IDCT_OP(unpackhi_epi16)(v[2 * i], v[2 * i + 1]);
    }
    for (int i = 0; i < 2; i++) { /* columns 0, 1; 2, 3; 4, 5; 6, 7 of four rows */
        b[4 * i] = IDCT_OP(unpacklo_epi32)(a[4 * i], a[4 * i + 2]);
        b[4 * i + 1] = IDCT_OP(unpackhi_epi32)(a[4 * i], a[4 * i + 2]);
        b[4 * i + 2] = IDCT_OP(unpacklo_epi32)(a[4 * i + 1], a[4 * i + 3]);
        b[4 * i + 3] = IDCT_OP(unpackhi_epi32)(a[4 * i + 1], a[4 * i + 3]);
    }
    for (int i = 0; i < 4; i++) {
        v[2 * i] = IDCT_OP(unpacklo_epi64)(b[i], b[i + 4]);
        v[2 * i + 1] = IDCT_OP(unpackhi_epi64)(b[i], b[i + 4]);
    }
}

/* Columns of eight values to rows of bytes, two a vector. */
BASELINE_TARGET static inline void BASELINE_NAME(pack_rows)(const IDCT_VECTOR v[8],
                                                            IDCT_VECTOR rows[4])
{
    const IDCT_VECTOR c04 = IDCT_OP(packs_epi16)(v[0], v[4]);
    const IDCT_VECTOR c15 = IDCT_OP(packs_epi16)(v[1], v[5]);
    const IDCT_VECTOR c26 = IDCT_OP(packs_epi16)(v[2], v[6]);
    const IDCT_VECTOR c37 = IDCT_OP(packs_epi16)(v[3], v[7]);
    const IDCT_VECTOR c02 = IDCT_OP(unpacklo_epi8)(c04, c26);
    const IDCT_VECTOR c46 = IDCT_OP(unpackhi_epi8)(c04, c26);
    const IDCT_VECTOR c13 = IDCT_OP(unpacklo_epi8)(c15, c37);
    const IDCT_VECTOR c57 = IDCT_OP(unpackhi_epi8)(c15, c37);
    const IDCT_VECTOR upper_left = IDCT_OP(unpacklo_epi8)(c02, c13);
    const IDCT_VECTOR lower_left = IDCT_OP(unpackhi_epi8)(c02, c13);
    const IDCT_VECTOR upper_right = IDCT_OP(unpacklo_epi8)(c46, c57);
    const IDCT_VECTOR lower_right = IDCT_OP(unpackhi_epi8)(c46, c57);

    rows[0] = IDCT_OP(unpacklo_epi32)(upper_left, upper_right);
    rows[1] = IDCT_OP(unpackhi_epi32)(upper_left, upper_right);
    rows[2] = IDCT_OP(unpacklo_epi32)(lower_left, lower_right);
    rows[3] = IDCT_OP(unpackhi_epi32)(lower_left, lower_right);
}

#ifndef IDCT_NATURAL
/* Row `row` of what eight coefficients in zigzag order, from 8 x `from`, contribute. */
#define IDCT_FROM(row, from) \
    IDCT_OP(shuffle_epi8)(zigzag[from], IDCT_BYTES(baseline_idct_zigzag[row][from]))
#define IDCT_OR(a, b) IDCT_OP(add_epi16)(a, b)
#define IDCT_OF_3(row, a, b, c) \
    IDCT_OR(IDCT_OR(IDCT_FROM(row, a), IDCT_FROM(row, b)), IDCT_FROM(row, c))
#define IDCT_OF_5(row, a, b, c, d, e) \
    IDCT_OR(IDCT_OR(IDCT_OF_3(row, a, b, c), IDCT_FROM(row, d)), IDCT_FROM(row, e))

/* Load blocks, and rearrange them in natural order. */
BASELINE_TARGET static inline void BASELINE_NAME(natural)(const int16_t *const *coefficients,
                                                          IDCT_VECTOR v[8])
{
    IDCT_VECTOR zigzag[8];

    for (int i = 0; i < 8; i++)
        zigzag[i] = IDCT_LOAD(coefficients, i);
    v[0] = IDCT_OF_3(0, 0, 1, 3);
    v[1] = IDCT_OF_5(1, 0, 1, 2, 3, 5);
    v[2] = IDCT_OF_5(2, 0, 1, 2, 3, 5);
    v[3] = IDCT_OF_5(3, 1, 2, 3, 5, 6);
    v[4] = IDCT_OF_5(4, 1, 2, 4, 5, 6);
    v[5] = IDCT_OF_5(5, 2, 4, 5, 6, 7);
    v[6] = IDCT_OF_5(6, 2, 4, 5, 6, 7);
    v[7] = IDCT_OF_3(7, 4, 6, 7);
}
#define IDCT_NATURAL(blocks, v) BASELINE_NAME(natural)(blocks, v)
#endif

/* Returns false, having written nothing, if a block is extreme. */
BASELINE_TARGET static bool BASELINE_NAME(idct_lanes)(const int16_t *const *coefficients,
                                                      const uint16_t *quantisers,
                                                      uint8_t *const *output, size_t stride)
{
    const IDCT_VECTOR center = IDCT_OP(set1_epi8)(-128);
    IDCT_VECTOR v[8], rows[4];

    IDCT_NATURAL(coefficients, v);
    for (int i = 0; i < 8; i++)
        v[i] = IDCT_OP(mullo_epi16)(v[i], IDCT_SPREAD(quantisers + 8 * i));
    if (IDCT_EXTREME(v[0]))
        return false;
    BASELINE_NAME(pass)(v, IDCT_SHIFT_1);
    BASELINE_NAME(transpose)(v);
    BASELINE_NAME(pass)(v, IDCT_SHIFT_2);
    BASELINE_NAME(pack_rows)(v, rows);
    for (int i = 0; i < 4; i++)
        IDCT_STORE(output, stride, 2 * i, IDCT_OP(add_epi8)(rows[i], center));
    return true;
}

BASELINE_TARGET static bool BASELINE_NAME(idct)(const struct idct_blocks *blocks,
                                                const uint16_t *quantisers, size_t stride)
{
    for (int i = 0; i < IDCT_BLOCKS; i += IDCT_LANES)
        if (!BASELINE_NAME(idct_lanes)(blocks->coefficients + i, quantisers, blocks->output + i,
                                       stride))
            for (int j = i; j < i + IDCT_LANES; j++)
                baseline_idct_reference(blocks->coefficients[j], quantisers, blocks->output[j],
                                        stride);
    return true;
}

/* ---- to 4 x 4 samples: without row and column 4 ---- */

#define IDCT_FOUR_HALF(half, v, shift, out)                                                   \
    do {                                                                                      \
        const IDCT_VECTOR round = IDCT_OP(set1_epi32)(1 << ((shift)-1));                      \
        const IDCT_PAIRS in26 = IDCT_JOIN(half, v[2], v[6]);                                  \
        const IDCT_PAIRS in13 = IDCT_JOIN(half, v[1], v[3]);                                  \
        const IDCT_PAIRS in57 = IDCT_JOIN(half, v[5], v[7]);                                  \
        const IDCT_VECTOR even = IDCT_PRODUCTS(in26, IDCT_1_847, -IDCT_0_765);                \
        IDCT_SUMS(in13, IDCT_2_562, IDCT_0_899, IDCT_1_061, -IDCT_2_172, outer13, inner13);   \
        IDCT_SUMS(in57, -IDCT_0_601, -IDCT_0_509, IDCT_1_451, -IDCT_0_211, outer57, inner57); \
        const IDCT_VECTOR wide = IDCT_OP(add_epi32)(IDCT_WIDEN(half, v[0], 14), round);       \
        const IDCT_VECTOR sum = IDCT_OP(add_epi32)(wide, even);                               \
        const IDCT_VECTOR difference = IDCT_OP(sub_epi32)(wide, even);                        \
        const IDCT_VECTOR outer = IDCT_OP(add_epi32)(outer13, outer57);                       \
        const IDCT_VECTOR inner = IDCT_OP(add_epi32)(inner13, inner57);                       \
        out[0] = IDCT_OP(add_epi32)(sum, outer);                                              \
        out[1] = IDCT_OP(add_epi32)(difference, inner);                                       \
        out[2] = IDCT_OP(sub_epi32)(difference, inner);                                       \
        out[3] = IDCT_OP(sub_epi32)(sum, outer);                                              \
    } while (0)

/* Four rows of eight values to eight columns, in the low halves. */
BASELINE_TARGET static inline void BASELINE_NAME(transpose_four)(const IDCT_VECTOR rows[4],
                                                                 IDCT_VECTOR v[8])
{
    const IDCT_VECTOR a[4] = {
        IDCT_OP(unpacklo_epi16)(rows[0], rows[1]), IDCT_OP(unpacklo_epi16)(rows[2], rows[3]),
        IDCT_OP(unpackhi_epi16)(rows[0], rows[1]), IDCT_OP(unpackhi_epi16)(rows[2], rows[3])};

    for (int i = 0; i < 2; i++) {
        v[4 * i] = IDCT_OP(unpacklo_epi32)(a[2 * i], a[2 * i + 1]);
        v[4 * i + 1] = IDCT_OP(unpackhi_epi64)(v[4 * i], v[4 * i]);
        v[4 * i + 2] = IDCT_OP(unpackhi_epi32)(a[2 * i], a[2 * i + 1]);
        v[4 * i + 3] = IDCT_OP(unpackhi_epi64)(v[4 * i + 2], v[4 * i + 2]);
    }
}

/* Columns of four sums to four rows of four bytes. */
BASELINE_TARGET static inline IDCT_VECTOR BASELINE_NAME(pack_four)(const IDCT_VECTOR sums[4])
{
    const IDCT_VECTOR c02 = BASELINE_NAME(descale)(sums[0], sums[2], IDCT_FOUR_SHIFT_2);
    const IDCT_VECTOR c13 = BASELINE_NAME(descale)(sums[1], sums[3], IDCT_FOUR_SHIFT_2);
    const IDCT_VECTOR left = IDCT_OP(unpacklo_epi16)(c02, c13);
    const IDCT_VECTOR right = IDCT_OP(unpackhi_epi16)(c02, c13);

    return IDCT_OP(add_epi8)(IDCT_OP(packs_epi16)(IDCT_OP(unpacklo_epi32)(left, right),
                                                  IDCT_OP(unpackhi_epi32)(left, right)),
                             IDCT_OP(set1_epi8)(-128));
}

BASELINE_TARGET static bool BASELINE_NAME(to_four)(const struct idct_blocks *blocks,
                                                   const uint16_t *quantisers, size_t stride)
{
    for (int i = 0; i < IDCT_BLOCKS; i += IDCT_LANES) {
        IDCT_VECTOR in[8], low[4], high[4], rows[4];
        uint8_t bytes[IDCT_LANES][4][4];
        IDCT_NATURAL(blocks->coefficients + i, in);
        for (int j = 0; j < 8; j++)
            in[j] = IDCT_OP(mullo_epi16)(in[j], IDCT_SPREAD(quantisers + 8 * j));
        if (IDCT_EXTREME(in[0]))
            return false;
        IDCT_FOUR_HALF(lo, in, IDCT_FOUR_SHIFT_1, low);
        IDCT_FOUR_HALF(hi, in, IDCT_FOUR_SHIFT_1, high);
        for (int j = 0; j < 4; j++)
            rows[j] = BASELINE_NAME(descale)(low[j], high[j], IDCT_FOUR_SHIFT_1);
        BASELINE_NAME(transpose_four)(rows, in);
        IDCT_FOUR_HALF(lo, in, IDCT_FOUR_SHIFT_2, low);
        const IDCT_VECTOR packed = BASELINE_NAME(pack_four)(low);
        memcpy(bytes, &packed, sizeof packed);
        for (int j = 0; j < IDCT_LANES; j++)
            for (int y = 0; y < 4; y++)
                memcpy(blocks->output[i + j] + (size_t)y * stride, bytes[j][y], 4);
    }
    return true;
}

#undef IDCT_FROM
#undef IDCT_OR
#undef IDCT_OF_3
#undef IDCT_OF_5
#undef IDCT_PAIRS
#undef IDCT_JOIN
#undef IDCT_PRODUCTS
#undef IDCT_WIDEN
#undef IDCT_SUMS
#undef IDCT_HALF
#undef IDCT_FOUR_HALF
