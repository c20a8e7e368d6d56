/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pace.h"

#include <stdbool.h>

void pace_add(struct pace *pace, uint64_t ns, uint64_t amount)
{
    pace->last = (struct pace_point){ns, amount};
    if (pace->count && amount < pace->points[pace->count - 1].amount + pace->step)
        return;
    if (pace->count == PACE_POINTS) { /* keep every second one */
        const uint64_t span = pace->points[PACE_POINTS - 1].amount - pace->points[0].amount;
        for (uint32_t i = 0; i < PACE_POINTS / 2; i++)
            pace->points[i] = pace->points[2 * i];
        pace->count = PACE_POINTS / 2;
        pace->step = span / (PACE_POINTS / 2);
    }
    pace->points[pace->count++] = pace->last;
}

/* Interpolate between the points around `at`: the amount at a time (by_ns), or the time of an
 * amount. */
static uint64_t look_up(const struct pace *pace, uint64_t at, bool by_ns)
{
    uint64_t key_before = 0, value_before = 0;

    for (uint32_t i = 0; i <= pace->count; i++) {
        const struct pace_point point = i < pace->count ? pace->points[i] : pace->last;
        const uint64_t key = by_ns ? point.ns : point.amount;
        const uint64_t value = by_ns ? point.amount : point.ns;
        if (key >= at && i && at > key_before)
            return value_before +
                   (uint64_t)((double)(at - key_before) / (double)(key - key_before) *
                              (double)(value - value_before));
        if (key >= at)
            return value;
        key_before = key;
        value_before = value;
    }
    return by_ns ? pace->last.amount : pace->last.ns;
}

uint64_t pace_when(const struct pace *pace, uint64_t amount)
{
    return look_up(pace, amount, false);
}

uint64_t pace_amount(const struct pace *pace, uint64_t ns)
{
    return look_up(pace, ns, true);
}
