/* SPDX-License-Identifier: Apache-2.0
 *
 * Hints of the jpeg decoder: they change no pixel and no verdict, whatever they or the image hold.
 */
#include "tests/unit/decoding.h"
#include "tests/unit/fixture.h"
#include "tests/unit/unit.h"

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/random.h"
#include "decode/decoder.h"
#include "decode/image.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const fixtures[] = {"yuv420.jpg",       "yuv422.jpg",    "yuv444.jpg",
                                       "progressive.jpg",  "grayscale.jpg", "cmyk.jpg",
                                       "one_pixel.jpg",    "large.jpg",     "large420.jpg",
                                       "exif_rotated.jpg", "truncated.jpg", "grey16.png"};
enum { FIXTURES = sizeof fixtures / sizeof *fixtures };

/* The same rows and verdicts with a hint; a damaged one, or one of another image, is counted and
 * not used. The figures are those without hints otherwise. */
static void entry_points_change_no_pixel(void **unused)
{
    struct bench with, without;

    start(&with, "jpeg:size=40,scale=none,engine=own");
    start(&without, "jpeg:size=40,scale=none,engine=turbo");
    for (int i = 0; i < FIXTURES; i++) {
        struct decode_source source = load(fixtures[i]);
        uint8_t *bytes = (void *)(uintptr_t)source.bytes, hint[DECODE_HINT_MAX];
        const size_t count = decoder_make_hint(&with.decoder, &source, hint);
        assert_true(count <= sizeof hint);
        for (uint64_t seed = 0; seed < 200; seed++) {
            const uint64_t dice = random_hash(seed, (uint64_t)i, 1);
            /* Then the hint is damaged, by a byte each; at last the image. */
            if (seed == 150)
                decoder_make_hint(&with.decoder, &source, hint);
            if (seed >= 50 && seed < 150 && count)
                hint[dice % count] ^= (uint8_t)(1 + (dice >> 32) % 255);
            if (seed >= 150)
                bytes[dice % source.length] ^= 0x10;
            source.hint_bytes = 0;
            const int expected = decode(&without, &source, seed);
            source.hint = hint;
            source.hint_bytes = seed % 7 == 6 ? dice % (count + 2) : count;
            assert_int_equal(decode(&with, &source, seed), expected);
            if (expected == 0)
                assert_memory_equal(with.row, without.row, with.decoder.traits.row_bytes);
        }
        drop(&source);
    }
    const struct decode_source none = {.bytes = "\xff\xd8\xff\xd9", .length = 4};
    uint8_t no_hint[DECODE_HINT_MAX];
    assert_int_equal(decoder_make_hint(&with.decoder, &none, no_hint), 0);
    const uint64_t entered = with.decoder.figures.entered, stale = with.decoder.figures.stale;
    print_message("%llu entered, %llu stale\n", (unsigned long long)entered,
                  (unsigned long long)stale);
    assert_true(entered > 50 && stale > 100);
    with.decoder.figures.entered = with.decoder.figures.stale = 0;
    assert_memory_equal(&with.decoder.figures, &without.decoder.figures,
                        sizeof with.decoder.figures);
    assert_false(decoder_uses_hints(&without.choice));
    assert_true(decoder_uses_hints(&with.choice));
    stop(&with);
    stop(&without);
    start(&with, "jpeg:engine=own,entry-points=no");
    assert_false(decoder_uses_hints(&with.choice));
    stop(&with);
}

/* The same hint, and the same row, whether an image is decoded before or not, in whatever way. */
static void hints_in_passing_are_the_same(void **unused)
{
    static const char *const decoders[] = {"jpeg:size=40,engine=own", "jpeg:size=40,engine=turbo",
                                           "jpeg:size=40,engine=own,as=dali",
                                           "jpeg:size=300,engine=own,view=evaluate"};
    uint32_t hints = 0;

    for (size_t j = 0; j < sizeof decoders / sizeof *decoders; j++) {
        struct bench with, without;
        start(&with, decoders[j]);
        start(&without, decoders[j]);
        for (int i = 0; i < FIXTURES; i++) {
            struct decode_source source = load(fixtures[i]);
            uint8_t hint[DECODE_HINT_MAX], passing[DECODE_HINT_MAX];
            const size_t count = decoder_make_hint(&without.decoder, &source, hint);
            for (uint64_t seed = 0; seed < 20; seed++) {
                source.wants_hint = false;
                const int expected = decode(&without, &source, seed);
                source.wants_hint = true;
                assert_int_equal(decode(&with, &source, seed), expected);
                if (seed == 19) /* none is asked for */
                    continue;
                assert_int_equal(decoder_make_hint(&with.decoder, &source, passing), count);
                assert_memory_equal(passing, hint, count);
                if (expected == 0)
                    assert_memory_equal(with.row, without.row, with.decoder.traits.row_bytes);
                hints += count > 0;
            }
            drop(&source);
        }
        assert_memory_equal(&with.decoder.figures, &without.decoder.figures,
                            sizeof with.decoder.figures);
        stop(&with);
        stop(&without);
    }
    assert_true(hints > 200);
}

/* A point may end with the image and with the point before, not behind. */
static void points_end_within_the_image(void **unused)
{
    static const struct {
        uint32_t bits[2], count, length;
        enum entry wanted;
    } cases[] = {{{120}, 1, 16, ENTRY_FOUND},     {{127}, 1, 16, ENTRY_FOUND},
                 {{128}, 1, 16, ENTRY_STALE},     {{120}, 1, 15, ENTRY_STALE},
                 {{64, 64}, 2, 16, ENTRY_FOUND},  {{64, 72}, 2, 16, ENTRY_FOUND},
                 {{72, 64}, 2, 16, ENTRY_STALE},  {{64, 127}, 2, 16, ENTRY_FOUND},
                 {{64, 128}, 2, 16, ENTRY_STALE}, {{64, 71}, 2, 9, ENTRY_FOUND}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const uint8_t bytes[32] = {1, 2, 3};
        uint8_t hint[DECODE_HINT_MAX] = {0};
        struct entry_points found;
        uint32_t crc = 0;
        size_t done = 0;
        for (uint32_t j = 0; j < cases[i].count; j++) {
            const size_t end = cases[i].bits[j] / 8 + 1;
            uint8_t *point = hint + 4 + 10 * j;
            bytes_put_le32(point, cases[i].bits[j]);
            crc = crc32c(crc, bytes + done, end > done ? end - done : 0);
            crc = crc32c(crc, point, 10);
            done = end;
        }
        bytes_put_le32(hint, crc);
        const struct decode_source source = {.bytes = bytes,
                                             .length = cases[i].length,
                                             .hint = hint,
                                             .hint_bytes = 4 + 10 * cases[i].count};
        const uint32_t rows = cases[i].count + 1;
        assert_int_equal(entry_points_find(&source, rows, rows - 1, &found), cases[i].wanted);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(points_end_within_the_image),
        cmocka_unit_test(entry_points_change_no_pixel),
        cmocka_unit_test(hints_in_passing_are_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
