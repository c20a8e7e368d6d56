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
    /* 95% percentile-bootstrap interval of the median (10,000 resamples, fixed seed); equal to
     * minimum and maximum when there are fewer than 3 values. */
    double low, high;
};

struct stats_summary stats_summarise(const double *values, size_t count);

/* How far the mean of the last third lies from the first third, as a share of the whole mean:
 * +0.1 is 10% faster at the end. 0 with fewer than 6 values. */
double stats_drift(const double *values, size_t count);

/* Two-sided p of the Mann-Whitney U test (exact for small counts without ties, else normal with
 * tie correction). 1 when either side is empty. */
double stats_mann_whitney_p(const double *a, size_t a_count, const double *b, size_t b_count);

#endif
