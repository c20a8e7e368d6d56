/* SPDX-License-Identifier: Apache-2.0
 *
 * image_limits: bounds the cost of one image. A few bytes can demand many pixels, and many passes
 * over them; every decoder asks here first. Pure.
 */
#ifndef IOBENCH_BASE_IMAGE_LIMITS_H
#define IOBENCH_BASE_IMAGE_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct image_limits {
    uint64_t pixels; /* per image */
    uint64_t scans;  /* per JPEG; fewer for a large one, see below */
};

/* Defaults, as option text. Pillow, which most loaders use, warns from this pixel count on;
 * encoders write about ten scans, custom scan scripts up to 64. */
#define IMAGE_LIMITS_PIXELS "89478485"
#define IMAGE_LIMITS_SCANS "64"

/* All scans together may cover at most this many times the pixels of the largest image. */
enum { IMAGE_LIMITS_PASSES = 16 };

/* Option rows for settings that hold a struct image_limits at offset `at`. */
#define IMAGE_LIMITS_ROWS(at)                                                                  \
    {.name = "max-pixels",                                                                     \
     .type = OPTION_COUNT,                                                                     \
     .offset = (at) + offsetof(struct image_limits, pixels),                                   \
     .fallback = IMAGE_LIMITS_PIXELS,                                                          \
     .summary = "refuse images with more pixels; a progressive one takes up to 12 bytes of "   \
                "memory per pixel, others little",                                             \
     .minimum = 1,                                                                             \
     .maximum = 4294967296.0},                                                                 \
    {                                                                                          \
        .name = "max-scans", .type = OPTION_COUNT,                                             \
        .offset = (at) + offsetof(struct image_limits, scans), .fallback = IMAGE_LIMITS_SCANS, \
        .summary = "refuse JPEGs with more scans, or with scans of more than 16 x max-pixels " \
                   "pixels in all",                                                            \
        .minimum = 1, .maximum = 1000000                                                       \
    }

bool image_limits_size(const struct image_limits *limits, uint64_t width, uint64_t height);
/* May scan number `scan`, from 1, of a width x height JPEG be decoded? If not, writes why. */
bool image_limits_scan(const struct image_limits *limits, uint64_t scan, uint64_t width,
                       uint64_t height, char *why, size_t why_bytes);

#endif
