/* SPDX-License-Identifier: Apache-2.0
 *
 * coalesce: turn the fetches of a plan into reads. The next fetches of the plan are gathered in a
 * look-ahead window and sorted by place on storage; adjacent ones are read together. The loader
 * reads by these rules, and shuffle/quality.c counts by them: sizes and limits have no other owner.
 *
 * Pure functions. Any thread.
 */
#ifndef IOBENCH_SHUFFLE_COALESCE_H
#define IOBENCH_SHUFFLE_COALESCE_H

#include "base/bytes.h"
#include "dataset/catalog.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    COALESCE_WINDOW_MAX = 1 << 20, /* that may be requested */
    COALESCE_RECORDS_MAX = 256,    /* in one read */
    COALESCE_GAP_BYTES = 4096,     /* formats leave small gaps between records: read through them */
};

struct coalesce {
    uint32_t window;       /* fetches that are sorted together; 1: each is read alone, in turn */
    uint64_t window_bytes; /* a window ends with the fetch that reaches this size */
    uint64_t read_bytes;   /* largest coalesced read; a single record may be larger */
    uint32_t alignment;    /* of reads; 1: none */
};

/* Return the rules for `memory_bytes` of record memory (UINT64_MAX: any). `window` 0 is auto: as
 * many records as 24 reads of read_bytes hold, at most 16,384. A window takes at most a quarter of
 * the memory; a longer one is shortened. */
struct coalesce coalesce_rules(const struct catalog *catalog, uint32_t window, uint64_t read_bytes,
                               uint64_t memory_bytes);

/* Return the memory that a window needs to be as long as coalesce_rules() allows with unlimited
 * memory. */
uint64_t coalesce_memory_bytes(const struct catalog *catalog, uint32_t window, uint64_t read_bytes);

static inline bool coalesce_is_full(const struct coalesce *rules, uint32_t count, uint64_t bytes)
{
    return count >= rules->window || (count > 0 && bytes >= rules->window_bytes);
}

/* The order within a window. */
static inline bool coalesce_before(const struct extent *a, const struct extent *b)
{
    return a->shard != b->shard ? a->shard < b->shard : a->offset < b->offset;
}

/* Adjacent records that are read together. */
struct coalesce_run {
    uint32_t shard, count;
    uint64_t start, end;  /* of the read, aligned */
    uint64_t records_end; /* end of the last record */
};

static inline struct coalesce_run coalesce_start(const struct coalesce *rules,
                                                 const struct extent *first)
{
    const uint64_t end = first->offset + first->bytes;

    return (struct coalesce_run){.shard = first->shard,
                                 .count = 1,
                                 .start = bytes_align_down(first->offset, rules->alignment),
                                 .end = bytes_align_up(end, rules->alignment),
                                 .records_end = end};
}

/* Extend the run by the next record of the window. Returns false, and leaves the run unchanged, if
 * the record needs a read of its own. */
static inline bool coalesce_extend(const struct coalesce *rules, struct coalesce_run *run,
                                   const struct extent *next)
{
    const uint64_t end = next->offset + next->bytes;

    if (run->count == COALESCE_RECORDS_MAX || next->shard != run->shard ||
        next->offset > run->records_end + COALESCE_GAP_BYTES ||
        bytes_align_up(end, rules->alignment) - run->start > rules->read_bytes)
        return false;
    if (end > run->records_end) /* reading the same record twice is also one read */
        run->records_end = end;
    run->end = bytes_align_up(run->records_end, rules->alignment);
    run->count++;
    return true;
}

#endif
