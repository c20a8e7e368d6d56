/* SPDX-License-Identifier: Apache-2.0
 *
 * Moves the segments of the tcp transport by io_uring: one operation per flow and direction, which
 * the kernel completes in full. Long sends do not copy where the kernel can (Linux 6.2): their
 * memory is free again after a second completion, which tells whether the kernel had to copy after
 * all, as on a loopback; such a flow then uses ordinary sends, which are cheaper.
 */
#include "cmd/net/tcp.h"

#include "base/fail.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <liburing.h>
#include <stdlib.h>
#include <sys/socket.h>

enum { ENTRIES = 256, IDLE_MAX = 128, OPERATION_SEND_ZC = 47 };
/* Below this, copying is cheaper than pinning pages. */
static const uint64_t zero_copy_bytes = 32768;
/* Flags of newer headers: of completions, of a zero-copy send, and of the result of a notice. */
static const uint32_t flag_more = 1U << 1, flag_notice = 1U << 3, was_copied = 1U << 31;
static const uint16_t report_usage = 1U << 3;

struct tcp_uring_state {
    struct io_uring ring;
    bool has_zero_copy, has_saved; /* saved: a copy */
    uint32_t idle;                 /* polls in a row without a completion */
};

static int uring_open(void **state)
{
    struct tcp_uring_state *uring = memory_zeroed(sizeof *uring);

    if (!uring)
        return -ENOMEM;
    const int code = io_uring_queue_init(ENTRIES, &uring->ring, 0);
    if (code) {
        free(uring);
        return fail(-code, "transport tcp: io_uring: %s", fail_errno_text(code));
    }
    struct io_uring_probe *probe = io_uring_get_probe_ring(&uring->ring);
    uring->has_zero_copy = probe && OPERATION_SEND_ZC <= probe->last_op &&
                           probe->ops[OPERATION_SEND_ZC].flags & IO_URING_OP_SUPPORTED;
    if (probe)
        io_uring_free_probe(probe);
    *state = uring;
    return 0;
}

static void uring_close(void *state)
{
    struct tcp_uring_state *uring = state;

    io_uring_queue_exit(&uring->ring);
    free(uring);
}

static int uring_start(void *state, struct tcp_flow *flow)
{
    struct tcp_uring_state *uring = state;
    const struct tcp_segment *segment = &flow->segments[flow->first];
    assert(flow->count > 0);
    const uint64_t most = 1 << 30;
    const uint64_t bytes = segment->bytes < most ? segment->bytes : most;
    struct io_uring_sqe *entry = io_uring_get_sqe(&uring->ring);

    if (!entry && io_uring_submit(&uring->ring) >= 0)
        entry = io_uring_get_sqe(&uring->ring);
    if (!entry)
        return fail(EBUSY, "transport tcp: io_uring accepts no more operations");
    if (flow->sends)
        io_uring_prep_send(entry, flow->socket, segment->data, bytes, MSG_WAITALL | MSG_NOSIGNAL);
    else
        io_uring_prep_recv(entry, flow->socket, segment->data, bytes, MSG_WAITALL);
    if (flow->sends && uring->has_zero_copy && !flow->is_copied && bytes >= zero_copy_bytes) {
        entry->opcode = OPERATION_SEND_ZC; /* otherwise the same */
        entry->ioprio = report_usage;
    }
    io_uring_sqe_set_data(entry, flow);
    return 0;
}

static int uring_progress(void *state, struct tcp_flow *const *active, uint32_t count, bool *moved)
{
    struct tcp_uring_state *uring = state;
    struct __kernel_timespec brief = {.tv_nsec = 1000000};
    struct io_uring_cqe *entry;
    int code = io_uring_submit(&uring->ring);

    (void)active;
    (void)count;
    if (code < 0 && code != -EINTR && code != -EAGAIN && code != -EBUSY)
        return fail(-code, "transport tcp: io_uring: %s", fail_errno_text(code));
    if (uring->idle > IDLE_MAX)
        io_uring_wait_cqe_timeout(&uring->ring, &entry, &brief);
    for (code = 0; code == 0 && io_uring_peek_cqe(&uring->ring, &entry) == 0;) {
        struct tcp_flow *flow = io_uring_cqe_get_data(entry);
        const int result = entry->res;
        const uint32_t flags = entry->flags;
        io_uring_cqe_seen(&uring->ring, entry);
        *moved = true;
        if (!flow)
            continue;
        if (flags & flag_notice) {
            assert(flow->notices > 0);
            flow->notices--;
            flow->is_copied |= ((uint32_t)result & was_copied) != 0;
            uring->has_saved |= !flow->is_copied;
            continue;
        }
        flow->notices += (flags & flag_more) != 0;
        if (result == -EINVAL && uring->has_zero_copy) /* Linux 6.0 and 6.1 do not report it */
            uring->has_zero_copy = false;
        else if (result > 0)
            tcp_advance(flow, (uint64_t)result);
        else if (result != -EAGAIN && result != -EINTR)
            code = tcp_fail(flow, -result);
        if (code == 0 && flow->count)
            code = uring_start(uring, flow);
    }
    uring->idle = *moved ? 0 : uring->idle + 1;
    return code;
}

static const char *uring_describe(void *state)
{
    const struct tcp_uring_state *uring = state;

    return uring->has_saved       ? "io_uring, zero-copy sends from 32 KiB"
           : uring->has_zero_copy ? "io_uring; the kernel copies what is sent"
                                  : "io_uring";
}

const struct tcp_engine tcp_uring = {
    .name = "uring",
    .open = uring_open,
    .close = uring_close,
    .start = uring_start,
    .progress = uring_progress,
    .describe = uring_describe,
};
