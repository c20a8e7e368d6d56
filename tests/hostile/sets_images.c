/* SPDX-License-Identifier: Apache-2.0
 * Images: JPEG and PNG that are disproportionately expensive to decode, and broken ones.
 */
#include "tests/hostile/hostile.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define IMAGE "ant/1.jpg"

enum { SCANS = 6000, SIDE_MAX = 65500 };

/* One hostile image between two good ones. */
static void in_class(void)
{
    put_folder("ant");
    put_jpeg("ant/0.jpg", 0);
    put_jpeg("ant/2.jpg", 1);
}

static void fixture(const struct hostile_act *act)
{
    char path[128] = "tests/fixtures/images/";

    in_class();
    copy_source(strcat(path, act->with), IMAGE);
}

/* ---- JPEG ---- */

static void add_jpeg(struct blob *blob)
{
    size_t count;

    in_class();
    const uint8_t *jpeg = sample_jpeg(2, &count);
    blob_add(blob, jpeg, count);
}

/* Return the position of a marker in bytes; without one, end the test. */
static size_t find_marker(const struct blob *blob, uint8_t marker)
{
    for (size_t i = 2; i + 1 < blob->count; i++)
        if (blob->bytes[i] == 0xff && blob->bytes[i + 1] == marker)
            return i;
    give_up("no marker %02x", marker);
}

/* A JPEG with bytes replaced after a marker. */
static void patched_jpeg(const struct hostile_act *act)
{
    struct blob blob = {0};

    add_jpeg(&blob);
    memcpy(blob.bytes + find_marker(&blob, *(const uint8_t *)act->with) + act->number, act->bytes,
           act->count);
    blob_save(&blob, IMAGE);
}

static void jpeg_noise(void)
{
    struct blob blob = {0};
    uint32_t state = 1;

    add_jpeg(&blob);
    for (size_t i = find_marker(&blob, 0xda) + 14; i < blob.count; i++) {
        state = state * 1664525u + 1013904223u;
        blob.bytes[i] = (uint8_t)(state >> 24) & 0xfe; /* never a marker */
    }
    blob_save(&blob, IMAGE);
}

static void jpeg_markers(void)
{
    struct blob blob = {0};

    in_class();
    blob_add(&blob, "\xff\xd8", 2);
    for (int i = 0; i < 20000; i++)
        blob_add(&blob, "\xff\xfe\0\2", 4);
    blob_save(&blob, IMAGE);
}

static void jpeg_fill(void)
{
    struct blob blob = {0};

    in_class();
    blob_add(&blob, "\xff\xd8", 2);
    blob_fill(&blob, 0xff, 1 << 20);
    blob_save(&blob, IMAGE);
}

/* The image data of a progressive JPEG, with its last scan repeated. */
static void jpeg_scans(void)
{
    struct blob blob = {0}, all = {0};

    in_class();
    copy_source("tests/fixtures/images/progressive.jpg", IMAGE);
    load_file(IMAGE, &blob);
    size_t last = 0;
    for (size_t i = 0; i + 1 < blob.count; i++)
        if (blob.bytes[i] == 0xff && blob.bytes[i + 1] == 0xda) {
            last = i;
            break;
        }
    size_t end = last + 2;
    while (end + 1 < blob.count && !(blob.bytes[end] == 0xff && blob.bytes[end + 1] >= 0xc0))
        end++;
    blob_add(&all, blob.bytes, end);
    for (int i = 0; i < SCANS; i++)
        blob_add(&all, blob.bytes + last, 10); /* only its header: a scan without data */
    blob_add(&all, blob.bytes + end, blob.count - end);
    free(blob.bytes);
    blob_save(&all, IMAGE);
}

/* ---- PNG ---- */

static void add_chunk(struct blob *blob, const char *type, const void *bytes, size_t count)
{
    uLong crc = crc32(0, (const Bytef *)type, 4);

    if (count) /* crc32(NULL) would restart */
        crc = crc32(crc, bytes, (uInt)count);
    blob_be32(blob, (uint32_t)count);
    blob_add(blob, type, 4);
    blob_add(blob, bytes, count);
    blob_be32(blob, (uint32_t)crc);
}

static void start_png(struct blob *blob, uint32_t width, uint32_t height, uint8_t depth,
                      uint8_t interlace)
{
    const uint8_t rest[5] = {depth, 2, 0, 0, interlace};
    struct blob head = {0};

    blob_add(blob, "\x89PNG\r\n\x1a\n", 8);
    blob_be32(&head, width);
    blob_be32(&head, height);
    blob_add(&head, rest, sizeof rest);
    add_chunk(blob, "IHDR", head.bytes, head.count);
    free(head.bytes);
}

/* Add a chunk of this type: prefix and then zeros, deflated. */
static void add_zeros(struct blob *blob, const char *type, const void *prefix, size_t prefix_bytes,
                      size_t zeros)
{
    struct blob chunk = {0};
    uLongf count = compressBound((uLong)zeros);
    uint8_t *plain = calloc(1, zeros), *packed = malloc(count);

    if (!plain || !packed || compress(packed, &count, plain, (uLong)zeros) != Z_OK)
        give_up("zlib");
    blob_add(&chunk, prefix, prefix_bytes);
    blob_add(&chunk, packed, count);
    add_chunk(blob, type, chunk.bytes, chunk.count);
    free(chunk.bytes);
    free(plain);
    free(packed);
}

static void end_png(struct blob *blob)
{
    add_chunk(blob, "IEND", NULL, 0);
    in_class();
    blob_save(blob, "ant/1.png");
}

static void png_text(void)
{
    struct blob blob = {0}, text = {0};

    add_zeros(&text, "zTXt", "Comment\0", 9, 4 << 20);
    start_png(&blob, 16, 16, 8, 0);
    for (int i = 0; i < 120; i++)
        blob_add(&blob, text.bytes, text.count);
    free(text.bytes);
    add_zeros(&blob, "IDAT", "", 0, 16 * 49);
    end_png(&blob);
}

static void png_profile(void)
{
    struct blob blob = {0};

    start_png(&blob, 16, 16, 8, 0);
    add_zeros(&blob, "iCCP", "icc\0", 5, 64 << 20);
    add_zeros(&blob, "IDAT", "", 0, 16 * 49);
    end_png(&blob);
}

static void png_chunks(void)
{
    struct blob blob = {0};

    start_png(&blob, 16, 16, 8, 0);
    for (int i = 0; i < 50000; i++)
        add_chunk(&blob, "tEXt", "a\0b", 3);
    add_zeros(&blob, "IDAT", "", 0, 16 * 49);
    end_png(&blob);
}

static void png_data(void)
{
    struct blob blob = {0};

    start_png(&blob, 16, 16, 8, 0);
    add_zeros(&blob, "IDAT", "", 0, 64 << 20);
    end_png(&blob);
}

static void png_sized(const struct hostile_act *act)
{
    const uint32_t *shape = act->with; /* width, height, depth, interlace */
    struct blob blob = {0};

    start_png(&blob, shape[0], shape[1], (uint8_t)shape[2], (uint8_t)shape[3]);
    add_zeros(&blob, "IDAT", "", 0, 100000);
    end_png(&blob);
}

const struct hostile_set hostile_images[] = {
    SET("jpeg-huge", "JPEG of 65,500 x 65,500 pixels in 4 KB", NULL, EITHER,
        .acts = {{CALL_WITH(patched_jpeg, 5), .with = "\xc0", BYTES("\xff\xdc\xff\xdc")}}),
    SET("jpeg-no-size", "JPEG of 0 x 0 pixels", NULL, EITHER,
        .acts = {{CALL_WITH(patched_jpeg, 5), .with = "\xc0", BYTES("\0\0\0\0")}}),
    SET("jpeg-no-height", "JPEG of 0 rows", NULL, EITHER,
        .acts = {{CALL_WITH(patched_jpeg, 5), .with = "\xc0", BYTES("\0\0\0\x64")}}),
    SET("jpeg-wide", "JPEG of 65,500 x 1 pixels", NULL, EITHER,
        .acts = {{CALL_WITH(patched_jpeg, 5), .with = "\xc0", BYTES("\0\1\xff\xdc")}}),
    SET("jpeg-arithmetic", "JPEG with arithmetic coding", NULL, EITHER,
        .acts = {{CALL_WITH(patched_jpeg, 1), .with = "\xc0", BYTES("\xc9")}}),
    SET("jpeg-12-bits", "JPEG of 12 bits", NULL, EITHER,
        .acts = {{CALL_WITH(patched_jpeg, 4), .with = "\xc0", BYTES("\x0c")}}),
    SET("jpeg-lossless", "lossless JPEG", NULL, EITHER,
        .acts = {{CALL_WITH(patched_jpeg, 1), .with = "\xc0", BYTES("\xc3")}}),
    SET("jpeg-components", "JPEG of 255 components", NULL, EITHER,
        .acts = {{CALL_WITH(patched_jpeg, 9), .with = "\xc0", BYTES("\xff")}}),
    SET("jpeg-sampling", "JPEG with sampling of 15", NULL, EITHER,
        .acts = {{CALL_WITH(patched_jpeg, 11), .with = "\xc0", BYTES("\xff")}}),
    SET("jpeg-huffman", "JPEG with a broken Huffman table", NULL, EITHER,
        .acts = {{CALL_WITH(patched_jpeg, 5), .with = "\xc4",
                  BYTES("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")}}),
    SET("jpeg-noise", "JPEG whose data are noise", jpeg_noise, EITHER),
    SET("jpeg-start", "JPEG of 4 bytes", in_class, EITHER,
        .acts = {{TEXT(IMAGE, "\xff\xd8\xff\xe0")}}),
    SET("jpeg-markers", "JPEG of 20,000 comments", jpeg_markers, EITHER),
    SET("jpeg-fill", "JPEG of 1 MiB of fill bytes", jpeg_fill, EITHER),
    SET("jpeg-scans", "progressive JPEG of 6,000 scans", jpeg_scans, EITHER),
    SET("jpeg-cmyk", "JPEG in CMYK", NULL, EITHER, .acts = {{CALL(fixture), .with = "cmyk.jpg"}}),
    SET("jpeg-truncated", "JPEG that is cut", NULL, EITHER,
        .acts = {{CALL(fixture), .with = "truncated.jpg"}}),
    SET("jpeg-is-png", "PNG named as a JPEG", NULL, FINE,
        .acts = {{CALL(fixture), .with = "png_named_jpeg.JPEG"}}),
    SET("png-text", "PNG of 120 zTXt chunks of 4 MiB", png_text, EITHER),
    SET("png-profile", "PNG with a colour profile of 64 MiB", png_profile, EITHER),
    SET("png-chunks", "PNG of 50,000 chunks", png_chunks, EITHER),
    SET("png-data", "PNG with 64 MiB of image data for 16 x 16", png_data, EITHER),
    SET("png-huge", "PNG of 2^31 - 1 pixels a side", NULL, EITHER,
        .acts = {{CALL(png_sized), .with = (const uint32_t[]){0x7fffffff, 0x7fffffff, 8, 0}}}),
    SET("png-large", "PNG of 65,500 x 65,500, interlaced, 16 bits", NULL, EITHER,
        .acts = {{CALL(png_sized), .with = (const uint32_t[]){SIDE_MAX, SIDE_MAX, 16, 1}}}),
    SET("png-no-size", "PNG of 0 x 0 pixels", NULL, EITHER,
        .acts = {{CALL(png_sized), .with = (const uint32_t[]){0, 0, 8, 0}}}),
    SET("png-depth", "PNG of 255 bits, interlace 7", NULL, EITHER,
        .acts = {{CALL(png_sized), .with = (const uint32_t[]){16, 16, 255, 7}}}),
    SET("png-crc", "PNG with a wrong CRC", NULL, EITHER,
        .acts = {{CALL(fixture), .with = "interlaced.png"}, {PATCH(IMAGE, 100, "\xff\xff\xff")}}),
    SET("png-interlaced", "PNG, interlaced", NULL, FINE,
        .acts = {{CALL(fixture), .with = "interlaced.png"}}),
    SET("png-cut", "PNG that is cut", NULL, EITHER,
        .acts = {{CALL(fixture), .with = "alpha.png"}, {CUT(IMAGE, 4000)}}),
    SET("png-length", "PNG with a chunk of 2 GiB", NULL, EITHER,
        .acts = {{CALL(fixture), .with = "palette.png"}, {PATCH(IMAGE, 33, "\x7f\xff\xff\xff")}}),
    {0},
};
