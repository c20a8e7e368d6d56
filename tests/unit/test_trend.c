/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "base/random.h"
#include "base/stats.h"

#include <math.h>

static void check(const double *values, size_t count, double p, double slope, double middle)
{
    struct trend trend = trend_test(values, count);

    assert_near(trend.p, p, 1e-12);
    assert_near(trend.drift, slope * (double)(count - 1) / middle, 1e-12);
}

/* p is scipy.stats.kendalltau(range(n), values).pvalue, exact without ties; slopes are
 * scipy.stats.theilslopes(values, range(n))[0]. */
static void trend_as_scipy(void **unused)
{
    const double up[] = {1, 2, 3, 4, 5}, down[] = {5, 4, 3, 1, 2, 0};
    const double digits[] = {3, 1, 4, 1.5, 5, 9, 2, 6}, tied[] = {1, 2, 2, 3, 3, 3, 4, 5};
    const double rates[] = {10, 11, 9, 12, 13, 12.5, 14, 13.5, 15, 16};
    const double falling[] = {11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0};

    check(up, 5, 0.016666666666666666, 1, 3);
    check(down, 6, 0.016666666666666666, -1, 2.5);
    check(digits, 8, 0.17886904761904762, 0.4642857142857143, 3.5);
    check(tied, 8, 0.0020608812020897044, 0.5, 3);
    check(rates, 10, 0.0003576940035273369, 2.0 / 3, 12.75);
    check(falling, 12, 4.17535139757362e-09, -1, 5.5);
}

static void few_values_have_no_trend(void **unused)
{
    const double up[] = {1, 2, 3, 4}, equal[] = {3, 3, 3, 3, 3, 3};

    assert_true(trend_test(up, TREND_LEAST - 1).p > 0.05);
    assert_true(trend_test(up, 1).p == 1 && isnan(trend_test(up, 1).drift));
    assert_true(trend_test(NULL, 0).p == 1);
    assert_true(trend_test(equal, 6).p == 1 && trend_test(equal, 6).drift == 0);
}

/* Runs without drift are reported as drifting in at most 5% of the cases, whatever their
 * distribution; runs that lose 2% each, with 1.5% noise, in most. */
static void false_alarms_are_rare(void **unused)
{
    struct random random = random_start(11);

    for (size_t count = TREND_LEAST; count <= 20; count += 5) {
        int alarms[2] = {0}, found = 0;
        for (int trial = 0; trial < 4000; trial++) {
            double even[20], bursty[20], falling[20];
            for (size_t i = 0; i < count; i++) {
                even[i] = 100 + 3 * random_normal(&random);
                bursty[i] = (random_below(&random, 10) ? 100 : 75) + random_normal(&random);
                falling[i] = 100 - 2 * (double)i + 1.5 * random_normal(&random);
            }
            alarms[0] += trend_test(even, count).p < 0.05;
            alarms[1] += trend_test(bursty, count).p < 0.05;
            found += trend_test(falling, count).p < 0.05;
        }
        print_message("%2zu runs: false alarms %.1f%%, bursty %.1f%%; -2%% a run found %.1f%%\n",
                      count, alarms[0] / 40.0, alarms[1] / 40.0, found / 40.0);
        assert_true(alarms[0] <= 0.06 * 4000 && alarms[1] <= 0.06 * 4000);
        assert_true(count == TREND_LEAST || found >= 0.9 * 4000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trend_as_scipy),
        cmocka_unit_test(few_values_have_no_trend),
        cmocka_unit_test(false_alarms_are_rare),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
