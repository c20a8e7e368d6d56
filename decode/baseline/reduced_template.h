/* SPDX-License-Identifier: Apache-2.0
 *
 * Dequantisation and inverse DCTs that give 4 x 4, 2 x 2 or 1 x 1 samples of a block: those of
 * libjpeg (jidctred.c), with results of pass 1 saturated as libjpeg-turbo's vector code for x86
 * does. Plain C that compilers vectorise over columns; idct_template.h has vector code for 4 x 4,
 * on x86 also for 2 x 2. Compiled by kernels_LEVEL.c, which defines BASELINE_NAME(),
 * BASELINE_TARGET.
 */
#include "decode/baseline/idct.h"

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

/* To natural order, dequantised; products wrap. Returns false if a value of the first row is beyond
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
/* Of the even inputs, the first one alone counts. */
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
