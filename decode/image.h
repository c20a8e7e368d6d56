/* SPDX-License-Identifier: Apache-2.0
 *
 * image: shared by the parts of the jpeg decoder: the request for one row of pixels, and a reader
 * for each kind of image. All memory of one image comes from one bump allocator. One thread.
 */
#ifndef IOBENCH_DECODE_IMAGE_H
#define IOBENCH_DECODE_IMAGE_H

#include "base/image_header.h"
#include "base/heap.h"
#include "decode/baseline/baseline.h"
#include "decode/decoder.h"
#include "kernels/resize.h"

struct image_request {
    const struct decode_source *source;
    const struct view *view;
    const struct view_rules *rules;
    enum resize_filter filter;
    unsigned orientation; /* of the stored image, view.h */
    const struct image_limits *limits;
    uint32_t width, height; /* of the row */
    struct bump *bump;
    uint8_t *row;
    struct decode_figures *figures;
    bool accepts_damaged;
    struct view_shown *shown; /* set by image_box() */
};

/* Report an image that is damaged, as `why` says, where all of it was checked or decoded:
 * truncated, else corrupt. Returns DECODE_DAMAGED or -EBADMSG, as requested. */
int image_judge(const struct image_request *request, bool truncated, const char *why);

/* Refuse an image without pixels or with more than max-pixels. Returns 0 or -EBADMSG. */
int image_check_size(const struct image_request *request, uint64_t width, uint64_t height);

/* Return the box of the stored width x height image that the view shows. */
struct view_box image_box(const struct image_request *request, uint32_t width, uint32_t height);

/* Plan the resize of the view's box in a width x height image whose rows arrive scaled by
 * numerator/8. Returns 0 or -ENOMEM. */
int image_plan(const struct image_request *request, struct resize *resize, uint32_t width,
               uint32_t height, uint32_t numerator);

/* Write columns low to high of row y of an image in memory as RGBX. */
typedef void image_copy_row(const void *pixels, uint32_t y, uint32_t low, uint32_t high,
                            uint8_t *to);

/* Carry out a planned resize of an image in memory. Returns 0 or -ENOMEM. */
int image_resize_rows(const struct image_request *request, struct resize *resize,
                      image_copy_row *copy, const void *pixels);

/* Decode an image of a kind with a reader below. Returns DECODE_OTHER if it is none of them,
 * -ENOTSUP if this build does not decode that kind, else what struct decoder_ops.decode returns. */
int image_decode_other(const struct image_request *request);

/* Check an image, its end included, and decode all of it within limits. A kind that this build does
 * not decode passes. Returns 0, -EBADMSG with the first complaint, or -ENOMEM. Any thread. */
int image_verify(const void *bytes, size_t count, const struct image_limits *limits);

/* ---- the hint of a baseline JPEG: points at which decoding can begin or go on, so that what is
 * above a crop, or right of it, is not decoded (decode/jpeg.c) ---- */

enum { ENTRY_POINTS_MAX = 34 };

struct entry_points {
    struct baseline_point points[ENTRY_POINTS_MAX];
    uint32_t count;
};

enum entry { ENTRY_NONE, ENTRY_FOUND, ENTRY_STALE };

/* Find the points up to a row of MCUs. Stale: the hint is not of these bytes. */
enum entry entry_points_find(const struct decode_source *source, uint32_t mcu_rows, uint32_t row,
                             struct entry_points *found);

/* ---- readers, each of one kind ---- */
int image_decode_png(const struct image_request *request);    /* decode/png.c */
int image_decode_webp(const struct image_request *request);   /* webp.c */
int image_decode_netpbm(const struct image_request *request); /* image.c: PPM and PGM */
int image_decode_raw(const struct image_request *request);    /* image.c: source->layout */

#endif
