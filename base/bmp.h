/* SPDX-License-Identifier: Apache-2.0
 *
 * bmp: the headers of a Windows bitmap without compression, of 1, 4, 8, 16, 24 or 32 bits a pixel
 * (BITMAPCOREHEADER, BITMAPINFOHEADER and its successors;
 * https://learn.microsoft.com/windows/win32/gdi/bitmap-storage). Parsed as hostile; pure.
 */
#ifndef IOBENCH_BASE_BMP_H
#define IOBENCH_BASE_BMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bmp {
    uint32_t width, height, bits;
    size_t pixels; /* offset of the rows */
    size_t stride; /* from row to row: 4-byte aligned */
};

bool bmp_is(const void *image, size_t bytes);
/* Read the headers. Returns NULL, or what is wrong with them. The rows may be cut short: see
 * bmp_bytes(). */
const char *bmp_read(const void *image, size_t bytes, struct bmp *header);
/* Return the size that the file must have. */
size_t bmp_bytes(const struct bmp *header);

#endif
