/* SPDX-License-Identifier: Apache-2.0
 * What holds for the images of each kind: the pixels that they were made of, damage that is told,
 * and an end for any bytes. */
#ifndef IOBENCH_TESTS_PICTURES_H
#define IOBENCH_TESTS_PICTURES_H

#include "tests/unit/decoding.h"

#include "base/fail.h"
#include "base/image_header.h"
#include "base/random.h"
#include "pack/image_check.h"

#include <errno.h>
#include <string.h>

enum { WIDTH = 61, HEIGHT = 47, PIXELS_BYTES = WIDTH * HEIGHT * 3, PICTURE_MOST = 1 << 16 };

/* The same box of an image and of its pixels, WIDTH x HEIGHT RGB. most: the mean difference
 * allowed. */
static void boxes_have_the_pixels(const struct decode_source *picture, const uint8_t *pixels,
                                  enum image_kind kind, double most)
{
    const struct decode_source raw = {.bytes = pixels,
                                      .length = PIXELS_BYTES,
                                      .layout = DECODE_RAW_HWC_RGB,
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

/* Any bytes end in pixels or in a reason, decoded or checked. from: the first byte to change. */
static void mutations_end_well(const struct decode_source *whole, size_t from)
{
    static const struct image_limits limits = {.pixels = 1 << 20, .scans = 64};
    static uint8_t copy[PICTURE_MOST];
    struct decode_source source = {
        .bytes = copy, .length = whole->length, .layout = DECODE_ENCODED};
    struct bench bench;

    assert_true(whole->length <= sizeof copy);
    start(&bench, "jpeg:size=24,damaged=decode,max-pixels=1048576");
    for (uint64_t i = 0; i < 300; i++) {
        const size_t range = i % 2 && whole->length > from + 64 ? 64 : whole->length - from;
        memcpy(copy, whole->bytes, whole->length);
        for (uint64_t j = 0; j < 1 + i % 5; j++)
            copy[from + random_hash(2, i, j) % range] ^= (uint8_t)random_hash(3, i, j);
        int code = decode(&bench, &source, i);
        assert_true(code == 0 || code == DECODE_DAMAGED || code == -EBADMSG);
        code = image_check_decode(copy, source.length, &limits);
        assert_true(code == 0 || code == -EBADMSG);
    }
    stop(&bench);
}

static void header_is_read_and_checked(const struct decode_source *whole, enum image_kind kind)
{
    static const struct image_limits enough = {.pixels = WIDTH * HEIGHT, .scans = 64},
                                     few = {.pixels = WIDTH * HEIGHT - 1, .scans = 64};
    struct image_header header;

    assert_int_equal(image_header_read(whole->bytes, whole->length, &header), 0);
    assert_int_equal(header.kind, kind);
    assert_int_equal(header.width, WIDTH);
    assert_int_equal(header.height, HEIGHT);
    assert_int_equal(image_check_decode(whole->bytes, whole->length, &enough), 0);
    assert_int_equal(image_check_decode(whole->bytes, whole->length, &few), -EBADMSG);
    assert_int_equal(image_check_decode(whole->bytes, whole->length - 1, &enough), -EBADMSG);
    assert_non_null(strstr(fail_reason(), "cut short"));
}

#endif
