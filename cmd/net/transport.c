/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/net/transport.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/gradients.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* Polls between two readings of the clock, and time between two checks of the other ranks: both are
 * rare, so that latency does not suffer. */
enum { POLLS = 64 };
static const uint64_t look_ns = 1000000;

int transport_choose(struct transport *transport, const char *text)
{
    *transport = (struct transport){0};
    int code = plugin_choose("transport", transport_registry, text, &transport->choice);
    if (code)
        return code;
    const struct plugin *plugin = transport->choice.plugin;
    transport->ops = (const struct transport_ops *)(const void *)plugin;
    code = plugin_usable(plugin);
    if (code)
        return code;
    plugin = module_plugin(plugin);
    transport->ops = (const struct transport_ops *)(const void *)plugin;
    return plugin ? 0 : -ENODEV;
}

int transport_open(struct transport *transport, const struct transport_config *config)
{
    assert(!transport->state);
    transport->config = *config;
    transport->state = memory_zeroed(transport->ops->plugin.state_size + 1);
    int code = ranks_meet(config->ranks, transport->state ? 0 : -ENOMEM, NULL);
    if (code == 0)
        code = transport->ops->open(transport->state, transport->choice.settings, config);
    return ranks_meet(config->ranks, code, NULL);
}

void transport_close(struct transport *transport, bool failed)
{
    if (transport->state)
        transport->ops->close(transport->state, failed);
    free(transport->state);
    transport->state = NULL;
    plugin_release(&transport->choice);
}

void transport_describe(const struct transport *transport, char *text)
{
    text[0] = '\0';
    transport->ops->describe(transport->state, text, TRANSPORT_TEXT_BYTES);
}

int transport_start(struct transport *transport, const struct transport_message *message,
                    bool sends)
{
    return transport->ops->start(transport->state, message, sends);
}

int transport_copy(struct transport *transport, bool back, uint64_t at, uint64_t bytes)
{
    assert(at + bytes <= transport->config.bytes);
    return transport->ops->copy ? transport->ops->copy(transport->state, back, at, bytes) : 0;
}

bool transport_allows_collectives(const struct transport *transport)
{
    return transport->ops->collective || !transport->ops->copy;
}

/* Wait until at most `most` transfers are pending. */
static int wait_until(struct transport *transport, uint32_t most)
{
    uint64_t start_ns = 0;
    int code = 0;

    while (code == 0) {
        for (int i = 0; i < POLLS && code == 0; i++) {
            bool done = false;
            code = transport->ops->test(transport->state, &done);
            if (code == 0 && (done || (most && transport->ops->pending(transport->state) <= most)))
                return 0;
        }
        const uint64_t now_ns = clock_now_ns();
        if (start_ns == 0)
            start_ns = now_ns;
        if (code == 0 && now_ns - transport->looked_ns > look_ns) {
            code = ranks_watch(transport->config.ranks, start_ns);
            transport->looked_ns = now_ns;
        }
        sched_yield(); /* ranks may share CPUs */
    }
    transport->config.ranks->is_broken = true; /* what is pending cannot be cancelled */
    return code;
}

int transport_wait(struct transport *transport)
{
    return wait_until(transport, 0);
}

int transport_make_room(struct transport *transport, uint32_t window)
{
    assert(window > 0 && window <= TRANSPORT_DEPTH);
    return transport->ops->pending(transport->state) < window ? 0
                                                              : wait_until(transport, window / 2);
}

/* ---- collectives ---- */

const char *const collective_names[COLLECTIVES] = {"all_reduce", "reduce_scatter", "all_gather",
                                                   "broadcast", "all_to_all"};

double collective_bus_factor(enum collective kind, uint32_t ranks)
{
    return kind == COLLECTIVE_ALL_REDUCE  ? gradients_sent_bytes(1, ranks)
           : kind == COLLECTIVE_BROADCAST ? 1
                                          : (double)(ranks - 1) / ranks;
}

/* The part or rank that comes `back` before. */
static uint32_t before(const struct ranks_place *place, uint32_t part, uint32_t back)
{
    return (part + 2 * place->ranks - back) % place->ranks;
}

static int exchange(struct transport *transport, struct transport_message to,
                    struct transport_message from)
{
    int code = transport_start(transport, &from, false);

    if (code == 0)
        code = transport_start(transport, &to, true);
    return code ? code : transport_wait(transport);
}

/* Each rank sends to the next and receives from the one before, one part at a time, so every link
 * carries (ranks - 1) / ranks of the bytes, the least possible. Part RANK is in `in`, or (is_own)
 * still in `out`, and ends in `in` of all ranks; or (adds) the sum of part RANK ends there. */
static int pass_around(struct transport *transport, uint64_t out, uint64_t in, uint64_t bytes,
                       bool is_own, bool adds)
{
    const struct ranks_place *place = &transport->config.ranks->place;
    unsigned char *arena = transport->config.arena;
    int code = 0;

    for (uint32_t step = 0; step + 1 < place->ranks && code == 0; step++) {
        const uint64_t sent = before(place, place->rank, adds + step) * bytes;
        const uint64_t received = before(place, place->rank, adds + step + 1) * bytes;
        const uint64_t base = is_own && step == 0 ? out : in;
        code = exchange(transport,
                        (struct transport_message){before(place, place->rank, place->ranks - 1),
                                                   base + sent, in + sent, bytes},
                        (struct transport_message){before(place, place->rank, 1), base + received,
                                                   in + received, bytes});
        const float *mine = (const float *)(const void *)(arena + out + received);
        float *sum = (float *)(void *)(arena + in + received);
        for (uint64_t i = 0; adds && i < bytes / sizeof *sum && code == 0; i++)
            sum[i] += mine[i];
    }
    return code;
}

int transport_collective(struct transport *transport, enum collective kind, uint64_t out,
                         uint64_t in, uint64_t bytes)
{
    const struct ranks_place *place = &transport->config.ranks->place;
    const uint64_t part = bytes / place->ranks, own = place->rank * part;
    unsigned char *arena = transport->config.arena;
    int code = 0;

    assert(bytes % place->ranks == 0);
    if (transport->ops->collective) {
        code = transport->ops->collective(transport->state, kind, out, in, bytes);
        return code ? code : transport_wait(transport);
    }
    if (kind == COLLECTIVE_ALL_GATHER || kind == COLLECTIVE_ALL_TO_ALL ||
        (kind == COLLECTIVE_BROADCAST && place->rank == 0))
        memcpy(arena + in + own, arena + out + own, part);
    /* Rank 0 hands out the parts of a broadcast, then all pass them around. */
    for (uint32_t i = 1; kind == COLLECTIVE_BROADCAST && i < place->ranks && code == 0; i++) {
        const struct transport_message message = {place->rank == 0 ? i : 0, out + i * part,
                                                  in + i * part, part};
        if (place->rank == 0 || place->rank == i)
            code = transport_start(transport, &message, place->rank == 0);
        if (code == 0)
            code = transport_wait(transport);
    }
    /* Step s: each rank sends to the s-th after it, so that nobody is sent to by two. */
    for (uint32_t step = 1; kind == COLLECTIVE_ALL_TO_ALL && step < place->ranks && code == 0;
         step++) {
        const uint32_t next = (place->rank + step) % place->ranks;
        const uint32_t last = before(place, place->rank, step);
        code =
            exchange(transport, (struct transport_message){next, out + next * part, in + own, part},
                     (struct transport_message){last, out + own, in + last * part, part});
    }
    if (code == 0 && (kind == COLLECTIVE_ALL_REDUCE || kind == COLLECTIVE_REDUCE_SCATTER))
        code = pass_around(transport, out, in, part, true, true);
    if (code == 0 && kind != COLLECTIVE_REDUCE_SCATTER && kind != COLLECTIVE_ALL_TO_ALL)
        code = pass_around(transport, out, in, part, kind == COLLECTIVE_ALL_GATHER, false);
    return code;
}
