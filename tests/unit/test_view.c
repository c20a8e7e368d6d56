/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "base/random.h"
#include "decode/view.h"

#include <math.h>
#include <string.h>

enum { DRAWS = 40000 };

static struct view_box draw(uint64_t record, uint32_t width, uint32_t height)
{
    struct view view = {.kind = VIEW_TRAIN, .seed = random_hash(1, 2, record)};

    return view_box(&view, &view_rules_imagenet, width, height);
}

/* Return the largest distance of the empirical distribution of counts (20 equal bins) from the
 * uniform one. */
static double distance_from_even(const int bins[20], int total)
{
    double sum = 0, worst = 0;

    for (int i = 0; i < 20; i++) {
        sum += bins[i];
        worst = fmax(worst, fabs(sum / total - (i + 1) / 20.0));
    }
    return worst;
}

static int bin_of(double share)
{
    int bin = (int)(share * 20);

    return bin < 0 ? 0 : bin > 19 ? 19 : bin;
}

/* On a large square image no try is rejected as too wide until the area approaches 1, so below 3/4
 * the area is uniform; the aspect is log-uniform; the position is uniform in the free space. */
static void train_boxes_follow_the_distribution(void **unused)
{
    int area_bins[20] = {0}, aspect_bins[20] = {0}, x_bins[20] = {0}, y_bins[20] = {0};
    int mirrored = 0, small = 0;

    for (uint64_t i = 0; i < DRAWS; i++) {
        struct view_box box = draw(i, 4000, 4000);
        double area = box.width * box.height / 16e6, aspect = box.width / box.height;
        assert_true(box.x >= 0 && box.y >= 0);
        assert_true(box.x + box.width <= 4000 && box.y + box.height <= 4000);
        assert_true(area > 0.0499 && area <= 1);
        assert_true(aspect > 0.749 && aspect < 1.335);
        mirrored += box.mirror;
        if (area > 0.74)
            continue;
        small++;
        area_bins[bin_of((area - 0.05) / (0.74 - 0.05))]++;
        aspect_bins[bin_of((log(aspect) - log(0.75)) / (log(4.0 / 3) - log(0.75)))]++;
        x_bins[bin_of(box.x / (4000 - box.width + 1))]++;
        y_bins[bin_of(box.y / (4000 - box.height + 1))]++;
    }
    assert_true(fabs((double)mirrored / DRAWS - 0.5) < 0.01);
    /* Kolmogorov: chance exceeds 1.95 / sqrt(n) once in a thousand. */
    const double limit = 1.95 / sqrt(small);
    assert_true(small > DRAWS / 2);
    assert_true(distance_from_even(area_bins, small) < limit);
    assert_true(distance_from_even(aspect_bins, small) < limit);
    assert_true(distance_from_even(x_bins, small) < limit);
    assert_true(distance_from_even(y_bins, small) < limit);
}

static void boxes_lie_inside_any_image(void **unused)
{
    struct random random = random_start(3);

    for (uint64_t i = 0; i < DRAWS; i++) {
        uint32_t width = 1 + (uint32_t)random_below(&random, i % 2 ? 20 : 5000);
        uint32_t height = 1 + (uint32_t)random_below(&random, i % 3 ? 20 : 5000);
        struct view_box box = draw(i, width, height);
        assert_true(box.width >= 1 && box.height >= 1 && box.x >= 0 && box.y >= 0);
        assert_true(box.x + box.width <= width && box.y + box.height <= height);
        assert_true(box.x == floor(box.x) && box.width == floor(box.width));
        struct view view = {.kind = VIEW_EVALUATE};
        box = view_box(&view, &view_rules_imagenet, width, height);
        assert_true(box.width > 0 && box.x >= 0 && box.y >= 0);
        assert_true(box.x + box.width <= width && box.y + box.height <= height);
    }
}

/* A very wide image rejects every try; the fallback is the centre with the widest aspect. */
static void a_strip_falls_back_to_its_centre(void **unused)
{
    struct view_box box = draw(5, 100000, 30);
    assert_true(box.height == 30 && box.width == 40 && box.x == 49980 && box.y == 0);
    box = draw(5, 30, 100000);
    assert_true(box.width == 30 && box.height == 40 && box.y == 49980 && box.x == 0);
}

static void the_same_seed_gives_the_same_box(void **unused)
{
    int differing = 0;

    for (uint64_t i = 0; i < 1000; i++) {
        struct view_box a = draw(i, 500, 375), b = draw(i, 500, 375), c = draw(i + 1, 500, 375);
        assert_true(a.x == b.x && a.y == b.y && a.width == b.width && a.height == b.height &&
                    a.mirror == b.mirror);
        differing += a.x != c.x || a.y != c.y || a.width != c.width;
    }
    assert_true(differing > 950);
    /* Fixed forever: a seed gives the same crop in every version. */
    struct view_box box = draw(0, 500, 375);
    assert_true(box.x == 30 && box.y == 51 && box.width == 316 && box.height == 279 && box.mirror);
}

static void evaluation_sees_the_centre(void **unused)
{
    struct view view = {.kind = VIEW_EVALUATE, .seed = 9};

    struct view_box box = view_box(&view, &view_rules_imagenet, 512, 256);
    assert_true(box.x == 144 && box.y == 16 && box.width == 224 && box.height == 224);
    assert_false(box.mirror);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(train_boxes_follow_the_distribution),
        cmocka_unit_test(boxes_lie_inside_any_image),
        cmocka_unit_test(a_strip_falls_back_to_its_centre),
        cmocka_unit_test(the_same_seed_gives_the_same_box),
        cmocka_unit_test(evaluation_sees_the_centre),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
