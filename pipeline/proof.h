/* SPDX-License-Identifier: Apache-2.0
 *
 * proof: what makes the figures of a run believable, whoever the batches are for: caches that were
 * empty before it, and bytes that left storage in it. Main thread only.
 */
#ifndef IOBENCH_PIPELINE_PROOF_H
#define IOBENCH_PIPELINE_PROOF_H

#include "pipeline/witness.h"

/* Drop caches when the job says so, and look at them: once on each node, by its first rank; the
 * server's command once, by rank 0. Into run->cold and run->nodes. All ranks call, and all fail
 * alike: 0 or a negative errno. */
int proof_make_cold(struct witness *witness, const struct job *job, struct ranks *ranks,
                    void (*progress)(void *context, uint64_t elapsed_ns), void *context,
                    struct result_run *run);

/* After a run that was carried out and gathered: it is not valid where the cache was to be cold and
 * was not, and notices say what else is to be doubted. */
void proof_check(const struct job *job, const struct plugin *reader, struct result_run *run,
                 struct result *result);

#endif
