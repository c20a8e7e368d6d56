/* SPDX-License-Identifier: Apache-2.0
 *
 * The p2p transport, the module iobench-net-p2p.so: the receiver copies from the sender's GPU. Each
 * rank counts in shared memory what it has sent to and taken from each other rank.
 */
#include "base/atomic.h"
#include "base/fail.h"
#include "base/memory.h"
#include "cmd/net/cuda/arena.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct p2p_peer {
    void *memory; /* the peer's arena */
    uint64_t sent, taken;
    uint64_t starting;                                 /* of the batch under way */
    struct transport_message awaited[TRANSPORT_DEPTH]; /* a ring */
    uint32_t first, count;
};

struct transport_p2p_state {
    struct gpu_arena arena;
    struct p2p_peer *peers;
    struct ranks_memory gates; /* of each rank: sent to each rank, taken from each rank */
};

struct p2p_identity {
    uint8_t bytes[RUNTIME_HANDLE_BYTES];
};

extern const struct transport_ops iobench_transport_p2p;

static uint32_t ranks_of(const struct transport_p2p_state *p2p)
{
    return p2p->arena.config.ranks->place.ranks;
}

static struct gate *gate_of(const struct transport_p2p_state *p2p, uint32_t of, uint32_t other,
                            bool taken)
{
    struct gate *gates = ranks_memory_of(&p2p->gates, of);

    return &gates[2 * other + taken];
}

static int transport_p2p_open(void *state, const void *settings,
                              const struct transport_config *config)
{
    struct transport_p2p_state *p2p = state;
    struct ranks *ranks = config->ranks;
    const uint32_t count = ranks->place.ranks;
    struct p2p_identity mine = {0};
    int code = 0;

    if (ranks->place.nodes > 1)
        code = fail(EINVAL, "transport p2p works within one node: use nccl, or verbs");
    p2p->peers = code ? NULL : memory_array(count, sizeof *p2p->peers);
    if (code == 0)
        code = p2p->peers ? gpu_arena_open(&p2p->arena, settings, config) : -ENOMEM;
    if (code == 0)
        code = runtime_share(p2p->arena.memory, mine.bytes);
    struct p2p_identity *all = ranks_collect(ranks, &code, &mine, sizeof mine);
    if (code == 0)
        code = ranks_share(ranks, 2 * (uint64_t)count * sizeof(struct gate), &p2p->gates);
    for (uint32_t i = 0; i < count && code == 0; i++)
        if (i != ranks->place.rank)
            code = runtime_reach(all[i].bytes, &p2p->peers[i].memory);
    free(all);
    return code;
}

static void transport_p2p_close(void *state, bool failed)
{
    struct transport_p2p_state *p2p = state;

    for (uint32_t i = 0; p2p->peers && i < ranks_of(p2p); i++)
        if (p2p->peers[i].memory)
            runtime_leave(p2p->peers[i].memory);
    if (!failed) /* nobody still has the memory that is about to be freed */
        ranks_meet(p2p->arena.config.ranks, 0, NULL);
    ranks_unshare(&p2p->gates);
    gpu_arena_close(&p2p->arena, failed);
    free(p2p->peers);
}

static void transport_p2p_describe(void *state, char *text, size_t bytes)
{
    const struct transport_p2p_state *p2p = state;

    snprintf(text, bytes, "copies between GPUs, from GPU %u (%s)", p2p->arena.runtime.device,
             p2p->arena.runtime.name);
}

static int transport_p2p_start(void *state, const struct transport_message *message, bool sends)
{
    struct transport_p2p_state *p2p = state;
    struct p2p_peer *peer = &p2p->peers[message->peer];

    if (sends) {
        gate_raise(gate_of(p2p, p2p->arena.config.ranks->place.rank, message->peer, false),
                   ++peer->sent);
        return 0;
    }
    assert(peer->count < TRANSPORT_DEPTH);
    peer->awaited[(peer->first + peer->count++) % TRANSPORT_DEPTH] = *message;
    return 0;
}

static int transport_p2p_test(void *state, bool *done)
{
    struct transport_p2p_state *p2p = state;
    bool started = false;
    int code = gpu_arena_test(&p2p->arena, done);

    if (code || !*done)
        return code;
    /* Tell the senders that the batch is done. */
    const uint32_t rank = p2p->arena.config.ranks->place.rank;
    for (uint32_t i = 0; i < ranks_of(p2p); i++) {
        struct p2p_peer *peer = &p2p->peers[i];
        if (peer->starting == 0)
            continue;
        peer->taken += peer->starting;
        peer->starting = 0;
        gate_raise(gate_of(p2p, rank, i, true), peer->taken);
    }
    for (uint32_t i = 0; i < ranks_of(p2p) && code == 0; i++) {
        /* Start what the peer has sent and is awaited. */
        struct p2p_peer *peer = &p2p->peers[i];
        const uint64_t sent = gate_value(gate_of(p2p, i, rank, false));
        while (peer->count > 0 && peer->taken + peer->starting < sent && code == 0) {
            const struct transport_message *message = &peer->awaited[peer->first];
            code = runtime_copy_peer(p2p->arena.memory + message->to, p2p->arena.runtime.device,
                                     peer->memory, message->from, message->bytes,
                                     p2p->arena.runtime.stream);
            peer->first = (peer->first + 1) % TRANSPORT_DEPTH;
            peer->count--;
            peer->starting++;
            started = true;
        }
    }
    if (code == 0 && started)
        code = gpu_arena_start(&p2p->arena);
    *done = !started;
    for (uint32_t i = 0; i < ranks_of(p2p) && *done; i++)
        *done = p2p->peers[i].count == 0 &&
                gate_value(gate_of(p2p, i, rank, true)) == p2p->peers[i].sent;
    return code;
}

const struct transport_ops iobench_transport_p2p = {
    .plugin = {.name = "p2p",
               .settings_size = sizeof(struct net_gpu_settings),
               .state_size = sizeof(struct transport_p2p_state),
               .usable = runtime_usable},
    .open = transport_p2p_open,
    .close = transport_p2p_close,
    .describe = transport_p2p_describe,
    .start = transport_p2p_start,
    .copy = gpu_arena_copy,
    .test = transport_p2p_test,
};
