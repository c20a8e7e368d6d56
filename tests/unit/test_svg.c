/* SPDX-License-Identifier: Apache-2.0
 * Charts of any values are whole: no number in them is none, and what has no place is left out. */
#include "tests/unit/unit.h"

#include "base/random.h"
#include "report/svg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double any(struct random *random)
{
    static const double values[] = {0,    1,         -1,     3,    1e308, -1e308, 1e29,
                                    1e20, -INFINITY, 1e-320, 1e-9, NAN,   -1e29,  5e-324};

    return values[random_below(random, sizeof values / sizeof *values)];
}

static void any_values_end_well(void **unused)
{
    for (uint64_t seed = 0; seed < 5000; seed++) {
        struct random random = random_start(seed);
        struct svg svg;
        size_t bytes = 0;
        svg_begin(&svg, "", 800, 200, 2);
        for (int i = 0; i < 2; i++) {
            struct svg_panel *panel = svg_panel(&svg, "<&>");
            svg_x(panel, "x", (enum svg_scale)random_below(&random, 4), NAN, NAN);
            svg_y(panel, "y", (enum svg_scale)random_below(&random, 4), NAN, seed % 2 ? 100 : NAN);
            struct svg_curve *curve =
                svg_curve(panel, "curve", svg_color(seed), 1, (unsigned)random_below(&random, 32));
            for (uint64_t k = random_below(&random, 5); k; k--) {
                svg_interval(curve, any(&random), any(&random), any(&random), any(&random));
                svg_name(curve, "a point");
            }
            svg_band(panel, any(&random), any(&random), "#dddddd", "band");
            svg_mark(panel, any(&random), "mark");
            if (seed % 3 == 0)
                svg_tick(panel, any(&random), "tick");
        }
        char *text = svg_text(&svg, &bytes);
        assert_non_null(text);
        assert_null(strstr(text, "nan"));
        assert_null(strstr(text, "inf"));
        assert_null(strstr(text, "<&>"));
        assert_non_null(strstr(text, "</svg>"));
        free(text);
        svg_release(&svg);
    }
}

/* The least of 1, 2, 5 and 10 times a power of ten that is not below range / ticks. */
static void steps_are_round(void **unused)
{
    static const struct {
        double range, step;
        unsigned ticks;
    } rows[] = {{7, 1, 7}, {7, 2, 6}, {0.7, 0.2, 6}, {300, 50, 6}, {3000, 500, 7}, {60, 10, 7}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_near(svg_step(rows[i].range, rows[i].ticks), rows[i].step, 1e-9);
}

/* y is 0 to 7: 7 / 6 is more than 1, so the axis ends at a multiple of 2, which is 8, and says so.
 */
static void an_axis_ends_with_a_whole_tick(void **unused)
{
    struct svg svg;
    size_t bytes = 0;

    svg_begin(&svg, "", 800, 200, 1);
    struct svg_panel *panel = svg_panel(&svg, "");
    svg_x(panel, "x", SVG_LINEAR, 0, 1);
    svg_y(panel, "y", SVG_LINEAR, NAN, NAN);
    struct svg_curve *curve = svg_curve(panel, "curve", svg_color(0), 1, SVG_POINTS);
    svg_point(curve, 0, 0);
    svg_point(curve, 1, 7);
    char *text = svg_text(&svg, &bytes);
    assert_non_null(text);
    assert_non_null(strstr(text, ">8<"));
    assert_non_null(strstr(text, ">6<"));
    assert_null(strstr(text, ">7<"));
    free(text);
    svg_release(&svg);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_values_end_well),
                                       cmocka_unit_test(steps_are_round),
                                       cmocka_unit_test(an_axis_ends_with_a_whole_tick)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
