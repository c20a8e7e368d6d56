/* SPDX-License-Identifier: Apache-2.0
 *
 * transport: moves messages between the ranks of a job, for measuring a fabric. A member is one
 * file: MPI, TCP, RDMA; or a module. Independent of what is measured; ranks/ranks.h is the control
 * plane, by which members exchange addresses when they open.
 *
 * Each rank has one arena of the same size, registered once. A message goes from an offset of the
 * sender's arena to an offset of the receiver's; both ends state both offsets, so that one-sided
 * transports need no further agreement. Messages of a pair arrive in the order they were sent.
 * Nothing blocks: send, receive, and poll until all is done. Main thread only.
 */
#ifndef IOBENCH_CMD_NET_TRANSPORT_H
#define IOBENCH_CMD_NET_TRANSPORT_H

#include "base/plugin.h"
#include "ranks/ranks.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum collective {
    COLLECTIVE_ALL_REDUCE,     /* in = sum of all ranks' out, as floats */
    COLLECTIVE_REDUCE_SCATTER, /* part RANK of in = sum of all ranks' part RANK of out */
    COLLECTIVE_ALL_GATHER,     /* part i of in = part i of rank i's out */
    COLLECTIVE_BROADCAST,      /* in of others = out of rank 0 */
    COLLECTIVE_ALL_TO_ALL,     /* part i of in = part RANK of rank i's out */
    COLLECTIVES,
};

enum {
    TRANSPORT_DEPTH = 64, /* messages in flight in each direction, to and from all peers together */
    TRANSPORT_TEXT_BYTES = 320,
};

struct transport_config {
    struct ranks *ranks; /* joined, at least 2 */
    unsigned char *arena;
    uint64_t bytes; /* of the arena */
};

/* Offsets in the sender's and in the receiver's arena. */
struct transport_message {
    uint32_t peer;
    uint64_t from, to, bytes;
};

struct transport_ops {
    struct plugin plugin;
    /* Collective; connects all ranks. close follows every open, failed ones too. */
    int (*open)(void *state, const void *settings, const struct transport_config *config);
    /* failed: transfers may be pending, and peers gone. */
    void (*close)(void *state, bool failed);
    /* What it has used, in words: library and version, device, addresses. */
    void (*describe)(void *state, char *text, size_t bytes);
    int (*start)(void *state, const struct transport_message *message, bool sends);
    /* Start a collective of its own, from out to in (offsets in the arena), in ranks equal parts of
     * `bytes` in total, a multiple of 4 each. NULL: rings of messages are used; none if there is
     * copy(). */
    int (*collective)(void *state, enum collective kind, uint64_t out, uint64_t in, uint64_t bytes);
    /* Messages are moved between copies of the arenas, on GPUs: copy a range there, or back. Off
     * the clock, while nothing is in flight. NULL: there are no copies. */
    int (*copy)(void *state, bool back, uint64_t at, uint64_t bytes);
    /* Make progress. *done: everything started is complete: what was sent may be overwritten, what
     * was received is in place. */
    int (*test)(void *state, bool *done);
    /* Sends, or receives if there are more, that are not complete. For one whose receiver holds up
     * the sender: any number of messages may follow each other. NULL: a receiver has to acknowledge
     * each TRANSPORT_DEPTH messages. */
    uint32_t (*pending)(const void *state);
};

extern const struct plugin *const transport_registry[];
extern const struct transport_ops transport_tcp; /* for the registry alone */

struct transport {
    struct plugin_choice choice;
    const struct transport_ops *ops;
    void *state;
    struct transport_config config;
    uint64_t looked_ns; /* private: when a wait last looked after the other ranks */
};

/* text: NAME[:OPTIONS]. Opens nothing. Returns 0 or a negative errno. */
int transport_choose(struct transport *transport, const char *text);
/* Collective. All fail alike. Call transport_close() in either case. */
int transport_open(struct transport *transport, const struct transport_config *config);
void transport_close(struct transport *transport, bool failed);
/* text: TRANSPORT_TEXT_BYTES. */
void transport_describe(const struct transport *transport, char *text);

/* Send a message, or receive it. */
int transport_start(struct transport *transport, const struct transport_message *message,
                    bool sends);
/* Wait until everything started is done. Returns 0; -ECANCELED if another rank failed; -ETIMEDOUT
 * with the name of a rank that is unresponsive; or a failure of the transport. */
int transport_wait(struct transport *transport);
/* If messages can follow each other without acknowledgements (ops->pending): once `window` messages
 * are under way, wait until half of them are done. window: at most TRANSPORT_DEPTH. Returns as
 * transport_wait(). */
int transport_make_room(struct transport *transport, uint32_t window);
/* Call after writing a range of the arena, and (back) before reading one. Off the clock. */
int transport_copy(struct transport *transport, bool back, uint64_t at, uint64_t bytes);

/* Return whether the chosen transport can do collectives. */
bool transport_allows_collectives(const struct transport *transport);
/* Run a collective: the transport's own if it has one, otherwise rings of messages. Returns as
 * transport_wait(). */
int transport_collective(struct transport *transport, enum collective kind, uint64_t out,
                         uint64_t in, uint64_t bytes);
extern const char *const collective_names[COLLECTIVES]; /* "all_reduce" */
/* Bus bandwidth over algorithm bandwidth, as defined by nccl-tests (doc/PERFORMANCE.md): comparable
 * with the speed of the hardware, whatever the number of ranks. */
double collective_bus_factor(enum collective kind, uint32_t ranks);

/* ---- options of transports in modules: parsed by the registry, used by the module ---- */

struct net_gpu_settings {
    uint64_t device; /* of those CUDA_VISIBLE_DEVICES leaves */
};

enum verbs_op { VERBS_WRITE, VERBS_READ, VERBS_SEND };
static const char *const verbs_op_names[] = {"write", "read", "send", NULL};

enum { VERBS_QPS_MAX = 64 };

struct verbs_settings {
    char *device, *gid; /* NULL: choose */
    uint64_t port;      /* 0: choose */
    int op;             /* enum verbs_op */
    uint64_t qps;
    uint64_t inline_bytes;
    uint64_t timeout; /* 4.096 us x 2^timeout for an acknowledgement */
    uint64_t service_level, traffic_class;
};

#endif
