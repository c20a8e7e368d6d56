/* SPDX-License-Identifier: Apache-2.0
 *
 * cold: make files cold and verify it, off the clock, in three steps. Processes that share a
 * machine all look, each at what it reads, between the drops of one of them.
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
    const struct ranges *ranges;           /* what is looked at; NULL: all of these files */
    bool drop;                             /* false: only measure */
    uint64_t timeout_ns;                   /* of each step; 0: none */
    const struct cache_observer *observer; /* may be NULL */
    const struct drop_helpers *helpers;    /* NULL: the default ones */
};

enum { COLD_FILES = RESIDENCY_WORST };

struct cold_file {
    char path[256];
    uint64_t resident_bytes, dirty_bytes;
    int holder_pid; /* process that maps it; 0: none seen */
    char holder_command[32];
};

struct cold_result {
    enum residency_state label;
    bool failed;            /* a step; the reason says which */
    bool dropped;           /* caches were dropped or files evicted */
    bool system_wide;       /* the whole machine, metadata included; else file by file */
    double residue_percent; /* of the bytes that could be measured */
    uint64_t resident_bytes, data_bytes; /* of what was looked at; data: not in holes */
    uint64_t file_count, unverified_count;
    char method[160]; /* how caches were dropped and measured */
    char reason[400]; /* resident files and their holders, or why unverified; "" if cold */
    uint64_t drop_ns, total_ns;
    size_t warm_count;                  /* of files[] */
    struct cold_file files[COLD_FILES]; /* the most resident ones */
};

/* The three steps, on one result, zeroed. Each returns 0 with any label: a step that fails leaves
 * the files unverified and says why; those after it do nothing. Returns -ENOMEM with a reason. What
 * only looks sets dropped if another one drops. */
int cold_drop(const struct cold_request *request, struct cold_result *result);
int cold_look(const struct cold_request *request, struct cold_result *result);
int cold_drop_again(const struct cold_request *request, struct cold_result *result);

/* All of them. */
int cold_make(const struct cold_request *request, struct cold_result *result);

#endif
