/* SPDX-License-Identifier: Apache-2.0
 *
 * netpbm: the header of a binary PPM or PGM image (P6, P5) with 8 bits a value: what other programs
 * read and write as uncompressed pixels. Parsed as hostile; pure.
 */
#ifndef IOBENCH_BASE_NETPBM_H
#define IOBENCH_BASE_NETPBM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct netpbm {
    uint32_t width, height, channels; /* 3: RGB; 1: gray */
    size_t header_bytes;              /* then height x width x channels bytes */
};

enum { NETPBM_HEADER_MOST = 32 }; /* that netpbm_write_header() makes */

/* Do the bytes begin like such an image? */
bool netpbm_is(const void *image, size_t bytes);
/* Read the header. Returns NULL, or what is wrong with it. */
const char *netpbm_read(const void *image, size_t bytes, struct netpbm *header);
size_t netpbm_pixel_bytes(const struct netpbm *header);
/* Write the header of an RGB image, without a final NUL. Returns its size. */
size_t netpbm_write_header(char header[NETPBM_HEADER_MOST], uint32_t width, uint32_t height);

#endif
