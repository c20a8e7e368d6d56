/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include "base/random.h"
#include "base/stats.h"

#include <math.h>

static void summary_of_known_values(void **unused)
{
    const double values[] = {5, 1, 4, 2, 3};
    struct stats_summary summary = stats_summarise(values, 5);

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

static void check_interval(const double *values, size_t count, double low, double high,
                           double coverage)
{
    struct stats_summary summary = stats_summarise(values, count);

    assert_near(summary.low, low, 1e-9 * fabs(low));
    assert_near(summary.high, high, 1e-9 * fabs(high));
    assert_near(summary.coverage, coverage, 1e-9);
}

/* 6 or more values: order statistics; coverages are 1 - 2 binom.cdf(k - 1, n, 1/2) of SciPy. 3 to 5
 * values: exp(t.interval(0.95, n - 1, mean, sem)) of the logarithms. */
static void intervals_as_scipy(void **unused)
{
    const double three[] = {121, 100, 110}, signed_three[] = {-1, 0, 1};
    double rising[20];

    for (int i = 0; i < 20; i++)
        rising[i] = i + 1;
    check_interval(rising, 1, 1, 1, 0);
    check_interval(rising, 2, 1, 2, 0.5);
    check_interval(three, 3, 110 / exp(4.302652729749462 * log(1.1) / sqrt(3)),
                   110 * exp(4.302652729749462 * log(1.1) / sqrt(3)), 0.95);
    check_interval(signed_three, 3, -4.302652729749462 / sqrt(3), 4.302652729749462 / sqrt(3),
                   0.95);
    check_interval(rising, 6, 1, 6, 0.96875);
    check_interval(rising, 8, 1, 8, 0.9921875);
    check_interval(rising, 9, 2, 8, 0.9609375);
    check_interval(rising, 20, 6, 15, 0.958610534667969);
}

/* scipy.stats.t.ppf(0.975, freedom) and t.sf. */
static void student_as_scipy(void **unused)
{
    static const struct {
        size_t freedom;
        double quantile;
    } rows[] = {{1, 12.7062047362}, {2, 4.30265272975},  {3, 3.18244630528},
                {4, 2.7764451052},  {5, 2.57058183564},  {6, 2.44691185114},
                {9, 2.2621571628},  {10, 2.22813885199}, {30, 2.0422724563}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_near(student_quantile(0.05, rows[i].freedom), rows[i].quantile, 1e-9);
        assert_near(student_p(rows[i].quantile, rows[i].freedom), 0.05, 1e-11);
    }
}

static double draw_normal(struct random *random)
{
    return 100 + 3 * random_normal(random);
}

static double draw_lognormal(struct random *random)
{
    return exp(0.5 * random_normal(random));
}

/* A disk that is sometimes slow: a tenth of the runs take a third longer. */
static double draw_bursty(struct random *random)
{
    return (random_below(random, 10) ? 100 : 75) + random_normal(random);
}

static const struct {
    const char *name;
    double (*draw)(struct random *random);
    double median; /* bursty: the 4/9 quantile of 100 + N */
} laws[] = {{"normal", draw_normal, 100},
            {"log-normal", draw_lognormal, 1},
            {"bursty", draw_bursty, 100 - 0.139710299}};

/* A 95% interval contains the true median in 95% of the cases, within the chance error of 4,000
 * trials (three standard deviations: 1%). */
/* Of pairs of ratios, however close to 1: scipy's permutation_test(), as in test_paired. */
static void signs_of_tiny_differences(void **unused)
{
    const double logs[] = {.01, -.004, .02, .013, .007, -.001, .03, .002};
    double ones[8], ratios[8];

    for (double scale = 1; scale > 1e-12; scale *= 1e-11) {
        for (int i = 0; i < 8; i++) {
            ones[i] = 1;
            ratios[i] = exp(logs[i] * scale);
        }
        assert_near(paired_test(ones, ratios, 8, 1, false).sign_flip_p, 0.046875, 1e-12);
    }
}

static void intervals_cover_the_median(void **unused)
{
    struct random random = random_start(3);

    for (size_t law = 0; law < sizeof laws / sizeof laws[0]; law++) {
        print_message("%-10s", laws[law].name);
        for (size_t count = 3; count <= 20; count++) {
            int covered = 0;
            for (int trial = 0; trial < 4000; trial++) {
                double values[20];
                for (size_t i = 0; i < count; i++)
                    values[i] = laws[law].draw(&random);
                struct stats_summary summary = stats_summarise(values, count);
                covered += summary.low <= laws[law].median && summary.high >= laws[law].median;
            }
            print_message(" %5.1f", covered / 40.0);
            assert_true(covered >= 0.94 * 4000);
        }
        print_message("\n");
    }
}

/* Runs are added until the half width is small enough; even after an early stop the interval covers
 * the median in 95% of the cases. At most 40 runs. */
static void intervals_cover_after_stopping(void **unused)
{
    static const double widths[] = {0.01, 0.02, 0.05, 0.1, 0.2};
    enum { MOST = 40, TRIALS = 2000 };
    struct random random = random_start(4);

    for (size_t law = 0; law < sizeof laws / sizeof laws[0]; law++) {
        print_message("until, %-10s", laws[law].name);
        for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
            int covered = 0;
            uint64_t runs = 0;
            for (int trial = 0; trial < TRIALS; trial++) {
                double values[MOST];
                for (size_t k = 0; k < MOST; k++)
                    values[k] = laws[law].draw(&random);
                struct stats_summary summary = {0};
                size_t count = STATS_UNTIL_FIRST;
                for (; count <= MOST; count++) {
                    summary = stats_summarise_until(values, count);
                    if (stats_half_width(&summary) <= widths[i])
                        break;
                }
                covered += summary.low <= laws[law].median && summary.high >= laws[law].median;
                runs += count;
            }
            print_message("  +-%.0f%%: %5.1f, %4.1f runs", 100 * widths[i],
                          covered / (TRIALS / 100.0), (double)runs / TRIALS);
            assert_true(covered >= 0.94 * TRIALS);
        }
        print_message("\n");
    }
}

/* Expected values are from scipy.stats.mannwhitneyu 1.x. */
static void mann_whitney_as_scipy(void **unused)
{
    const double a[] = {1, 2, 3}, b[] = {4, 5, 6};
    const double c[] = {1, 5, 7, 2}, d[] = {3, 4, 9, 10, 11};
    const double tied_a[] = {1, 2, 2, 3, 5}, tied_b[] = {2, 3, 4, 4, 6, 7};
    double many_a[25], many_b[30];

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
        cmocka_unit_test(student_as_scipy),
        cmocka_unit_test(summary_of_known_values),
        cmocka_unit_test(intervals_as_scipy),
        cmocka_unit_test(signs_of_tiny_differences),
        cmocka_unit_test(intervals_cover_the_median),
        cmocka_unit_test(intervals_cover_after_stopping),
        cmocka_unit_test(mann_whitney_as_scipy),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
