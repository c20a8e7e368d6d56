/* SPDX-License-Identifier: Apache-2.0
 *
 * image_end: checks that an encoded image is complete, since a decoder that crops never reads that
 * far. Ignores bytes past the end. Parsed as hostile; pure.
 */
#ifndef IOBENCH_BASE_IMAGE_END_H
#define IOBENCH_BASE_IMAGE_END_H

#include <stdbool.h>
#include <stddef.h>

/* from: the end of the headers, before which an embedded thumbnail may have an end marker of its
 * own. */
bool image_end_jpeg(const void *image, size_t bytes, size_t from);
/* Are all chunks of a PNG complete up to IEND? Its first 8 bytes are known to be right. */
bool image_end_png(const void *image, size_t bytes);
/* Does a WebP have the size that its first 12 bytes, known to be there, announce? */
bool image_end_webp(const void *image, size_t bytes);
/* Are all rows of a BMP there? Its headers are known to be right. */
bool image_end_bmp(const void *image, size_t bytes);
/* Are all blocks of a GIF complete up to its trailer? Its first 6 bytes are known to be right. */
bool image_end_gif(const void *image, size_t bytes);

#endif
