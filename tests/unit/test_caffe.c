/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "base/fail.h"
#include "formats/caffe.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* The input is in memory of its exact length, so a sanitizer detects an overrun. */
static int parse(enum caffe_flavour flavour, const void *bytes, size_t count, struct sample *sample,
                 uint8_t **copy)
{
    *copy = malloc(count ? count : 1);
    assert_non_null(*copy);
    memcpy(*copy, bytes, count);
    *sample = (struct sample){.label = -1};
    return caffe_parse(flavour, *copy, count, sample);
}

static void expect(int code, enum caffe_flavour flavour, const void *bytes, size_t count)
{
    struct sample sample;
    uint8_t *copy;

    assert_int_equal(parse(flavour, bytes, count, &sample, &copy), code);
    free(copy);
}

static void comes_back(enum caffe_flavour flavour, const struct sample *sample, bool labelled)
{
    size_t bytes = caffe_put(flavour, sample, NULL);
    uint8_t *value = malloc(bytes + 1);
    struct sample back = {.label = -1};

    value[bytes] = 0x5a;
    caffe_put(flavour, sample, value);
    assert_int_equal(value[bytes], 0x5a);
    assert_int_equal(caffe_parse(flavour, value, bytes, &back), 0);
    assert_int_equal(back.label, labelled && sample->label >= 0 ? sample->label : -1);
    assert_int_equal(back.image_bytes, sample->image_bytes);
    assert_true(back.encoding == sample->encoding && back.width == sample->width &&
                back.height == sample->height && back.channels == sample->channels);
    assert_memory_equal(back.image, sample->image, sample->image_bytes);
    /* Truncation is damage, except at the end of a field. */
    for (size_t cut = 0; cut < bytes; cut++) {
        uint8_t *copy;
        int code = parse(flavour, value, cut, &back, &copy);
        assert_true(code == 0 || code == -EBADMSG);
        free(copy);
    }
    free(value);
}

static void every_flavour_comes_back(void **unused)
{
    static const uint8_t image[] = "\xff\xd8\xff an image, as far as this needs one";
    static const int32_t labels[] = {0, 1, 127, 128, 999, -1, INT32_MAX, INT32_MIN};
    struct sample sample = {.image = image, .image_bytes = sizeof image};

    for (size_t i = 0; i < sizeof labels / sizeof labels[0]; i++) {
        sample.label = labels[i];
        comes_back(CAFFE_DATUM, &sample, true);
        comes_back(CAFFE_TENSORS, &sample, true);
        comes_back(CAFFE_TENSORS_INT64, &sample, true);
        comes_back(CAFFE_IMAGE, &sample, false);
    }
    sample.image_bytes = 24;
    sample.width = 4, sample.height = 2, sample.channels = 3;
    sample.encoding = SAMPLE_RAW_CHW;
    comes_back(CAFFE_DATUM, &sample, true);
    sample.encoding = SAMPLE_RAW_HWC_BGR;
    comes_back(CAFFE_TENSORS, &sample, true);
}

static void pixels_become_planes_and_back(void **unused)
{
    static const uint8_t pixels[] = {'r', 'g', 'b', 'R', 'G', 'B'};
    struct sample sample = {.image = pixels,
                            .image_bytes = 6,
                            .encoding = SAMPLE_RAW_HWC,
                            .width = 2,
                            .height = 1,
                            .channels = 3};
    uint8_t datum[64], tensors[64];
    struct sample back = {0};

    caffe_put(CAFFE_DATUM, &sample, datum);
    assert_int_equal(caffe_parse(CAFFE_DATUM, datum, caffe_put(CAFFE_DATUM, &sample, NULL), &back),
                     0);
    assert_int_equal(back.encoding, SAMPLE_RAW_CHW);
    assert_memory_equal(back.image, "bBgGrR", 6);
    caffe_put(CAFFE_TENSORS, &back, tensors);
    assert_int_equal(
        caffe_parse(CAFFE_TENSORS, tensors, caffe_put(CAFFE_TENSORS, &back, NULL), &sample), 0);
    assert_int_equal(sample.encoding, SAMPLE_RAW_HWC_BGR);
    assert_memory_equal(sample.image, "bgrBGR", 6);
}

static void flavours_are_told_apart(void **unused)
{
    static const char *const images[] = {"\xff\xd8\xff\xe0", "\x89PNG", "RIFF", "GIF89a", "BM6"};
    struct sample sample = {0};

    for (size_t i = 0; i < sizeof images / sizeof images[0]; i++) {
        sample.label = -1;
        assert_int_equal(caffe_parse(CAFFE_AUTO, images[i], strlen(images[i]), &sample), 0);
        assert_int_equal(sample.label, -1);
        assert_int_equal(sample.image_bytes, strlen(images[i]));
    }
    assert_int_equal(caffe_parse(CAFFE_AUTO, "\x22\x01x\x28\x07\x38\x01", 7, &sample), 0);
    assert_int_equal(sample.label, 7);
    assert_int_equal(caffe_parse(CAFFE_AUTO,
                                 "\x0a\x07\x08\x01\x10\x04\x32\x01x\x0a\x05\x10\x02\x22\x01\x08",
                                 16, &sample),
                     0);
    assert_int_equal(sample.label, 8);
    assert_int_equal(sample.image_bytes, 1);
}

static void other_writers_forms(void **unused)
{
    struct sample sample = {0};

    /* A label before the image; a label truncated to 32 bits; no label: Caffe reads it as 0. */
    assert_int_equal(caffe_parse(CAFFE_DATUM, "\x38\x01\x28\x05\x22\x01x", 7, &sample), 0);
    assert_int_equal(sample.label, 5);
    assert_int_equal(
        caffe_parse(CAFFE_DATUM, "\x28\xff\xff\xff\xff\x0f\x38\x01\x22\x01x", 11, &sample), 0);
    assert_int_equal(sample.label, -1);
    sample.label = -1;
    assert_int_equal(caffe_parse(CAFFE_DATUM, "\x38\x01\x22\x01x", 5, &sample), 0);
    assert_int_equal(sample.label, 0);
    /* Unpacked numbers of a tensor; a float label, packed or not. */
    assert_int_equal(caffe_parse(CAFFE_TENSORS,
                                 "\x0a\x05\x10\x04\x32\x01x\x0a\x06\x10\x02\x20\x09\x20\x01", 15,
                                 &sample),
                     0);
    assert_int_equal(sample.label, 9);
    assert_int_equal(caffe_parse(CAFFE_TENSORS,
                                 "\x0a\x05\x10\x04\x32\x01x\x0a\x07\x10\x01\x1d\0\0\x40\x40", 16,
                                 &sample),
                     0);
    assert_int_equal(sample.label, 3);
    assert_int_equal(caffe_parse(CAFFE_TENSORS,
                                 "\x0a\x05\x10\x04\x32\x01x\x0a\x08\x10\x01\x1a\x04\0\0\x80\x40",
                                 17, &sample),
                     0);
    assert_int_equal(sample.label, 4);
    /* An INT64 label, packed as protobuf's own writers do. */
    assert_int_equal(caffe_parse(CAFFE_AUTO,
                                 "\x0a\x07\x08\x01\x10\x04\x32\x01x\x0a\x08\x08\x01\x10\x0a\x52"
                                 "\x02\xe7\x07",
                                 19, &sample),
                     0);
    assert_int_equal(sample.label, 999);
    /* Neither 3.75 nor 3 is a class. */
    assert_false(sample.has_odd_label);
    assert_int_equal(caffe_parse(CAFFE_TENSORS,
                                 "\x0a\x05\x10\x04\x32\x01x\x0a\x07\x10\x01\x1d\0\0\x70\x40", 16,
                                 &sample),
                     0);
    assert_int_equal(sample.label, -1);
    assert_true(sample.has_odd_label && sample.odd_label == 3.75);
}

static void values_of_other_programs_are_named(void **unused)
{
    static const char pickle[] = "\x80\x04\x95\x0c\0\0\0\0\0\0\0\x8c\x05image\x94\x85\x94.";

    expect(-EBADMSG, CAFFE_AUTO, pickle, sizeof pickle - 1);
    assert_reason("a pickled Python object");
    expect(-EBADMSG, CAFFE_AUTO, "\x93NUMPY\1\0v\0{'descr'", 18);
    assert_reason("an npy array");
    expect(-EBADMSG, CAFFE_AUTO, "hello", 5);
    assert_reason("neither an image nor an intact Datum");
}

static void damage_is_said(void **unused)
{
    expect(-EBADMSG, CAFFE_AUTO, "", 0);
    expect(-EBADMSG, CAFFE_DATUM, "\x28\x05", 2);           /* no image */
    expect(-EBADMSG, CAFFE_DATUM, "\x22\x7fx\x38\x01", 5);  /* longer than the input */
    expect(-EBADMSG, CAFFE_DATUM, "\x22\x01x\x2a\x01x", 6); /* a label of bytes */
    expect(-EBADMSG, CAFFE_DATUM, "\x08\x03\x10\x02\x18\x02\x22\x01x", 9); /* 3 x 2 x 2 is not 1 */
    expect(-ENOTSUP, CAFFE_DATUM, "\x35\0\0\0\0", 5);                      /* numbers, no image */
    /* Sides whose product is 1 modulo 2^64. */
    expect(-EBADMSG, CAFFE_DATUM,
           "\x08\x01\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
           "\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x22\x01x",
           27);
    expect(-EBADMSG, CAFFE_TENSORS, "\x0a\x00", 2);
    expect(-EBADMSG, CAFFE_TENSORS, "\x12\x00", 2);
    expect(-EBADMSG, CAFFE_TENSORS, "\x0a\x05\x10\x03\x2a\x01x", 7); /* no dimensions */
    expect(-ENOTSUP, CAFFE_TENSORS, "\x0a\x05\x10\x06\x2a\x01x", 7); /* half floats, for example */
    expect(-EBADMSG, CAFFE_TENSORS, "\x0a\x05\x10\x04\x32\x01x\x0a\x02\x10\x02", 11);
}

/* Neither is damage: the sample has no class, or no image. */
static void labels_and_images_may_be_odd(void **unused)
{
    static const struct {
        enum caffe_flavour flavour;
        const char *value, *text;
        size_t count, image_bytes;
        bool is_odd;
    } rows[] = {
        {CAFFE_DATUM, "\x22\x00\x28\x05\x38\x01", "", 6, 0, false},
        {CAFFE_DATUM, "\x22\x01x\x28\x80\x80\x80\x80\x80\x01\x38\x01", "", 12, 1, true}, /* 2^35 */
        {CAFFE_TENSORS, "\x0a\x04\x10\x04\x32\x00", "", 6, 0, false},
        {CAFFE_TENSORS, "\x0a\x05\x10\x04\x32\x01x\x0a\x07\x10\x01\x1d\0\0\xc0\x7f", "", 16, 1,
         true},
        {CAFFE_TENSORS,
         "\x0a\x05\x10\x04\x32\x01x\x0a\x07\x10\x04\x32\x03"
         "cat",
         "cat", 16, 1, true},
    };
    struct sample sample;
    uint8_t *copy;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(parse(rows[i].flavour, rows[i].value, rows[i].count, &sample, &copy), 0);
        assert_int_equal(sample.image_bytes, rows[i].image_bytes);
        assert_int_equal(sample.has_odd_label, rows[i].is_odd);
        assert_string_equal(sample.odd_text, rows[i].text);
        assert_int_equal(sample.label, i == 0 ? 5 : -1);
        free(copy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_flavour_comes_back),
        cmocka_unit_test(pixels_become_planes_and_back),
        cmocka_unit_test(flavours_are_told_apart),
        cmocka_unit_test(other_writers_forms),
        cmocka_unit_test(values_of_other_programs_are_named),
        cmocka_unit_test(damage_is_said),
        cmocka_unit_test(labels_and_images_may_be_odd),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
