/* SPDX-License-Identifier: Apache-2.0
 * checkpoint_report: the table and the JSON of `iobench checkpoint`. Main thread. */
#ifndef IOBENCH_CMD_CHECKPOINT_REPORT_H
#define IOBENCH_CMD_CHECKPOINT_REPORT_H

#include "cmd/checkpoint/job.h"

#include <jansson.h>

/* Returns 0 or, with nothing printed, -ENOMEM with a reason. */
int checkpoint_report_text(const struct checkpoint_job *job,
                           const struct checkpoint_result *result);
/* Set the median rates of all writes and of all reads, bytes/s. Returns 0 or -ENOMEM with a reason.
 */
int checkpoint_report_rates(const struct checkpoint_result *result, double *written, double *read);
/* Return the sealed document; NULL with a reason. */
json_t *checkpoint_report_json(const struct checkpoint_job *job,
                               const struct checkpoint_result *result);

#endif
