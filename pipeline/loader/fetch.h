/* SPDX-License-Identifier: Apache-2.0
 *
 * fetch: one record on its way from the plan to a decode worker.
 *
 *     FREE -> PENDING (in the window) -> READING (in a block) -> READY (read or failed)
 *          -> DELIVERED (with a worker) -> FREE
 *
 * A failed block sends its fetches back from READING to PENDING. A fetch gets its address when the
 * plan draws it, before or after its bytes arrive. A worker owns it only while it is DELIVERED.
 */
#ifndef IOBENCH_PIPELINE_LOADER_FETCH_H
#define IOBENCH_PIPELINE_LOADER_FETCH_H

#include "dataset/catalog.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum fetch_state { FETCH_FREE, FETCH_PENDING, FETCH_READING, FETCH_READY, FETCH_DELIVERED };

#define FETCH_UNDRAWN UINT64_MAX

enum { FETCH_GROUP = 64 }; /* fetches moved through a queue at once */

struct fetch {
    uint64_t record;
    uint64_t address;  /* batch and row, chosen by the sink; FETCH_UNDRAWN until drawn */
    const void *bytes; /* the framed record; NULL if the reader brings none */
    uint32_t length, shard;
    int code; /* 0, or the negative errno it failed with (only if errors are skipped) */
    uint64_t epoch;
    /* The loader's thread only. */
    enum fetch_state state;
    uint32_t offset; /* within its block */
    bool alone;      /* read it in a block of its own: its last block failed */
    struct fetch *next_in_block, *next_drawn;
    struct block *block; /* holds its bytes; NULL once it has its own memory */
    void *copy;          /* its own memory, or NULL */
};

/* A fetch and its place on storage. */
struct placed_fetch {
    struct extent place;
    struct fetch *fetch;
};

/* Drawn fetches in draw order, linked by next_drawn. */
struct draw_list {
    struct fetch *first, *last;
};

static inline void draw_list_append(struct draw_list *list, struct fetch *fetch)
{
    fetch->next_drawn = NULL;
    *(list->first ? &list->last->next_drawn : &list->first) = fetch;
    list->last = fetch;
}

#endif
