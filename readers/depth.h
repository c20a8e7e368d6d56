/* SPDX-License-Identifier: Apache-2.0
 *
 * depth: finds how many reads a storage wants in flight. It climbs by doubling until throughput
 * stops growing, then settles on the knee: the least depth that gives DEPTH_KNEE_SHARE of the
 * best. It knows neither readers nor clocks: it is fed with what was read and when.
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

enum { DEPTH_STEPS = 32, DEPTH_WINDOWS = 3 };

struct depth {
    uint32_t now;  /* what to keep in flight */
    bool is_found; /* now is the knee */
    uint32_t knee;
    double knee_bytes_per_s, best_bytes_per_s; /* as measured while climbing */
    /* private */
    uint32_t most;
    uint32_t step_count;
    struct depth_step {
        uint32_t depth;
        double bytes_per_s;
    } steps[DEPTH_STEPS]; /* in the order they were tried */
    uint32_t refined;
    uint32_t window_count;
    double windows[DEPTH_WINDOWS]; /* of this step; the median counts */
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
