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

enum { ONE = 65535, ROUND_MAX = 127, LANES = RESIZE_PIXEL_BYTES, GROUP = 8, PADDING_BYTES = 64 };

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
    double first = window.is_area ? floor(window.centre - window.reach + slack)
                                  : floor(window.centre - window.reach + 0.5);
    double last = window.is_area ? ceil(window.centre + window.reach - slack)
                                 : floor(window.centre + window.reach + 0.5);

    window.first = first > low ? (uint32_t)first : low;
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
    double distance = fabs(at - window->centre) / window->reach;

    return distance < 1 ? 1 - distance : 0;
}

static double weights_sum(const struct resize_window *window)
{
    double sum = 0;

    for (uint32_t k = 0; k < window->count; k++)
        sum += weight_at(window, k);
    return sum;
}

/* Round so that the sum is ONE: the rounding error goes to the largest weight. Return the count up
 * to the last non-zero weight. */
static uint32_t set_weights(const struct resize_window *window, uint16_t *weights, uint32_t taps)
{
    const double sum = weights_sum(window), factor = sum > 0 ? ONE / sum : 0;
    int32_t left = ONE;
    uint32_t largest = 0;

    for (uint32_t k = 0; k < window->count; k++) {
        weights[k] = (uint16_t)(weight_at(window, k) * factor + 0.5);
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
    if (!axis->first || !axis->weights)
        return -ENOMEM;
    for (uint32_t i = 0; i < side; i++) {
        struct resize_window window = window_at(filter, start, scale, low, high, i);
        assert(window.count <= axis->taps);
        axis->first[i] = window.first;
        uint32_t count = set_weights(&window, axis->weights + (size_t)i * axis->taps, axis->taps);
        axis->widest = count > axis->widest ? count : axis->widest;
    }
    axis->low = low;
    axis->high = high;
    return 0;
}

/* As OpenCV's INTER_AREA. */
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
#ifdef __x86_64__
    resize->avx2 = __builtin_cpu_supports("avx2");
#endif
    const enum resize_filter filter = filter_of(box, width, height);
    int code = plan_axis(&resize->x, filter, box->x, box->width, box->image_width, width, bump);
    if (code)
        return code;
    return plan_axis(&resize->y, filter, box->y, box->height, box->image_height, height, bump);
}

/* Weights of the horizontal pass, each repeated four times, once per byte of a pixel. A group is
 * eight columns; of each two taps come the weights of columns 0 and 4, 1 and 5, 2 and 6, 3 and 7.
 */
static uint16_t *group_weights(const struct resize *resize, uint32_t column)
{
    const uint32_t group = column / GROUP, within = column % GROUP;

    return resize->column_weights + (size_t)group * GROUP * resize->column_taps * LANES +
           (within % (GROUP / 2) * 2 + within / (GROUP / 2)) * 2 * LANES;
}

static int spread_columns(struct resize *resize)
{
    const struct resize_axis *x = &resize->x;
    const uint32_t taps = resize->column_taps = (x->widest + 1) & ~1u;
    const uint32_t columns = (resize->width + GROUP - 1) & ~(GROUP - 1u);

    resize->column_offset = bump_alloc_array(resize->bump, columns, sizeof(uint32_t));
    resize->column_weights =
        bump_alloc_array(resize->bump, (size_t)columns * taps * LANES, sizeof(uint16_t));
    if (!resize->column_offset || !resize->column_weights)
        return -ENOMEM;
    for (uint32_t i = 0; i < columns; i++) {
        const uint32_t column = i < resize->width ? i : resize->width - 1;
        const uint16_t *weights = x->weights + (size_t)column * x->taps;
        uint16_t *spread = group_weights(resize, i);
        resize->column_offset[i] = (x->first[column] - x->low) * LANES;
        for (uint32_t k = 0; k < taps; k += 2, spread += 2 * GROUP * LANES)
            for (uint32_t lane = 0; lane < LANES; lane++) {
                spread[lane] = weights[k];
                spread[LANES + lane] = k + 1 < x->taps ? weights[k + 1] : 0;
            }
    }
    return 0;
}

int resize_begin(struct resize *resize, uint32_t origin, uint32_t columns, uint8_t *output)
{
    const struct resize_axis *x = &resize->x;

    assert(origin <= x->low && x->high <= origin + columns);
    if (spread_columns(resize))
        return -ENOMEM;
    /* A padded window may extend past the last column; its weights there are zero. */
    size_t line = (size_t)(x->high - x->low) * LANES;
    size_t behind = (size_t)resize->column_taps * LANES;
    resize->line = bump_alloc_array(resize->bump, line + behind, sizeof *resize->line);
    resize->ring_rows = resize->y.taps + RESIZE_ROWS_MAX;
    resize->ring_stride = bytes_align_up((size_t)columns * LANES + PADDING_BYTES, BUMP_ALIGNMENT);
    resize->ring = bump_alloc_array(resize->bump, resize->ring_rows, resize->ring_stride);
    resize->window = bump_alloc_array(resize->bump, resize->y.taps, sizeof *resize->window);
    if (!resize->line || !resize->ring || !resize->window)
        return -ENOMEM;
    memset(resize->line + line, 0, behind * sizeof *resize->line);
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

/* ---- the vertical pass: line = sum of weights[k] * rows[k] ---- */

static inline __attribute__((always_inline)) void sum_rows(uint16_t *restrict line,
                                                           const uint8_t *const *rows,
                                                           const uint16_t *weights, uint32_t taps,
                                                           size_t lanes, uint16_t start, bool add)
{
    for (size_t i = 0; i < lanes; i++) {
        uint16_t sum = add ? line[i] : start;
        for (uint32_t k = 0; k < taps; k++) {
            uint16_t value = (uint16_t)(rows[k][i] << 8);
            sum = (uint16_t)(sum + (uint16_t)((uint32_t)value * weights[k] >> 16));
        }
        line[i] = sum;
    }
}

/* A fixed number of taps lets the compiler keep the sum in a register; longer windows take four
 * taps at a time. */
VECTOR_CLONES
static void vertical(uint16_t *restrict line, const uint8_t *const *rows, const uint16_t *weights,
                     uint32_t taps, size_t lanes, uint16_t start)
{
    bool add = false;

    while (taps > 4) {
        sum_rows(line, rows, weights, 4, lanes, start, add);
        add = true;
        rows += 4;
        weights += 4;
        taps -= 4;
    }
    switch (taps) {
    case 1:
        sum_rows(line, rows, weights, 1, lanes, start, add);
        break;
    case 2:
        sum_rows(line, rows, weights, 2, lanes, start, add);
        break;
    case 3:
        sum_rows(line, rows, weights, 3, lanes, start, add);
        break;
    default:
        sum_rows(line, rows, weights, 4, lanes, start, add);
    }
}

/* ---- the horizontal pass: one output row of RGB bytes from a line ---- */

static uint16_t rounding(uint32_t taps)
{
    return (uint16_t)(taps / 2 < ROUND_MAX ? taps / 2 : ROUND_MAX);
}

static void horizontal(const struct resize *resize, uint8_t *row)
{
    const uint32_t start = 128u + rounding(resize->x.widest);

    for (uint32_t i = 0; i < resize->width; i++) {
        const uint16_t *pixels = resize->line + resize->column_offset[i];
        const uint16_t *weights = group_weights(resize, i);
        uint8_t *out = row + (resize->mirror ? resize->width - 1 - i : i) * 3;
        uint32_t sum[LANES] = {start, start, start, start};
        for (uint32_t k = 0; k < resize->column_taps; k += 2, weights += 2 * GROUP * LANES)
            for (uint32_t lane = 0; lane < 2 * LANES; lane++)
                sum[lane % LANES] += (uint32_t)pixels[k * LANES + lane] * weights[lane] >> 16;
        for (int lane = 0; lane < 3; lane++)
            out[lane] = (uint8_t)(sum[lane] < 65536 ? sum[lane] >> 8 : 255);
    }
}

#ifdef __x86_64__
#define AVX2_INLINE __attribute__((target("avx2"), always_inline)) static inline

/* The pixels of a group, four bytes each. */
AVX2_INLINE __m256i group_avx2(const uint16_t *line, const uint32_t *offset, const __m256i *weights,
                               uint32_t pairs, __m256i start)
{
    __m256i sum[4] = {_mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256(),
                      _mm256_setzero_si256()};

    for (uint32_t k = 0; k < pairs; k++, line += 2 * LANES)
        for (int i = 0; i < 4; i++) {
            const __m128i left = _mm_loadu_si128((const void *)(line + offset[i]));
            const __m128i right = _mm_loadu_si128((const void *)(line + offset[i + 4]));
            const __m256i both = _mm256_inserti128_si256(_mm256_castsi128_si256(left), right, 1);
            sum[i] = _mm256_add_epi16(sum[i], _mm256_mulhi_epu16(both, *weights++));
        }
    __m256i low = _mm256_add_epi16(_mm256_unpacklo_epi64(sum[0], sum[1]),
                                   _mm256_unpackhi_epi64(sum[0], sum[1]));
    __m256i high = _mm256_add_epi16(_mm256_unpacklo_epi64(sum[2], sum[3]),
                                    _mm256_unpackhi_epi64(sum[2], sum[3]));
    low = _mm256_srli_epi16(_mm256_adds_epu16(low, start), 8);
    high = _mm256_srli_epi16(_mm256_adds_epu16(high, start), 8);
    return _mm256_packus_epi16(low, high);
}

/* Without the fourth bytes, mirrored if so: 24 bytes. */
AVX2_INLINE __m256i group_rgb(__m256i pixels, bool mirror)
{
    const __m256i plain = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1));
    const __m256i reversed = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(12, 13, 14, 8, 9, 10, 4, 5, 6, 0, 1, 2, -1, -1, -1, -1));
    const __m256i low_first = _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 3, 7);
    const __m256i high_first = _mm256_setr_epi32(4, 5, 6, 0, 1, 2, 3, 7);

    pixels = _mm256_shuffle_epi8(pixels, mirror ? reversed : plain);
    return _mm256_permutevar8x32_epi32(pixels, mirror ? high_first : low_first);
}

/* Inlined for a known number of pairs of taps, which unrolls the sums. Fields of resize are copied
 * first, since to the compiler a byte store might change them. */
AVX2_INLINE void groups_avx2(const struct resize *resize, uint8_t *row, uint32_t pairs)
{
    const __m256i start = _mm256_set1_epi16((int16_t)(128 + rounding(resize->x.widest)));
    const __m256i *weights = (const void *)resize->column_weights;
    const uint32_t *offset = resize->column_offset;
    const uint16_t *line = resize->line;
    const uint32_t width = resize->width;
    const bool mirror = resize->mirror;

    for (uint32_t i = 0; i < width; i += GROUP, weights += (size_t)pairs * GROUP / 2) {
        const __m256i rgb = group_rgb(group_avx2(line, offset + i, weights, pairs, start), mirror);
        const uint32_t left = width - i;
        if (left >= GROUP) {
            uint8_t *out = row + (mirror ? left - GROUP : i) * 3;
            _mm_storeu_si128((void *)out, _mm256_castsi256_si128(rgb));
            _mm_storel_epi64((void *)(out + 16), _mm256_extracti128_si256(rgb, 1));
        } else {
            uint8_t spare[sizeof rgb];
            _mm256_storeu_si256((void *)spare, rgb);
            memcpy(mirror ? row : row + i * 3, mirror ? spare + (GROUP - left) * 3 : spare,
                   left * 3);
        }
    }
}

__attribute__((target("avx2"))) static void horizontal_avx2(const struct resize *resize,
                                                            uint8_t *row)
{
    const uint32_t pairs = resize->column_taps / 2;

    switch (pairs) {
    case 1:
        groups_avx2(resize, row, 1);
        break;
    case 2:
        groups_avx2(resize, row, 2);
        break;
    case 3:
        groups_avx2(resize, row, 3);
        break;
    default:
        groups_avx2(resize, row, pairs);
    }
}
#endif

/* Skip trailing zero weights: most windows are a row shorter than the longest. */
static void emit(struct resize *resize, uint32_t out_row)
{
    const struct resize_axis *y = &resize->y;
    const uint16_t *weights = y->weights + (size_t)out_row * y->taps;
    const size_t lanes = (size_t)(resize->x.high - resize->x.low) * LANES;
    const uint8_t **rows = resize->window;
    uint32_t taps = y->taps;

    while (taps > 1 && weights[taps - 1] == 0)
        taps--;
    for (uint32_t k = 0; k < taps; k++)
        rows[k] = resize->ring + (y->first[out_row] + k) % resize->ring_rows * resize->ring_stride +
                  resize->skip_pixels * LANES;
    vertical(resize->line, rows, weights, taps, lanes, rounding(taps));
    uint8_t *row = resize->output + (size_t)out_row * resize->width * 3;
#ifdef __x86_64__
    if (resize->avx2) {
        horizontal_avx2(resize, row);
        return;
    }
#endif
    horizontal(resize, row);
}

void resize_give(struct resize *resize, uint32_t count)
{
    const struct resize_axis *y = &resize->y;

    resize->row += count;
    while (resize->out_row < resize->height) {
        uint32_t end = y->first[resize->out_row] + y->widest;
        if (end > y->high)
            end = y->high;
        if (end > resize->row)
            break;
        emit(resize, resize->out_row++);
    }
}

void resize_reference(const uint8_t *image, const struct resize_box *box, uint32_t side,
                      double *output)
{
    const double scale_x = box->width / side, scale_y = box->height / side;
    uint32_t low_x, high_x, low_y, high_y;

    bounds(box->x, box->width, box->image_width, &low_x, &high_x);
    bounds(box->y, box->height, box->image_height, &low_y, &high_y);
    for (uint32_t i = 0; i < side * side; i++) {
        uint32_t column = box->mirror ? side - 1 - i % side : i % side;
        struct resize_window y =
            window_at(filter_of(box, side, side), box->y, scale_y, low_y, high_y, i / side);
        struct resize_window x =
            window_at(filter_of(box, side, side), box->x, scale_x, low_x, high_x, column);
        double total = weights_sum(&x) * weights_sum(&y), sum[3] = {0};
        for (uint32_t j = 0; j < y.count; j++) {
            const uint8_t *row = image + (size_t)(y.first + j) * box->image_width * LANES;
            for (uint32_t k = 0; k < x.count; k++)
                for (int lane = 0; lane < 3; lane++)
                    sum[lane] += row[(x.first + k) * LANES + (uint32_t)lane] * weight_at(&x, k) *
                                 weight_at(&y, j);
        }
        for (int lane = 0; lane < 3; lane++)
            output[i * 3 + (uint32_t)lane] = sum[lane] / total;
    }
}
