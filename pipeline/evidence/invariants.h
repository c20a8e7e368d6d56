/* SPDX-License-Identifier: Apache-2.0
 *
 * invariants: relations between the figures of a run that hold whatever was measured. A violation
 * is a bug of this program: the run is INVALID and both figures are reported. No figure is ever
 * clamped.
 *
 * Pure functions. Each returns 0, or -EPROTO with both figures in fail_reason().
 */
#ifndef IOBENCH_PIPELINE_EVIDENCE_INVARIANTS_H
#define IOBENCH_PIPELINE_EVIDENCE_INVARIANTS_H

#include "pipeline/result/result.h"

#include <stdint.h>

/* Check a finished epoch of this rank. draws: of the epoch's plan. workers: decode threads. */
int invariants_epoch(const struct result_epoch *epoch, uint64_t draws, uint64_t batch_size,
                     uint32_t workers);

/* Check a complete run of all ranks. result: supplies job, data set and ranks. */
int invariants_run(const struct result *result, const struct result_run *run);

#endif
