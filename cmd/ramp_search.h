/* SPDX-License-Identifier: Apache-2.0
 *
 * ramp_search: finds the highest load that holds: doubles until one fails (or halves until one
 * holds), then bisects between the two. A load is measured until a majority of its runs agrees, so
 * that one disturbed run decides nothing. Pure; any thread.
 */
#ifndef IOBENCH_CMD_RAMP_SEARCH_H
#define IOBENCH_CMD_RAMP_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RAMP_LOADS = 64, RAMP_HALVINGS = 10 };

struct ramp_load {
    double load;
    uint32_t held, failed; /* runs */
};

struct ramp_search {
    double from, to;  /* first load, and the highest to try */
    double precision; /* stop when the bracket is this narrow: 0.02 for 2% */
    uint32_t runs;    /* most runs per load; odd */
    size_t count;
    struct ramp_load loads[RAMP_LOADS]; /* ascending */
};

/* Return the next load to measure; 0: the search has ended. */
double ramp_search_next(const struct ramp_search *search);
/* Add a run at a load that ramp_search_next() returned. */
void ramp_search_add(struct ramp_search *search, double load, bool holds);

/* The loads between which the answer lies. */
struct ramp_answer {
    double held;   /* highest load whose majority held; 0: none */
    double failed; /* next load measured, whose majority failed; 0: none up to `to` */
    /* The interval: at `low` and below all runs held, at `high` and above all failed. Wider than
     * the bracket above if runs disagree. low 0 or high INFINITY: no such load. */
    double low, high;
};

struct ramp_answer ramp_search_answer(const struct ramp_search *search);

#endif
