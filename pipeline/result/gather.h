/* SPDX-License-Identifier: Apache-2.0
 *
 * gather: what the ranks of a job measured, brought together: every rank gets the same picture.
 * All ranks call at the same place, also those that failed. Main thread only.
 */
#ifndef IOBENCH_PIPELINE_RESULT_GATHER_H
#define IOBENCH_PIPELINE_RESULT_GATHER_H

#include "pipeline/result/result.h"
#include "ranks/ranks.h"

/* Each node's caches: mine counts where this rank leads its node. run->nodes becomes one for each
 * node, run->cold the worst of them with its host. 0 or a negative errno. */
int gather_cold(struct ranks *ranks, const struct result_cold *mine, struct result_run *run);

/* *run was this rank's, with room for epochs_max epochs; it becomes the run of all: see struct
 * result_epoch, and run->ranks. 0 or a negative errno. */
int gather_run(struct ranks *ranks, uint64_t epochs_max, struct result_run *run);

/* One epoch of this rank into a list of all ranks' (rank_count). NULL with a reason. */
struct result_rank *gather_epoch(struct ranks *ranks, const struct result_epoch *epoch);

/* What one epoch of all ranks is. slowest: of each (an index). For gather_run() and its test. */
void gather_merge_epochs(const struct result_epoch *const *each, const struct result_rank *ranks,
                         uint32_t count, struct result_epoch *merged);

#endif
