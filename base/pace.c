/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pace.h"

static void halve(struct pace *pace)
{
    const uint64_t span = pace->points[PACE_POINTS - 1].amount - pace->points[0].amount;

    for (uint32_t i = 0; i < PACE_POINTS / 2; i++)
        pace->points[i] = pace->points[2 * i];
    pace->count = PACE_POINTS / 2;
    pace->step = span / (PACE_POINTS / 2);
}

void pace_add(struct pace *pace, uint64_t ns, uint64_t amount)
{
    pace->last = (struct pace_point){ns, amount};
    if (pace->count && amount < pace->points[pace->count - 1].amount + pace->step)
        return;
    if (pace->count == PACE_POINTS)
        halve(pace);
    pace->points[pace->count++] = pace->last;
}

static uint64_t between(uint64_t at, uint64_t from, uint64_t to, uint64_t low, uint64_t high)
{
    const double share = to > from ? (double)(at - from) / (double)(to - from) : 0;

    return low + (uint64_t)(share * (double)(high - low));
}

/* The point behind that many; the last one behind all. */
static struct pace_point point_at(const struct pace *pace, uint32_t i)
{
    return i < pace->count ? pace->points[i] : pace->last;
}

uint64_t pace_when(const struct pace *pace, uint64_t amount)
{
    struct pace_point before = point_at(pace, 0);

    for (uint32_t i = 0; i <= pace->count; i++) {
        const struct pace_point point = point_at(pace, i);
        if (point.amount >= amount)
            return i && amount > before.amount
                       ? between(amount, before.amount, point.amount, before.ns, point.ns)
                       : point.ns;
        before = point;
    }
    return pace->last.ns;
}

uint64_t pace_amount(const struct pace *pace, uint64_t ns)
{
    struct pace_point before = point_at(pace, 0);

    for (uint32_t i = 0; i <= pace->count; i++) {
        const struct pace_point point = point_at(pace, i);
        if (point.ns >= ns)
            return i && ns > before.ns
                       ? between(ns, before.ns, point.ns, before.amount, point.amount)
                       : point.amount;
        before = point;
    }
    return pace->last.amount;
}
