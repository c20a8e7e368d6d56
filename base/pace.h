/* SPDX-License-Identifier: Apache-2.0
 *
 * pace: how an amount grew over time, in a fixed number of points however many there were. One
 * thread at a time.
 */
#ifndef IOBENCH_BASE_PACE_H
#define IOBENCH_BASE_PACE_H

#include <stdint.h>

enum { PACE_POINTS = 128 };

struct pace_point {
    uint64_t ns, amount;
};

/* Zeroed it is empty. */
struct pace {
    uint32_t count;
    uint64_t step; /* a point so much beyond the one before is kept */
    struct pace_point last, points[PACE_POINTS];
};

/* amount: all so far. Neither goes back. */
void pace_add(struct pace *pace, uint64_t ns, uint64_t amount);

/* On the lines between the points; the ends beyond them. 0 when it is empty. */
uint64_t pace_when(const struct pace *pace, uint64_t amount);
uint64_t pace_amount(const struct pace *pace, uint64_t ns);

#endif
