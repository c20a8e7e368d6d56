/* SPDX-License-Identifier: Apache-2.0
 *
 * paired: is B faster or slower than A, given pairs measured side by side? Whatever both of a pair
 * share, such as a temporarily slow storage, cancels in their ratio.
 *
 * The test is Student's paired t test of the logarithms. It assumes normal log ratios; since the
 * order within a pair is random, they are symmetric if A and B are equal, and on symmetric data
 * with rare large values the test errs towards "no difference" (simulated in
 * tests/unit/test_paired.c). A sign-flip test, free of assumptions, is reported too, but with fewer
 * than 6 pairs its p is never below 0.05 (2 of 32 for 5). Pure except for an allocation; any
 * thread.
 */
#ifndef IOBENCH_BASE_PAIRED_H
#define IOBENCH_BASE_PAIRED_H

#include <stdbool.h>
#include <stddef.h>

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

/* Apply Holm's correction to at most PAIRED_HOLM_MAX p values in place: the chance of any false
 * alarm among them is then at most the level they are compared with. */
void paired_holm(double *p, size_t count);

#endif
