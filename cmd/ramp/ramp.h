/* SPDX-License-Identifier: Apache-2.0
 *
 * ramp: how `iobench ramp` finds the highest load that holds. Short previews double the load until
 * one fails (or halve it until one holds); then one run per load narrows the bracket, first around
 * the rate that an overloaded run delivered, then by bisection. Both ends are measured until a
 * majority of runs agrees, so that one disturbed run decides nothing; an end that is overturned
 * reopens the search. Pure; any thread.
 */
#ifndef IOBENCH_CMD_RAMP_RAMP_H
#define IOBENCH_CMD_RAMP_RAMP_H

#include "pipeline/result/result.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RAMP_LOADS = 64, RAMP_HALVINGS = 10 };

/* What a load has shown. */
enum ramp_verdict { RAMP_UNDECIDED, RAMP_HOLDS, RAMP_FAILS };

struct ramp_load {
    double load;
    uint32_t held, failed;     /* runs, without previews */
    enum ramp_verdict preview; /* counts while there are no runs */
    double delivered;          /* by the last run or preview that failed, as a load; 0: none */
};

struct ramp_search {
    double from, to;  /* first load, and the highest to try */
    double precision; /* stop when the bracket is this narrow: 0.02 for 2% */
    uint32_t runs;    /* most runs per load; odd */
    uint32_t guesses; /* loads chosen by what was delivered */
    size_t count;
    struct ramp_load loads[RAMP_LOADS]; /* ascending */
};

/* The load to measure next. */
struct ramp_step {
    double load; /* 0: the search has ended */
    bool preview;
};

struct ramp_step ramp_search_next(const struct ramp_search *search);
/* Add the run of a step. delivered: the load that the run kept up with. */
void ramp_search_add(struct ramp_search *search, struct ramp_step step, bool holds,
                     double delivered);

/* The loads between which the answer lies. */
struct ramp_answer {
    double held;   /* highest load that held; 0: none */
    double failed; /* next load measured, which failed; 0: none up to `to` */
    /* The interval: at `low` and below all runs held, at `high` and above all failed. Wider than
     * the bracket above if runs disagree. low 0 or high INFINITY: no such load. */
    double low, high;
};

struct ramp_answer ramp_search_answer(const struct ramp_search *search);

/* One run at one load. */
struct ramp_point {
    double load, offered_samples_per_s, samples_per_s, bytes_per_s;
    double read_samples_per_s; /* NAN: unknown */
    uint64_t batches;          /* measured, after the warm-up */
    uint64_t late_p50_ns, late_p99_ns, late_max_ns;
    double stall_percent; /* p99 of lateness over the step time of one trainer */
    bool is_behind;       /* it was read slower than taken: what was read ahead was used up */
    bool holds, preview;
    enum result_cache cache;
    enum result_limit limit;
};

/* Return what a run of one epoch at this load says. limit_percent: of a stall. *step_ns: the
 * nominal step of one trainer. */
struct ramp_point ramp_point_of(struct ramp_step step, const struct result_run *run,
                                double limit_percent, double *step_ns);

#endif
