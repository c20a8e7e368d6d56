/* SPDX-License-Identifier: Apache-2.0
 *
 * Inverse DCTs: vector code, then that for fewer samples. The first is of several blocks side by
 * side, each in a 128-bit lane; all operations stay in their lane. Both passes multiply pairs of
 * values and add up the products at once. Columns have an order, 0 4 2 6 and 7 1 3 5, in which pass
 * 1 writes what pass 2 pairs.
 *
 * A block without coefficients outside of the low 4 x 4, as are most of chroma, takes a shorter
 * way: half of pass 1, and no products of what is zero.
 *
 * Compiled by kernels_LEVEL.c, which defines, for vectors,
 *     IDCT_VECTOR, IDCT_LANES     the type, and its blocks
 *     IDCT_OP(name)               the intrinsic of this width
 *     IDCT_IS_LOW(block)          1 if no coefficient is outside of the low 4 x 4, else 0
 *     IDCT_LOAD(blocks, quantisers, in)      IDCT_PAIRS in[2][4], dequantised, of the left and the
 *                                 right columns: rows 0 and 4; 2, 6; 7, 1; 3, 5
 *     IDCT_LOAD_LOW(blocks, quantisers, in)  IDCT_PAIRS in[2], columns 0 2 1 3: rows 0 and 2; 1, 3
 *     IDCT_EXTREME(a, b), IDCT_EXTREME_FIRST(a, b)
 *                                 is a value of these pairs, or of their first rows, outside of
 *                                 IDCT_SANE?
 *     IDCT_SRAI(v, bits)          shift 32-bit values
 *     IDCT_SWAP(pairs)            the two of each pair
 *     IDCT_BLEND_ODD(a, b)        even 16-bit values of a, odd ones of b
 *     IDCT_SHUFFLE_PAIRS(a, b, which)  as _mm_shuffle_ps()
 *     IDCT_PAIRS                  a type, and what is done with it; the default is that of x86
 *     IDCT_STORE(blocks, stride, row, v)     8 bytes of rows `row` and `row` + 1 of each block
 */
#include "decode/baseline/kernels.h"

#include <stdbool.h>
#include <string.h>

#ifdef IDCT_VECTOR
#ifndef IDCT_PAIRS
#define IDCT_PAIRS IDCT_VECTOR
#define IDCT_BOTH(a, b) \
    IDCT_OP(set1_epi32)((int32_t)((uint32_t)(a)&0xffff) | (int32_t)((uint32_t)(b) << 16))
/* a x the first row + b x the second, in 32 bits. */
#define IDCT_PRODUCTS(pairs, a, b) IDCT_OP(madd_epi16)(pairs, IDCT_BOTH(a, b))
#define IDCT_ADD(a, b) IDCT_OP(add_epi16)(a, b)

/* Sum and difference of both rows, which wrap to 16 bits, x 2^13. */
BASELINE_TARGET static inline void BASELINE_NAME(wrapping)(IDCT_VECTOR pairs, IDCT_VECTOR *sum,
                                                           IDCT_VECTOR *difference)
{
    const IDCT_VECTOR turned = IDCT_SWAP(pairs);

    *sum = IDCT_PRODUCTS(IDCT_OP(add_epi16)(pairs, turned), 1 << 13, 0);
    *difference = IDCT_PRODUCTS(IDCT_OP(sub_epi16)(pairs, turned), 1 << 13, 0);
}
#define IDCT_WRAPPING(pairs, sum, difference) BASELINE_NAME(wrapping)(pairs, sum, difference)

BASELINE_TARGET static inline IDCT_VECTOR BASELINE_NAME(descale)(IDCT_VECTOR low, IDCT_VECTOR high,
                                                                 int shift)
{
    return IDCT_OP(packs_epi32)(IDCT_SRAI(low, shift), IDCT_SRAI(high, shift));
}

/* The upper halves of two vectors of 32 bits, in turns, shifted on by 16 - `bits`. A product does
 * it, which keeps the ports for shifts and shuffles free. */
#define IDCT_HIGHS(a, b, bits) \
    IDCT_OP(mulhi_epi16)       \
    (IDCT_BLEND_ODD(IDCT_OP(srli_epi32)(a, 16), b), IDCT_OP(set1_epi16)((int16_t)(1 << (bits))))

/* Two rows per vector: the left pairs of four rows, and the right ones. */
#define IDCT_TURN(upper, lower, left, right)            \
    do {                                                \
        left = IDCT_SHUFFLE_PAIRS(upper, lower, 0x88);  \
        right = IDCT_SHUFFLE_PAIRS(upper, lower, 0xdd); \
    } while (0)
#endif

/* Constants a, b and c, d: two sums of products of the same inputs. */
#define IDCT_SUMS(in, a, b, c, d, first, second)       \
    const IDCT_VECTOR first = IDCT_PRODUCTS(in, a, b); \
    const IDCT_VECTOR second = IDCT_PRODUCTS(in, c, d)

/* Sums in the order of the outputs, to be shifted. */
BASELINE_TARGET static inline void
BASELINE_NAME(butterflies)(const IDCT_VECTOR even[4], const IDCT_VECTOR odd[4], IDCT_VECTOR out[8])
{
    for (int i = 0; i < 4; i++) {
        out[i] = IDCT_OP(add_epi32)(even[i], odd[i]);
        out[7 - i] = IDCT_OP(sub_epi32)(even[i], odd[i]);
    }
}

/* Transform four lines of eight values into eight sums each. is_sane: values 0 and 4 are. */
BASELINE_TARGET static inline __attribute__((always_inline)) void
BASELINE_NAME(pass)(const IDCT_PAIRS in[4], int shift, bool is_sane, IDCT_VECTOR out[8])
{
    const IDCT_VECTOR round = IDCT_OP(set1_epi32)(1 << (shift - 1)); /* once for all sums */
    const IDCT_PAIRS s34 = IDCT_ADD(in[2], in[3]);
    IDCT_VECTOR sum, difference;

    if (is_sane) {
        sum = IDCT_PRODUCTS(in[0], 1 << 13, 1 << 13);
        difference = IDCT_PRODUCTS(in[0], 1 << 13, -(1 << 13));
    } else {
        IDCT_WRAPPING(in[0], &sum, &difference);
    }
    IDCT_SUMS(in[1], IDCT_0_541, IDCT_0_541 - IDCT_1_847, IDCT_0_541 + IDCT_0_765, IDCT_0_541, e2,
              e3);
    IDCT_SUMS(s34, IDCT_1_175 - IDCT_1_961, IDCT_1_175, IDCT_1_175, IDCT_1_175 - IDCT_0_390, z3,
              z4);
    IDCT_SUMS(in[2], IDCT_0_298 - IDCT_0_899, -IDCT_0_899, -IDCT_0_899, IDCT_1_501 - IDCT_0_899, o0,
              o3);
    IDCT_SUMS(in[3], -IDCT_2_562, IDCT_2_053 - IDCT_2_562, IDCT_3_072 - IDCT_2_562, -IDCT_2_562, o1,
              o2);
    sum = IDCT_OP(add_epi32)(sum, round);
    difference = IDCT_OP(add_epi32)(difference, round);
    const IDCT_VECTOR even[4] = {IDCT_OP(add_epi32)(sum, e3), IDCT_OP(add_epi32)(difference, e2),
                                 IDCT_OP(sub_epi32)(difference, e2), IDCT_OP(sub_epi32)(sum, e3)};
    const IDCT_VECTOR odd[4] = {IDCT_OP(add_epi32)(o3, z4), IDCT_OP(add_epi32)(o2, z3),
                                IDCT_OP(add_epi32)(o1, z4), IDCT_OP(add_epi32)(o0, z3)};
    BASELINE_NAME(butterflies)(even, odd, out);
}

/* Convert eight columns of four sums to bytes: rows 0 and 1, then 2 and 3. */
BASELINE_TARGET static inline __attribute__((always_inline)) void
BASELINE_NAME(to_rows)(const IDCT_VECTOR sums[8], IDCT_VECTOR *upper, IDCT_VECTOR *lower)
{
    enum { BITS = 32 - IDCT_SHIFT_2 };
    const IDCT_VECTOR c0145 = IDCT_OP(packs_epi16)(IDCT_HIGHS(sums[0], sums[1], BITS),
                                                   IDCT_HIGHS(sums[4], sums[5], BITS));
    const IDCT_VECTOR c2367 = IDCT_OP(packs_epi16)(IDCT_HIGHS(sums[2], sums[3], BITS),
                                                   IDCT_HIGHS(sums[6], sums[7], BITS));
    const IDCT_VECTOR left = IDCT_OP(unpacklo_epi16)(c0145, c2367);
    const IDCT_VECTOR right = IDCT_OP(unpackhi_epi16)(c0145, c2367);
    const IDCT_VECTOR center = IDCT_OP(set1_epi8)(-128);

    *upper = IDCT_OP(add_epi8)(IDCT_OP(unpacklo_epi32)(left, right), center);
    *lower = IDCT_OP(add_epi8)(IDCT_OP(unpackhi_epi32)(left, right), center);
}

BASELINE_TARGET static inline __attribute__((always_inline)) void
BASELINE_NAME(four_rows)(const struct idct_block *const *blocks, size_t stride, int row,
                         const IDCT_VECTOR sums[8])
{
    IDCT_VECTOR upper, lower;

    BASELINE_NAME(to_rows)(sums, &upper, &lower);
    IDCT_STORE(blocks, stride, row, upper);
    IDCT_STORE(blocks, stride, row + 2, lower);
}

static void BASELINE_NAME(idct_extreme)(const struct idct_block *const *blocks,
                                        const struct idct_quantisers *quantisers, size_t stride)
{
    for (int i = 0; i < IDCT_LANES; i++)
        baseline_idct_reference(blocks[i], quantisers, stride);
}

BASELINE_TARGET static inline __attribute__((always_inline)) void
BASELINE_NAME(idct_lanes)(const struct idct_block *const *blocks,
                          const struct idct_quantisers *quantisers, size_t stride)
{
    IDCT_PAIRS in[2][4], turned[2][4];
    IDCT_VECTOR sums[8];

    IDCT_LOAD(blocks, quantisers, in);
    if (IDCT_EXTREME(in[0][0], in[1][0])) {
        BASELINE_NAME(idct_extreme)(blocks, quantisers, stride);
        return;
    }
    for (int half = 0; half < 2; half++) { /* of the columns, then of the rows */
        IDCT_VECTOR rows[4];
        BASELINE_NAME(pass)(in[half], IDCT_SHIFT_1, true, sums);
        for (int i = 0; i < 4; i++)
            rows[i] = BASELINE_NAME(descale)(sums[2 * i], sums[2 * i + 1], IDCT_SHIFT_1);
        for (int i = 0; i < 2; i++)
            IDCT_TURN(rows[2 * i], rows[2 * i + 1], turned[i][2 * half], turned[i][2 * half + 1]);
    }
    for (int half = 0; half < 2; half++) {
        BASELINE_NAME(pass)(turned[half], IDCT_SHIFT_2, false, sums);
        BASELINE_NAME(four_rows)(blocks, stride, 4 * half, sums);
    }
}

/* ---- of the low 4 x 4 coefficients ---- */

/* Transform four lines of four values into eight sums each. */
BASELINE_TARGET static inline __attribute__((always_inline)) void
BASELINE_NAME(low_pass)(const IDCT_PAIRS in[2], int shift, IDCT_VECTOR out[8])
{
    const IDCT_VECTOR round = IDCT_OP(set1_epi32)(1 << (shift - 1));
    IDCT_SUMS(in[0], 1 << 13, IDCT_0_541 + IDCT_0_765, 1 << 13, IDCT_0_541, e0, e1);
    IDCT_SUMS(in[0], 1 << 13, -IDCT_0_541, 1 << 13, -IDCT_0_541 - IDCT_0_765, e2, e3);
    IDCT_SUMS(in[1], IDCT_1_501 - IDCT_0_899 + IDCT_1_175 - IDCT_0_390, IDCT_1_175, IDCT_1_175,
              IDCT_3_072 - IDCT_2_562 + IDCT_1_175 - IDCT_1_961, o0, o1);
    IDCT_SUMS(in[1], IDCT_1_175 - IDCT_0_390, IDCT_1_175 - IDCT_2_562, IDCT_1_175 - IDCT_0_899,
              IDCT_1_175 - IDCT_1_961, o2, o3);
    const IDCT_VECTOR even[4] = {IDCT_OP(add_epi32)(e0, round), IDCT_OP(add_epi32)(e1, round),
                                 IDCT_OP(add_epi32)(e2, round), IDCT_OP(add_epi32)(e3, round)};
    const IDCT_VECTOR odd[4] = {o0, o1, o2, o3};

    BASELINE_NAME(butterflies)(even, odd, out);
}

BASELINE_TARGET static inline __attribute__((always_inline)) void
BASELINE_NAME(idct_low)(const struct idct_block *const *blocks,
                        const struct idct_quantisers *quantisers, size_t stride)
{
    IDCT_PAIRS in[2], turned[2][2];
    IDCT_VECTOR sums[8], rows[4];

    IDCT_LOAD_LOW(blocks, quantisers, in);
    if (IDCT_EXTREME(in[0], in[0])) {
        BASELINE_NAME(idct_extreme)(blocks, quantisers, stride);
        return;
    }
    BASELINE_NAME(low_pass)(in, IDCT_SHIFT_1, sums);
    for (int i = 0; i < 4; i++)
        rows[i] = BASELINE_NAME(descale)(sums[2 * i], sums[2 * i + 1], IDCT_SHIFT_1);
    for (int half = 0; half < 2; half++) {
        IDCT_TURN(rows[2 * half], rows[2 * half + 1], turned[half][0], turned[half][1]);
        BASELINE_NAME(low_pass)(turned[half], IDCT_SHIFT_2, sums);
        BASELINE_NAME(four_rows)(blocks, stride, 4 * half, sums);
    }
}

/* ---- any number of blocks ---- */

/* Sort block numbers: low blocks from the front, others from the end. Returns the number of low
 * ones. Without a branch, which would be hard to predict. */
BASELINE_TARGET static inline size_t BASELINE_NAME(sort)(const struct idct_block *blocks,
                                                         size_t count, uint8_t order[IDCT_BLOCKS])
{
    size_t low = 0, end = count;

    for (size_t i = 0; i < count; i++) {
        order[low] = order[end - 1] = (uint8_t)i;
        const size_t is_low = IDCT_IS_LOW(blocks[i].coefficients);
        low += is_low;
        end -= 1 - is_low;
    }
    return low;
}

/* Two functions, so that each keeps its constants in registers. */
#define IDCT_ALL(name, one)                                                    \
    BASELINE_TARGET static __attribute__((noinline)) void BASELINE_NAME(name)( \
        const struct idct_block *blocks, const uint8_t *order, size_t count,   \
        const struct idct_quantisers *quantisers, size_t stride)               \
    {                                                                          \
        for (size_t i = 0; i < count; i += IDCT_LANES) {                       \
            const struct idct_block *lanes[IDCT_LANES];                        \
            for (size_t j = 0; j < IDCT_LANES; j++)                            \
                lanes[j] = &blocks[order[i + j]];                              \
            BASELINE_NAME(one)(lanes, quantisers, stride);                     \
        }                                                                      \
    }
IDCT_ALL(all_low, idct_low)
IDCT_ALL(all_lanes, idct_lanes)

/* Low blocks that fill no vector go with the others. */
BASELINE_TARGET static bool BASELINE_NAME(idct)(const struct idct_block *blocks, size_t count,
                                                const struct idct_quantisers *quantisers,
                                                size_t stride)
{
    uint8_t order[IDCT_BLOCKS + IDCT_LANES];
    const size_t low = BASELINE_NAME(sort)(blocks, count, order) / IDCT_LANES * IDCT_LANES;

    for (size_t j = 0; j < IDCT_LANES; j++) /* the last vector */
        order[count + j] = order[count - 1];
    BASELINE_NAME(all_low)(blocks, order, low, quantisers, stride);
    BASELINE_NAME(all_lanes)(blocks, order + low, count - low, quantisers, stride);
    return true;
}

/* ---- to 4 x 4 samples: without row and column 4 ---- */

/* Transform four lines of eight values into four sums each. */
BASELINE_TARGET static inline __attribute__((always_inline)) void
BASELINE_NAME(pass_to_four)(const IDCT_PAIRS in[4], int shift, IDCT_VECTOR out[4])
{
    const IDCT_VECTOR round = IDCT_OP(set1_epi32)(1 << (shift - 1));
    const IDCT_VECTOR even = IDCT_PRODUCTS(in[1], IDCT_1_847, -IDCT_0_765);
    IDCT_SUMS(in[2], -IDCT_0_509, IDCT_2_562, -IDCT_0_211, IDCT_1_061, outer71, inner71);
    IDCT_SUMS(in[3], IDCT_0_899, -IDCT_0_601, -IDCT_2_172, IDCT_1_451, outer35, inner35);
    const IDCT_VECTOR wide = IDCT_OP(add_epi32)(IDCT_PRODUCTS(in[0], 1 << 14, 0), round);
    const IDCT_VECTOR sum = IDCT_OP(add_epi32)(wide, even);
    const IDCT_VECTOR difference = IDCT_OP(sub_epi32)(wide, even);
    const IDCT_VECTOR outer = IDCT_OP(add_epi32)(outer71, outer35);
    const IDCT_VECTOR inner = IDCT_OP(add_epi32)(inner71, inner35);

    out[0] = IDCT_OP(add_epi32)(sum, outer);
    out[1] = IDCT_OP(add_epi32)(difference, inner);
    out[2] = IDCT_OP(sub_epi32)(difference, inner);
    out[3] = IDCT_OP(sub_epi32)(sum, outer);
}

/* Convert four columns of four sums to bytes, rows 0 to 3. */
BASELINE_TARGET static inline IDCT_VECTOR BASELINE_NAME(to_rows_of_four)(const IDCT_VECTOR sums[4])
{
    enum { BITS = 32 - IDCT_FOUR_SHIFT_2 };
    const IDCT_VECTOR c01 = IDCT_HIGHS(sums[0], sums[1], BITS);
    const IDCT_VECTOR c23 = IDCT_HIGHS(sums[2], sums[3], BITS);
    const IDCT_VECTOR rows =
        IDCT_OP(packs_epi16)(IDCT_OP(unpacklo_epi32)(c01, c23), IDCT_OP(unpackhi_epi32)(c01, c23));

    return IDCT_OP(add_epi8)(rows, IDCT_OP(set1_epi8)(-128));
}

/* Returns false if a block is extreme. */
BASELINE_TARGET static inline bool
BASELINE_NAME(lanes_to_four)(const struct idct_block *const *blocks,
                             const struct idct_quantisers *quantisers, size_t stride)
{
    IDCT_PAIRS in[2][4], turned[4];
    IDCT_VECTOR sums[4];
    uint8_t bytes[IDCT_LANES][4][4];

    IDCT_LOAD(blocks, quantisers, in);
    if (IDCT_EXTREME_FIRST(in[0][0], in[1][0]))
        return false;
    for (int half = 0; half < 2; half++) {
        BASELINE_NAME(pass_to_four)(in[half], IDCT_FOUR_SHIFT_1, sums);
        const IDCT_VECTOR upper = BASELINE_NAME(descale)(sums[0], sums[1], IDCT_FOUR_SHIFT_1);
        const IDCT_VECTOR lower = BASELINE_NAME(descale)(sums[2], sums[3], IDCT_FOUR_SHIFT_1);
        IDCT_TURN(upper, lower, turned[2 * half], turned[2 * half + 1]);
    }
    BASELINE_NAME(pass_to_four)(turned, IDCT_FOUR_SHIFT_2, sums);
    const IDCT_VECTOR rows = BASELINE_NAME(to_rows_of_four)(sums);
    memcpy(bytes, &rows, sizeof rows);
    for (int i = 0; i < IDCT_LANES; i++)
        for (int y = 0; y < 4; y++)
            memcpy(blocks[i]->output + (size_t)y * stride, bytes[i][y], 4);
    return true;
}

#define IDCT_REDUCED(name, lanes_of)                                                               \
    BASELINE_TARGET static bool BASELINE_NAME(name)(const struct idct_block *blocks, size_t count, \
                                                    const struct idct_quantisers *quantisers,      \
                                                    size_t stride)                                 \
    {                                                                                              \
        bool good = true;                                                                          \
        for (size_t i = 0; i < count; i += IDCT_LANES) {                                           \
            const struct idct_block *lanes[IDCT_LANES];                                            \
            for (size_t j = 0; j < IDCT_LANES; j++)                                                \
                lanes[j] = &blocks[i + j < count ? i + j : count - 1];                             \
            good &= BASELINE_NAME(lanes_of)(lanes, quantisers, stride);                            \
        }                                                                                          \
        return good;                                                                               \
    }
IDCT_REDUCED(to_four, lanes_to_four)

/* ---- to 2 x 2 samples: of the even inputs, the first one alone counts ---- */

#ifdef IDCT_SHUFFLE_PAIRS
/* Transform four lines of eight values into two sums each. */
BASELINE_TARGET static inline __attribute__((always_inline)) void
BASELINE_NAME(pass_to_two)(const IDCT_PAIRS in[4], IDCT_VECTOR out[2])
{
    const IDCT_VECTOR round = IDCT_OP(set1_epi32)(1 << (IDCT_TWO_SHIFT_1 - 1));
    const IDCT_VECTOR half = IDCT_PRODUCTS(in[0], 1 << 14, 0);
    const IDCT_VECTOR even = IDCT_OP(add_epi32)(IDCT_OP(add_epi32)(half, half), round);
    const IDCT_VECTOR odd = IDCT_OP(add_epi32)(IDCT_PRODUCTS(in[2], -IDCT_0_720, IDCT_3_624),
                                               IDCT_PRODUCTS(in[3], -IDCT_1_272, IDCT_0_850));

    out[0] = IDCT_OP(add_epi32)(even, odd);
    out[1] = IDCT_OP(sub_epi32)(even, odd);
}

/* Column 0 of both rows, which does not saturate, with sums of the odd ones. */
BASELINE_TARGET static inline IDCT_VECTOR BASELINE_NAME(rows_to_two)(const IDCT_VECTOR left[2],
                                                                     const IDCT_VECTOR right[2])
{
    const IDCT_VECTOR round = IDCT_OP(set1_epi32)(1 << (IDCT_TWO_SHIFT_2 - 1));
    const IDCT_VECTOR columns = IDCT_OP(unpacklo_epi64)(IDCT_SRAI(left[0], IDCT_TWO_SHIFT_1),
                                                        IDCT_SRAI(left[1], IDCT_TWO_SHIFT_1));
    const IDCT_VECTOR even =
        IDCT_OP(add_epi32)(IDCT_OP(slli_epi32)(IDCT_OP(shuffle_epi32)(columns, 0xa0), 15), round);
    const IDCT_VECTOR pairs = BASELINE_NAME(descale)(right[0], right[1], IDCT_TWO_SHIFT_1);
    const IDCT_VECTOR products =
        IDCT_OP(madd_epi16)(pairs, IDCT_OP(unpacklo_epi32)(IDCT_BOTH(-IDCT_0_720, IDCT_3_624),
                                                           IDCT_BOTH(-IDCT_1_272, IDCT_0_850)));
    const IDCT_VECTOR odd = IDCT_OP(add_epi32)(products, IDCT_OP(shuffle_epi32)(products, 0xb1));
    const IDCT_VECTOR first = IDCT_OP(add_epi32)(even, odd);
    const IDCT_VECTOR second = IDCT_OP(sub_epi32)(even, odd);
    const IDCT_VECTOR sums =
        IDCT_SRAI(IDCT_OP(unpacklo_epi64)(IDCT_OP(unpacklo_epi32)(first, second),
                                          IDCT_OP(unpackhi_epi32)(first, second)),
                  IDCT_TWO_SHIFT_2);
    const IDCT_VECTOR words = IDCT_OP(packs_epi32)(sums, sums);

    return IDCT_OP(add_epi8)(IDCT_OP(packs_epi16)(words, words), IDCT_OP(set1_epi8)(-128));
}

/* Returns false if a block is extreme. */
BASELINE_TARGET static inline bool
BASELINE_NAME(lanes_to_two)(const struct idct_block *const *blocks,
                            const struct idct_quantisers *quantisers, size_t stride)
{
    IDCT_PAIRS in[2][4];
    IDCT_VECTOR left[2], right[2];
    uint8_t bytes[IDCT_LANES][16];

    IDCT_LOAD(blocks, quantisers, in);
    if (IDCT_EXTREME_FIRST(in[0][0], in[1][0]))
        return false;
    BASELINE_NAME(pass_to_two)(in[0], left);
    BASELINE_NAME(pass_to_two)(in[1], right);
    const IDCT_VECTOR rows = BASELINE_NAME(rows_to_two)(left, right);
    memcpy(bytes, &rows, sizeof rows);
    for (int i = 0; i < IDCT_LANES; i++)
        for (int y = 0; y < 2; y++)
            memcpy(blocks[i]->output + (size_t)y * stride, bytes[i] + 2 * y, 2);
    return true;
}

IDCT_REDUCED(to_two, lanes_to_two)
#endif

#undef IDCT_PAIRS
#undef IDCT_BOTH
#undef IDCT_PRODUCTS
#undef IDCT_ADD
#undef IDCT_WRAPPING
#undef IDCT_TURN
#undef IDCT_ALL
#undef IDCT_REDUCED
#undef IDCT_HIGHS
#undef IDCT_SUMS
#endif

/* ---- to 4 x 4, 2 x 2 or 1 x 1 samples of a block ----
 *
 * Those of libjpeg (jidctred.c), with results of pass 1 saturated as libjpeg-turbo's vector code
 * for x86 does. Plain C that compilers vectorise over columns, where there is no vector code above.
 */

/* The kernel to_NAME() from NAME(), which transforms one block. */
#define BASELINE_EACH(name)                                                                      \
    BASELINE_TARGET static bool BASELINE_NAME(to_##name)(                                        \
        const struct idct_block *blocks, size_t count, const struct idct_quantisers *quantisers, \
        size_t stride)                                                                           \
    {                                                                                            \
        bool good = true;                                                                        \
        for (size_t i = 0; i < count; i++)                                                       \
            good &= BASELINE_NAME(name)(blocks[i].coefficients, quantisers->natural,             \
                                        blocks[i].output, stride);                               \
        return good;                                                                             \
    }

/* Dequantise into natural order; products wrap. Returns false if a value of the first row is beyond
 * what plain and vector code shift alike. */
BASELINE_TARGET static inline bool BASELINE_NAME(dequantise)(const int16_t *coefficients,
                                                             const uint16_t *quantisers,
                                                             int32_t values[64])
{
    uint32_t extreme = 0;

    for (int i = 0; i < 64; i++)
        values[i] = coefficients[baseline_idct_positions[i]];
    for (int i = 0; i < 64; i++)
        values[i] = (int16_t)(uint16_t)((uint32_t)values[i] * quantisers[i]);
    for (int i = 0; i < 8; i++)
        extreme |= (uint32_t)(values[i] + IDCT_SANE + 1) > 2 * IDCT_SANE + 1;
    return !extreme;
}

static inline int32_t BASELINE_NAME(round_shift)(uint32_t value, int shift, int32_t low,
                                                 int32_t high)
{
    const int32_t rounded = (int32_t)(value + (1U << (shift - 1))) >> shift;

    return rounded < low ? low : rounded > high ? high : rounded;
}

#ifndef IDCT_LANES
/* in[0], in[step], ..., without in[4 x step], to four values. */
BASELINE_TARGET static inline __attribute__((always_inline)) void
BASELINE_NAME(pass_of_four)(const int32_t *in, int step, int shift, int32_t low, int32_t high,
                            int32_t out[4])
{
    const int32_t in1 = in[step], in3 = in[3 * step], in5 = in[5 * step], in7 = in[7 * step];
    const uint32_t sum = (uint32_t)in[0] << 14;
    const uint32_t even =
        (uint32_t)(in[2 * step] * IDCT_1_847) - (uint32_t)(in[6 * step] * IDCT_0_765);
    const uint32_t inner = (uint32_t)(in1 * IDCT_1_061) - (uint32_t)(in3 * IDCT_2_172) +
                           (uint32_t)(in5 * IDCT_1_451) - (uint32_t)(in7 * IDCT_0_211);
    const uint32_t outer = (uint32_t)(in1 * IDCT_2_562) + (uint32_t)(in3 * IDCT_0_899) -
                           (uint32_t)(in5 * IDCT_0_601) - (uint32_t)(in7 * IDCT_0_509);

    out[0] = BASELINE_NAME(round_shift)(sum + even + outer, shift, low, high);
    out[1] = BASELINE_NAME(round_shift)(sum - even + inner, shift, low, high);
    out[2] = BASELINE_NAME(round_shift)(sum - even - inner, shift, low, high);
    out[3] = BASELINE_NAME(round_shift)(sum + even - outer, shift, low, high);
}

BASELINE_TARGET static bool BASELINE_NAME(four)(const int16_t *coefficients,
                                                const uint16_t *quantisers, uint8_t *output,
                                                size_t stride)
{
    int32_t values[64], rows[32], samples[4];

    if (!BASELINE_NAME(dequantise)(coefficients, quantisers, values))
        return false;
    for (int x = 0; x < 8; x++) {
        int32_t column[4];
        BASELINE_NAME(pass_of_four)(values + x, 8, IDCT_FOUR_SHIFT_1, INT16_MIN, INT16_MAX, column);
        for (int y = 0; y < 4; y++)
            rows[8 * y + x] = column[y];
    }
    for (int y = 0; y < 4; y++) {
        BASELINE_NAME(pass_of_four)(rows + 8 * y, 1, IDCT_FOUR_SHIFT_2, -128, 127, samples);
        for (int x = 0; x < 4; x++)
            output[(size_t)y * stride + (size_t)x] = (uint8_t)(samples[x] + 128);
    }
    return true;
}

BASELINE_EACH(four)
#endif

#ifndef IDCT_SHUFFLE_PAIRS
/* Only the first even input counts. */
static inline uint32_t BASELINE_NAME(odd_of_two)(const int32_t *in, int step)
{
    return (uint32_t)(in[step] * IDCT_3_624) - (uint32_t)(in[3 * step] * IDCT_1_272) +
           (uint32_t)(in[5 * step] * IDCT_0_850) - (uint32_t)(in[7 * step] * IDCT_0_720);
}

BASELINE_TARGET static bool BASELINE_NAME(two)(const int16_t *coefficients,
                                               const uint16_t *quantisers, uint8_t *output,
                                               size_t stride)
{
    int32_t values[64], rows[16];

    if (!BASELINE_NAME(dequantise)(coefficients, quantisers, values))
        return false;
    for (int x = 0; x < 8; x++) { /* column 0 does not saturate */
        const int32_t low = x ? INT16_MIN : INT32_MIN, high = x ? INT16_MAX : INT32_MAX;
        const uint32_t even = (uint32_t)values[x] << 15;
        const uint32_t odd = BASELINE_NAME(odd_of_two)(values + x, 8);
        rows[x] = BASELINE_NAME(round_shift)(even + odd, IDCT_TWO_SHIFT_1, low, high);
        rows[8 + x] = BASELINE_NAME(round_shift)(even - odd, IDCT_TWO_SHIFT_1, low, high);
    }
    for (int y = 0; y < 2; y++, output += stride) {
        const uint32_t even = (uint32_t)rows[8 * y] << 15;
        const uint32_t odd = BASELINE_NAME(odd_of_two)(rows + 8 * y, 1);
        output[0] =
            (uint8_t)(BASELINE_NAME(round_shift)(even + odd, IDCT_TWO_SHIFT_2, -128, 127) + 128);
        output[1] =
            (uint8_t)(BASELINE_NAME(round_shift)(even - odd, IDCT_TWO_SHIFT_2, -128, 127) + 128);
    }
    return true;
}

BASELINE_EACH(two)
#endif

/* Compute a block from the DC value alone. */
static bool BASELINE_NAME(one)(const int16_t *coefficients, const uint16_t *quantisers,
                               uint8_t *output, size_t stride)
{
    const int32_t value = coefficients[0] * (int16_t)quantisers[0];

    (void)stride;
    if (value < -IDCT_SANE_ONE || value > IDCT_SANE_ONE)
        return false;
    *output = (uint8_t)(BASELINE_NAME(round_shift)((uint32_t)value, 3, -128, 127) + 128);
    return true;
}

BASELINE_EACH(one)

#undef BASELINE_EACH
