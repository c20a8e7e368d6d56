/* SPDX-License-Identifier: Apache-2.0 */
#include "decode/baseline/idct.h"

#include "decode/baseline/markers.h"

#define BYTE(at, from, half) ((at) / 8 == (from) ? 2 * ((at) % 8) + (half) : 0x80)
#define PAIR(at, from) BYTE(at, from, 0), BYTE(at, from, 1)
#define ONCE(from, a, b, c, d, e, f, g, h)                                                    \
    PAIR(a, from), PAIR(b, from), PAIR(c, from), PAIR(d, from), PAIR(e, from), PAIR(f, from), \
        PAIR(g, from), PAIR(h, from)
#define EIGHT(from, ...)                                 \
    {                                                    \
        ONCE(from, __VA_ARGS__), ONCE(from, __VA_ARGS__) \
    }
#define ROW(...)                                                                 \
    {                                                                            \
        EIGHT(0, __VA_ARGS__), EIGHT(1, __VA_ARGS__), EIGHT(2, __VA_ARGS__),     \
            EIGHT(3, __VA_ARGS__), EIGHT(4, __VA_ARGS__), EIGHT(5, __VA_ARGS__), \
            EIGHT(6, __VA_ARGS__), EIGHT(7, __VA_ARGS__)                         \
    }

#define EACH_ROW(ROW)                                                             \
    ROW(0, 1, 5, 6, 14, 15, 27, 28), ROW(2, 4, 7, 13, 16, 26, 29, 42),            \
        ROW(3, 8, 12, 17, 25, 30, 41, 43), ROW(9, 11, 18, 24, 31, 40, 44, 53),    \
        ROW(10, 19, 23, 32, 39, 45, 52, 54), ROW(20, 22, 33, 38, 46, 51, 55, 60), \
        ROW(21, 34, 37, 47, 50, 56, 59, 61), ROW(35, 36, 48, 49, 57, 58, 62, 63)
#define PLAIN(...) __VA_ARGS__

const uint16_t baseline_idct_positions[64] = {EACH_ROW(PLAIN)};
_Alignas(32) const uint8_t baseline_idct_zigzag[8][8][32] = {EACH_ROW(ROW)};

static int16_t saturate(int32_t value)
{
    return (int16_t)(value < INT16_MIN ? INT16_MIN : value > INT16_MAX ? INT16_MAX : value);
}

static int32_t wrap(int32_t value)
{
    return (int16_t)(uint16_t)(uint32_t)value;
}

static int16_t descale(uint32_t value, int shift)
{
    return saturate((int32_t)(value + (1U << (shift - 1))) >> shift);
}

static uint32_t two(int32_t a, int32_t by_a, int32_t b, int32_t by_b)
{
    return (uint32_t)(a * by_a) + (uint32_t)(b * by_b);
}

/* in[0], in[step], ... to out[0], out[1] ...: 32-bit sums wrap. */
static void pass(const int16_t *in, int16_t *out, int shift)
{
    const int32_t in1 = in[8], in3 = in[24], in5 = in[40], in7 = in[56];
    const uint32_t sum = (uint32_t)wrap(in[0] + in[32]) << 13;
    const uint32_t difference = (uint32_t)wrap(in[0] - in[32]) << 13;
    const uint32_t even2 = two(in[16], IDCT_0_541, in[48], IDCT_0_541 - IDCT_1_847);
    const uint32_t even3 = two(in[16], IDCT_0_541 + IDCT_0_765, in[48], IDCT_0_541);
    const uint32_t even[4] = {sum + even3, difference + even2, difference - even2, sum - even3};
    const int32_t s3 = wrap(in7 + in3), s4 = wrap(in5 + in1);
    const uint32_t z3 = two(s3, IDCT_1_175 - IDCT_1_961, s4, IDCT_1_175);
    const uint32_t z4 = two(s3, IDCT_1_175, s4, IDCT_1_175 - IDCT_0_390);
    const uint32_t odd[4] = {
        two(in7, -IDCT_0_899, in1, IDCT_1_501 - IDCT_0_899) + z4,
        two(in5, -IDCT_2_562, in3, IDCT_3_072 - IDCT_2_562) + z3,
        two(in5, IDCT_2_053 - IDCT_2_562, in3, -IDCT_2_562) + z4,
        two(in7, IDCT_0_298 - IDCT_0_899, in1, -IDCT_0_899) + z3,
    };

    for (int i = 0; i < 4; i++) {
        out[i] = descale(even[i] + odd[i], shift);
        out[7 - i] = descale(even[i] - odd[i], shift);
    }
}

void baseline_idct_reference(const int16_t *coefficients, const uint16_t *quantisers,
                             uint8_t *output, size_t stride)
{
    int16_t input[64], columns[64], line[8];
    int32_t high = 0;

    for (int i = 0; i < 64; i++) {
        const uint32_t at = baseline_markers_natural[i];
        input[at] = (int16_t)(uint16_t)((uint32_t)(uint16_t)coefficients[i] * quantisers[at]);
        high |= at >= 8 ? coefficients[i] : 0;
    }
    for (int x = 0; x < 8; x++) {
        if (high)
            pass(input + x, columns + 8 * x, IDCT_SHIFT_1);
        else /* wraps, unlike the other */
            for (int y = 0; y < 8; y++)
                columns[8 * x + y] = (int16_t)(uint16_t)((uint32_t)input[x] << 2);
    }
    for (int y = 0; y < 8; y++) {
        pass(columns + y, line, IDCT_SHIFT_2);
        for (int x = 0; x < 8; x++) {
            const int32_t value = line[x] < -128 ? -128 : line[x] > 127 ? 127 : line[x];
            output[(size_t)y * stride + (size_t)x] = (uint8_t)(value + 128);
        }
    }
}
