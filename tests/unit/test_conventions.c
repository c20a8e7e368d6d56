/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "decode/decoder.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DRAWS = 20000, SIDE = 1000 };

/* Boxes of a square image. The figures are those of 400,000 boxes (TensorFlow: 100,000) drawn with
 * numpy from each loader's source. */
static void boxes_are_those_of_the_loader(void **unused)
{
    static const struct {
        const char *name;
        double area_least, area_mean, aspect_most, tall;
    } expected[] = {
        {"iobench", 0.05, 0.463, 1.337, 0.497},    {"torchvision", 0.08, 0.478, 1.337, 0.497},
        {"tensorflow", 0.10, 0.422, 1.331, 0.431}, {"dali", 0.08, 0.478, 1.337, 0.497},
        {"mxnet", 0.08, 0.478, 1.337, 0.432},      {"ffcv", 0.08, 0.478, 1.337, 0.497},
    };

    for (size_t as = 0; as < CONVENTION_COUNT; as++) {
        double least = 1, mean = 0, aspect_most = 0, tall = 0;
        assert_string_equal(convention_names[as], expected[as].name);
        for (uint64_t i = 0; i < DRAWS; i++) {
            const struct view view = view_of_record(1, 2, i);
            const struct view_box box = view_box(&view, conventions[as].rules, SIDE, SIDE);
            const double area = box.width * box.height / SIDE / SIDE;
            assert_true(box.x >= 0 && box.x + box.width <= SIDE && box.x == floor(box.x));
            assert_true(box.y >= 0 && box.y + box.height <= SIDE && box.y == floor(box.y));
            least = fmin(least, area);
            mean += area / DRAWS;
            aspect_most = fmax(aspect_most, box.width / box.height);
            tall += (box.width < box.height) / (double)DRAWS;
        }
        assert_true(fabs(least - expected[as].area_least) < 0.001);
        assert_true(fabs(mean - expected[as].area_mean) < 0.006);
        assert_true(fabs(tall - expected[as].tall) < 0.012);
        assert_true(fabs(aspect_most - expected[as].aspect_most) < 0.004);
    }
}

/* What is left of a strip on which every try fails. */
static void a_strip_is_whole_or_its_centre(void **unused)
{
    const struct view view = view_of_record(1, 0, 5);

    struct view_box box = view_box(&view, conventions[1].rules, 100000, 30);
    assert_true(box.width == 40 && box.x == 49980);
    box = view_box(&view, conventions[2].rules, 100000, 30);
    assert_true(box.width == 100000 && box.height == 30 && box.x == 0);
}

/* EXIF 2.3, table 6: where the first stored row and column are seen. */
static void each_orientation_is_turned_upright(void **unused)
{
    enum { TOP = 0, LEFT = 0, BOTTOM = 2, RIGHT = 2, N = 3 };
    static const struct {
        int first_x, first_y, end_x, end_y; /* of the stored first row */
    } seen[9] = {[1] = {LEFT, TOP, RIGHT, TOP},       [2] = {RIGHT, TOP, LEFT, TOP},
                 [3] = {RIGHT, BOTTOM, LEFT, BOTTOM}, [4] = {LEFT, BOTTOM, RIGHT, BOTTOM},
                 [5] = {LEFT, TOP, LEFT, BOTTOM},     [6] = {RIGHT, TOP, RIGHT, BOTTOM},
                 [7] = {RIGHT, BOTTOM, RIGHT, TOP},   [8] = {LEFT, BOTTOM, LEFT, TOP}};
    uint8_t stored[N * N * 3] = {0}, upright[N * N * 3];

    stored[0] = 1;           /* the first pixel of the first row */
    stored[(N - 1) * 3] = 2; /* and its last */
    for (unsigned i = 1; i <= 8; i++) {
        orientation_turn(i, false, N, stored, upright);
        assert_int_equal(upright[(seen[i].first_y * N + seen[i].first_x) * 3], 1);
        assert_int_equal(upright[(seen[i].end_y * N + seen[i].end_x) * 3], 2);
        orientation_turn(i, true, N, stored, upright);
        assert_int_equal(upright[(seen[i].first_y * N + 2 - seen[i].first_x) * 3], 1);
        /* The box of one corner is where that corner is stored: 50 wide, 30 high. */
        const bool swaps = orientation_swaps(i);
        const struct view_box corner = {.x = seen[i].first_x ? (swaps ? 30 : 50) - 4 : 0,
                                        .y = seen[i].first_y ? (swaps ? 50 : 30) - 5 : 0,
                                        .width = 4,
                                        .height = 5};
        const struct view_box box = orientation_stored_box(i, &corner, 50, 30);
        assert_true(box.x == 0 && box.y == 0 && box.width == (swaps ? 5 : 4));
    }
}

static void hostile_exif_is_upright(void **unused)
{
    static const uint8_t exif[] = "\xff\xd8\xff\xff\xff\xe1\x00\x22"
                                  "Exif\0\0"
                                  "MM\0*\0\0\0\x08\0\x01"
                                  "\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0\xff\xda";
    uint8_t copy[sizeof exif];

    assert_int_equal(orientation_of_jpeg(exif, sizeof exif - 1), 6);
    for (size_t bytes = 0; bytes < 32; bytes++) /* ends early: a heap copy for the sanitizer */
        orientation_of_jpeg(memcpy(copy, exif, bytes), bytes);
    for (size_t at = 0; at < sizeof exif - 1; at++)
        for (unsigned value = 0; value < 256; value++) {
            memcpy(copy, exif, sizeof exif);
            copy[at] = (uint8_t)value;
            const unsigned orientation = orientation_of_jpeg(copy, sizeof exif - 1);
            assert_true(orientation >= 1 && orientation <= 8);
        }
}

static void decode(const char *text, uint8_t row[32 * 32 * 3], struct view_shown *shown)
{
    static uint8_t bytes[1 << 20];
    struct decode_source source = {.bytes = bytes};
    const struct view view = view_of_record(1, 0, 0);
    struct plugin_choice choice;
    struct decoder decoder;
    char path[512];

    snprintf(path, sizeof path, "%s/tests/fixtures/images/exif_rotated.jpg", getenv("srcdir"));
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    source.length = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_int_equal(plugin_choose("decoder", decoder_registry, text, &choice), 0);
    assert_int_equal(decoder_open(&decoder, &choice), 0);
    assert_int_equal(decoder_decode(&decoder, &source, &view, row), 0);
    *shown = *decoder.traits.shown;
    decoder_close(&decoder);
    plugin_release(&choice);
}

static void dali_turns_what_others_leave(void **unused)
{
    uint8_t stored[32 * 32 * 3], upright[32 * 32 * 3], turned[32 * 32 * 3];
    struct view_shown plain, dali;

    decode("jpeg:size=32,view=whole,as=torchvision", stored, &plain);
    decode("jpeg:size=32,view=whole,as=dali", upright, &dali);
    assert_memory_not_equal(stored, upright, sizeof stored);
    assert_true(dali.width == plain.height && dali.height == plain.width);
    orientation_turn(6, false, 32, stored, turned);
    assert_memory_equal(turned, upright, sizeof turned);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(boxes_are_those_of_the_loader),
        cmocka_unit_test(a_strip_is_whole_or_its_centre),
        cmocka_unit_test(each_orientation_is_turned_upright),
        cmocka_unit_test(hostile_exif_is_upright),
        cmocka_unit_test(dali_turns_what_others_leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
