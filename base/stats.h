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
    /* An interval that holds the median of all such runs with probability coverage. From 6 values
     * on it lies between two of them, whose binomial coverage, at least 0.95, needs no assumption.
     * 3 to 5 values cannot give that (the least and the largest of 3 cover 0.75): there it is
     * Student's interval of the logarithms (of the values when one is not positive), 0.95 for
     * normal and log-normal data. With fewer: minimum and maximum, coverage 0.5 or 0. */
    double low, high, coverage;
};

struct stats_summary stats_summarise(const double *values, size_t count);

/* How far the mean of the last third lies from the first third, as a share of the whole mean:
 * +0.1 is 10% faster at the end. 0 with fewer than 6 values. */
double stats_drift(const double *values, size_t count);

/* Two-sided p of the Mann-Whitney U test (exact for small counts without ties, else normal with
 * tie correction). 1 when either side is empty. */
double stats_mann_whitney_p(const double *a, size_t a_count, const double *b, size_t b_count);

#endif
