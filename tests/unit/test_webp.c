/* SPDX-License-Identifier: Apache-2.0
 *
 * WebP images: the pixels of the same image without compression, damage, and what is not decoded.
 */
#include "tests/unit/pictures.h"

#include <webp/encode.h>

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

static void each_form_has_its_pixels(void **unused)
{
    (void)unused;
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
        .bytes = animated, .length = sizeof animated - 1, .layout = DECODE_ENCODED};
    struct image_header header;
    struct bench bench;

    (void)unused;
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
