/* SPDX-License-Identifier: Apache-2.0
 *
 * compare: is B really faster or slower than A? Pure but for allocations; any thread.
 *
 * Runs of one sitting share its machine, caches and neighbours, so they tell nothing of what
 * another sitting will give, however many they are. What is told apart rests on one of these:
 *
 * - pairs: A and B took turns in one sitting; the runs of a round are a pair, and what both share
 *   cancels (base/paired.h). Rounds of several such sittings are put together;
 * - sittings: A and B were measured at several times each; a sitting is one value, the median of
 *   its runs, and the test is Mann and Whitney's;
 * - nothing, with one sitting on a side: the difference is shown, without p.
 */
#ifndef IOBENCH_REPORT_COMPARE_H
#define IOBENCH_REPORT_COMPARE_H

#include "base/paired.h"
#include "base/stats.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

enum { COMPARE_FIGURES = 6, COMPARE_RUNS_MAX = 10000 };

/* One figure of both. */
struct compare_figure {
    const char *name, *unit; /* "samples/s" */
    const char *key;         /* in JSON */
    bool more_is_better;
    double a, b;           /* medians, of runs that are pairs, else of sittings; NAN: not known */
    double change_percent; /* of the geometric mean of the pairs' ratios, else of a and b */
    double low_percent, high_percent; /* 95% interval of it; NAN: none */
    double p;                         /* two-sided; NAN: cannot be told */
    double p_corrected;               /* for the comparisons made together */
    double sign_flip_p;               /* of pairs, by the test without assumptions; NAN: not made */
    double least_p;                   /* that so many sittings could give at all; of pairs 0 */
};

enum compare_basis { COMPARE_PAIRS, COMPARE_SITTINGS, COMPARE_NOTHING };

struct comparison {
    struct compare_figure figures[COMPARE_FIGURES]; /* the first is samples_per_s */
    enum compare_basis basis;
    size_t pairs; /* of the first figure */
    size_t a_runs, b_runs, a_sittings, b_sittings;
    bool is_until;       /* --runs auto ended it */
    bool one_then_other; /* every sitting of one began before each of the other */
    bool a_valid, b_valid;
    size_t together; /* comparisons that p_corrected is for */
};

/* Results of one thing: members of "jobs", one or more. */
struct compare_group {
    const json_t **jobs;
    size_t count;
};

/* 0 or a negative errno with a reason. p_corrected is as p. */
int compare_groups(const struct compare_group *a, const struct compare_group *b,
                   struct comparison *comparison);

/* Of comparisons with one A: each figure's p by Holm's method. count: PAIRED_HOLM_MAX at most. */
void compare_correct(struct comparison *comparisons, size_t count);

/* Is the difference more than chance? alpha: 0.05. */
bool compare_significant(const struct compare_figure *figure, double alpha);

/* Could it not be told, whatever it is? */
bool compare_untold(const struct compare_figure *figure, double alpha);

/* The smallest two-sided p that the exact test can give with so many values. */
double compare_least_p(size_t a_count, size_t b_count);

/* The table. name: of B. */
void compare_text(FILE *stream, const char *name, const struct comparison *comparison,
                  double alpha);
/* NULL when memory is short. */
json_t *compare_json(const char *label, const struct comparison *comparison, double alpha);

#endif
