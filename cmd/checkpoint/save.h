/* SPDX-License-Identifier: Apache-2.0
 *
 * save: writes the files of this process's ranks of a checkpoint, a thread per rank, all from one
 * start. A rank writes one file at a time, with several chunks in flight, and syncs it.
 */
#ifndef IOBENCH_CHECKPOINT_SAVE_H
#define IOBENCH_CHECKPOINT_SAVE_H

#include "base/atomic.h"
#include "cmd/checkpoint/snapshot.h"
#include "cmd/checkpoint/writer.h"

/* One rank's figures of one checkpoint. */
struct rank_figures {
    uint32_t rank;
    uint64_t bytes;
    uint64_t synced_bytes; /* of files whose fsync(2) returned */
    uint64_t wall_ns;      /* from the common start to its last byte, synced if writing */
    uint64_t sync_ns;      /* part of wall_ns in fsync(2) */
    uint64_t damaged;      /* chunks that differ from what was written */
    char first_damage[256];
    struct histogram latency_ns; /* per write or read */
};

/* The common start of a process's ranks: the clock starts when all have opened their files.
 */
struct rank_start {
    struct countdown missing;
    struct flag is_given;
    uint64_t ns;
};

void rank_start_prepare(struct rank_start *start, uint32_t ranks);
/* Wait for the start on each rank's thread, even after a failure there. Returns early if `stopped`
 * is set, or stop_asked. */
void rank_start_wait(struct rank_start *start, const struct flag *stopped);
/* Return the time since the start; 0 if not started. */
uint64_t rank_start_elapsed_ns(const struct rank_start *start);

/* Buffers of a process's ranks: `depth` chunks for each. */
struct rank_buffers {
    uint32_t ranks, depth, chunk_bytes;
    struct iovec *all;
    bool is_held; /* storage not responding: never free them */
};

int rank_buffers_create(struct rank_buffers *buffers);
void rank_buffers_destroy(struct rank_buffers *buffers);
struct iovec *rank_buffers_of(const struct rank_buffers *buffers, uint64_t number);

struct save {
    const struct snapshot_store *store;
    struct snapshot *snapshot;    /* receives the checksums of what is written */
    struct rank_buffers *buffers; /* filled (cmd/checkpoint/content.h) */
    uint32_t first_rank;
    const struct plugin *writer; /* NULL: the best that works */
    bool direct, sync;
    uint64_t timeout_ns;
    struct rank_figures *figures; /* one per rank of buffers->ranks */
    /* Set by save_run(). */
    struct rank_start start;
    char engine[WRITER_ENGINE_BYTES];
    struct flag stopped, held; /* private */
};

/* Write all files. Returns 0, -EINTR or another negative errno with a reason. Any thread. */
int save_run(struct save *save);

#endif
