/* SPDX-License-Identifier: Apache-2.0
 *
 * All kernels of a level, as the constant BASELINE_KERNELS. Included by kernels_LEVEL.c, which
 * defines what each template wants. Here are upsampling and colour conversion, which want
 * BASELINE_NAME() and BASELINE_TARGET. Loops are simple enough for compilers to vectorise; where
 * they need more than 16 bits, the level may also define, for the conversion by hand,
 *     COLOUR_VECTOR, COLOUR_PIXELS    the type, and the pixels of 16 bits in it
 *     COLOUR_OP(name)                 the intrinsic of this width
 *     COLOUR_LOAD(at)                 that many bytes, widened
 *     COLOUR_LOAD_ALL(at)             a vector
 *     COLOUR_AND(a, b)                bit by bit
 *     COLOUR_STORE(at, low, high)     pixels 0..3 and 4..7 of each 128-bit lane
 *     COLOUR_STORE_4(at, v)           pixels 0..3, 4..7, 8..11, 12..15
 * or COLOUR_PIXELS alone, with a function rgbx_vector() of its own.
 */
#include "decode/baseline/entropy_template.h"
#include "decode/baseline/idct_template.h"

#include <string.h>

BASELINE_TARGET static void BASELINE_NAME(blend)(const uint8_t *restrict near,
                                                 const uint8_t *restrict far, uint32_t count,
                                                 uint16_t *restrict out)
{
    const uint32_t end = colour_steps(count);

    for (uint32_t i = 0; i < end; i++)
        out[i] = (uint16_t)(near[i] * 3 + far[i]);
}

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define COLOUR_BYTES_2(a, b) (uint16_t)((a) | (b) << 8)
#define COLOUR_BYTES_4(a, b, c, d) \
    ((uint32_t)(a) | (uint32_t)(b) << 8 | (uint32_t)(c) << 16 | (uint32_t)(d) << 24)
#else
#define COLOUR_BYTES_2(a, b) (uint16_t)((a) << 8 | (b))
#define COLOUR_BYTES_4(a, b, c, d) \
    ((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | (uint32_t)(d))
#endif

/* Stores pairs of bytes as 16 bits, so that the compiler vectorises with elements of 16 bits. */
BASELINE_TARGET static void BASELINE_NAME(double)(const uint16_t *restrict in, uint32_t count,
                                                  uint32_t even, uint32_t odd,
                                                  uint8_t *restrict out)
{
    const uint16_t round_even = (uint16_t)even, round_odd = (uint16_t)odd;
    const uint16_t *const before = in - 1;
    const uint32_t end = colour_steps(count);

    for (uint32_t i = 0; i < end; i++) {
        const uint16_t left = (uint16_t)(in[i] * 3 + before[i] + round_even) >> 4;
        const uint16_t right = (uint16_t)(in[i] * 3 + in[i + 1] + round_odd) >> 4;
        const uint16_t both = COLOUR_BYTES_2(left, right);
        memcpy(out + 2 * (size_t)i, &both, sizeof both);
    }
}

BASELINE_TARGET static void BASELINE_NAME(quarter)(const uint16_t *restrict in, uint32_t count,
                                                   uint32_t bias, uint8_t *restrict out)
{
    const uint32_t end = colour_steps(count);

    for (uint32_t i = 0; i < end; i++)
        out[i] = (uint8_t)((uint16_t)(in[i] + bias) >> 2);
}

static inline int32_t BASELINE_NAME(clamp)(int32_t value)
{
    return value < 0 ? 0 : value > 255 ? 255 : value;
}

/* 16 fractional bits: 1.402, 1.772, 0.34414, 0.71414. */
BASELINE_TARGET static inline void BASELINE_NAME(rgbx_each)(const uint8_t *restrict y,
                                                            const uint8_t *restrict cb,
                                                            const uint8_t *restrict cr,
                                                            uint32_t count, uint8_t *restrict rgbx)
{
    for (uint32_t i = 0; i < count; i++) {
        const int32_t light = y[i], blue = cb[i] - 128, red = cr[i] - 128;
        const int32_t r = BASELINE_NAME(clamp)(light + ((91881 * red + 32768) >> 16));
        const int32_t g =
            BASELINE_NAME(clamp)(light + ((-22554 * blue - 46802 * red + 32768) >> 16));
        const int32_t b = BASELINE_NAME(clamp)(light + ((116130 * blue + 32768) >> 16));
        const uint32_t pixel = COLOUR_BYTES_4(r, g, b, 255);
        memcpy(rgbx + 4 * (size_t)i, &pixel, sizeof pixel);
    }
}

#ifdef COLOUR_VECTOR
struct BASELINE_NAME(colours) {
    COLOUR_VECTOR r, g, b;
};

/* The same in 16 bits: 1.402 is 1 + 26345 / 2^16, rounded in two steps; 1.772 is 2 - 7471 / 2^15;
 * -0.71414 is -1 + 9367 / 2^15. Not clamped. */
BASELINE_TARGET static inline __attribute__((always_inline)) struct BASELINE_NAME(colours)
    BASELINE_NAME(convert)(COLOUR_VECTOR light, COLOUR_VECTOR blue, COLOUR_VECTOR red)
{
    const COLOUR_VECTOR one = COLOUR_OP(set1_epi16)(1), half = COLOUR_OP(set1_epi32)(1 << 14);
    const COLOUR_VECTOR green = COLOUR_OP(set1_epi32)(9367 * 65536 + (-11277 & 0xffff));

    COLOUR_VECTOR r =
        COLOUR_OP(mulhi_epi16)(COLOUR_OP(add_epi16)(red, red), COLOUR_OP(set1_epi16)(26345));
    r = COLOUR_OP(srai_epi16)(COLOUR_OP(add_epi16)(r, one), 1);
    r = COLOUR_OP(add_epi16)(r, COLOUR_OP(add_epi16)(light, red));
    COLOUR_VECTOR b = COLOUR_OP(mulhrs_epi16)(blue, COLOUR_OP(set1_epi16)(-7471));
    b = COLOUR_OP(add_epi16)(COLOUR_OP(add_epi16)(b, light), COLOUR_OP(add_epi16)(blue, blue));
    COLOUR_VECTOR low = COLOUR_OP(madd_epi16)(COLOUR_OP(unpacklo_epi16)(blue, red), green);
    COLOUR_VECTOR high = COLOUR_OP(madd_epi16)(COLOUR_OP(unpackhi_epi16)(blue, red), green);
    low = COLOUR_OP(srai_epi32)(COLOUR_OP(add_epi32)(low, half), 15);
    high = COLOUR_OP(srai_epi32)(COLOUR_OP(add_epi32)(high, half), 15);
    COLOUR_VECTOR g = COLOUR_OP(packs_epi32)(low, high);
    g = COLOUR_OP(add_epi16)(g, COLOUR_OP(sub_epi16)(light, red));
    return (struct BASELINE_NAME(colours)){r, g, b};
}

BASELINE_TARGET static inline void BASELINE_NAME(rgbx_vector)(const uint8_t *y, const uint8_t *cb,
                                                              const uint8_t *cr, uint8_t *rgbx)
{
    const COLOUR_VECTOR centre = COLOUR_OP(set1_epi16)(128);
    const struct BASELINE_NAME(colours) colours =
        BASELINE_NAME(convert)(COLOUR_LOAD(y), COLOUR_OP(sub_epi16)(COLOUR_LOAD(cb), centre),
                               COLOUR_OP(sub_epi16)(COLOUR_LOAD(cr), centre));
    const COLOUR_VECTOR rb = COLOUR_OP(packus_epi16)(colours.r, colours.b);
    const COLOUR_VECTOR ga = COLOUR_OP(packus_epi16)(colours.g, COLOUR_OP(set1_epi16)(255));
    const COLOUR_VECTOR rg = COLOUR_OP(unpacklo_epi8)(rb, ga);
    const COLOUR_VECTOR ba = COLOUR_OP(unpackhi_epi8)(rb, ga);

    COLOUR_STORE(rgbx, COLOUR_OP(unpacklo_epi16)(rg, ba), COLOUR_OP(unpackhi_epi16)(rg, ba));
}

/* Rounding term that makes chroma of 16 times that, rounded, minus 128. */
BASELINE_TARGET static inline COLOUR_VECTOR BASELINE_NAME(bias)(uint32_t bias)
{
    return COLOUR_OP(set1_epi16)((int16_t)((int32_t)bias - 128 * 16));
}

/* Chroma of even pixels, or of odd ones: three times the sample, and a neighbour. */
BASELINE_TARGET static inline COLOUR_VECTOR
BASELINE_NAME(between)(COLOUR_VECTOR thrice, const uint16_t *neighbour, COLOUR_VECTOR bias)
{
    return COLOUR_OP(srai_epi16)(
        COLOUR_OP(add_epi16)(COLOUR_OP(add_epi16)(thrice, COLOUR_LOAD_ALL(neighbour)), bias), 4);
}

BASELINE_TARGET static inline COLOUR_VECTOR BASELINE_NAME(thrice)(const uint16_t *samples)
{
    const COLOUR_VECTOR once = COLOUR_LOAD_ALL(samples);

    return COLOUR_OP(add_epi16)(COLOUR_OP(add_epi16)(once, once), once);
}

/* Convert 2 * COLOUR_PIXELS pixels: even and odd ones stay in separate vectors until they are
 * bytes. */
BASELINE_TARGET static inline __attribute__((always_inline)) void
BASELINE_NAME(rgbx_twice_vector)(const uint8_t *y, const uint16_t *cb, const uint16_t *cr,
                                 COLOUR_VECTOR even, COLOUR_VECTOR odd, uint8_t *rgbx)
{
    const COLOUR_VECTOR light = COLOUR_LOAD_ALL(y), opaque = COLOUR_OP(set1_epi8)(-1);
    const COLOUR_VECTOR blue = BASELINE_NAME(thrice)(cb), red = BASELINE_NAME(thrice)(cr);
    const struct BASELINE_NAME(colours) left = BASELINE_NAME(convert)(
        COLOUR_AND(light, COLOUR_OP(set1_epi16)(255)), BASELINE_NAME(between)(blue, cb - 1, even),
        BASELINE_NAME(between)(red, cr - 1, even));
    const struct BASELINE_NAME(colours) right = BASELINE_NAME(convert)(
        COLOUR_OP(srli_epi16)(light, 8), BASELINE_NAME(between)(blue, cb + 1, odd),
        BASELINE_NAME(between)(red, cr + 1, odd));
    const COLOUR_VECTOR left_rg = COLOUR_OP(packus_epi16)(left.r, left.g);
    const COLOUR_VECTOR right_rg = COLOUR_OP(packus_epi16)(right.r, right.g);
    const COLOUR_VECTOR r = COLOUR_OP(unpacklo_epi8)(left_rg, right_rg);
    const COLOUR_VECTOR g = COLOUR_OP(unpackhi_epi8)(left_rg, right_rg);
    const COLOUR_VECTOR b = COLOUR_OP(unpacklo_epi8)(COLOUR_OP(packus_epi16)(left.b, left.b),
                                                     COLOUR_OP(packus_epi16)(right.b, right.b));
    const COLOUR_VECTOR rg[2] = {COLOUR_OP(unpacklo_epi8)(r, g), COLOUR_OP(unpackhi_epi8)(r, g)};
    const COLOUR_VECTOR bx[2] = {COLOUR_OP(unpacklo_epi8)(b, opaque),
                                 COLOUR_OP(unpackhi_epi8)(b, opaque)};
    const COLOUR_VECTOR pixels[4] = {
        COLOUR_OP(unpacklo_epi16)(rg[0], bx[0]), COLOUR_OP(unpackhi_epi16)(rg[0], bx[0]),
        COLOUR_OP(unpacklo_epi16)(rg[1], bx[1]), COLOUR_OP(unpackhi_epi16)(rg[1], bx[1])};

    COLOUR_STORE_4(rgbx, pixels);
}
#endif

BASELINE_TARGET static void BASELINE_NAME(rgbx)(const uint8_t *restrict y,
                                                const uint8_t *restrict cb,
                                                const uint8_t *restrict cr, uint32_t count,
                                                uint8_t *restrict rgbx)
{
#ifdef COLOUR_PIXELS
    if (count >= COLOUR_PIXELS) {
        const uint32_t last = count - COLOUR_PIXELS; /* it overlaps */
        for (uint32_t i = 0; i < last; i += COLOUR_PIXELS)
            BASELINE_NAME(rgbx_vector)(y + i, cb + i, cr + i, rgbx + 4 * (size_t)i);
        BASELINE_NAME(rgbx_vector)(y + last, cb + last, cr + last, rgbx + 4 * (size_t)last);
        return;
    }
#endif
    BASELINE_NAME(rgbx_each)(y, cb, cr, count, rgbx);
}

/* Convert by way of bytes, some at a time. */
BASELINE_TARGET static void BASELINE_NAME(rgbx_twice_each)(const uint8_t *y,
                                                           const struct colour_halves *halves,
                                                           uint32_t x, uint32_t width,
                                                           uint8_t *rgbx)
{
    enum { SAMPLES = 2 * COLOUR_STEP };
    uint8_t cb[2 * SAMPLES], cr[2 * SAMPLES];

    for (uint32_t end = x + width, first = 0; 2 * first < end; first += SAMPLES) {
        const uint32_t from = first ? 2 * first : x, odd = from - 2 * first;
        const uint32_t to = end - 2 * first < 2 * SAMPLES ? end : 2 * (first + SAMPLES);
        const uint32_t count = (to + 1) / 2 - first;
        BASELINE_NAME(double)(halves->cb + first, count, halves->even, halves->odd, cb);
        BASELINE_NAME(double)(halves->cr + first, count, halves->even, halves->odd, cr);
        BASELINE_NAME(rgbx)
        (y + (from - x), cb + odd, cr + odd, to - from, rgbx + 4 * (size_t)(from - x));
    }
}

#ifdef COLOUR_VECTOR
/* Write pixels from the even one of sample `first`. */
BASELINE_TARGET static inline void
BASELINE_NAME(rgbx_twice_even)(const uint8_t *y, const struct colour_halves *halves, uint32_t first,
                               uint32_t width, uint8_t *rgbx)
{
    const uint16_t *const cb = halves->cb + first, *const cr = halves->cr + first;
    const COLOUR_VECTOR even = BASELINE_NAME(bias)(halves->even);
    const COLOUR_VECTOR odd = BASELINE_NAME(bias)(halves->odd);
    const size_t last = (width - 2 * COLOUR_PIXELS) & ~1U; /* it overlaps */
    const size_t done = last + 2 * COLOUR_PIXELS;

    for (size_t i = 0; i < last; i += 2 * COLOUR_PIXELS)
        BASELINE_NAME(rgbx_twice_vector)(y + i, cb + i / 2, cr + i / 2, even, odd, rgbx + 4 * i);
    BASELINE_NAME(rgbx_twice_vector)
    (y + last, cb + last / 2, cr + last / 2, even, odd, rgbx + 4 * last);
    if (done < width) {
        const struct colour_halves rest = {cb + done / 2, cr + done / 2, halves->even, halves->odd};
        BASELINE_NAME(rgbx_twice_each)(y + done, &rest, 0, 1, rgbx + 4 * done);
    }
}
#endif

BASELINE_TARGET static void BASELINE_NAME(rgbx_twice)(const uint8_t *y,
                                                      const struct colour_halves *halves,
                                                      uint32_t x, uint32_t width, uint8_t *rgbx)
{
#ifdef COLOUR_VECTOR
    if (width > 2 * COLOUR_PIXELS) {
        if (x)
            BASELINE_NAME(rgbx_twice_each)(y, halves, 1, 1, rgbx);
        BASELINE_NAME(rgbx_twice_even)(y + x, halves, x, width - x, rgbx + 4 * (size_t)x);
        return;
    }
#endif
    BASELINE_NAME(rgbx_twice_each)(y, halves, x, width, rgbx);
}

BASELINE_TARGET static void BASELINE_NAME(grey)(const uint8_t *restrict y, uint32_t count,
                                                uint8_t *restrict rgbx)
{
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t pixel = COLOUR_BYTES_4(y[i], y[i], y[i], 255);
        memcpy(rgbx + 4 * (size_t)i, &pixel, sizeof pixel);
    }
}

#undef COLOUR_BYTES_2
#undef COLOUR_BYTES_4

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
