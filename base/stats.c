/* SPDX-License-Identifier: Apache-2.0 */
#include "base/stats.h"

#include "base/student.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { EXACT_MAX = 20 };

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void stats_sort(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare_doubles);
}

static double median_of_sorted(const double *values, size_t count)
{
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* The median lies between the k-th smallest and the k-th largest value unless fewer than k values
 * fall on one side of it: coverage = 1 - 2 P(Bin(count, 1/2) < k) (Conover 1999, 3.2). Finds the
 * largest k with the wanted coverage. */
static void set_ordered_interval(struct stats_summary *summary, const double *sorted, double wanted)
{
    const size_t count = summary->count;
    double log_chance = -(double)count * log(2), below = exp(log_chance); /* P(Bin < 1) */
    size_t k = 1;

    for (;; k++) {
        log_chance += log((double)(count - k + 1) / (double)k);
        double next = below + exp(log_chance);
        if (k >= (count + 1) / 2 || 1 - 2 * next < wanted)
            break;
        below = next;
    }
    summary->low = sorted[k - 1];
    summary->high = sorted[count - k];
    summary->coverage = 1 - 2 * below;
}

static void set_student_interval(struct stats_summary *summary, const double *sorted, double wanted)
{
    const size_t count = summary->count;
    const bool logs = sorted[0] > 0;
    double mean = 0, squares = 0;

    for (size_t i = 0; i < count; i++)
        mean += (logs ? log(sorted[i]) : sorted[i]) / (double)count;
    for (size_t i = 0; i < count; i++) {
        double from_mean = (logs ? log(sorted[i]) : sorted[i]) - mean;
        squares += from_mean * from_mean;
    }
    double half = student_quantile(1 - wanted, count - 1) *
                  sqrt(squares / (double)(count - 1) / (double)count);
    summary->low = logs ? exp(mean - half) : mean - half;
    summary->high = logs ? exp(mean + half) : mean + half;
    summary->coverage = wanted;
}

/* Do minimum and maximum of `count` values contain the median with the wanted probability? */
static bool is_enough_for_order(size_t count, double wanted)
{
    return 1 - 2 * exp2(-(double)count) >= wanted;
}

static struct stats_summary summarise(const double *values, size_t count, double wanted)
{
    struct stats_summary summary = {.count = count};

    if (count == 0)
        return summary;
    double *sorted = malloc(count * sizeof *sorted);
    for (size_t i = 0; i < count; i++)
        summary.mean += values[i] / (double)count;
    if (!sorted) {
        /* NAN without memory for it, never a wrong number. */
        summary.minimum = summary.median = summary.maximum = summary.low = summary.high = NAN;
        return summary;
    }
    memcpy(sorted, values, count * sizeof *sorted);
    stats_sort(sorted, count);
    summary.minimum = summary.low = sorted[0];
    summary.maximum = summary.high = sorted[count - 1];
    summary.median = median_of_sorted(sorted, count);
    summary.coverage = count == 2 ? 0.5 : 0;
    if (is_enough_for_order(count, wanted))
        set_ordered_interval(&summary, sorted, wanted);
    else if (count >= 3)
        set_student_interval(&summary, sorted, wanted);
    free(sorted);
    return summary;
}

struct stats_summary stats_summarise(const double *values, size_t count)
{
    return summarise(values, count, STATS_COVERAGE);
}

struct stats_summary stats_summarise_until(const double *values, size_t count)
{
    struct stats_summary summary = summarise(values, count, STATS_UNTIL);

    if (summary.coverage >= STATS_UNTIL)
        summary.coverage = STATS_COVERAGE;
    return summary;
}

double stats_half_width(const struct stats_summary *summary)
{
    return summary->coverage >= STATS_COVERAGE && summary->median > 0
               ? (summary->high - summary->low) / 2 / summary->median
               : NAN;
}

struct ranked {
    double value;
    bool of_a;
};

static int compare_ranked(const void *a, const void *b)
{
    return compare_doubles(&((const struct ranked *)a)->value, &((const struct ranked *)b)->value);
}

/* Two-sided p from the exact distribution of U without ties. ways[i][u] counts the orders of i
 * values of a and j of b with that U; the largest value is from a (it beats all j) or from b: f(i,
 * j, u) = f(i-1, j, u-j) + f(i, j-1, u) (Mann, Whitney 1947). Doubles hold the counts exactly:
 * C(40, 20) is 1.4e11. */
static double exact_p(size_t a_count, size_t b_count, double u)
{
    size_t width = a_count * b_count + 1;
    double *ways = calloc((a_count + 1) * width, sizeof *ways), tail = 0, all = 0;

    if (!ways)
        return 1;
    for (size_t i = 0; i <= a_count; i++)
        ways[i * width] = 1;
    for (size_t j = 1; j <= b_count; j++)
        for (size_t i = 1; i <= a_count; i++)
            for (size_t k = j; k < width; k++)
                ways[i * width + k] += ways[(i - 1) * width + k - j];
    if (u > (double)(width - 1) / 2)
        u = (double)(width - 1) - u;
    for (size_t k = 0; k < width; k++) {
        all += ways[a_count * width + k];
        tail += (double)k <= u ? ways[a_count * width + k] : 0;
    }
    free(ways);
    return fmin(1, 2 * tail / all);
}

/* Normal approximation with continuity and tie correction (Lehmann 1975). ties: the sum of
 * t^3 - t over the groups of t equal values. */
static double normal_p(size_t a_count, size_t b_count, double u, double ties)
{
    double m = (double)a_count, n = (double)b_count, all = m + n;
    double variance = m * n / 12 * (all + 1 - ties / (all * (all - 1)));
    double distance = fabs(u - m * n / 2) - 0.5;

    if (variance <= 0 || distance <= 0)
        return 1;
    return fmin(1, erfc(distance / sqrt(2 * variance)));
}

double stats_mann_whitney_p(const double *a, size_t a_count, const double *b, size_t b_count)
{
    size_t count = a_count + b_count;
    double rank_sum = 0, ties = 0;

    if (a_count == 0 || b_count == 0)
        return 1;
    struct ranked *ranked = malloc(count * sizeof *ranked);
    if (!ranked)
        return 1;
    for (size_t i = 0; i < count; i++)
        ranked[i] = (struct ranked){i < a_count ? a[i] : b[i - a_count], i < a_count};
    qsort(ranked, count, sizeof *ranked, compare_ranked);
    for (size_t first = 0, end; first < count; first = end) {
        for (end = first; end < count && ranked[end].value == ranked[first].value; end++)
            ;
        double equal = (double)(end - first);
        ties += equal * equal * equal - equal;
        for (size_t i = first; i < end; i++)
            rank_sum += ranked[i].of_a ? (double)(first + 1 + end) / 2 : 0;
    }
    free(ranked);
    double u = rank_sum - (double)a_count * ((double)a_count + 1) / 2;
    if (ties == 0 && a_count <= EXACT_MAX && b_count <= EXACT_MAX)
        return exact_p(a_count, b_count, u);
    return normal_p(a_count, b_count, u, ties);
}
