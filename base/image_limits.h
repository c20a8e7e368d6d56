/* SPDX-License-Identifier: Apache-2.0
 *
 * image_limits: what one image may cost. A few bytes can ask for many pixels, and for going over
 * them again and again; whoever decodes asks here how far it may go. Pure.
 */
#ifndef IOBENCH_BASE_IMAGE_LIMITS_H
#define IOBENCH_BASE_IMAGE_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct image_limits {
    uint64_t pixels; /* of an image */
    uint64_t scans;  /* of a JPEG; fewer of a large one, see below */
};

/* The defaults, as options write them. From these pixels on Pillow, which most loaders decode with,
 * warns; encoders write about ten scans, by hand up to 64 are useful. */
#define IMAGE_LIMITS_PIXELS "89478485"
#define IMAGE_LIMITS_SCANS "64"

/* All scans together may go over this many times the pixels of the largest image. */
enum { IMAGE_LIMITS_PASSES = 16 };

/* The rows of an option table whose settings hold a struct image_limits `at` bytes from their
 * start. */
#define IMAGE_LIMITS_ROWS(at)                                                                   \
    {.name = "max-pixels",                                                                      \
     .type = OPTION_COUNT,                                                                      \
     .offset = (at) + offsetof(struct image_limits, pixels),                                    \
     .fallback = IMAGE_LIMITS_PIXELS,                                                           \
     .summary = "refuse images with more pixels than this; a progressive one takes up to 12 "   \
                "bytes of memory a pixel, others little",                                       \
     .minimum = 1,                                                                              \
     .maximum = 4294967296.0},                                                                  \
    {                                                                                           \
        .name = "max-scans", .type = OPTION_COUNT,                                              \
        .offset = (at) + offsetof(struct image_limits, scans), .fallback = IMAGE_LIMITS_SCANS,  \
        .summary = "refuse JPEGs with more scans than this, large ones from 16 x max-pixels / " \
                   "pixels on",                                                                 \
        .minimum = 1, .maximum = 1000000                                                        \
    }

bool image_limits_size(const struct image_limits *limits, uint64_t width, uint64_t height);
/* May scan number `scan`, from 1, of a width x height JPEG be decoded? If not, why is written. */
bool image_limits_scan(const struct image_limits *limits, uint64_t scan, uint64_t width,
                       uint64_t height, char *why, size_t why_bytes);

#endif
