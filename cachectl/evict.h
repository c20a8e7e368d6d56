/* SPDX-License-Identifier: Apache-2.0
 *
 * evict: evict single files from the page cache, or load them. Needs no privilege beyond
 * reading the files. Mapped or locked pages stay, and the kernel does not report them: measure
 * afterwards (cachectl/residency.h).
 */
#ifndef IOBENCH_CACHECTL_EVICT_H
#define IOBENCH_CACHECTL_EVICT_H

#include "cachectl/each_file.h"

struct evict_figures {
    uint64_t file_count, failed_count;
    uint64_t bytes;   /* total size of the files processed */
    char reason[256]; /* of the first failure */
};

enum cache_change {
    CACHE_EVICT,       /* write back dirty pages and ask the kernel to drop the others */
    CACHE_EVICT_MOUNT, /* first syncfs(2) each mount, which also commits what an NFS server holds
                        * uncommitted; fsync(2) per file would flush the device once per file */
    CACHE_WARM,        /* read the files, as far as memory allows */
};

/* Counts files that cannot be opened. Returns 0, -ETIMEDOUT or another negative errno. */
int cache_files(enum cache_change change, const char *const *paths, size_t count,
                uint64_t timeout_ns, const struct cache_observer *observer,
                struct evict_figures *figures);

#endif
