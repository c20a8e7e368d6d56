/* SPDX-License-Identifier: Apache-2.0
 *
 * depth: finds how many reads a storage wants in flight, its knee: the smallest of the depths
 * 1, 2, 4 ... that gives all but 1 - DEPTH_KNEE_SHARE of what the best one gives.
 *
 * A storage that others use, or that is a virtual machine's, drifts by more than that share within
 * a second, and one doubling may bring less than it where two or three bring more. So all depths in
 * question take turns, in sweeps down and up again, which cancels a drift; after each sweep those
 * that are too low by more than chance leave, and it ends when the lowest left is good enough by
 * more than chance, or after SWEEPS_MOST. It knows neither readers nor clocks: it is fed with what
 * was read and when.
 *
 * Only time in which the storage was the limit counts: while fewer reads are in flight than it
 * asked for, because memory or the consumer stops the loader, it measures nothing and stays where
 * it is. One thread.
 */
#ifndef IOBENCH_READERS_DEPTH_H
#define IOBENCH_READERS_DEPTH_H

#include <stdbool.h>
#include <stdint.h>

#define DEPTH_KNEE_SHARE 0.97

enum { DEPTHS_MOST = 33, DEPTH_SWEEPS_MOST = 48 };

struct depth {
    uint32_t now;  /* what to keep in flight */
    bool is_found; /* now is the knee */
    uint32_t knee;
    double knee_bytes_per_s, best_bytes_per_s; /* as measured in all sweeps */
    /* private */
    uint32_t depths[DEPTHS_MOST];                 /* 1, 2, 4 ... most */
    uint32_t first, last;                         /* those in question */
    uint32_t at;                                  /* the one that is measured */
    bool climbing;                                /* all once, to see which are in question */
    bool upward;                                  /* the second half of a sweep */
    uint32_t sweeps;                              /* ended ones */
    double rates[DEPTH_SWEEPS_MOST][DEPTHS_MOST]; /* bytes/s, the sum of a sweep's two windows */
    bool running;
    uint32_t settling; /* completions until the depth before is no longer felt */
    uint64_t window_start_ns, window_bytes, window_requests;
};

/* most: the depth the reader was opened with, at least 1. */
void depth_start(struct depth *depth, uint32_t most);
/* Do not look: most it is. */
void depth_fix(struct depth *depth);

/* Some reads are done. full: since the last call, depth->now reads were in flight whenever one
 * could be submitted. */
void depth_feed(struct depth *depth, uint32_t requests, uint64_t bytes, bool full, uint64_t now_ns);

#endif
