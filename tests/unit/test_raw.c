/* SPDX-License-Identifier: Apache-2.0
 *
 * Raw pixels: each layout, copied or resized, with and without a PPM header.
 */
#include "tests/unit/decoding.h"
#include "tests/unit/unit.h"

#include <errno.h>
#include <string.h>

static void raw_layouts(void **unused)
{
    uint8_t interleaved[6 * 4 * 3], planes[6 * 4 * 3], reversed[6 * 4 * 3], grey[6 * 4];
    struct decode_source source = {.bytes = interleaved,
                                   .length = sizeof interleaved,
                                   .layout = SAMPLE_RAW_HWC,
                                   .width = 6,
                                   .height = 4,
                                   .channels = 3};
    struct bench a, b;

    for (int i = 0; i < 24; i++)
        for (int c = 0; c < 3; c++)
            interleaved[i * 3 + c] = planes[(2 - c) * 24 + i] = reversed[i * 3 + 2 - c] =
                (uint8_t)(i * 7 + c * 30);
    memset(grey, 77, sizeof grey);
    start(&a, "jpeg:size=5");
    start(&b, "jpeg:size=5");
    assert_int_equal(decode(&a, &source, 3), 0);
    source.bytes = planes;
    source.layout = SAMPLE_RAW_CHW;
    assert_int_equal(decode(&b, &source, 3), 0);
    assert_memory_equal(a.row, b.row, 75);
    source.bytes = reversed;
    source.layout = SAMPLE_RAW_HWC_BGR;
    assert_int_equal(decode(&b, &source, 3), 0);
    assert_memory_equal(a.row, b.row, 75);
    source = (struct decode_source){grey, sizeof grey, SAMPLE_RAW_CHW, 6, 4, 1, NULL, 0, false};
    assert_int_equal(decode(&b, &source, 3), 0);
    assert_int_equal(b.row[74], 77);
    assert_int_equal(b.decoder.figures.grayscale, 1);
    source.length--;
    assert_int_equal(decode(&b, &source, 3), -EBADMSG);
    source.channels = 2;
    assert_int_equal(decode(&b, &source, 3), -EBADMSG);
    assert_int_equal(b.decoder.figures.failed, 2);
    assert_int_equal(b.decoder.figures.raw, 5);
    stop(&a);
    stop(&b);
}

/* Whatever the layout, mirrored as drawn; a box that is part of the image, too. */
static void raw_pixels_of_the_size_of_the_row_are_copied(void **unused)
{
    enum { WIDTH = 7, SIDE = 5, PIXELS = WIDTH * SIDE };
    static const char *const decoders[] = {"jpeg:size=5,min-area=1", /* of a square: all of it */
                                           "jpeg:size=5,view=evaluate,crop=1"};
    uint8_t rgb[PIXELS * 3], planes[PIXELS * 3], bgr[PIXELS * 3];
    bool seen[2] = {false, false};

    for (int wide = 0; wide < 2; wide++) {
        const uint32_t width = wide ? WIDTH : SIDE, count = width * SIDE, left = wide ? 1 : 0;
        const struct decode_source sources[] = {
            {rgb, count * 3, SAMPLE_RAW_HWC, width, SIDE, 3, NULL, 0, false},
            {planes, count * 3, SAMPLE_RAW_CHW, width, SIDE, 3, NULL, 0, false},
            {bgr, count * 3, SAMPLE_RAW_HWC_BGR, width, SIDE, 3, NULL, 0, false}};
        struct bench bench;
        for (uint32_t i = 0; i < count; i++)
            for (uint32_t c = 0; c < 3; c++)
                rgb[i * 3 + c] = planes[(2 - c) * count + i] = bgr[i * 3 + 2 - c] =
                    (uint8_t)(i * 7 + c * 80);
        start(&bench, decoders[wide]);
        for (uint64_t seed = 0; seed < 30; seed++) {
            assert_int_equal(decode(&bench, &sources[seed % 3], seed), 0);
            const struct view_box *box = &bench.decoder.traits.shown->box;
            seen[box->mirror] = true;
            for (uint32_t i = 0; i < SIDE * SIDE; i++) {
                const uint32_t x = box->mirror ? SIDE - 1 - i % SIDE : i % SIDE;
                assert_memory_equal(bench.row + (size_t)i * 3,
                                    rgb + (size_t)(i / SIDE * width + left + x) * 3, 3);
            }
        }
        stop(&bench);
    }
    assert_true(seen[false] && seen[true]);
}

/* The same pixels with and without a header; each byte of the header missing; other headers. */
static void ppm_and_pgm_are_pixels_with_a_header(void **unused)
{
    static const struct {
        const char *header;
        uint32_t channels;
    } good[] = {{"P6\n6 4\n255\n", 3}, {"P5 6\t4 255\n", 1}, {"P6#a\n#b 9 9\n6\n4 #\n255 ", 3}};
    static const char *const bad[] = {"P6\n6 4\n254\n",
                                      "P6\n6 4\n65535\n",
                                      "P6\n0 4\n255\n",
                                      "P6\n6 -4\n255\n",
                                      "P6\n6 4\n255x",
                                      "P6\n6 4000000000\n255\n",
                                      "P6\n0000000064 255\n", /* not 6 x 4 */
                                      "P6\n999999999 999999999\n255\n",
                                      "P6 #"};
    uint8_t image[128], pixels[6 * 4 * 3];
    struct bench a, b;

    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)(i * 11);
    start(&a, "jpeg:size=5");
    start(&b, "jpeg:size=5");
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        const size_t header = strlen(good[i].header), bytes = 24 * good[i].channels;
        struct decode_source raw = {pixels, bytes, SAMPLE_RAW_HWC, 6, 4, good[i].channels,
                                    NULL,   0,     false};
        struct decode_source source = {.bytes = image, .length = header + bytes};
        memcpy(image, good[i].header, header);
        memcpy(image + header, pixels, bytes);
        assert_int_equal(decode(&a, &raw, 3), 0);
        assert_int_equal(decode(&b, &source, 3), 0);
        assert_memory_equal(a.row, b.row, 75);
        const uint64_t truncated = b.decoder.figures.truncated;
        for (source.length = 0; source.length < header + bytes; source.length++)
            assert_int_equal(decode(&b, &source, 3), -EBADMSG);
        assert_int_equal(b.decoder.figures.truncated, truncated + bytes);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct decode_source source = {.bytes = image, .length = sizeof image};
        memset(image, 0, sizeof image);
        memcpy(image, bad[i], strlen(bad[i]));
        assert_int_equal(decode(&b, &source, 3), -EBADMSG);
    }
    stop(&a);
    stop(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(raw_layouts),
        cmocka_unit_test(raw_pixels_of_the_size_of_the_row_are_copied),
        cmocka_unit_test(ppm_and_pgm_are_pixels_with_a_header),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
