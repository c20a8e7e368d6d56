/* SPDX-License-Identifier: Apache-2.0
 *
 * each_file: parallel for-each over files, since opening a million files one by one takes minutes
 * on network storage. The caller's thread waits, reports progress to an observer and stops the
 * workers at the time limit.
 */
#ifndef IOBENCH_CACHECTL_EACH_FILE_H
#define IOBENCH_CACHECTL_EACH_FILE_H

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

enum { EACH_FILE_THREADS = 16 };

struct each_file_task {
    const char *doing;
    size_t count; /* of files */
    /* worker: below EACH_FILE_THREADS, an index for what only this thread writes. The callee keeps
     * failures of single files itself; a negative code stops all workers. */
    int (*each)(void *context, unsigned worker, size_t file);
    void *context;
    uint64_t timeout_ns;                   /* 0: none */
    const struct cache_observer *observer; /* may be NULL */
};

/* Returns 0, -ETIMEDOUT, or the first failure, with a reason. Workers stop between files: a hung
 * storage call is waited for. */
int each_file_run(const struct each_file_task *task);

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

#endif
