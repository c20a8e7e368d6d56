/* SPDX-License-Identifier: Apache-2.0
 *
 * team: threads that share a job, while the caller's thread tells how far they are.
 */
#ifndef IOBENCH_PACK_TEAM_H
#define IOBENCH_PACK_TEAM_H

#include <stdint.h>

struct team;

struct team_job {
    const char *name;                              /* of the threads */
    int (*work)(void *context, struct team *team); /* on each thread; 0 or a negative errno */
    void (*stop)(void *context);                   /* one has failed: the others are to end */
    void (*tick)(void *context); /* on the caller's thread: each 100 ms, when woken, at the end */
    void *context;
};

/* Runs work on so many threads to their ends. 0, or the first failure with its reason. */
int team_run(const struct team_job *job, uint64_t threads);
/* From a thread of the team: there is something to tell now. */
void team_wake(struct team *team);

#endif
