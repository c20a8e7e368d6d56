/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows on demand: for the next row of pixels as many rows of MCUs as it needs are decoded
 * (entropy.h) and transformed (kernels.h) into planes; then it is upsampled and converted. A plane
 * has the samples of a component, the last two rows of MCUs in a ring. What the region does not
 * need is skipped, except for the DC values: rows above it and columns beside it. Rows below it are
 * not touched.
 *
 * Reads as far as libjpeg does for the same rows, no further: a damaged byte counts where it does.
 */
#include "decode/baseline/baseline.h"

#include "decode/baseline/kernels.h"
#include "decode/baseline/markers.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64, MARGIN = 64 };
enum { PROGRESSIVE_PIXELS = 1 << 28 }; /* 32 bits can count up to 6.5 bytes for each */

/* Blocks decoded at a time, then transformed; their MCUs are a multiple of CHUNK_STEP where
 * possible. */
enum { CHUNK_BLOCKS = IDCT_BLOCKS, CHUNK_STEP = 4 };

enum baseline_upsampling {
    UPSAMPLE_NONE,
    UPSAMPLE_H2V1,
    UPSAMPLE_H2V2,
    UPSAMPLE_H1V2,
    UPSAMPLE_REPLICATE
};

struct baseline_plane {
    uint32_t h, v;             /* blocks in an MCU */
    uint32_t side;             /* samples of a block */
    uint32_t ratio_x, ratio_y; /* pixels per sample */
    uint32_t width, height;    /* samples that are part of the image */
    uint32_t columns;          /* of blocks with such samples */
    enum baseline_upsampling upsampling;
    struct huffman *huffman;
    uint32_t quantiser; /* its number */
    struct idct_quantisers quantisers;
    uint32_t first_block; /* in an MCU */
    uint32_t rows;        /* of the ring, a power of two */
    size_t stride;
    uint8_t *samples; /* columns [origin, end); before each row is room for one more */
    uint32_t origin, end;
    uint8_t *line;                 /* one row of the region, upsampled */
    struct baseline_stored stored; /* of a progressive image */
};

/* Return row y from column origin on. */
static uint8_t *plane_row(const struct baseline_plane *plane, uint32_t y)
{
    return plane->samples + (y & (plane->rows - 1)) * plane->stride;
}

struct baseline {
    const struct kernels *kernels;
    struct markers markers;
    const uint8_t *bytes;
    size_t count;
    struct baseline_plane planes[MARKERS_COMPONENTS];
    uint32_t plane_count, h_most, v_most;
    uint32_t side; /* of a block, in pixels */
    uint32_t mcu_columns, mcu_rows, mcu_blocks;
    uint32_t chunk_columns; /* MCUs that are decoded, then transformed */
    uint32_t group_rows;    /* MCU rows that libjpeg decodes at once */
    bool needs_context;     /* rows above and below for interpolation */
    /* The region: */
    struct baseline_region region;
    uint32_t first_column, end_column, first_row; /* MCUs to transform */
    struct entropy_block *blocks; /* of a row; with one before, and one after, which is read */
    struct entropy_skip_block *skip_blocks; /* likewise */
    int16_t *coefficients;
    uint8_t *unstuffed;
    uint16_t *blend[2];
    /* The position: */
    const uint8_t *segment, *next; /* as stored: where this one began, and ended */
    struct entropy_stream stream;
    uint32_t interval_left, restart_number;
    uint16_t dc[MARKERS_COMPONENTS]; /* the low bits of the sums */
    uint32_t decoded_rows, row;      /* of MCUs; of pixels */
    struct {                         /* points in the making */
        uint32_t spacing;            /* of rows; 0: none are wanted */
        struct baseline_point *points;
        uint64_t bytes, stuffed; /* of the segment up to the last point; zeros stuffed there */
    } notes;
    struct {
        const struct baseline_point *next, *end;
    } route; /* points in use: those that are still to come */
    struct huffman_cache cache;
    struct huffman_codes codes[MARKERS_COMPONENTS]; /* of a scan of a progressive image */
};

static uint32_t divide_up(uint32_t a, uint32_t b)
{
    return (a + b - 1) / b;
}

static uint32_t lesser(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Return the size of a chunk's coefficients. */
static size_t chunk_bytes(const struct baseline *decoder)
{
    return (size_t)decoder->chunk_columns * decoder->mcu_blocks * ENTROPY_ALIGNMENT;
}

/* ---- segments: what is between markers, or points ---- */

/* Begin at the bytes `next`. */
static int begin_segment(struct baseline *decoder)
{
    const uint8_t *const file_end = decoder->bytes + decoder->count;
    const struct baseline_point *point = decoder->route.next;
    const uint8_t *limit = file_end, *from = decoder->next;
    uint8_t *to = decoder->unstuffed;

    /* Stop just past the next point: two bytes, since its byte may be 0xff, which a zero
     * follows. */
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
    /* The segment ends at a marker, before which 0xff are fill bytes; without a marker the file is
     * truncated. */
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

/* Begin at the first MCU of a scan. */
static int start_scan(struct baseline *decoder)
{
    decoder->next = decoder->bytes + decoder->markers.scan;
    decoder->restart_number = 0;
    decoder->decoded_rows = 0;
    return begin_segment(decoder);
}

/* Go on at a point. */
static int enter(struct baseline *decoder, const struct baseline_point *point)
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
    if (interval) { /* the marker at the end of the row above is still to be read */
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

/* Collect the blocks of row `line` in MCUs [column, end), which are decoded, that lie in the image.
 * Returns their number. */
static uint32_t list_row(const struct baseline *decoder, const struct baseline_plane *plane,
                         uint32_t line, uint32_t column, uint32_t end, struct idct_block *blocks)
{
    const uint32_t row = decoder->decoded_rows * plane->v + line;
    const uint32_t from = column * plane->h, to = lesser(end * plane->h, plane->columns);
    const size_t rest_of_mcu = (size_t)(decoder->mcu_blocks - plane->h) * 64;
    const struct baseline_stored *stored = &plane->stored;
    int16_t *block = decoder->coefficients + (size_t)(plane->first_block + line * plane->h) * 64;
    uint8_t *output = plane_row(plane, row * plane->side) + from * plane->side - plane->origin;
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

/* Decode and transform the MCUs of the region in a row, a chunk at a time, so that coefficients
 * stay in the L1 cache. */
static int decode_region(struct baseline *decoder)
{
    for (uint32_t end, column = decoder->first_column; column < decoder->end_column; column = end) {
        end = lesser(column + decoder->chunk_columns, decoder->end_column);
        if (!decoder->markers.is_progressive && decode_mcus(decoder, column, end))
            return BASELINE_OTHER;
        if (transform(decoder, column, end))
            return BASELINE_OTHER;
        memset(decoder->coefficients, 0, chunk_bytes(decoder));
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
            uint8_t *row = plane_row(plane, y) - plane->origin;
            if (plane->origin == 0)
                row[-1] = row[0];
            if (plane->width <= plane->end)
                row[plane->width] = row[plane->width - 1];
        }
    }
    return 0;
}

/* Decode the next row. */
static int decode_row(struct baseline *decoder)
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
    return enter(decoder, point);
}

/* ---- scans of a progressive image (ITU-T T.81, annex G) ----
 *
 * Scans are decoded into coefficients of the whole image, which are then transformed like those of
 * a baseline image. Most blocks are empty in most scans, so a block without AC coefficients is only
 * a DC value and a mask, and runs of such blocks cost nothing. Images that libjpeg would warn
 * about, or whose last bits are missing so that it would smooth them, are left to libjpeg. */

/* A scan and its state. */
struct progressive_pass {
    struct baseline *decoder;
    const struct markers_pass *head;
    int32_t dc[MARKERS_COMPONENTS]; /* predictors */
    uint32_t ended;                 /* blocks ahead without more symbols in this scan */
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

/* Decode blocks [index, end) of a row of a component. */
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

/* Decode the DC values of MCUs [column, column + count) of all components. */
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

    if (pass.head->count == 1) { /* a scan of one component has no blocks outside the image */
        columns = divide_up(divide_up(decoder->markers.width * plane->h, decoder->h_most), 8);
        rows = divide_up(divide_up(decoder->markers.height * plane->v, decoder->v_most), 8);
    }
    if (start_scan(decoder))
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
    int8_t low[MARKERS_COMPONENTS][64]; /* lowest bit of each coefficient so far; none: negative */

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

/* Decode all scans. */
static int decode_progressive(struct baseline *decoder)
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

/* ---- decoders ---- */

static int level_limit = -1;

struct baseline *baseline_create(void)
{
    const size_t bytes = (sizeof(struct baseline) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    struct baseline *decoder = aligned_alloc(ALIGNMENT, bytes);

    if (!decoder)
        return NULL;
    memset(decoder, 0, bytes);
    baseline_huffman_start(&decoder->cache);
    decoder->kernels =
        baseline_kernels_of(level_limit < 0 ? baseline_kernels_best_level() : level_limit);
    return decoder;
}

void baseline_destroy(struct baseline *decoder)
{
    free(decoder);
}

bool baseline_is_fast(void)
{
#ifdef KERNELS_X86
    return baseline_kernels_best_level() > 0;
#else
    return false; /* NEON: not timed on a machine yet */
#endif
}

int baseline_limit_level(int level)
{
    const int best = baseline_kernels_best_level();

    level_limit = level < best ? level : best;
    return level_limit;
}

/* ---- headers ---- */

int baseline_scale(struct baseline *decoder, uint32_t eighths, struct baseline_image *image)
{
    const struct markers *markers = &decoder->markers;

    if (eighths != 8 && eighths != 4 && eighths != 2 && eighths != 1)
        return BASELINE_OTHER;
    decoder->side = eighths;
    decoder->needs_context = false;
    for (uint32_t i = 0; i < decoder->plane_count; i++) {
        struct baseline_plane *plane = &decoder->planes[i];
        /* The rule of libjpeg's jdmaster.c: a component with fewer samples is shrunk less, as far
         * as that replaces upsampling. */
        plane->side = decoder->side;
        while (plane->side < 8 &&
               decoder->h_most * decoder->side % (plane->h * plane->side * 2) == 0 &&
               decoder->v_most * decoder->side % (plane->v * plane->side * 2) == 0)
            plane->side *= 2;
        plane->ratio_x = decoder->h_most * decoder->side / (plane->h * plane->side);
        plane->ratio_y = decoder->v_most * decoder->side / (plane->v * plane->side);
        plane->width = divide_up(markers->width * plane->h * plane->side, decoder->h_most * 8);
        plane->height = divide_up(markers->height * plane->v * plane->side, decoder->v_most * 8);
        plane->columns = divide_up(plane->width, plane->side);
        /* The rules of libjpeg's jdsample.c. */
        const uint32_t x = plane->ratio_x, y = plane->ratio_y;
        const bool interpolates = decoder->side > 1;
        if (x * plane->h * plane->side != decoder->h_most * decoder->side ||
            y * plane->v * plane->side != decoder->v_most * decoder->side)
            return BASELINE_OTHER;
        if (x == 1 && y == 1)
            plane->upsampling = UPSAMPLE_NONE;
        else if (x == 2 && y == 1 && interpolates && plane->width > 2)
            plane->upsampling = UPSAMPLE_H2V1;
        else if (x == 2 && y == 2 && interpolates && plane->width > 2)
            plane->upsampling = UPSAMPLE_H2V2;
        else if (x == 1 && y == 2 && interpolates)
            plane->upsampling = UPSAMPLE_H1V2;
        else
            plane->upsampling = UPSAMPLE_REPLICATE;
        if (plane->upsampling == UPSAMPLE_H2V2 || plane->upsampling == UPSAMPLE_H1V2)
            decoder->needs_context = true;
    }
    image->width = divide_up(markers->width * eighths, 8);
    image->height = divide_up(markers->height * eighths, 8);
    return 0;
}

int baseline_open(struct baseline *decoder, const void *jpeg, size_t bytes,
                  struct baseline_image *image)
{
    struct markers *markers = &decoder->markers;

    if (baseline_markers_parse(markers, jpeg, bytes) ||
        (markers->is_progressive &&
         (uint64_t)markers->width * markers->height > PROGRESSIVE_PIXELS))
        return BASELINE_OTHER;
    decoder->bytes = jpeg;
    decoder->count = bytes;
    decoder->notes.spacing = 0;
    decoder->plane_count = markers->component_count;
    decoder->h_most = decoder->v_most = 1;
    for (uint32_t i = 0; decoder->plane_count > 1 && i < decoder->plane_count; i++) {
        const struct markers_component *component = &markers->components[i];
        decoder->h_most = component->h > decoder->h_most ? component->h : decoder->h_most;
        decoder->v_most = component->v > decoder->v_most ? component->v : decoder->v_most;
    }
    /* A single component is stored block by block, whatever its sampling factors. */
    decoder->group_rows = decoder->plane_count > 1 ? 1 : markers->components[0].v;
    decoder->mcu_columns = divide_up(markers->width, 8 * decoder->h_most);
    decoder->mcu_rows = divide_up(markers->height, 8 * decoder->v_most);
    decoder->mcu_blocks = 0;
    for (uint32_t i = 0; i < decoder->plane_count; i++) {
        const struct markers_component *component = &markers->components[i];
        struct baseline_plane *plane = &decoder->planes[i];
        plane->h = decoder->plane_count > 1 ? component->h : 1;
        plane->v = decoder->plane_count > 1 ? component->v : 1;
        plane->first_block = decoder->mcu_blocks;
        decoder->mcu_blocks += plane->h * plane->v;
        if (component->quantiser >= MARKERS_TABLES ||
            !markers->quantiser_defined[component->quantiser])
            return BASELINE_OTHER;
        plane->quantiser = component->quantiser;
        baseline_idct_prepare(&plane->quantisers, markers->quantisers[component->quantiser]);
        if (markers->is_progressive)
            continue;
        plane->huffman = baseline_huffman_find(&decoder->cache, &markers->dc[component->dc],
                                               &markers->ac[component->ac]);
        if (!plane->huffman)
            return BASELINE_OTHER;
    }
    assert(decoder->mcu_blocks <= CHUNK_BLOCKS); /* markers.c allows 10 */
    decoder->chunk_columns = CHUNK_BLOCKS / decoder->mcu_blocks;
    if (decoder->chunk_columns > CHUNK_STEP)
        decoder->chunk_columns -= decoder->chunk_columns % CHUNK_STEP;
    *image = (struct baseline_image){.components = markers->component_count,
                                     .header_bytes = markers->scan,
                                     .mcu_rows = decoder->mcu_rows};
    if (markers
            ->is_progressive) { /* scans at most: those that may begin up to the end of the file */
        const uint8_t *at = decoder->bytes + markers->scan, *const end = decoder->bytes + bytes;
        for (image->scans = 1; (at = memchr(at, 0xff, (size_t)(end - at))) && end - at > 1;)
            image->scans += *++at == 0xda;
    }
    return baseline_scale(decoder, 8, image);
}

/* ---- the region ---- */

/* Hand out aligned pieces of one memory block; without a block, only add up their sizes. */
struct baseline_carver {
    uint8_t *memory;
    size_t used;
};

static void *carve(struct baseline_carver *carver, size_t bytes)
{
    void *piece = carver->memory ? carver->memory + carver->used : NULL;

    carver->used += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return piece;
}

static size_t carve_all(struct baseline *decoder, uint8_t *memory)
{
    struct baseline_carver carver = {memory, 0};
    const size_t blocks = (size_t)decoder->mcu_columns * decoder->mcu_blocks;

    decoder->blocks = carve(&carver, (blocks + 2) * sizeof *decoder->blocks);
    decoder->skip_blocks = carve(&carver, (blocks + 2) * sizeof *decoder->skip_blocks);
    /* Pieces are aligned to half a block. */
    uint8_t *coefficients = carve(&carver, chunk_bytes(decoder) + ENTROPY_ALIGNMENT);
    if (coefficients)
        coefficients += -(uintptr_t)coefficients & (ENTROPY_ALIGNMENT - 1);
    decoder->coefficients = (int16_t *)(void *)coefficients;
    decoder->unstuffed = carve(&carver, decoder->count - decoder->markers.scan + ENTROPY_PADDING);
    for (int i = 0; i < 2; i++)
        decoder->blend[i] =
            carve(&carver, (decoder->region.width + MARGIN) * sizeof *decoder->blend[i]);
    for (uint32_t i = 0; i < decoder->plane_count; i++) {
        struct baseline_plane *plane = &decoder->planes[i];
        plane->origin = decoder->first_column * plane->h * plane->side;
        plane->end = decoder->end_column * plane->h * plane->side;
        plane->stride = plane->end - plane->origin + MARGIN;
        plane->rows = 1; /* for two rows of MCUs, a power of two */
        while (plane->rows < 2 * decoder->group_rows * plane->v * plane->side)
            plane->rows *= 2;
        carve(&carver, 1); /* before the first row */
        plane->samples = carve(&carver, plane->stride * plane->rows);
        plane->line = carve(&carver, decoder->region.width + MARGIN);
        if (decoder->markers.is_progressive) {
            struct baseline_stored *stored = &plane->stored;
            stored->columns = (size_t)decoder->mcu_columns * plane->h;
            const size_t all = stored->columns * decoder->mcu_rows * plane->v;
            stored->dc = carve(&carver, all * sizeof *stored->dc);
            stored->nonzero = carve(&carver, all * sizeof *stored->nonzero);
            stored->ac = carve(&carver, all * sizeof *stored->ac);
        }
    }
    return carver.used;
}

size_t baseline_select(struct baseline *decoder, const struct baseline_region *region)
{
    /* Select the MCUs to transform: those of the region and of the samples next to it. */
    const uint32_t width = decoder->side * decoder->h_most;
    const uint32_t height = decoder->side * decoder->v_most;
    const uint32_t left = region->x > decoder->h_most ? region->x - decoder->h_most : 0;
    const uint32_t above = region->y > decoder->v_most ? region->y - decoder->v_most : 0;
    const uint32_t right = region->x + region->width + decoder->h_most;
    assert(region->width > 0 && region->height > 0);
    decoder->region = *region;
    decoder->first_column = left / width;
    decoder->end_column = lesser(divide_up(right, width), decoder->mcu_columns);
    decoder->first_row = above / height;
    return carve_all(decoder, NULL);
}

static void prepare_region(struct baseline *decoder, void *memory)
{
    const bool skips = decoder->first_row > 0 || decoder->first_column > 0 ||
                       decoder->end_column < decoder->mcu_columns || decoder->notes.spacing;

    carve_all(decoder, memory);
    memset(decoder->coefficients, 0, chunk_bytes(decoder));
    decoder->row = decoder->region.y;
    if (decoder->markers.is_progressive)
        return;
    for (uint32_t i = 0; i < decoder->plane_count; i++) {
        if (skips)
            baseline_huffman_want_skip(decoder->planes[i].huffman);
        if (decoder->planes[i].side == 1)
            baseline_huffman_want_flat(decoder->planes[i].huffman);
    }
    decoder->blocks++;
    decoder->skip_blocks++;
    /* Set the tables of a row's blocks; of blocks that shrink to one sample only the DC value is
     * needed. */
    struct entropy_block *block = decoder->blocks;
    struct entropy_skip_block *skip = decoder->skip_blocks;
    for (uint32_t column = 0; column < decoder->mcu_columns; column++)
        for (uint32_t i = 0; i < decoder->plane_count; i++) {
            const struct baseline_plane *plane = &decoder->planes[i];
            const struct huffman *huffman = plane->huffman;
            const bool is_flat = plane->side == 1;
            for (uint32_t j = 0; j < plane->h * plane->v; j++, block++, skip++) {
                block[-1].next_dc = is_flat ? huffman->flat_dc : huffman->dc;
                block->ac = is_flat ? huffman->flat_ac : huffman->ac;
                skip[-1].next_dc = &huffman->skip_dc;
                skip->ac = &huffman->skip_ac;
            }
        }
    block[-1].next_dc = decoder->cache.stop;
    skip[-1].next_dc = &decoder->cache.skip_stop;
}

int baseline_start(struct baseline *decoder, void *memory)
{
    decoder->route.next = decoder->route.end = NULL;
    prepare_region(decoder, memory);
    if (!decoder->markers.is_progressive)
        return start_scan(decoder);
    return decode_progressive(decoder);
}

/* ---- entry points ---- */

static bool leaves_rows(const struct baseline *decoder)
{
    return decoder->end_column < decoder->mcu_columns;
}

int baseline_start_at(struct baseline *decoder, void *memory, const struct baseline_point *points,
                      uint32_t count)
{
    struct baseline_point before = {.row = 0, .bit = decoder->markers.scan * 8};
    uint32_t above = 0;

    if (decoder->markers.is_progressive)
        return BASELINE_OTHER;
    /* Rows and bits ascend, the bits within the scan. */
    for (uint32_t i = 0; i < count; before = points[i++])
        if (points[i].row <= before.row || points[i].bit < before.bit ||
            points[i].bit / 8 >= decoder->count)
            return BASELINE_OTHER;
    prepare_region(decoder, memory);
    decoder->notes.spacing = 0;
    while (above < count && points[above].row <= decoder->first_row)
        above++;
    decoder->route.next = points + above;
    decoder->route.end = points + (leaves_rows(decoder) ? count : above);
    return above ? enter(decoder, &points[above - 1]) : start_scan(decoder);
}

void baseline_note_points(struct baseline *decoder, uint32_t spacing, struct baseline_point *points)
{
    decoder->notes.spacing = spacing;
    decoder->notes.points = points;
}

/* ---- rows ---- */

int baseline_finish_points(struct baseline *decoder)
{
    if (decoder->markers.is_progressive)
        return BASELINE_OTHER;
    decoder->first_row = decoder->mcu_rows; /* skip the rest */
    while (decoder->decoded_rows < decoder->mcu_rows)
        if (decode_row(decoder))
            return BASELINE_OTHER;
    return 0;
}

/* The rows of MCUs that libjpeg decodes before it returns row y: with context, the last pixel rows
 * of one wait for the next. */
static uint32_t rows_until(const struct baseline *decoder, uint32_t y)
{
    const uint32_t v = decoder->v_most, height = decoder->side * v * decoder->group_rows;
    const uint32_t rows = (y / height + 1) * decoder->group_rows;

    return lesser(rows + (decoder->needs_context && y % height >= height - v), decoder->mcu_rows);
}

uint32_t baseline_last_entry(const struct baseline *decoder)
{
    const struct baseline_region *region = &decoder->region;

    return leaves_rows(decoder) ? rows_until(decoder, region->y + region->height - 1) - 1
                                : decoder->first_row;
}

/* Return the second nearest row of samples to pixel row y; at the edge of the image the nearest
 * one. */
static const uint8_t *far_row(const struct baseline_plane *plane, uint32_t y)
{
    const uint32_t near = y / 2, below = near + 1 < plane->height ? near + 1 : near;

    return plane_row(plane, y % 2 ? below : near - (near > 0)) - plane->origin;
}

/* Blend near and far rows, for pixels whose columns are interpolated. Returns the address of the
 * first one. */
static uint16_t *blend_rows(const struct baseline_plane *plane, const struct kernels *kernels,
                            const struct baseline_region *region, uint32_t y, uint16_t *blend)
{
    const uint8_t *near = plane_row(plane, y / plane->ratio_y) - plane->origin;
    const uint8_t *far = plane->upsampling == UPSAMPLE_H2V2 ? far_row(plane, y) : near;
    const uint32_t x = region->x, first = x / 2;
    const uint32_t count = (x + region->width - 1) / 2 - first + 1;
    const ptrdiff_t from = (ptrdiff_t)first - 1;

    kernels->blend(near + from, far + from, count + 2, blend);
    return blend + 1;
}

/* Rounding term, added before blends are divided by 16. */
static uint32_t even_bias(const struct baseline_plane *plane)
{
    return plane->upsampling == UPSAMPLE_H2V1 ? 4 : 8;
}

static uint32_t odd_bias(const struct baseline_plane *plane)
{
    return plane->upsampling == UPSAMPLE_H2V1 ? 8 : 7;
}

static const uint8_t *upsample(const struct baseline_plane *plane, const struct kernels *kernels,
                               const struct baseline_region *region, uint32_t y, uint16_t *blend)
{
    const uint8_t *near = plane_row(plane, y / plane->ratio_y) - plane->origin;

    switch (plane->upsampling) {
    case UPSAMPLE_NONE:
        return near + region->x;
    case UPSAMPLE_H2V1:
    case UPSAMPLE_H2V2:
        kernels->twice(blend_rows(plane, kernels, region, y, blend),
                       (region->x + region->width - 1) / 2 - region->x / 2 + 1, even_bias(plane),
                       odd_bias(plane), plane->line);
        return plane->line + region->x % 2;
    case UPSAMPLE_H1V2:
        kernels->blend(near + region->x, far_row(plane, y) + region->x, region->width, blend);
        kernels->quarter(blend, region->width, 1 + y % 2, plane->line);
        return plane->line;
    case UPSAMPLE_REPLICATE:
        break;
    }
    for (uint32_t i = 0; i < region->width; i++)
        plane->line[i] = near[(region->x + i) / plane->ratio_x];
    return plane->line;
}

int baseline_read(struct baseline *decoder, uint8_t *rgbx)
{
    const struct kernels *kernels = decoder->kernels;
    const struct baseline_region *region = &decoder->region;
    const struct baseline_plane *planes = decoder->planes;
    const uint32_t y = decoder->row++;
    const uint8_t *samples[MARKERS_COMPONENTS];

    for (const uint32_t rows = rows_until(decoder, y); decoder->decoded_rows < rows;)
        if (decode_row(decoder))
            return BASELINE_OTHER;
    const enum baseline_upsampling chroma = planes[1].upsampling;
    if (decoder->plane_count == MARKERS_COMPONENTS && planes[0].upsampling == UPSAMPLE_NONE &&
        planes[2].upsampling == chroma && (chroma == UPSAMPLE_H2V1 || chroma == UPSAMPLE_H2V2)) {
        const struct colour_halves halves = {
            blend_rows(&planes[1], kernels, region, y, decoder->blend[0]),
            blend_rows(&planes[2], kernels, region, y, decoder->blend[1]), even_bias(&planes[1]),
            odd_bias(&planes[1])};
        samples[0] = upsample(&planes[0], kernels, region, y, NULL);
        kernels->rgbx_twice(samples[0], &halves, region->x % 2, region->width, rgbx);
        return 0;
    }
    for (uint32_t i = 0; i < decoder->plane_count; i++)
        samples[i] = upsample(&planes[i], kernels, region, y, decoder->blend[0]);
    if (decoder->plane_count == 1)
        kernels->grey(samples[0], region->width, rgbx);
    else
        kernels->rgbx(samples[0], samples[1], samples[2], region->width, rgbx);
    return 0;
}
