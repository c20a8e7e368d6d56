/* SPDX-License-Identifier: Apache-2.0
 *
 * compare: is B really faster or slower than A? Two results run by run, with the Mann-Whitney
 * test. Pure but for the allocation; any thread.
 */
#ifndef IOBENCH_REPORT_COMPARE_H
#define IOBENCH_REPORT_COMPARE_H

#include "base/stats.h"

#include <jansson.h>
#include <stdbool.h>

enum { COMPARE_FIGURES = 6, COMPARE_RUNS_MAX = 10000 };

/* One figure of both. */
struct compare_figure {
    const char *name, *unit; /* "samples/s" */
    const char *key;         /* in JSON */
    bool more_is_better;
    struct stats_summary a, b; /* count 0: not measured there */
    double change_percent;     /* of the medians, B against A; NAN when not known */
    double p;                  /* two-sided; NAN when not known */
    double least_p;            /* that so many runs could give at all */
};

struct comparison {
    struct compare_figure figures[COMPARE_FIGURES]; /* the first is samples_per_s */
    bool a_valid, b_valid;
};

/* a, b: members of "jobs". 0 or a negative errno with a reason. */
int compare_jobs(const json_t *a, const json_t *b, struct comparison *comparison);

/* Is the difference more than chance? alpha: 0.05. */
bool compare_significant(const struct compare_figure *figure, double alpha);

/* The smallest two-sided p that the exact test can give with so many runs. */
double compare_least_p(size_t a_count, size_t b_count);

#endif
