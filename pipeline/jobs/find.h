/* SPDX-License-Identifier: Apache-2.0
 *
 * find: finds the data set of a job, with format, catalog and reader, the same on all ranks. Off
 * the clock. Main thread only.
 */
#ifndef IOBENCH_PIPELINE_JOBS_FIND_H
#define IOBENCH_PIPELINE_JOBS_FIND_H

#include "formats/format.h"
#include "pipeline/settings/job.h"
#include "pipeline/result/result.h"

/* Find the data set. plugins: from job_choose(); the format is added, and the reader is replaced,
 * with a notice, if only another one can read the set. Collective. Returns 0 or -errno, the same on
 * all ranks; destroy the catalog in either case. */
int find_data(const struct job *job, struct ranks *ranks, const struct format_scan *scan,
              struct job_plugins *plugins, struct catalog **catalog, struct result *result);

#endif
