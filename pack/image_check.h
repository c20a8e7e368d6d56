/* SPDX-License-Identifier: Apache-2.0
 *
 * image_check: what the bytes of an image are, whether they decode whole, and raw pixels made
 * into a JPEG. For pack, verify and inspect; the decoders of the clock are in decode/. It keeps no
 * state: any thread. Parsed as hostile.
 */
#ifndef IOBENCH_PACK_IMAGE_CHECK_H
#define IOBENCH_PACK_IMAGE_CHECK_H

#include "base/image_limits.h"
#include "dataset/image_header.h"
#include "dataset/sample.h"

/* Headers alone (and that a JPEG has its end marker). 0, or -EBADMSG with a reason that begins
 * "byte N of the image". Bytes that begin as no known kind are -EBADMSG, too. */
int image_check_headers(const void *bytes, size_t count, struct image_header *header);

/* Decode all of it, within limits, and forget the pixels. 0, or -EBADMSG with the first complaint.
 */
int image_check_decode(const void *bytes, size_t count, const struct image_limits *limits);

/* A JPEG of a raw sample into *jpeg, a malloc()ed buffer of *capacity bytes that is replaced when
 * it is too small. quality: 1..100. 0 or a negative errno. */
int image_to_jpeg(const struct sample *raw, int quality, void **jpeg, size_t *capacity,
                  size_t *count);

#endif
