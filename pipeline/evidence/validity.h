/* SPDX-License-Identifier: Apache-2.0
 *
 * proof: what makes the figures of a run believable, whoever the batches are for: caches that were
 * empty before it, and bytes that left storage in it. Main thread only.
 */
#ifndef IOBENCH_PIPELINE_EVIDENCE_VALIDITY_H
#define IOBENCH_PIPELINE_EVIDENCE_VALIDITY_H

#include "pipeline/evidence/witness.h"

/* Drop caches when the job says so, and look at them: once on each node, by its first rank; then
 * the server's by its commands, once, by rank 0. Into run->cold and run->nodes. All ranks call, and
 * all fail alike: 0 or a negative errno, with strict also when the run could prove nothing. */
int validity_make_cold(struct witness *witness, const struct cold_settings *settings,
                       const struct job_plugins *plugins, struct ranks *ranks,
                       void (*progress)(void *context, uint64_t elapsed_ns), void *context,
                       struct result_run *run);

/* After a run, before another begins: what the server's disks read in it. */
void validity_ask_server(struct witness *witness, const struct ranks *ranks,
                         struct result_run *run);

/* After that, when the run was gathered: what it proves about the caches before it is added; it is
 * not valid where they were to be cold and were not, and notices say what else is to be doubted. */
void validity_check(const struct job *job, const struct job_plugins *plugins,
                    struct result_run *run, struct result *result);

/* Likewise: a run whose figures contradict each other is not valid, and both are told. */
void validity_account(const struct result *result, struct result_run *run);

#endif
