/* SPDX-License-Identifier: Apache-2.0
 * Images: JPEG and PNG that are disproportionately expensive to decode, and broken ones.
 */
#include "tests/hostile/hostile.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { SCANS = 6000, SIDE_MAX = 65500 };

/* One hostile image between two good ones. */
static const char *in_class(void)
{
    put_folder("ant");
    put_jpeg("ant/0.jpg", 0);
    put_jpeg("ant/2.jpg", 1);
    return "ant/1.jpg";
}

static void fixture(const char *name)
{
    char path[128] = "tests/fixtures/images/";

    copy_source(strcat(path, name), in_class());
}

/* ---- JPEG ---- */

/* Return the position of a marker in bytes; without one, end the test. */
static size_t find_marker(const struct blob *blob, uint8_t marker)
{
    for (size_t i = 2; i + 1 < blob->count; i++)
        if (blob->bytes[i] == 0xff && blob->bytes[i + 1] == marker)
            return i;
    give_up("no marker %02x", marker);
}

static void with_size(unsigned height, unsigned width)
{
    struct blob blob = {0};
    size_t count;
    const uint8_t *jpeg = sample_jpeg(2, &count);
    const uint8_t size[4] = {(uint8_t)(height >> 8), (uint8_t)height, (uint8_t)(width >> 8),
                             (uint8_t)width};
    const char *path = in_class();

    jpeg = sample_jpeg(2, &count);
    blob_add(&blob, jpeg, count);
    memcpy(blob.bytes + find_marker(&blob, 0xc0) + 5, size, 4);
    blob_save(&blob, path);
}

static void jpeg_huge(void)
{
    with_size(SIDE_MAX, SIDE_MAX);
}

static void jpeg_no_size(void)
{
    with_size(0, 0);
}

static void jpeg_no_height(void)
{
    with_size(0, 100);
}

static void jpeg_wide(void)
{
    with_size(1, SIDE_MAX);
}

static void jpeg_fixed_byte(uint8_t marker, size_t offset, uint8_t value)
{
    struct blob blob = {0};
    const char *path = in_class();
    size_t count;
    const uint8_t *jpeg = sample_jpeg(2, &count);

    blob_add(&blob, jpeg, count);
    blob.bytes[find_marker(&blob, marker) + offset] = value;
    blob_save(&blob, path);
}

static void jpeg_arithmetic(void)
{
    jpeg_fixed_byte(0xc0, 1, 0xc9);
}

static void jpeg_12_bits(void)
{
    jpeg_fixed_byte(0xc0, 4, 12);
}

static void jpeg_lossless(void)
{
    jpeg_fixed_byte(0xc0, 1, 0xc3);
}

static void jpeg_components(void)
{
    jpeg_fixed_byte(0xc0, 9, 255);
}

static void jpeg_sampling(void)
{
    jpeg_fixed_byte(0xc0, 11, 0xff);
}

static void jpeg_huffman(void)
{
    struct blob blob = {0};
    const char *path = in_class();
    size_t count;
    const uint8_t *jpeg = sample_jpeg(2, &count);

    blob_add(&blob, jpeg, count);
    memset(blob.bytes + find_marker(&blob, 0xc4) + 5, 0xff, 16);
    blob_save(&blob, path);
}

static void jpeg_noise(void)
{
    struct blob blob = {0};
    const char *path = in_class();
    size_t count;
    const uint8_t *jpeg = sample_jpeg(2, &count);
    uint32_t state = 1;

    blob_add(&blob, jpeg, count);
    for (size_t i = find_marker(&blob, 0xda) + 14; i < blob.count; i++) {
        state = state * 1664525u + 1013904223u;
        blob.bytes[i] = (uint8_t)(state >> 24) & 0xfe; /* never a marker */
    }
    blob_save(&blob, path);
}

static void jpeg_only_start(void)
{
    put_file(in_class(), "\xff\xd8\xff\xe0", 4);
}

static void jpeg_markers(void)
{
    struct blob blob = {0};
    const char *path = in_class();

    blob_add(&blob, "\xff\xd8", 2);
    for (int i = 0; i < 20000; i++)
        blob_add(&blob, "\xff\xfe\0\2", 4);
    blob_save(&blob, path);
}

static void jpeg_fill(void)
{
    struct blob blob = {0};
    const char *path = in_class();

    blob_add(&blob, "\xff\xd8", 2);
    blob_fill(&blob, 0xff, 1 << 20);
    blob_save(&blob, path);
}

/* The image data of a progressive JPEG, with its last scan repeated. */
static void jpeg_scans(void)
{
    struct blob blob = {0}, all = {0};
    const char *path = in_class();

    copy_source("tests/fixtures/images/progressive.jpg", path);
    load_file(path, &blob);
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
    blob_save(&all, path);
}

static void jpeg_cmyk(void)
{
    fixture("cmyk.jpg");
}

static void jpeg_truncated(void)
{
    fixture("truncated.jpg");
}

static void jpeg_not(void)
{
    fixture("png_named_jpeg.JPEG");
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

static void png_sized(uint32_t width, uint32_t height, uint8_t depth, uint8_t interlace)
{
    struct blob blob = {0};

    start_png(&blob, width, height, depth, interlace);
    add_zeros(&blob, "IDAT", "", 0, 100000);
    end_png(&blob);
}

static void png_huge(void)
{
    png_sized(0x7fffffff, 0x7fffffff, 8, 0);
}

static void png_large(void)
{
    png_sized(SIDE_MAX, SIDE_MAX, 16, 1);
}

static void png_no_size(void)
{
    png_sized(0, 0, 8, 0);
}

static void png_depth(void)
{
    png_sized(16, 16, 255, 7);
}

static void png_crc(void)
{
    fixture("interlaced.png");
    patch_file("ant/1.jpg", 100, "\xff\xff\xff", 3);
}

static void png_interlaced(void)
{
    fixture("interlaced.png");
}

static void png_cut(void)
{
    fixture("alpha.png");
    cut_file("ant/1.jpg", 4000);
}

static void png_length(void)
{
    fixture("palette.png");
    patch_file("ant/1.jpg", 33, "\x7f\xff\xff\xff", 4);
}

const struct hostile_set hostile_images[] = {
    SET("jpeg-huge", "JPEG of 65,500 x 65,500 pixels in 4 KB", jpeg_huge, EITHER),
    SET("jpeg-no-size", "JPEG of 0 x 0 pixels", jpeg_no_size, EITHER),
    SET("jpeg-no-height", "JPEG of 0 rows", jpeg_no_height, EITHER),
    SET("jpeg-wide", "JPEG of 65,500 x 1 pixels", jpeg_wide, EITHER),
    SET("jpeg-arithmetic", "JPEG with arithmetic coding", jpeg_arithmetic, EITHER),
    SET("jpeg-12-bits", "JPEG of 12 bits", jpeg_12_bits, EITHER),
    SET("jpeg-lossless", "lossless JPEG", jpeg_lossless, EITHER),
    SET("jpeg-components", "JPEG of 255 components", jpeg_components, EITHER),
    SET("jpeg-sampling", "JPEG with sampling of 15", jpeg_sampling, EITHER),
    SET("jpeg-huffman", "JPEG with a broken Huffman table", jpeg_huffman, EITHER),
    SET("jpeg-noise", "JPEG whose data are noise", jpeg_noise, EITHER),
    SET("jpeg-start", "JPEG of 4 bytes", jpeg_only_start, EITHER),
    SET("jpeg-markers", "JPEG of 20,000 comments", jpeg_markers, EITHER),
    SET("jpeg-fill", "JPEG of 1 MiB of fill bytes", jpeg_fill, EITHER),
    SET("jpeg-scans", "progressive JPEG of 6,000 scans", jpeg_scans, EITHER),
    SET("jpeg-cmyk", "JPEG in CMYK", jpeg_cmyk, EITHER),
    SET("jpeg-truncated", "JPEG that is cut", jpeg_truncated, EITHER),
    SET("jpeg-is-png", "PNG named as a JPEG", jpeg_not, FINE),
    SET("png-text", "PNG of 120 zTXt chunks of 4 MiB", png_text, EITHER),
    SET("png-profile", "PNG with a colour profile of 64 MiB", png_profile, EITHER),
    SET("png-chunks", "PNG of 50,000 chunks", png_chunks, EITHER),
    SET("png-data", "PNG with 64 MiB of image data for 16 x 16", png_data, EITHER),
    SET("png-huge", "PNG of 2^31 - 1 pixels a side", png_huge, EITHER),
    SET("png-large", "PNG of 65,500 x 65,500, interlaced, 16 bits", png_large, EITHER),
    SET("png-no-size", "PNG of 0 x 0 pixels", png_no_size, EITHER),
    SET("png-depth", "PNG of 255 bits, interlace 7", png_depth, EITHER),
    SET("png-crc", "PNG with a wrong CRC", png_crc, EITHER),
    SET("png-interlaced", "PNG, interlaced", png_interlaced, FINE),
    SET("png-cut", "PNG that is cut", png_cut, EITHER),
    SET("png-length", "PNG with a chunk of 2 GiB", png_length, EITHER),
    {0},
};
