/* SPDX-License-Identifier: Apache-2.0
 *
 * run: carries out jobs: catalog, plan, cold, epochs, result. It prints nothing; it tells an
 * observer what happens, for a progress line.
 *
 * One alone makes its runs one after the other. Several take turns in one sitting: in each round
 * each has one run, in an order that is drawn anew, so that what the storage does meanwhile meets
 * all of them alike and cancels in the ratios of a round. Memory, threads and a control group are
 * made for each run then, off the clock, so that all jobs find as much free.
 */
#ifndef IOBENCH_PIPELINE_JOBS_RUN_H
#define IOBENCH_PIPELINE_JOBS_RUN_H

#include "pipeline/settings/job.h"
#include "pipeline/result/result.h"

enum run_phase { RUN_INDEX, RUN_DROP, RUN_CALIBRATE, RUN_EPOCH, RUN_DONE };

struct run_progress {
    const struct job *job;
    enum run_phase phase;
    uint64_t run, epoch;
    uint64_t done, total; /* samples in an epoch; bytes while indexing */
    uint64_t bytes;       /* record bytes delivered so far in this epoch */
    uint64_t elapsed_ns;  /* of this phase */
};

/* Called from the main thread, at most ten times a second and at each change of phase. */
struct run_observer {
    void (*progress)(void *context, const struct run_progress *progress);
    void *context;
};

/* Carry out a job whose data and format exist, with the other ranks (NULL: alone): each gets the
 * result of all. *result is filled even on failure (then invalid, with the runs that were
 * finished); destroy it. 0, or a negative errno with a reason. */
int run_job(const struct job *job, struct ranks *ranks, const struct run_observer *observer,
            struct result *result);

enum { RUN_JOBS_MAX = 26 };

/* The same of several at once, which agree on runs and on when to end them: results has one for
 * each job, all filled even on failure; destroy them. One that fails ends all. */
int run_sitting(const struct job *jobs, uint32_t count, struct ranks *ranks,
                const struct run_observer *observer, struct result *results);

/* What run_job would do, without reading: settings resolved, catalog figures, memory needed.
 * Same result struct, no runs. */
int run_dry(const struct job *job, struct ranks *ranks, const struct run_observer *observer,
            struct result *result);

#endif
