/* SPDX-License-Identifier: Apache-2.0
 *
 * tcp: the parts of the tcp transport. Each pair of ranks has several connections, over which each
 * message is divided evenly; a connection has a flow of segments in each direction. An engine moves
 * the segments: by io_uring, or by plain calls where that is refused. Main thread only.
 */
#ifndef IOBENCH_CMD_NET_TCP_H
#define IOBENCH_CMD_NET_TCP_H

#include "cmd/net/transport.h"

enum { TCP_SEGMENTS = TRANSPORT_DEPTH + 8, TCP_CONNECTIONS_MAX = 64 };

struct tcp_segment {
    unsigned char *data;
    uint64_t bytes;
};

struct tcp_flow {
    int socket;
    uint32_t peer;
    bool sends;
    bool is_busy;     /* the engine is moving the first segment */
    bool is_copied;   /* zero-copy sends are copied all the same */
    uint32_t notices; /* zero-copy sends whose memory the kernel still reads */
    uint32_t first, count;
    struct tcp_segment segments[TCP_SEGMENTS]; /* a ring */
};

struct tcp_engine {
    const char *name;
    /* Returns a negative errno with a reason if refused here. NULL: has no state. */
    int (*open)(void **state);
    void (*close)(void *state);
    /* Begin the first segment of a flow. NULL: progress() does. */
    int (*start)(void *state, struct tcp_flow *flow);
    /* Move what can be moved; may wait up to 1 ms if nothing can. *moved: call again. active: the
     * flows that have segments. */
    int (*progress)(void *state, struct tcp_flow *const *active, uint32_t count, bool *moved);
    const char *(*describe)(void *state); /* NULL: plain calls */
};

/* The best between nodes first; the last always works, and is the best within one. */
extern const struct tcp_engine *const tcp_engines[];
extern const struct tcp_engine tcp_plain, tcp_uring;

/* Account for bytes moved of the first segment. */
void tcp_advance(struct tcp_flow *flow, uint64_t bytes);
/* Fail with the name of the peer. error: an errno, 0 if the connection was closed. */
int tcp_fail(const struct tcp_flow *flow, int error);

#endif
