/* SPDX-License-Identifier: Apache-2.0
 *
 * image_check: checks encoded images and turns raw pixels into JPEGs, for pack, verify and inspect;
 * the decoders on the clock are in decode/. Stateless; any thread. Parsed as hostile.
 */
#ifndef IOBENCH_CMD_PACK_IMAGE_CHECK_H
#define IOBENCH_CMD_PACK_IMAGE_CHECK_H

#include "base/image_header.h"
#include "base/sample.h"

/* Read the headers and check that the image has its end marker. Returns 0, or -EBADMSG with a
 * reason that begins "byte N of the image", also for unknown kinds. */
int image_check_headers(const void *bytes, size_t count, struct image_header *header);

/* Decode the whole image, within limits, and drop the pixels. Returns 0, or -EBADMSG with the first
 * complaint. */
int image_check_decode(const void *bytes, size_t count, const struct image_limits *limits);

/* Encode a raw sample into *jpeg, a malloc()ed buffer of *capacity bytes that is replaced if too
 * small. quality: 1 to 100. Returns 0 or a negative errno. */
int image_to_jpeg(const struct sample *raw, int quality, void **jpeg, size_t *capacity,
                  size_t *count);

#endif
