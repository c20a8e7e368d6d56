/* SPDX-License-Identifier: Apache-2.0 */
#include "base/image_end.h"

#include "base/bmp.h"
#include "base/bytes.h"

#include <stdint.h>
#include <string.h>

enum { PNG_START_BYTES = 8, CHUNK_FRAME_BYTES = 12 };

/* Search from the end, where it should be. */
bool image_end_jpeg(const void *image, size_t bytes, size_t from)
{
    const uint8_t *jpeg = image;

    for (size_t i = bytes; i >= from + 2; i--)
        if (jpeg[i - 2] == 0xff && jpeg[i - 1] == 0xd9)
            return true;
    return false;
}

/* A chunk: u32 length, big-endian; type; that many bytes; u32 CRC. */
bool image_end_png(const void *image, size_t bytes)
{
    const uint8_t *at = (const uint8_t *)image + PNG_START_BYTES;
    size_t left = bytes < PNG_START_BYTES ? 0 : bytes - PNG_START_BYTES;

    while (left >= CHUNK_FRAME_BYTES) {
        const uint32_t length = bytes_be32(at);
        if (length > left - CHUNK_FRAME_BYTES)
            return false;
        if (memcmp(at + 4, "IEND", 4) == 0)
            return true;
        at += length + CHUNK_FRAME_BYTES;
        left -= length + CHUNK_FRAME_BYTES;
    }
    return false;
}

/* "RIFF", u32 size of what follows, little-endian. */
bool image_end_webp(const void *image, size_t bytes)
{
    return bytes_le32((const uint8_t *)image + 4) <= bytes - 8;
}

bool image_end_bmp(const void *image, size_t bytes)
{
    struct bmp header;

    return !bmp_read(image, bytes, &header) && bmp_bytes(&header) <= bytes;
}

/* The colours that a byte of flags announces: 3 bytes each. */
static size_t gif_colours(uint8_t flags)
{
    return flags & 0x80 ? (size_t)3 << ((flags & 7) + 1) : 0;
}

/* GIF89a specification, appendix A: extensions and images, each with sub-blocks of up to 255 bytes,
 * the last of them empty. */
bool image_end_gif(const void *image, size_t bytes)
{
    enum {
        SCREEN_END = 13,
        EXTENSION = 0x21,
        IMAGE = 0x2c,
        TRAILER = 0x3b,
        EXTENSION_BYTES = 2,
        IMAGE_BYTES = 10
    };
    const uint8_t *gif = image;
    size_t at = bytes < SCREEN_END ? bytes : SCREEN_END + gif_colours(gif[10]);

    while (at < bytes && gif[at] != TRAILER) {
        if (gif[at] == EXTENSION)
            at += EXTENSION_BYTES;
        else if (gif[at] == IMAGE && bytes - at > IMAGE_BYTES)
            at += IMAGE_BYTES + gif_colours(gif[at + IMAGE_BYTES - 1]) +
                  1; /* and the size of its codes */
        else
            return false;
        while (at < bytes && gif[at])
            at += (size_t)gif[at] + 1;
        at++;
    }
    return at < bytes;
}
