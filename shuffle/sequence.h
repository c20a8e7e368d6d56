/* SPDX-License-Identifier: Apache-2.0
 *
 * sequence: the input of one rank in one epoch: the records it uses, in the order in which a
 * strategy takes them, before any shuffle buffer.
 *
 * The data set is split into units (the whole set, shards, chunks of bytes, or single records) in
 * storage or random order: the walk. The partition selects this rank's part of a walk, the
 * remainder rule how many of its records are used. A walk is stored as runs of adjacent records, so
 * its memory grows with the units, not the records; single records are permuted by a bijection,
 * without memory.
 *
 * Partitions: disjoint cuts a walk shared by all ranks into one slice per rank; a walk in storage
 * order is the same each epoch, so its slices rotate over the ranks. sticky, shards and replicated
 * give each rank a walk of its own (over a range, over every ranks-th shard, over everything).
 * elastic deals batches out of the shared walk.
 *
 * A draw has two numbers: its place among this rank's draws, and its position in the shared walk.
 * They are equal except for elastic, where places of all ranks share one sequence of positions.
 * Positions past the end of the walk (padding) wrap around. */
#ifndef IOBENCH_SHUFFLE_SEQUENCE_H
#define IOBENCH_SHUFFLE_SEQUENCE_H

#include "base/random.h"
#include "shuffle/plan.h"

enum sequence_unit { SEQUENCE_WHOLE, SEQUENCE_SHARDS, SEQUENCE_CHUNKS, SEQUENCE_RECORDS };

/* How to cut sticky ranges. */
enum sequence_cut {
    SEQUENCE_CUT_EVEN,    /* rank r has [r N / P, (r + 1) N / P) */
    SEQUENCE_CUT_CEILING, /* ceil(N / P) each while records last (dmlc-core's indexed split) */
    SEQUENCE_CUT_BYTES,   /* equal bytes (dmlc-core's plain split); even in a slice of a walk */
};

struct sequence_rules {
    enum sequence_unit unit;
    uint64_t chunk_bytes; /* of SEQUENCE_CHUNKS */
    bool permute;         /* units in random order; SEQUENCE_RECORDS implies it */
    enum sequence_cut cut;
    /* For elastic: deal a batch record by record instead of one piece per rank. */
    bool stride;
    /* For elastic over permuted shards: cut a fixed order of shards into this many parts, and
     * permute the shards of each part every epoch. 0 or 1: one part. */
    uint32_t nodes;
    bool is_buffered; /* through a buffer of this rank: refuses elastic, whose order all ranks share
                       */
};

enum { SEQUENCE_TABLES = 6 };

struct sequence_run {
    uint64_t first; /* record */
    uint64_t start; /* its position in the walk */
};

/* The first member of the state of a strategy, so that sequence_close() and others can be its ops.
 */
struct sequence {
    struct plan_scope scope;
    struct sequence_rules rules;
    uint64_t unit_count;
    uint64_t unit_most;   /* records of the largest unit */
    uint64_t *unit_first; /* of SEQUENCE_CHUNKS: unit_count + 1 record numbers */
    uint64_t *cuts;       /* of sticky ranges of equal bytes: start of each, ranks + 1 */
    uint64_t run_capacity;
    uint64_t least, most; /* smallest and largest record count of a rank */
    /* of the current epoch */
    struct sequence_run *runs; /* run_count + 1: the last one holds the end */
    uint64_t run_count, run_now;
    struct permutation permutation;
    uint64_t offset; /* start of the used part, in the walk */
    uint64_t own;    /* its length */
    uint64_t length; /* positions used; more than own if padded */
    uint64_t draws;  /* of this rank */
    uint64_t seed;   /* to shuffle inside units */
    /* of a strategy without a buffer: the record of each place, and the next operation */
    uint64_t (*record)(void *state, uint64_t place);
    uint64_t place;
    bool is_fetched;
    void *tables[SEQUENCE_TABLES]; /* of sequence_table() */
    uint32_t table_count;
};

/* Random streams by purpose, so that no two streams of a plan are equal. */
enum sequence_stream { SEQUENCE_ORDER = 1, SEQUENCE_BUFFER, SEQUENCE_INSIDE, SEQUENCE_FIXED };

/* Return the seed of a stream. Shared walks do not depend on the rank. */
uint64_t sequence_seed(const struct plan_scope *scope, enum sequence_stream stream, uint64_t epoch,
                       bool shared);

/* Adds the size of its tables to traits->state_bytes, and whether a strategy that takes its records
 * as they come fetches from front to back. Rejects a partition that leaves a rank without records.
 * Close after every open, failed ones included. */
int sequence_open(struct sequence *sequence, const struct plan_scope *scope,
                  const struct sequence_rules *rules, struct plan_traits *traits);

/* Ops of a strategy. state: begins with its sequence. next and seek: for one without a buffer,
 * whose operations are all in slot 0. */
void sequence_close(void *state);
int sequence_begin(void *state, uint64_t epoch);
int sequence_next(void *state, struct plan_op *ops, uint32_t max);
uint64_t sequence_draws(void *state);
void sequence_seek(void *state, uint64_t draw);

/* Maxima over all epochs. */
uint64_t sequence_draws_max(const struct sequence *sequence);
uint64_t sequence_length_max(const struct sequence *sequence);

uint64_t sequence_position(const struct sequence *sequence, uint64_t place);
/* Return whether a position belongs to this rank, and set its place. */
bool sequence_place(const struct sequence *sequence, uint64_t position, uint64_t *place);
/* Return the record at a position, padding included. Fast for consecutive positions. */
uint64_t sequence_at(struct sequence *sequence, uint64_t position);
/* Return the run that contains a position: [begin, end). It never wraps around, and ends within
 * length except for elastic. */
void sequence_bounds(struct sequence *sequence, uint64_t position, uint64_t *begin, uint64_t *end);

/* Allocate a plan's own table, zeroed, freed by sequence_close(), and add its size to
 * traits->state_bytes. Returns NULL with a reason if it exceeds scope->memory_bytes or memory is
 * short. */
void *sequence_table(struct sequence *sequence, struct plan_traits *traits, uint64_t count,
                     uint64_t size, const char *what);

#endif
