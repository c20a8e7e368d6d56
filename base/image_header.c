/* SPDX-License-Identifier: Apache-2.0 */
#include "base/image_header.h"

#include "base/bytes.h"
#include "base/fail.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
        /* B.2: markers SOF0..SOF15 except DHT (C4), JPG (C8) and DAC (CC). */
        if ((marker & 0xf0) == 0xc0 && marker != 0xc4 && marker != 0xc8 && marker != 0xcc) {
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

static bool is_blank(uint8_t byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

const char *netpbm_read(const void *image, size_t bytes, struct netpbm *header)
{
    const uint8_t *at = (const uint8_t *)image + 2, *end = (const uint8_t *)image + bytes;
    uint32_t numbers[3];

    *header = (struct netpbm){0};
    if (image_kind_of(image, bytes) != IMAGE_NETPBM)
        return "not a binary PPM or PGM";
    for (int i = 0; i < 3; i++) {
        while (at < end && (is_blank(*at) || *at == '#')) { /* blanks and comments */
            if (*at == '#')
                while (at < end && *at != '\n')
                    at++;
            else
                at++;
        }
        const uint8_t *first = at;
        for (numbers[i] = 0; at < end && *at >= '0' && *at <= '9' && at - first < 9; at++)
            numbers[i] = numbers[i] * 10 + (uint32_t)(*at - '0');
        const bool goes_on = at < end && *at >= '0' && *at <= '9';
        if (at == first || goes_on)
            return "the PPM lacks its size, or a number in it has more than 9 digits";
    }
    if (at == end || !is_blank(*at))
        return "the PPM has no blank after its header";
    if (!numbers[0] || !numbers[1])
        return "PPM without pixels";
    if (numbers[2] != 255)
        return "the PPM has values other than 0 to 255";
    header->width = numbers[0];
    header->height = numbers[1];
    header->channels = ((const uint8_t *)image)[1] == '6' ? 3 : 1;
    header->header_bytes = (size_t)(at + 1 - (const uint8_t *)image);
    return NULL;
}

static int read_netpbm(const uint8_t *image, size_t count, struct image_header *header)
{
    struct netpbm netpbm;
    const char *why = netpbm_read(image, count, &netpbm);

    *header =
        (struct image_header){.kind = IMAGE_NETPBM,
                              .width = netpbm.width,
                              .height = netpbm.height,
                              .components = netpbm.channels,
                              .bytes = netpbm.header_bytes,
                              .whole_bytes = netpbm.header_bytes + netpbm_pixel_bytes(&netpbm)};
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

/* BITMAPFILEHEADER, then BITMAPCOREHEADER, BITMAPINFOHEADER or one of its successors, not
 * compressed (https://learn.microsoft.com/windows/win32/gdi/bitmap-storage). */
static int read_bmp(const uint8_t *image, size_t count, struct image_header *header)
{
    enum { FILE_HEADER = 14, CORE_HEADER = 12, INFO_HEADER = 40 };
    enum { RGB = 0, RLE8 = 1, RLE4 = 2, BITFIELDS = 3, ALPHA_BITFIELDS = 6 };
    const uint32_t header_bytes = bytes_le32(image + FILE_HEADER);
    const bool is_core = header_bytes == CORE_HEADER;
    const char *why = NULL;

    *header = (struct image_header){.kind = IMAGE_BMP, .components = 3};
    if (!is_core && header_bytes < INFO_HEADER)
        why = "the BMP has a header of an unknown size";
    else if (header_bytes > count - FILE_HEADER)
        why = "the BMP ends in its header";
    if (why)
        return fail(EBADMSG, "byte 14 of the image: %s", why);
    const uint32_t compression = is_core ? RGB : bytes_le32(image + 30);
    const uint32_t height = is_core ? bytes_le16(image + 20) : bytes_le32(image + 22);
    const uint32_t bits = bytes_le16(image + (is_core ? 24 : 28));
    header->bytes = bytes_le32(image + 10);
    header->width = is_core ? bytes_le16(image + 18) : bytes_le32(image + 18);
    header->height = height > INT32_MAX ? 0 - height : height; /* the first row comes first */
    header->whole_bytes =
        header->bytes + ((size_t)header->width * bits + 31) / 32 * 4 * header->height;
    if (!header->width || header->width > INT32_MAX || !header->height ||
        header->height > INT32_MAX)
        why = "BMP without pixels";
    else if (compression == RLE8 || compression == RLE4)
        why = "the BMP is run-length encoded, which is not supported";
    else if (compression != RGB && compression != BITFIELDS && compression != ALPHA_BITFIELDS)
        why = "the BMP has an unsupported compression";
    else if (bits != 1 && bits != 4 && bits != 8 && bits != 16 && bits != 24 && bits != 32)
        why = "the BMP has an unsupported number of bits per pixel";
    else if (header->bytes < FILE_HEADER + (size_t)header_bytes)
        why = "the BMP's pixels begin in its header";
    return why ? fail(EBADMSG, "byte 14 of the image: %s", why) : 0;
}

static const struct {
    const char *name, *extension;
    int (*read)(const uint8_t *image, size_t bytes, struct image_header *header);
} kinds[IMAGE_KINDS] = {
    [IMAGE_UNKNOWN] = {"other", "jpg", NULL},     [IMAGE_JPEG] = {"JPEG", "jpg", read_jpeg},
    [IMAGE_PNG] = {"PNG", "png", read_png},       [IMAGE_WEBP] = {"WebP", "webp", read_webp},
    [IMAGE_NETPBM] = {"PPM", "ppm", read_netpbm}, [IMAGE_GIF] = {"GIF", "gif", read_gif},
    [IMAGE_BMP] = {"BMP", "bmp", read_bmp},
};

static bool begins(const void *image, size_t bytes, const char *with, size_t with_bytes)
{
    return bytes >= with_bytes && memcmp(image, with, with_bytes) == 0;
}

enum image_kind image_kind_of(const void *image, size_t bytes)
{
    const uint8_t *at = image;

    if (begins(image, bytes, "\xff\xd8", 2))
        return IMAGE_JPEG;
    if (begins(image, bytes, "\x89PNG\r\n\x1a\n", 8))
        return IMAGE_PNG;
    if (bytes >= 12 && begins(image, bytes, "RIFF", 4) && memcmp(at + 8, "WEBP", 4) == 0)
        return IMAGE_WEBP;
    if (bytes >= 3 && (begins(image, bytes, "P5", 2) || begins(image, bytes, "P6", 2)) &&
        (is_blank(at[2]) || at[2] == '#'))
        return IMAGE_NETPBM;
    if (begins(image, bytes, "GIF87a", 6) || begins(image, bytes, "GIF89a", 6))
        return IMAGE_GIF;
    /* "BM" alone begins other files too: the four reserved bytes are 0. */
    if (bytes >= 18 && begins(image, bytes, "BM", 2) && bytes_le32(at + 6) == 0)
        return IMAGE_BMP;
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

bool image_limits_size(const struct image_limits *limits, uint64_t width, uint64_t height)
{
    return width <= UINT16_MAX && height <= UINT16_MAX && width * height <= limits->pixels;
}

bool image_limits_scan(const struct image_limits *limits, uint64_t scan, uint64_t width,
                       uint64_t height, char *why, size_t why_bytes)
{
    const uint64_t pixels = width && height ? width * height : 1;
    const uint64_t passes = IMAGE_LIMITS_PASSES * limits->pixels / pixels;
    const uint64_t most = limits->scans < passes ? limits->scans : passes;

    if (scan <= most)
        return true;
    snprintf(why, why_bytes,
             "more than %llu scans of %llu x %llu pixels (max-scans=%llu, max-pixels=%llu)",
             (unsigned long long)most, (unsigned long long)width, (unsigned long long)height,
             (unsigned long long)limits->scans, (unsigned long long)limits->pixels);
    return false;
}

size_t netpbm_pixel_bytes(const struct netpbm *header)
{
    return (size_t)header->width * header->height * header->channels;
}

size_t netpbm_write_header(char header[NETPBM_HEADER_MOST], uint32_t width, uint32_t height)
{
    return (size_t)snprintf(header, NETPBM_HEADER_MOST, "P6\n%u %u\n255\n", width, height);
}

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
            /* 1: the size of its codes. */
            at += IMAGE_BYTES + gif_colours(gif[at + IMAGE_BYTES - 1]) + 1;
        else
            return false;
        while (at < bytes && gif[at])
            at += (size_t)gif[at] + 1;
        at++;
    }
    return at < bytes;
}

int image_header_check(const void *bytes, size_t count, struct image_header *header)
{
    int code = image_header_read(bytes, count, header);

    if (code)
        return code;
    if (header->kind == IMAGE_JPEG && !image_end_jpeg(bytes, count, header->bytes))
        return fail(EBADMSG, "byte %zu of the image: cut short, no JPEG end marker", count);
    if (header->kind == IMAGE_PNG && !image_end_png(bytes, count))
        return fail(EBADMSG, "byte %zu of the image: cut short, no PNG end chunk", count);
    if (header->kind == IMAGE_WEBP && !image_end_webp(bytes, count))
        return fail(EBADMSG, "byte %zu of the image: the WebP is cut short", count);
    if (header->kind == IMAGE_GIF && !image_end_gif(bytes, count))
        return fail(EBADMSG, "byte %zu of the image: the GIF is cut short", count);
    if (header->whole_bytes > count)
        return fail(EBADMSG, "byte %zu of the image: the %s is cut short", count,
                    image_kind_name(header->kind));
    return 0;
}
