/* SPDX-License-Identifier: Apache-2.0 */
#include "decode/baseline/mcus.h"

#include "decode/baseline/progressive.h"

#include <string.h>

/* ---- segments: what is between markers, or points ---- */

/* To the end of the file, or just past the next point: where its byte is 0xff, with a zero. */
static const uint8_t *segment_limit(const struct baseline *decoder)
{
    const struct baseline_route *route = &decoder->route;

    if (route->next == route->end || route->next->bit / 8 + 2 > decoder->count)
        return decoder->bytes + decoder->count;
    return decoder->bytes + route->next->bit / 8 + 2;
}

/* It ends at a marker, before which any 0xff are filling; without one, the file is cut. */
int baseline_mcus_begin_segment(struct baseline *decoder)
{
    const uint8_t *const limit = segment_limit(decoder);
    const uint8_t *const file_end = decoder->bytes + decoder->count;
    uint8_t *end;

    decoder->segment = decoder->next;
    decoder->next = baseline_entropy_unstuff(decoder->next, limit, decoder->unstuffed, &end);
    while (file_end - decoder->next > 1 && decoder->next[0] == 0xff && decoder->next[1] == 0xff)
        decoder->next++;
    if (file_end - decoder->next < 2 || (limit == file_end && decoder->next[1] == 0))
        return BASELINE_OTHER;
    baseline_entropy_begin(&decoder->stream, decoder->unstuffed, end);
    decoder->interval_left = decoder->markers.restart_interval;
    memset(decoder->dc, 0, sizeof decoder->dc);
    baseline_notes_begin_segment(&decoder->notes);
    return 0;
}

int baseline_mcus_enter(struct baseline *decoder, const struct baseline_point *point)
{
    const uint64_t interval = decoder->markers.restart_interval;
    const uint64_t mcus = (uint64_t)point->row * decoder->mcu_columns;

    decoder->next = decoder->bytes + point->bit / 8;
    if (baseline_mcus_begin_segment(decoder))
        return BASELINE_OTHER;
    baseline_entropy_skip_bits(&decoder->stream, (uint32_t)(point->bit % 8));
    memcpy(decoder->dc, point->dc, sizeof decoder->dc);
    decoder->decoded_rows = point->row;
    if (interval) { /* a marker at the end of the row above is still ahead */
        const uint64_t begun = (mcus + interval - 1) / interval;
        decoder->restart_number = (uint32_t)(begun - 1) & 7;
        decoder->interval_left = (uint32_t)(begun * interval - mcus);
    }
    return 0;
}

static int pass_restart(struct baseline *decoder)
{
    /* The segment ended at a marker. */
    if (!baseline_entropy_is_complete(&decoder->stream) ||
        decoder->next[1] != 0xd0 + decoder->restart_number)
        return BASELINE_OTHER;
    decoder->restart_number = (decoder->restart_number + 1) & 7;
    decoder->next += 2;
    return baseline_mcus_begin_segment(decoder);
}

/* ---- MCUs of a row ---- */

/* Turn differences into DC values, which wrap to 16 bits. */
static void add_dc(struct baseline *decoder, int16_t *coefficients, uint32_t mcus)
{
    for (uint32_t i = 0; i < decoder->plane_count; i++) {
        const struct baseline_plane *plane = &decoder->planes[i];
        const size_t mcu = (size_t)decoder->mcu_blocks * 64;
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
}

/* The same for MCUs that were stepped over. */
static void add_skipped_dc(struct baseline *decoder, const struct entropy_mark *marks,
                           uint32_t mcus)
{
    for (uint32_t i = 0; i < decoder->plane_count; i++) {
        const struct baseline_plane *plane = &decoder->planes[i];
        const struct entropy_mark *first = marks + plane->first_block;
        uint32_t sum = 0;
        for (uint32_t j = 0; j < plane->h * plane->v; j++)
            sum += decoder->kernels->sum_dc(&decoder->stream, first + j, mcus, decoder->mcu_blocks,
                                            plane->huffman);
        decoder->dc[i] = (uint16_t)(decoder->dc[i] + sum);
    }
}

uint32_t baseline_mcus_take(struct baseline *decoder, uint32_t wanted)
{
    if (decoder->markers.restart_interval == 0)
        return wanted;
    if (decoder->interval_left == 0 && pass_restart(decoder))
        return 0;
    const uint32_t mcus = lesser(wanted, decoder->interval_left);
    decoder->interval_left -= mcus;
    return mcus;
}

/* Decode MCUs [from, to) of a row into the coefficients. */
static int decode_mcus(struct baseline *decoder, uint32_t from, uint32_t to)
{
    struct entropy_block *blocks = decoder->blocks + (size_t)from * decoder->mcu_blocks;
    int16_t *coefficients = decoder->coefficients;

    for (uint32_t mcus; from < to; from += mcus) {
        if (!(mcus = baseline_mcus_take(decoder, to - from)))
            return BASELINE_OTHER;
        const size_t count = (size_t)mcus * decoder->mcu_blocks;
        huffman_reference *const last = &blocks[count - 1].next_dc, next_dc = *last;
        *last = decoder->cache.stop;
        const bool good = decoder->kernels->run(&decoder->stream, blocks, coefficients,
                                                coefficients + count * 64);
        *last = next_dc;
        if (!good)
            return BASELINE_OTHER;
        add_dc(decoder, coefficients, mcus);
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
        if (!(mcus = baseline_mcus_take(decoder, lesser(to - from, decoder->chunk_columns))))
            return BASELINE_OTHER;
        struct entropy_skip_block *const end = blocks + (size_t)mcus * decoder->mcu_blocks;
        const struct huffman_skip *const next_dc = end[-1].next_dc;
        end[-1].next_dc = &decoder->cache.skip_stop;
        const bool good = decoder->kernels->skip(&decoder->stream, blocks, end, marks);
        end[-1].next_dc = next_dc;
        if (!good)
            return BASELINE_OTHER;
        add_skipped_dc(decoder, marks, mcus);
        blocks = end;
    }
    return 0;
}

/* ---- the inverse DCT ---- */

static idct_each *choose_idct(const struct kernels *kernels, uint32_t side)
{
    return side == 8   ? kernels->idct
           : side == 4 ? kernels->idct_to_four
           : side == 2 ? kernels->idct_to_two
                       : kernels->idct_to_one;
}

/* Of blocks without AC coefficients, those listed stay. */
static void use_stored(const struct baseline_plane *plane, size_t stored, uint32_t count,
                       struct idct_block *blocks)
{
    for (uint32_t i = 0; i < count; i++)
        blocks[i].coefficients = baseline_progressive_block(
            &plane->stored, stored + i, (int16_t *)(uintptr_t)blocks[i].coefficients);
}

/* List a row of the blocks of MCUs [column, end), which are decoded: the row `line` of the MCUs;
 * blocks outside the image are not needed. Returns how many. */
static uint32_t list_row(const struct baseline *decoder, const struct baseline_plane *plane,
                         uint32_t line, uint32_t column, uint32_t end, struct idct_block *blocks)
{
    const uint32_t row = decoder->decoded_rows * plane->v + line;
    const uint32_t from = column * plane->h, to = lesser(end * plane->h, plane->columns);
    const size_t rest_of_mcu = (size_t)(decoder->mcu_blocks - plane->h) * 64;
    int16_t *block = decoder->coefficients + (size_t)(plane->first_block + line * plane->h) * 64;
    uint8_t *output =
        baseline_plane_row(plane, row * plane->side) + from * plane->side - plane->origin;
    uint32_t within = 0; /* the MCU */

    for (uint32_t i = 0; i < to - from; i++) {
        blocks[i] = (struct idct_block){block, output};
        output += plane->side;
        block += 64;
        if (++within == plane->h) {
            within = 0;
            block += rest_of_mcu;
        }
    }
    if (decoder->markers.is_progressive)
        use_stored(plane, row * plane->stored.columns + from, to - from, blocks);
    return to - from;
}

/* May blocks of both be transformed by one call? */
static bool are_alike(const struct baseline_plane *a, const struct baseline_plane *b)
{
    return a->quantiser == b->quantiser && a->side == b->side && a->stride == b->stride;
}

/* Returns BASELINE_OTHER if libjpeg must transform. */
static int transform(const struct baseline *decoder, uint32_t column, uint32_t end)
{
    struct idct_block blocks[IDCT_BLOCKS];
    uint32_t count = 0;

    for (uint32_t i = 0; i < decoder->plane_count; i++) {
        const struct baseline_plane *plane = &decoder->planes[i];
        const uint32_t left = plane->height - decoder->decoded_rows * plane->v * plane->side;
        for (uint32_t line = 0; line < plane->v && line * plane->side < left; line++)
            count += list_row(decoder, plane, line, column, end, blocks + count);
        if (count == 0 || (i + 1 < decoder->plane_count && are_alike(plane, plane + 1)))
            continue;
        if (!choose_idct(decoder->kernels, plane->side)(blocks, count, &plane->quantisers,
                                                        plane->stride))
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
    for (uint32_t i = 0; i < decoder->plane_count; i++) {
        const struct baseline_plane *plane = &decoder->planes[i];
        const uint32_t first = decoder->decoded_rows * plane->v * plane->side;
        baseline_plane_repeat_edges(plane, first,
                                    lesser(first + plane->v * plane->side, plane->height));
    }
    return 0;
}

int baseline_mcus_decode_row(struct baseline *decoder)
{
    struct baseline_route *route = &decoder->route;
    const bool leaves = route->next < route->end && route->next->row == decoder->decoded_rows + 1;
    const uint32_t columns = leaves ? decoder->end_column : decoder->mcu_columns;

    baseline_notes_add(&decoder->notes, decoder->decoded_rows,
                       (uint64_t)(decoder->segment - decoder->bytes), &decoder->stream,
                       decoder->dc);
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
    const struct baseline_point *point = route->next++;
    return baseline_mcus_enter(decoder, point);
}
