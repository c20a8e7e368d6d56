/* SPDX-License-Identifier: Apache-2.0
 * The kernels for x86-64 with AVX-512BW. */
#include "decode/baseline/kernels.h"

#ifdef KERNELS_X86
#ifndef __clang__
#pragma GCC optimize("O3") /* gcc vectorises freely from here on */
#endif
#include <immintrin.h>

#define BASELINE_NAME(name) avx512_##name
#define BASELINE_TARGET \
    __attribute__((target("avx2,bmi,bmi2,lzcnt,avx512f,avx512bw,avx512vl,avx512dq")))
#define BASELINE_EXTRACT(value, where) __bextr_u64(value, where)
#define BASELINE_AT_END(entry, a, x, b, y, c, z) BASELINE_CMOVS(entry, a, x, b, y, c, z)
#define IDCT_VECTOR __m512i
#define IDCT_LANES 4
#define IDCT_OP(name) _mm512_##name

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

/* A block is two vectors: any order is two permutations. */
BASELINE_TARGET static inline void avx512_pairs(const struct idct_block *const *blocks,
                                                const struct idct_quantisers *quantisers,
                                                __m512i in[2][4])
{
    const __m512i left = _mm512_loadu_si512(baseline_idct_pairs);
    const __m512i right = _mm512_loadu_si512(baseline_idct_pairs + 32);
    const __m512i by_a = _mm512_loadu_si512(quantisers->zigzag);
    const __m512i by_b = _mm512_loadu_si512(quantisers->zigzag + 32);
    __m512i rows[2][4];

    for (int i = 0; i < 4; i++) {
        const int16_t *coefficients = blocks[i]->coefficients;
        const __m512i a = _mm512_mullo_epi16(_mm512_loadu_si512(coefficients), by_a);
        const __m512i b = _mm512_mullo_epi16(_mm512_loadu_si512(coefficients + 32), by_b);
        rows[0][i] = _mm512_permutex2var_epi16(a, left, b);
        rows[1][i] = _mm512_permutex2var_epi16(a, right, b);
    }
    avx512_gather(rows[0], in[0]);
    avx512_gather(rows[1], in[1]);
}
#define IDCT_LOAD(blocks, quantisers, in) avx512_pairs(blocks, quantisers, in)

/* The first vector alone: one permutation of two blocks. */
BASELINE_TARGET static inline void avx512_low_pairs(const struct idct_block *const *blocks,
                                                    const struct idct_quantisers *quantisers,
                                                    __m512i in[2])
{
    const __m512i order = _mm512_loadu_si512(baseline_idct_low_pairs);
    const __m512i by = _mm512_loadu_si512(quantisers->zigzag);
    __m512i v[4];

    for (int i = 0; i < 4; i++)
        v[i] = _mm512_mullo_epi16(_mm512_loadu_si512(blocks[i]->coefficients), by);
    const __m512i upper = _mm512_permutex2var_epi16(v[0], order, v[1]);
    const __m512i lower = _mm512_permutex2var_epi16(v[2], order, v[3]);
    in[0] = _mm512_shuffle_i32x4(upper, lower, 0x88);
    in[1] = _mm512_shuffle_i32x4(upper, lower, 0xdd);
}
#define IDCT_LOAD_LOW(blocks, quantisers, in) avx512_low_pairs(blocks, quantisers, in)

BASELINE_TARGET static inline size_t avx512_is_low(const int16_t *block)
{
    const __m512i high = _mm512_load_si512(baseline_idct_high);
    const __m512i rest = _mm512_loadu_si512(block + 32);

    return !_mm512_test_epi16_mask(
        _mm512_or_si512(_mm512_and_si512(_mm512_loadu_si512(block), high), rest),
        _mm512_set1_epi16(-1));
}
#define IDCT_IS_LOW(block) avx512_is_low(block)

#define IDCT_SHUFFLE_PAIRS(a, b, which) \
    _mm512_castps_si512(_mm512_shuffle_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), which))

#define IDCT_SRAI(v, bits) _mm512_srai_epi32(v, (unsigned)(bits))
#define IDCT_BLEND_ODD(a, b) _mm512_mask_blend_epi16(0xaaaaaaaa, a, b)
#define IDCT_SWAP(v) _mm512_rol_epi32(v, 16)

BASELINE_TARGET static inline bool avx512_extreme(__m512i a, __m512i b, int mask)
{
    const __m512i sane = _mm512_set1_epi16(IDCT_SANE + 1);
    const __m512i beyond = _mm512_or_si512(_mm512_add_epi16(a, sane), _mm512_add_epi16(b, sane));

    return _mm512_test_epi32_mask(beyond, _mm512_set1_epi32(mask));
}

#define AVX512_BEYOND (0xffff & ~(2 * IDCT_SANE + 1))
#define IDCT_EXTREME(a, b) avx512_extreme(a, b, (int)(AVX512_BEYOND * 0x10001U))
#define IDCT_EXTREME_FIRST(a, b) avx512_extreme(a, b, AVX512_BEYOND)

/* The low half of each lane is row `row`, the high half the next. */
BASELINE_TARGET static inline void avx512_store(uint8_t *output, size_t stride, __m128i v)
{
    _mm_storel_epi64((void *)output, v);
    _mm_storeh_pd((void *)(output + stride), _mm_castsi128_pd(v));
}

#define IDCT_STORE(blocks, stride, row, v)                                                   \
    do {                                                                                     \
        const __m512i all = v;                                                               \
        const size_t skip = (size_t)(row) * (stride);                                        \
        avx512_store((blocks)[0]->output + skip, stride, _mm512_castsi512_si128(all));       \
        avx512_store((blocks)[1]->output + skip, stride, _mm512_extracti32x4_epi32(all, 1)); \
        avx512_store((blocks)[2]->output + skip, stride, _mm512_extracti32x4_epi32(all, 2)); \
        avx512_store((blocks)[3]->output + skip, stride, _mm512_extracti32x4_epi32(all, 3)); \
    } while (0)

#define COLOUR_VECTOR __m512i
#define COLOUR_PIXELS 32
#define COLOUR_OP(name) _mm512_##name
#define COLOUR_LOAD(at) _mm512_cvtepu8_epi16(_mm256_loadu_si256((const void *)(at)))
#define COLOUR_LOAD_ALL(at) _mm512_loadu_si512(at)
#define COLOUR_AND(a, b) _mm512_and_si512(a, b)
#define COLOUR_STORE(at, low, high) avx512_pixels(at, low, high)
#define COLOUR_STORE_4(at, v) avx512_more_pixels(at, v)

BASELINE_TARGET static inline void avx512_pixels(uint8_t *at, __m512i low, __m512i high)
{
    const __m512i first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
    const __m512i second = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);

    _mm512_storeu_si512(at, _mm512_permutex2var_epi64(low, first, high));
    _mm512_storeu_si512(at + 64, _mm512_permutex2var_epi64(low, second, high));
}

BASELINE_TARGET static inline void avx512_more_pixels(uint8_t *at, const __m512i v[4])
{
    __m512i lanes[4];

    avx512_gather(v, lanes);
    for (int i = 0; i < 4; i++)
        _mm512_storeu_si512(at + 64 * i, lanes[i]);
}

#define BASELINE_NOT_PROGRESSIVE
#define BASELINE_KERNELS baseline_kernels_avx512
#include "decode/baseline/kernels_template.h"
#endif
