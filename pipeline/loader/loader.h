/* SPDX-License-Identifier: Apache-2.0
 *
 * loader: records in draw order.
 *
 * The only place where plan and bytes meet. Its thread owns the plan and the reader: it reads as
 * far ahead as its memory allows and delivers records in draw order, whatever order storage answers
 * in. Knows neither formats nor decoding. With several I/O threads only the reads move there
 * (readers/reader.h).
 *
 * Workers acquire and release fetches; all else runs on the loader's thread. All memory is
 * allocated by loader_create().
 */
#ifndef IOBENCH_PIPELINE_LOADER_LOADER_H
#define IOBENCH_PIPELINE_LOADER_LOADER_H

#include "base/plugin.h"
#include "base/trace.h"
#include "dataset/catalog.h"
#include "pipeline/result/timeline.h"
#include "pipeline/settings/job.h"
#include "readers/depth.h"
#include "readers/reader.h"
#include "shuffle/coalesce.h"
#include "shuffle/plan.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- a record on its way from the plan to a decode worker ----
 *
 *     FREE -> PENDING (in the window) -> READING (in a block) -> READY (read or failed)
 *          -> DELIVERED (with a worker) -> FREE
 *
 * A failed block sends its fetches back from READING to PENDING. A fetch gets its address when the
 * plan draws it, before or after its bytes arrive. A worker owns it only while it is DELIVERED. */

enum fetch_state { FETCH_FREE, FETCH_PENDING, FETCH_READING, FETCH_READY, FETCH_DELIVERED };

#define FETCH_UNDRAWN UINT64_MAX

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

/* Consumer of the records. Called by the loader's thread. */
struct loader_sink {
    /* The next epoch has this many draws. Returns the address of the first. */
    uint64_t (*expect)(void *state, uint64_t draws);
    void (*cancel)(void *state); /* the loader failed: stop waiting for its records */
    /* Finish records that need no worker, without waiting. Returns how many of the first; the
     * workers get the others. Or a negative errno with a reason, which ends the run. NULL: none. */
    int (*take)(void *taker, struct fetch *const *fetches, uint32_t count);
    void *state, *taker;
};

/* Alignment of memory for reads through the page cache; HEAP_ALIGNMENT for direct reads. Direct
 * reads into memory that does not start at a page work, but were 7% slower. */
enum { LOADER_ALIGNMENT_BUFFERED = 512 };

struct loader_config {
    const struct catalog *catalog;
    const struct plugin_choice *reader;
    bool reader_falls_back; /* see struct reader_config */
    struct plan *plan;      /* open; used by the loader's thread while it runs */
    /* A second plan of the same scope: the next epoch's order is made, and its first reads are
     * issued, before the current epoch is delivered. NULL: each epoch is drained before the next
     * begins. */
    struct plan *next_plan;
    struct loader_sink sink;
    const struct read_settings *read;   /* iodepth 0: find the saturation depth */
    const struct order_settings *order; /* window and limits only */
    uint64_t memory_bytes;              /* for records */
    uint64_t resume_epoch;              /* the first, which starts at draw resume_draw */
    uint64_t resume_draw;
    uint32_t alignment;        /* of memory */
    struct meter *meter;       /* counts reads and waits; may be NULL */
    struct recorder *recorder; /* marks phases; may be NULL */
};

/* Figures of one epoch. */
struct loader_figures {
    uint64_t requests, request_bytes;
    uint64_t plan_ns;       /* to make the epoch's order */
    uint64_t read_start_ns; /* start of its first read, monotonic clock; 0: none */
    uint64_t spare;         /* records read and never drawn, of a plan that was cut short */
    uint64_t idle_ns;       /* storage idle since the last read of the previous epoch */
    uint64_t
        read_end_ns; /* end of its last read, monotonic clock; 0: the next epoch's reads followed */
    uint64_t quarter_ns; /* when a quarter of its bytes had arrived, same clock; 0: unknown */
    uint64_t head_ns;    /* duration of the first quarter, from the end of the first read */
};

/* ---- what a loader will need: read sizes, record memory and tables. Pure functions; any thread
 * ----
 */

struct loader_memory {
    uint64_t least_bytes, wanted_bytes;
};

/* Return the minimum and the recommended record memory. */
struct loader_memory loader_memory_needed(const struct catalog *catalog,
                                          const struct plan_traits *plan,
                                          const struct read_settings *read, uint64_t window);

/* Return how fetches are coalesced into reads with this record memory (UINT64_MAX: any). The
 * reader's alignment is not known yet. */
struct coalesce loader_reads(const struct catalog *catalog, uint64_t memory_bytes,
                             const struct read_settings *read, uint64_t window);

/* Return the memory for everything but the records. */
uint64_t loader_tables_bytes(const struct coalesce *reads, const struct plan_traits *plan,
                             uint64_t memory_bytes, uint32_t alignment);

/* ---- the loader ---- */

struct loader;

struct loader *loader_create(const struct loader_config *config); /* NULL with a reason */
void loader_destroy(struct loader *loader);

/* Start the thread and open the reader on it. ring: of that thread, for a trace of fetches and
 * reads; NULL: none. Returns 0 or a negative errno with a reason. */
int loader_start(struct loader *loader, struct trace_ring *ring);
const struct reader_traits *loader_traits(const struct loader *loader);
/* Begin these epochs once those begun before have ended. */
void loader_begin(struct loader *loader, uint64_t first, uint64_t last);
/* No more epochs follow: loader_acquire() returns 0 once everything is delivered. */
void loader_finish(struct loader *loader);
void loader_cancel(struct loader *loader);
/* Close the reader and wait for the thread. Only when no worker holds a fetch: records may lie in
 * the reader's memory. Returns the thread's first failure, or 0. */
int loader_join(struct loader *loader);

/* Workers: take up to max fetches in draw order. Returns their count, 0 at the end, or -ECANCELED.
 */
int loader_acquire(struct loader *loader, struct fetch **fetches, uint32_t max);
/* Workers: return fetches. */
void loader_release(struct loader *loader, struct fetch *const *fetches, uint32_t count);

/* Wait for the end of the oldest epoch not yet waited for. Returns false if the run was cancelled.
 */
bool loader_epoch_figures(struct loader *loader, struct loader_figures *figures);

/* After loader_join(). */
struct loader_totals {
    const struct depth *depth;
    const struct reader_figures *reader;
    const struct histogram *latency_ns; /* of each result_epoch_kind */
    uint64_t memory_peak_bytes;
    uint64_t windows_cut; /* ended at their limit of bytes, before they had all their records */
};
struct loader_totals loader_totals(const struct loader *loader);

/* Since loader_start(), waits under way included. Any thread. */
struct loader_waits {
    uint64_t storage_ns; /* the loader waited for the reader */
    uint64_t memory_ns;  /* the loader waited for memory */
    uint64_t records_ns; /* workers waited for records, summed */
};
struct loader_waits loader_waits(struct loader *loader);

#endif
