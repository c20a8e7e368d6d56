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

#include "cachectl/residency.h"

/* Empty the page cache, the dentries and the inodes of the whole machine: sync(2), then 3 to
 * /proc/sys/vm/drop_caches (Documentation/admin-guide/sysctl/vm.rst). Dirty, mapped and locked
 * pages stay. Returns 0, -EACCES, -EPERM or -EROFS if not permitted, or -ETIMEDOUT; -EPERM also if
 * the file is not the kernel's, or if the kernel counted no drop (/proc/vmstat). After a time-out
 * the kernel continues, and the process cannot exit until it is done. */
int drop_caches(uint64_t timeout_ns, const struct cache_observer *observer);

/* Return whether this process may; false with a reason. Drops nothing. */
bool drop_is_permitted(void);

/* Programs at other than the default paths, for tests. NULL: default path. */
struct drop_helpers {
    const char *sudo;     /* absolute path */
    const char *cachectl; /* absolute path */
};

/* Drop as above, or through `sudo -n cachectl drop`, which never prompts for a password; how:
 * which. Returns 0 or -errno with a reason. */
int drop_system(const struct drop_helpers *helpers, uint64_t timeout_ns,
                const struct cache_observer *observer, const char **how);

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
