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

/* Start sampling. The lowest rank of each node samples for all ranks on it. Collective. Telemetry
 * never fails a job: returns NULL with a reason on all ranks if it is impossible or not wanted
 * (settings->sample_interval_ns is 0). */
struct recorder *recorder_start(const char *data, const struct output_settings *settings,
                                struct ranks *ranks);
/* Stop sampling and return the timeline: rank 0 gets that of all nodes, other ranks NULL.
 * Collective, with the job's status, the same on all ranks: after a failure each node keeps its
 * own. NULL without memory. */
struct timeline *recorder_finish(struct recorder *recorder, int code);

struct meter *recorder_meter(struct recorder *recorder);
/* Later marks belong to this run. Call between runs. */
void recorder_begin_run(struct recorder *recorder, uint64_t run);
/* Take an extra sample, so that counts between two such moments are exact. Any thread. */
void recorder_sample(struct recorder *recorder);
/* Mark a phase that ends now. Any thread. */
void recorder_mark(struct recorder *recorder, const char *phase, uint64_t number, uint64_t from_ns);

#endif
