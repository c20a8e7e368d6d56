/* SPDX-License-Identifier: Apache-2.0
 *
 * Invariants.
 * - The weights of a window sum to 65535, so a sum of 16-bit products' high halves cannot pass 16
 *   bits: 255 * 256 * 65535 / 65536 < 65280. Each high half loses half a unit of 1/256 level on
 *   average; half the number of taps is added back, at most ROUND_MAX, which cannot overflow after
 *   the vertical pass; after the horizontal one it can, so the last addition saturates.
 * - The ring holds source row r at r % ring_rows; rows from y.first[out_row] to row - 1 are valid.
 *   A window has at most y.taps rows, so RESIZE_ROWS_MAX slots are always free.
 */
#include "kernels/resize.h"

#include "base/bytes.h"
#include "base/vector.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#ifdef __x86_64__
#include <immintrin.h>
#endif

enum { ONE = 65535, ROUND_MAX = 127, LANES = RESIZE_PIXEL_BYTES, PADDING_BYTES = 64 };
/* The vertical pass processes whole multiples of this, so that no rest is left to scalar code. */
enum { STEP = 32 };
enum { ROWS = 4, GROUP = 8 }; /* rows and columns that the horizontal pass takes at a time */

struct resize_window {
    uint32_t first, count;
    double centre, reach;
    bool is_area;
};

/* A triangle reaches one source pixel, or one output pixel when it shrinks with antialiasing; an
 * area reaches half an output pixel. */
static struct resize_window window_at(enum resize_filter filter, double start, double scale,
                                      uint32_t low, uint32_t high, uint32_t i)
{
    struct resize_window window = {.centre = start + (i + 0.5) * scale,
                                   .reach = filter != RESIZE_BILINEAR && scale > 1 ? scale : 1,
                                   .is_area = filter == RESIZE_AREA};
    if (window.is_area)
        window.reach = scale / 2;
    const double slack = 1e-9; /* a position that an area only touches */
    double first = window.centre - window.reach + (window.is_area ? slack : 0.5);
    double last = window.is_area ? ceil(window.centre + window.reach - slack)
                                 : window.centre + window.reach + 0.5;

    window.first = first > low ? (uint32_t)first : low; /* rounded down, both */
    if (window.first > high - 1)
        window.first = high - 1;
    uint32_t end = last < high ? (uint32_t)last : high;
    window.count = end > window.first ? end - window.first : 1;
    return window;
}

static double weight_at(const struct resize_window *window, uint32_t k)
{
    const double at = window->first + k + 0.5;

    if (window->is_area) /* the covered part of the position */
        return fmax(0, fmin(at + 0.5, window->centre + window->reach) -
                           fmax(at - 0.5, window->centre - window->reach));
    double distance = fabs(at - window->centre);
    if (window->reach != 1)
        distance /= window->reach;
    return distance < 1 ? 1 - distance : 0;
}

/* Round so that the sum is ONE: the rounding error goes to the largest weight. Return the count up
 * to the last non-zero weight. */
static uint32_t set_weights(const struct resize_window *window, double *exact, uint16_t *weights,
                            uint32_t taps)
{
    double sum = 0;
    int32_t left = ONE;
    uint32_t largest = 0;

    for (uint32_t k = 0; k < window->count; k++)
        sum += exact[k] = weight_at(window, k);
    const double factor = sum > 0 ? ONE / sum : 0;
    for (uint32_t k = 0; k < window->count; k++) {
        weights[k] = (uint16_t)(exact[k] * factor + 0.5);
        left -= weights[k];
        if (weights[k] > weights[largest])
            largest = k;
    }
    weights[largest] = (uint16_t)(weights[largest] + left);
    for (uint32_t k = window->count; k < taps; k++)
        weights[k] = 0;
    uint32_t count = window->count;
    while (count > 1 && weights[count - 1] == 0)
        count--;
    return count;
}

static void bounds(double start, double length, uint32_t image, uint32_t *low, uint32_t *high)
{
    /* Scaling a box can miss an integer by a rounding error. */
    const double slack = 1e-6;

    *low = (uint32_t)fmax(0, floor(start + slack));
    *high = (uint32_t)fmin(image, ceil(start + length - slack));
    if (*low >= image)
        *low = image - 1;
    if (*high <= *low)
        *high = *low + 1;
}

static int plan_axis(struct resize_axis *axis, enum resize_filter filter, double start,
                     double length, uint32_t image, uint32_t side, struct bump *bump)
{
    const double scale = length / side;
    uint32_t low, high;

    bounds(start, length, image, &low, &high);
    axis->taps = (uint32_t)(2 * fmax(1, scale)) + 1;
    axis->first = bump_alloc_array(bump, side, sizeof *axis->first);
    axis->weights = bump_alloc_array(bump, (size_t)side * axis->taps, sizeof *axis->weights);
    double *exact = bump_alloc_array(bump, axis->taps, sizeof *exact);
    if (!axis->first || !axis->weights || !exact)
        return -ENOMEM;
    for (uint32_t i = 0; i < side; i++) {
        struct resize_window window = window_at(filter, start, scale, low, high, i);
        assert(window.count <= axis->taps);
        axis->first[i] = window.first;
        uint32_t count =
            set_weights(&window, exact, axis->weights + (size_t)i * axis->taps, axis->taps);
        axis->widest = count > axis->widest ? count : axis->widest;
    }
    axis->low = low;
    axis->high = high;
    return 0;
}

/* Choose the filter as OpenCV's INTER_AREA does. */
static enum resize_filter filter_of(const struct resize_box *box, uint32_t width, uint32_t height)
{
    const bool shrinks = box->width >= width && box->height >= height;

    return box->filter == RESIZE_AREA && !shrinks ? RESIZE_BILINEAR : box->filter;
}

int resize_plan(struct resize *resize, const struct resize_box *box, uint32_t width,
                uint32_t height, struct bump *bump)
{
    *resize =
        (struct resize){.width = width, .height = height, .mirror = box->mirror, .bump = bump};
    assert(width > 0 && height > 0 && box->image_width > 0 && box->image_height > 0);
#ifdef __x86_64__
    resize->avx2 = __builtin_cpu_supports("avx2");
#endif
    const enum resize_filter filter = filter_of(box, width, height);
    int code = plan_axis(&resize->x, filter, box->x, box->width, box->image_width, width, bump);
    if (code)
        return code;
    return plan_axis(&resize->y, filter, box->y, box->height, box->image_height, height, bump);
}

int resize_begin(struct resize *resize, uint32_t origin, uint32_t columns, uint8_t *output)
{
    const struct resize_axis *x = &resize->x;

    assert(origin <= x->low && x->high <= origin + columns);
    /* Lines are whole vectors. A window may extend past the last column; its weights there are
     * zero. */
    size_t pixels = bytes_align_up(x->high - x->low, STEP / 2), behind = x->widest;
    resize->line_stride = pixels * LANES;
    resize->lines =
        bump_alloc_array(resize->bump, resize->line_stride * ROWS, sizeof *resize->lines);
    resize->woven =
        bump_alloc_array(resize->bump, (pixels + behind) * ROWS * LANES, sizeof *resize->woven);
    resize->ring_rows = resize->y.taps + RESIZE_ROWS_MAX;
    resize->ring_stride = bytes_align_up((size_t)columns * LANES + PADDING_BYTES, BUMP_ALIGNMENT);
    resize->ring = bump_alloc_array(resize->bump, resize->ring_rows, resize->ring_stride);
    resize->window = bump_alloc_array(resize->bump, resize->y.taps, sizeof *resize->window);
    const uint32_t groups = (resize->width + GROUP - 1) / GROUP * GROUP;
    resize->columns = bump_alloc_array(resize->bump, groups, sizeof *resize->columns);
    resize->column_weights =
        bump_alloc_array(resize->bump, (size_t)groups * x->widest, sizeof(uint32_t));
    if (!resize->lines || !resize->woven || !resize->ring || !resize->window || !resize->columns ||
        !resize->column_weights)
        return -ENOMEM;
    /* The horizontal pass takes columns as they are written, so from the last one on if mirrored;
     * the last group is filled with copies. */
    uint32_t *pair = resize->column_weights;
    for (uint32_t i = 0; i < groups; i++) {
        const uint32_t written = i < resize->width ? i : resize->width - 1;
        const uint32_t column = resize->mirror ? resize->width - 1 - written : written;
        const uint16_t *weights = x->weights + (size_t)column * x->taps;
        resize->columns[i] = resize->woven + (size_t)(x->first[column] - x->low) * ROWS * LANES;
        for (uint32_t k = 0; k < x->widest; k++)
            *pair++ = weights[k] * 0x10001u;
    }
    memset(resize->woven + pixels * ROWS * LANES, 0, behind * ROWS * LANES * sizeof *resize->woven);
    resize->skip_pixels = x->low - origin;
    resize->row = resize->y.low;
    resize->output = output;
    return 0;
}

uint32_t resize_want(struct resize *resize, uint8_t *rows[RESIZE_ROWS_MAX])
{
    uint32_t left = resize->y.high - resize->row;
    uint32_t count = left < RESIZE_ROWS_MAX ? left : RESIZE_ROWS_MAX;

    if (resize->out_row == resize->height)
        return 0;
    for (uint32_t i = 0; i < count; i++)
        rows[i] = resize->ring + (resize->row + i) % resize->ring_rows * resize->ring_stride;
    return count;
}

/* ---- the vertical pass: a line = sum of weights[k] * rows[k] ---- */

/* Two bytes at a time, each in the upper half of 16 bits, so that vector code need not widen them:
 * sums of bytes 0, 2, ... and of bytes 1, 3, ... */
static inline __attribute__((always_inline)) void
sum_rows(uint16_t *restrict even, uint16_t *restrict odd, const uint8_t *const *rows,
         const uint16_t *weights, uint32_t taps, size_t count, uint16_t start, bool add)
{
    const bool swapped = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;

    count = bytes_align_up(count, STEP);
    for (size_t i = 0; i < count; i++) {
        uint16_t first = add ? even[i] : start, second = add ? odd[i] : start;
        for (uint32_t k = 0; k < taps; k++) {
            uint16_t both;
            memcpy(&both, rows[k] + 2 * i, sizeof both);
            const uint16_t low = (uint16_t)(both << 8), high = both & 0xff00;
            first = (uint16_t)(first + ((uint32_t)(swapped ? high : low) * weights[k] >> 16));
            second = (uint16_t)(second + ((uint32_t)(swapped ? low : high) * weights[k] >> 16));
        }
        even[i] = first;
        odd[i] = second;
    }
}

/* A fixed number of taps lets the compiler keep the sums in registers. */
static inline __attribute__((always_inline)) void
sum_few_rows(uint16_t *restrict even, uint16_t *restrict odd, const uint8_t *const *rows,
             const uint16_t *weights, uint32_t taps, size_t count, uint16_t start, bool add)
{
    switch (taps) {
    case 1:
        sum_rows(even, odd, rows, weights, 1, count, start, add);
        break;
    case 2:
        sum_rows(even, odd, rows, weights, 2, count, start, add);
        break;
    case 3:
        sum_rows(even, odd, rows, weights, 3, count, start, add);
        break;
    default:
        sum_rows(even, odd, rows, weights, 4, count, start, add);
    }
}

/* Longer windows take four taps at a time. */
VECTOR_CLONES
static void vertical(uint16_t *restrict even, uint16_t *restrict odd, const uint8_t *const *rows,
                     const uint16_t *weights, uint32_t taps, size_t count, uint16_t start)
{
    sum_few_rows(even, odd, rows, weights, taps, count, start, false);
    for (uint32_t k = 4; k < taps; k += 4)
        sum_few_rows(even, odd, rows + k, weights + k, taps - k, count, 0, true);
}

/* ---- the horizontal pass: ROWS rows of RGB bytes from as many lines ---- */

static uint16_t rounding(uint32_t taps)
{
    return (uint16_t)(taps / 2 < ROUND_MAX ? taps / 2 : ROUND_MAX);
}

static void horizontal(const struct resize *resize, uint8_t *output, uint32_t rows)
{
    const uint32_t taps = resize->x.widest, start = 128u + rounding(taps);
    const uint32_t *weights = resize->column_weights;
    const size_t stride = resize->line_stride;
    uint16_t *to = resize->woven;

    /* Pixel by pixel, that of each line: then a tap of all rows is one load and has one weight. The
     * lanes of a pixel: red, blue, green, nothing. */
    for (size_t i = 0; i < stride / 2; i += 2)
        for (size_t row = 0; row < ROWS; row++, to += LANES) {
            const uint16_t *even = resize->lines + row * stride + i, *odd = even + stride / 2;
            memcpy(to, even, 2 * sizeof *to);
            memcpy(to + 2, odd, 2 * sizeof *to);
        }
    for (uint32_t i = 0; i < resize->width; i++, weights += taps) {
        const uint16_t *pixels = resize->columns[i];
        uint32_t sums[ROWS * LANES];
        for (uint32_t lane = 0; lane < ROWS * LANES; lane++)
            sums[lane] = start;
        for (uint32_t k = 0; k < taps; k++, pixels += ROWS * LANES)
            for (uint32_t lane = 0; lane < ROWS * LANES; lane++)
                sums[lane] += pixels[lane] * (weights[k] & 0xffff) >> 16;
        for (uint32_t row = 0; row < rows; row++)
            for (uint32_t lane = 0; lane < 3; lane++) {
                const uint32_t sum = sums[row * LANES + lane];
                output[(row * resize->width + i) * 3 + (3 - lane) % 3] =
                    (uint8_t)(sum < 65536 ? sum >> 8 : 255);
            }
    }
}

#ifdef __x86_64__
#define AVX2_INLINE __attribute__((target("avx2"), always_inline)) static inline

/* Take two pixels of each row from the low halves, two from the high ones. */
AVX2_INLINE void weave_four(const __m256i rows[ROWS], __m256i *low, __m256i *high)
{
    const __m256i upper0 = _mm256_unpacklo_epi64(rows[0], rows[1]);
    const __m256i upper1 = _mm256_unpackhi_epi64(rows[0], rows[1]);
    const __m256i lower0 = _mm256_unpacklo_epi64(rows[2], rows[3]);
    const __m256i lower1 = _mm256_unpackhi_epi64(rows[2], rows[3]);

    _mm256_store_si256(low, _mm256_permute2x128_si256(upper0, lower0, 0x20));
    _mm256_store_si256(low + 1, _mm256_permute2x128_si256(upper1, lower1, 0x20));
    _mm256_store_si256(high, _mm256_permute2x128_si256(upper0, lower0, 0x31));
    _mm256_store_si256(high + 1, _mm256_permute2x128_si256(upper1, lower1, 0x31));
}

__attribute__((target("avx2"))) static void weave_avx2(const struct resize *resize)
{
    const size_t stride = resize->line_stride;
    const uint16_t *from = resize->lines;
    __m256i *to = (void *)resize->woven;

    for (size_t i = 0; i < stride / 2; i += 16, to += 8) {
        __m256i low[ROWS], high[ROWS]; /* pixels 0, 1, 4, 5; 2, 3, 6, 7 */
        for (size_t j = 0; j < ROWS; j++) {
            const uint16_t *even = from + j * stride + i, *odd = even + stride / 2;
            const __m256i red_blue = _mm256_load_si256((const void *)even);
            const __m256i green = _mm256_load_si256((const void *)odd);
            low[j] = _mm256_unpacklo_epi32(red_blue, green);
            high[j] = _mm256_unpackhi_epi32(red_blue, green);
        }
        weave_four(low, to, to + 4);
        weave_four(high, to + 2, to + 6);
    }
}

/* A column of ROWS pixels, in 16 bits. */
AVX2_INLINE __m256i column_avx2(const uint16_t *pixels, const uint32_t *weights, uint32_t taps,
                                __m256i start)
{
    __m256i sum = _mm256_setzero_si256();

    for (uint32_t k = 0; k < taps; k++, pixels += ROWS * LANES)
        sum = _mm256_add_epi16(sum, _mm256_mulhi_epu16(_mm256_load_si256((const void *)pixels),
                                                       _mm256_set1_epi32((int)weights[k])));
    return _mm256_srli_epi16(_mm256_adds_epu16(sum, start), 8);
}

/* Four columns: four pixels of rows 0 and 2, without the fourth bytes, and of rows 1 and 3. */
AVX2_INLINE void columns_avx2(const uint16_t *const *columns, const uint32_t *weights,
                              uint32_t taps, __m256i start, __m256i *even, __m256i *odd)
{
    const __m256i rgb = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 2, 1, 4, 6, 5, 8, 10, 9, 12, 14, 13, -1, -1, -1, -1));
    __m256i column[4];

    for (uint32_t i = 0; i < 4; i++)
        column[i] = column_avx2(columns[i], weights + (size_t)i * taps, taps, start);
    const __m256 left = _mm256_castsi256_ps(_mm256_packus_epi16(column[0], column[1]));
    const __m256 right = _mm256_castsi256_ps(_mm256_packus_epi16(column[2], column[3]));
    *even = _mm256_shuffle_epi8(_mm256_castps_si256(_mm256_shuffle_ps(left, right, 0x88)), rgb);
    *odd = _mm256_shuffle_epi8(_mm256_castps_si256(_mm256_shuffle_ps(left, right, 0xdd)), rgb);
}

AVX2_INLINE void store_avx2(uint8_t *output, size_t stride, __m256i even, __m256i odd)
{
    _mm_storeu_si128((void *)output, _mm256_castsi256_si128(even));
    _mm_storeu_si128((void *)(output + stride), _mm256_castsi256_si128(odd));
    _mm_storeu_si128((void *)(output + 2 * stride), _mm256_extracti128_si256(even, 1));
    _mm_storeu_si128((void *)(output + 3 * stride), _mm256_extracti128_si256(odd, 1));
}

AVX2_INLINE void group_avx2(const struct resize *resize, uint32_t i, uint32_t taps, uint8_t *to,
                            size_t stride)
{
    const __m256i start = _mm256_set1_epi16((int16_t)(128 + rounding(taps)));
    const uint16_t *const *columns = resize->columns + i;
    const uint32_t *weights = resize->column_weights + (size_t)i * taps;

    for (int half = 0; half < 2; half++, columns += 4, weights += 4 * (size_t)taps, to += 12) {
        __m256i even, odd;
        columns_avx2(columns, weights, taps, start, &even, &odd);
        store_avx2(to, stride, even, odd);
    }
}

/* Columns from `i` on, and nothing else. */
__attribute__((target("avx2"))) static void
last_columns_avx2(const struct resize *resize, uint32_t i, uint8_t *output, uint32_t rows)
{
    enum { SPARE = 32, WHOLE = GROUP * 3 };
    const uint32_t width = resize->width;
    uint8_t spare[ROWS * SPARE];

    for (; i < width; i += GROUP) {
        group_avx2(resize, i, resize->x.widest, spare, SPARE);
        for (uint32_t row = 0; row < rows; row++) {
            uint8_t *to = output + ((size_t)row * width + i) * 3;
            if (width - i >= GROUP)
                memcpy(to, spare + row * SPARE, WHOLE);
            else
                memcpy(to, spare + row * SPARE, (width - i) * (size_t)3);
        }
    }
}

/* Inlined for a known number of taps, which unrolls the sums. A store of 16 bytes has 12 of four
 * columns; the next one covers the rest, if there are two more columns. */
AVX2_INLINE void groups_avx2(const struct resize *resize, uint8_t *output, uint32_t rows,
                             uint32_t taps)
{
    /* To the compiler, a byte store might change the original. */
    const struct resize copy = *resize;
    const uint32_t width = copy.width;
    uint32_t i = 0;

    for (; rows == ROWS && i + GROUP + 2 <= width; i += GROUP)
        group_avx2(&copy, i, taps, output + (size_t)i * 3, (size_t)width * 3);
    last_columns_avx2(resize, i, output, rows);
}

__attribute__((target("avx2"))) static void horizontal_avx2(const struct resize *resize,
                                                            uint8_t *output, uint32_t rows)
{
    weave_avx2(resize);
    switch (resize->x.widest) {
    case 2:
        groups_avx2(resize, output, rows, 2);
        break;
    case 3:
        groups_avx2(resize, output, rows, 3);
        break;
    case 4:
        groups_avx2(resize, output, rows, 4);
        break;
    default:
        groups_avx2(resize, output, rows, resize->x.widest);
    }
}
#endif

/* Skip trailing zero weights: most windows are a row shorter than the longest. */
static void emit(struct resize *resize, uint32_t out_row)
{
    const struct resize_axis *y = &resize->y;
    const uint16_t *weights = y->weights + (size_t)out_row * y->taps;
    const size_t values = (size_t)(resize->x.high - resize->x.low) * LANES;
    const uint8_t **rows = resize->window;
    uint32_t taps = y->taps;

    while (taps > 1 && weights[taps - 1] == 0)
        taps--;
    for (uint32_t k = 0; k < taps; k++)
        rows[k] = resize->ring + (y->first[out_row] + k) % resize->ring_rows * resize->ring_stride +
                  resize->skip_pixels * LANES;
    uint16_t *line = resize->lines + out_row % ROWS * resize->line_stride;
    vertical(line, line + resize->line_stride / 2, rows, weights, taps, values / 2, rounding(taps));
    if (out_row % ROWS != ROWS - 1 && out_row != resize->height - 1)
        return;
    const uint32_t first = out_row / ROWS * ROWS;
    uint8_t *output = resize->output + (size_t)first * resize->width * 3;
#ifdef __x86_64__
    if (resize->avx2) {
        horizontal_avx2(resize, output, out_row - first + 1);
        return;
    }
#endif
    horizontal(resize, output, out_row - first + 1);
}

void resize_give(struct resize *resize, uint32_t count)
{
    const struct resize_axis *y = &resize->y;

    resize->row += count;
    assert(resize->row <= y->high);
    while (resize->out_row < resize->height) {
        uint32_t end = y->first[resize->out_row] + y->widest;
        if (end > y->high)
            end = y->high;
        if (end > resize->row)
            break;
        emit(resize, resize->out_row++);
    }
}
