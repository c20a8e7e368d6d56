/* SPDX-License-Identifier: Apache-2.0
 *
 * pace: how an amount grew over time, in a fixed number of points. One thread at a time.
 */
#ifndef IOBENCH_BASE_PACE_H
#define IOBENCH_BASE_PACE_H

#include <stdint.h>

enum { PACE_POINTS = 128 };

struct pace_point {
    uint64_t ns, amount;
};

/* Empty when zeroed. */
struct pace {
    uint32_t count;
    uint64_t step; /* minimum distance between points */
    struct pace_point last, points[PACE_POINTS];
};

/* amount: cumulative. Neither argument decreases. */
void pace_add(struct pace *pace, uint64_t ns, uint64_t amount);

/* Interpolate linearly; the end points beyond the ends; 0 if empty. */
uint64_t pace_when(const struct pace *pace, uint64_t amount);
uint64_t pace_amount(const struct pace *pace, uint64_t ns);

#endif
