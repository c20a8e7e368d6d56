/* SPDX-License-Identifier: Apache-2.0
 * The kernels for x86-64 with AVX-512BW. */
#include "decode/baseline/kernels.h"

#ifdef KERNELS_X86
#ifndef __clang__
#pragma GCC optimize("O3") /* gcc vectorises freely from here on */
#endif
#include <immintrin.h>

#include "decode/baseline/cmov.h"

#define BASELINE_NAME(name) avx512_##name
#define BASELINE_TARGET \
    __attribute__((target("avx2,bmi,bmi2,lzcnt,avx512f,avx512bw,avx512vl,avx512dq")))
#define BASELINE_EXTRACT(value, where) __bextr_u64(value, where)
#define BASELINE_AT_END(entry, a, x, b, y, c, z) BASELINE_CMOVS(entry, a, x, b, y, c, z)
#define IDCT_VECTOR __m512i
#define IDCT_LANES 4
#define IDCT_OP(name) _mm512_##name

BASELINE_TARGET static inline __m128i avx512_row(const void *at)
{
    return _mm_loadu_si128(at);
}

/* Rows of four blocks, each row in the lane of its block, from four rows of each. */
BASELINE_TARGET static inline void avx512_gather(const __m512i rows[4], __m512i v[4])
{
    const __m512i low01 = _mm512_shuffle_i32x4(rows[0], rows[1], 0x44);
    const __m512i low23 = _mm512_shuffle_i32x4(rows[2], rows[3], 0x44);
    const __m512i high01 = _mm512_shuffle_i32x4(rows[0], rows[1], 0xee);
    const __m512i high23 = _mm512_shuffle_i32x4(rows[2], rows[3], 0xee);

    v[0] = _mm512_shuffle_i32x4(low01, low23, 0x88);
    v[1] = _mm512_shuffle_i32x4(low01, low23, 0xdd);
    v[2] = _mm512_shuffle_i32x4(high01, high23, 0x88);
    v[3] = _mm512_shuffle_i32x4(high01, high23, 0xdd);
}

/* Two vectors hold a block: any order is two permutations. */
BASELINE_TARGET static inline void avx512_natural(const int16_t *const *blocks, __m512i v[8])
{
    const __m512i first = _mm512_loadu_si512(baseline_idct_positions);
    const __m512i second = _mm512_loadu_si512(baseline_idct_positions + 32);
    __m512i upper[4], lower[4];

    for (int i = 0; i < 4; i++) {
        const __m512i a = _mm512_loadu_si512(blocks[i]), b = _mm512_loadu_si512(blocks[i] + 32);
        upper[i] = _mm512_permutex2var_epi16(a, first, b);
        lower[i] = _mm512_permutex2var_epi16(a, second, b);
    }
    avx512_gather(upper, v);
    avx512_gather(lower, v + 4);
}

#define IDCT_NATURAL(blocks, v) avx512_natural(blocks, v)
#define IDCT_SPREAD(at) _mm512_broadcast_i32x4(avx512_row(at))
#define IDCT_EXTREME(v)                                                           \
    _mm512_test_epi16_mask(_mm512_add_epi16(v, _mm512_set1_epi16(IDCT_SANE + 1)), \
                           _mm512_set1_epi16((int16_t) ~(2 * IDCT_SANE + 1)))

/* The low half of each lane is row `row`, the high half the next. */
BASELINE_TARGET static inline void avx512_store(uint8_t *output, size_t stride, __m128i v)
{
    _mm_storel_epi64((void *)output, v);
    _mm_storeh_pd((void *)(output + stride), _mm_castsi128_pd(v));
}

#define IDCT_STORE(output, stride, row, v)                                     \
    do {                                                                       \
        const __m512i all = v;                                                 \
        uint8_t *const *to = output;                                           \
        const size_t skip = (size_t)(row) * (stride);                          \
        avx512_store(to[0] + skip, stride, _mm512_castsi512_si128(all));       \
        avx512_store(to[1] + skip, stride, _mm512_extracti32x4_epi32(all, 1)); \
        avx512_store(to[2] + skip, stride, _mm512_extracti32x4_epi32(all, 2)); \
        avx512_store(to[3] + skip, stride, _mm512_extracti32x4_epi32(all, 3)); \
    } while (0)

#define COLOUR_VECTOR __m512i
#define COLOUR_PIXELS 32
#define COLOUR_OP(name) _mm512_##name
#define COLOUR_LOAD(at) _mm512_cvtepu8_epi16(_mm256_loadu_si256((const void *)(at)))
#define COLOUR_STORE(at, low, high) avx512_pixels(at, low, high)

BASELINE_TARGET static inline void avx512_pixels(uint8_t *at, __m512i low, __m512i high)
{
    const __m512i first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
    const __m512i second = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);

    _mm512_storeu_si512(at, _mm512_permutex2var_epi64(low, first, high));
    _mm512_storeu_si512(at + 64, _mm512_permutex2var_epi64(low, second, high));
}

#include "decode/baseline/entropy_template.h"
#include "decode/baseline/colour_template.h"
#include "decode/baseline/idct_template.h"
#include "decode/baseline/reduced_template.h"

const struct kernels baseline_kernels_avx512 = {
    .run = avx512_run,
    .skip = avx512_skip,
    .idct = avx512_idct,
    .idct_to_four = avx512_to_four,
    .idct_to_two = avx512_to_two,
    .idct_to_one = avx512_to_one,
    .blend = avx512_blend,
    .twice = avx512_double,
    .quarter = avx512_quarter,
    .rgbx = avx512_rgbx,
    .grey = avx512_grey,
};
#endif
