/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/image_header.h"

#include <string.h>

static uint32_t be16(const uint8_t *bytes)
{
    return (uint32_t)(bytes[0] << 8 | bytes[1]);
}

static uint32_t be32(const uint8_t *bytes)
{
    return be16(bytes) << 16 | be16(bytes + 2);
}

/* ITU-T T.81 B.2: markers SOF0..SOF15 without DHT (C4), JPG (C8) and DAC (CC). */
static int is_frame(uint8_t marker)
{
    return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}

static struct image_header jpeg_header(const uint8_t *image, size_t bytes)
{
    struct image_header header = {.format = "JPEG"};

    for (size_t at = 2; bytes - at >= 10 && image[at] == 0xff;) {
        uint8_t marker = image[at + 1];
        if (marker == 0xff) { /* a fill byte */
            at++;
            continue;
        }
        if (is_frame(marker)) {
            header.height = be16(image + at + 5);
            header.width = be16(image + at + 7);
            header.channels = image[at + 9];
            break;
        }
        uint32_t length = be16(image + at + 2);
        if (length < 2 || length + 2 > bytes - at)
            break;
        at += length + 2;
    }
    return header;
}

/* PNG specification, 11.2.2 IHDR; colour types 0, 2, 3, 4, 6. */
static struct image_header png_header(const uint8_t *image, size_t bytes)
{
    static const uint8_t channels[] = {1, 0, 3, 3, 2, 0, 4};
    struct image_header header = {.format = "PNG"};

    if (bytes >= 26 && memcmp(image + 12, "IHDR", 4) == 0) {
        header.width = be32(image + 16);
        header.height = be32(image + 20);
        header.channels = image[25] < sizeof channels ? channels[image[25]] : 0;
    }
    return header;
}

struct image_header image_header_of(const void *image, size_t bytes)
{
    if (bytes >= 4 && memcmp(image, "\xff\xd8\xff", 3) == 0)
        return jpeg_header(image, bytes);
    if (bytes >= 8 && memcmp(image, "\x89PNG\r\n\x1a\n", 8) == 0)
        return png_header(image, bytes);
    return (struct image_header){.format = ""};
}
