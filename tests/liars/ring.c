/* SPDX-License-Identifier: Apache-2.0
 *
 * ring.so: an io_uring that completes one read in full without doing it, as if it took an error for
 * success. For LD_PRELOAD.
 */
#include <dlfcn.h>
#include <liburing.h>
#include <stdbool.h>

enum { MIDDLE = 20 };

static unsigned reads, skipped_bytes;
static __u64 skipped;
static bool done;

static void before(struct io_uring *ring)
{
    const struct io_uring_sq *sq = &ring->sq;

    for (unsigned i = sq->sqe_head; i != sq->sqe_tail; i++) {
        struct io_uring_sqe *sqe = &sq->sqes[i & *sq->kring_mask];
        if ((sqe->opcode != IORING_OP_READ && sqe->opcode != IORING_OP_READ_FIXED) ||
            ++reads < MIDDLE || skipped_bytes)
            continue;
        skipped = sqe->user_data;
        skipped_bytes = sqe->len;
        sqe->opcode = IORING_OP_NOP;
        sqe->rw_flags = 0;
        sqe->fd = -1;
        sqe->flags = 0;
    }
}

static void after(struct io_uring *ring)
{
    const struct io_uring_cq *cq = &ring->cq;

    for (unsigned i = *cq->khead; i != *cq->ktail; i++) {
        struct io_uring_cqe *cqe = &cq->cqes[i & *cq->kring_mask];
        if (skipped_bytes && !done && cqe->user_data == skipped) {
            cqe->res = (int)skipped_bytes;
            done = true;
        }
    }
}

int io_uring_submit(struct io_uring *ring)
{
    static int (*next)(struct io_uring *);

    if (!next)
        *(void **)(&next) = dlsym(RTLD_NEXT, "io_uring_submit");
    before(ring);
    const int code = next(ring);
    after(ring);
    return code;
}

int io_uring_submit_and_get_events(struct io_uring *ring)
{
    static int (*next)(struct io_uring *);

    if (!next)
        *(void **)(&next) = dlsym(RTLD_NEXT, "io_uring_submit_and_get_events");
    before(ring);
    const int code = next(ring);
    after(ring);
    return code;
}

int io_uring_submit_and_wait_timeout(struct io_uring *ring, struct io_uring_cqe **cqe,
                                     unsigned count, struct __kernel_timespec *wait, sigset_t *mask)
{
    static int (*next)(struct io_uring *, struct io_uring_cqe **, unsigned,
                       struct __kernel_timespec *, sigset_t *);

    if (!next)
        *(void **)(&next) = dlsym(RTLD_NEXT, "io_uring_submit_and_wait_timeout");
    before(ring);
    const int code = next(ring, cqe, count, wait, mask);
    after(ring);
    return code;
}
