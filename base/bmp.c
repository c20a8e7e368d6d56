/* SPDX-License-Identifier: Apache-2.0 */
#include "base/bmp.h"

#include "base/bytes.h"

#include <string.h>

/* Sizes of BITMAPFILEHEADER and of what follows it. */
enum { FILE_HEADER = 14, CORE_HEADER = 12, INFO_HEADER = 40 };

enum { RGB = 0, RLE8 = 1, RLE4 = 2, BITFIELDS = 3, ALPHA_BITFIELDS = 6 };

bool bmp_is(const void *image, size_t bytes)
{
    /* "BM" alone begins other files too: the four reserved bytes are 0. */
    return bytes >= FILE_HEADER + 4 && memcmp(image, "BM", 2) == 0 &&
           bytes_le32((const uint8_t *)image + 6) == 0;
}

static const char *read_sizes(const uint8_t *at, uint32_t header_bytes, struct bmp *header)
{
    uint32_t height;

    if (header_bytes == CORE_HEADER) {
        header->width = bytes_le16(at + 18);
        height = bytes_le16(at + 20);
        header->bits = bytes_le16(at + 24);
    } else {
        header->width = bytes_le32(at + 18);
        height = bytes_le32(at + 22);
        header->bits = bytes_le16(at + 28);
    }
    header->height = height > INT32_MAX ? 0 - height : height; /* the first row comes first */
    return header->width && header->width <= INT32_MAX && header->height &&
                   header->height <= INT32_MAX
               ? NULL
               : "BMP without pixels";
}

const char *bmp_read(const void *image, size_t bytes, struct bmp *header)
{
    const uint8_t *at = image;

    *header = (struct bmp){0};
    if (!bmp_is(image, bytes))
        return "not a BMP";
    const uint32_t header_bytes = bytes_le32(at + FILE_HEADER);
    if (header_bytes != CORE_HEADER && header_bytes < INFO_HEADER)
        return "the BMP has a header of an unknown size";
    if (header_bytes > bytes - FILE_HEADER)
        return "the BMP ends in its header";
    const uint32_t compression = header_bytes == CORE_HEADER ? RGB : bytes_le32(at + 30);
    const char *why = read_sizes(at, header_bytes, header);
    if (why)
        return why;
    if (compression == RLE8 || compression == RLE4)
        return "the BMP is run-length encoded, which is not supported";
    if (compression != RGB && compression != BITFIELDS && compression != ALPHA_BITFIELDS)
        return "the BMP is compressed in a way that is not supported";
    const uint32_t bits = header->bits;
    if (bits != 1 && bits != 4 && bits != 8 && bits != 16 && bits != 24 && bits != 32)
        return "the BMP has a number of bits a pixel that is not supported";
    header->pixels = bytes_le32(at + 10);
    header->stride = ((size_t)header->width * bits + 31) / 32 * 4;
    if (header->pixels < FILE_HEADER + (size_t)header_bytes)
        return "the BMP's pixels begin in its header";
    return NULL;
}

size_t bmp_bytes(const struct bmp *header)
{
    return header->pixels + header->stride * header->height;
}
