/* SPDX-License-Identifier: Apache-2.0
 * Clocks that step, are slewed or stand still while a machine sleeps. */
#include "tests/unit/unit.h"

#include "base/clock.h"

#include <stdlib.h>

enum { LOOK = 1000 };
static const int64_t SECOND = 1000000000;

/* Ten seconds on CLOCK_MONOTONIC, plus these amounts on the other clocks. */
static bool agrees(int64_t raw_more, int64_t boot_more)
{
    const struct clock_moment from = {5000, 5000 + LOOK, 77, 99};
    const uint64_t passed = (uint64_t)(10 * SECOND);
    const struct clock_moment to = {from.before_ns + passed, from.after_ns + passed,
                                    from.raw_ns + passed + (uint64_t)raw_more,
                                    from.boot_ns + passed + (uint64_t)boot_more};
    int64_t passed_ns, other_ns;
    const bool agree = clock_agrees(&from, &to, &passed_ns, &other_ns);

    assert_int_equal(passed_ns, 10 * SECOND);
    assert_int_equal(other_ns - passed_ns,
                     llabs(raw_more) > llabs(boot_more) ? raw_more : boot_more);
    return agree;
}

static void clocks_that_differ_are_told(void **unused)
{
    assert_true(agrees(0, 0));
    assert_true(agrees(SECOND / 20, 0)); /* NTP may slew by 500 ppm */
    assert_true(agrees(-SECOND / 20, 0));
    assert_false(agrees(SECOND / 5, 0));
    assert_false(agrees(-SECOND / 5, 0));
    assert_false(agrees(0, SECOND)); /* the machine was suspended */
    assert_false(agrees(5 * SECOND, SECOND));
}

static void a_moment_is_one_moment(void **unused)
{
    struct clock_moment moment, later;
    int64_t passed_ns, other_ns;

    clock_moment(&moment);
    assert_true(moment.before_ns <= moment.after_ns);
    clock_sleep_ns(2000000);
    clock_moment(&later);
    assert_true(later.before_ns >= moment.after_ns + 2000000);
    assert_true(clock_agrees(&moment, &later, &passed_ns, &other_ns));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clocks_that_differ_are_told),
        cmocka_unit_test(a_moment_is_one_moment),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
