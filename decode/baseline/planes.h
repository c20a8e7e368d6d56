/* SPDX-License-Identifier: Apache-2.0
 *
 * planes: the samples of a component, the last rows of them in a ring, and how they become those of
 * a row of pixels.
 */
#ifndef IOBENCH_DECODE_BASELINE_PLANES_H
#define IOBENCH_DECODE_BASELINE_PLANES_H

#include "decode/baseline/baseline.h"
#include "decode/baseline/kernels.h"
#include "decode/baseline/progressive.h"

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

/* Repeat the first and last sample of rows [first, end) past the edges of the image, if columns
 * are interpolated there. */
void baseline_plane_repeat_edges(const struct baseline_plane *plane, uint32_t first, uint32_t end);

/* Return the samples of row y of the region, in the plane or in its line. blend: room for a row. */
const uint8_t *baseline_plane_upsample(const struct baseline_plane *plane,
                                       const struct kernels *kernels,
                                       const struct baseline_region *region, uint32_t y,
                                       uint16_t *blend);

/* Are the pixels of these three components what rgbx_twice() converts? */
bool baseline_planes_are_halves(const struct baseline_plane planes[MARKERS_COMPONENTS]);

/* Blend the chroma of row y for it. blend: room for a row, twice. */
struct colour_halves baseline_planes_blend(const struct baseline_plane planes[MARKERS_COMPONENTS],
                                           const struct kernels *kernels,
                                           const struct baseline_region *region, uint32_t y,
                                           uint16_t *const blend[2]);

#endif
