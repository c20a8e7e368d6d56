/* SPDX-License-Identifier: Apache-2.0
 *
 * cold: make files cold and prove it, in one call, off the clock.
 *
 *  1. caches are dropped as root, else by `sudo -n cachectl drop`, else the files are evicted one
 *     by one, which leaves dentries and inodes;
 *  2. what is still resident is measured, and evicted once more with fsync; who maps it is named;
 *  3. after a drop, the dentries and inodes that looking brought in are dropped again, so that
 *     opening the files is cold as well.
 *
 * What a server holds is another matter: cachectl/server.h.
 * One caller at a time. Nothing is printed; an observer is told ten times a second.
 */
#ifndef IOBENCH_CACHECTL_COLD_H
#define IOBENCH_CACHECTL_COLD_H

#include "cachectl/drop.h"
#include "cachectl/residency.h"

struct cold_request {
    const char *const *paths; /* every file of the data set */
    size_t count;
    bool drop;                             /* false: only look */
    uint64_t timeout_ns;                   /* of each step; 0: none */
    const struct cache_observer *observer; /* may be NULL */
    const struct drop_helpers *helpers;    /* NULL: as usual */
};

enum { COLD_FILES = RESIDENCY_WORST };

struct cold_file {
    char path[256];
    uint64_t resident_bytes, dirty_bytes;
    int holder_pid; /* who maps it; 0: nobody seen */
    char holder_command[32];
};

struct cold_result {
    enum residency_state label;
    bool dropped;           /* a drop or an eviction was done */
    bool system_wide;       /* of the whole machine, metadata too; else file by file */
    double residue_percent; /* of the bytes that could be looked at */
    uint64_t resident_bytes, total_bytes, file_count, unverified_count;
    char method[160]; /* how it was dropped and looked at */
    char reason[400]; /* what is resident and who holds it, or why unverified; "" when cold */
    uint64_t drop_ns, verify_ns, total_ns;
    size_t warm_count;                  /* of files[] */
    struct cold_file files[COLD_FILES]; /* the most resident ones */
};

/* 0 with a label, whatever it is: a step that fails leaves the files unverified and says why.
 * -ENOMEM with a reason. */
int cold_make(const struct cold_request *request, struct cold_result *result);

#endif
