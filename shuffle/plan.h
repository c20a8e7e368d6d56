/* SPDX-License-Identifier: Apache-2.0
 *
 * plan: what to read, and in which order it is used. A shuffle strategy is a pure function of
 * (settings, layout, seed, epoch, rank): it never sees bytes.
 *
 * It is streamed. A cursor yields operations: FETCH record into slot, DRAW slot. A slot holds one
 * record from its FETCH to its DRAW, then may be fetched into again. A shuffle buffer of N is N
 * slots; an order without a buffer is slot 0 again and again. The loader runs ahead of the draws
 * as far as its memory goes, so slots are names, not memory. The n-th DRAW of an epoch is draw n:
 * batch n / batch_size, row n % batch_size.
 *
 * One state belongs to one thread. A strategy states before the run how many slots and how many
 * bytes of its own it needs.
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
    PLAN_DISJOINT,   /* records dealt anew each epoch */
    PLAN_STICKY,     /* a fixed range for ever */
    PLAN_SHARDS,     /* whole shards dealt */
    PLAN_REPLICATED, /* every rank walks everything with its own seed */
    PLAN_ELASTIC,    /* the global batch order does not depend on the number of ranks */
};

enum plan_remainder {
    PLAN_UNEVEN, /* ranks may differ by one or more */
    PLAN_PAD,    /* records repeat until all ranks have as many */
    PLAN_DROP,   /* the rest is left out this epoch */
};

/* In the order of the enums, with NULL at the end. */
extern const char *const plan_partition_names[], *const plan_remainder_names[];

/* What a strategy may know of the data set and of the job. */
struct plan_scope {
    const struct catalog *catalog; /* records, shards and sizes; never contents */
    uint64_t seed;
    uint32_t rank, ranks;
    enum plan_partition partition;
    enum plan_remainder remainder;
    uint32_t batch_size;
    uint64_t memory_bytes; /* the plan's own tables may take so much; 0: no limit */
};

struct plan_traits {
    uint64_t slots;       /* records held at once by the plan itself, at least 1 */
    uint64_t state_bytes; /* memory of the plan's own tables */
};

struct shuffle_ops {
    struct plugin plugin;
    int (*open)(void *state, const void *settings, const struct plan_scope *scope,
                struct plan_traits *traits);
    void (*close)(void *state);
    /* Make the order of an epoch (0, 1, ...) and stand at its start; any epoch, in any order. */
    int (*begin)(void *state, uint64_t epoch);
    /* The next operations, at most max. Returns their count; 0 at the end of the epoch. */
    int (*next)(void *state, struct plan_op *ops, uint32_t max);
    /* Exact number of draws of the epoch begun. */
    uint64_t (*draws)(void *state);
    /* Stand before a draw of the epoch begun; for orders that hold nothing (one slot). NULL: the
     * wrapper runs through the operations before it. */
    void (*seek)(void *state, uint64_t draw);
};

extern const struct plugin *const shuffle_registry[];

struct plan {
    const struct shuffle_ops *ops;
    void *state;
    struct plan_scope scope;
    struct plan_traits traits;
    uint64_t begin_ns;         /* time that the last begin() took */
    struct plan_op *refetches; /* what the plan holds at the place that plan_seek() went to */
    uint64_t refetch_count, refetch_at;
};

int plan_open(struct plan *plan, const struct plugin_choice *choice,
              const struct plan_scope *scope);
void plan_close(struct plan *plan);
int plan_begin(struct plan *plan, uint64_t epoch);
int plan_next(struct plan *plan, struct plan_op *ops, uint32_t max);
uint64_t plan_draws(struct plan *plan);

/* After plan_begin(): stand so that the next draw is number `draw` of the epoch (its batch and row
 * stay what they are; plan_draws() too). No record before it is fetched but those that a shuffle
 * buffer holds at that moment: at most traits.slots, whatever the draw. Takes time for numbers
 * only, and memory of 24 bytes a slot. -EINVAL when the epoch has no such draw. */
int plan_seek(struct plan *plan, uint64_t draw);

#endif
