/* SPDX-License-Identifier: Apache-2.0
 *
 * run: carries out jobs and fills their results. It prints nothing; an observer gets the progress.
 *
 * A single job makes its runs one after the other. Several jobs take turns in one session: each
 * runs once per round, in an order drawn anew, so that changes of the storage affect all alike and
 * cancel in the ratios of a round. Memory, threads and control groups are then created for each
 * run, off the clock, so that all jobs find the same resources.
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
    uint64_t done, total; /* samples of an epoch, or bytes while indexing */
    uint64_t bytes;       /* record bytes delivered so far in this epoch */
    uint64_t elapsed_ns;  /* of this phase */
};

/* Points at which a job that shares the machine waits for the other job. */
enum run_gate {
    RUN_GATE_TURN,  /* before a run; nothing is done yet */
    RUN_GATE_START, /* caches are dropped and verified; the clock starts next */
};

/* Called on the main thread, progress at most ten times a second and at each change of phase. gate:
 * NULL, or returns 0 to continue, or -errno with a reason to end the job. */
struct run_observer {
    void (*progress)(void *context, const struct run_progress *progress);
    int (*gate)(void *gate_context, enum run_gate gate);
    void *context, *gate_context;
};

enum { RUN_JOBS_MAX = 26 };

/* Carry out jobs with the other ranks (NULL: alone): several take turns and agree on --runs and
 * --until. With --dry-run nothing is read: settings are resolved, memory is planned, there are no
 * runs. Each rank gets the results of all. Returns 0 or -errno with a reason; if one job fails, all
 * end. results has one per job, all filled even on failure (invalid, with the completed runs);
 * destroy them. */
int run_jobs(const struct job *jobs, uint32_t count, struct ranks *ranks,
             const struct run_observer *observer, struct result *results);

#endif
