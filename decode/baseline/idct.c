/* SPDX-License-Identifier: Apache-2.0 */
#include "decode/baseline/kernels.h"

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
#define FROM_FOUR(...) \
    EIGHT(0, __VA_ARGS__), EIGHT(1, __VA_ARGS__), EIGHT(2, __VA_ARGS__), EIGHT(3, __VA_ARGS__)
/* Columns in the order 0 4 2 6 7 1 3 5. */
#define FROM_EIGHT(a, b, c, d, e, f, g, h)                                      \
    {                                                                           \
        FROM_FOUR(a, e, c, g, h, b, d, f), EIGHT(4, a, e, c, g, h, b, d, f),    \
            EIGHT(5, a, e, c, g, h, b, d, f), EIGHT(6, a, e, c, g, h, b, d, f), \
            EIGHT(7, a, e, c, g, h, b, d, f)                                    \
    }

/* The zigzag positions of each row. */
#define ROW_0 0, 1, 5, 6, 14, 15, 27, 28
#define ROW_1 2, 4, 7, 13, 16, 26, 29, 42
#define ROW_2 3, 8, 12, 17, 25, 30, 41, 43
#define ROW_3 9, 11, 18, 24, 31, 40, 44, 53
#define ROW_4 10, 19, 23, 32, 39, 45, 52, 54
#define ROW_5 20, 22, 33, 38, 46, 51, 55, 60
#define ROW_6 21, 34, 37, 47, 50, 56, 59, 61
#define ROW_7 35, 36, 48, 49, 57, 58, 62, 63

/* Interleave two rows: LEFT has columns 0 4 2 6, RIGHT 7 1 3 5, LOW 0 2 1 3 of their first half. */
#define LEFT(a, b, c, d, e, f, g, h, A, B, C, D, E, F, G, H) a, A, e, E, c, C, g, G
#define RIGHT(a, b, c, d, e, f, g, h, A, B, C, D, E, F, G, H) h, H, b, B, d, D, f, F
#define LOW(a, b, c, d, e, f, g, h, A, B, C, D, E, F, G, H) a, A, c, C, b, B, d, D
#define CALL(macro, ...) macro(__VA_ARGS__)
#define EACH_PAIR(half)                                                           \
    CALL(half, ROW_0, ROW_4), CALL(half, ROW_2, ROW_6), CALL(half, ROW_7, ROW_1), \
        CALL(half, ROW_3, ROW_5)
#define LOW_02 CALL(LOW, ROW_0, ROW_2)
#define LOW_13 CALL(LOW, ROW_1, ROW_3)

const uint16_t baseline_idct_positions[64] = {ROW_0, ROW_1, ROW_2, ROW_3,
                                              ROW_4, ROW_5, ROW_6, ROW_7};
const uint16_t baseline_idct_pairs[64] = {EACH_PAIR(LEFT), EACH_PAIR(RIGHT)};
/* A second block's positions are 32 further. */
const uint16_t baseline_idct_low_pairs[64] = {LOW_02, LOW_13, 32, 35, 37, 44, 33, 40, 38,
                                              49,     34,     41, 39, 50, 36, 43, 45, 56};
_Alignas(32) const uint8_t baseline_idct_zigzag[8][8][32] = {
    CALL(FROM_EIGHT, ROW_0), CALL(FROM_EIGHT, ROW_1), CALL(FROM_EIGHT, ROW_2),
    CALL(FROM_EIGHT, ROW_3), CALL(FROM_EIGHT, ROW_4), CALL(FROM_EIGHT, ROW_5),
    CALL(FROM_EIGHT, ROW_6), CALL(FROM_EIGHT, ROW_7)};
_Alignas(32) const uint8_t baseline_idct_low_zigzag[2][4][32] = {{CALL(FROM_FOUR, LOW_02)},
                                                                 {CALL(FROM_FOUR, LOW_13)}};

#define ONES_8 0xffff, 0xffff, 0xffff, 0xffff, 0xffff, 0xffff, 0xffff, 0xffff
_Alignas(64) const uint16_t baseline_idct_high[64] = {
    0,      0,      0,      0,      0,      0,      0,      0,      /* 0 to 7 */
    0,      0,      0xffff, 0,      0,      0,      0xffff, 0xffff, /* not 10, 14, 15 */
    0xffff, 0,      0,      0xffff, 0xffff, 0xffff, 0xffff, 0xffff, /* 17, 18 */
    0,      0xffff, 0xffff, 0xffff, 0xffff, 0xffff, 0xffff, 0xffff, /* 24 */
    ONES_8, ONES_8, ONES_8, ONES_8};

void baseline_idct_prepare(struct idct_quantisers *quantisers, const uint16_t natural[64])
{
    for (uint32_t i = 0; i < 64; i++) {
        const uint16_t quantiser = natural[baseline_markers_natural[i]];
        quantisers->natural[i] = natural[i];
        quantisers->zigzag[i] = quantiser;
        quantisers->twice[i / 8][i % 8] = quantisers->twice[i / 8][i % 8 + 8] = quantiser;
    }
}

static int32_t wrap(int32_t value)
{
    return (int16_t)(uint16_t)(uint32_t)value;
}

static int16_t descale(uint32_t value, int shift)
{
    const int32_t rounded = (int32_t)(value + (1U << (shift - 1))) >> shift;

    return (int16_t)(rounded < INT16_MIN ? INT16_MIN : rounded > INT16_MAX ? INT16_MAX : rounded);
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

void baseline_idct_reference(const struct idct_block *block,
                             const struct idct_quantisers *quantisers, size_t stride)
{
    const int16_t *coefficients = block->coefficients;
    int16_t input[64], columns[64], line[8];
    int32_t high = 0;

    for (int i = 0; i < 64; i++) {
        const uint32_t at = baseline_markers_natural[i];
        input[at] =
            (int16_t)(uint16_t)((uint32_t)(uint16_t)coefficients[i] * quantisers->natural[at]);
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
            block->output[(size_t)y * stride + (size_t)x] = (uint8_t)(value + 128);
        }
    }
}
