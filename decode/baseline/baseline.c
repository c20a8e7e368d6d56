/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows on demand: as many rows of MCUs are decoded (mcus.h) as the next row of pixels needs, which
 * is upsampled and converted (colour.h).
 *
 * Reads as far as libjpeg does for the same rows, no further: a damaged byte counts where it does.
 */
#include "decode/baseline/baseline.h"

#include "decode/baseline/mcus.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64, MARGIN = 64 };
enum { PROGRESSIVE_PIXELS = 1 << 28 }; /* up to 6.5 bytes each, which 32 bits can count */

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
    /* One component is stored block by block, whatever its factors. */
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
    if (markers->is_progressive)
        image->scans =
            baseline_progressive_scans(decoder->bytes + markers->scan, decoder->bytes + bytes);
    return baseline_scale(decoder, 8, image);
}

/* ---- the region ---- */

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

static size_t carve_all(struct baseline *decoder, uint8_t *memory)
{
    struct baseline_carver carver = {memory, 0};
    const size_t blocks = (size_t)decoder->mcu_columns * decoder->mcu_blocks;

    decoder->blocks = carve(&carver, (blocks + 2) * sizeof *decoder->blocks);
    decoder->skip_blocks = carve(&carver, (blocks + 2) * sizeof *decoder->skip_blocks);
    /* Pieces are aligned to half a block. */
    uint8_t *coefficients = carve(&carver, baseline_mcus_chunk_bytes(decoder) + ENTROPY_ALIGNMENT);
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
    memset(decoder->coefficients, 0, baseline_mcus_chunk_bytes(decoder));
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
    /* The tables of a row's blocks, whose DC value alone counts if they are one sample. */
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
        return baseline_mcus_start(decoder);
    return baseline_progressive_decode(decoder);
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
    return above ? baseline_mcus_enter(decoder, &points[above - 1]) : baseline_mcus_start(decoder);
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
    decoder->first_row = decoder->mcu_rows; /* the rest is stepped over */
    while (decoder->decoded_rows < decoder->mcu_rows)
        if (baseline_mcus_decode_row(decoder))
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

/* The row of samples next to the nearest one, on the side of pixel row y; at the edge, itself. */
static const uint8_t *far_row(const struct baseline_plane *plane, uint32_t y)
{
    const uint32_t near = y / 2, below = near + 1 < plane->height ? near + 1 : near;

    return baseline_plane_row(plane, y % 2 ? below : near - (near > 0)) - plane->origin;
}

/* Blend near and far rows, for pixels whose columns are interpolated. Returns where the first
 * one's is. */
static uint16_t *blend_rows(const struct baseline_plane *plane, const struct kernels *kernels,
                            const struct baseline_region *region, uint32_t y, uint16_t *blend)
{
    const uint8_t *near = baseline_plane_row(plane, y / plane->ratio_y) - plane->origin;
    const uint8_t *far = plane->upsampling == UPSAMPLE_H2V2 ? far_row(plane, y) : near;
    const uint32_t x = region->x, first = x / 2;
    const uint32_t count = (x + region->width - 1) / 2 - first + 1;
    const ptrdiff_t from = (ptrdiff_t)first - 1;

    kernels->blend(near + from, far + from, count + 2, blend);
    return blend + 1;
}

/* What is added before blends are divided by 16. */
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
    const uint8_t *near = baseline_plane_row(plane, y / plane->ratio_y) - plane->origin;

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
        if (baseline_mcus_decode_row(decoder))
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
