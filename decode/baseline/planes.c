/* SPDX-License-Identifier: Apache-2.0 */
#include "decode/baseline/planes.h"

/* The row of samples next to the nearest one, on the side of pixel row y; at the edge, itself. */
static const uint8_t *far_row(const struct baseline_plane *plane, uint32_t y)
{
    const uint32_t near = y / 2, below = near + 1 < plane->height ? near + 1 : near;

    return baseline_plane_row(plane, y % 2 ? below : near - (near > 0)) - plane->origin;
}

/* Interpolate horizontally between samples that are blended vertically. Past the edges of the
 * image, the last sample repeats. */
static const uint8_t *double_columns(const struct baseline_plane *plane,
                                     const struct kernels *kernels,
                                     const struct baseline_region *region, const uint8_t *near,
                                     const uint8_t *far, uint16_t *blend)
{
    const bool rounds_up = plane->upsampling == UPSAMPLE_H2V1; /* odd columns */
    const uint32_t x = region->x, first = x / 2;
    const uint32_t count = (x + region->width - 1) / 2 - first + 1;
    const uint32_t from = first - (first > 0), end = first + count + 1;
    const uint32_t to = end < plane->width ? end : plane->width;

    blend++; /* of sample `first` */
    kernels->blend(near + from, far + from, to - from, blend - (first - from));
    if (from == first)
        blend[-1] = blend[0];
    if (to == first + count)
        blend[count] = blend[count - 1];
    kernels->twice(blend, count, rounds_up ? 4 : 8, rounds_up ? 8 : 7, plane->line);
    return plane->line + x % 2;
}

static const uint8_t *replicate(const struct baseline_plane *plane,
                                const struct baseline_region *region, const uint8_t *samples)
{
    for (uint32_t i = 0; i < region->width; i++)
        plane->line[i] = samples[(region->x + i) / plane->ratio_x];
    return plane->line;
}

const uint8_t *baseline_plane_upsample(const struct baseline_plane *plane,
                                       const struct kernels *kernels,
                                       const struct baseline_region *region, uint32_t y,
                                       uint16_t *blend)
{
    const uint8_t *near = baseline_plane_row(plane, y / plane->ratio_y) - plane->origin;

    switch (plane->upsampling) {
    case UPSAMPLE_NONE:
        return near + region->x;
    case UPSAMPLE_H2V1:
        return double_columns(plane, kernels, region, near, near, blend);
    case UPSAMPLE_H2V2:
        return double_columns(plane, kernels, region, near, far_row(plane, y), blend);
    case UPSAMPLE_H1V2:
        kernels->blend(near + region->x, far_row(plane, y) + region->x, region->width, blend);
        kernels->quarter(blend, region->width, 1 + y % 2, plane->line);
        return plane->line;
    case UPSAMPLE_REPLICATE:
        break;
    }
    return replicate(plane, region, near);
}
