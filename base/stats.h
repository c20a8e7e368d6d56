/* SPDX-License-Identifier: Apache-2.0
 *
 * stats: the summary of a few repeated runs.
 */
#ifndef IOBENCH_BASE_STATS_H
#define IOBENCH_BASE_STATS_H

#include <stddef.h>

struct stats_summary {
    size_t count;
    double minimum, median, mean, maximum;
    /* Interval that contains the median of all such runs with probability `coverage`. From 6 values
     * on its ends are two of them, whose binomial coverage, at least 0.95, needs no assumption. 3
     * to 5 values cannot give that (minimum and maximum of 3 cover 0.75): there it is Student's
     * interval of the logarithms (of the values if one is not positive), 0.95 for normal and log-
     * normal data. Below that: minimum and maximum, coverage 0.5 or 0. */
    double low, high, coverage;
};

struct stats_summary stats_summarise(const double *values, size_t count);

/* The same if measuring stopped as soon as the interval was narrow enough. Values that are close by
 * chance stop it early, so a 0.95 interval would cover less; it is computed for STATS_UNTIL, which
 * covers 0.95 if the first look is at STATS_UNTIL_FIRST values (simulated in
 * tests/unit/test_stats.c). Order statistics give that from 7 values on. */
struct stats_summary stats_summarise_until(const double *values, size_t count);

#define STATS_COVERAGE 0.95
#define STATS_UNTIL 0.98
enum { STATS_UNTIL_FIRST = 5 };

/* Sort in ascending order. */
void stats_sort(double *values, size_t count);

/* Return half the interval's width as a share of the median; NAN if there is none. */
double stats_half_width(const struct stats_summary *summary);

/* Return the two-sided p of the Mann-Whitney U test (exact for small counts without ties, else
 * normal with tie correction); 1 if either side is empty. */
double stats_mann_whitney_p(const double *a, size_t a_count, const double *b, size_t b_count);

#endif
