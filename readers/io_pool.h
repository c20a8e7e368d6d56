/* SPDX-License-Identifier: Apache-2.0
 *
 * io_pool: threads that do blocking reads for one reader, so that several are in flight. It holds
 * the open shards and the time-outs; how bytes are read is the caller's function. Any thread does
 * any task, or, in_order, a shard keeps to one thread, which does its tasks in the order they came.
 *
 * All calls but io_pool_release() belong to the reader's thread; only the work function runs on the
 * pool's threads. What needs no waiting may be done by io_pool_submit(), and then costs no thread.
 */
#ifndef IOBENCH_READERS_IO_POOL_H
#define IOBENCH_READERS_IO_POOL_H

#include "readers/handles.h"
#include "readers/reader.h"

/* A copy of the request: the caller's own may be gone when a read that was given up ends. */
struct io_task {
    const struct handles *handles;
    struct handle *handle; /* open */
    uint64_t offset;
    uint32_t bytes, needed;
    void *buffer;
    const void *data; /* set by the work function */
    int result;       /* likewise; bytes or a negative errno */
    uint32_t short_reads;
    bool borrowed; /* likewise: the handle stays taken until io_pool_release() */
    /* private to io_pool.c */
    struct read_request *request;
    uint64_t submit_ns;
    struct io_task *next;
    bool running, abandoned;
};

struct io_pool;

struct io_pool_settings {
    const struct reader_config *config;
    uint32_t threads; /* 0: as many as the depth */
    uint32_t flags;   /* enum handles_flags */
    uint32_t files;   /* open at one time; 0: as many as the system allows */
    bool in_order;
    void (*work)(struct io_task *task);
    /* NULL, or: do it on the reader's thread if that cannot wait, else false. */
    bool (*at_once)(void *state, struct io_task *task);
    void *state; /* for at_once */
    /* With HANDLES_REMOTE: so many handles are kept, and the end of handle->remote, which the work
     * function begins. */
    uint32_t handles_most;
    void (*forget)(void *unused, struct handle *handle);
};

/* 0 or a negative errno with a reason. *alignment is what the shards ask for. */
int io_pool_create(struct io_pool **pool, const struct io_pool_settings *settings,
                   uint32_t *alignment);
/* Nothing may be in flight but what was given up. */
void io_pool_destroy(struct io_pool *pool);
uint32_t io_pool_threads(const struct io_pool *pool);

/* As the calls of struct reader_ops. */
int io_pool_submit(struct io_pool *pool, struct read_request *request);
int io_pool_reap(struct io_pool *pool, struct read_request **done, uint32_t max, uint64_t wait_ns);
void io_pool_release(struct io_pool *pool, struct read_request *request);
void io_pool_wake(struct io_pool *pool);

#endif
