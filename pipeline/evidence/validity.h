/* SPDX-License-Identifier: Apache-2.0
 *
 * validity: decides whether the figures of a run can be trusted: caches that were empty before it,
 * and bytes that left storage during it. Main thread only.
 */
#ifndef IOBENCH_PIPELINE_EVIDENCE_VALIDITY_H
#define IOBENCH_PIPELINE_EVIDENCE_VALIDITY_H

#include "pipeline/evidence/witness.h"

/* Drop caches as the settings say, on each node by its first rank, and inspect them, each rank what
 * it reads (reach; NULL: the first rank all files); then on the server by rank 0 with the server's
 * commands. Fills run->cold and run->nodes. Collective. Returns 0 or -errno, the same on all ranks;
 * with strict, also fails if the run cannot be verified cold. */
int validity_make_cold(struct witness *witness, const struct cold_settings *settings,
                       const struct job_plugins *plugins, struct ranks *ranks,
                       const struct reach *reach, const struct cache_observer *observer,
                       struct result_run *run);

/* After a run was gathered, complete the state of its caches with the evidence of the run. Mark the
 * run invalid if the caches should have been cold and were not; add notices on other doubts. */
void validity_check(const struct job *job, const struct job_plugins *plugins,
                    struct result_run *run, struct result *result);

/* Say in a result what a guard found of a measurement that is no run. where: text such as "save 1".
 */
void validity_guard(const struct guard_counts *counts, const char *where, struct result *result);

/* Mark a run invalid if its figures contradict each other; the reason names both figures. */
void validity_account(const struct result *result, struct result_run *run);

#endif
