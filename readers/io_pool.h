/* SPDX-License-Identifier: Apache-2.0
 *
 * io_pool: threads that do one reader's blocking reads, so that several are in flight.
 *
 * The pool keeps the open shards and the time-outs; the caller's work function reads. Any thread
 * runs any task; with in_order, each shard stays on one thread, which runs its tasks in order of
 * submission. A task that would not block may run in io_pool_submit() instead.
 *
 * The work function runs on the pool's threads. io_pool_release() and io_pool_wake(): any thread.
 * All else: the reader's thread. Readers without a pool keep their open shards here, too.
 */
#ifndef IOBENCH_READERS_IO_POOL_H
#define IOBENCH_READERS_IO_POOL_H

#include "dataset/catalog.h"
#include "readers/reader.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* ---- handles ----
 *
 * The open shards of one reader.
 *
 * Keeps as many open as RLIMIT_NOFILE allows and closes the least recently used one to open
 * another, so a data set of a million files works under any limit. Detects files that changed
 * after indexing. Knows nothing of how bytes are read.
 *
 * handles_acquire() and handles_release() belong to the reader's thread. handle_open() may be
 * called by any thread that works on an acquired handle: opening is slow on network storage. */

struct handle {
    uint32_t shard;
    const struct shard *file; /* as the catalog has it */
    bool opened;
    bool opening;       /* set by readers that open asynchronously */
    int fd;             /* -1 until handle_open(), and when mapped */
    void *remote;       /* the owner's, as with HANDLES_REMOTE; closed by handles->forget(), before
                           fd is */
    const uint8_t *map; /* the whole file, with HANDLES_MAP; NULL if empty */
    uint64_t map_bytes;
    uint64_t checked_ns; /* when it was last compared with what was indexed */
    /* private */
    pthread_mutex_t lock; /* with HANDLES_SHARED: two threads may open the same shard */
    uint32_t users;
    uint32_t older, newer; /* neighbours in the list of unused handles */
    uint64_t inode;
};

enum handles_flags {
    HANDLES_DIRECT = 1,  /* O_DIRECT */
    HANDLES_RANDOM = 2,  /* disable the kernel's readahead */
    HANDLES_MAP = 4,     /* map each file */
    HANDLES_REMOTE = 8,  /* no descriptors: the caller opens `remote` */
    HANDLES_SHARED = 16, /* several threads call handle_open() and handle_is_fresh() */
};

enum { HANDLES_ALIGNMENT_MOST = 65536, HANDLE_RECHECK_NS = 1000000000 };

struct handles {
    const struct catalog *catalog;
    uint32_t flags;
    uint32_t alignment; /* of offset, length and memory: 1, or as O_DIRECT requires */
    uint32_t capacity;
    struct handle *all;
    void (*forget)(void *owner, struct handle *handle); /* the caller sets both after create */
    void *owner;
    /* private */
    uint32_t used, promised;
    uint32_t oldest, newest;
    uint32_t *where; /* shard -> 1 + index in all; 0: none */
};

/* busiest: handles acquired at once; exactly this many if remote. limit: at most this many handles;
 * 0: as many as the system allows. Returns 0 or a negative errno with a reason. */
int handles_create(struct handles *handles, const struct catalog *catalog, uint32_t flags,
                   uint32_t busiest, uint32_t limit);
/* Unmaps files still in use. Valid after a failed or missing create. */
void handles_destroy(struct handles *handles);

/* Return the handle of a shard, perhaps not open yet, or NULL if all are in use. Release it as
 * often as it was acquired. */
struct handle *handles_acquire(struct handles *handles, uint32_t shard);
void handles_release(struct handles *handles, struct handle *handle);

/* Open the handle unless it is open or remote, and check that the file is still the indexed one.
 * Returns 0, -ESTALE if it is not, or the errno of open(), without a reason: reader_explain()
 * records it on the reader's thread. */
int handle_open(const struct handles *handles, struct handle *handle);

/* Would handle_open() return 0 without blocking at this time (clock_coarse_ns())? For handles that
 * no other thread opens. */
static inline bool handle_is_fresh_at(const struct handle *handle, uint64_t now_ns)
{
    return handle->opened && now_ns - handle->checked_ns <= HANDLE_RECHECK_NS;
}

/* A read at offset is short: `got` bytes in total. Returns where to resume, relative to offset and
 * aligned; -ESTALE if the file ends there; -EIO after too many short reads. */
int64_t handle_resume(const struct handles *handles, const struct handle *handle, uint64_t offset,
                      uint32_t got, uint32_t short_reads);

/* For asynchronous opens with handles_open_flags(): the handle owns fd, and closes it on failure.
 * Returns as handle_open(). */
int handles_open_flags(const struct handles *handles);
int handle_adopt(const struct handles *handles, struct handle *handle, int fd);

/* ---- pool ---- */

/* A copy of the request: an abandoned read may end after the caller's request is gone. */
struct io_task {
    const struct handles *handles;
    struct handle *handle; /* open */
    uint64_t offset;
    uint32_t bytes, needed;
    void *buffer;
    struct iovec *parts; /* the request's; held like its buffer */
    uint32_t part_count;
    const void *data; /* set by the work function */
    int result;       /* likewise; bytes or a negative errno */
    uint32_t short_reads;
    bool borrowed; /* likewise: keep the handle until io_pool_release() */
    /* private to io_pool.c */
    struct read_request *request;
    uint64_t submit_ns;
    struct io_task *next;
    bool running, abandoned;
};

struct io_pool;

struct io_pool_settings {
    const struct reader_config *config;
    uint32_t threads; /* 0: one per read in flight */
    uint32_t flags;   /* enum handles_flags */
    uint32_t files;   /* at most this many open; 0: as many as the system allows */
    bool in_order;
    void (*work)(struct io_task *task);
    /* NULL, or: run the task on the reader's thread if it would not block. Returns false if it
     * would. */
    bool (*at_once)(void *state, struct io_task *task);
    void *state; /* for at_once */
    /* With HANDLES_REMOTE: the number of handles to keep, and what closes handle->remote, which the
     * work function opens. */
    uint32_t handles_most;
    void (*forget)(void *unused, struct handle *handle);
};

/* Returns 0 or a negative errno with a reason. *alignment: required by the shards. */
int io_pool_create(struct io_pool **pool, const struct io_pool_settings *settings,
                   uint32_t *alignment);
/* Nothing may be in flight except abandoned reads. */
void io_pool_destroy(struct io_pool *pool);
uint32_t io_pool_threads(const struct io_pool *pool);

/* A work function: one blocking read into memory. */
void pread_task(struct io_task *task);

/* See struct reader_ops. state: a reader's, whose first member is its struct io_pool *. */
int io_pool_submit(void *state, struct read_request *request);
int io_pool_reap(void *state, struct read_request **done, uint32_t max, uint64_t wait_ns);
void io_pool_release(void *state, struct read_request *request);
void io_pool_wake(void *state);

/* ---- zero_copy ----
 *
 * Reads of mapped files without a copy. Pages that may fault are faulted in on the threads of an
 * io_pool; resident ones need no thread. */

/* Fault in [first, first + bytes) and make it the task's data. A page that cannot be read fails the
 * task instead of raising SIGBUS: -ESTALE if the file is shorter than when indexed, else -EIO. */
void borrow_pages(struct io_task *task, const uint8_t *first, uint32_t bytes);

/* Call first: files may be truncated, so mapped pages are used under fault_guard_begin(). Returns a
 * descriptor for borrow_resident(), or -1 if the kernel cannot tell which pages are resident. */
int zero_copy_open(void);

/* Make the pages at `first` the task's data if none would fault. Returns false if one might. */
bool borrow_resident(int pagemap, struct io_task *task, const uint8_t *first);

#endif
