/* SPDX-License-Identifier: Apache-2.0
 *
 * shared: what the phases of a checkpoint job share. Private to cmd/checkpoint/; main thread.
 */
#ifndef IOBENCH_CMD_CHECKPOINT_SHARED_H
#define IOBENCH_CMD_CHECKPOINT_SHARED_H

#include "cmd/checkpoint/job.h"
#include "ranks/ranks.h"
#include "telemetry/storage.h"

struct checkpoint_shared {
    const struct checkpoint_job *job;
    struct checkpoint_result *result;
    struct ranks *ranks;
    struct snapshot_store store;
    struct storage *storage; /* beneath it */
    struct rank_buffers buffers;
    uint32_t first_rank; /* first rank of the buffers */
    struct rank_figures *figures;
    struct guard_counts guard; /* of the writes, and of the ceiling */
    uint64_t start_ns;
};

/* Allocate the buffers of this process's share of `ranks`, filled and touched. */
int shared_prepare(struct checkpoint_shared *shared, uint32_t ranks, uint32_t chunk_bytes);
/* Return a process's first rank; the next process's is one past its last. */
uint32_t shared_first_rank(const struct checkpoint_shared *shared, uint32_t ranks,
                           uint32_t process);
/* Collective: broadcast the first process's number. */
int shared_agree(struct checkpoint_shared *shared, int code, uint32_t *number);
/* Collective: merge the figures of all ranks into a row and into result->each. written: by this
 * process and its node's devices; NULL for a read. */
int shared_collect(struct checkpoint_shared *shared, uint32_t ranks,
                   const struct storage_bytes *written, struct checkpoint_row *row);
void shared_show(const struct checkpoint_shared *shared, bool is_read, uint64_t number,
                 uint64_t total);

int writes_run(struct checkpoint_shared *shared);
int reads_run(struct checkpoint_shared *shared);

#endif
