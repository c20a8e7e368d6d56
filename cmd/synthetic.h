/* SPDX-License-Identifier: Apache-2.0
 *
 * synthetic: the data set of `iobench run` without --data: images generated once and kept in the
 * user's cache folder. Main thread only.
 */
#ifndef IOBENCH_CMD_SYNTHETIC_H
#define IOBENCH_CMD_SYNTHETIC_H

#include "pipeline/settings/job.h"

/* Set job->data to the set of the job's format, generating it if absent (a dry run returns -ENOENT
 * and says what would be generated). Reports on stderr what it generates and where. Returns 0,
 * -EINVAL without a folder for it, or another negative errno, with a reason. */
int synthetic_prepare(struct job *job);

/* Return the folder of generated sets, to be freed, or NULL with a reason. */
char *synthetic_folder(void);

#endif
