/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows on demand. A row of MCUs is decoded (entropy.h), transformed into planes that hold the last
 * two such rows (idct.h), and its pixels are upsampled and converted when asked for (colour.h).
 * What the region does not need is only stepped over, but for the DC values: rows above it and
 * columns beside it. Rows below it are not touched.
 *
 * Reads as far as libjpeg does for the same rows, no further: a damaged byte counts where it does.
 */
#include "decode/baseline/baseline.h"

#include "decode/baseline/kernels.h"
#include "decode/baseline/markers.h"
#include "decode/baseline/planes.h"
#include "decode/baseline/points.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64, MARGIN = 64, CHUNK_BLOCKS = 64 };

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
    uint16_t *blend;
    /* The position: */
    const uint8_t *segment, *next; /* as stored: where this one began, and ended */
    struct entropy_stream stream;
    uint32_t interval_left, restart_number;
    uint16_t dc[MARKERS_COMPONENTS]; /* the low bits of the sums */
    uint32_t decoded_rows, row;      /* of MCUs; of pixels */
    struct baseline_notes notes;
    struct baseline_route route;
    struct huffman_cache cache;
};

static int level_limit = -1;

static uint32_t divide_up(uint32_t a, uint32_t b)
{
    return (a + b - 1) / b;
}

static uint32_t greater(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static uint32_t lesser(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

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

/* The rules of libjpeg's jdsample.c. */
static bool choose_upsampling(struct baseline *decoder, struct baseline_plane *plane)
{
    const uint32_t x = plane->ratio_x, y = plane->ratio_y;
    const bool interpolates = decoder->side > 1;

    if (x * plane->h * plane->side != decoder->h_most * decoder->side ||
        y * plane->v * plane->side != decoder->v_most * decoder->side)
        return false;
    if (x == 1 && y == 1)
        plane->upsampling = UPSAMPLE_NONE;
    else if (x == 2 && y == 1 && interpolates && plane->width > 2)
        plane->upsampling = UPSAMPLE_H2V1;
    else if (x == 2 && y == 2 && interpolates && plane->width > 2)
        plane->upsampling = UPSAMPLE_H2V2;
    else if (x == 1 && y == 2 && interpolates)
        plane->upsampling = UPSAMPLE_H1V2;
    else
        plane->upsampling = REPLICATE;
    if (plane->upsampling == UPSAMPLE_H2V2 || plane->upsampling == UPSAMPLE_H1V2)
        decoder->needs_context = true;
    return true;
}

/* The rule of libjpeg's jdmaster.c: a component with fewer samples is shrunk less, as far as that
 * replaces upsampling. */
static uint32_t choose_side(const struct baseline *decoder, const struct baseline_plane *plane)
{
    uint32_t side = decoder->side;

    while (side < 8 && decoder->h_most * decoder->side % (plane->h * side * 2) == 0 &&
           decoder->v_most * decoder->side % (plane->v * side * 2) == 0)
        side *= 2;
    return side;
}

/* At the decoder's scale. */
static int measure_plane(struct baseline *decoder, struct baseline_plane *plane)
{
    const struct markers *markers = &decoder->markers;

    plane->side = choose_side(decoder, plane);
    plane->ratio_x = decoder->h_most * decoder->side / (plane->h * plane->side);
    plane->ratio_y = decoder->v_most * decoder->side / (plane->v * plane->side);
    plane->width = divide_up(markers->width * plane->h * plane->side, decoder->h_most * 8);
    plane->height = divide_up(markers->height * plane->v * plane->side, decoder->v_most * 8);
    return choose_upsampling(decoder, plane) ? 0 : BASELINE_OTHER;
}

static int prepare_plane(struct baseline *decoder, uint32_t index)
{
    const struct markers *markers = &decoder->markers;
    const struct markers_component *component = &markers->components[index];
    struct baseline_plane *plane = &decoder->planes[index];

    plane->h = decoder->plane_count > 1 ? component->h : 1;
    plane->v = decoder->plane_count > 1 ? component->v : 1;
    plane->first_block = decoder->mcu_blocks;
    decoder->mcu_blocks += plane->h * plane->v;
    plane->quantisers = markers->quantisers[component->quantiser];
    plane->huffman = baseline_huffman_find(&decoder->cache, &markers->dc[component->dc],
                                           &markers->ac[component->ac]);
    return plane->huffman ? 0 : BASELINE_OTHER;
}

int baseline_scale(struct baseline *decoder, uint32_t eighths, struct baseline_image *image)
{
    const struct markers *markers = &decoder->markers;

    if (eighths != 8 && eighths != 4 && eighths != 2 && eighths != 1)
        return BASELINE_OTHER;
    decoder->side = eighths;
    decoder->needs_context = false;
    for (uint32_t i = 0; i < decoder->plane_count; i++)
        if (measure_plane(decoder, &decoder->planes[i]))
            return BASELINE_OTHER;
    image->width = divide_up(markers->width * eighths, 8);
    image->height = divide_up(markers->height * eighths, 8);
    return 0;
}

int baseline_open(struct baseline *decoder, const void *jpeg, size_t bytes,
                  struct baseline_image *image)
{
    struct markers *markers = &decoder->markers;

    if (baseline_markers_parse(markers, jpeg, bytes))
        return BASELINE_OTHER;
    decoder->bytes = jpeg;
    decoder->count = bytes;
    decoder->notes = (struct baseline_notes){0};
    decoder->plane_count = markers->component_count;
    decoder->h_most = decoder->v_most = 1;
    for (uint32_t i = 0; decoder->plane_count > 1 && i < decoder->plane_count; i++) {
        const struct markers_component *component = &markers->components[i];
        decoder->h_most = component->h > decoder->h_most ? component->h : decoder->h_most;
        decoder->v_most = component->v > decoder->v_most ? component->v : decoder->v_most;
    }
    /* One component is stored block by block, whatever its factors. */
    decoder->group_rows = decoder->plane_count > 1 ? 1 : markers->components[0].v;
    decoder->mcu_columns = divide_up(markers->width, 8 * decoder->h_most);
    decoder->mcu_rows = divide_up(markers->height, 8 * decoder->v_most);
    decoder->mcu_blocks = 0;
    for (uint32_t i = 0; i < decoder->plane_count; i++)
        if (prepare_plane(decoder, i))
            return BASELINE_OTHER;
    decoder->chunk_columns = greater(CHUNK_BLOCKS / decoder->mcu_blocks, 1);
    if (decoder->chunk_columns > IDCT_BLOCKS)
        decoder->chunk_columns -= decoder->chunk_columns % IDCT_BLOCKS;
    *image = (struct baseline_image){.components = markers->component_count,
                                     .header_bytes = markers->scan,
                                     .mcu_rows = decoder->mcu_rows};
    return baseline_scale(decoder, 8, image);
}

/* ---- the region ---- */

/* Select the MCUs to transform: those of the region and of the samples next to it. */
static void select_mcus(struct baseline *decoder, const struct baseline_region *region)
{
    const uint32_t width = decoder->side * decoder->h_most;
    const uint32_t height = decoder->side * decoder->v_most;
    const uint32_t left = region->x > decoder->h_most ? region->x - decoder->h_most : 0;
    const uint32_t above = region->y > decoder->v_most ? region->y - decoder->v_most : 0;
    const uint32_t right = region->x + region->width + decoder->h_most;

    decoder->region = *region;
    decoder->first_column = left / width;
    decoder->end_column = lesser(divide_up(right, width), decoder->mcu_columns);
    decoder->first_row = above / height;
}

/* Give out aligned pieces of one block; without a block, only add up. */
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

/* For two rows of MCUs, a power of two. */
static uint32_t ring_rows(const struct baseline *decoder, const struct baseline_plane *plane)
{
    const uint32_t needed = 2 * decoder->group_rows * plane->v * plane->side;
    uint32_t rows = 1;

    while (rows < needed)
        rows *= 2;
    return rows;
}

static size_t row_blocks(const struct baseline *decoder)
{
    return (size_t)decoder->mcu_columns * decoder->mcu_blocks;
}

static size_t chunk_bytes(const struct baseline *decoder)
{
    return (size_t)decoder->chunk_columns * decoder->mcu_blocks * ENTROPY_ALIGNMENT;
}

static size_t carve_all(struct baseline *decoder, uint8_t *memory)
{
    struct baseline_carver carver = {memory, 0};
    const uint32_t columns = decoder->end_column - decoder->first_column;
    const size_t blocks = row_blocks(decoder);

    decoder->blocks = carve(&carver, (blocks + 2) * sizeof *decoder->blocks);
    decoder->skip_blocks = carve(&carver, (blocks + 2) * sizeof *decoder->skip_blocks);
    /* Pieces are aligned to half a block. */
    uint8_t *coefficients = carve(&carver, chunk_bytes(decoder) + ENTROPY_ALIGNMENT);
    if (coefficients)
        coefficients += -(uintptr_t)coefficients & (ENTROPY_ALIGNMENT - 1);
    decoder->coefficients = (int16_t *)(void *)coefficients;
    decoder->unstuffed = carve(&carver, decoder->count - decoder->markers.scan + ENTROPY_PADDING);
    decoder->blend = carve(&carver, (decoder->region.width + MARGIN) * sizeof *decoder->blend);
    for (uint32_t i = 0; i < decoder->plane_count; i++) {
        struct baseline_plane *plane = &decoder->planes[i];
        plane->stride = (size_t)columns * plane->h * plane->side + MARGIN;
        plane->origin = decoder->first_column * plane->h * plane->side;
        plane->rows = ring_rows(decoder, plane);
        plane->samples = carve(&carver, plane->stride * plane->rows);
        plane->line = carve(&carver, decoder->region.width + MARGIN);
    }
    return carver.used;
}

size_t baseline_select(struct baseline *decoder, const struct baseline_region *region)
{
    select_mcus(decoder, region);
    return carve_all(decoder, NULL);
}

/* The tables of a row's blocks, whose DC value alone counts if they are one sample. */
static void fill_blocks(const struct baseline *decoder)
{
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

/* To the end of the file, or just past the next point: where its byte is 0xff, with a zero. */
static const uint8_t *segment_limit(const struct baseline *decoder)
{
    const struct baseline_route *route = &decoder->route;

    if (route->next == route->end || route->next->bit / 8 + 2 > decoder->count)
        return decoder->bytes + decoder->count;
    return decoder->bytes + route->next->bit / 8 + 2;
}

/* Without a marker at its end, the file is cut. */
static int begin_segment(struct baseline *decoder)
{
    uint8_t *end;

    decoder->segment = decoder->next;
    decoder->next =
        baseline_entropy_unstuff(decoder->next, segment_limit(decoder), decoder->unstuffed, &end);
    if (decoder->bytes + decoder->count - decoder->next < 2)
        return BASELINE_OTHER;
    baseline_entropy_begin(&decoder->stream, decoder->unstuffed, end);
    decoder->interval_left = decoder->markers.restart_interval;
    memset(decoder->dc, 0, sizeof decoder->dc);
    baseline_notes_begin_segment(&decoder->notes);
    return 0;
}

static void prepare(struct baseline *decoder, void *memory)
{
    const bool skips = decoder->first_row > 0 || decoder->first_column > 0 ||
                       decoder->end_column < decoder->mcu_columns || decoder->notes.spacing;

    carve_all(decoder, memory);
    for (uint32_t i = 0; i < decoder->plane_count; i++) {
        if (skips)
            baseline_huffman_want_skip(decoder->planes[i].huffman);
        if (decoder->planes[i].side == 1)
            baseline_huffman_want_flat(decoder->planes[i].huffman);
    }
    decoder->blocks++;
    decoder->skip_blocks++;
    fill_blocks(decoder);
    memset(decoder->coefficients, 0, chunk_bytes(decoder));
    decoder->row = decoder->region.y;
}

static int start_at_top(struct baseline *decoder)
{
    decoder->next = decoder->bytes + decoder->markers.scan;
    decoder->restart_number = 0;
    decoder->decoded_rows = 0;
    return begin_segment(decoder);
}

int baseline_start(struct baseline *decoder, void *memory)
{
    decoder->route = (struct baseline_route){NULL, NULL};
    prepare(decoder, memory);
    return start_at_top(decoder);
}

/* ---- entry points ---- */

static int enter(struct baseline *decoder, const struct baseline_point *point)
{
    const uint64_t interval = decoder->markers.restart_interval;
    const uint64_t mcus = (uint64_t)point->row * decoder->mcu_columns;

    decoder->next = decoder->bytes + point->bit / 8;
    if (begin_segment(decoder))
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

static bool leaves_rows(const struct baseline *decoder)
{
    return decoder->end_column < decoder->mcu_columns;
}

int baseline_start_at(struct baseline *decoder, void *memory, const struct baseline_point *points,
                      uint32_t count)
{
    uint32_t above = 0;

    if (!baseline_points_ascend(points, count, decoder->markers.scan, decoder->count))
        return BASELINE_OTHER;
    prepare(decoder, memory);
    decoder->notes.spacing = 0;
    while (above < count && points[above].row <= decoder->first_row)
        above++;
    decoder->route =
        (struct baseline_route){points + above, points + (leaves_rows(decoder) ? count : above)};
    return above ? enter(decoder, &points[above - 1]) : start_at_top(decoder);
}

void baseline_note_points(struct baseline *decoder, uint32_t spacing, struct baseline_point *points)
{
    decoder->notes = (struct baseline_notes){.spacing = spacing, .points = points};
}

/* ---- rows of MCUs ---- */

static int pass_restart(struct baseline *decoder)
{
    /* The segment ended at a marker. */
    if (!baseline_entropy_is_complete(&decoder->stream) ||
        decoder->next[1] != 0xd0 + decoder->restart_number)
        return BASELINE_OTHER;
    decoder->restart_number = (decoder->restart_number + 1) & 7;
    decoder->next += 2;
    return begin_segment(decoder);
}

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
            sum += baseline_entropy_sum_dc(&decoder->stream, first + j, mcus, decoder->mcu_blocks,
                                           plane->huffman);
        decoder->dc[i] = (uint16_t)(decoder->dc[i] + sum);
    }
}

/* Return how many of `wanted` MCUs the current restart interval has; 0 if it cannot begin. */
static uint32_t take_mcus(struct baseline *decoder, uint32_t wanted)
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
        if (!(mcus = take_mcus(decoder, lesser(to - from, decoder->chunk_columns))))
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

static idct_four *choose_idct(const struct kernels *kernels, uint32_t side)
{
    return side == 8   ? kernels->idct
           : side == 4 ? kernels->idct_to_four
           : side == 2 ? kernels->idct_to_two
                       : kernels->idct_to_one;
}

/* Transform a row of the blocks of MCUs [column, end), which are decoded; blocks outside the image
 * are not needed. Returns false if libjpeg must transform. */
static bool transform_row(const struct baseline *decoder, const struct baseline_plane *plane,
                          uint32_t y, uint32_t column, uint32_t end)
{
    const uint32_t from = greater(decoder->first_column, column) * plane->h;
    const uint32_t to =
        lesser(lesser(decoder->end_column, end) * plane->h, divide_up(plane->width, plane->side));
    const uint32_t line = plane->first_block + y / plane->side % plane->v * plane->h;
    const size_t rest_of_mcu = (size_t)(decoder->mcu_blocks - plane->h) * 64;
    const int16_t *block = decoder->coefficients +
                           ((size_t)(from / plane->h - column) * decoder->mcu_blocks + line) * 64;
    uint8_t *output = baseline_plane_row(plane, y) + from * plane->side - plane->origin;
    idct_four *const idct = choose_idct(decoder->kernels, plane->side);
    uint32_t within = 0; /* the MCU */
    struct idct_blocks blocks;

    for (uint32_t x = from; x < to; x += IDCT_BLOCKS) {
        for (uint32_t i = 0; i < IDCT_BLOCKS; i++) {
            blocks.coefficients[i] = block;
            blocks.output[i] = output;
            if (x + i + 1 >= to)
                continue;
            output += plane->side;
            block += 64;
            if (++within == plane->h) {
                within = 0;
                block += rest_of_mcu;
            }
        }
        if (!idct(&blocks, plane->quantisers, plane->stride))
            return false;
    }
    return true;
}

static int transform(const struct baseline *decoder, uint32_t column, uint32_t end)
{
    for (uint32_t i = 0; i < decoder->plane_count; i++) {
        const struct baseline_plane *plane = &decoder->planes[i];
        const uint32_t height = plane->v * plane->side, first = decoder->decoded_rows * height;
        for (uint32_t y = first; y < first + height && y < plane->height; y += plane->side)
            if (!transform_row(decoder, plane, y, column, end))
                return BASELINE_OTHER;
    }
    return 0;
}

/* Decode and transform the MCUs of the region in a row. Some at a time: their coefficients stay in
 * the first-level cache. */
static int decode_region(struct baseline *decoder)
{
    for (uint32_t end, column = decoder->first_column; column < decoder->end_column; column = end) {
        end = lesser(column + decoder->chunk_columns, decoder->end_column);
        if (decode_mcus(decoder, column, end) || transform(decoder, column, end))
            return BASELINE_OTHER;
        memset(decoder->coefficients, 0, chunk_bytes(decoder));
    }
    return 0;
}

static int decode_row(struct baseline *decoder)
{
    struct baseline_route *route = &decoder->route;
    const bool leaves = route->next < route->end && route->next->row == decoder->decoded_rows + 1;
    const uint32_t columns = leaves ? decoder->end_column : decoder->mcu_columns;

    baseline_notes_add(&decoder->notes, decoder->decoded_rows,
                       (uint64_t)(decoder->segment - decoder->bytes), &decoder->stream,
                       decoder->dc);
    if (decoder->decoded_rows < decoder->first_row) {
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
    return enter(decoder, point);
}

int baseline_finish_points(struct baseline *decoder)
{
    decoder->first_row = decoder->mcu_rows; /* the rest is stepped over */
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

static int decode_until(struct baseline *decoder, uint32_t y)
{
    const uint32_t rows = rows_until(decoder, y);

    while (decoder->decoded_rows < rows)
        if (decode_row(decoder))
            return BASELINE_OTHER;
    return 0;
}

/* ---- rows of pixels ---- */

int baseline_read(struct baseline *decoder, uint8_t *rgbx)
{
    const uint32_t y = decoder->row++, width = decoder->region.width;
    const uint8_t *samples[MARKERS_COMPONENTS];

    if (decode_until(decoder, y))
        return BASELINE_OTHER;
    for (uint32_t i = 0; i < decoder->plane_count; i++)
        samples[i] = baseline_plane_upsample(&decoder->planes[i], decoder->kernels,
                                             &decoder->region, y, decoder->blend);
    if (decoder->plane_count == 1)
        decoder->kernels->grey(samples[0], width, rgbx);
    else
        decoder->kernels->rgbx(samples[0], samples[1], samples[2], width, rgbx);
    return 0;
}
