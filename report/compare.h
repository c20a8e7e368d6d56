/* SPDX-License-Identifier: Apache-2.0
 *
 * compare: tests whether B is faster or slower than A. Pure except for allocations; any thread.
 *
 * Runs of one session share machine state, caches and neighbours, so they do not predict another
 * session, however many they are. A comparison rests on one of these:
 *
 * - pairs: A and B alternated in one session; the runs of a round are a pair, and what both share
 * cancels (base/stats.h). Rounds of several such sessions are pooled;
 * - sessions: A and B were measured in several sessions each; a session is one value, the median of
 * its runs, and the test is Mann-Whitney;
 * - nothing, with one session on a side: the difference is shown without p.
 */
#ifndef IOBENCH_REPORT_COMPARE_H
#define IOBENCH_REPORT_COMPARE_H

#include "base/stats.h"

#include "report/report.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

enum { COMPARE_FIGURES = 6, COMPARE_RUNS_MAX = 10000, COMPARE_RULED_OUT_PERCENT = 5 };

/* One figure of A and B. */
struct compare_figure {
    const char *name, *unit; /* "samples/s" */
    const char *key;         /* in JSON */
    bool more_is_better;
    double a, b;           /* medians of paired runs or of sessions; NAN: unknown */
    double change_percent; /* of the geometric mean ratio of the pairs, else of a and b */
    double low_percent, high_percent; /* 95% interval of it; NAN: none */
    double p;                         /* two-sided; NAN: untestable */
    double p_corrected;               /* corrected for the comparisons made together */
    double sign_flip_p;               /* of pairs, by the sign-flip test; NAN: not tested */
    double least_p;                   /* smallest p possible with this many sessions; 0 for pairs */
};

enum compare_basis { COMPARE_PAIRS, COMPARE_SESSIONS, COMPARE_NOTHING };

/* Results of one side. */
struct compare_side {
    size_t runs, sessions;
    bool valid, degraded; /* all are valid; one is degraded */
    bool makes;           /* one makes entry points, in its first epoch */
    const char *cache;    /* state before the runs; "mixed" if results differ, "": unknown */
};

struct comparison {
    struct compare_figure figures[COMPARE_FIGURES]; /* the first is samples_per_s */
    enum compare_basis basis;
    size_t pairs; /* of the first figure */
    size_t turns; /* runs of each that make up a pair; undefined without pairs */
    struct compare_side a, b;
    bool is_until;       /* ended by --runs auto */
    bool one_then_other; /* all sessions of one side came before all of the other */
    enum load_data data; /* of all pairs of results, the worst */
    size_t together;     /* number of comparisons behind p_corrected */
};

/* Results of one configuration: one or more members of "jobs". */
struct compare_group {
    const json_t **jobs;
    size_t count;
};

/* Sets p_corrected to p. Returns 0, or a negative errno with a reason. */
int compare_groups(const struct compare_group *a, const struct compare_group *b,
                   struct comparison *comparison);

/* Correct each figure's p by Holm, over at most PAIRED_HOLM_MAX comparisons with one A. */
void compare_correct(struct comparison *comparisons, size_t count);

/* Is the difference significant? alpha: usually 0.05. */
bool compare_significant(const struct compare_figure *figure, double alpha);

/* Does the comparison leave a difference open that would matter? Significance is out of reach, or
 * the interval does not rule out COMPARE_RULED_OUT_PERCENT. */
bool compare_untold(const struct compare_figure *figure, double alpha);

/* Smallest two-sided p of the exact test with this many values. */
double compare_least_p(size_t a_count, size_t b_count);

/* Print the table. name: of B. */
void compare_text(FILE *stream, const char *name, const struct comparison *comparison,
                  double alpha);
/* Print what the comparison rests on, and its doubts. */
void compare_basis(FILE *stream, const struct comparison *comparison, double alpha);
/* Returns NULL if out of memory. */
json_t *compare_json(const char *label, const struct comparison *comparison, double alpha);

#endif
