/* SPDX-License-Identifier: Apache-2.0
 * Writes by io_uring, on a ring like that of the uring reader. */
#include "cmd/checkpoint/save.h"

#include "base/clock.h"
#include "base/fail.h"
#include "readers/uring.h"

#include <assert.h>
#include <stdio.h>

struct uring_writer {
    const struct writer_config *config;
    struct io_uring ring;
    bool ring_is_up, fixed_buffers;
};

static int uring_writer_open(void *state, const struct writer_config *config,
                             char engine[WRITER_ENGINE_BYTES])
{
    struct uring_writer *writer = state;
    unsigned flags;
    int code = uring_make_ring(&writer->ring, config->depth, 0, &flags);

    if (code)
        return code;
    writer->config = config;
    writer->ring_is_up = true;
    /* Registering pins the memory and speeds up O_DIRECT only. */
    writer->fixed_buffers =
        config->direct &&
        io_uring_register_buffers(&writer->ring, config->buffers, config->depth) == 0;
    snprintf(engine, WRITER_ENGINE_BYTES, "io_uring%s%s", config->direct ? ", O_DIRECT" : "",
             writer->fixed_buffers ? ", registered buffers" : "");
    return 0;
}

static void uring_writer_close(void *state)
{
    struct uring_writer *writer = state;

    if (writer->ring_is_up)
        io_uring_queue_exit(&writer->ring);
}

static void uring_writer_submit(void *state, const struct writer_request *request)
{
    struct uring_writer *writer = state;
    const uint8_t *from = writer->config->buffers[request->index].iov_base;
    struct io_uring_sqe *sqe = io_uring_get_sqe(&writer->ring);

    assert(sqe); /* the ring has one SQE per buffer */
    if (writer->fixed_buffers)
        io_uring_prep_write_fixed(sqe, request->fd, from + request->from,
                                  request->bytes - request->from, request->offset + request->from,
                                  (int)request->index);
    else
        io_uring_prep_write(sqe, request->fd, from + request->from, request->bytes - request->from,
                            request->offset + request->from);
    sqe->user_data = request->index;
    uring_enter(&writer->ring, 0);
}

static int uring_writer_reap(void *state, struct writer_completion *done, uint64_t wait_ns)
{
    struct uring_writer *writer = state;
    struct io_uring_cqe *cqe;

    if (io_uring_cq_ready(&writer->ring) == 0) {
        int code = uring_enter(&writer->ring, wait_ns);
        if (code)
            return fail(code, "io_uring_enter: %s", fail_errno_text(code));
    }
    if (io_uring_peek_cqe(&writer->ring, &cqe))
        return 0;
    *done = (struct writer_completion){(uint32_t)cqe->user_data, cqe->res, clock_now_ns()};
    io_uring_cqe_seen(&writer->ring, cqe);
    return 1;
}

const struct writer_ops writer_uring = {
    .plugin = {.name = "uring",
               .summary = "io_uring: many writes in flight from one thread",
               .state_size = sizeof(struct uring_writer)},
    .open = uring_writer_open,
    .close = uring_writer_close,
    .submit = uring_writer_submit,
    .reap = uring_writer_reap,
};
