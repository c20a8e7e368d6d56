/* SPDX-License-Identifier: Apache-2.0
 *
 * paired: is B faster or slower than A, of pairs that were measured side by side? What both of a
 * pair share, as a storage that is slow for a while, cancels in their ratio.
 *
 * The test is Student's paired t test of the logarithms. It takes the log ratios for normal; since
 * the order within a pair is drawn, they are symmetric when A and B are equal, and on symmetric
 * data with rare large values the test errs to the side of "no difference" (simulated in
 * tests/unit/test_paired.c). A test without any assumption on their shape, by sign flips, stands
 * beside it, but of fewer than 6 pairs it can never give less than 0.05 (2 of 32 for 5). Pure but
 * for an allocation; any thread.
 */
#ifndef IOBENCH_BASE_PAIRED_H
#define IOBENCH_BASE_PAIRED_H

#include <stdbool.h>
#include <stddef.h>

struct paired {
    size_t pairs;
    double ratio;       /* B over A: geometric mean; NAN without pairs */
    double low, high;   /* an interval of it; NAN with one pair */
    double coverage;    /* of that interval, by itself: 0.95; 0 with one pair */
    double p;           /* two-sided; NAN with one pair */
    double sign_flip_p; /* of the exact test; NAN with one pair or more than PAIRED_FLIPS_MAX */
};

enum { PAIRED_MAX = 10000, PAIRED_FLIPS_MAX = 12, PAIRED_HOLM_MAX = 64 };

/* Of the pairs whose values are above 0, the first PAIRED_MAX. until: measuring ended when the
 * interval was narrow enough; then it is wider and p larger, so that both hold (STATS_UNTIL in
 * base/stats.h). */
struct paired paired_test(const double *a, const double *b, size_t count, bool until);

/* Holm's correction of count p, PAIRED_HOLM_MAX at most, in place: the chance of one false alarm
 * among them all is at most the level that they are compared with. */
void paired_holm(double *p, size_t count);

#endif
