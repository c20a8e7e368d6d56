/* SPDX-License-Identifier: Apache-2.0
 *
 * uring: internals of the io_uring reader, shared with nvme.c, whose ring sends commands to a disk.
 * The reader's thread only.
 */
#ifndef IOBENCH_READERS_URING_H
#define IOBENCH_READERS_URING_H

#include "readers/io_pool.h"
#include "readers/reader.h"

#include <liburing.h>

/* Kernel ABI (include/uapi/linux/io_uring.h) that older headers lack. */
enum {
    SETUP_SQE128 = 1 << 10,        /* 5.19, as is IORING_OP_URING_CMD */
    SETUP_CQE32 = 1 << 11,         /* 5.19 */
    SETUP_SINGLE_ISSUER = 1 << 12, /* 6.0 */
    SETUP_DEFER_TASKRUN = 1 << 13, /* 6.1 */
};

enum { READ_AHEAD_ENOUGH = 4 << 20 };   /* to keep a disk busy without many reads in flight */
enum { URING_GROUP_BYTES = 256 << 10 }; /* buffered reads that the kernel is given at once, about */

/* A read in the kernel, or one that waits to get there (struct uring_queue). Separate from the
 * caller's request: an abandoned read completes after the request is gone. */
enum uring_op_state { OP_FREE, OP_WAITING, OP_READING, OP_CANCELLING, OP_ABANDONED };

struct uring_op {
    enum uring_op_state state;
    struct read_request *request;
    struct handle *handle;
    uint32_t from;          /* bytes already read */
    uint32_t command_bytes; /* with commands: of the one in the kernel, and where it reads */
    uint64_t disk_offset;
    struct uring_op *next; /* free, or in the queue of its file */
};

/* Reads of a file, in order, that wait until it is open, or until others of it have ended. */
struct uring_queue {
    struct uring_op *first, *last;
    uint64_t reading; /* bytes of reads in the kernel */
    uint64_t arrived; /* bytes of reads that ended since the last one that was not further ahead */
    uint64_t front;   /* offset of the read begun last */
};

struct uring;

/* Replaces reads of a file by commands, one after the other, that each read some of the bytes.
 * All return 0 or a negative errno, perhaps with a text in request->why. */
struct uring_commands {
    /* The file was opened, or may have been checked again. */
    int (*check_file)(struct uring *uring, struct handle *handle, const char **why);
    /* Choose what is read from op->from on: set command_bytes and disk_offset. */
    int (*choose)(struct uring *uring, struct uring_op *op);
    void (*prepare)(struct uring *uring, const struct uring_op *op, struct io_uring_sqe *sqe);
    int (*judge)(int result, const char **why); /* of a completion */
};

struct uring {
    struct io_uring ring;
    bool ring_is_up;
    unsigned setup_flags;
    bool fixed_buffers, fixed_files;
    bool open_in_ring;                     /* open files by the ring */
    int rw_flags;                          /* RWF_* */
    uint8_t read_flags;                    /* IOSQE_* */
    struct io_pool *pool;                  /* used instead of the ring if io_uring is refused */
    const struct uring_commands *commands; /* NULL: files are read */

    const struct reader_config *config;
    struct handles handles;
    struct uring_op *ops, *free_ops;
    struct uring_queue *queues; /* by handle */
    uint64_t bytes_per_file; /* in the kernel at most, or one read: its read-ahead; 0: no limit */
    struct request_ring finished;
    uint32_t busy, abandoned; /* ops */
    uint64_t prepared_bytes;  /* of buffered reads that the kernel has not been given yet */
    uint64_t given_ns;        /* when it was given some before a reap; 0: it was not */
    struct waker waker;
    bool waker_is_polled; /* by the ring; never with iopoll */
    uint64_t look_ns;     /* when to check for late reads next */
    uint64_t submit_ns;   /* coarse time of the first read since the last reap; 0: none */
};

/* First and last step of open() for a reader with a ring and, once the ring is up, ends with.
 * flags: enum handles_flags. */
int uring_begin(struct uring *uring, const struct reader_config *config, uint32_t flags);
int uring_create_tables(struct uring *uring);

/* Return why a ring is refused. */
const char *uring_refusal_text(int refusal);

/* Calls of reader_ops; state: a struct uring. */
void uring_close(void *state);
int uring_submit(void *state, struct read_request *request);
int uring_reap(void *state, struct read_request **done, uint32_t max, uint64_t wait_ns);
void uring_wake(void *state);

/* Create a ring with `wanted` and the best of the other setup flags that this kernel has; *flags:
 * all of them. Also for rings that write. Returns 0 or a negative errno without a reason. */
int uring_make_ring(struct io_uring *ring, unsigned entries, unsigned wanted, unsigned *flags);

/* Submit prepared SQEs and wait up to wait_ns for one completion. Returns 0 or a negative errno. */
int uring_enter(struct io_uring *ring, uint64_t wait_ns);

#ifdef URING_IS_OLD
enum { URING_CAN_DEFER = false };
#else
enum { URING_CAN_DEFER = true };
#endif

#endif
