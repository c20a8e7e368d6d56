/* SPDX-License-Identifier: Apache-2.0
 *
 * stats: the summary of a few repeated runs, and tests that compare them; histograms, and the pace
 * of one run. Pure except for allocations; any thread unless stated otherwise.
 */
#ifndef IOBENCH_BASE_STATS_H
#define IOBENCH_BASE_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stats_summary {
    size_t count;
    double minimum, median, mean, maximum;
    /* Interval that contains the median of all such runs with probability `coverage`. From 6 values
     * on its ends are two of them, whose binomial coverage, at least 0.95, needs no assumption. 3
     * to 5 values cannot give that (minimum and maximum of 3 cover 0.75): there it is Student's
     * interval of the logarithms (of the values if one is not positive), 0.95 for normal and log-
     * normal data. Below that: minimum and maximum, coverage 0.5 or 0. */
    double low, high, coverage;
};

struct stats_summary stats_summarise(const double *values, size_t count);

/* The same if measuring stopped as soon as the interval was narrow enough. Values that are close by
 * chance stop it early, so a 0.95 interval would cover less; it is computed for STATS_UNTIL, which
 * covers 0.95 if the first look is at STATS_UNTIL_FIRST values (simulated in
 * tests/unit/test_stats.c). Order statistics give that from 7 values on. */
struct stats_summary stats_summarise_until(const double *values, size_t count);

#define STATS_COVERAGE 0.95
#define STATS_UNTIL 0.98
enum { STATS_UNTIL_FIRST = 5 };

void stats_sort(double *values, size_t count); /* ascending */

/* Return half the interval's width as a share of the median; NAN if there is none. */
double stats_half_width(const struct stats_summary *summary);

/* Return the two-sided p of the Mann-Whitney U test (exact for small counts without ties, else
 * normal with tie correction); 1 if either side is empty. */
double stats_mann_whitney_p(const double *a, size_t a_count, const double *b, size_t b_count);

/* Return the two-sided p of Student's t: P(|T| >= |t|), within 1e-14. freedom: at least 1. */
double student_p(double t, size_t freedom);

/* Return the t with student_p(t) = p. p: above 1e-12. */
double student_quantile(double p, size_t freedom);

/* Is B faster or slower than A, given pairs measured side by side? Whatever both of a pair
 * share, such as a temporarily slow storage, cancels in their ratio.
 *
 * The test is Student's paired t test of the logarithms. It assumes normal log ratios; since the
 * order within a pair is random, they are symmetric if A and B are equal, and on symmetric data
 * with rare large values the test errs towards "no difference" (simulated in
 * tests/unit/test_paired.c). A sign-flip test, free of assumptions, is reported too, but with fewer
 * than 6 pairs its p is never below 0.05 (2 of 32 for 5). */
struct paired {
    size_t pairs;
    double ratio;       /* B over A, geometric mean; NAN without pairs */
    double low, high;   /* confidence interval; NAN with one pair */
    double coverage;    /* nominal coverage of the interval: 0.95; 0 with one pair */
    double p;           /* two-sided; NAN with one pair */
    double sign_flip_p; /* exact test; NAN with one pair or more than PAIRED_FLIPS_MAX */
};

enum { PAIRED_MAX = 10000, PAIRED_FLIPS_MAX = 12, PAIRED_HOLM_MAX = 64 };

/* Test the first PAIRED_MAX of count values each. turns: this many successive values make up a
 * pair, whose logarithm is the interquartile mean of theirs, since a storage's hiccup hits one
 * turn; 1: each is a pair. Values that are not positive, and an incomplete rest, are left out.
 * until: measuring stopped once the interval was narrow enough; the interval is then wider and p
 * larger to compensate (STATS_UNTIL in base/stats.h). */
struct paired paired_test(const double *a, const double *b, size_t count, size_t turns, bool until);

/* Apply Holm's correction to the finite p values in place, Bonferroni's to more than
 * PAIRED_HOLM_MAX: the chance of any false positive among them is then at most the level. */
void paired_holm(double *p, size_t count);

enum { TREND_LEAST = 5 }; /* with fewer values p is never below 0.05 */

struct trend {
    double p;     /* two-sided; 1 with fewer than 2 values */
    double drift; /* change along that line from the first value to the last, as a share of the
                     median; NAN with fewer than 2 values or beyond 2,000 */
};

/* Do successive values rise or fall? Mann-Kendall's test, which asks only whether later values tend
 * to be larger, and Theil-Sen's line, which is robust to outliers. */
struct trend trend_test(const double *values, size_t count);

/* ---- histogram ----
 *
 * Log-bucketed counts of durations or sizes, 64 buckets per octave below 2^40, so percentiles are
 * within 1.6%. One writer each; merge to combine threads. */

enum { HISTOGRAM_SUB_BITS = 6, HISTOGRAM_OCTAVES = 42 };
enum { HISTOGRAM_BUCKETS = (HISTOGRAM_OCTAVES + 1) << HISTOGRAM_SUB_BITS };

struct histogram {
    uint64_t count;
    uint64_t sum;
    uint64_t minimum; /* meaningful when count > 0 */
    uint64_t maximum;
    uint64_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *histogram, uint64_t value);
void histogram_add_many(struct histogram *histogram, uint64_t value, uint64_t count);
void histogram_merge(struct histogram *into, const struct histogram *from);
/* Return the nearest-rank percentile: the smallest entry that at least `fraction` (0 to 1) of all
 * entries do not exceed. 0 if empty; 1 gives the maximum. */
uint64_t histogram_quantile(const struct histogram *histogram, double fraction);

/* Equal values that follow each other, such as the latencies of reads that were issued and reaped
 * together: they are added in one step, when another value comes or at the end. */
struct histogram_run {
    struct histogram *to; /* NULL: none yet */
    uint64_t value, count;
};

static inline void histogram_run_end(struct histogram_run *run)
{
    if (run->to)
        histogram_add_many(run->to, run->value, run->count);
    run->to = NULL;
}

static inline void histogram_run_add(struct histogram_run *run, struct histogram *to,
                                     uint64_t value)
{
    if (run->to == to && run->value == value) {
        run->count++;
        return;
    }
    histogram_run_end(run);
    *run = (struct histogram_run){.to = to, .value = value, .count = 1};
}

/* ---- pace ----
 *
 * How an amount grew over time, in a fixed number of points. One thread at a time. */

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
