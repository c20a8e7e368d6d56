/* SPDX-License-Identifier: Apache-2.0
 *
 * validity: decides whether the figures of a run can be trusted. Main thread only.
 */
#ifndef IOBENCH_PIPELINE_EVIDENCE_VALIDITY_H
#define IOBENCH_PIPELINE_EVIDENCE_VALIDITY_H

#include "pipeline/result/result.h"
#include "pipeline/settings/job.h"

#include <stdint.h>

/* After a run was gathered, complete the state of its caches with the evidence of the run. Mark the
 * run invalid if the caches should have been cold and were not; add notices on other doubts. */
void validity_check(const struct job *job, const struct job_plugins *plugins,
                    struct result_run *run, struct result *result);

/* Say in a result what a guard found of a measurement that is no run. where: text such as "save 1".
 */
void validity_guard(const struct guard_counts *counts, const char *where, struct result *result);

/* Mark a run invalid if its figures contradict each other; the reason names both figures. */
void validity_account(const struct result *result, struct result_run *run);

/* ---- relations between the figures of a run that hold whatever was measured ----
 *
 * A violation is a bug of this program: the run is INVALID and both figures are reported. No figure
 * is ever clamped. Pure functions. Each returns 0, or -EPROTO with both figures in fail_reason().
 */

/* Check a finished epoch of this rank. draws: of the epoch's plan. workers: decode threads. */
int invariants_epoch(const struct result_epoch *epoch, uint64_t draws, uint64_t batch_size,
                     uint32_t workers);

/* Check a complete run of all ranks. result: supplies job, data set and ranks. */
int invariants_run(const struct result *result, const struct result_run *run);

#endif
