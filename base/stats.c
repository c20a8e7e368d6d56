/* SPDX-License-Identifier: Apache-2.0 */
#include "base/stats.h"

#include "base/memory.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MANN_WHITNEY_EXACT_MAX = 20, TREND_EXACT_MAX = 30, TREND_SLOPES_MAX = 2000 };

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
    if (1 - 2 * exp2(-(double)count) >= wanted) { /* minimum and maximum suffice */
        /* The median lies between the k-th smallest and the k-th largest value unless fewer than k
         * values fall on one side of it: coverage = 1 - 2 P(Bin(count, 1/2) < k) (Conover 1999,
         * 3.2). Find the largest k with the wanted coverage. */
        double log_chance = -(double)count * log(2), below = exp(log_chance); /* P(Bin < 1) */
        size_t k = 1;
        for (;; k++) {
            log_chance += log((double)(count - k + 1) / (double)k);
            double next = below + exp(log_chance);
            if (k >= (count + 1) / 2 || 1 - 2 * next < wanted)
                break;
            below = next;
        }
        summary.low = sorted[k - 1];
        summary.high = sorted[count - k];
        summary.coverage = 1 - 2 * below;
    } else if (count >= 3) { /* Student's interval */
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
        summary.low = logs ? exp(mean - half) : mean - half;
        summary.high = logs ? exp(mean + half) : mean + half;
        summary.coverage = wanted;
    }
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

double stats_mann_whitney_p(const double *a, size_t a_count, const double *b, size_t b_count)
{
    const size_t count = a_count + b_count;
    double rank_sum = 0, ties = 0; /* ties: the sum of t^3 - t over the groups of t equal values */

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
    if (ties > 0 || a_count > MANN_WHITNEY_EXACT_MAX || b_count > MANN_WHITNEY_EXACT_MAX) {
        /* Normal approximation with continuity and tie correction (Lehmann 1975). */
        const double m = (double)a_count, n = (double)b_count, all = m + n;
        const double variance = m * n / 12 * (all + 1 - ties / (all * (all - 1)));
        const double distance = fabs(u - m * n / 2) - 0.5;
        return variance <= 0 || distance <= 0 ? 1 : fmin(1, erfc(distance / sqrt(2 * variance)));
    }
    /* Exact, from the distribution of U without ties. ways[i][u] counts the orders of i values of a
     * and j of b with that U; the largest value is from a (it beats all j) or from b: f(i, j, u) =
     * f(i-1, j, u-j) + f(i, j-1, u) (Mann, Whitney 1947). Doubles hold the counts exactly: C(40,
     * 20) is 1.4e11. */
    const size_t width = a_count * b_count + 1;
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

/* Abramowitz and Stegun 26.7.3 and 26.7.4: for whole degrees of freedom P(|T| < t) is a finite sum
 * in the sine and cosine of atan(t / sqrt(freedom)). */
double student_p(double t, size_t freedom)
{
    const double angle = atan(fabs(t) / sqrt((double)freedom));
    const double sine = sin(angle), cosine = cos(angle);
    const size_t first = freedom % 2 ? 1 : 0; /* the power of the cosine in the first term */
    double term = first ? cosine : 1, sum = 0;

    assert(freedom >= 1);
    if (isnan(t))
        return NAN;
    for (size_t power = first; power + 2 <= freedom; power += 2) {
        sum += term;
        term *= cosine * cosine * (double)(power + 1) / (double)(power + 2);
    }
    return fmax(0, 1 - (first ? (angle + sine * sum) * M_2_PI : sine * sum));
}

double student_quantile(double p, size_t freedom)
{
    double low = 0, high = 1;

    while (student_p(high, freedom) > p)
        high *= 2;
    while (high - low > 1e-14 * high) {
        double middle = (low + high) / 2;
        if (student_p(middle, freedom) > p)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}

struct paired paired_test(const double *a, const double *b, size_t count, size_t turns, bool until)
{
    struct paired paired = {.ratio = NAN, .low = NAN, .high = NAN, .p = NAN, .sign_flip_p = NAN};
    double *logs = memory_array(count < PAIRED_MAX ? count + 1 : PAIRED_MAX, sizeof *logs);
    double mean = 0, squares = 0;

    assert(turns >= 1);
    if (!logs) /* nothing is known */
        return paired;
    /* A pair's logarithm is the mean over its turns without the lowest and highest quarter. It
     * overwrites logs in place: there are never more pairs than turns read so far. */
    for (size_t i = 0; i + turns <= count && i + turns <= PAIRED_MAX; i += turns) {
        double *pair = logs + paired.pairs, sum = 0;
        size_t known = 0;
        for (size_t k = i; k < i + turns; k++)
            if (a[k] > 0 && b[k] > 0)
                pair[known++] = log(b[k] / a[k]);
        if (known == 0)
            continue;
        const size_t quarter = known / 4;
        stats_sort(pair, known);
        for (size_t k = quarter; k < known - quarter; k++)
            sum += pair[k];
        *pair = sum / (double)(known - 2 * quarter);
        paired.pairs++;
    }
    const double pairs = (double)paired.pairs, nominal = until ? STATS_UNTIL : STATS_COVERAGE;
    for (size_t i = 0; i < paired.pairs; i++)
        mean += logs[i] / pairs;
    for (size_t i = 0; i < paired.pairs; i++)
        squares += (logs[i] - mean) * (logs[i] - mean);
    if (paired.pairs)
        paired.ratio = exp(mean);
    if (paired.pairs >= 2) {
        const double error = sqrt(squares / (pairs - 1) / pairs);
        const double half = error * student_quantile(1 - nominal, paired.pairs - 1);
        paired.low = exp(mean - half);
        paired.high = exp(mean + half);
        paired.coverage = STATS_COVERAGE;
        if (paired.pairs <= PAIRED_FLIPS_MAX) {
            /* Of all 2^n ways to swap A and B within pairs, count those with a mean at least as far
             * from 0. Signs change one at a time (Gray code); the first never does, since the
             * mirrored half is equally far. */
            double sum = 0, largest = 0;
            uint32_t signs = 0, ways = UINT32_C(1) << (paired.pairs - 1), as_far = 0;
            for (size_t i = 0; i < paired.pairs; i++) {
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
            paired.sign_flip_p = (double)as_far / ways;
        }
        /* Equal ratios have no spread to test against. */
        const double p =
            error > 1e-12 ? student_p(mean / error, paired.pairs - 1) : paired.sign_flip_p;
        paired.p = fmin(1, p * (1 - STATS_COVERAGE) / (1 - nominal));
    }
    free(logs);
    return paired;
}

/* Multiply the smallest p by count, the next by count - 1, ..., and keep them monotonic. */
void paired_holm(double *p, size_t count)
{
    double *known[PAIRED_HOLM_MAX], least = 0;
    size_t tested = 0, left = 0;

    for (size_t i = 0; i < count; i++)
        tested += isfinite(p[i]) ? 1 : 0;
    for (size_t i = 0; i < count; i++)
        if (isfinite(p[i]) && tested > PAIRED_HOLM_MAX)
            p[i] = fmin(1, p[i] * (double)tested);
        else if (isfinite(p[i]))
            known[left++] = &p[i];
    for (; left > 0; left--) {
        size_t next = 0;
        for (size_t i = 1; i < left; i++)
            if (*known[i] < *known[next])
                next = i;
        least = fmax(least, fmin(1, *known[next] * (double)left));
        *known[next] = least;
        known[next] = known[left - 1];
    }
}

/* Two-sided p for this many descending pairs, from the number of permutations with k inversions:
 * the n-th value can precede 0 to n - 1 of the others. Doubles hold shares of all. */
static double exact_trend_p(size_t count, size_t falling)
{
    enum { PAIRS_MAX = TREND_EXACT_MAX * (TREND_EXACT_MAX - 1) / 2 };
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

struct trend trend_test(const double *values, size_t count)
{
    const size_t pairs = count < 2 ? 0 : count * (count - 1) / 2;
    const double n = (double)count;
    struct trend trend = {.p = 1, .drift = NAN};
    size_t rising = 0, falling = 0, used = 0;

    if (count < 2)
        return trend;
    for (size_t i = 0; i < count; i++)
        for (size_t k = i + 1; k < count; k++) {
            rising += values[k] > values[i];
            falling += values[k] < values[i];
        }
    if (count <= TREND_EXACT_MAX && rising + falling == pairs) {
        trend.p = exact_trend_p(count, falling);
    } else { /* the normal distribution, its variance reduced for ties (Kendall 1970) */
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
        if (variance > 0)
            trend.p = erfc(fabs((double)rising - (double)falling) / sqrt(2 * variance));
    }
    double *work = count <= TREND_SLOPES_MAX ? malloc((pairs + 1) * sizeof *work) : NULL;
    if (!work)
        return trend;
    for (size_t i = 0; i < count; i++)
        for (size_t k = i + 1; k < count; k++)
            work[used++] = (values[k] - values[i]) / (double)(k - i);
    stats_sort(work, pairs);
    const double slope = median_of_sorted(work, pairs);
    memcpy(work, values,
           count * sizeof *work); /* more pairs than values except for 2: one more fits */
    stats_sort(work, count);
    const double middle = median_of_sorted(work, count);
    if (middle > 0)
        trend.drift = slope * (n - 1) / middle;
    free(work);
    return trend;
}

/* ---- histogram ---- */

void histogram_add(struct histogram *histogram, uint64_t value)
{
    histogram_add_many(histogram, value, 1);
}

void histogram_add_many(struct histogram *histogram, uint64_t value, uint64_t count)
{
    if (count == 0)
        return;
    if (histogram->count == 0 || value < histogram->minimum)
        histogram->minimum = value;
    if (value > histogram->maximum)
        histogram->maximum = value;
    histogram->count += count;
    histogram->sum += value * count;
    /* Values below 2^SUB_BITS have a bucket each; above, each octave has 2^SUB_BITS buckets. */
    uint32_t bucket = (uint32_t)value;
    if (value >= 1u << HISTOGRAM_SUB_BITS) {
        const uint32_t octave = 63u - (uint32_t)__builtin_clzll(value) - HISTOGRAM_SUB_BITS;
        bucket = octave >= HISTOGRAM_OCTAVES
                     ? HISTOGRAM_BUCKETS - 1
                     : ((octave + 1) << HISTOGRAM_SUB_BITS) +
                           (uint32_t)(value >> octave & ((1u << HISTOGRAM_SUB_BITS) - 1));
    }
    assert(bucket < HISTOGRAM_BUCKETS);
    histogram->buckets[bucket] += count;
}

void histogram_merge(struct histogram *into, const struct histogram *from)
{
    if (from->count == 0)
        return;
    if (into->count == 0 || from->minimum < into->minimum)
        into->minimum = from->minimum;
    if (from->maximum > into->maximum)
        into->maximum = from->maximum;
    into->count += from->count;
    into->sum += from->sum;
    for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++)
        into->buckets[i] += from->buckets[i];
}

uint64_t histogram_quantile(const struct histogram *histogram, double fraction)
{
    assert(fraction >= 0);
    if (histogram->count == 0)
        return 0;
    if (fraction >= 1)
        return histogram->maximum;
    /* Nearest rank, from 1; less the amount by which 0.999 x 1000 exceeds 999. */
    uint64_t rank = (uint64_t)ceil(fraction * (double)histogram->count * (1 - 1e-12)), seen = 0;
    for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += histogram->buckets[i];
        if (seen >= rank && seen > 0) {
            const uint32_t octave = i >> HISTOGRAM_SUB_BITS, sub = 1u << HISTOGRAM_SUB_BITS;
            uint64_t value = i; /* the middle of the bucket */
            if (octave > 0)
                value = ((uint64_t)(sub | (i & (sub - 1))) << (octave - 1)) +
                        ((UINT64_C(1) << (octave - 1)) >> 1);
            if (value < histogram->minimum)
                return histogram->minimum;
            return value > histogram->maximum ? histogram->maximum : value;
        }
    }
    return histogram->maximum;
}

/* ---- pace ---- */

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
