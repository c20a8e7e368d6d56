/* SPDX-License-Identifier: Apache-2.0
 *
 * io_pool: threads that do one reader's blocking reads, so that several are in flight.
 *
 * The pool keeps the open shards and the time-outs; the caller's work function reads. Any thread
 * runs any task; with in_order, each shard stays on one thread, which runs its tasks in order of
 * submission. A task that would not block may run in io_pool_submit() instead.
 *
 * The work function runs on the pool's threads. io_pool_release() and io_pool_wake(): any thread.
 * All else: the reader's thread.
 */
#ifndef IOBENCH_READERS_IO_POOL_H
#define IOBENCH_READERS_IO_POOL_H

#include "readers/handles.h"
#include "readers/reader.h"

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
