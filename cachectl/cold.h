/* SPDX-License-Identifier: Apache-2.0
 *
 * cold: make files cold and verify it, in one call, off the clock.
 *
 *  1. caches are dropped as root, else by `sudo -n cachectl drop`, else the files are evicted one
 *     by one, which leaves dentries and inodes;
 *  2. resident pages are measured, then evicted once more with fsync; processes that map them
 *     are named;
 *  3. after a drop, the dentries and inodes that the measurement loaded are dropped again, so
 *     that opening the files is cold as well.
 *
 * For a server's cache see cachectl/server.h.
 * One caller at a time. Prints nothing; notifies the observer ten times a second.
 */
#ifndef IOBENCH_CACHECTL_COLD_H
#define IOBENCH_CACHECTL_COLD_H

#include "cachectl/drop.h"
#include "cachectl/residency.h"

struct cold_request {
    const char *const *paths; /* every file of the data set */
    size_t count;
    const struct ranges *ranges;           /* of these files, what is measured; NULL: all */
    bool drop;                             /* false: only measure */
    bool is_dropped;                       /* by another process: evict only what is left */
    uint64_t timeout_ns;                   /* of each step; 0: none */
    const struct cache_observer *observer; /* may be NULL */
    const struct drop_helpers *helpers;    /* NULL: the default ones */
};

struct cold_result {
    enum residency_state label;
    bool dropped;           /* caches were dropped or files evicted */
    bool system_wide;       /* the whole machine, metadata included; else file by file */
    double residue_percent; /* of the bytes that could be measured */
    uint64_t resident_bytes, data_bytes, unverified_count; /* of what is measured */
    char method[160]; /* how caches were dropped and measured */
    char reason[400]; /* resident files and their holders, or why unverified; "" if cold */
    uint64_t drop_ns, total_ns;
};

/* Return 0 with any label: a step that fails leaves the files unverified and says why.
 * Returns -ENOMEM with a reason. */
int cold_make(const struct cold_request *request, struct cold_result *result);

#endif
