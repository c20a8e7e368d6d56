/* SPDX-License-Identifier: Apache-2.0
 *
 * WebP images: the pixels of the same image without compression, damage, and what is not decoded.
 */
#include "tests/unit/pictures.h"

#include <webp/encode.h>

/* The same box of an image and of its pixels, WIDTH x HEIGHT RGB. most: the mean difference
 * allowed. */
static void boxes_have_the_pixels(const struct decode_source *picture, const uint8_t *pixels,
                                  enum image_kind kind, double most)
{
    const struct decode_source raw = {.bytes = pixels,
                                      .length = PIXELS_BYTES,
                                      .layout = SAMPLE_RAW_HWC,
                                      .width = WIDTH,
                                      .height = HEIGHT,
                                      .channels = 3};
    struct bench a, b;

    start(&a, "jpeg:size=24");
    start(&b, "jpeg:size=24");
    for (uint64_t seed = 0; seed < 100; seed++) {
        const size_t count = a.decoder.traits.row_bytes;
        double sum = 0;
        assert_int_equal(decode(&a, &raw, seed), 0);
        assert_int_equal(decode(&b, picture, seed), 0);
        for (size_t i = 0; i < count; i++)
            sum += abs(a.row[i] - b.row[i]);
        assert_true(sum <= most * (double)count);
    }
    assert_int_equal(b.decoder.figures.of_kind[kind], 100);
    assert_int_equal(b.decoder.figures.failed, 0);
    stop(&a);
    stop(&b);
}

/* from: the bytes without which it is not known what it is. */
static void cuts_are_told(const struct decode_source *whole, size_t from)
{
    struct decode_source cut = *whole;
    struct bench refuses, accepts;

    start(&refuses, "jpeg:size=24");
    start(&accepts, "jpeg:size=24,damaged=decode");
    for (cut.length = from; cut.length < whole->length; cut.length += 1 + whole->length / 50) {
        const uint64_t before = refuses.decoder.figures.truncated;
        assert_int_equal(decode(&refuses, &cut, 1), -EBADMSG);
        assert_int_equal(refuses.decoder.figures.truncated, before + 1);
        const int code = decode(&accepts, &cut, 1);
        assert_true(code == DECODE_DAMAGED || code == -EBADMSG);
    }
    cut.length = whole->length - 1;
    assert_int_equal(decode(&accepts, &cut, 1), DECODE_DAMAGED);
    stop(&refuses);
    stop(&accepts);
}

static uint8_t pixels[PIXELS_BYTES];

/* A gradient with noise. */
static int make_pixels(void **unused)
{
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
    return (struct decode_source){.bytes = bytes, .length = length, .layout = SAMPLE_ENCODED};
}

static void drop(const struct decode_source *source)
{
    WebPFree((void *)(uintptr_t)source->bytes);
}

static void each_form_has_its_pixels(void **unused)
{
    for (int is_lossless = 0; is_lossless < 2; is_lossless++) {
        const struct decode_source source = encode(is_lossless != 0);
        header_is_read_and_checked(&source, IMAGE_WEBP);
        boxes_have_the_pixels(&source, pixels, IMAGE_WEBP, is_lossless ? 0 : 12);
        cuts_are_told(&source, 12);
        mutations_end_well(&source, 12);
        drop(&source);
    }
}

static void animations_are_refused(void **unused)
{
    static const uint8_t animated[] = "RIFF\x16\0\0\0WEBPVP8X\x0a\0\0\0\x02\0\0\0\x3c\0\0\x2e\0\0";
    const struct decode_source moving = {
        .bytes = animated, .length = sizeof animated - 1, .layout = SAMPLE_ENCODED};
    struct image_header header;
    struct bench bench;

    assert_int_equal(image_header_read(moving.bytes, moving.length, &header), 0);
    assert_int_equal(header.width, WIDTH);
    assert_int_equal(header.height, HEIGHT);
    assert_int_equal(image_header_read(moving.bytes, 24, &header), -EBADMSG);
    start(&bench, "jpeg:size=24");
    assert_int_equal(decode(&bench, &moving, 1), -EBADMSG);
    stop(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_form_has_its_pixels),
        cmocka_unit_test(animations_are_refused),
    };

    return cmocka_run_group_tests(tests, make_pixels, NULL);
}
