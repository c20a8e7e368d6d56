/* SPDX-License-Identifier: Apache-2.0
 *
 * mcus: rows of MCUs. One is decoded (entropy.h) and transformed into planes that hold the last two
 * (idct.h). What the region does not need is only stepped over, but for the DC values: rows above
 * it and columns beside it. Rows below it are not touched.
 */
#ifndef IOBENCH_DECODE_BASELINE_MCUS_H
#define IOBENCH_DECODE_BASELINE_MCUS_H

#include "decode/baseline/baseline.h"
#include "decode/baseline/kernels.h"
#include "decode/baseline/markers.h"
#include "decode/baseline/planes.h"
#include "decode/baseline/points.h"

/* Blocks decoded at a time, then transformed; their MCUs are a multiple of CHUNK_STEP if they can.
 */
enum { CHUNK_BLOCKS = IDCT_BLOCKS, CHUNK_STEP = 4 };

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
    struct baseline_notes notes;
    struct baseline_route route;
    struct huffman_cache cache;
    struct huffman_codes codes[MARKERS_COMPONENTS]; /* of a scan of a progressive image */
};

static inline uint32_t divide_up(uint32_t a, uint32_t b)
{
    return (a + b - 1) / b;
}

static inline uint32_t greater(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
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

/* Begin at the bytes `next`. Returns 0 or BASELINE_OTHER, as all others. */
int baseline_mcus_begin_segment(struct baseline *decoder);

/* Return how many of `wanted` MCUs the current restart interval has; 0 if it cannot begin. */
uint32_t baseline_mcus_take(struct baseline *decoder, uint32_t wanted);

/* Go on at a point. */
int baseline_mcus_enter(struct baseline *decoder, const struct baseline_point *point);

/* Decode the next row. */
int baseline_mcus_decode_row(struct baseline *decoder);

#endif
