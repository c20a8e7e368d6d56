/* SPDX-License-Identifier: Apache-2.0
 *
 * rivals: jobs measured in one session and compared with the first: A, and B with the options of
 * --against added to A's. Pure except for allocations; main thread.
 */
#ifndef IOBENCH_CMD_RUN_RIVALS_H
#define IOBENCH_CMD_RUN_RIVALS_H

#include "pipeline/settings/job.h"

#include <stddef.h>

/* Number of --against options given. */
size_t rivals_count(const char *against);

/* Apply line number `line` of `against` to job. It is split at blanks, with a shell's quotes and
 * backslashes, and becomes the job's label unless it sets one. option: its name, for messages.
 * Returns 0, or a negative errno with a reason. */
int rivals_apply(const char *option, const char *against, size_t line, struct job *job);

/* Check that the jobs can share a session. Returns 0, or -EINVAL with a reason. */
int rivals_check(const struct job *jobs, size_t count);

#endif
