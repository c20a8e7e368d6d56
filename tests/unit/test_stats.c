/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "base/random.h"
#include "base/stats.h"

#include <math.h>

#define assert_near(value, wanted, within) assert_true(fabs((value) - (wanted)) <= (within))

static void summary_of_known_values(void **unused)
{
    const double values[] = {5, 1, 4, 2, 3};
    struct stats_summary summary = stats_summarise(values, 5);

    (void)unused;
    assert_int_equal(summary.count, 5);
    assert_near(summary.minimum, 1, 0);
    assert_near(summary.median, 3, 0);
    assert_near(summary.mean, 3, 1e-12);
    assert_near(summary.maximum, 5, 0);
    summary = stats_summarise(values, 4);
    assert_near(summary.median, 3, 0);
    summary = stats_summarise(values, 2);
    assert_near(summary.low, 1, 0);
    assert_near(summary.high, 5, 0);
    assert_int_equal(stats_summarise(NULL, 0).count, 0);
}

/* The median of n resampled values is the k-th smallest or less with a binomial probability: for
 * n = 5 the chance that it is the smallest is P(Bin(5, 1/5) >= 3) = 5.8%, that it is the largest
 * as much; so the 2.5% and 97.5% points are exactly minimum and maximum. For n = 15 they lie
 * inside: P(median = smallest) = P(Bin(15, 1/15) >= 8) = 1.6e-6. */
static void interval_follows_the_binomial(void **unused)
{
    const double five[] = {10, 20, 30, 40, 50};
    double fifteen[15];

    (void)unused;
    assert_near(stats_summarise(five, 5).low, 10, 0);
    assert_near(stats_summarise(five, 5).high, 50, 0);
    for (int i = 0; i < 15; i++)
        fifteen[i] = i;
    /* P(median <= 3) = P(Bin(15, 4/15) >= 8) = 2.6%, P(median <= 2) = 0.6%. */
    assert_near(stats_summarise(fifteen, 15).low, 3, 0);
    assert_near(stats_summarise(fifteen, 15).high, 11, 0);
}

/* Of many samples of a normal distribution about 95% of the intervals hold the true median. */
static void interval_covers_the_median(void **unused)
{
    struct random random = random_start(3);
    int covered = 0;

    (void)unused;
    for (int trial = 0; trial < 100; trial++) {
        double values[20];
        for (int i = 0; i < 20; i++)
            values[i] = random_normal(&random);
        struct stats_summary summary = stats_summarise(values, 20);
        covered += summary.low <= 0 && summary.high >= 0;
    }
    assert_in_range(covered, 88, 100);
}

static void drift_is_signed(void **unused)
{
    const double flat[] = {5, 5, 5, 5, 5, 5}, up[] = {1, 1, 2, 2, 3, 3};
    const double down[] = {3, 3, 2, 2, 1, 1};

    (void)unused;
    assert_near(stats_drift(flat, 6), 0, 0);
    assert_near(stats_drift(up, 6), 1, 1e-12);
    assert_near(stats_drift(down, 6), -1, 1e-12);
    assert_near(stats_drift(up, 5), 0, 0);
}

/* Expected values are from scipy.stats.mannwhitneyu 1.x. */
static void mann_whitney_as_scipy(void **unused)
{
    const double a[] = {1, 2, 3}, b[] = {4, 5, 6};
    const double c[] = {1, 5, 7, 2}, d[] = {3, 4, 9, 10, 11};
    const double tied_a[] = {1, 2, 2, 3, 5}, tied_b[] = {2, 3, 4, 4, 6, 7};
    double many_a[25], many_b[30];

    (void)unused;
    assert_near(stats_mann_whitney_p(a, 3, b, 3), 0.1, 1e-12);
    assert_near(stats_mann_whitney_p(b, 3, a, 3), 0.1, 1e-12);
    assert_near(stats_mann_whitney_p(c, 4, d, 5), 0.19047619047619047, 1e-12);
    assert_near(stats_mann_whitney_p(tied_a, 5, tied_b, 6), 0.13862587987892763, 1e-12);
    for (int i = 0; i < 25; i++)
        many_a[i] = i;
    for (int i = 0; i < 30; i++)
        many_b[i] = i + 3.3;
    assert_near(stats_mann_whitney_p(many_a, 25, many_b, 30), 0.015283411524089513, 1e-12);
    assert_near(stats_mann_whitney_p(a, 3, a, 3), 1, 0);
    assert_near(stats_mann_whitney_p(a, 0, b, 3), 1, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(summary_of_known_values),
        cmocka_unit_test(interval_follows_the_binomial),
        cmocka_unit_test(interval_covers_the_median),
        cmocka_unit_test(drift_is_signed),
        cmocka_unit_test(mann_whitney_as_scipy),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
