/* SPDX-License-Identifier: Apache-2.0
 *
 * WebP images: the pixels of the same image without compression, damage, and what is not decoded.
 */
#include "tests/unit/decoding.h"
#include "tests/unit/unit.h"

#include "base/fail.h"
#include "base/random.h"
#include "dataset/image_header.h"
#include "pack/image_check.h"

#include <errno.h>
#include <string.h>

#include <webp/encode.h>

enum { WIDTH = 61, HEIGHT = 47, PIXELS_BYTES = WIDTH * HEIGHT * 3 };

static uint8_t pixels[PIXELS_BYTES];

/* A gradient with noise. */
static int make_pixels(void **unused)
{
    (void)unused;
    for (int i = 0; i < PIXELS_BYTES; i++)
        pixels[i] = (uint8_t)(2 * (i / 3 % WIDTH) + i / (3 * WIDTH) +
                              (int)(random_hash(1, (uint64_t)i, 0) & 31));
    return 0;
}

static struct decode_source encode(bool is_lossless)
{
    uint8_t *bytes = NULL;
    const size_t length = is_lossless
                              ? WebPEncodeLosslessRGB(pixels, WIDTH, HEIGHT, 3 * WIDTH, &bytes)
                              : WebPEncodeRGB(pixels, WIDTH, HEIGHT, 3 * WIDTH, 90, &bytes);

    assert_true(length > 12);
    return (struct decode_source){.bytes = bytes, .length = length, .layout = DECODE_ENCODED};
}

static void drop(const struct decode_source *source)
{
    WebPFree((void *)(uintptr_t)source->bytes);
}

static double difference(const struct bench *a, const struct bench *b)
{
    const size_t count = a->decoder.traits.row_bytes;
    double sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += abs(a->row[i] - b->row[i]);
    return sum / (double)count;
}

static void boxes_have_the_pixels_of_the_raw_image(void **unused)
{
    const struct decode_source raw = {.bytes = pixels,
                                      .length = PIXELS_BYTES,
                                      .layout = DECODE_RAW_HWC_RGB,
                                      .width = WIDTH,
                                      .height = HEIGHT,
                                      .channels = 3};
    const struct decode_source lossless = encode(true), lossy = encode(false);
    struct bench a, b;

    (void)unused;
    start(&a, "jpeg:size=24");
    start(&b, "jpeg:size=24");
    for (uint64_t seed = 0; seed < 100; seed++) {
        assert_int_equal(decode(&a, &raw, seed), 0);
        assert_int_equal(decode(&b, &lossless, seed), 0);
        assert_memory_equal(a.row, b.row, a.decoder.traits.row_bytes);
        assert_int_equal(decode(&b, &lossy, seed), 0);
        assert_true(difference(&a, &b) < 12);
    }
    assert_int_equal(b.decoder.figures.webp, 200);
    assert_int_equal(b.decoder.figures.failed, 0);
    stop(&a);
    stop(&b);
    drop(&lossless);
    drop(&lossy);
}

static void damage_is_told(void **unused)
{
    for (int is_lossless = 0; is_lossless < 2; is_lossless++) {
        const struct decode_source whole = encode(is_lossless != 0);
        struct decode_source cut = whole;
        struct bench refuses, accepts;
        (void)unused;
        start(&refuses, "jpeg:size=24");
        start(&accepts, "jpeg:size=24,damaged=decode");
        for (cut.length = 12; cut.length < whole.length; cut.length += 1 + whole.length / 50) {
            const uint64_t before = refuses.decoder.figures.truncated;
            assert_int_equal(decode(&refuses, &cut, 1), -EBADMSG);
            assert_int_equal(refuses.decoder.figures.truncated, before + 1);
            const int code = decode(&accepts, &cut, 1);
            assert_true(code == DECODE_DAMAGED || code == -EBADMSG);
        }
        stop(&refuses);
        stop(&accepts);
        drop(&whole);
    }
}

/* Any bytes end in pixels or in a reason. */
static void mutated_images_end_well(void **unused)
{
    struct decode_source sources[] = {encode(false), encode(true)};
    uint8_t copy[PIXELS_BYTES];
    struct bench bench;

    (void)unused;
    start(&bench, "jpeg:size=24,damaged=decode");
    for (uint64_t i = 0; i < 400; i++) {
        struct decode_source source = sources[i % 2];
        assert_true(source.length <= sizeof copy);
        memcpy(copy, source.bytes, source.length);
        source.bytes = copy;
        for (uint64_t j = 0; j < 1 + i % 5; j++)
            copy[12 + random_hash(2, i, j) % (source.length - 12)] ^= (uint8_t)random_hash(3, i, j);
        const int code = decode(&bench, &source, i);
        assert_true(code == 0 || code == DECODE_DAMAGED || code == -EBADMSG);
    }
    assert_true(bench.decoder.figures.failed + bench.decoder.figures.corrupt > 0);
    stop(&bench);
    drop(&sources[0]);
    drop(&sources[1]);
}

static void headers_are_read_and_checked(void **unused)
{
    static const struct image_limits limits = {.pixels = WIDTH * HEIGHT};
    static const uint8_t animated[] = "RIFF\x16\0\0\0WEBPVP8X\x0a\0\0\0\x02\0\0\0\x3c\0\0\x2e\0\0";
    struct image_header header;

    (void)unused;
    for (int is_lossless = 0; is_lossless < 2; is_lossless++) {
        const struct decode_source source = encode(is_lossless != 0);
        assert_int_equal(image_header_read(source.bytes, source.length, &header), 0);
        assert_int_equal(header.kind, IMAGE_WEBP);
        assert_int_equal(header.width, WIDTH);
        assert_int_equal(header.height, HEIGHT);
        assert_int_equal(image_check_decode(source.bytes, source.length, &limits), 0);
        assert_int_equal(image_check_decode(source.bytes, source.length - 1, &limits), -EBADMSG);
        assert_non_null(strstr(fail_reason(), "cut short"));
        assert_int_equal(image_header_read(source.bytes, 24, &header), -EBADMSG);
        drop(&source);
    }
    const struct decode_source moving = {
        .bytes = animated, .length = sizeof animated - 1, .layout = DECODE_ENCODED};
    assert_int_equal(image_header_read(moving.bytes, moving.length, &header), 0);
    assert_int_equal(header.width, WIDTH);
    assert_int_equal(header.height, HEIGHT);
    struct bench bench;
    start(&bench, "jpeg:size=24");
    assert_int_equal(decode(&bench, &moving, 1), -EBADMSG);
    stop(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(boxes_have_the_pixels_of_the_raw_image),
        cmocka_unit_test(damage_is_told),
        cmocka_unit_test(mutated_images_end_well),
        cmocka_unit_test(headers_are_read_and_checked),
    };

    return cmocka_run_group_tests(tests, make_pixels, NULL);
}
