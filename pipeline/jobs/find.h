/* SPDX-License-Identifier: Apache-2.0
 *
 * find: the data set of a job: its format, its records, who reads them; the same on all ranks. Off
 * the clock. Main thread only.
 */
#ifndef IOBENCH_PIPELINE_JOBS_FIND_H
#define IOBENCH_PIPELINE_JOBS_FIND_H

#include "formats/format.h"
#include "pipeline/settings/job.h"
#include "pipeline/result/result.h"

/* plugins: chosen by job_choose(); the format is added, and the reader is replaced, with a notice
 * in result, where another one alone can read it. All ranks call, and all fail alike: 0 or a
 * negative errno. Destroy the catalog in either case. */
int find_data(const struct job *job, struct ranks *ranks, const struct format_scan *scan,
              struct job_plugins *plugins, struct catalog **catalog, struct result *result);

#endif
