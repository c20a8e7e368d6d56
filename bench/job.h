/* SPDX-License-Identifier: Apache-2.0
 *
 * job: a job of `iobench run` set up from a list of options, for what runs the engine on a catalog
 * of its own: benches and tests.
 */
#ifndef IOBENCH_BENCH_JOB_H
#define IOBENCH_BENCH_JOB_H

#include "pipeline/settings/job.h"

#include <stddef.h>

struct bench_job {
    struct job job;
    struct job_plugins plugins;
};

/* options: name and value, as on the command line; the rest are defaults. Each record is a file.
 * Returns 0 or a negative errno with a reason; call bench_job_close() either way. */
int bench_job_open(struct bench_job *bench_job, const char *const (*options)[2], size_t count);
void bench_job_close(struct bench_job *bench_job);

#endif
