/* SPDX-License-Identifier: Apache-2.0
 *
 * image_header: the headers of an encoded image, whether it is complete, and what it may cost.
 * Decodes nothing. Treats input as hostile; pure.
 */
#ifndef IOBENCH_BASE_IMAGE_HEADER_H
#define IOBENCH_BASE_IMAGE_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* To add one: base/image_header.c, its end included, and a reader in decode/registry.c. */
enum image_kind {
    IMAGE_UNKNOWN,
    IMAGE_JPEG,
    IMAGE_PNG,
    IMAGE_WEBP,
    IMAGE_NETPBM,
    IMAGE_GIF,
    IMAGE_BMP,
    IMAGE_KINDS
};

struct image_header {
    enum image_kind kind;
    uint32_t width, height, components; /* of a PNG palette: 1 */
    bool progressive, palette;
    size_t bytes;       /* size of the headers */
    size_t whole_bytes; /* that a BMP or PPM must have; 0 for others */
};

/* Name the kind of an image by its first bytes. */
enum image_kind image_kind_of(const void *image, size_t bytes);
/* Return the extension of a file that holds the image: "png"; "jpg" if unknown. */
const char *image_extension(const void *image, size_t bytes);

const char *image_kind_name(enum image_kind kind); /* "JPEG"; "other" */

/* Returns 0, or -EBADMSG with a reason that begins "byte N of the image", also when the bytes begin
 * like no known kind. What was found before the fault is in *header. */
int image_header_read(const void *image, size_t bytes, struct image_header *header);
/* The same, and check that the image has its end marker, or all its bytes. */
int image_header_check(const void *image, size_t bytes, struct image_header *header);

/* Bounds the cost of one image. A few bytes can demand many pixels, and many passes over them;
 * every decoder asks here first. */
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

/* The header of a binary PPM or PGM image (P6, P5) with 8 bits a value: what other programs read
 * and write as uncompressed pixels. */
struct netpbm {
    uint32_t width, height, channels; /* 3: RGB; 1: gray */
    size_t header_bytes;              /* then height x width x channels bytes */
};

enum { NETPBM_HEADER_MOST = 32 }; /* that netpbm_write_header() makes */

/* Read the header. Returns NULL, or what is wrong with it. */
const char *netpbm_read(const void *image, size_t bytes, struct netpbm *header);
size_t netpbm_pixel_bytes(const struct netpbm *header);
/* Write the header of an RGB image, without a final NUL. Returns its size. */
size_t netpbm_write_header(char header[NETPBM_HEADER_MOST], uint32_t width, uint32_t height);

/* Is an encoded image complete? A decoder that crops never reads that far. Bytes past the end are
 * ignored. from: the end of the headers, before which an embedded thumbnail may have an end marker
 * of its own. */
bool image_end_jpeg(const void *image, size_t bytes, size_t from);
/* Are all chunks of a PNG complete up to IEND? Its first 8 bytes are known to be right. */
bool image_end_png(const void *image, size_t bytes);
/* Does a WebP have the size that its first 12 bytes, known to be there, announce? */
bool image_end_webp(const void *image, size_t bytes);
/* Are all blocks of a GIF complete up to its trailer? Its first 6 bytes are known to be right. */
bool image_end_gif(const void *image, size_t bytes);

#endif
