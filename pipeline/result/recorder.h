/* SPDX-License-Identifier: Apache-2.0
 *
 * recorder: records machine and pipeline during a job as a time series with phases. The stages of
 * the engine count into its meter and mark phases on their own threads; session.c starts and
 * finishes it. A NULL recorder records nothing.
 */
#ifndef IOBENCH_PIPELINE_RESULT_RECORDER_H
#define IOBENCH_PIPELINE_RESULT_RECORDER_H

#include "pipeline/settings/settings.h"
#include "pipeline/result/meter.h"
#include "pipeline/result/timeline.h"
#include "ranks/ranks.h"

struct recorder;

/* Start sampling. The lowest rank of each node samples for all ranks on it. Collective. Returns
 * NULL with a reason on all ranks if telemetry is impossible or unwanted
 * (settings->sample_interval_ns is 0); telemetry never fails a job. */
struct recorder *recorder_start(const char *data, const struct output_settings *settings,
                                struct ranks *ranks);
/* Stop sampling. Returns the timeline: that of all nodes on rank 0, NULL on other ranks; after a
 * failure each node keeps its own; NULL without memory. Collective; code: the job's status, the
 * same on all ranks. */
struct timeline *recorder_finish(struct recorder *recorder, int code);

struct meter *recorder_meter(struct recorder *recorder);
/* Assign later marks to this run. Call between runs. */
void recorder_begin_run(struct recorder *recorder, uint64_t run);
/* Take an extra sample, so that counts between two such samples are exact. Any thread. */
void recorder_sample(struct recorder *recorder);
/* Mark a phase that ends now. Any thread. */
void recorder_mark(struct recorder *recorder, const char *phase, uint64_t number, uint64_t from_ns);

#endif
