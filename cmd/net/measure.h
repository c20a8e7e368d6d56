/* SPDX-License-Identifier: Apache-2.0
 *
 * measure: times one kind of traffic of one size. Warm-up is apart: it also finds how many
 * operations fill a repeat. Between the repeats, off the clock, the data are written anew and what
 * arrived is verified. Main thread only.
 */
#ifndef IOBENCH_CMD_NET_MEASURE_H
#define IOBENCH_CMD_NET_MEASURE_H

#include "base/stats.h"
#include "cmd/net/transport.h"

enum pair_kind {
    PAIR_LATENCY, /* half the time there and back */
    PAIR_FORTH,   /* from the leading rank to the other */
    PAIR_BACK,
    PAIR_BOTH, /* at the same time; the sum of both directions */
    PAIR_KINDS,
};

struct measure {
    struct transport *transport;
    uint64_t half_bytes; /* of the arena: sent from the first half, received in the second */
    uint64_t repeat_ns;  /* at least, each */
    uint32_t repeats;
    bool verify;
    uint64_t damage;   /* flip a bit before this verification, from 1: shows that it is caught */
    uint64_t verified; /* so far, on this rank */
    uint64_t verified_bytes;
};

/* Bytes of an arena for messages of at most `most` bytes. */
uint64_t measure_arena_bytes(uint64_t most);

/* Both ranks of the pair call it; leads: on one of them, which gets the figures: seconds
 * (PAIR_LATENCY) or bytes/s. turn: a number of this measurement, the same on both. */
int measure_pair(struct measure *measure, uint32_t peer, bool leads, enum pair_kind kind,
                 uint64_t bytes, uint64_t turn, struct stats_summary *figure);

/* Collective; all ranks get the figure: seconds of one operation on the slowest rank. bytes: a
 * multiple of 8 for each rank. */
int measure_collective(struct measure *measure, enum collective kind, uint64_t bytes, uint64_t turn,
                       struct stats_summary *seconds);

/* ---- data whose place, sender and time can be recognised, so that a lost, swapped, stale or
 * changed word is found; off the clock, any thread ---- */

/* What a rank sends in one turn. */
struct pattern {
    uint32_t rank;
    uint64_t turn; /* of measuring; the same on all ranks */
};

void pattern_fill(const struct pattern *pattern, unsigned char *data, uint64_t bytes);
/* Compare data that was bytes from `offset` on. Returns 0, or -EBADMSG with a reason that names the
 * sender and the first wrong byte. */
int pattern_check(const struct pattern *pattern, uint64_t offset, const unsigned char *data,
                  uint64_t bytes);

/* The same for floats whose sum over all ranks is exact. bytes: a multiple of 4. */
void pattern_fill_floats(const struct pattern *pattern, unsigned char *data, uint64_t bytes);
int pattern_check_sum(uint64_t turn, uint32_t ranks, uint64_t offset, const unsigned char *data,
                      uint64_t bytes);

#endif
