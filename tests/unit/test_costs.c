/* SPDX-License-Identifier: Apache-2.0
 * Small images that demand much work are refused, or cost no more than others. Work is counted in
 * scans and in bytes inflated. */
#include "tests/unit/decoding.h"
#include "tests/unit/unit.h"

#include "base/fail.h"
#include "decode/decoder.h"
#include "decode/image.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

static void drop(struct decode_source *source)
{
    free((void *)(uintptr_t)source->bytes);
}

static size_t put_segment(uint8_t *to, uint8_t marker, const void *bytes, size_t count)
{
    to[0] = 0xff;
    to[1] = marker;
    to[2] = (uint8_t)((count + 2) >> 8);
    to[3] = (uint8_t)(count + 2);
    memcpy(to + 4, bytes, count);
    return count + 4;
}

/* A grey progressive JPEG of width x height in which every scan is 12 bytes: "nothing here". In
 * order: two scans a coefficient, as the standard demands, up to 127; else the same one again. */
static struct decode_source many_scans(unsigned scans, unsigned width, unsigned height,
                                       bool in_order)
{
    static const uint8_t dc_table[18] = {0x00, 1}, ac_table[18] = {0x10, 1, [17] = 0xe0};
    static const uint8_t dc[6] = {1, 1, 0, 0, 0, 0};
    const uint8_t frame[9] = {8,
                              (uint8_t)(height >> 8),
                              (uint8_t)height,
                              (uint8_t)(width >> 8),
                              (uint8_t)width,
                              1,
                              1,
                              0x11,
                              0};
    uint8_t quantisation[65], *bytes = malloc(256 + 12 * (size_t)scans);
    size_t at = 2;

    memset(quantisation, 1, sizeof quantisation);
    quantisation[0] = 0;
    memcpy(bytes, "\xff\xd8", 2);
    at += put_segment(bytes + at, 0xdb, quantisation, sizeof quantisation);
    at += put_segment(bytes + at, 0xc2, frame, sizeof frame);
    at += put_segment(bytes + at, 0xc4, dc_table, sizeof dc_table);
    at += put_segment(bytes + at, 0xc4, ac_table, sizeof ac_table);
    for (unsigned i = 0; i < scans; i++) {
        const uint8_t k = (uint8_t)(in_order ? 1 + (i + 62) % 63 : 1);
        const uint8_t bits = !in_order ? 0 : i <= 63 ? 0x01 : 0x10;
        const uint8_t ac[6] = {1, 1, 0, k, in_order ? k : 63, bits};
        at += put_segment(bytes + at, 0xda, i ? ac : dc, sizeof dc);
        /* one bit for each of 64 blocks, then one run of empty blocks */
        memset(bytes + at, 0, 8);
        at += i ? 2 : 8;
    }
    memcpy(bytes + at, "\xff\xd9", 2);
    return (struct decode_source){.bytes = bytes, .length = at + 2, .layout = SAMPLE_ENCODED};
}

static void expect_image(struct bench *bench, struct decode_source image, const char *words)
{
    const int code = decode(bench, &image, 1);

    assert_int_equal(code, words ? -EBADMSG : 0);
    if (words && !strstr(fail_reason(), words))
        fail_msg("'%s' does not say '%s'", fail_reason(), words);
    drop(&image);
}

static void expect_scans(struct bench *bench, unsigned scans, unsigned width, unsigned height,
                         const char *words)
{
    expect_image(bench, many_scans(scans, width, height, false), words);
}

/* The cost is counted in pixels visited: scans, and scans times pixels. */
static void scans_are_limited(void **unused)
{
    struct bench bench;

    start(&bench, "jpeg:size=16");
    expect_scans(&bench, 60, 64, 64, NULL);
    expect_scans(&bench, 6000, 64, 64, "more than 64 scans of 64 x 64 pixels");
    expect_scans(&bench, 64, 9000, 9000, "more than 17 scans of 9000 x 9000 pixels");
    stop(&bench);
    start(&bench, "jpeg:size=16,max-scans=10");
    expect_scans(&bench, 11, 64, 64, "max-scans=10");
    stop(&bench);
    start(&bench, "jpeg:size=16,max-scans=10000");
    expect_scans(&bench, 6000, 64, 64, NULL);
    stop(&bench);
}

/* Also if nothing is wrong with them, so that our own engine could decode them. */
static void scans_in_order_are_limited(void **unused)
{
    struct bench bench;

    start(&bench, "jpeg:size=16");
    expect_image(&bench, many_scans(127, 64, 64, true), "more than 64 scans of 64 x 64 pixels");
    stop(&bench);
    start(&bench, "jpeg:size=16,max-scans=127");
    expect_image(&bench, many_scans(127, 64, 64, true), NULL);
    stop(&bench);
}

/* Replaces zlib's own function, for libpng: counts inflated bytes. */
static uint64_t inflated_bytes;

int inflate(z_streamp stream, int flush)
{
    static int (*own)(z_streamp stream, int flush);
    const uInt before = stream->avail_out;

    if (!own)
        *(void **)(void *)&own = dlsym(RTLD_NEXT, "inflate");
    int code = own(stream, flush);
    inflated_bytes += before - stream->avail_out;
    return code;
}

static void put_big32(uint8_t *to, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(value >> (24 - 8 * i));
}

static size_t put_chunk(uint8_t *to, const char *type, const void *bytes, size_t count)
{
    put_big32(to, (uint32_t)count);
    memcpy(to + 4, type, 4);
    memcpy(to + 8, bytes, count);
    put_big32(to + 8 + count, (uint32_t)crc32(crc32(0, NULL, 0), to + 4, (uInt)count + 4));
    return count + 12;
}

/* A PNG of 16 x 16 whose 120 texts and profiles would inflate to 7 MB each. */
static struct decode_source many_texts(void)
{
    enum { CHUNKS = 120, TEXT_BYTES = 8000, INFLATED_BYTES = 7000000 };
    static const uint8_t header[13] = {0, 0, 0, 16, 0, 0, 0, 16, 8, 0};
    uint8_t pixels[16 * 17] = {0}, packed[256], text[TEXT_BYTES] = "Comment";
    uint8_t *bytes = malloc(CHUNKS * (TEXT_BYTES + 12) + 1024),
            *inflated = calloc(1, INFLATED_BYTES);
    uLongf packed_bytes = sizeof packed, text_bytes = TEXT_BYTES - 9;
    size_t at = 8;

    assert_int_equal(compress(packed, &packed_bytes, pixels, sizeof pixels), Z_OK);
    assert_int_equal(compress2(text + 9, &text_bytes, inflated, INFLATED_BYTES, 9), Z_OK);
    memcpy(bytes, "\x89PNG\r\n\x1a\n", 8);
    at += put_chunk(bytes + at, "IHDR", header, sizeof header);
    for (int i = 0; i < CHUNKS; i++)
        at += put_chunk(bytes + at, i % 2 ? "zTXt" : "iCCP", text, text_bytes + 9);
    at += put_chunk(bytes + at, "IDAT", packed, packed_bytes);
    at += put_chunk(bytes + at, "IEND", "", 0);
    free(inflated);
    return (struct decode_source){.bytes = bytes, .length = at, .layout = SAMPLE_ENCODED};
}

/* The decoder and verify inflate only pixels. */
static void texts_of_a_png_cost_nothing(void **unused)
{
    static const struct image_limits limits = {.pixels = 1000, .scans = 1};
    struct decode_source image = many_texts();
    struct bench bench;

    start(&bench, "jpeg:size=16");
    inflated_bytes = 0;
    assert_int_equal(decode(&bench, &image, 1), 0);
    assert_int_equal(image_verify(image.bytes, image.length, &limits), 0);
    assert_true(inflated_bytes > 0 && inflated_bytes <= 2 * 16 * 17);
    stop(&bench);
    drop(&image);
}

/* Of the last chunk with pixels. */
static void a_wrong_checksum_is_seen(void **unused)
{
    static const struct image_limits limits = {.pixels = 1000, .scans = 1};
    struct decode_source image = many_texts();

    ((uint8_t *)(uintptr_t)image.bytes)[image.length - 13] ^= 1;
    assert_int_equal(image_verify(image.bytes, image.length, &limits), -EBADMSG);
    assert_reason("the PNG cannot be decoded");
    drop(&image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scans_are_limited),
        cmocka_unit_test(scans_in_order_are_limited),
        cmocka_unit_test(texts_of_a_png_cost_nothing),
        cmocka_unit_test(a_wrong_checksum_is_seen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
