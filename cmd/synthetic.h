/* SPDX-License-Identifier: Apache-2.0
 *
 * synthetic: the data set of `iobench run` without --data. It is made once, out of made images,
 * and kept in the user's cache folder. Main thread only.
 */
#ifndef IOBENCH_CMD_SYNTHETIC_H
#define IOBENCH_CMD_SYNTHETIC_H

#include "pipeline/settings/job.h"

/* Set job->data to the set of the job's format; make it when it is not there (not in a dry run:
 * then -ENOENT says what would be made). Says on stderr what it makes and where. 0, -EINVAL when
 * there is no place for it, or another negative errno, with a reason. */
int synthetic_prepare(struct job *job);

#endif
