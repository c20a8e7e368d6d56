/* SPDX-License-Identifier: Apache-2.0
 * train_report: output of a training run. Main thread. */
#ifndef IOBENCH_CMD_TRAIN_REPORT_H
#define IOBENCH_CMD_TRAIN_REPORT_H

#include "pipeline/jobs/train.h"

/* Print the line of an epoch, with a heading before the first. network: its name. */
void train_report_epoch(const char *network, const struct train_result *result,
                        const struct train_epoch *epoch);

/* Print the table, unless a file goes to standard output, and write the files. Returns 0, 1 if the
 * result is not valid or records were skipped, or a negative errno with a reason. */
int train_report_end(const struct train_job *job, const struct train_result *result);

#endif
