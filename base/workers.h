/* SPDX-License-Identifier: Apache-2.0
 *
 * workers: several threads on one job, while the caller's thread reports progress.
 */
#ifndef IOBENCH_BASE_WORKERS_H
#define IOBENCH_BASE_WORKERS_H

#include <stdint.h>

struct workers;

struct workers_job {
    const char *name; /* of the threads */
    /* On each thread; number counts them from 0. Returns 0 or a negative errno. */
    int (*work)(void *context, struct workers *workers, uint64_t number);
    /* Make the other threads return soon, because one failed. Any thread; may be called
     * repeatedly. NULL: they return soon anyway. */
    void (*stop)(void *context);
    /* On the caller's thread, every 100 ms, when woken, and at the end; a non-zero result is a
     * failure. May be NULL. */
    int (*tick)(void *context);
    void *context;
};

/* Run the job on `count` threads until all have returned. Returns 0, or the first failure in time
 * with its reason. */
int workers_run(const struct workers_job *job, uint64_t count);
/* Ask for a tick now. From a worker. */
void workers_wake(struct workers *workers);

#endif
