/* SPDX-License-Identifier: Apache-2.0
 *
 * train_report: a training as people and programs read it: a line an epoch while it goes on, then
 * the report that `iobench run` makes of how the data came, and the files. Main thread.
 */
#ifndef IOBENCH_CMD_TRAIN_REPORT_H
#define IOBENCH_CMD_TRAIN_REPORT_H

#include "pipeline/jobs/train.h"

/* The line of an epoch, with a heading before the first. network: its name. */
void train_report_epoch(const char *network, const struct train_result *result,
                        const struct train_epoch *epoch);

/* The table where nothing else goes to the standard output, and the files. 0; 1 when the result is
 * not valid, or records were skipped; or a negative errno with a reason. */
int train_report_end(const struct train_job *job, const struct train_result *result);

#endif
