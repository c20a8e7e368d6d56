/* SPDX-License-Identifier: Apache-2.0
 *
 * keep_hints: writes the hints that an epoch made (dataset/hints.h) where those of the
 * data set are (dataset/sidecar.h). Those of records that were not drawn, or have good ones,
 * stay as they are there. Main thread only.
 */
#ifndef IOBENCH_PIPELINE_JOBS_KEEP_HINTS_H
#define IOBENCH_PIPELINE_JOBS_KEEP_HINTS_H

#include "dataset/hints.h"
#include "pipeline/jobs/session.h"

/* Rank 0 writes the hints of all ranks, and then all ranks load them for later epochs. Once only,
 * while no decode thread works. code: the status of the epoch, which is returned: if it failed,
 * only an interrupted process that is alone writes what it has. A failure to write is none of the
 * job's. Collective if code is 0. */
int keep_hints(struct session *session, const struct job_plugins *plugins, struct catalog *catalog,
               struct hinting *hinting, int code);

#endif
