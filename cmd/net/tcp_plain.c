/* SPDX-License-Identifier: Apache-2.0
 * Plain non-blocking calls. */
#include "cmd/net/tcp.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

enum { IDLE_MAX = 128, POLLED_MAX = 256 };

/* Calls in a row that moved nothing. */
static uint32_t idle;

static int plain_open(void **state, struct tcp_flow *flows, uint32_t flow_count)
{
    (void)flows;
    (void)flow_count;
    *state = &idle;
    idle = 0;
    return 0;
}

static void plain_close(void *state)
{
    (void)state;
}

static int plain_start(void *state, struct tcp_flow *flow)
{
    (void)state;
    flow->is_busy = true;
    return 0;
}

static int move(struct tcp_flow *flow, bool *moved)
{
    while (flow->count) {
        const struct tcp_segment *segment = &flow->segments[flow->first];
        const ssize_t bytes =
            flow->sends
                ? send(flow->socket, segment->data, segment->bytes, MSG_DONTWAIT | MSG_NOSIGNAL)
                : recv(flow->socket, segment->data, segment->bytes, MSG_DONTWAIT);
        if (bytes < 0 && (errno == EAGAIN || errno == EINTR))
            return 0;
        if (bytes <= 0)
            return tcp_fail(flow, bytes ? errno : 0);
        *moved = true;
        tcp_advance(flow, (uint64_t)bytes);
    }
    return 0;
}

static int plain_progress(void *state, struct tcp_flow *const *active, uint32_t count, bool *moved)
{
    uint32_t *still = state;
    int code = 0;

    for (uint32_t i = 0; i < count && code == 0; i++)
        code = move(active[i], moved);
    *still = *moved ? 0 : *still + 1;
    if (code == 0 && *still > IDLE_MAX) {
        /* Ranks may share CPUs. */
        struct pollfd polled[POLLED_MAX];
        nfds_t polled_count = 0;
        for (uint32_t i = 0; i < count && polled_count < POLLED_MAX; i++)
            if (active[i]->count)
                polled[polled_count++] = (struct pollfd){
                    .fd = active[i]->socket, .events = active[i]->sends ? POLLOUT : POLLIN};
        poll(polled, polled_count, 1);
    }
    return code;
}

static const char *plain_describe(void *state)
{
    (void)state;
    return "plain send and recv";
}

const struct tcp_engine tcp_plain = {
    .name = "plain",
    .open = plain_open,
    .close = plain_close,
    .start = plain_start,
    .progress = plain_progress,
    .describe = plain_describe,
};
