/* SPDX-License-Identifier: Apache-2.0
 *
 * blocks: reads of adjacent records, and the memory that holds them.
 *
 * A block is one read. Each of its records holds it until the record is copied out or dropped;
 * after the last one the caller frees it. A run whose records stay in slots of the plan is
 * scattered, if the reader can: the block's memory is only the list of parts and what the gaps
 * fill, and each record is read into its own. Knows no draws and calls no reader. The loader's
 * thread only.
 */
#ifndef IOBENCH_PIPELINE_LOADER_BLOCKS_H
#define IOBENCH_PIPELINE_LOADER_BLOCKS_H

#include "base/thread.h"
#include "pipeline/loader/loader.h"
#include "readers/reader.h"
#include "shuffle/coalesce.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

/* ---- record memory ----
 *
 * Each I/O thread has an equal share on one NUMA node, divided into heaps of at most 1 GiB, the
 * largest buffer that the kernel registers. Knows neither plans nor reads. */

struct arenas {
    struct iovec *regions; /* of the heaps; the same number for each I/O thread, in its order */
    uint32_t count;
    bool held; /* the kernel may still write here (a read timed out): never free it */
    /* private */
    bool balanced;
    struct heap **heaps;
};

/* used_bytes: of each heap, and granule, the alignment of extents: see heap_create(). Returns 0 or
 * a negative errno with a reason; call arenas_destroy() either way. */
int arenas_create(struct arenas *arenas, uint64_t bytes, uint64_t used_bytes, uint32_t granule,
                  uint32_t io_threads, const struct numa *numa);
void arenas_destroy(struct arenas *arenas);
/* Release everything and reset the peak. */
void arenas_reset(struct arenas *arenas);

/* Return memory and the index of its region, or NULL, without a reason, if no extent is large
 * enough. source: where its bytes will be copied from, an address or an offset in a file; the
 * memory is, if possible, not where processors copy slowly. */
void *arenas_acquire(struct arenas *arenas, uint64_t source, uint64_t bytes, uint32_t *region);
void arenas_release(struct arenas *arenas, void *memory);

uint64_t arenas_used_bytes(const struct arenas *arenas);
uint64_t arenas_peak_bytes(const struct arenas *arenas);

/* ---- blocks ---- */

struct block {
    struct read_request request;
    struct block *next; /* the loader's: of those that the reader refused */
    uint64_t releases;  /* the loader's: their count when it was submitted */
    uint32_t holders;
    uint32_t fetch_count;
    struct fetch *fetches; /* linked by next_in_block; until the first is dropped */
    void *memory;          /* from the arenas; NULL if the reader is zero-copy or reads nothing */
};

struct blocks {
    struct arenas *arenas;
    const struct reader_traits *traits; /* of the reader, once it is open */
    struct block *all, **free;
    uint32_t count, free_count;
};

/* Returns 0 or -ENOMEM with a reason; call blocks_destroy() either way. */
int blocks_create(struct blocks *blocks, uint32_t count, struct arenas *arenas,
                  const struct reader_traits *traits);
void blocks_destroy(struct blocks *blocks);
void blocks_reset(struct blocks *blocks);

/* Acquire a block and memory for the next run of a window, and describe its read. Returns NULL if
 * memory is short. Once it is submitted, blocks_hold() makes its fetches READING; if it is not,
 * blocks_undo() gives all back. */
struct block *blocks_prepare(struct blocks *blocks, const struct coalesce_run *run,
                             const struct placed_fetch *fetches);
void blocks_hold(struct block *block, const struct placed_fetch *fetches);
void blocks_undo(struct blocks *blocks, struct block *block, const struct placed_fetch *fetches);

/* After its read: its fetches are READY. copies: those that stay in a slot of the plan are copied
 * out, memory permitting. */
void blocks_finish(struct blocks *blocks, struct block *block, bool copies);
/* After a failed read: release the records' own memory, unless the kernel may still write there. */
void blocks_fail(struct blocks *blocks, struct block *block);
/* Take the fetches of a failed read off its block, so that each can be read alone. */
void blocks_split(struct block *block, struct placed_fetch *fetches);

/* Release the memory of a record. Returns the block if this was its last one, else NULL. */
struct block *blocks_drop(struct blocks *blocks, struct fetch *fetch);
/* Move a record to its own memory, if available, and off its block. Returns as blocks_drop(). */
struct block *blocks_copy_out(struct blocks *blocks, struct fetch *fetch);
/* Free a block that no record holds, and its memory, unless the kernel may still write there. */
void blocks_free(struct blocks *blocks, struct block *block);

#endif
