/* SPDX-License-Identifier: Apache-2.0
 *
 * Rings: each rank sends to the next and receives from the one before, one part at a time, so every
 * link carries (ranks - 1) / ranks of the bytes for each half of an all-reduce, the least possible.
 */
#include "cmd/net/collective.h"

#include "base/gradients.h"

#include <assert.h>
#include <string.h>

struct ring {
    struct transport *transport;
    uint32_t rank, ranks;
    uint64_t out, in, part_bytes;
};

static uint64_t part_of(const struct ring *ring, uint64_t base, uint32_t part)
{
    return base + part * ring->part_bytes;
}

/* The part that comes `back` ranks before. */
static uint32_t before(const struct ring *ring, uint32_t part, uint32_t back)
{
    return (part + 2 * ring->ranks - back) % ring->ranks;
}

static int exchange(const struct ring *ring, const struct transport_message *to,
                    const struct transport_message *from)
{
    int code = transport_receive(ring->transport, from);

    if (code == 0)
        code = transport_send(ring->transport, to);
    return code ? code : transport_wait(ring->transport);
}

/* Send one part to the next rank's `in`, and receive one of the rank before. are_own: the parts are
 * still in `out` of their senders. */
static int pass_on(const struct ring *ring, uint32_t sent, uint32_t received, bool are_own)
{
    const uint64_t base = are_own ? ring->out : ring->in;

    return exchange(ring,
                    &(struct transport_message){.peer = (ring->rank + 1) % ring->ranks,
                                                .from = part_of(ring, base, sent),
                                                .to = part_of(ring, ring->in, sent),
                                                .bytes = ring->part_bytes},
                    &(struct transport_message){.peer = before(ring, ring->rank, 1),
                                                .from = part_of(ring, base, received),
                                                .to = part_of(ring, ring->in, received),
                                                .bytes = ring->part_bytes});
}

/* The sum of part RANK ends in `in` of each rank. */
static int reduce(const struct ring *ring)
{
    int code = 0;

    for (uint32_t step = 0; step + 1 < ring->ranks && code == 0; step++) {
        const uint32_t received = before(ring, ring->rank, 2 + step);
        code = pass_on(ring, before(ring, ring->rank, 1 + step), received, step == 0);
        if (code == 0) {
            unsigned char *arena = ring->transport->config.arena;
            const float *mine =
                (const float *)(const void *)(arena + part_of(ring, ring->out, received));
            float *sum = (float *)(void *)(arena + part_of(ring, ring->in, received));
            for (uint64_t i = 0; i < ring->part_bytes / sizeof *sum; i++)
                sum[i] += mine[i];
        }
    }
    return code;
}

/* Part RANK is in `in`, or still in out. */
static int gather_parts(const struct ring *ring, bool is_own)
{
    int code = 0;

    for (uint32_t step = 0; step + 1 < ring->ranks && code == 0; step++)
        code = pass_on(ring, before(ring, ring->rank, step), before(ring, ring->rank, step + 1),
                       step == 0 && is_own);
    return code;
}

static void copy_own(const struct ring *ring)
{
    unsigned char *arena = ring->transport->config.arena;

    memcpy(arena + part_of(ring, ring->in, ring->rank),
           arena + part_of(ring, ring->out, ring->rank), ring->part_bytes);
}

/* Rank 0 hands out the parts, then all pass them around. */
static int broadcast(const struct ring *ring)
{
    int code = 0;

    if (ring->rank == 0)
        copy_own(ring);
    for (uint32_t i = 1; i < ring->ranks && code == 0; i++) {
        const struct transport_message part = {
            .peer = ring->rank == 0 ? i : 0,
            .from = part_of(ring, ring->out, i),
            .to = part_of(ring, ring->in, i),
            .bytes = ring->part_bytes,
        };
        if (ring->rank == 0)
            code = transport_send(ring->transport, &part);
        else if (ring->rank == i)
            code = transport_receive(ring->transport, &part);
        if (code == 0)
            code = transport_wait(ring->transport);
    }
    return code ? code : gather_parts(ring, false);
}

/* In step s each rank sends to the s-th after it, so that nobody is sent to by two. */
static int swap_all(const struct ring *ring)
{
    int code = 0;

    copy_own(ring);
    for (uint32_t step = 1; step < ring->ranks && code == 0; step++) {
        const uint32_t next = (ring->rank + step) % ring->ranks;
        const uint32_t last = before(ring, ring->rank, step);
        code = exchange(ring,
                        &(struct transport_message){.peer = next,
                                                    .from = part_of(ring, ring->out, next),
                                                    .to = part_of(ring, ring->in, ring->rank),
                                                    .bytes = ring->part_bytes},
                        &(struct transport_message){.peer = last,
                                                    .from = part_of(ring, ring->out, ring->rank),
                                                    .to = part_of(ring, ring->in, last),
                                                    .bytes = ring->part_bytes});
    }
    return code;
}

int collective_run(struct transport *transport, enum collective kind, uint64_t out, uint64_t in,
                   uint64_t bytes)
{
    const struct ranks_place *place = &transport->config.ranks->place;
    const struct ring ring = {.transport = transport,
                              .rank = place->rank,
                              .ranks = place->ranks,
                              .out = out,
                              .in = in,
                              .part_bytes = bytes / place->ranks};

    int code = 0;

    assert(bytes % place->ranks == 0);
    if (transport->ops->collective) {
        code = transport_start_collective(transport, kind, out, in, bytes);
        return code ? code : transport_wait(transport);
    }
    switch (kind) {
    case COLLECTIVE_ALL_REDUCE:
        code = reduce(&ring);
        return code ? code : gather_parts(&ring, false);
    case COLLECTIVE_REDUCE_SCATTER:
        return reduce(&ring);
    case COLLECTIVE_ALL_GATHER:
        copy_own(&ring);
        return gather_parts(&ring, true);
    case COLLECTIVE_BROADCAST:
        return broadcast(&ring);
    case COLLECTIVE_ALL_TO_ALL:
        return swap_all(&ring);
    case COLLECTIVES:
        break;
    }
    return code;
}

const char *collective_name(enum collective kind)
{
    static const char *const names[COLLECTIVES] = {"all_reduce", "reduce_scatter", "all_gather",
                                                   "broadcast", "all_to_all"};

    return names[kind];
}

double collective_bus_factor(enum collective kind, uint32_t ranks)
{
    const double others = (double)(ranks - 1) / ranks;

    return kind == COLLECTIVE_ALL_REDUCE  ? gradients_sent_bytes(1, ranks)
           : kind == COLLECTIVE_BROADCAST ? 1
                                          : others;
}
