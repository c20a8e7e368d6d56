/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/resize_reference.h"
#include "tests/unit/unit.h"

#include "base/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint8_t *make_image(struct random *random, uint32_t width, uint32_t height, bool flat)
{
    size_t bytes = (size_t)width * height * RESIZE_PIXEL_BYTES;
    uint8_t *image = malloc(bytes);

    for (size_t i = 0; i < bytes; i++)
        image[i] = flat ? 255 : (uint8_t)random_next(random);
    return image;
}

/* Rows come in uneven portions and have more columns than the box, as in a JPEG. */
static void run_plain(struct bump *bump, struct random *random, const uint8_t *image,
                      const struct resize_box *box, uint32_t side, bool plain, uint8_t *output)
{
    uint8_t *rows[RESIZE_ROWS_MAX];
    struct resize resize;

    bump_reset(bump);
    assert_int_equal(resize_plan(&resize, box, side, side, bump), 0);
    assert_true(resize.x.low < resize.x.high && resize.x.high <= box->image_width);
    if (plain)
        resize.avx2 = false;
    uint32_t origin = resize.x.low - (uint32_t)random_below(random, resize.x.low + 1);
    uint32_t columns = resize.x.high - origin;
    assert_int_equal(resize_begin(&resize, origin, columns, output), 0);
    for (uint32_t count; (count = resize_want(&resize, rows));) {
        count = 1 + (uint32_t)random_below(random, count);
        for (uint32_t i = 0; i < count; i++)
            memcpy(rows[i],
                   image +
                       ((size_t)(resize.row + i) * box->image_width + origin) * RESIZE_PIXEL_BYTES,
                   (size_t)columns * RESIZE_PIXEL_BYTES);
        resize_give(&resize, count);
    }
    assert_int_equal(resize.out_row, side);
}

static void run(struct bump *bump, struct random *random, const uint8_t *image,
                const struct resize_box *box, uint32_t side, uint8_t *output)
{
    run_plain(bump, random, image, box, side, random_next(random) & 1, output);
}

static struct resize_box random_box(struct random *random, uint32_t width, uint32_t height)
{
    struct resize_box box = {.image_width = width, .image_height = height};

    box.width = 1 + (width - 1) * random_unit(random);
    box.height = 1 + (height - 1) * random_unit(random);
    box.x = (width - box.width) * random_unit(random);
    box.y = (height - box.height) * random_unit(random);
    box.mirror = random_next(random) & 1;
    box.filter = (enum resize_filter)random_below(random, 3);
    return box;
}

/* Noise is the hardest image: every weight shows. */
static void pixels_are_within_one_level_of_the_exact_ones(void **unused)
{
    struct random random = random_start(4);
    struct bump bump;
    double worst = 0, sum = 0;
    uint64_t count = 0;

    assert_int_equal(bump_open(&bump, 64, 1 << 28), 0);
    for (int round = 0; round < 150; round++) {
        uint32_t width = 1 + (uint32_t)random_below(&random, round % 3 ? 200 : 12);
        uint32_t height = 1 + (uint32_t)random_below(&random, round % 5 ? 200 : 12);
        uint32_t side = 1 + (uint32_t)random_below(&random, 40);
        uint8_t *image = make_image(&random, width, height, false);
        struct resize_box box = random_box(&random, width, height);
        uint8_t *output = malloc(side * side * 3);
        double *exact = malloc(side * side * 3 * sizeof *exact);
        run(&bump, &random, image, &box, side, output);
        resize_reference(image, &box, side, exact);
        for (uint32_t i = 0; i < side * side * 3; i++) {
            double error = output[i] - exact[i];
            worst = fmax(worst, fabs(error));
            sum += error;
            count++;
        }
        free(image);
        free(output);
        free(exact);
    }
    print_message("worst %.3f levels, mean %.4f\n", worst, sum / (double)count);
    assert_true(worst < 0.6);
    assert_true(fabs(sum / (double)count) < 0.02);
    bump_close(&bump);
}

/* The exact figures of each filter, by hand: eight columns of values 4 x^2 become two. Bilinear
 * takes the two nearest, area the mean of four; both axes must shrink for that. */
static void each_filter_has_its_weights(void **unused)
{
    static const struct {
        enum resize_filter filter;
        uint32_t height;
        int left, right;
    } expected[] = {{RESIZE_BILINEAR, 8, 10, 122},
                    {RESIZE_AREA, 8, 14, 126},
                    {RESIZE_AREA, 1, 10, 122}, /* the rows do not shrink */
                    {RESIZE_TRIANGLE, 8, 22, 112}};
    struct random random = random_start(6);
    uint8_t image[8 * 8 * RESIZE_PIXEL_BYTES], output[2 * 2 * 3];
    struct bump bump;

    for (int i = 0; i < 8 * 8 * RESIZE_PIXEL_BYTES; i++)
        image[i] = (uint8_t)(4 * (i / RESIZE_PIXEL_BYTES % 8) * (i / RESIZE_PIXEL_BYTES % 8));
    assert_int_equal(bump_open(&bump, 1 << 20, 1 << 28), 0);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        const struct resize_box box = {.width = 8,
                                       .height = expected[i].height,
                                       .image_width = 8,
                                       .image_height = expected[i].height,
                                       .filter = expected[i].filter};
        run(&bump, &random, image, &box, 2, output);
        assert_int_equal(output[0], expected[i].left);
        assert_int_equal(output[3], expected[i].right);
    }
    bump_close(&bump);
}

/* Groups of columns that are not full, short and long windows, mirrored or not. */
static void vectors_give_the_pixels_of_plain_code_and_write_nothing_else(void **unused)
{
    enum { SIDE_MOST = 40, BYTES = SIDE_MOST * SIDE_MOST * 3, GUARD = 32 };
    struct random random = random_start(8);
    uint8_t expected[BYTES + GUARD], output[GUARD + BYTES + GUARD];
    struct bump bump;

    assert_int_equal(bump_open(&bump, 1 << 20, 1 << 28), 0);
    for (uint32_t round = 0; round < 8 * SIDE_MOST; round++) {
        const uint32_t side = 1 + round % SIDE_MOST, bytes = side * side * 3;
        const uint32_t width = 1 + (uint32_t)random_below(&random, 12 * side);
        uint8_t *image = make_image(&random, width, 90, round % 8 == 0);
        const struct resize_box box = random_box(&random, width, 90);
        memset(output, 0xa5, sizeof output);
        memset(expected, 0xa5, sizeof expected);
        run_plain(&bump, &random, image, &box, side, true, expected);
        run_plain(&bump, &random, image, &box, side, false, output + GUARD);
        assert_memory_equal(output + GUARD, expected, bytes + GUARD);
        for (int i = 0; i < GUARD; i++)
            assert_int_equal(output[i], 0xa5);
        free(image);
    }
    bump_close(&bump);
}

static void a_flat_image_stays_flat(void **unused)
{
    struct random random = random_start(5);
    struct bump bump;
    uint8_t output[32 * 32 * 3];

    assert_int_equal(bump_open(&bump, 1 << 20, 1 << 28), 0);
    for (int round = 0; round < 30; round++) {
        uint32_t width = round == 0 ? 6000 : 1 + (uint32_t)random_below(&random, 300);
        uint8_t *image = make_image(&random, width, 60, true);
        struct resize_box box = random_box(&random, width, 60);
        if (round == 0) { /* hundreds of weights, each rounded */
            box.x = 0;
            box.width = width;
        }
        run(&bump, &random, image, &box, 32, output);
        for (size_t i = 0; i < sizeof output; i++)
            assert_int_equal(output[i], 255);
        free(image);
    }
    bump_close(&bump);
}

static void a_mirrored_box_is_the_box_read_backwards(void **unused)
{
    struct random random = random_start(6);
    struct bump bump;
    uint8_t plain[20 * 20 * 3], mirrored[20 * 20 * 3];

    assert_int_equal(bump_open(&bump, 1 << 20, 1 << 28), 0);
    uint8_t *image = make_image(&random, 90, 70, false);
    struct resize_box box = random_box(&random, 90, 70);
    box.mirror = false;
    run(&bump, &random, image, &box, 20, plain);
    box.mirror = true;
    run(&bump, &random, image, &box, 20, mirrored);
    for (size_t i = 0; i < 400; i++)
        assert_memory_equal(plain + i * 3, mirrored + (i / 20 * 20 + 19 - i % 20) * 3, 3);
    free(image);
    bump_close(&bump);
}

/* Same size: no filtering, so the crop must match byte for byte. */
static void an_unscaled_box_is_copied(void **unused)
{
    struct random random = random_start(7);
    struct bump bump;
    uint8_t output[16 * 16 * 3];

    assert_int_equal(bump_open(&bump, 1 << 20, 1 << 28), 0);
    uint8_t *image = make_image(&random, 40, 30, false);
    struct resize_box box = {
        .x = 7, .y = 9, .width = 16, .height = 16, .image_width = 40, .image_height = 30};
    run(&bump, &random, image, &box, 16, output);
    for (size_t i = 0; i < 256; i++)
        assert_memory_equal(output + i * 3, image + ((9 + i / 16) * 40 + 7 + i % 16) * 4, 3);
    free(image);
    bump_close(&bump);
}

static void the_pool_keeps_its_limit(void **unused)
{
    struct bump bump;

    assert_int_equal(bump_open(&bump, 4096, 100000), 0);
    assert_non_null(bump_alloc(&bump, 60000));
    assert_null(bump_alloc(&bump, 60000));
    assert_null(bump_alloc_array(&bump, SIZE_MAX / 2, 3));
    bump_reset(&bump);
    uint8_t *first = bump_alloc(&bump, 60000), *second = bump_alloc(&bump, 1);
    assert_int_equal((uintptr_t)first % BUMP_ALIGNMENT, 0);
    assert_ptr_equal(second, first + 60032);
    bump_close(&bump);
}

/* Memory that overflowed fits after the next reset: no allocation in the steady state. */
static void the_pool_grows_to_the_largest_image(void **unused)
{
    struct bump bump;

    assert_int_equal(bump_open(&bump, 4096, 1 << 20), 0);
    for (int round = 0; round < 3; round++) {
        bump_reset(&bump);
        for (int i = 0; i < 5; i++)
            assert_non_null(bump_alloc(&bump, 30000));
        assert_true(round == 0 ? bump.spills != NULL : bump.spills == NULL);
    }
    bump_close(&bump);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pixels_are_within_one_level_of_the_exact_ones),
        cmocka_unit_test(each_filter_has_its_weights),
        cmocka_unit_test(vectors_give_the_pixels_of_plain_code_and_write_nothing_else),
        cmocka_unit_test(a_flat_image_stays_flat),
        cmocka_unit_test(a_mirrored_box_is_the_box_read_backwards),
        cmocka_unit_test(an_unscaled_box_is_copied),
        cmocka_unit_test(the_pool_keeps_its_limit),
        cmocka_unit_test(the_pool_grows_to_the_largest_image),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
