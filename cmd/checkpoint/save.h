/* SPDX-License-Identifier: Apache-2.0
 *
 * save: checkpoints in a folder, each complete or not there; and how a process writes the files of
 * its ranks, a thread per rank, all from one start. A rank writes one file at a time, with several
 * chunks in flight, and syncs it.
 *
 * A checkpoint is a folder, checkpoint-NNNNNN, of its files and a manifest with their sizes and the
 * CRC-32C of each chunk. It is written as .checkpoint-NNNNNN.partial; when every file is durable
 * the manifest follows, and then the folder is renamed. Removing begins with renaming it back. So
 * whatever ends the program at any moment leaves complete checkpoints and at most one partial
 * folder, which the next run removes. Nothing is replaced, and only files of these names are
 * removed.
 */
#ifndef IOBENCH_CMD_CHECKPOINT_SAVE_H
#define IOBENCH_CMD_CHECKPOINT_SAVE_H

#include "base/atomic.h"
#include "base/thread.h"
#include "base/folder.h"
#include "base/stats.h"
#include "base/draft.h"
#include "base/plugin.h"
#include "cmd/checkpoint/model.h"

#include <sys/uio.h>

/* ---- snapshots: the folder; main thread, one process of a job unless stated otherwise. Returns 0
 * or a negative errno with a reason ---- */

enum { SNAPSHOT_NUMBER_MAX = 999999, SNAPSHOT_MANIFEST_BYTES_MAX = 1 << 28 };
#define SNAPSHOT_SINGLE "state.bin" /* file name if all ranks share one file */

struct snapshot_file {
    char name[32];
    uint32_t rank;
    uint64_t bytes;
    uint64_t offset;      /* in the shared file; 0 in a file of its own */
    uint64_t first_chunk; /* index of its first chunk in checksums */
};

/* Set by snapshot_plan() or snapshot_load(). */
struct snapshot {
    uint32_t number, ranks;
    char model[MODEL_NAME_BYTES];
    uint64_t seed;
    bool is_single;
    uint32_t chunk_bytes;
    uint32_t file_count;
    struct snapshot_file *files;
    uint64_t bytes, chunk_count;
    uint32_t *checksums;
};

/* Refuse files whose manifest would be too large to be loaded again. */
int snapshot_check_size(const struct model_files *files, uint32_t chunk_bytes);
int snapshot_plan(struct snapshot *snapshot, const struct model_files *files, uint32_t chunk_bytes,
                  bool is_single);
void snapshot_release(struct snapshot *snapshot);

/* Return the manifest as text, to be freed; NULL with a reason. */
char *snapshot_text(const struct snapshot *snapshot);
/* Parse NUL-terminated, possibly hostile text; path: for reasons. Release in either case. */
int snapshot_parse(struct snapshot *snapshot, char *text, size_t bytes, const char *path);

struct snapshot_store {
    struct folder folder;
    struct file_lock lock;
};

/* Open the folder of checkpoints. writes: create and lock it, and remove what a killed run left. */
int snapshot_open(struct snapshot_store *store, const char *path, bool writes);
void snapshot_close(struct snapshot_store *store);

/* List the numbers of all complete checkpoints, ascending. Free *numbers. */
int snapshot_list(const struct snapshot_store *store, uint32_t **numbers, size_t *count);
/* The same without folders that have no valid manifest or, with_files, lack what it lists: others
 * may be removed for the rest. */
int snapshot_list_whole(const struct snapshot_store *store, bool with_files, uint32_t **numbers,
                        size_t *count);
/* Ask how much space the removal of each of these would free, in their order. Free *bytes. */
int snapshot_sizes(const struct snapshot_store *store, uint64_t **bytes, size_t *count);
/* Find a number above all in use. */
int snapshot_next_number(const struct snapshot_store *store, uint32_t *number);

int snapshot_begin(const struct snapshot_store *store, const struct snapshot *snapshot);
/* Open the draft folder to write files into it, after snapshot_begin(). Any process. */
int snapshot_open_draft(const struct snapshot_store *store, uint32_t number, struct folder *draft);
int snapshot_commit(const struct snapshot_store *store, const struct snapshot *snapshot);
int snapshot_abandon(const struct snapshot_store *store, uint32_t number);
int snapshot_remove(const struct snapshot_store *store, uint32_t number);
/* Remove the oldest complete checkpoints beyond `keep`. A folder without a valid manifest, or with
 * a file that is missing or too short, is not counted and stays: no good one goes for its sake. */
int snapshot_prune(const struct snapshot_store *store, uint64_t keep);

/* Load the manifest of a complete checkpoint. Release in either case. Any process. */
int snapshot_load(const char *folder, uint32_t number, struct snapshot *snapshot);
/* Return the path of a complete checkpoint's file, to be freed; NULL with a reason. */
char *snapshot_path(const char *folder, uint32_t number, const char *name);

/* ---- a writer: writes chunks of memory to files with several writes in flight ----
 *
 * A write is named by the index of its buffer. The buffer belongs to the writer until writer_wait()
 * returns its index. One thread per writer: the one that opened it. Only save.c calls through the
 * ops; it continues short writes, takes times and counts. */

struct writer_config {
    const struct iovec *buffers; /* `depth` of equal size; may be registered */
    uint32_t depth;              /* at most this many writes in flight */
    bool direct;                 /* the files bypass the page cache */
    uint64_t timeout_ns;         /* fail after this long without a completion; 0: never */
};

struct writer_request {
    int fd;
    uint32_t index; /* of the buffer */
    uint32_t from, bytes;
    uint64_t offset; /* file offset of the buffer's first byte */
    uint64_t submit_ns;
};

struct writer_completion {
    uint32_t index;    /* of the buffer */
    int result;        /* bytes, or a negative errno */
    uint64_t ended_ns; /* when it completed, or was found to have */
};

enum { WRITER_ENGINE_BYTES = 128 };

struct writer_ops {
    struct plugin plugin;
    /* engine: filled with a description ("io_uring, registered buffers"). Returns 0, or a negative
     * errno without a reason if this machine refuses it. */
    int (*open)(void *state, const struct writer_config *config, char engine[WRITER_ENGINE_BYTES]);
    /* Called after every open, even a failed one, with nothing in flight. */
    void (*close)(void *state);
    void (*submit)(void *state, const struct writer_request *request);
    /* Wait at most wait_ns for a completion. Returns 1 with one, 0 on time-out, or a negative errno
     * with a reason. */
    int (*reap)(void *state, struct writer_completion *done, uint64_t wait_ns);
};

extern const struct plugin *const writer_registry[]; /* in order of preference */
extern const struct writer_ops writer_uring;         /* for the registry alone */

struct writer {
    const struct writer_ops *ops;
    void *state;
    struct writer_config config;
    struct writer_request *requests; /* one per buffer */
    uint32_t in_flight;
    bool is_held; /* after writer_close(): the kernel may still read the buffers, never free them */
    char engine[WRITER_ENGINE_BYTES];
    struct histogram latency_ns; /* per write */
};

/* plugin: NULL for the first that works on this machine. Returns 0 or a negative errno with a
 * reason; call writer_close() either way. */
int writer_open(struct writer *writer, const struct plugin *plugin,
                const struct writer_config *config);
/* Wait for the writes in flight, 10 s at most, and close. Again: no-op. */
void writer_close(struct writer *writer);

/* Submit a write of the first `bytes` of a free buffer. */
void writer_write(struct writer *writer, uint32_t index, int fd, uint32_t bytes, uint64_t offset);
/* Wait at most wait_ns for a write to complete; path: for reasons. Returns the index of its buffer,
 * -EAGAIN without a reason if none completed, or another negative errno with a reason if a write or
 * the writer failed. */
int writer_wait(struct writer *writer, uint64_t wait_ns, const char *path);

/* ---- the ranks of a process ---- */

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
