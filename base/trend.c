/* SPDX-License-Identifier: Apache-2.0 */
#include "base/trend.h"

#include "base/stats.h"

#include <math.h>
#include <stdlib.h>

enum { EXACT_MAX = 30, SLOPES_MAX = 2000 };

static double median_of(double *values, size_t count)
{
    stats_sort(values, count);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* Two-sided p for this many descending pairs, from the number of permutations with k inversions:
 * the n-th value can precede 0 to n - 1 of the others. Doubles hold shares of all. */
static double exact_p(size_t count, size_t falling)
{
    enum { PAIRS_MAX = EXACT_MAX * (EXACT_MAX - 1) / 2 };
    double share[PAIRS_MAX + 1] = {1}, next[PAIRS_MAX + 1], tail = 0;
    const size_t pairs = count * (count - 1) / 2;

    for (size_t n = 2; n <= count; n++) {
        double window = 0;
        for (size_t k = 0; k <= pairs; k++) {
            window += share[k] - (k >= n ? share[k - n] : 0);
            next[k] = window / (double)n;
        }
        for (size_t k = 0; k <= pairs; k++)
            share[k] = next[k];
    }
    if (falling > pairs - falling)
        falling = pairs - falling;
    for (size_t k = 0; k <= falling; k++)
        tail += share[k];
    return fmin(1, 2 * tail);
}

/* With ties or many values: the normal distribution, its variance reduced for ties (Kendall
 * 1970). */
static double normal_p(const double *values, size_t count, double sum)
{
    const double n = (double)count;
    double variance = n * (n - 1) * (2 * n + 5) / 18;

    for (size_t i = 0; i < count; i++) {
        double equal = 0, before = 0;
        for (size_t k = 0; k < count; k++) {
            equal += values[k] == values[i];
            before += k < i && values[k] == values[i];
        }
        if (before == 0)
            variance -= equal * (equal - 1) * (2 * equal + 5) / 18;
    }
    return variance > 0 ? erfc(fabs(sum) / sqrt(2 * variance)) : 1;
}

static double drift_of(const double *values, size_t count)
{
    const size_t pairs = count * (count - 1) / 2;
    double *work = count <= SLOPES_MAX ? malloc((pairs + 1) * sizeof *work) : NULL, drift = NAN;
    size_t used = 0;

    if (!work)
        return NAN;
    for (size_t i = 0; i < count; i++)
        for (size_t k = i + 1; k < count; k++)
            work[used++] = (values[k] - values[i]) / (double)(k - i);
    const double slope = median_of(work, pairs);
    for (size_t i = 0; i < count; i++) /* more pairs than values except for 2: one more fits */
        work[i] = values[i];
    const double middle = median_of(work, count);
    if (middle > 0)
        drift = slope * (double)(count - 1) / middle;
    free(work);
    return drift;
}

struct trend trend_test(const double *values, size_t count)
{
    struct trend trend = {.p = 1, .drift = NAN};
    size_t rising = 0, falling = 0;

    if (count < 2)
        return trend;
    for (size_t i = 0; i < count; i++)
        for (size_t k = i + 1; k < count; k++) {
            rising += values[k] > values[i];
            falling += values[k] < values[i];
        }
    if (count <= EXACT_MAX && rising + falling == count * (count - 1) / 2)
        trend.p = exact_p(count, falling);
    else
        trend.p = normal_p(values, count, (double)rising - (double)falling);
    trend.drift = drift_of(values, count);
    return trend;
}
