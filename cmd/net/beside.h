/* SPDX-License-Identifier: Apache-2.0
 *
 * net_beside: gradients and reads over one fabric: all-reduces at a trainer's rhythm, `iobench run`
 * on every rank, each alone and both at once. The reads are members (cmd/members.h), forked before
 * the ranks join: each reads its rank's part. Main thread only.
 */
#ifndef IOBENCH_CMD_NET_BESIDE_H
#define IOBENCH_CMD_NET_BESIDE_H

#include "cmd/members.h"
#include "cmd/net/rhythm.h"
#include "pipeline/result/timeline.h"

enum { NET_BESIDE_ROUNDS = 1000 };

enum net_stage {
    NET_STAGE_EXCHANGE, /* gradients alone */
    NET_STAGE_READS,    /* reads alone */
    NET_STAGE_BOTH,
    NET_STAGES,
};
extern const char *const net_stage_names[NET_STAGES]; /* of the phases in the series */

struct net_beside_settings {
    const char *reads; /* options of `iobench run` */
    const char *network;
    int halves; /* 1: gradients in FP16 */
    uint64_t buckets, step_ns, rounds, exchange_ns, seed, damage;
};

/* Of one round, all ranks. */
struct net_round {
    struct rhythm_figures exchange[NET_STAGES]; /* not in NET_STAGE_READS */
    double wall_s[NET_STAGES];                  /* of the rank that read longest */
    double samples[NET_STAGES], record_bytes[NET_STAGES], request_bytes[NET_STAGES];
};

struct net_beside {
    struct net_beside_settings settings;
    struct job job;
    struct invocation as_run;
    struct members members;
    struct rhythm rhythm;
    struct net_round *rounds;
    uint32_t ranks;
    struct guard_counts guard; /* of the exchanges; the reads have their own */
    char degraded[320];        /* of the reads, alone or beside; "": not degraded */
    char cache[40];            /* of this rank before its reads; "mixed", "": unknown */
};

/* Parse and check the reads, and fork. Before the ranks join. Returns 0 or a negative errno with a
 * reason; call net_beside_end() in either case. */
int net_beside_start(struct net_beside *beside, const struct net_beside_settings *settings,
                     const struct invocation *invocation);
/* Collective. transport: as in --transport. Marks the stages in the recorder. Returns 0 or a
 * negative errno; then rounds are those of all ranks, on every rank. */
int net_beside_run(struct net_beside *beside, const char *transport, struct ranks *ranks,
                   struct recorder *recorder);
void net_beside_end(struct net_beside *beside, int code);

/* ---- the report; rank 0. timeline: with the stages; NULL: unknown ---- */

void net_beside_text(const struct net_beside *beside, const struct timeline *timeline);
/* "beside" of the JSON document (docs/json.md). */
json_t *net_beside_json(const struct net_beside *beside, const struct timeline *timeline);

#endif
