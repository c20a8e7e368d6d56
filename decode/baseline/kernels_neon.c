/* SPDX-License-Identifier: Apache-2.0
 * The kernels for AArch64, whose every CPU has NEON. */
#include "decode/baseline/kernels.h"

#ifdef KERNELS_NEON
#ifndef __clang__
#pragma GCC optimize("O3") /* gcc vectorises freely from here on */
#endif
#include <arm_neon.h>

#define BASELINE_NAME(name) neon_##name
#define BASELINE_TARGET
#define BASELINE_AT_END(entry, a, x, b, y, c, z) BASELINE_CMOVS(entry, a, x, b, y, c, z)
#define IDCT_VECTOR int16x8_t
#define IDCT_LANES 1
#define IDCT_OP(name) neon_##name

/* What idct_template.h calls by the names of x86: vectors of 8, 16, 32 or 64 bits, as one type.
 * Without signs: sums wrap. */
#define NEON_OP(name, bits, function)                                                            \
    static inline int16x8_t neon_##name(int16x8_t a, int16x8_t b)                                \
    {                                                                                            \
        return vreinterpretq_s16_u##bits(                                                        \
            function##_u##bits(vreinterpretq_u##bits##_s16(a), vreinterpretq_u##bits##_s16(b))); \
    }
NEON_OP(add_epi8, 8, vaddq)
NEON_OP(add_epi16, 16, vaddq)
NEON_OP(sub_epi16, 16, vsubq)
NEON_OP(mullo_epi16, 16, vmulq)
NEON_OP(add_epi32, 32, vaddq)
NEON_OP(sub_epi32, 32, vsubq)
NEON_OP(unpacklo_epi16, 16, vzip1q)
NEON_OP(unpackhi_epi16, 16, vzip2q)
NEON_OP(unpacklo_epi32, 32, vzip1q)
NEON_OP(unpackhi_epi32, 32, vzip2q)

static inline int16x8_t neon_packs_epi16(int16x8_t a, int16x8_t b)
{
    return vreinterpretq_s16_s8(vqmovn_high_s16(vqmovn_s16(a), b));
}

static inline int16x8_t neon_set1_epi8(int8_t value)
{
    return vreinterpretq_s16_s8(vdupq_n_s8(value));
}

static inline int16x8_t neon_set1_epi32(int32_t value)
{
    return vreinterpretq_s16_s32(vdupq_n_s32(value));
}

static inline int16x8_t neon_descale(int16x8_t low, int16x8_t high, int shift)
{
    const int32x4_t left = vdupq_n_s32(-shift);
    const int32x4_t low_sums = vshlq_s32(vreinterpretq_s32_s16(low), left);
    const int32x4_t high_sums = vshlq_s32(vreinterpretq_s32_s16(high), left);

    return vqmovn_high_s32(vqmovn_s32(low_sums), high_sums);
}

/* Products take scalars: rows are not interleaved. */
struct neon_pairs {
    int16x4_t a, b;
};

#define IDCT_PAIRS struct neon_pairs
#define IDCT_PRODUCTS(pairs, x, y) \
    vreinterpretq_s16_s32(vmlal_n_s16(vmull_n_s16((pairs).a, x), (pairs).b, y))
#define IDCT_ADD(p, q)                                 \
    {                                                  \
        vadd_s16((p).a, (q).a), vadd_s16((p).b, (q).b) \
    }
#define IDCT_WRAPPING(pairs, sum, difference)                                                   \
    do {                                                                                        \
        *(sum) = vreinterpretq_s16_s32(vshll_n_s16(vadd_s16((pairs).a, (pairs).b), 13));        \
        *(difference) = vreinterpretq_s16_s32(vshll_n_s16(vsub_s16((pairs).a, (pairs).b), 13)); \
    } while (0)
#define IDCT_HIGHS(a, b, bits) vshrq_n_s16(vtrn2q_s16(a, b), 16 - (bits))

static inline struct neon_pairs neon_split(int16x8_t v)
{
    return (struct neon_pairs){vget_low_s16(v), vget_high_s16(v)};
}

static inline void neon_turn(int16x8_t upper, int16x8_t lower, struct neon_pairs *left,
                             struct neon_pairs *right)
{
    const int32x4_t rows = vreinterpretq_s32_s16(upper), more = vreinterpretq_s32_s16(lower);
    const int16x8_t lefts = vreinterpretq_s16_s32(vuzp1q_s32(rows, more));
    const int16x8_t rights = vreinterpretq_s16_s32(vuzp2q_s32(rows, more));
    const int16x8_t firsts = vuzp1q_s16(lefts, rights), seconds = vuzp2q_s16(lefts, rights);

    *left = (struct neon_pairs){vget_low_s16(firsts), vget_low_s16(seconds)};
    *right = (struct neon_pairs){vget_high_s16(firsts), vget_high_s16(seconds)};
}
#define IDCT_TURN(upper, lower, left, right) neon_turn(upper, lower, &(left), &(right))

/* Eight coefficients, 8 x `eight`, dequantised, as bytes. */
static inline uint8x16_t neon_load(const int16_t *coefficients,
                                   const struct idct_quantisers *quantisers, int eight)
{
    return vreinterpretq_u8_u16(
        vmulq_u16(vreinterpretq_u16_s16(vld1q_s16(coefficients + 8 * eight)),
                  vld1q_u16(quantisers->zigzag + 8 * eight)));
}

static inline uint8x16x4_t neon_half(const int16_t *coefficients,
                                     const struct idct_quantisers *quantisers, int first)
{
    return (uint8x16x4_t){{neon_load(coefficients, quantisers, first),
                           neon_load(coefficients, quantisers, first + 1),
                           neon_load(coefficients, quantisers, first + 2),
                           neon_load(coefficients, quantisers, first + 3)}};
}

/* Byte indices of the eight values at `at`, first row first. */
static inline uint8x16_t neon_bytes(const uint16_t *at)
{
    const uint16x8_t turns = vld1q_u16(at), rows = vuzp1q_u16(turns, vextq_u16(turns, turns, 1));

    return vreinterpretq_u8_u16(vmlaq_n_u16(vdupq_n_u16(0x0100), rows, 0x0202));
}

/* A block is two tables of 64 bytes, which are indexed by byte. */
static inline void neon_pairs(const struct idct_block *block,
                              const struct idct_quantisers *quantisers, struct neon_pairs in[2][4])
{
    const uint8x16x4_t first = neon_half(block->coefficients, quantisers, 0);
    const uint8x16x4_t second = neon_half(block->coefficients, quantisers, 4);

    for (int i = 0; i < 8; i++) {
        const uint8x16_t bytes = neon_bytes(baseline_idct_pairs + 8 * i);
        const uint8x16_t found =
            vqtbx4q_u8(vqtbl4q_u8(first, bytes), second, vsubq_u8(bytes, vdupq_n_u8(64)));
        in[i / 4][i % 4] = neon_split(vreinterpretq_s16_u8(found));
    }
}
#define IDCT_LOAD(blocks, quantisers, in) neon_pairs((blocks)[0], quantisers, in)

static inline void neon_low_pairs(const struct idct_block *block,
                                  const struct idct_quantisers *quantisers, struct neon_pairs in[2])
{
    const uint8x16x4_t first = neon_half(block->coefficients, quantisers, 0);

    for (int i = 0; i < 2; i++)
        in[i] = neon_split(
            vreinterpretq_s16_u8(vqtbl4q_u8(first, neon_bytes(baseline_idct_low_pairs + 8 * i))));
}
#define IDCT_LOAD_LOW(blocks, quantisers, in) neon_low_pairs((blocks)[0], quantisers, in)

static inline size_t neon_is_low(const int16_t *block)
{
    int16x8_t high = vdupq_n_s16(0);

    for (int i = 0; i < 64; i += 8)
        high = vorrq_s16(high, vandq_s16(vld1q_s16(block + i),
                                         vreinterpretq_s16_u16(vld1q_u16(baseline_idct_high + i))));
    return vmaxvq_u16(vreinterpretq_u16_s16(high)) == 0;
}
#define IDCT_IS_LOW(block) neon_is_low(block)

static inline bool neon_extreme(int16x4_t a, int16x4_t b)
{
    const uint16x8_t both = vreinterpretq_u16_s16(vcombine_s16(a, b));

    return vmaxvq_u16(vaddq_u16(both, vdupq_n_u16(IDCT_SANE + 1))) > 2 * IDCT_SANE + 1;
}
#define IDCT_EXTREME_FIRST(p, q) neon_extreme((p).a, (q).a)
#define IDCT_EXTREME(p, q) (neon_extreme((p).a, (q).a) || neon_extreme((p).b, (q).b))

#define IDCT_STORE(blocks, stride, row, v)                            \
    do {                                                              \
        const uint8x16_t both = vreinterpretq_u8_s16(v);              \
        uint8_t *to = (blocks)[0]->output + (size_t)(row) * (stride); \
        vst1_u8(to, vget_low_u8(both));                               \
        vst1_u8(to + (stride), vget_high_u8(both));                   \
    } while (0)

#define COLOUR_PIXELS 16

/* Eight pixels in 16 bits, by the constants of kernels_template.h. */
static inline uint8x8x4_t neon_pixels(uint8x8_t y, uint8x8_t cb, uint8x8_t cr)
{
    const int16x8_t light = vreinterpretq_s16_u16(vmovl_u8(y));
    const int16x8_t blue = vreinterpretq_s16_u16(vsubl_u8(cb, vdup_n_u8(128)));
    const int16x8_t red = vreinterpretq_s16_u16(vsubl_u8(cr, vdup_n_u8(128)));
    const int16x8_t r =
        vaddq_s16(vaddq_s16(light, red), vrshrq_n_s16(vqdmulhq_n_s16(red, 26345), 1));
    const int16x8_t b =
        vaddq_s16(vaddq_s16(light, vaddq_s16(blue, blue)), vqrdmulhq_n_s16(blue, -7471));
    const int32x4_t low =
        vmlal_n_s16(vmull_n_s16(vget_low_s16(blue), -11277), vget_low_s16(red), 9367);
    const int32x4_t high =
        vmlal_n_s16(vmull_n_s16(vget_high_s16(blue), -11277), vget_high_s16(red), 9367);
    const int16x8_t g = vaddq_s16(vsubq_s16(light, red),
                                  vcombine_s16(vrshrn_n_s32(low, 15), vrshrn_n_s32(high, 15)));

    return (uint8x8x4_t){{vqmovun_s16(r), vqmovun_s16(g), vqmovun_s16(b), vdup_n_u8(255)}};
}

static inline void neon_rgbx_vector(const uint8_t *y, const uint8_t *cb, const uint8_t *cr,
                                    uint8_t *rgbx)
{
    const uint8x16_t light = vld1q_u8(y), blue = vld1q_u8(cb), red = vld1q_u8(cr);
    const uint8x8x4_t first = neon_pixels(vget_low_u8(light), vget_low_u8(blue), vget_low_u8(red));
    const uint8x8x4_t second =
        neon_pixels(vget_high_u8(light), vget_high_u8(blue), vget_high_u8(red));

    vst4_u8(rgbx, first);
    vst4_u8(rgbx + 32, second);
}

#define BASELINE_KERNELS baseline_kernels_neon
#include "decode/baseline/kernels_template.h"
#endif
