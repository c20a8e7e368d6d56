/* SPDX-License-Identifier: Apache-2.0
 *
 * resize: a box of an image, resized to width x height RGB bytes while its rows are being decoded,
 * with the antialiased triangle filter (what Pillow and torchvision call bilinear) or another.
 *
 * Rows are RGBX bytes, four a pixel. The vertical pass goes first: each output row needs only the
 * few source rows under its filter, kept in a small ring that stays in cache; no whole image is
 * ever kept. The horizontal pass takes four output rows at a time, whose pixels at one place are 16
 * values side by side: one load, one weight. Fixed point: values and weights are 16 bits; the
 * result is within one level of the exact one (tests/unit/resize_reference.h).
 *
 *     resize_plan()      which columns and rows of the image are needed
 *     resize_begin()     with the columns that rows will really hold
 *     while ((count = resize_want(...))) {
 *         fill the rows;
 *         resize_give(count);
 *     }
 *
 * Knows no image format. Memory comes from a bump allocator and lives until its reset. One thread.
 */
#ifndef IOBENCH_KERNELS_RESIZE_H
#define IOBENCH_KERNELS_RESIZE_H

#include "base/heap.h"

#include <stdbool.h>
#include <stdint.h>

enum { RESIZE_PIXEL_BYTES = 4, RESIZE_ROWS_MAX = 4 };

enum resize_filter {
    RESIZE_TRIANGLE, /* antialiased bilinear */
    RESIZE_BILINEAR, /* the two nearest positions, however far the image shrinks */
    RESIZE_AREA,     /* the mean of what an output pixel covers; bilinear unless both axes shrink */
};

/* One axis: output position i is a weighted sum of `taps` source positions from first[i]. */
struct resize_axis {
    uint32_t low, high; /* source positions needed: [low, high) */
    uint32_t taps;      /* space for weights per window */
    uint32_t widest;    /* the longest window, without trailing zero weights */
    uint32_t *first;
    uint16_t *weights; /* of position i from i * taps; zero after the window; sum 65535 */
};

struct resize {
    struct resize_axis x, y;
    struct bump *bump;
    uint32_t width, height; /* of the output */
    bool mirror;
    bool avx2;                /* the machine supports it; tests clear it after resize_plan() */
    uint8_t *output;          /* height x width x 3 */
    const uint16_t **columns; /* where in `woven`, of each column in the order of the output */
    uint32_t *column_weights; /* of x.widest taps a column, each twice in 32 bits */
    uint16_t *lines;          /* output rows after the vertical pass, 8.8 fixed point, four values a
                                 pixel: half a line of bytes 0 and 2, half of bytes 1 and 3 */
    size_t line_stride;
    uint16_t *woven; /* the same, pixel by pixel */
    uint8_t *ring;
    size_t ring_stride;
    uint32_t ring_rows;
    const uint8_t **window; /* rows under one output row's filter */
    uint32_t row, out_row;  /* next source row to read, next output row to write */
    uint32_t skip_pixels;   /* columns of the rows before x.low */
};

struct resize_box {
    double x, y, width, height; /* in pixels of the width x height image */
    uint32_t image_width, image_height;
    bool mirror;
    enum resize_filter filter;
};

/* Pixels outside the box (rounded outwards to whole pixels) are never used. The box is inside the
 * image and not empty. Returns 0 or -ENOMEM. */
int resize_plan(struct resize *resize, const struct resize_box *box, uint32_t width,
                uint32_t height, struct bump *bump);

/* Rows will contain columns [origin, origin + columns), which include [x.low, x.high). output:
 * height x width x 3 bytes. Returns 0 or -ENOMEM. */
int resize_begin(struct resize *resize, uint32_t origin, uint32_t columns, uint8_t *output);

/* Store where the next source rows go, from resize->row; at most RESIZE_ROWS_MAX. Returns their
 * number; 0 when the output is complete. */
uint32_t resize_want(struct resize *resize, uint8_t *rows[RESIZE_ROWS_MAX]);

/* Process `count` of those rows. */
void resize_give(struct resize *resize, uint32_t count);

#endif
