/* SPDX-License-Identifier: Apache-2.0 */
#include "base/paired.h"

#include "base/memory.h"
#include "base/stats.h"
#include "base/student.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

/* Of all 2^n ways to swap A and B within pairs, count those with a mean at least as far from 0.
 * Signs change one at a time (Gray code); the first never does, since the mirrored half is equally
 * far. */
static double flip_signs(const double *logs, size_t count)
{
    double sum = 0, largest = 0;
    uint32_t signs = 0, ways = UINT32_C(1) << (count - 1), as_far = 0;

    for (size_t i = 0; i < count; i++) {
        sum += logs[i];
        largest += fabs(logs[i]);
    }
    const double wanted = fabs(sum) - 1e-12 * largest; /* equal sums differ by rounding */
    for (uint32_t way = 1;; way++) {
        as_far += fabs(sum) >= wanted;
        if (way == ways)
            break;
        const uint32_t bit = (uint32_t)__builtin_ctz(way);
        sum += (signs >> bit & 1 ? 2 : -2) * logs[bit + 1];
        signs ^= UINT32_C(1) << bit;
    }
    return (double)as_far / ways;
}

static void test_logs(struct paired *paired, const double *logs, bool until)
{
    const double count = (double)paired->pairs, nominal = until ? STATS_UNTIL : STATS_COVERAGE;
    double mean = 0, squares = 0;

    for (size_t i = 0; i < paired->pairs; i++)
        mean += logs[i] / count;
    for (size_t i = 0; i < paired->pairs; i++)
        squares += (logs[i] - mean) * (logs[i] - mean);
    paired->ratio = exp(mean);
    if (paired->pairs < 2)
        return;
    const double error = sqrt(squares / (count - 1) / count);
    const double half = error * student_quantile(1 - nominal, paired->pairs - 1);
    paired->low = exp(mean - half);
    paired->high = exp(mean + half);
    paired->coverage = STATS_COVERAGE;
    if (paired->pairs <= PAIRED_FLIPS_MAX)
        paired->sign_flip_p = flip_signs(logs, paired->pairs);
    /* Equal ratios have no spread to test against. */
    const double p =
        error > 1e-12 ? student_p(mean / error, paired->pairs - 1) : paired->sign_flip_p;
    paired->p = fmin(1, p * (1 - STATS_COVERAGE) / (1 - nominal));
}

static int ascending(const void *one, const void *other)
{
    const double a = *(const double *)one, b = *(const double *)other;

    return (a > b) - (a < b);
}

/* Mean without the lowest and the highest quarter. Sorts the values. */
static double interquartile_mean(double *values, size_t count)
{
    const size_t quarter = count / 4;
    double sum = 0;

    qsort(values, count, sizeof *values, ascending);
    for (size_t i = quarter; i < count - quarter; i++)
        sum += values[i];
    return sum / (double)(count - 2 * quarter);
}

struct paired paired_test(const double *a, const double *b, size_t count, size_t turns, bool until)
{
    struct paired paired = {.ratio = NAN, .low = NAN, .high = NAN, .p = NAN, .sign_flip_p = NAN};
    double *logs = memory_array(count < PAIRED_MAX ? count + 1 : PAIRED_MAX, sizeof *logs);

    if (!logs) /* nothing is known */
        return paired;

    /* A pair's logarithm replaces those of its turns: never more pairs than turns so far. */
    for (size_t i = 0; i + turns <= count && i + turns <= PAIRED_MAX; i += turns) {
        double *pair = logs + paired.pairs;
        size_t known = 0;
        for (size_t k = i; k < i + turns; k++)
            if (a[k] > 0 && b[k] > 0)
                pair[known++] = log(b[k] / a[k]);
        if (known == 0)
            continue;
        *pair = interquartile_mean(pair, known);
        paired.pairs++;
    }
    if (paired.pairs)
        test_logs(&paired, logs, until);
    free(logs);
    return paired;
}

/* Multiply the smallest p by count, the next by count - 1, ..., and keep them monotonic. Counts are
 * small. */
void paired_holm(double *p, size_t count)
{
    double least = 0;
    bool done[PAIRED_HOLM_MAX] = {false};

    for (size_t left = count; left > 0; left--) {
        size_t next = count;
        for (size_t i = 0; i < count; i++)
            if (!done[i] && (next == count || p[i] < p[next]))
                next = i;
        done[next] = true;
        least = fmax(least, fmin(1, p[next] * (double)left));
        p[next] = least;
    }
}
