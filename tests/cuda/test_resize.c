/* SPDX-License-Identifier: Apache-2.0
 *
 * The device's resize against the CPU's (kernels/resize.h): the same bytes, for random boxes of
 * images of noise, whatever the filter, the sizes and the mirror; at all edges; and marks. Built
 * twice: for the host, and for a device.
 */
#include "tests/cuda/place.h"

#include "kernels/resize.h"

#define STREAM place_runtime.stream

enum { IMAGES = 3 };

struct picture {
    uint32_t width, height, pitch;
    uint8_t *bytes; /* rows of `pitch` bytes; what is after the pixels is noise, too */
};

static struct picture make_picture(struct random *random, uint32_t width, uint32_t height)
{
    struct picture picture = {width, height, (width * 3 + 15) & ~15u, NULL};
    const size_t bytes = (size_t)picture.pitch * height;

    picture.bytes = malloc(bytes);
    assert_non_null(picture.bytes);
    for (size_t i = 0; i < bytes; i++)
        picture.bytes[i] = (uint8_t)random_next(random);
    return picture;
}

static void resize_on_host(const struct picture *picture, struct resize *resize, uint8_t *output)
{
    uint8_t *rows[RESIZE_ROWS_MAX];
    const uint32_t low = resize->x.low, columns = resize->x.high - low;

    assert_int_equal(resize_begin(resize, low, columns, output), 0);
    for (uint32_t count; (count = resize_want(resize, rows)); resize_give(resize, count))
        for (uint32_t i = 0; i < count; i++)
            for (uint32_t x = 0; x < columns; x++)
                memcpy(rows[i] + x * RESIZE_PIXEL_BYTES,
                       picture->bytes + (size_t)(resize->row + i) * picture->pitch + (low + x) * 3,
                       3);
}

static struct device_axis put_axis(const struct resize_axis *axis, uint32_t side)
{
    return (struct device_axis){
        .first = place_bytes(axis->first, side * sizeof *axis->first),
        .weights = place_bytes(axis->weights, (size_t)side * axis->taps * sizeof *axis->weights),
        .taps = axis->taps,
        .widest = axis->widest,
        .high = axis->high};
}

static void free_axis(const struct device_axis *axis)
{
    runtime_release((void *)(uintptr_t)axis->first);
    runtime_release((void *)(uintptr_t)axis->weights);
}

static struct resize_box random_box(struct random *random, const struct picture *picture, int i)
{
    struct resize_box box = {.image_width = picture->width, .image_height = picture->height};

    box.width = 1 + (picture->width - 1) * random_unit(random);
    box.height = 1 + (picture->height - 1) * random_unit(random);
    if (i % 4 == 0)
        box.width = picture->width;
    box.x = (picture->width - box.width) * (i % 3 ? random_unit(random) : i & 1);
    box.y = (picture->height - box.height) * (i % 5 ? random_unit(random) : i & 1);
    box.mirror = i & 1;
    box.filter = (enum resize_filter)(i % 3);
    return box;
}

/* One launch of three images, of sizes and tiles of their own. */
static void resize_both(struct bump *bump, struct random *random, uint32_t most, uint32_t width,
                        uint32_t height)
{
    const size_t row_bytes = (size_t)width * height * 3;
    struct device_resized images[IMAGES];
    uint8_t *expected[IMAGES], *output = malloc(row_bytes);
    uint32_t tiles = 1;

    assert_non_null(output);
    bump_reset(bump);
    for (int i = 0; i < IMAGES; i++) {
        struct picture picture = make_picture(random, 6 + (uint32_t)random_below(random, most),
                                              1 + (uint32_t)random_below(random, most / 4));
        const struct resize_box box = random_box(random, &picture, (int)random_below(random, 60));
        struct resize resize;
        expected[i] = malloc(row_bytes);
        assert_non_null(expected[i]);
        assert_int_equal(resize_plan(&resize, &box, width, height, bump), 0);
        resize_on_host(&picture, &resize, expected[i]);
        const uint32_t tile = device_resize_tile(resize.x.first, resize.x.widest, width);
        assert_true(tile > 0 && tile % 16 == 0);
        tiles = (width + tile - 1) / tile > tiles ? (width + tile - 1) / tile : tiles;
        images[i] = (struct device_resized){
            .image = place_bytes(picture.bytes, (size_t)picture.pitch * picture.height),
            .pitch = picture.pitch,
            .width = picture.width,
            .height = picture.height,
            .x = put_axis(&resize.x, width),
            .y = put_axis(&resize.y, height),
            .tile = tile,
            .mirror = box.mirror,
            .output = place_bytes(NULL, row_bytes)};
        free(picture.bytes);
    }
    struct device_resized *given = place_bytes(images, sizeof images);
    must(device_resize(given, IMAGES, width, height, tiles, STREAM));
    for (int i = 0; i < IMAGES; i++) {
        fetch_bytes(output, images[i].output, row_bytes);
        assert_memory_equal(output, expected[i], row_bytes);
        free_axis(&images[i].x);
        free_axis(&images[i].y);
        runtime_release(images[i].image);
        runtime_release(images[i].output);
        free(expected[i]);
    }
    runtime_release(given);
    free(output);
}

static void bytes_are_those_of_the_cpu(void **unused)
{
    /* Widths of one tile and of several, with vectors as rows and without. */
    static const uint32_t sides[][2] = {{224, 224}, {1, 1}, {7, 5}, {33, 16}, {48, 3}, {600, 2}};
    struct random random = random_start(9);
    struct bump bump;

    assert_int_equal(bump_open(&bump, 64, 1 << 28), 0);
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++)
        for (int round = 0; round < 6; round++)
            resize_both(&bump, &random, round % 3 ? 400 : 60, sides[i][0], sides[i][1]);
    resize_both(&bump, &random, 5000, 224, 8);
    resize_both(&bump, &random, 9000, 224, 3);
    bump_close(&bump);
}

static void a_window_wider_than_a_block_is_refused(void **unused)
{
    const uint32_t first[2] = {0, 1000};

    assert_int_equal(device_resize_tile(first, 5000, 2), 0);
    assert_int_equal(device_resize_tile(first, 1400, 1), 0);
    assert_int_equal(device_resize_tile(first, 1350, 1), 16);
}

static void an_image_that_was_not_written_is_found(void **unused)
{
    enum { WIDTH = 7, HEIGHT = 3, PITCH = 32 };
    struct device_resized images[IMAGES];
    uint8_t marked[IMAGES], bytes[PITCH * HEIGHT] = {0};

    for (int i = 0; i < IMAGES; i++)
        images[i] = (struct device_resized){.image = place_bytes(bytes, sizeof bytes),
                                            .pitch = PITCH,
                                            .width = WIDTH,
                                            .height = HEIGHT};
    struct device_resized *given = place_bytes(images, sizeof images);
    uint8_t *found = place_bytes(NULL, sizeof marked);
    must(device_mark(given, IMAGES, STREAM));
    must(runtime_zero(images[1].image, sizeof bytes, STREAM)); /* this one is */
    must(device_find_marks(given, IMAGES, found, STREAM));
    fetch_bytes(marked, found, sizeof marked);
    assert_int_equal(marked[0], 1);
    assert_int_equal(marked[1], 0);
    assert_int_equal(marked[2], 1);
    fetch_bytes(bytes, images[0].image, sizeof bytes);
    for (int i = 0; i < PITCH * HEIGHT; i++) /* in the last row alone, up to its last pixel */
        if (i < PITCH * (HEIGHT - 1) + WIDTH * 3 - DEVICE_MARK_BYTES ||
            i >= PITCH * (HEIGHT - 1) + WIDTH * 3)
            assert_int_equal(bytes[i], 0);
    for (int i = 0; i < IMAGES; i++)
        runtime_release(images[i].image);
    runtime_release(given);
    runtime_release(found);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_those_of_the_cpu),
        cmocka_unit_test(a_window_wider_than_a_block_is_refused),
        cmocka_unit_test(an_image_that_was_not_written_is_found),
    };

    if (runtime_usable()) {
        print_message("skipped: %s\n", fail_reason());
        return 77;
    }
    must(runtime_open(&place_runtime, 0, 0));
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    runtime_close(&place_runtime);
    return failed;
}
