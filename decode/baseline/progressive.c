/* SPDX-License-Identifier: Apache-2.0 */
#include "decode/baseline/progressive.h"

#include "decode/baseline/bits.h"

#include <string.h>

/* A scan, and where it stands. */
struct progressive_pass {
    struct baseline *decoder;
    const struct markers_pass *head;
    int32_t dc[MARKERS_COMPONENTS]; /* predictors */
    uint32_t ended;                 /* blocks from here on that have no more symbols in this scan */
};

/* Decode the DC value of a block: its first bits, or one more. */
static bool decode_dc(struct progressive_pass *pass, struct bits *bits, uint32_t component,
                      size_t index)
{
    const struct huffman_codes *codes = &pass->decoder->codes[component];
    int16_t *dc = &pass->decoder->planes[component].stored.dc[index];
    const uint32_t low = pass->head->low;

    if (pass->head->high) {
        *dc = (int16_t)(*dc | (int32_t)(bits_take_one(bits) << low));
        return true;
    }
    bits_refill(bits);
    const uint32_t code = bits_find_code(bits, codes), length = code >> 8, size = code & 15;
    if (code == 0)
        return false;
    const int32_t sum = pass->dc[component] + huffman_value(bits->bits, length, size);
    const int32_t value = sum * (1 << low);
    bits_drop(bits, length + size);
    pass->dc[component] = sum;
    *dc = (int16_t)value;
    return sum >= INT16_MIN && sum <= INT16_MAX && value >= INT16_MIN && value <= INT16_MAX;
}

/* Blocks [index, end) of a row of a component. */
static bool decode_blocks(struct progressive_pass *pass, uint32_t component, size_t index,
                          size_t end)
{
    struct baseline *decoder = pass->decoder;
    const struct markers_pass *head = pass->head;
    const struct progressive_ac ac = {.stream = &decoder->stream,
                                      .codes = &decoder->codes[component],
                                      .stored = &decoder->planes[component].stored,
                                      .first = head->first,
                                      .last = head->last,
                                      .low = head->low,
                                      .ended = &pass->ended};
    const struct kernels *kernels = baseline_kernels_progressive(decoder->kernels);

    if (head->first)
        return (head->high ? kernels->refine_ac : kernels->first_ac)(&ac, index, end);
    struct bits bits = bits_begin(&decoder->stream);
    for (; index < end; index++)
        if (bits_are_used_up(&bits) || !decode_dc(pass, &bits, component, index))
            return false;
    return bits_end(&bits, &decoder->stream);
}

/* MCUs [column, column + count) of all components. */
static bool decode_mcus(struct progressive_pass *pass, uint32_t row, uint32_t column,
                        uint32_t count)
{
    struct baseline *decoder = pass->decoder;
    struct bits bits = bits_begin(&decoder->stream);

    for (uint32_t end = column + count; column < end; column++)
        for (uint32_t i = 0; i < decoder->plane_count; i++) {
            const struct baseline_plane *plane = &decoder->planes[i];
            for (uint32_t y = 0; y < plane->v; y++)
                for (uint32_t x = 0; x < plane->h; x++) {
                    const size_t line = (size_t)row * plane->v + y;
                    if (bits_are_used_up(&bits) ||
                        !decode_dc(pass, &bits, i,
                                   line * plane->stored.columns + column * plane->h + x))
                        return false;
                }
        }
    return bits_end(&bits, &decoder->stream);
}

/* Decode a scan. Returns BASELINE_OTHER if a byte is not as it must be. */
static int decode_pass(struct baseline *decoder)
{
    struct progressive_pass pass = {.decoder = decoder, .head = &decoder->markers.pass};
    const uint32_t component = pass.head->components[0];
    const struct baseline_plane *plane = &decoder->planes[component];
    uint32_t columns = decoder->mcu_columns, rows = decoder->mcu_rows;

    if (pass.head->count == 1) { /* has no blocks beyond the image */
        columns = divide_up(divide_up(decoder->markers.width * plane->h, decoder->h_most), 8);
        rows = divide_up(divide_up(decoder->markers.height * plane->v, decoder->v_most), 8);
    }
    decoder->next = decoder->bytes + decoder->markers.scan;
    decoder->restart_number = 0;
    if (baseline_mcus_begin_segment(decoder))
        return BASELINE_OTHER;
    for (uint32_t row = 0; row < rows; row++)
        for (uint32_t count, column = 0; column < columns; column += count) {
            const size_t index = row * plane->stored.columns + column;
            if (decoder->markers.restart_interval && decoder->interval_left == 0) {
                memset(pass.dc, 0, sizeof pass.dc);
                pass.ended = 0;
            }
            count = baseline_mcus_take(decoder, columns - column);
            if (count == 0 ||
                !(pass.head->count > 1 ? decode_mcus(&pass, row, column, count)
                                       : decode_blocks(&pass, component, index, index + count)))
                return BASELINE_OTHER;
        }
    return entropy_is_complete(&decoder->stream) ? 0 : BASELINE_OTHER;
}

/* Does a scan follow those before, in the order that libjpeg demands? low: the lowest bit that each
 * coefficient has; none yet: negative. */
static bool add_progress(int8_t low[MARKERS_COMPONENTS][64], const struct markers_pass *pass)
{
    for (uint32_t i = 0; i < pass->count; i++) {
        int8_t *of = low[pass->components[i]];
        if (pass->first > 0 && of[0] < 0)
            return false;
        for (uint32_t k = pass->first; k <= pass->last; k++) {
            if (of[k] != (pass->high ? pass->high : -1))
                return false;
            of[k] = (int8_t)pass->low;
        }
    }
    return true;
}

/* List the Huffman codes of a scan. */
static bool list_codes(struct baseline *decoder)
{
    const struct markers *markers = &decoder->markers;
    const struct markers_pass *pass = &markers->pass;
    const bool is_dc = pass->first == 0;

    for (uint32_t i = 0; i < pass->count && !(is_dc && pass->high); i++) {
        const struct markers_component *component = &markers->components[pass->components[i]];
        const struct markers_table *table =
            is_dc ? &markers->dc[component->dc] : &markers->ac[component->ac];
        if (!table->defined ||
            !baseline_huffman_list(&decoder->codes[pass->components[i]], table, is_dc))
            return false;
    }
    return true;
}

static int decode_passes(struct baseline *decoder)
{
    struct markers *markers = &decoder->markers;
    int8_t low[MARKERS_COMPONENTS][64];

    memset(low, -1, sizeof low);
    while (markers->pass.count) {
        if (!add_progress(low, &markers->pass) || !list_codes(decoder) || decode_pass(decoder) ||
            baseline_markers_next_pass(markers, decoder->bytes, decoder->count,
                                       (size_t)(decoder->next - decoder->bytes)))
            return BASELINE_OTHER;
    }
    for (uint32_t i = 0; i < decoder->plane_count; i++)
        for (uint32_t k = 0; k < 64; k++)
            if (low[i][k] != 0) /* bits are missing */
                return BASELINE_OTHER;
    return 0;
}

int baseline_progressive_decode(struct baseline *decoder)
{
    const struct markers first = decoder->markers;

    for (uint32_t i = 0; i < decoder->plane_count; i++) {
        const struct baseline_plane *plane = &decoder->planes[i];
        const size_t blocks = plane->stored.columns * decoder->mcu_rows * plane->v;
        memset(plane->stored.dc, 0, blocks * sizeof *plane->stored.dc);
        memset(plane->stored.nonzero, 0, blocks * sizeof *plane->stored.nonzero);
    }
    const int code = decode_passes(decoder);
    decoder->markers = first;
    return code;
}

uint32_t baseline_progressive_scans(const uint8_t *from, const uint8_t *end)
{
    uint32_t scans = 1;

    while ((from = memchr(from, 0xff, (size_t)(end - from))) && end - from > 1)
        scans += *++from == 0xda;
    return scans;
}
