/* SPDX-License-Identifier: Apache-2.0
 *
 * mcus: rows of MCUs. One is decoded (entropy.h) and transformed (idct.h) into planes, the samples
 * of a component, which hold the last two rows in a ring. What the region does not need is only
 * stepped over, but for the DC values: rows above it and columns beside it. Rows below it are not
 * touched.
 */
#ifndef IOBENCH_DECODE_BASELINE_MCUS_H
#define IOBENCH_DECODE_BASELINE_MCUS_H

#include "decode/baseline/baseline.h"
#include "decode/baseline/kernels.h"
#include "decode/baseline/markers.h"

/* Blocks decoded at a time, then transformed; their MCUs are a multiple of CHUNK_STEP if they can.
 */
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

/* From column origin. */
static inline uint8_t *baseline_plane_row(const struct baseline_plane *plane, uint32_t y)
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

static inline uint32_t divide_up(uint32_t a, uint32_t b)
{
    return (a + b - 1) / b;
}

static inline uint32_t lesser(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Of the coefficients. */
static inline size_t baseline_mcus_chunk_bytes(const struct baseline *decoder)
{
    return (size_t)decoder->chunk_columns * decoder->mcu_blocks * ENTROPY_ALIGNMENT;
}

/* Begin at the first MCU of a scan. Returns 0 or BASELINE_OTHER, as all others. */
int baseline_mcus_start(struct baseline *decoder);

/* Go on at a point. */
int baseline_mcus_enter(struct baseline *decoder, const struct baseline_point *point);

/* Decode the next row. */
int baseline_mcus_decode_row(struct baseline *decoder);

/* Decode all scans of a progressive image. */
int baseline_progressive_decode(struct baseline *decoder);

/* Return how many scans there are at most, from the data of the first to the end of the file. */
uint32_t baseline_progressive_scans(const uint8_t *from, const uint8_t *end);

#endif
