/* SPDX-License-Identifier: Apache-2.0
 *
 * residency: measure how much of a file is in the page cache, "unverified" if no probe can tell;
 * evict single files, or load them.
 *
 * Two probes, neither of them always right:
 *  - cachestat(2), Linux 6.5: fast; refuses files of others (EPERM); sees nothing on overlayfs.
 *  - mincore(2): reports every page of a file that the caller neither owns nor may write.
 * So mincore is also asked about pages far past the end of the file, which cannot be resident, and
 * a probe's "nothing" counts only if it has seen, on that mount, a page that was just read. A probe
 * that has not is blind: ZFS and FUSE may cache outside the page cache.
 *
 * Any thread; one struct residency_probe may be shared by threads.
 */
#ifndef IOBENCH_CACHECTL_RESIDENCY_H
#define IOBENCH_CACHECTL_RESIDENCY_H

#include "telemetry/devices.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cache_progress {
    const char *doing;    /* "dropping caches", "checking the page cache", ... */
    uint64_t done, total; /* files; total 0: not countable */
    uint64_t elapsed_ns;  /* of this step */
};

/* Called about ten times a second on the caller's thread. */
struct cache_observer {
    void (*progress)(void *context, const struct cache_progress *progress); /* may be NULL */
    void *context;
};

/* Report to an observer, which may be NULL or have no callback. */
void cache_report(const struct cache_observer *observer, const char *doing, uint64_t done,
                  uint64_t total, uint64_t start_ns);

/* The same as a callback, for a step whose progress is only its time. Returns false. */
struct cache_step {
    const struct cache_observer *observer;
    const char *doing;
    uint64_t start_ns;
};
bool cache_report_step(void *context);

enum residency_state { RESIDENCY_COLD, RESIDENCY_WARM, RESIDENCY_UNVERIFIED };

/* At most this share of bytes is resident in a set that counts as cold. */
#define RESIDENCY_COLD_PERCENT 0.1

enum residency_method { RESIDENCY_NONE = 0, RESIDENCY_CACHESTAT = 1, RESIDENCY_MINCORE = 2 };

enum { RESIDENCY_REASON_BYTES = 256 };

/* One file. */
struct residency {
    enum residency_state state;
    uint64_t resident_bytes, dirty_bytes; /* dirty: from cachestat only */
    uint64_t total_bytes;                 /* size of the file */
    uint64_t data_bytes;                  /* looked at: not in holes */
    double percent;                       /* resident / data; 0 without data */
    enum residency_method method;
    char reason[RESIDENCY_REASON_BYTES]; /* why unverified or never cold; else "" */
};

enum { RESIDENCY_WORST = 4 };

struct residency_named {
    char path[256]; /* its tail if longer */
    uint64_t resident_bytes, dirty_bytes;
    uint64_t device, inode;
};

/* Many files. */
struct residency_total {
    enum residency_state state;
    uint64_t file_count, warm_count, unverified_count;
    uint64_t resident_bytes, dirty_bytes;
    uint64_t total_bytes;                          /* sizes of the files */
    uint64_t data_bytes, unverified_bytes;         /* looked at; of these, not verifiable */
    double percent;                                /* resident / verifiable bytes */
    unsigned methods;                              /* enum residency_method, or-ed */
    bool in_memory;                                /* some are on tmpfs or similar */
    struct residency_named worst[RESIDENCY_WORST]; /* the most resident ones, largest first */
    char reason[RESIDENCY_REASON_BYTES];           /* of the first unverified or in-memory file */
};

/* Parts of files. File i has list[first[i]] up to list[first[i + 1]]: whole pages up to its end, in
 * order, without overlap. */
struct range {
    uint64_t offset, bytes;
};

struct ranges {
    const char **paths;
    size_t count; /* of files */
    size_t *first;
    struct range *list;
};

struct residency_probe;

/* Returns NULL with a reason. */
struct residency_probe *residency_probe_create(void);
void residency_probe_destroy(struct residency_probe *probe);

/* Measure one file. A file that cannot be opened, or has no cacheable contents, is unverified. */
void residency_file(struct residency_probe *probe, const char *path, struct residency *residency);

/* Measure many. A cold file stays cold: pages that the probe had to read are evicted again.
 * ranges: parts of these files, or NULL for all of each. Returns 0, -ETIMEDOUT or -ENOMEM. */
int residency_parts(struct residency_probe *probe, const char *const *paths, size_t count,
                    const struct ranges *ranges, uint64_t timeout_ns,
                    const struct cache_observer *observer, struct residency_total *total);

const char *residency_state_text(enum residency_state state); /* "cold", "warm", "unverified" */
/* "cachestat", "mincore", "cachestat and ..." */
const char *residency_method_text(unsigned methods);

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

/* Evict or load files, by several threads. Needs no privilege beyond reading them. Mapped or locked
 * pages stay, and the kernel does not report them: measure afterwards. Counts files that cannot be
 * opened. Returns 0, -ETIMEDOUT or another negative errno. */
int cache_files(enum cache_change change, const char *const *paths, size_t count,
                uint64_t timeout_ns, const struct cache_observer *observer,
                struct evict_figures *figures);

/* Caches beneath the file system of a set of files. A loop device reads its file through the page
 * cache of the file system below: a second cache. A disk in memory can never be cold. Any thread.
 */
struct beneath {
    enum residency_state state;
    uint64_t resident_bytes; /* of those of the set, at most; all if it is in memory */
    char reason[400];        /* "" if cold */
};

/* devices: beneath the files, whose pages are cold. set_bytes: of the files; of a loop device's
 * file up to 1% of that may be resident, which looking at the set has read. */
void beneath_look(const struct device_list *devices, uint64_t set_bytes, struct beneath *beneath);

/* The same for files by name, of one set. */
void beneath_look_at(const char *const *paths, size_t count, uint64_t set_bytes,
                     struct beneath *beneath);

#endif
