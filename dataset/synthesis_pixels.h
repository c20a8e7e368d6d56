/* SPDX-License-Identifier: Apache-2.0
 *
 * synthesis_pixels: the pixels of a synthetic image, strip by strip, for dataset/synthesis.c only.
 * Integer arithmetic only; see dataset/synthesis.h for the model. One thread.
 */
#ifndef IOBENCH_DATASET_SYNTHESIS_PIXELS_H
#define IOBENCH_DATASET_SYNTHESIS_PIXELS_H

#include "base/random.h"

#include <stddef.h>
#include <stdint.h>

enum {
    PIXELS_STRIP = 16, /* luma rows per step: one row of 4:2:0 blocks */
    PIXELS_LEAVES = 56,
    PIXELS_OCTAVES = 6,
};

/* One shape. Rows are spans: centre + shear * dy, half a width that depends on the kind. */
struct pixels_leaf {
    int32_t x, y, half_width, half_height, shear; /* shear in 1/256 pixel per row */
    int32_t light, slope_x, slope_y;              /* luma, and its slope in 1/256 per pixel */
    int32_t wave_x, wave_y, wave_height;          /* a pattern; phase in 1/65536 per pixel */
    uint8_t gain;                                 /* of the texture, 64 is 1 */
    uint8_t box;                                  /* straight sides; else an ellipse */
    uint8_t cb, cr;
};

struct pixels_octave {
    int16_t *values;
    uint32_t width, height, stride;
};

struct synthesis_pixels {
    struct random random;
    uint32_t width, height; /* multiples of PIXELS_STRIP */
    struct pixels_leaf leaves[PIXELS_LEAVES];
    struct pixels_octave octaves[PIXELS_OCTAVES]; /* 0, the finest, is never kept */
    int16_t *rows;                                /* holds the four below */
    int16_t *light, *light_before, *noise, *blend;
    uint8_t *gain, *bytes;
    uint8_t *luma[PIXELS_STRIP], *cb[PIXELS_STRIP / 2], *cr[PIXELS_STRIP / 2];
    int32_t fine_gain; /* of the finest octave, 64 is 1 */
};

/* Allocate memory for images up to this size. Returns 0, or -ENOMEM. */
int pixels_open(struct synthesis_pixels *pixels, uint32_t width_max, uint32_t height_max);
void pixels_close(struct synthesis_pixels *pixels);

/* detail: strength of texture, 64 is 1. */
void pixels_start(struct synthesis_pixels *pixels, uint64_t seed, uint32_t class, uint32_t width,
                  uint32_t height, int32_t detail);

/* Generate rows [top, top + PIXELS_STRIP) into luma, cb, cr. Call in order. */
void pixels_strip(struct synthesis_pixels *pixels, uint32_t top);

#endif
