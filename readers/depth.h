/* SPDX-License-Identifier: Apache-2.0
 *
 * depth: finds how many reads a storage wants in flight, its knee. It climbs by doubling while that
 * brings more than 1 - DEPTH_KNEE_SHARE. A storage that others use, or that is a virtual machine's,
 * drifts by more than that; so two depths take turns, and what counts is which one wins, turn by
 * turn. It knows neither readers nor clocks: it is fed with what was read and when.
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

struct depth {
    uint32_t now;  /* what to keep in flight */
    bool is_found; /* now is the knee */
    uint32_t knee;
    double knee_bytes_per_s, best_bytes_per_s; /* as measured in the last turns */
    /* private */
    uint32_t most;
    uint32_t above;         /* takes turns with the knee that is known so far */
    uint32_t window, wins;  /* since the turns began; turns that the depth above has won */
    double turn[2], sum[2]; /* bytes/s of the knee and the depth above: this turn's, of all */
    uint32_t in_vain;       /* doublings without growth */
    bool running;
    uint32_t settling; /* completions that still belong to the depth before */
    uint64_t window_start_ns, window_bytes, window_requests;
};

/* most: the depth the reader was opened with, at least 1. */
void depth_start(struct depth *depth, uint32_t most);
/* Do not climb: most it is. */
void depth_fix(struct depth *depth);

/* Some reads are done. full: since the last call, depth->now reads were in flight whenever one
 * could be submitted. */
void depth_feed(struct depth *depth, uint32_t requests, uint64_t bytes, bool full, uint64_t now_ns);

#endif
