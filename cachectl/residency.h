/* SPDX-License-Identifier: Apache-2.0
 *
 * residency: how much of a file lies in the page cache, or an honest "unverified".
 *
 * Two probes, neither of which always tells the truth:
 *  - cachestat(2), Linux 6.5: fast; refuses files of others (EPERM); sees nothing on overlayfs.
 *  - mincore(2): for a file that the caller neither owns nor may write it claims every page.
 * So mincore is also asked about pages far behind the end of the file, which cannot be resident;
 * and before a probe is believed when it says "nothing", it must have seen a page on that mount
 * that was just read. A probe that does not is blind: ZFS or FUSE may cache where Linux does not
 * look.
 *
 * Any thread; one struct residency_probe may be shared by threads.
 */
#ifndef IOBENCH_CACHECTL_RESIDENCY_H
#define IOBENCH_CACHECTL_RESIDENCY_H

#include "cachectl/each_file.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum residency_state { RESIDENCY_COLD, RESIDENCY_WARM, RESIDENCY_UNVERIFIED };

/* Up to this share of the bytes may be resident in what is called cold. */
#define RESIDENCY_COLD_PERCENT 0.1

enum residency_method { RESIDENCY_NONE = 0, RESIDENCY_CACHESTAT = 1, RESIDENCY_MINCORE = 2 };

enum { RESIDENCY_REASON_BYTES = 256 };

/* One file. */
struct residency {
    enum residency_state state;
    uint64_t resident_bytes, dirty_bytes; /* dirty: known by cachestat only */
    uint64_t total_bytes;
    double percent; /* resident of total; 0 for an empty file */
    enum residency_method method;
    char reason[RESIDENCY_REASON_BYTES]; /* why unverified, or why it can never be cold; else "" */
};

enum { RESIDENCY_WORST = 4 };

struct residency_named {
    char path[256]; /* the end of it when it is longer */
    uint64_t resident_bytes, dirty_bytes;
    uint64_t device, inode;
};

/* Many files. */
struct residency_total {
    enum residency_state state;
    uint64_t file_count, warm_count, unverified_count;
    uint64_t resident_bytes, dirty_bytes;
    uint64_t total_bytes, unverified_bytes;
    double percent;   /* resident of the bytes that could be verified */
    unsigned methods; /* enum residency_method, or-ed */
    bool in_memory;   /* some lie on tmpfs or the like */
    struct residency_named worst[RESIDENCY_WORST]; /* the most resident ones, largest first */
    char reason[RESIDENCY_REASON_BYTES];           /* of the first that was unverified, or so */
};

struct residency_probe;

/* Roots are as seen by this process. NULL with a reason. */
struct residency_probe *residency_probe_create(void);
void residency_probe_destroy(struct residency_probe *probe);

/* Look at one file. What cannot be opened, or has no contents to cache, is unverified with the
 * reason. */
void residency_file(struct residency_probe *probe, const char *path, struct residency *residency);

/* Look at many. The residue of a file that was cold stays 0: what the probe itself had to read is
 * evicted again. 0, -ETIMEDOUT, -ENOMEM. */
int residency_files(struct residency_probe *probe, const char *const *paths, size_t count,
                    uint64_t timeout_ns, const struct cache_observer *observer,
                    struct residency_total *total);

const char *residency_state_text(enum residency_state state); /* "cold", "warm", "unverified" */
const char *
residency_method_text(unsigned methods); /* "cachestat", "mincore", "cachestat and ..." */

/* Open to look at: a regular file or a block device; never waits for a FIFO. A descriptor, or a
 * negative errno with a reason. */
int residency_open(const char *path, uint64_t *bytes);

#endif
