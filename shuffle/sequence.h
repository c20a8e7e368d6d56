/* SPDX-License-Identifier: Apache-2.0
 *
 * sequence: the input of one rank in one epoch: which records it uses and the order in which a
 * strategy walks over them before any shuffle buffer of its own.
 *
 * The data set is seen as units (the whole of it, shards, chunks of bytes, single records) in
 * storage or random order: the walk. The partition says which part of a walk is this rank's, the
 * remainder how many records of it are used. A walk is kept as runs of neighbouring records, so
 * its memory goes with the units and not with the records; single records are permuted by a
 * bijection and need none.
 *
 * Partitions: disjoint cuts the walk that all ranks share into one slice a rank; a walk in
 * storage order is the same each epoch, so there the slices go round the ranks. sticky, shards
 * and replicated give each rank a walk of its own (over a range, over every ranks-th shard, over
 * everything). elastic deals batches out of the shared walk.
 *
 * Two numbers name a draw. Its place counts the draws of this rank. Its position counts in the
 * walk that is dealt: the same as the place, but for elastic, where places of all ranks share
 * one sequence of positions. Positions past the end of the walk (padding) begin it anew.
 */
#ifndef IOBENCH_SHUFFLE_SEQUENCE_H
#define IOBENCH_SHUFFLE_SEQUENCE_H

#include "base/random.h"
#include "shuffle/plan.h"

enum sequence_unit { SEQUENCE_WHOLE, SEQUENCE_SHARDS, SEQUENCE_CHUNKS, SEQUENCE_RECORDS };

/* Where sticky ranges are cut. */
enum sequence_cut {
    SEQUENCE_CUT_EVEN,    /* rank r has [r N / P, (r + 1) N / P) */
    SEQUENCE_CUT_CEILING, /* ceil(N / P) each while they last (dmlc-core's indexed split) */
    SEQUENCE_CUT_BYTES,   /* equal bytes (dmlc-core's plain split); even in a slice of a walk */
};

struct sequence_rules {
    enum sequence_unit unit;
    uint64_t chunk_bytes; /* of SEQUENCE_CHUNKS */
    bool permute;         /* units in random order; SEQUENCE_RECORDS always are */
    enum sequence_cut cut;
    /* For elastic: deal a batch record by record instead of in one piece a rank. */
    bool stride;
    /* For elastic over permuted shards: cut an order of shards that never changes into so many
     * parts, and permute the shards of each part every epoch. 0 and 1: the whole. */
    uint32_t nodes;
};

struct sequence_run {
    uint64_t first; /* record */
    uint64_t start; /* its position in the walk */
};

struct sequence {
    struct plan_scope scope;
    struct sequence_rules rules;
    uint64_t unit_count;
    uint64_t unit_most;   /* records of the largest unit */
    uint64_t *unit_first; /* of SEQUENCE_CHUNKS: unit_count + 1 record numbers */
    uint64_t *cuts;       /* of sticky ranges of equal bytes: where each begins, ranks + 1 */
    uint64_t run_capacity;
    uint64_t least, most; /* records of the poorest and of the richest rank */
    /* of the epoch begun */
    struct sequence_run *runs; /* run_count + 1: the last one holds the end */
    uint64_t run_count, run_now;
    struct permutation permutation;
    uint64_t offset; /* of the part that is dealt, in the walk */
    uint64_t own;    /* its length */
    uint64_t length; /* positions that are dealt; more than own when padded */
    uint64_t draws;  /* of this rank */
};

/* Purposes of random numbers, so that no two streams of a plan are the same. */
enum sequence_stream { SEQUENCE_ORDER = 1, SEQUENCE_BUFFER, SEQUENCE_INSIDE, SEQUENCE_FIXED };

/* The seed of a stream. Walks that ranks share do not depend on the rank. */
uint64_t sequence_seed(const struct plan_scope *scope, enum sequence_stream stream, uint64_t epoch,
                       bool shared);
bool sequence_is_shared(const struct plan_scope *scope);

/* Adds its tables to traits->state_bytes. Refuses a partition that leaves a rank without
 * records. Close it after every open, failed ones too. */
int sequence_open(struct sequence *sequence, const struct plan_scope *scope,
                  const struct sequence_rules *rules, struct plan_traits *traits);
void sequence_close(struct sequence *sequence);
int sequence_begin(struct sequence *sequence, uint64_t epoch);

/* The most of any epoch. */
uint64_t sequence_draws_max(const struct sequence *sequence);
uint64_t sequence_length_max(const struct sequence *sequence);

uint64_t sequence_position(const struct sequence *sequence, uint64_t place);
/* Whether a position is this rank's, and its place then. */
bool sequence_place(const struct sequence *sequence, uint64_t position, uint64_t *place);
/* The record at a position of the walk or of its padding. Fast when positions are neighbours. */
uint64_t sequence_at(struct sequence *sequence, uint64_t position);
/* The run that holds a position: [begin, end). It never goes round the end of the walk, nor
 * past length but for elastic. */
void sequence_bounds(struct sequence *sequence, uint64_t position, uint64_t *begin, uint64_t *end);

/* Claim memory for a plan's own table: zeroed, or NULL with a reason when it is more than
 * scope->memory_bytes allows or than there is. Adds it to traits->state_bytes. */
void *sequence_table(const struct plan_scope *scope, struct plan_traits *traits, uint64_t count,
                     uint64_t size, const char *what);

/* Operations of an order without a buffer of its own, slot 0 again and again: record() gives
 * the record of each place in turn. */
struct sequence_cursor {
    uint64_t place;
    bool fetched;
};
int sequence_next(struct sequence_cursor *cursor, uint64_t draws,
                  uint64_t (*record)(void *context, uint64_t place), void *context,
                  struct plan_op *ops, uint32_t max);

#endif
