/* SPDX-License-Identifier: Apache-2.0
 *
 * plan: what to read, and the order in which to use it. A shuffle strategy is a pure function of
 * (settings, layout, seed, epoch, rank); it never sees bytes.
 *
 * Plans are streamed. A cursor yields operations: FETCH record into slot, DRAW slot. A slot holds
 * one record from its FETCH to its DRAW, then is free again. A shuffle buffer of N records is N
 * slots; a strategy without a buffer reuses slot 0. The loader runs ahead of the draws as far as
 * its memory allows, so slots are names, not memory. The n-th DRAW of an epoch is draw n: batch n /
 * batch_size, row n % batch_size.
 *
 * One state per thread. A strategy declares its slots and its own memory before the run.
 */
#ifndef IOBENCH_SHUFFLE_PLAN_H
#define IOBENCH_SHUFFLE_PLAN_H

#include "base/plugin.h"
#include "dataset/catalog.h"

enum plan_kind { PLAN_FETCH, PLAN_DRAW };

struct plan_op {
    uint64_t record; /* for FETCH */
    uint32_t slot;
    enum plan_kind kind;
};

enum plan_partition {
    PLAN_DISJOINT,   /* records redistributed each epoch */
    PLAN_STICKY,     /* a fixed range in all epochs */
    PLAN_SHARDS,     /* whole shards per rank */
    PLAN_REPLICATED, /* every rank uses all records, with its own seed */
    PLAN_ELASTIC,    /* the global batch order does not depend on the number of ranks */
};

enum plan_remainder {
    PLAN_UNEVEN, /* ranks may differ by one or more */
    PLAN_PAD,    /* records repeat until all ranks have the same number */
    PLAN_DROP,   /* the remainder is dropped in this epoch */
};

/* In enum order, terminated by NULL. */
extern const char *const plan_partition_names[], *const plan_remainder_names[];

/* What a strategy knows about the data set and the job. */
struct plan_scope {
    const struct catalog *catalog; /* records, shards and sizes; never contents */
    uint64_t seed;
    uint32_t rank, ranks;
    enum plan_partition partition;
    enum plan_remainder remainder;
    uint32_t batch_size;
    uint64_t memory_bytes; /* limit of the plan's own tables; 0: none */
};

struct plan_traits {
    uint64_t slots;       /* records the plan itself holds at once, at least 1 */
    uint64_t state_bytes; /* memory of the plan's own tables */
    bool front_to_back;   /* an epoch fetches the records of each shard in their order, none left
                             out between the first and the last; padding begins again */
};

struct shuffle_ops {
    struct plugin plugin;
    bool interleaves;                   /* takes several shards in turn, each from front to back */
    const struct sequence_rules *rules; /* of its sequence, besides what the settings say */
    int (*open)(const struct shuffle_ops *ops, void *state, const void *settings,
                const struct plan_scope *scope, struct plan_traits *traits);
    void (*close)(void *state);
    /* Compute the order of an epoch (0, 1, ...) and seek to its start; epochs in any order. */
    int (*begin)(void *state, uint64_t epoch);
    /* Return at most max operations, and their number; 0 at the end of the epoch. */
    int (*next)(void *state, struct plan_op *ops, uint32_t max);
    /* Exact number of draws of the current epoch. */
    uint64_t (*draws)(void *state);
    /* Seek to a draw of the current epoch; for strategies with one slot. NULL: the wrapper skips
     * the operations before it. */
    void (*seek)(void *state, uint64_t draw);
};

extern const struct plugin *const shuffle_registry[];

/* Like plugin_choose(), but "auto" is the first shuffle of the registry; if shards can only be read
 * from front to back, as compressed ones, the first one that reads several of them in that way at
 * once. */
int shuffle_choose(const char *text, bool front_to_back, struct plugin_choice *choice);

struct plan {
    const struct shuffle_ops *ops;
    void *state;
    struct plan_scope scope;
    struct plan_traits traits;
    uint64_t begin_ns;         /* duration of the last begin() */
    struct plan_op *refetches; /* records held at the place that plan_seek() reached */
    uint64_t refetch_count, refetch_at;
};

int plan_open(struct plan *plan, const struct plugin_choice *choice,
              const struct plan_scope *scope);
void plan_close(struct plan *plan);
int plan_begin(struct plan *plan, uint64_t epoch);
int plan_next(struct plan *plan, struct plan_op *ops, uint32_t max);
uint64_t plan_draws(struct plan *plan);

/* After plan_begin(): seek, so that the next draw is number `draw` of the epoch. Its batch and row,
 * and plan_draws(), do not change. Of earlier records only those that a shuffle buffer holds at
 * that point are fetched: at most traits.slots. Computes on record numbers only, with 24 bytes per
 * slot. Returns -EINVAL if the epoch has no such draw. */
int plan_seek(struct plan *plan, uint64_t draw);

#endif
