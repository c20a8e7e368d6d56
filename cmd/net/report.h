/* SPDX-License-Identifier: Apache-2.0
 *
 * net_report: what `iobench net` asked for and got, its tables and its JSON. Rank 0, main thread.
 */
#ifndef IOBENCH_CMD_NET_REPORT_H
#define IOBENCH_CMD_NET_REPORT_H

#include "cmd/members.h"
#include "cmd/net/measure.h"
#include "pipeline/result/result.h"

#include <jansson.h>

/* ---- gradients and reads over one fabric ---- */

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

/* Figures of one round, over all ranks. */
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

struct net_asked {
    const struct survey_settings *settings;
    const struct ranks *ranks;
    const char *transport;           /* as chosen */
    const char *command;             /* the command line */
    struct result verdict;           /* of all ranks; the machine is that of rank 0 */
    const struct net_beside *beside; /* NULL: not requested */
    struct timeline *timeline;       /* of the machines meanwhile; NULL: unknown */
};

/* Returns 0 or, with nothing printed, -ENOMEM with a reason. */
int net_report_text(const struct net_asked *asked, const struct fabric_survey *survey);
/* Return the bus bandwidth of all-reduce of the largest message, bytes/s; NAN: not measured. */
double net_report_all_reduce(const struct fabric_survey *survey);
/* Return the sealed document; NULL with a reason. */
json_t *net_report_json(const struct net_asked *asked, const struct fabric_survey *survey);

/* Of gradients and reads alone. timeline: with the stages; NULL: unknown. */
void net_beside_text(const struct net_beside *beside, const struct timeline *timeline);
/* "beside" of the JSON document (docs/json.md). */
json_t *net_beside_json(const struct net_beside *beside, const struct timeline *timeline);

#endif
