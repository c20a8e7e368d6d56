/* SPDX-License-Identifier: Apache-2.0 */
#include "decode/baseline/planes.h"

/* The row of samples next to the nearest one, on the side of pixel row y; at the edge, itself. */
static const uint8_t *far_row(const struct baseline_plane *plane, uint32_t y)
{
    const uint32_t near = y / 2, below = near + 1 < plane->height ? near + 1 : near;

    return baseline_plane_row(plane, y % 2 ? below : near - (near > 0)) - plane->origin;
}

void baseline_plane_repeat_edges(const struct baseline_plane *plane, uint32_t first, uint32_t end)
{
    if (plane->upsampling != UPSAMPLE_H2V1 && plane->upsampling != UPSAMPLE_H2V2)
        return;
    for (uint32_t y = first; y < end; y++) {
        uint8_t *row = baseline_plane_row(plane, y) - plane->origin;
        if (plane->origin == 0)
            row[-1] = row[0];
        if (plane->width <= plane->end)
            row[plane->width] = row[plane->width - 1];
    }
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

static const uint8_t *double_columns(const struct baseline_plane *plane,
                                     const struct kernels *kernels,
                                     const struct baseline_region *region, uint32_t y,
                                     uint16_t *blend)
{
    const uint32_t x = region->x, count = (x + region->width - 1) / 2 - x / 2 + 1;

    kernels->twice(blend_rows(plane, kernels, region, y, blend), count, even_bias(plane),
                   odd_bias(plane), plane->line);
    return plane->line + x % 2;
}

bool baseline_planes_are_halves(const struct baseline_plane planes[MARKERS_COMPONENTS])
{
    const enum baseline_upsampling upsampling = planes[1].upsampling;

    return planes[0].upsampling == UPSAMPLE_NONE && planes[2].upsampling == upsampling &&
           (upsampling == UPSAMPLE_H2V1 || upsampling == UPSAMPLE_H2V2);
}

struct colour_halves baseline_planes_blend(const struct baseline_plane planes[MARKERS_COMPONENTS],
                                           const struct kernels *kernels,
                                           const struct baseline_region *region, uint32_t y,
                                           uint16_t *const blend[2])
{
    return (struct colour_halves){blend_rows(&planes[1], kernels, region, y, blend[0]),
                                  blend_rows(&planes[2], kernels, region, y, blend[1]),
                                  even_bias(&planes[1]), odd_bias(&planes[1])};
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
    case UPSAMPLE_H2V2:
        return double_columns(plane, kernels, region, y, blend);
    case UPSAMPLE_H1V2:
        kernels->blend(near + region->x, far_row(plane, y) + region->x, region->width, blend);
        kernels->quarter(blend, region->width, 1 + y % 2, plane->line);
        return plane->line;
    case UPSAMPLE_REPLICATE:
        break;
    }
    return replicate(plane, region, near);
}
