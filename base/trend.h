/* SPDX-License-Identifier: Apache-2.0
 *
 * trend: do successive values rise or fall? Mann-Kendall's test, which asks only whether later
 * values tend to be larger, and Theil-Sen's line, which is robust to outliers. Pure; any thread.
 */
#ifndef IOBENCH_BASE_TREND_H
#define IOBENCH_BASE_TREND_H

#include <stddef.h>

enum { TREND_LEAST = 5 }; /* with fewer values p is never below 0.05 */

struct trend {
    double p;     /* two-sided; 1 with fewer than 2 values */
    double drift; /* change along that line from the first value to the last, as a share of the
                     median; NAN with fewer than 2 values or beyond 2,000 */
};

struct trend trend_test(const double *values, size_t count);

#endif
