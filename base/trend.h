/* SPDX-License-Identifier: Apache-2.0
 *
 * trend: do values measured one after the other rise or fall? Mann-Kendall's test, which asks only
 * whether later ones tend to be larger, and Theil-Sen's line, which one outlier does not bend.
 * Pure; any thread.
 */
#ifndef IOBENCH_BASE_TREND_H
#define IOBENCH_BASE_TREND_H

#include <stddef.h>

enum { TREND_LEAST = 5 }; /* of fewer values p is never below 0.05 */

struct trend {
    double p;     /* two-sided; 1 with fewer than 2 values */
    double drift; /* of that line from the first value to the last, as a share of the median; NAN
                     with fewer than 2 values or beyond 2,000 */
};

struct trend trend_test(const double *values, size_t count);

#endif
