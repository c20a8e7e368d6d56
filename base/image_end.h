/* SPDX-License-Identifier: Apache-2.0
 *
 * image_end: is an encoded image there to its end? A decoder that crops never looks that far. Bytes
 * behind the end do not matter. Parsed as hostile; pure.
 */
#ifndef IOBENCH_BASE_IMAGE_END_H
#define IOBENCH_BASE_IMAGE_END_H

#include <stdbool.h>
#include <stddef.h>

/* from: where the end marker of a JPEG may be at the earliest, behind its headers, which may hold a
 * smaller JPEG with its own. */
bool image_end_jpeg(const void *image, size_t bytes, size_t from);
/* A PNG, whose first 8 bytes are known to be right: all chunks up to IEND are whole. */
bool image_end_png(const void *image, size_t bytes);

#endif
