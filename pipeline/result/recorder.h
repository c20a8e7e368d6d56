/* SPDX-License-Identifier: Apache-2.0
 *
 * recorder: what the machine and the pipeline did while a job ran, as a time series with phases.
 * The engine's stages count into its meter and mark phases from their own threads; whoever carries
 * out the job opens, starts and finishes it. A NULL recorder records nothing.
 */
#ifndef IOBENCH_PIPELINE_RESULT_RECORDER_H
#define IOBENCH_PIPELINE_RESULT_RECORDER_H

#include "pipeline/settings/settings.h"
#include "pipeline/result/meter.h"
#include "pipeline/result/timeline.h"
#include "ranks/ranks.h"

struct recorder;

/* Sample from now on, as the job says. The lowest rank of a node samples for all of its ranks; all
 * ranks call. Telemetry never makes a job fail: NULL with a reason on all of them when it cannot
 * be, or is not wanted (settings->sample_interval_ns is 0). */
struct recorder *recorder_start(const char *data, const struct output_settings *settings,
                                struct ranks *ranks);
/* Stops, and hands over what was seen: rank 0 gets that of all nodes. All ranks call, with what has
 * become of the job: after a failure, the same on all, each node keeps its own. NULL elsewhere, and
 * when memory is short. */
struct timeline *recorder_finish(struct recorder *recorder, int code);

struct meter *recorder_meter(struct recorder *recorder);
/* Marks from now on belong to this run. Call while no run goes on. */
void recorder_begin_run(struct recorder *recorder, uint64_t run);
/* A sample more, so that what is counted between two such moments is exact. Any thread. */
void recorder_sample(struct recorder *recorder);
/* A phase that ended now. Any thread. */
void recorder_mark(struct recorder *recorder, const char *phase, uint64_t number, uint64_t from_ns);

#endif
