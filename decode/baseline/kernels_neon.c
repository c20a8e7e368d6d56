/* SPDX-License-Identifier: Apache-2.0
 * The kernels for AArch64, whose every CPU has NEON. */
#include "decode/baseline/kernels.h"

#ifdef KERNELS_NEON
#ifndef __clang__
#pragma GCC optimize("O3") /* gcc vectorises freely from here on */
#endif
#include <arm_neon.h>

#include "decode/baseline/cmov.h"

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
NEON_OP(unpacklo_epi8, 8, vzip1q)
NEON_OP(unpackhi_epi8, 8, vzip2q)
NEON_OP(unpacklo_epi16, 16, vzip1q)
NEON_OP(unpackhi_epi16, 16, vzip2q)
NEON_OP(unpacklo_epi32, 32, vzip1q)
NEON_OP(unpackhi_epi32, 32, vzip2q)
NEON_OP(unpacklo_epi64, 64, vzip1q)
NEON_OP(unpackhi_epi64, 64, vzip2q)

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

/* Products take scalars, so that rows need not be interleaved. */
struct neon_pairs {
    int16x4_t a, b;
};

#define NEON_HALF_lo vget_low_s16
#define NEON_HALF_hi vget_high_s16
#define IDCT_PAIRS struct neon_pairs
#define IDCT_JOIN(half, a, b)                    \
    {                                            \
        NEON_HALF_##half(a), NEON_HALF_##half(b) \
    }
#define IDCT_PRODUCTS(pairs, x, y) \
    vreinterpretq_s16_s32(vmlal_n_s16(vmull_n_s16((pairs).a, x), (pairs).b, y))
#define IDCT_WIDEN(half, v, bits) vreinterpretq_s16_s32(vshll_n_s16(NEON_HALF_##half(v), bits))

/* A block is two tables of 64 bytes, which are indexed by byte. */
static inline void neon_natural(const int16_t *const *blocks, int16x8_t v[8])
{
    const uint8x16x4_t first = vld1q_u8_x4((const uint8_t *)blocks[0]);
    const uint8x16x4_t second = vld1q_u8_x4((const uint8_t *)(blocks[0] + 32));
    const uint8x16_t half = vdupq_n_u8(64);

    for (int i = 0; i < 8; i++) {
        const uint16x8_t at = vld1q_u16(baseline_idct_positions + 8 * i);
        const uint8x16_t bytes = vreinterpretq_u8_u16(vmlaq_n_u16(vdupq_n_u16(0x0100), at, 0x0202));
        const uint8x16_t found = vqtbl4q_u8(first, bytes);
        v[i] = vreinterpretq_s16_u8(vqtbx4q_u8(found, second, vsubq_u8(bytes, half)));
    }
}

#define IDCT_NATURAL(blocks, v) neon_natural(blocks, v)
#define IDCT_SPREAD(at) vreinterpretq_s16_u16(vld1q_u16(at))
#define IDCT_EXTREME(v)                                                            \
    (vmaxvq_u16(vaddq_u16(vreinterpretq_u16_s16(v), vdupq_n_u16(IDCT_SANE + 1))) > \
     2 * IDCT_SANE + 1)
#define IDCT_STORE(output, stride, row, v)                    \
    do {                                                      \
        const uint8x16_t both = vreinterpretq_u8_s16(v);      \
        uint8_t *to = (output)[0] + (size_t)(row) * (stride); \
        vst1_u8(to, vget_low_u8(both));                       \
        vst1_u8(to + (stride), vget_high_u8(both));           \
    } while (0)

#define COLOUR_PIXELS 16

/* Eight pixels in 16 bits, by the constants of colour_template.h. */
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

#include "decode/baseline/entropy_template.h"
#include "decode/baseline/colour_template.h"
#include "decode/baseline/idct_template.h"
#include "decode/baseline/reduced_template.h"

const struct kernels baseline_kernels_neon = {
    .run = neon_run,
    .skip = neon_skip,
    .idct = neon_idct,
    .idct_to_four = neon_to_four,
    .idct_to_two = neon_to_two,
    .idct_to_one = neon_to_one,
    .blend = neon_blend,
    .twice = neon_double,
    .quarter = neon_quarter,
    .rgbx = neon_rgbx,
    .grey = neon_grey,
};
#endif
