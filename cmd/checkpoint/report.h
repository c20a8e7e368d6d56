/* SPDX-License-Identifier: Apache-2.0
 * checkpoint_report: the table and the JSON of `iobench checkpoint`. Main thread. */
#ifndef IOBENCH_CMD_CHECKPOINT_REPORT_H
#define IOBENCH_CMD_CHECKPOINT_REPORT_H

#include "cmd/checkpoint/job.h"

#include <jansson.h>

struct checkpoint_asked {
    const struct checkpoint_job *job;
    const char *command; /* the command line */
    uint64_t mtbf_ns;    /* mean time between failures */
};

void checkpoint_report_text(const struct checkpoint_asked *asked,
                            const struct checkpoint_result *result);
/* Set the median rate of all writes or all reads, bytes/s. Returns 0 or -ENOMEM with a reason. */
int checkpoint_report_rate(const struct checkpoint_row *rows, uint64_t count, double *bytes_per_s);
/* Return the sealed document; NULL with a reason. */
json_t *checkpoint_report_json(const struct checkpoint_asked *asked,
                               const struct checkpoint_result *result);

#endif
