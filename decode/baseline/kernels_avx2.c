/* SPDX-License-Identifier: Apache-2.0
 * The kernels for x86-64 with AVX2 and BMI2. */
#include "decode/baseline/kernels.h"

#ifdef KERNELS_X86
#ifndef __clang__
#pragma GCC optimize("O3") /* gcc vectorises freely from here on */
#endif
#include <immintrin.h>

#include "decode/baseline/cmov.h"

#define BASELINE_NAME(name) avx2_##name
#define BASELINE_TARGET __attribute__((target("avx2,bmi,bmi2,lzcnt")))
#define BASELINE_EXTRACT(value, where) __bextr_u64(value, where)
#define BASELINE_AT_END(entry, a, x, b, y, c, z) BASELINE_CMOVS(entry, a, x, b, y, c, z)
#define IDCT_VECTOR __m256i
#define IDCT_LANES 2
#define IDCT_OP(name) _mm256_##name

BASELINE_TARGET static inline __m128i avx2_row(const void *at)
{
    return _mm_loadu_si128(at);
}

#define IDCT_LOAD(blocks, row)                                                         \
    _mm256_inserti128_si256(_mm256_castsi128_si256(avx2_row((blocks)[0] + 8 * (row))), \
                            avx2_row((blocks)[1] + 8 * (row)), 1)
#define IDCT_BYTES(at) _mm256_load_si256((const void *)(at))
#define IDCT_SPREAD(at) _mm256_broadcastsi128_si256(avx2_row(at))
#define IDCT_EXTREME(v)                                                         \
    (!_mm256_testz_si256(_mm256_add_epi16(v, _mm256_set1_epi16(IDCT_SANE + 1)), \
                         _mm256_set1_epi16((int16_t) ~(2 * IDCT_SANE + 1))))

/* The low half of each lane is row `row`, the high half the next. */
BASELINE_TARGET static inline void avx2_store(uint8_t *output, size_t stride, __m128i v)
{
    _mm_storel_epi64((void *)output, v);
    _mm_storeh_pd((void *)(output + stride), _mm_castsi128_pd(v));
}

#define IDCT_STORE(output, stride, row, v)                                                        \
    do {                                                                                          \
        const __m256i both = v;                                                                   \
        avx2_store((output)[0] + (size_t)(row) * (stride), stride, _mm256_castsi256_si128(both)); \
        avx2_store((output)[1] + (size_t)(row) * (stride), stride,                                \
                   _mm256_extracti128_si256(both, 1));                                            \
    } while (0)

#define COLOUR_VECTOR __m256i
#define COLOUR_PIXELS 16
#define COLOUR_OP(name) _mm256_##name
#define COLOUR_LOAD(at) _mm256_cvtepu8_epi16(avx2_row(at))
#define COLOUR_STORE(at, low, high) avx2_pixels(at, low, high)

BASELINE_TARGET static inline void avx2_pixels(uint8_t *at, __m256i low, __m256i high)
{
    _mm256_storeu_si256((void *)at, _mm256_permute2x128_si256(low, high, 0x20));
    _mm256_storeu_si256((void *)(at + 32), _mm256_permute2x128_si256(low, high, 0x31));
}

#include "decode/baseline/entropy_template.h"
#include "decode/baseline/colour_template.h"
#include "decode/baseline/idct_template.h"
#include "decode/baseline/reduced_template.h"

const struct kernels baseline_kernels_avx2 = {
    .run = avx2_run,
    .skip = avx2_skip,
    .idct = avx2_idct,
    .idct_to_four = avx2_to_four,
    .idct_to_two = avx2_to_two,
    .idct_to_one = avx2_to_one,
    .blend = avx2_blend,
    .twice = avx2_double,
    .quarter = avx2_quarter,
    .rgbx = avx2_rgbx,
    .grey = avx2_grey,
};
#endif
