/* SPDX-License-Identifier: Apache-2.0 */
#include "base/bmp.h"

#include "base/bytes.h"

#include <string.h>

/* Sizes and offsets of BITMAPFILEHEADER and of what follows it. */
enum {
    FILE_HEADER = 14,
    CORE_HEADER = 12,
    INFO_HEADER = 40,
    AT_MASKS =
        FILE_HEADER + INFO_HEADER, /* in the header from BITMAPV2INFOHEADER on, behind it before */
    MASK_BYTES = 12,
};

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
    header->top_down = height > INT32_MAX;
    header->height = header->top_down ? 0 - height : height;
    return header->width && header->width <= INT32_MAX && header->height &&
                   header->height <= INT32_MAX
               ? NULL
               : "BMP without pixels";
}

/* One run of ones, as the values are shifted out of it. */
static bool is_run(uint32_t mask)
{
    const uint32_t low = mask & (0 - mask);

    return mask && ((mask + low) & mask) == 0;
}

static const char *read_masks(const uint8_t *at, size_t bytes, uint32_t compression,
                              struct bmp *header)
{
    static const uint32_t usual[2][3] = {{0x7c00, 0x3e0, 0x1f}, {0xff0000, 0xff00, 0xff}};

    memcpy(header->masks, usual[header->bits == 32], sizeof header->masks);
    if (compression == RGB)
        return NULL;
    if (header->bits != 16 && header->bits != 32)
        return "the BMP has masks, but not 16 or 32 bits a pixel";
    if (bytes < AT_MASKS + MASK_BYTES)
        return "the BMP ends in its header";
    for (int i = 0; i < 3; i++) {
        header->masks[i] = bytes_le32(at + AT_MASKS + 4 * i);
        if (!is_run(header->masks[i]))
            return "the BMP has a mask that is no run of bits";
    }
    return NULL;
}

static const char *read_palette(const uint8_t *at, size_t bytes, uint32_t header_bytes,
                                struct bmp *header)
{
    const bool is_core = header_bytes == CORE_HEADER;
    const uint32_t most = 1U << header->bits, said = is_core ? 0 : bytes_le32(at + 46);

    header->palette = FILE_HEADER + (size_t)header_bytes;
    header->entry = is_core ? 3 : 4;
    header->colours = said && said < most ? said : most;
    /* Writers leave out colours that are not used, and do not say so. */
    const size_t room = header->pixels > header->palette ? header->pixels - header->palette : 0;
    if (room / header->entry < header->colours)
        header->colours = (uint32_t)(room / header->entry);
    return header->colours && header->palette + (size_t)header->colours * header->entry <= bytes
               ? NULL
               : "the BMP has no complete palette";
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
    return bits <= 8 && compression == RGB ? read_palette(at, bytes, header_bytes, header)
                                           : read_masks(at, bytes, compression, header);
}

size_t bmp_bytes(const struct bmp *header)
{
    return header->pixels + header->stride * header->height;
}
