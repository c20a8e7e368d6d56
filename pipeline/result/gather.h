/* SPDX-License-Identifier: Apache-2.0
 *
 * gather: combines what the ranks of a job measured; every rank gets the same result. Collective,
 * also for ranks that failed. Main thread only.
 */
#ifndef IOBENCH_PIPELINE_RESULT_GATHER_H
#define IOBENCH_PIPELINE_RESULT_GATHER_H

#include "pipeline/result/result.h"
#include "ranks/ranks.h"

/* Gather the caches of all nodes; `mine` counts if this rank leads its node. Fills run->nodes with
 * one entry per node, and run->cold with the worst of them, naming its host. Returns 0 or -errno.
 */
int gather_cold(struct ranks *ranks, const struct result_cold *mine, struct result_run *run);

/* Turn *run from this rank's run, with room for epochs_max epochs, into the run of all ranks: see
 * struct result_epoch, and run->ranks. Returns 0 or -errno. */
int gather_run(struct ranks *ranks, uint64_t epochs_max, struct result_run *run);

/* Turn what a guard found on this rank into that of all. Returns 0 or -errno. */
int gather_guard(struct ranks *ranks, struct guard_counts *counts);

/* Collective. Rank 0 adds notices that only other ranks have, and why their result is degraded,
 * with rank and host of the first one. All ranks reach it with the same code. Returns 0 or -errno.
 */
int gather_notices(struct ranks *ranks, struct result *result);

/* Gather one epoch of all ranks; returns a list with an entry per rank, or NULL with a reason. */
struct result_rank *gather_epoch(struct ranks *ranks, const struct result_epoch *epoch);
/* Return the time of an epoch from the first rank's start to the last one's end. The epochs of the
 * ranks are `stride` bytes apart. */
uint64_t gather_epoch_ns(const struct result_epoch *first, size_t stride, uint32_t count);

#endif
