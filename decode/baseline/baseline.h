/* SPDX-License-Identifier: Apache-2.0
 *
 * baseline: decodes the JPEGs that training sets consist of: 8-bit baseline and extended Huffman in
 * one scan, and progressive; gray or YCbCr, any sampling with integral ratios, restart intervals.
 * The pixels are those of libjpeg-turbo on x86, bit for bit (islow DCT, fancy upsampling).
 *
 * Everything else, and every image with a byte that is not as the standard demands, is returned as
 * BASELINE_OTHER: decode it with libjpeg-turbo, whose verdict and pixels then hold. So no damaged
 * image is judged here, and none is decoded differently.
 *
 *     struct baseline *decoder = baseline_create();            once per thread
 *     baseline_open(decoder, jpeg, bytes, &image)              parses the headers
 *     baseline_scale(decoder, eighths, &image)                 optional
 *     size_t size = baseline_select(decoder, &region)          memory for this image
 *     baseline_start(decoder, memory)
 *     baseline_read(decoder, rgbx)                             once per row of the region
 *
 * Depends on the C library alone. Input is hostile; no byte outside of it is read. One thread at a
 * time per decoder; decoders are independent. What a caller gets wrong (a region outside the image,
 * a call out of order) is not looked for.
 */
#ifndef IOBENCH_DECODE_BASELINE_BASELINE_H
#define IOBENCH_DECODE_BASELINE_BASELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* a shared library exports what follows */

#define BASELINE_VERSION 3 /* of this interface: grows when a caller must change */

enum { BASELINE_OTHER = 1 }; /* not for this decoder: see above */

struct baseline;

struct baseline_image {
    uint32_t width, height;
    uint32_t components; /* 1 or 3 */
    size_t header_bytes; /* up to the entropy-coded data */
    uint32_t mcu_rows;
    uint32_t scans; /* of a progressive image, at most; else 0. Each takes time for all pixels */
};

/* An entry point: where the decoder stands before a row of MCUs. It follows from the bytes up to
 * and including the one with the bit: while those are the same, so is the point. */
struct baseline_point {
    uint32_t row;   /* of MCUs */
    uint64_t bit;   /* of the file */
    uint16_t dc[3]; /* predictors; their low bits */
};

/* Pixels [x, x + width) of rows [y, y + height); not empty, inside the image. */
struct baseline_region {
    uint32_t x, y, width, height;
};

struct baseline *baseline_create(void); /* NULL: out of memory */
void baseline_destroy(struct baseline *decoder);

/* Is there code for this CPU that is known to be faster than libjpeg-turbo's? */
bool baseline_is_fast(void);

/* Select the code for the oldest CPU of this architecture (0), or the best one for this (the
 * default). Returns the level in use. For tests, before any other call. */
int baseline_limit_level(int level);

/* The bytes must stay until the last row is read. Returns 0 or BASELINE_OTHER. */
int baseline_open(struct baseline *decoder, const void *jpeg, size_t bytes,
                  struct baseline_image *image);

/* Shrink in the inverse DCT to `eighths` / 8: 8 (the default), 4, 2 or 1. Width and height of the
 * image become those to select from, rounded up; the pixels are libjpeg-turbo's for this scale.
 * Returns 0 or BASELINE_OTHER, also for other numbers. */
int baseline_scale(struct baseline *decoder, uint32_t eighths, struct baseline_image *image);

/* Select what to decode. Returns the bytes that baseline_start() needs, aligned to 64; they grow
 * with the width of the image and with its file; of a progressive image with its pixels. */
size_t baseline_select(struct baseline *decoder, const struct baseline_region *region);
/* Returns 0 or BASELINE_OTHER. Decodes all scans of a progressive image. */
int baseline_start(struct baseline *decoder, void *memory);

/* The same with points of the image, in order, which must stay until the last row is read: begins
 * at the last one that is not below the region's first row, and goes on at each later one as soon
 * as the row above it is decoded as far as the region needs. Wrong points give wrong pixels or
 * BASELINE_OTHER, nothing worse. */
int baseline_start_at(struct baseline *decoder, void *memory, const struct baseline_point *points,
                      uint32_t count);
/* Return the last row of MCUs of which a point is of use to the selected region. */
uint32_t baseline_last_entry(const struct baseline *decoder);

/* Before baseline_start(): note the points of rows `spacing`, 2 x spacing, ... < mcu_rows of this
 * image while it is decoded. They are complete when baseline_finish_points(), after the last row
 * that is read, returns 0: it steps over the rest of the scan. Without a row read, it steps over
 * all of it. Returns 0 or BASELINE_OTHER; progressive images have no points. */
void baseline_note_points(struct baseline *decoder, uint32_t spacing,
                          struct baseline_point *points);
int baseline_finish_points(struct baseline *decoder);

/* Decode the next row of the region, 4 x width bytes: red, green, blue, 255. Returns 0 or
 * BASELINE_OTHER, after which all rows are void. */
int baseline_read(struct baseline *decoder, uint8_t *rgbx);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
