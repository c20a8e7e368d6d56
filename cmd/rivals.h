/* SPDX-License-Identifier: Apache-2.0
 *
 * rivals: jobs that are measured in one sitting and compared with the first: A, and B with the
 * options of --against over A's. Pure but for allocations; main thread.
 */
#ifndef IOBENCH_CMD_RIVALS_H
#define IOBENCH_CMD_RIVALS_H

#include "pipeline/settings/job.h"

#include <stddef.h>

/* How many lines of options --against holds. */
size_t rivals_count(const char *against);

/* Lay the options of that line over those of job, as a shell would split them: blanks, quotes and
 * backslashes, nothing else. They become its label, unless they have one. 0 or a negative errno
 * with a reason. */
int rivals_apply(const char *against, size_t line, struct job *job);

/* Can they make one sitting? 0 or -EINVAL with a reason. */
int rivals_check(const struct job *jobs, size_t count);

#endif
