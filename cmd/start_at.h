/* SPDX-License-Identifier: Apache-2.0
 *
 * start_at: lets a run begin at a time of day, so that runs on several machines start together
 * without MPI (iobench gather). Main thread only.
 */
#ifndef IOBENCH_CMD_START_AT_H
#define IOBENCH_CMD_START_AT_H

#include "pipeline/jobs/run.h"

struct start_at {
    const char *text; /* as given */
    struct ranks *ranks;
};

/* Check --start-at of a job. Returns 0 or -EINVAL with a reason. */
int start_at_check(const struct job *job);
/* gate of struct run_observer: wait once the caches are dropped. Too late is a failure. */
int start_at_wait(void *start_at, enum run_gate gate);

#endif
