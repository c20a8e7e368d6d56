/* SPDX-License-Identifier: Apache-2.0
 * The kernels for x86-64 with AVX2 and BMI2. */
#include "decode/baseline/kernels.h"

#ifdef KERNELS_X86
#ifndef __clang__
#pragma GCC optimize("O3") /* gcc vectorises freely from here on */
#endif
#include <immintrin.h>

#define BASELINE_NAME(name) avx2_##name
#define BASELINE_TARGET __attribute__((target("avx2,bmi,bmi2,lzcnt")))
#define BASELINE_EXTRACT(value, where) __bextr_u64(value, where)
#define BASELINE_DEPOSIT(bits, mask) _pdep_u64(bits, mask)
#define BASELINE_AT_END(entry, a, x, b, y, c, z) BASELINE_CMOVS(entry, a, x, b, y, c, z)
#define IDCT_VECTOR __m256i
#define IDCT_LANES 2
#define IDCT_OP(name) _mm256_##name

BASELINE_TARGET static inline __m128i avx2_row(const void *at)
{
    return _mm_loadu_si128(at);
}

#define IDCT_SHUFFLE_PAIRS(a, b, which) \
    _mm256_castps_si256(_mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), which))

#define IDCT_SRAI(v, bits) _mm256_srai_epi32(v, bits)
#define IDCT_BLEND_ODD(a, b) _mm256_blend_epi16(a, b, 0xaa)
#define IDCT_SWAP(v) _mm256_shufflehi_epi16(_mm256_shufflelo_epi16(v, 0xb1), 0xb1)

BASELINE_TARGET static inline bool avx2_extreme(__m256i a, __m256i b, int mask)
{
    const __m256i sane = _mm256_set1_epi16(IDCT_SANE + 1);
    const __m256i beyond = _mm256_or_si256(_mm256_add_epi16(a, sane), _mm256_add_epi16(b, sane));

    return !_mm256_testz_si256(beyond, _mm256_set1_epi32(mask));
}

#define AVX2_BEYOND (0xffff & ~(2 * IDCT_SANE + 1))
#define IDCT_EXTREME(a, b) avx2_extreme(a, b, (int)(AVX2_BEYOND * 0x10001U))
#define IDCT_EXTREME_FIRST(a, b) avx2_extreme(a, b, AVX2_BEYOND)

/* Sixteen coefficients from `at`, if their bits are in the mask. */
BASELINE_TARGET static inline __m256i avx2_high(const int16_t *block, int at)
{
    return _mm256_and_si256(_mm256_load_si256((const void *)(baseline_idct_high + at)),
                            _mm256_loadu_si256((const void *)(block + at)));
}

BASELINE_TARGET static inline size_t avx2_is_low(const int16_t *block)
{
    const __m256i upper = _mm256_or_si256(avx2_high(block, 0), avx2_high(block, 16));
    const __m256i lower = _mm256_or_si256(_mm256_loadu_si256((const void *)(block + 32)),
                                          _mm256_loadu_si256((const void *)(block + 48)));
    const __m256i any = _mm256_or_si256(upper, lower);

    return (size_t)_mm256_testz_si256(any, any);
}
#define IDCT_IS_LOW(block) avx2_is_low(block)

/* Eight coefficients, 8 x `eight`, of two blocks, dequantised. */
BASELINE_TARGET static inline __m256i avx2_load(const struct idct_block *const *blocks,
                                                const struct idct_quantisers *quantisers, int eight)
{
    const __m256i first = _mm256_castsi128_si256(avx2_row(blocks[0]->coefficients + 8 * eight));
    const __m256i both =
        _mm256_inserti128_si256(first, avx2_row(blocks[1]->coefficients + 8 * eight), 1);

    return _mm256_mullo_epi16(both, _mm256_loadu_si256((const void *)quantisers->twice[eight]));
}

/* What eight coefficients in zigzag order, from 8 x `from`, contribute to row `row`. */
#define AVX2_FROM(table, row, from)   \
    _mm256_shuffle_epi8(zigzag[from], \
                        _mm256_load_si256((const void *)baseline_idct_##table[row][from]))
#define AVX2_OR(a, b) _mm256_or_si256(a, b)
#define AVX2_OF_3(table, row, a, b, c) \
    AVX2_OR(AVX2_OR(AVX2_FROM(table, row, a), AVX2_FROM(table, row, b)), AVX2_FROM(table, row, c))
#define AVX2_OF_5(row, a, b, c, d, e)                                            \
    AVX2_OR(AVX2_OR(AVX2_OF_3(zigzag, row, a, b, c), AVX2_FROM(zigzag, row, d)), \
            AVX2_FROM(zigzag, row, e))

BASELINE_TARGET static inline void avx2_pairs(const struct idct_block *const *blocks,
                                              const struct idct_quantisers *quantisers,
                                              __m256i in[2][4])
{
    __m256i zigzag[8];

    for (int i = 0; i < 8; i++)
        zigzag[i] = avx2_load(blocks, quantisers, i);
    const __m256i v[4][2] = {
        {AVX2_OF_3(zigzag, 0, 0, 1, 3), AVX2_OF_5(4, 1, 2, 4, 5, 6)},
        {AVX2_OF_5(2, 0, 1, 2, 3, 5), AVX2_OF_5(6, 2, 4, 5, 6, 7)},
        {AVX2_OF_3(zigzag, 7, 4, 6, 7), AVX2_OF_5(1, 0, 1, 2, 3, 5)},
        {AVX2_OF_5(3, 1, 2, 3, 5, 6), AVX2_OF_5(5, 2, 4, 5, 6, 7)},
    };
    for (int i = 0; i < 4; i++) {
        in[0][i] = _mm256_unpacklo_epi16(v[i][0], v[i][1]);
        in[1][i] = _mm256_unpackhi_epi16(v[i][0], v[i][1]);
    }
}
#define IDCT_LOAD(blocks, quantisers, in) avx2_pairs(blocks, quantisers, in)

BASELINE_TARGET static inline void avx2_low_pairs(const struct idct_block *const *blocks,
                                                  const struct idct_quantisers *quantisers,
                                                  __m256i in[2])
{
    __m256i zigzag[4];

    for (int i = 0; i < 4; i++)
        zigzag[i] = avx2_load(blocks, quantisers, i);
    in[0] = AVX2_OF_3(low_zigzag, 0, 0, 1, 2);
    in[1] = AVX2_OR(AVX2_OF_3(low_zigzag, 1, 0, 1, 2), AVX2_FROM(low_zigzag, 1, 3));
}
#define IDCT_LOAD_LOW(blocks, quantisers, in) avx2_low_pairs(blocks, quantisers, in)

/* The low half of each lane is row `row`, the high half the next. */
BASELINE_TARGET static inline void avx2_store(uint8_t *output, size_t stride, __m128i v)
{
    _mm_storel_epi64((void *)output, v);
    _mm_storeh_pd((void *)(output + stride), _mm_castsi128_pd(v));
}

#define IDCT_STORE(blocks, stride, row, v)                                                 \
    do {                                                                                   \
        const __m256i both = v;                                                            \
        const size_t skip = (size_t)(row) * (stride);                                      \
        avx2_store((blocks)[0]->output + skip, stride, _mm256_castsi256_si128(both));      \
        avx2_store((blocks)[1]->output + skip, stride, _mm256_extracti128_si256(both, 1)); \
    } while (0)

#define COLOUR_VECTOR __m256i
#define COLOUR_PIXELS 16
#define COLOUR_OP(name) _mm256_##name
#define COLOUR_LOAD(at) _mm256_cvtepu8_epi16(avx2_row(at))
#define COLOUR_LOAD_ALL(at) _mm256_loadu_si256((const void *)(at))
#define COLOUR_AND(a, b) _mm256_and_si256(a, b)
#define COLOUR_STORE(at, low, high) avx2_pixels(at, low, high)
#define COLOUR_STORE_4(at, v) avx2_more_pixels(at, v)

BASELINE_TARGET static inline void avx2_pixels(uint8_t *at, __m256i low, __m256i high)
{
    _mm256_storeu_si256((void *)at, _mm256_permute2x128_si256(low, high, 0x20));
    _mm256_storeu_si256((void *)(at + 32), _mm256_permute2x128_si256(low, high, 0x31));
}

BASELINE_TARGET static inline void avx2_more_pixels(uint8_t *at, const __m256i v[4])
{
    for (int i = 0; i < 2; i++) {
        const __m256i a = v[2 * i], b = v[2 * i + 1];
        _mm256_storeu_si256((void *)(at + 32 * i), _mm256_permute2x128_si256(a, b, 0x20));
        _mm256_storeu_si256((void *)(at + 64 + 32 * i), _mm256_permute2x128_si256(a, b, 0x31));
    }
}

#define PROGRESSIVE_ENLARGE(block, mask, negative, unit) avx2_enlarge(block, mask, negative, unit)

/* Set all bits of the words whose bit is set in the lowest 16. */
BASELINE_TARGET static inline __m256i avx2_spread(uint64_t mask)
{
    const __m256i places =
        _mm256_setr_epi16(1, 1 << 1, 1 << 2, 1 << 3, 1 << 4, 1 << 5, 1 << 6, 1 << 7, 1 << 8, 1 << 9,
                          1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14, (int16_t)(1 << 15));

    return _mm256_cmpeq_epi16(_mm256_and_si256(_mm256_set1_epi16((int16_t)mask), places), places);
}

BASELINE_TARGET static inline void avx2_enlarge(int16_t *block, uint64_t mask, uint64_t negative,
                                                int32_t unit)
{
    const __m256i more = _mm256_set1_epi16((int16_t)unit);

    for (int part = 0; part < 64; part += 16) {
        __m256i *const at = (void *)(block + part);
        const __m256i values = _mm256_loadu_si256(at);
        const __m256i sign =
            _mm256_or_si256(_mm256_srai_epi16(values, 15), avx2_spread(negative >> part));
        const __m256i wanted = _mm256_and_si256(avx2_spread(mask >> part), more);
        _mm256_storeu_si256(
            at, _mm256_add_epi16(values, _mm256_sub_epi16(_mm256_xor_si256(wanted, sign), sign)));
    }
}

#define BASELINE_KERNELS baseline_kernels_avx2
#include "decode/baseline/kernels_template.h"
#endif
