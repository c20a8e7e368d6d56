/* SPDX-License-Identifier: Apache-2.0
 *
 * blocks: reads of adjacent records, and the memory that holds them.
 *
 * A block is one read. Each of its records holds it until the record is copied out or dropped; the
 * last one releases it: its memory to the arenas, or its mapped pages to the reader. A run whose
 * records stay in slots of the plan is scattered, if the reader can: the block's memory is only the
 * list of parts and what the gaps fill, and each record is read into its own. Knows no
 * draws. The loader's thread only.
 */
#ifndef IOBENCH_PIPELINE_LOADER_BLOCKS_H
#define IOBENCH_PIPELINE_LOADER_BLOCKS_H

#include "pipeline/loader/arenas.h"
#include "pipeline/loader/fetch.h"
#include "pipeline/loader/inflight.h"
#include "shuffle/coalesce.h"

struct block {
    struct read_request request;
    struct block *next; /* refused */
    uint64_t releases;  /* blocks->releases when it was submitted */
    uint32_t holders;
    uint32_t fetch_count;
    struct fetch *fetches; /* linked by next_in_block */
    void *memory;          /* from the arenas; NULL if the reader is zero-copy or reads nothing */
};

struct blocks {
    struct arenas *arenas;
    struct inflight *inflight;
    bool skip_errors;
    bool saving; /* free memory is for the records of failed blocks: copy nothing out */
    /* A reader without a free file or mapping refuses a read (-EAGAIN). The block is submitted
     * again after the next release; if there was none since it was submitted, the reader is
     * starved: nothing in flight will free a file. */
    struct block *refused;
    bool starved;
    uint64_t releases; /* reads that ended and blocks that were released */
    /* private */
    struct block *all, **free;
    uint32_t count, free_count;
};

/* Returns 0 or -ENOMEM with a reason; call blocks_destroy() either way. */
int blocks_create(struct blocks *blocks, uint32_t count, struct arenas *arenas,
                  struct inflight *inflight, bool skip_errors);
void blocks_destroy(struct blocks *blocks);
void blocks_reset(struct blocks *blocks);

/* Read a run of fetches. Returns 1 if submitted, 0 if memory is short, -EAGAIN if the reader is
 * full or starved, or a negative errno. */
int blocks_submit(struct blocks *blocks, const struct coalesce_run *run,
                  const struct placed_fetch *fetches);
/* Submit refused blocks again. Returns 1 if one was submitted, 0 if none, or a negative errno. */
int blocks_resubmit(struct blocks *blocks);

/* Finish a read that the reader gave back: its fetches are READY. If it failed, errors are skipped
 * and it has 2 to `room` fetches, release the block and store them in `retry`, to be read one by
 * one. Returns how many were stored, or a negative errno with a reason. */
int blocks_complete(struct blocks *blocks, struct read_request *request, struct placed_fetch *retry,
                    uint32_t room);

/* Release the memory of a record. */
void blocks_drop(struct blocks *blocks, struct fetch *fetch);
/* If the record is in the reader's mapped pages, copy it out, memory permitting. */
void blocks_unmap(struct blocks *blocks, struct fetch *fetch);
/* Return why the starved reader can never read again. */
int blocks_fail_starved(const struct blocks *blocks, uint64_t memory_bytes);

#endif
