/* SPDX-License-Identifier: Apache-2.0
 * What holds for the images of each kind: a header, an end that is checked,
 * and an end for any bytes. */
#ifndef IOBENCH_TESTS_PICTURES_H
#define IOBENCH_TESTS_PICTURES_H

#include "tests/unit/decoding.h"

#include "base/fail.h"
#include "base/image_header.h"
#include "base/sample.h"
#include "base/random.h"
#include "decode/image.h"

#include <errno.h>
#include <string.h>

enum { WIDTH = 61, HEIGHT = 47, PIXELS_BYTES = WIDTH * HEIGHT * 3, PICTURE_MOST = 1 << 16 };

/* Any bytes end in pixels or in a reason, decoded or checked. from: the first byte to change. */
static void mutations_end_well(const struct decode_source *whole, size_t from)
{
    static const struct image_limits limits = {.pixels = 1 << 20, .scans = 64};
    static uint8_t copy[PICTURE_MOST];
    struct decode_source source = {
        .bytes = copy, .length = whole->length, .layout = SAMPLE_ENCODED};
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
        code = image_verify(copy, source.length, &limits);
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
    assert_int_equal(image_verify(whole->bytes, whole->length, &enough), 0);
    assert_int_equal(image_verify(whole->bytes, whole->length, &few), -EBADMSG);
    assert_refused(image_verify(whole->bytes, whole->length - 1, &enough), -EBADMSG, "cut short");
}

#endif
