/* SPDX-License-Identifier: Apache-2.0
 * The kernels for x86-64 with AVX-512BW. */
#include "decode/baseline/kernels.h"

#ifdef __x86_64__
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

BASELINE_TARGET static inline __m512i avx512_load(const int16_t *const *blocks, int row)
{
    const __m256i low =
        _mm256_inserti128_si256(_mm256_castsi128_si256(avx512_row(blocks[0] + 8 * row)),
                                avx512_row(blocks[1] + 8 * row), 1);
    const __m256i high =
        _mm256_inserti128_si256(_mm256_castsi128_si256(avx512_row(blocks[2] + 8 * row)),
                                avx512_row(blocks[3] + 8 * row), 1);
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

#define IDCT_LOAD(blocks, row) avx512_load(blocks, row)
#define IDCT_SPREAD(at) _mm512_broadcast_i32x4(avx512_row(at))
#define IDCT_EXTREME(v)                                                           \
    _mm512_test_epi16_mask(_mm512_add_epi16(v, _mm512_set1_epi16(IDCT_SANE + 1)), \
                           _mm512_set1_epi16((int16_t) ~(2 * IDCT_SANE + 1)))

/* The low half of each lane is row `row`, the high half the next. */
BASELINE_TARGET static inline void avx512_store(uint8_t *output, size_t stride, __m128i v)
{
    _mm_storel_epi64((void *)output, v);
    _mm_storel_epi64((void *)(output + stride), _mm_unpackhi_epi64(v, v));
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

#include "decode/baseline/entropy_template.h"
#include "decode/baseline/colour_template.h"
#include "decode/baseline/idct_template.h"

const struct kernels kernels_avx512 = {
    .run = avx512_run,
    .skip = avx512_skip,
    .idct = avx512_idct,
    .blend = avx512_blend,
    .twice = avx512_double,
    .quarter = avx512_quarter,
    .rgbx = avx512_rgbx,
    .grey = avx512_grey,
};
#endif
