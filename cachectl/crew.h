/* SPDX-License-Identifier: Apache-2.0
 *
 * crew: does one thing to each of many files, with several threads, because opening a million
 * files one after the other takes minutes on network storage. The caller's thread waits, tells an
 * observer how far it is, and stops the crew when the time is over.
 */
#ifndef IOBENCH_CACHECTL_CREW_H
#define IOBENCH_CACHECTL_CREW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cache_progress {
    const char *doing;    /* "dropping caches", "looking at the page cache", ... */
    uint64_t done, total; /* files; total 0: not countable */
    uint64_t elapsed_ns;  /* of this step */
};

/* Called on the thread that made the call, about ten times a second. */
struct cache_observer {
    void (*progress)(void *context, const struct cache_progress *progress); /* may be NULL */
    void *context;
};

enum { CREW_THREADS = 16 };

struct crew_task {
    const char *doing;
    const char *const *paths;
    size_t count;
    /* worker: below CREW_THREADS, names what the thread may write to. Failures of single files
     * are the callee's to note; a negative code stops the whole crew. */
    int (*each)(void *context, unsigned worker, const char *path);
    void *context;
    uint64_t timeout_ns;                   /* 0: none */
    const struct cache_observer *observer; /* may be NULL */
};

/* 0, -ETIMEDOUT, or the first failure, with a reason. The time is looked at between files: a call
 * into storage that hangs is waited for. */
int crew_run(const struct crew_task *task);

/* Tell an observer, which may be NULL or have no callback. */
void cache_tell(const struct cache_observer *observer, const char *doing, uint64_t done,
                uint64_t total, uint64_t start_ns);

/* The same for a step of which only the time is known, as a callback. Returns false. */
struct cache_step {
    const struct cache_observer *observer;
    const char *doing;
    uint64_t start_ns;
};
bool cache_tell_step(void *context);

#endif
