/* SPDX-License-Identifier: Apache-2.0
 *
 * save: writes the files of this process's ranks of a checkpoint, a thread per rank, all from one
 * start. A rank writes one file at a time, with several chunks in flight, and syncs it.
 */
#ifndef IOBENCH_CMD_CHECKPOINT_SAVE_H
#define IOBENCH_CMD_CHECKPOINT_SAVE_H

#include "base/atomic.h"
#include "base/thread.h"
#include "cmd/checkpoint/snapshot.h"
#include "cmd/checkpoint/writer.h"

/* One rank's figures of one checkpoint; a line is as sent to the other processes. */
struct rank_line {
    uint32_t rank;
    uint64_t bytes;
    uint64_t synced_bytes; /* of files whose fsync(2) returned */
    uint64_t wall_ns;      /* from the common start to its last byte, synced if writing */
    uint64_t sync_ns;      /* part of wall_ns in fsync(2) */
    uint64_t damaged;      /* chunks that differ from what was written */
};

struct rank_figures {
    struct rank_line line;
    char first_damage[256];
    struct histogram latency_ns; /* per write or read */
};

/* Buffers of a process's ranks: `depth` chunks for each. */
struct rank_buffers {
    uint32_t ranks, depth, chunk_bytes;
    struct iovec *all;
    bool is_held; /* storage not responding: never free them */
};

int rank_buffers_create(struct rank_buffers *buffers);
void rank_buffers_destroy(struct rank_buffers *buffers);
struct iovec *rank_buffers_of(const struct rank_buffers *buffers, uint64_t number);

/* A process's ranks, a thread each, with a common start: the clock starts when all have opened
 * their files. The first member of what the threads share. */
struct rank_team {
    struct countdown missing;
    struct flag is_given, stopped; /* the start; a rank has failed */
    struct flag held;              /* set by a rank whose buffers must never be freed */
    uint64_t start_ns;
};

/* Let each rank act. Returns 0 or the first failure. */
int rank_team_run(struct rank_team *team, struct rank_buffers *buffers, const char *name,
                  int (*act)(void *team, struct workers *workers, uint64_t number));
/* Wait for the start on each rank's thread, even after a failure there. Returns early if a rank has
 * failed, or stop_asked is set. */
void rank_team_wait(struct rank_team *team);
/* Return the time since the start; 0 if not started. */
uint64_t rank_team_elapsed_ns(const struct rank_team *team);

/* ---- what a checkpoint holds: random bytes from a seed, which neither compress nor repeat ----
 *
 * A chunk is a pattern, the same for all chunks and filled in once, with a stamp in each block of
 * 4 KiB that no other block of any checkpoint has. So a chunk costs a checksum and a few stores,
 * far less than storage does, and a chunk that is misplaced, stale or damaged has another checksum.
 * Any thread. */

/* Off the clock; chunk: 8-byte aligned. */
void content_fill(void *chunk, size_t bytes, uint64_t seed);

/* Stamp a filled chunk with its file offset and the checkpoint's key. Returns its CRC-32C. */
uint32_t content_stamp(void *chunk, size_t bytes, uint64_t key, uint32_t file, uint64_t offset);

/* Bytes per second that one thread generates, or verifies, measured for about 50 ms. */
struct content_ceiling {
    double made_per_s, checked_per_s;
};
void content_measure(void *chunk, size_t bytes, struct content_ceiling *ceiling);

struct save {
    struct rank_team team;
    const struct snapshot_store *store;
    struct snapshot *snapshot;    /* receives the checksums of what is written */
    struct rank_buffers *buffers; /* filled by content_fill() */
    uint32_t first_rank;
    const struct plugin *writer; /* NULL: the best that works */
    bool direct, sync;
    uint64_t timeout_ns;
    struct rank_figures *figures; /* one per rank of buffers->ranks */
    /* Set by save_run(). */
    char engine[WRITER_ENGINE_BYTES];
};

/* Write all files of a struct save. Returns 0, -EINTR or another negative errno with a reason. Any
 * thread. */
int save_run(void *save);

#endif
