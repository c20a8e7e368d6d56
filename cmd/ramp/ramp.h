/* SPDX-License-Identifier: Apache-2.0
 *
 * ramp: what `iobench ramp` measured, and how it is shown. Main thread.
 */
#ifndef IOBENCH_CMD_RAMP_RAMP_H
#define IOBENCH_CMD_RAMP_RAMP_H

#include "cmd/line.h"
#include "cmd/ramp/search.h"
#include "pipeline/settings/job.h"

#include <jansson.h>

struct ramp_settings {
    struct job job;
    double from, to, limit_percent, precision_percent;
    uint64_t runs, duration_ns;
    char *plot;
};

struct ramp {
    const struct ramp_settings *settings;
    struct ranks *ranks;
    struct line line;
    struct ramp_search search;
    double step_ns; /* of one trainer's batch; 0: not known yet */
    struct ramp_point *points;
    size_t count; /* in measurement order */
    /* number of records, from the first result */
    uint64_t records;
    char data[512], format[64], storage[160];
    char degraded[256];       /* first reason of a run that is no preview; "": none */
    json_t *dataset;          /* as of a result, of the first one */
    bool interrupted, failed; /* before the answer was found */
};

/* Print the table. Returns 0 or, with nothing printed, -ENOMEM with a reason. */
int ramp_print(const struct ramp *ramp);
/* Write the JSON document and the chart if requested. Returns 0 or -errno. */
int ramp_write_files(const struct ramp *ramp);

#endif
