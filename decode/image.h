/* SPDX-License-Identifier: Apache-2.0
 *
 * image: shared by the parts of the jpeg decoder: the request for one row of pixels, and a reader
 * for each kind of image. All memory of one image comes from one bump allocator. One thread.
 */
#ifndef IOBENCH_DECODE_IMAGE_H
#define IOBENCH_DECODE_IMAGE_H

#include "base/image_limits.h"
#include "base/bump.h"
#include "decode/decoder.h"
#include "kernels/resize.h"

struct image_request {
    const struct decode_source *source;
    const struct view *view;
    const struct view_rules *rules;
    enum resize_filter filter;
    unsigned orientation; /* of the stored image, decode/orientation.h */
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

/* ---- PNG (decode/png.c) ---- */
bool image_is_png(const struct decode_source *source);
int image_decode_png(const struct image_request *request);

/* ---- WebP (decode/webp.c; without libwebp, decode/webp_absent.c) ---- */
bool image_is_webp(const struct decode_source *source);
int image_decode_webp(const struct image_request *request);

/* ---- PPM and PGM, and raw layouts (decode/raw.c) ---- */
int image_decode_netpbm(const struct image_request *request);
int image_decode_raw(const struct image_request *request);

#endif
