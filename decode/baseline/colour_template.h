/* SPDX-License-Identifier: Apache-2.0
 *
 * Upsampling and colour conversion, compiled once per CPU by kernels_LEVEL.c, which defines
 * BASELINE_NAME() and BASELINE_TARGET. Loops are simple enough for compilers to vectorise; where
 * they need more than 16 bits, the level may also define, for the conversion by hand,
 *     COLOUR_VECTOR, COLOUR_PIXELS    the type, and the pixels of 16 bits in it
 *     COLOUR_OP(name)                 the intrinsic of this width
 *     COLOUR_LOAD(at)                 that many bytes, widened
 *     COLOUR_STORE(at, low, high)     pixels 0..3 and 4..7 of each 128-bit lane
 * or COLOUR_PIXELS alone, with a function rgbx_vector() of its own.
 */
#include "decode/baseline/colour.h"

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

/* Stores of two bytes: vector code of 16 bits. */
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
/* The same in 16 bits: 1.402 is 1 + 26345 / 2^16, rounded in two steps; 1.772 is 2 - 7471 / 2^15;
 * -0.71414 is -1 + 9367 / 2^15. */
BASELINE_TARGET static inline void BASELINE_NAME(rgbx_vector)(const uint8_t *y, const uint8_t *cb,
                                                              const uint8_t *cr, uint8_t *rgbx)
{
    const COLOUR_VECTOR centre = COLOUR_OP(set1_epi16)(128), one = COLOUR_OP(set1_epi16)(1);
    const COLOUR_VECTOR green = COLOUR_OP(set1_epi32)(9367 * 65536 + (-11277 & 0xffff));
    const COLOUR_VECTOR half = COLOUR_OP(set1_epi32)(1 << 14);
    const COLOUR_VECTOR light = COLOUR_LOAD(y);
    const COLOUR_VECTOR blue = COLOUR_OP(sub_epi16)(COLOUR_LOAD(cb), centre);
    const COLOUR_VECTOR red = COLOUR_OP(sub_epi16)(COLOUR_LOAD(cr), centre);

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

    const COLOUR_VECTOR rb = COLOUR_OP(packus_epi16)(r, b);
    const COLOUR_VECTOR ga = COLOUR_OP(packus_epi16)(g, COLOUR_OP(set1_epi16)(255));
    const COLOUR_VECTOR rg = COLOUR_OP(unpacklo_epi8)(rb, ga);
    const COLOUR_VECTOR ba = COLOUR_OP(unpackhi_epi8)(rb, ga);
    COLOUR_STORE(rgbx, COLOUR_OP(unpacklo_epi16)(rg, ba), COLOUR_OP(unpackhi_epi16)(rg, ba));
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
