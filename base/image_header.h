/* SPDX-License-Identifier: Apache-2.0
 *
 * image_header: read the headers of an encoded image. Decodes nothing. Treats input as hostile;
 * pure. */
#ifndef IOBENCH_BASE_IMAGE_HEADER_H
#define IOBENCH_BASE_IMAGE_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* To add one: base/image_header.c, its end in base/image_end.c, a reader in
 * decode/image_registry.c. */
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
    size_t bytes; /* size of the headers */
};

/* By its first bytes. */
enum image_kind image_kind_of(const void *image, size_t bytes);
/* Return the extension of a file that holds the image: "png"; "jpg" if unknown. */
const char *image_extension(const void *image, size_t bytes);

const char *image_kind_name(enum image_kind kind); /* "JPEG"; "other" */

/* Returns 0, or -EBADMSG with a reason that begins "byte N of the image", also when the bytes begin
 * like no known kind. What was found before the fault is in *header. */
int image_header_read(const void *image, size_t bytes, struct image_header *header);

#endif
