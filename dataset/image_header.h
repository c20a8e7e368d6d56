/* SPDX-License-Identifier: Apache-2.0
 *
 * image_header: what the first bytes of an encoded image say about it. It decodes nothing. Pure.
 */
#ifndef IOBENCH_DATASET_IMAGE_HEADER_H
#define IOBENCH_DATASET_IMAGE_HEADER_H

#include <stddef.h>
#include <stdint.h>

struct image_header {
    const char *format;               /* "JPEG", "PNG", "" when neither */
    uint32_t width, height, channels; /* 0 when not known */
};

struct image_header image_header_of(const void *image, size_t bytes);

#endif
