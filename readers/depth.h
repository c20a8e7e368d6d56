/* SPDX-License-Identifier: Apache-2.0
 *
 * depth: finds the smallest queue depth that saturates storage: the saturation depth is the
 * smallest of 1, 2, 4 ... that reaches DEPTH_KNEE_SHARE of the best depth's throughput.
 *
 * Shared storage and virtual disks drift by more than the missing share within a second, and one
 * doubling may gain less than that share where two or three gain more. So all candidates take turns
 * in sweeps: in random order and in the reverse of it, which cancels drift, and no depth always
 * follows an easier one, whose unused share of the storage it would get. After each sweep, depths
 * that are significantly too low are dropped; the search ends when the lowest candidate left is
 * significantly good enough, or after DEPTH_SWEEPS_MOST.
 *
 * Only time in which storage is the bottleneck counts: while fewer reads are in flight than
 * requested, because memory or the consumer stops the loader, nothing is measured. Knows neither
 * readers nor clocks. One thread.
 */
#ifndef IOBENCH_READERS_DEPTH_H
#define IOBENCH_READERS_DEPTH_H

#include "base/random.h"

#include <stdbool.h>
#include <stdint.h>

#define DEPTH_KNEE_SHARE 0.97

enum { DEPTHS_MOST = 33, DEPTH_SWEEPS_MOST = 48 };

struct depth {
    uint32_t now;  /* reads to keep in flight */
    bool is_found; /* now is the saturation depth */
    uint32_t knee;
    double knee_bytes_per_s, best_bytes_per_s; /* over all sweeps */
    /* private */
    uint32_t depths[DEPTHS_MOST]; /* 1, 2, 4 ... most */
    uint32_t first, last;         /* the candidates */
    uint32_t at;                  /* the one being measured */
    bool climbing;                /* the first pass: each once, to find the candidates */
    bool reversed;                /* the second half of a sweep */
    uint32_t order[DEPTHS_MOST];  /* of the candidates in this sweep */
    uint32_t turn;                /* in it */
    struct random random;
    uint32_t sweeps;                              /* completed */
    double rates[DEPTH_SWEEPS_MOST][DEPTHS_MOST]; /* bytes/s, sum of a sweep's two intervals */
    bool running;
    uint32_t settling; /* completions until the previous depth has no effect */
    uint64_t window_start_ns, window_bytes, window_requests;
};

/* most: the depth the reader was opened with; >= 1. */
void depth_start(struct depth *depth, uint32_t most);
/* Skip the search; use `most`. */
void depth_fix(struct depth *depth);

/* Add finished reads. full: since the last call, depth->now reads were in flight whenever one could
 * be submitted. */
void depth_feed(struct depth *depth, uint32_t requests, uint64_t bytes, bool full, uint64_t now_ns);

/* ---- rate ----
 *
 * Limits reads to a number of bytes per second. Time lost to late wake-ups is made up, at most
 * RATE_CREDIT_NS of it; longer pauses are not. Knows no clock. One thread. */

enum { RATE_CREDIT_NS = 250000000 };

struct rate {
    uint64_t bytes_per_s; /* 0: no limit */
    uint64_t next_ns;     /* start of the next read; 0 before the first */
};

/* Return the wait from now_ns until the next read may start. */
uint64_t rate_wait_ns(struct rate *rate, uint64_t now_ns);
/* A read has started. */
void rate_spend(struct rate *rate, uint64_t bytes);

#endif
