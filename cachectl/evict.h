/* SPDX-License-Identifier: Apache-2.0
 *
 * evict: evict single files from the page cache, or load them. Needs no privilege beyond
 * reading the files. Mapped or locked pages stay, and the kernel does not report them: measure
 * afterwards (cachectl/residency.h).
 */
#ifndef IOBENCH_CACHECTL_EVICT_H
#define IOBENCH_CACHECTL_EVICT_H

#include "cachectl/each_file.h"

#include <stdbool.h>

struct evict_figures {
    uint64_t file_count, failed_count;
    uint64_t bytes;   /* total size of the files processed */
    char reason[256]; /* of the first failure */
};

/* Write back dirty pages and ask the kernel to drop the others. sync_mounts: first syncfs(2) each
 * mount, which also commits what an NFS server holds uncommitted; fsync(2) per file would flush the
 * device once per file. Counts files that cannot be opened. Returns 0, -ETIMEDOUT or another
 * negative errno. */
int evict_files(const char *const *paths, size_t count, bool sync_mounts, uint64_t timeout_ns,
                const struct cache_observer *observer, struct evict_figures *figures);

/* Read files into the page cache, as far as memory allows. */
int warm_files(const char *const *paths, size_t count, uint64_t timeout_ns,
               const struct cache_observer *observer, struct evict_figures *figures);

#endif
