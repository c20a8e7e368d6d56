/* SPDX-License-Identifier: Apache-2.0
 * Percentiles against the sorted values themselves. */
#include "tests/unit/unit.h"

#include "base/random.h"
#include "base/stats.h"

#include <math.h>
#include <stdlib.h>

enum { MOST = 2000 };
static const double fractions[] = {0, 0.001, 0.5, 0.9, 0.99, 0.999, 1};
enum { FRACTIONS = sizeof fractions / sizeof *fractions };

static int compare_values(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Return the smallest value that at least this share of all values does not exceed. */
static uint64_t exact(const uint64_t *sorted, uint64_t count, double fraction)
{
    uint64_t at = 0;

    while ((double)(at + 1) + 1e-9 < fraction * (double)count)
        at++;
    return sorted[at];
}

/* Small values have a bucket each, so they are exact. */
static void small_values_are_exact(void **unused)
{
    for (uint64_t count = 1; count <= 64; count++) {
        struct histogram histogram = {0};
        uint64_t values[64];
        for (uint64_t i = 0; i < count; i++)
            histogram_add(&histogram, values[i] = count - i);
        qsort(values, count, sizeof *values, compare_values);
        for (int i = 0; i < FRACTIONS; i++)
            assert_int_equal(histogram_quantile(&histogram, fractions[i]),
                             exact(values, count, fractions[i]));
    }
}

/* Two values far apart: an off-by-one rank gives the other one. */
static void ranks_are_not_off_by_one(void **unused)
{
    struct histogram histogram = {0};

    for (int i = 0; i < 990; i++)
        histogram_add(&histogram, 10);
    for (int i = 0; i < 10; i++)
        histogram_add(&histogram, 50);
    assert_int_equal(histogram_quantile(&histogram, 0.99), 10);
    assert_int_equal(histogram_quantile(&histogram, 0.9901), 50);
    assert_int_equal(histogram_quantile(&histogram, 0.999), 50);
    histogram_add(&histogram, 50);
    assert_int_equal(histogram_quantile(&histogram, 0.99), 50);
}

static void large_values_within_their_bucket(void **unused)
{
    struct random random = random_start(5);
    struct histogram histogram = {0}, parts[3] = {{0}}, merged = {0};
    uint64_t values[MOST], sum = 0;

    for (int i = 0; i < MOST; i++) {
        values[i] = (uint64_t)exp(5 + 18 * random_unit(&random));
        histogram_add(&histogram, values[i]);
        histogram_add(&parts[i % 3], values[i]);
        sum += values[i];
    }
    for (int i = 0; i < 3; i++)
        histogram_merge(&merged, &parts[i]);
    qsort(values, MOST, sizeof *values, compare_values);
    assert_int_equal(histogram.count, MOST);
    assert_int_equal(histogram.sum, sum);
    assert_memory_equal(&merged, &histogram, sizeof merged);
    assert_int_equal(histogram_quantile(&histogram, 1), values[MOST - 1]);
    for (int i = 0; i < FRACTIONS; i++) {
        const double wanted = (double)exact(values, MOST, fractions[i]);
        const double found = (double)histogram_quantile(&histogram, fractions[i]);
        assert_true(fabs(found / wanted - 1) <= 0.016);
    }
}

static void nothing_is_0(void **unused)
{
    const struct histogram empty = {0};

    assert_int_equal(histogram_quantile(&empty, 0.5), 0);
}

/* Runs of equal values, in two histograms by turns, against one value at a time. */
static void runs_add_up(void **unused)
{
    static const uint64_t values[] = {7, 7, 7, 900, 900, 7, 40000, 40000, 900};
    struct histogram single[2] = {0}, runs[2] = {0};
    struct histogram_run run = {0};

    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        histogram_add(&single[i / 2 % 2], values[i]);
        histogram_run_add(&run, &runs[i / 2 % 2], values[i]);
    }
    histogram_run_end(&run);
    histogram_run_end(&run);
    histogram_add_many(&runs[0], 1, 0);
    assert_memory_equal(runs, single, sizeof runs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_values_are_exact),
        cmocka_unit_test(ranks_are_not_off_by_one),
        cmocka_unit_test(large_values_within_their_bucket),
        cmocka_unit_test(nothing_is_0),
        cmocka_unit_test(runs_add_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
