/* SPDX-License-Identifier: Apache-2.0
 *
 * config: what a loader is created from, what it measures of an epoch, and what it will need: read
 * sizes, record memory and tables. Pure functions. Any thread.
 */
#ifndef IOBENCH_PIPELINE_LOADER_CONFIG_H
#define IOBENCH_PIPELINE_LOADER_CONFIG_H

#include "base/plugin.h"
#include "dataset/catalog.h"
#include "pipeline/loader/fetch.h"
#include "pipeline/result/timeline.h"
#include "pipeline/settings/settings.h"
#include "shuffle/coalesce.h"
#include "shuffle/plan.h"

#include <stdbool.h>
#include <stdint.h>

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

/* ---- needs ---- */

/* Return the queue depth, or the largest that is searched with auto. */
uint32_t loader_depth_most(const struct read_settings *read);

/* Return the most record memory, of this alignment, that the set can occupy in two epochs that
 * overlap. */
uint64_t loader_set_bytes(const struct catalog *catalog, uint32_t alignment);

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

/* Return how many fetches are in use at most. */
uint64_t loader_fetches_most(const struct plan_traits *plan, uint32_t window);

/* Return the memory for everything but the records. */
uint64_t loader_tables_bytes(const struct coalesce *reads, const struct plan_traits *plan,
                             uint64_t memory_bytes, uint32_t alignment);

#endif
