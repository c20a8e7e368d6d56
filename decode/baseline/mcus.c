/* SPDX-License-Identifier: Apache-2.0 */
#include "decode/baseline/bits.h"
#include "decode/baseline/mcus.h"

#include <assert.h>
#include <string.h>

/* ---- segments: what is between markers, or points ---- */

/* Begin at the bytes `next`. */
static int begin_segment(struct baseline *decoder)
{
    const uint8_t *const file_end = decoder->bytes + decoder->count;
    const struct baseline_point *point = decoder->route.next;
    const uint8_t *limit = file_end, *from = decoder->next;
    uint8_t *to = decoder->unstuffed;

    /* Just past the next point: where its byte is 0xff, with a zero. */
    if (point != decoder->route.end && point->bit / 8 + 2 <= decoder->count)
        limit = decoder->bytes + point->bit / 8 + 2;
    /* Copy the entropy-coded data until a marker or the limit, without stuffed zeros. */
    while (from < limit) {
        const uint8_t *marker = memchr(from, 0xff, (size_t)(limit - from));
        const size_t count = (size_t)((marker ? marker : limit) - from);
        memcpy(to, from, count);
        to += count;
        from += count;
        if (!marker || limit - marker < 2 || marker[1] != 0)
            break;
        *to++ = 0xff;
        from += 2;
    }
    memset(to, 0, ENTROPY_PADDING);
    decoder->segment = decoder->next;
    decoder->next = from;
    /* It ends at a marker, before which any 0xff are filling; without one, the file is cut. */
    while (file_end - decoder->next > 1 && decoder->next[0] == 0xff && decoder->next[1] == 0xff)
        decoder->next++;
    if (file_end - decoder->next < 2 || (limit == file_end && decoder->next[1] == 0))
        return BASELINE_OTHER;
    decoder->stream =
        (struct entropy_stream){.start = decoder->unstuffed, .next = decoder->unstuffed, .end = to};
    decoder->interval_left = decoder->markers.restart_interval;
    memset(decoder->dc, 0, sizeof decoder->dc);
    decoder->notes.bytes = decoder->notes.stuffed = 0;
    return 0;
}

int baseline_mcus_start(struct baseline *decoder)
{
    decoder->next = decoder->bytes + decoder->markers.scan;
    decoder->restart_number = 0;
    decoder->decoded_rows = 0;
    return begin_segment(decoder);
}

int baseline_mcus_enter(struct baseline *decoder, const struct baseline_point *point)
{
    const uint64_t interval = decoder->markers.restart_interval;
    const uint64_t mcus = (uint64_t)point->row * decoder->mcu_columns;
    const uint32_t bits = (uint32_t)(point->bit % 8);

    decoder->next = decoder->bytes + point->bit / 8;
    if (begin_segment(decoder))
        return BASELINE_OTHER;
    if (bits) {
        decoder->stream.bits = (uint64_t)*decoder->stream.next++ << (56 + bits);
        decoder->stream.count = 8 - bits;
    }
    memcpy(decoder->dc, point->dc, sizeof decoder->dc);
    decoder->decoded_rows = point->row;
    if (interval) { /* a marker at the end of the row above is still ahead */
        const uint64_t begun = (mcus + interval - 1) / interval;
        decoder->restart_number = (uint32_t)(begun - 1) & 7;
        decoder->interval_left = (uint32_t)(begun * interval - mcus);
    }
    return 0;
}

/* ---- MCUs of a row ---- */

/* Return how many of `wanted` MCUs the current restart interval has; 0 if it cannot begin. */
static uint32_t take_mcus(struct baseline *decoder, uint32_t wanted)
{
    if (decoder->markers.restart_interval == 0)
        return wanted;
    if (decoder->interval_left == 0) {
        /* The segment ended at a marker. */
        if (!entropy_is_complete(&decoder->stream) ||
            decoder->next[1] != 0xd0 + decoder->restart_number)
            return 0;
        decoder->restart_number = (decoder->restart_number + 1) & 7;
        decoder->next += 2;
        if (begin_segment(decoder))
            return 0;
    }
    const uint32_t mcus = lesser(wanted, decoder->interval_left);
    decoder->interval_left -= mcus;
    return mcus;
}

/* Decode MCUs [from, to) of a row into the coefficients. */
static int decode_mcus(struct baseline *decoder, uint32_t from, uint32_t to)
{
    const size_t mcu = (size_t)decoder->mcu_blocks * 64;
    struct entropy_block *blocks = decoder->blocks + (size_t)from * decoder->mcu_blocks;
    int16_t *coefficients = decoder->coefficients;

    assert(to - from <= decoder->chunk_columns);
    for (uint32_t mcus; from < to; from += mcus) {
        if (!(mcus = take_mcus(decoder, to - from)))
            return BASELINE_OTHER;
        const size_t count = (size_t)mcus * decoder->mcu_blocks;
        huffman_reference *const last = &blocks[count - 1].next_dc, next_dc = *last;
        *last = decoder->cache.stop;
        const bool good = decoder->kernels->run(&decoder->stream, blocks, coefficients,
                                                coefficients + count * 64);
        *last = next_dc;
        if (!good)
            return BASELINE_OTHER;
        /* Turn differences into DC values, which wrap to 16 bits. */
        for (uint32_t i = 0; i < decoder->plane_count; i++) {
            const struct baseline_plane *plane = &decoder->planes[i];
            const size_t first = (size_t)plane->first_block * 64;
            const size_t end = first + (size_t)plane->h * plane->v * 64;
            int16_t *at = coefficients;
            uint16_t dc = decoder->dc[i];
            for (uint32_t left = mcus; left > 0; left--, at += mcu)
                for (size_t block = first; block < end; block += 64) {
                    dc = (uint16_t)(dc + at[block]);
                    at[block] = (int16_t)dc;
                }
            decoder->dc[i] = dc;
        }
        blocks += count;
        coefficients += count * 64;
    }
    return 0;
}

/* Step over MCUs [from, to) of a row. */
static int skip_mcus(struct baseline *decoder, uint32_t from, uint32_t to)
{
    struct entropy_skip_block *blocks = decoder->skip_blocks + (size_t)from * decoder->mcu_blocks;
    struct entropy_mark marks[CHUNK_BLOCKS + 1];

    for (uint32_t mcus; from < to; from += mcus) {
        if (!(mcus = take_mcus(decoder, lesser(to - from, decoder->chunk_columns))))
            return BASELINE_OTHER;
        struct entropy_skip_block *const end = blocks + (size_t)mcus * decoder->mcu_blocks;
        const struct huffman_skip *const next_dc = end[-1].next_dc;
        end[-1].next_dc = &decoder->cache.skip_stop;
        const bool good = decoder->kernels->skip(&decoder->stream, blocks, end, marks);
        end[-1].next_dc = next_dc;
        if (!good)
            return BASELINE_OTHER;
        for (uint32_t i = 0; i < decoder->plane_count; i++) {
            const struct baseline_plane *plane = &decoder->planes[i];
            uint32_t sum = 0;
            for (uint32_t j = 0; j < plane->h * plane->v; j++)
                sum += decoder->kernels->sum_dc(&decoder->stream, marks + plane->first_block + j,
                                                mcus, decoder->mcu_blocks, plane->huffman);
            decoder->dc[i] = (uint16_t)(decoder->dc[i] + sum);
        }
        blocks = end;
    }
    return 0;
}

/* ---- the inverse DCT ---- */

/* List row `line` of the blocks of MCUs [column, end), which are decoded; blocks outside the image
 * are not needed. Returns how many. */
static uint32_t list_row(const struct baseline *decoder, const struct baseline_plane *plane,
                         uint32_t line, uint32_t column, uint32_t end, struct idct_block *blocks)
{
    const uint32_t row = decoder->decoded_rows * plane->v + line;
    const uint32_t from = column * plane->h, to = lesser(end * plane->h, plane->columns);
    const size_t rest_of_mcu = (size_t)(decoder->mcu_blocks - plane->h) * 64;
    const struct baseline_stored *stored = &plane->stored;
    int16_t *block = decoder->coefficients + (size_t)(plane->first_block + line * plane->h) * 64;
    uint8_t *output =
        baseline_plane_row(plane, row * plane->side) + from * plane->side - plane->origin;
    uint32_t within = 0; /* the MCU */

    for (uint32_t i = 0; i < to - from; i++) {
        blocks[i] = (struct idct_block){block, output};
        if (decoder->markers.is_progressive) {
            /* Without AC coefficients, the listed block's zeros stay. */
            const size_t index = row * stored->columns + from + i;
            int16_t *values = stored->nonzero[index] ? stored->ac[index] : block;
            values[0] = stored->dc[index];
            blocks[i].coefficients = values;
        }
        output += plane->side;
        block += 64;
        if (++within == plane->h) {
            within = 0;
            block += rest_of_mcu;
        }
    }
    return to - from;
}

/* Transform MCUs [column, end) of a row. Returns BASELINE_OTHER if libjpeg must transform. */
static int transform(const struct baseline *decoder, uint32_t column, uint32_t end)
{
    const struct kernels *kernels = decoder->kernels;
    struct idct_block blocks[IDCT_BLOCKS];
    uint32_t count = 0;

    for (uint32_t i = 0; i < decoder->plane_count; i++) {
        const struct baseline_plane *plane = &decoder->planes[i], *next = plane + 1;
        const uint32_t left = plane->height - decoder->decoded_rows * plane->v * plane->side;
        for (uint32_t line = 0; line < plane->v && line * plane->side < left; line++)
            count += list_row(decoder, plane, line, column, end, blocks + count);
        assert(count <= IDCT_BLOCKS);
        /* Blocks of planes that are alike are transformed by one call. */
        if (count == 0 || (i + 1 < decoder->plane_count && plane->quantiser == next->quantiser &&
                           plane->side == next->side && plane->stride == next->stride))
            continue;
        idct_each *const idct = plane->side == 8   ? kernels->idct
                                : plane->side == 4 ? kernels->idct_to_four
                                : plane->side == 2 ? kernels->idct_to_two
                                                   : kernels->idct_to_one;
        if (!idct(blocks, count, &plane->quantisers, plane->stride))
            return BASELINE_OTHER;
        count = 0;
    }
    return 0;
}

/* ---- a row ---- */

/* Decode and transform the MCUs of the region in a row. Some at a time: their coefficients stay in
 * the first-level cache. */
static int decode_region(struct baseline *decoder)
{
    for (uint32_t end, column = decoder->first_column; column < decoder->end_column; column = end) {
        end = lesser(column + decoder->chunk_columns, decoder->end_column);
        if (!decoder->markers.is_progressive && decode_mcus(decoder, column, end))
            return BASELINE_OTHER;
        if (transform(decoder, column, end))
            return BASELINE_OTHER;
        memset(decoder->coefficients, 0, baseline_mcus_chunk_bytes(decoder));
    }
    /* Repeat the first and last sample past the edges of the image where columns are interpolated
     * there. */
    for (uint32_t i = 0; i < decoder->plane_count; i++) {
        const struct baseline_plane *plane = &decoder->planes[i];
        const uint32_t first = decoder->decoded_rows * plane->v * plane->side;
        const uint32_t end = lesser(first + plane->v * plane->side, plane->height);
        if (plane->upsampling != UPSAMPLE_H2V1 && plane->upsampling != UPSAMPLE_H2V2)
            continue;
        for (uint32_t y = first; y < end; y++) {
            uint8_t *row = baseline_plane_row(plane, y) - plane->origin;
            if (plane->origin == 0)
                row[-1] = row[0];
            if (plane->width <= plane->end)
                row[plane->width] = row[plane->width - 1];
        }
    }
    return 0;
}

int baseline_mcus_decode_row(struct baseline *decoder)
{
    const struct baseline_point *point = decoder->route.next;
    const bool leaves = point < decoder->route.end && point->row == decoder->decoded_rows + 1;
    const uint32_t columns = leaves ? decoder->end_column : decoder->mcu_columns;

    assert(decoder->decoded_rows < decoder->mcu_rows);
    if (decoder->notes.spacing && decoder->decoded_rows &&
        decoder->decoded_rows % decoder->notes.spacing == 0) { /* note the point before the row */
        const struct entropy_stream *stream = &decoder->stream;
        const uint64_t position = entropy_position(stream);
        const uint8_t *at = stream->start + decoder->notes.bytes;
        const uint8_t *const end = stream->start + position / 8;
        struct baseline_point *noted =
            &decoder->notes.points[decoder->decoded_rows / decoder->notes.spacing - 1];
        /* In the file, a stuffed zero follows every 0xff. */
        for (; (at = memchr(at, 0xff, (size_t)(end - at))); at++)
            decoder->notes.stuffed++;
        decoder->notes.bytes = position / 8;
        const uint64_t segment = (uint64_t)(decoder->segment - decoder->bytes);
        *noted = (struct baseline_point){.row = decoder->decoded_rows,
                                         .bit = (segment + decoder->notes.stuffed) * 8 + position};
        memcpy(noted->dc, decoder->dc, sizeof noted->dc);
    }
    if (decoder->markers.is_progressive) { /* all coefficients are there */
        if (decoder->decoded_rows >= decoder->first_row && decode_region(decoder))
            return BASELINE_OTHER;
    } else if (decoder->decoded_rows < decoder->first_row) {
        if (skip_mcus(decoder, 0, columns))
            return BASELINE_OTHER;
    } else if (skip_mcus(decoder, 0, decoder->first_column) || decode_region(decoder) ||
               skip_mcus(decoder, decoder->end_column, columns)) {
        return BASELINE_OTHER;
    }
    decoder->decoded_rows++;
    if (!leaves)
        return 0;
    decoder->route.next++;
    return baseline_mcus_enter(decoder, point);
}

/* ---- scans of a progressive image (ITU-T T.81, annex G) ----
 *
 * They give coefficients of the whole image, which are transformed afterwards as those of a
 * baseline image are. Most blocks of most scans are empty, so a block without AC coefficients is a
 * DC value and a mask alone, and runs of such blocks cost nothing. What libjpeg would warn of, and
 * what it would smooth since bits are missing at the end, is left to it. */

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
static bool decode_dc_mcus(struct progressive_pass *pass, uint32_t row, uint32_t column,
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
    if (baseline_mcus_start(decoder))
        return BASELINE_OTHER;
    for (uint32_t row = 0; row < rows; row++)
        for (uint32_t count, column = 0; column < columns; column += count) {
            const size_t index = row * plane->stored.columns + column;
            if (decoder->markers.restart_interval && decoder->interval_left == 0) {
                memset(pass.dc, 0, sizeof pass.dc);
                pass.ended = 0;
            }
            count = take_mcus(decoder, columns - column);
            if (count == 0 ||
                !(pass.head->count > 1 ? decode_dc_mcus(&pass, row, column, count)
                                       : decode_blocks(&pass, component, index, index + count)))
                return BASELINE_OTHER;
        }
    return entropy_is_complete(&decoder->stream) ? 0 : BASELINE_OTHER;
}

static int decode_passes(struct baseline *decoder)
{
    struct markers *markers = &decoder->markers;
    const struct markers_pass *pass = &markers->pass;
    int8_t low[MARKERS_COMPONENTS][64]; /* bit that each coefficient has; none yet: negative */

    memset(low, -1, sizeof low);
    while (pass->count) {
        const bool is_dc = pass->first == 0;
        for (uint32_t i = 0; i < pass->count; i++) { /* scans follow in the order of libjpeg */
            int8_t *of = low[pass->components[i]];
            if (!is_dc && of[0] < 0)
                return BASELINE_OTHER;
            for (uint32_t k = pass->first; k <= pass->last; k++) {
                if (of[k] != (pass->high ? pass->high : -1))
                    return BASELINE_OTHER;
                of[k] = (int8_t)pass->low;
            }
        }
        for (uint32_t i = 0; i < pass->count && !(is_dc && pass->high); i++) {
            const struct markers_component *component = &markers->components[pass->components[i]];
            const struct markers_table *table =
                is_dc ? &markers->dc[component->dc] : &markers->ac[component->ac];
            if (!table->defined ||
                !baseline_huffman_list(&decoder->codes[pass->components[i]], table, is_dc))
                return BASELINE_OTHER;
        }
        if (decode_pass(decoder) ||
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
