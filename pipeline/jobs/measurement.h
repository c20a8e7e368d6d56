/* SPDX-License-Identifier: Apache-2.0
 *
 * measurement: one job of a sitting: its data set, its runs and its result. run.c decides when each
 * run happens. All calls are collective: each returns 0 or -errno on all ranks alike. Main thread
 * only.
 */
#ifndef IOBENCH_PIPELINE_JOBS_MEASUREMENT_H
#define IOBENCH_PIPELINE_JOBS_MEASUREMENT_H

#include "pipeline/engine/engine.h"
#include "pipeline/jobs/run.h"
#include "pipeline/jobs/session.h"

struct measurement {
    struct session session; /* first: hooks get it as their context */
    const struct run_observer *observer;
    struct job_plugins plugins;
    struct catalog *catalog;
    struct engine *engine; /* NULL until a run needs it */
    struct reach reach;    /* the same for each run */
    struct hinting hinting;
    uint64_t run;
    uint64_t phase_start_ns;
};

/* Choose plug-ins, find the data set and prepare the session. */
int measurement_open(struct measurement *measurement);
/* Measure the same loop without storage and decoding. The figures go to the result. */
int measurement_calibrate(struct measurement *measurement);
/* Create the engine, which checks the memory that the job needs. */
int measurement_make_engine(struct measurement *measurement);
/* Carry out the next run; result->runs has room for it. turn: its position among the runs of all
 * jobs. */
int measurement_next(struct measurement *measurement, uint64_t turn);
/* Free memory, threads and the control group, so that another job finds the same resources. */
void measurement_suspend(struct measurement *measurement);
/* Finish the result. code: the status so far; returns the one to use. */
int measurement_close(struct measurement *measurement, int code);

#endif
