/* SPDX-License-Identifier: Apache-2.0
 *
 * evict: take single files out of the page cache, or bring them in. Needs no privilege beyond
 * reading the files. What is mapped or locked by somebody stays, and the kernel does not say so:
 * look afterwards (cachectl/residency.h).
 */
#ifndef IOBENCH_CACHECTL_EVICT_H
#define IOBENCH_CACHECTL_EVICT_H

#include "cachectl/each_file.h"

#include <stdbool.h>

struct evict_figures {
    uint64_t file_count, failed_count;
    uint64_t bytes;   /* sizes of the files that were handled */
    char reason[256]; /* of the first that failed */
};

/* Write back what is dirty and ask the kernel to forget the rest. sync_mounts: first syncfs(2) each
 * mount, which also ends what an NFS server has not committed; fsync(2) of each file would make
 * the device flush as often. Files that cannot be opened are counted. 0, -ETIMEDOUT, or
 * negative. */
int evict_files(const char *const *paths, size_t count, bool sync_mounts, uint64_t timeout_ns,
                const struct cache_observer *observer, struct evict_figures *figures);

/* Read files, so that they are in the page cache, as far as memory reaches. */
int warm_files(const char *const *paths, size_t count, uint64_t timeout_ns,
               const struct cache_observer *observer, struct evict_figures *figures);

#endif
