/* SPDX-License-Identifier: Apache-2.0 */
#include "base/image_header.h"

#include "base/bmp.h"
#include "base/bytes.h"
#include "base/fail.h"
#include "base/netpbm.h"

#include <errno.h>
#include <string.h>

/* ITU-T T.81 B.2: markers SOF0..SOF15 except DHT (C4), JPG (C8) and DAC (CC). */
static bool is_frame(uint8_t marker)
{
    return (marker & 0xf0) == 0xc0 && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}

/* ITU-T T.81 annex B. */
static int read_jpeg(const uint8_t *jpeg, size_t count, struct image_header *header)
{
    for (size_t at = 2;;) {
        while (at + 1 < count && jpeg[at] == 0xff && jpeg[at + 1] == 0xff)
            at++; /* fill bytes */
        if (count - at < 4)
            return fail(EBADMSG, "byte %zu of the image: the JPEG ends before its frame header",
                        at);
        uint8_t marker = jpeg[at + 1];
        size_t length = bytes_be16(jpeg + at + 2);
        if (jpeg[at] != 0xff)
            return fail(EBADMSG, "byte %zu of the image: expected a JPEG marker", at);
        if (marker == 0xda || marker == 0xd9)
            return fail(EBADMSG, "byte %zu of the image: the JPEG has no frame header", at);
        if (marker == 0x01 || (marker >= 0xd0 && marker <= 0xd8)) {
            at += 2; /* markers without a length */
            continue;
        }
        if (length < 2 || length > count - at - 2)
            return fail(EBADMSG, "byte %zu of the image: JPEG segment extends past the end", at);
        if (is_frame(marker)) {
            if (length < 8)
                return fail(EBADMSG, "byte %zu of the image: JPEG frame header too short", at);
            *header = (struct image_header){.kind = IMAGE_JPEG,
                                            .height = bytes_be16(jpeg + at + 5),
                                            .width = bytes_be16(jpeg + at + 7),
                                            .components = jpeg[at + 9],
                                            .progressive = (marker & 3) == 2,
                                            .bytes = at + 2 + length};
            if (header->width == 0)
                return fail(EBADMSG, "byte %zu of the image: JPEG of width 0", header->bytes);
            return 0;
        }
        at += 2 + length;
    }
}

/* PNG specification, 11.2.2 IHDR; colour types 0, 2, 3 (palette), 4, 6. */
static int read_png(const uint8_t *png, size_t count, struct image_header *header)
{
    static const uint8_t components[7] = {1, 0, 3, 1, 2, 0, 4};
    enum { SIGNATURE_BYTES = 8, IHDR_END = 33 };

    if (count < IHDR_END || memcmp(png + SIGNATURE_BYTES, "\0\0\0\rIHDR", 8) != 0)
        return fail(EBADMSG, "byte 8 of the image: the PNG has no complete IHDR chunk");
    *header = (struct image_header){.kind = IMAGE_PNG,
                                    .width = bytes_be32(png + 16),
                                    .height = bytes_be32(png + 20),
                                    .components = png[25] < 7 ? components[png[25]] : 0,
                                    .palette = png[25] == 3,
                                    .bytes = IHDR_END};
    if (!header->width || !header->height || !header->components)
        return fail(EBADMSG, "byte 16 of the image: PNG without pixels");
    return 0;
}

/* RFC 9649: RIFF, its size, WEBP; then a first chunk of three kinds. */
static int read_webp(const uint8_t *webp, size_t count, struct image_header *header)
{
    enum { CHUNK = 12, DATA = 20, VP8_END = 30, VP8L_END = 25, VP8X_END = 30 };
    const uint8_t *data = webp + DATA;

    *header = (struct image_header){.kind = IMAGE_WEBP, .components = 3};
    if (count >= VP8_END && memcmp(webp + CHUNK, "VP8 ", 4) == 0) {
        header->width = bytes_le16(data + 6) & 0x3fff;
        header->height = bytes_le16(data + 8) & 0x3fff;
        header->bytes = VP8_END;
    } else if (count >= VP8L_END && memcmp(webp + CHUNK, "VP8L", 4) == 0) {
        const uint32_t sizes = bytes_le32(data + 1);
        header->width = (sizes & 0x3fff) + 1;
        header->height = (sizes >> 14 & 0x3fff) + 1;
        header->bytes = VP8L_END;
    } else if (count >= VP8X_END && memcmp(webp + CHUNK, "VP8X", 4) == 0) {
        header->width = (bytes_le32(data + 4) & 0xffffff) + 1;
        header->height = (bytes_le32(data + 6) >> 8) + 1;
        header->bytes = VP8X_END;
    }
    if (!header->width || !header->height)
        return fail(EBADMSG, "byte 12 of the image: the WebP has no complete image header");
    return 0;
}

static int read_netpbm(const uint8_t *image, size_t count, struct image_header *header)
{
    struct netpbm netpbm;
    const char *why = netpbm_read(image, count, &netpbm);

    *header = (struct image_header){.kind = IMAGE_NETPBM,
                                    .width = netpbm.width,
                                    .height = netpbm.height,
                                    .components = netpbm.channels,
                                    .bytes = netpbm.header_bytes};
    return why ? fail(EBADMSG, "byte 2 of the image: %s", why) : 0;
}

/* GIF89a specification, 18: the logical screen, on which the frames are put. */
static int read_gif(const uint8_t *gif, size_t count, struct image_header *header)
{
    enum { SCREEN_END = 13 };

    if (count < SCREEN_END)
        return fail(EBADMSG, "byte %zu of the image: the GIF ends in its header", count);
    *header = (struct image_header){.kind = IMAGE_GIF,
                                    .width = bytes_le16(gif + 6),
                                    .height = bytes_le16(gif + 8),
                                    .components = 3,
                                    .bytes = SCREEN_END};
    return header->width && header->height
               ? 0
               : fail(EBADMSG, "byte 6 of the image: GIF without pixels");
}

static int read_bmp(const uint8_t *image, size_t count, struct image_header *header)
{
    struct bmp bmp;
    const char *why = bmp_read(image, count, &bmp);

    *header = (struct image_header){.kind = IMAGE_BMP,
                                    .width = bmp.width,
                                    .height = bmp.height,
                                    .components = 3,
                                    .bytes = bmp.pixels};
    return why ? fail(EBADMSG, "byte 14 of the image: %s", why) : 0;
}

static bool is_jpeg(const void *image, size_t bytes)
{
    return bytes >= 2 && memcmp(image, "\xff\xd8", 2) == 0;
}

static bool is_png(const void *image, size_t bytes)
{
    return bytes >= 8 && memcmp(image, "\x89PNG\r\n\x1a\n", 8) == 0;
}

static bool is_webp(const void *image, size_t bytes)
{
    return bytes >= 12 && memcmp(image, "RIFF", 4) == 0 &&
           memcmp((const uint8_t *)image + 8, "WEBP", 4) == 0;
}

static bool is_gif(const void *image, size_t bytes)
{
    return bytes >= 6 && (memcmp(image, "GIF87a", 6) == 0 || memcmp(image, "GIF89a", 6) == 0);
}

static const struct {
    const char *name, *extension;
    bool (*is)(const void *image, size_t bytes);
    int (*read)(const uint8_t *image, size_t bytes, struct image_header *header);
} kinds[IMAGE_KINDS] = {
    [IMAGE_UNKNOWN] = {"other", "jpg", NULL, NULL},
    [IMAGE_JPEG] = {"JPEG", "jpg", is_jpeg, read_jpeg},
    [IMAGE_PNG] = {"PNG", "png", is_png, read_png},
    [IMAGE_WEBP] = {"WebP", "webp", is_webp, read_webp},
    [IMAGE_NETPBM] = {"PPM", "ppm", netpbm_is, read_netpbm},
    [IMAGE_GIF] = {"GIF", "gif", is_gif, read_gif},
    [IMAGE_BMP] = {"BMP", "bmp", bmp_is, read_bmp},
};

enum image_kind image_kind_of(const void *image, size_t bytes)
{
    for (int kind = IMAGE_UNKNOWN + 1; kind < IMAGE_KINDS; kind++)
        if (kinds[kind].is(image, bytes))
            return (enum image_kind)kind;
    return IMAGE_UNKNOWN;
}

const char *image_extension(const void *image, size_t bytes)
{
    return kinds[image_kind_of(image, bytes)].extension;
}

const char *image_kind_name(enum image_kind kind)
{
    return kinds[kind].name;
}

int image_header_read(const void *image, size_t bytes, struct image_header *header)
{
    const enum image_kind kind = image_kind_of(image, bytes);

    *header = (struct image_header){0};
    if (bytes == 0)
        return fail(EBADMSG, "byte 0 of the image: empty");
    if (kind == IMAGE_UNKNOWN)
        return fail(EBADMSG, "byte 0 of the image: neither a JPEG, PNG, WebP, PPM, GIF nor BMP");
    return kinds[kind].read(image, bytes, header);
}
