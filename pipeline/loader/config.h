/* SPDX-License-Identifier: Apache-2.0
 *
 * config: what a loader is created from.
 */
#ifndef IOBENCH_PIPELINE_LOADER_CONFIG_H
#define IOBENCH_PIPELINE_LOADER_CONFIG_H

#include "base/plugin.h"
#include "dataset/catalog.h"
#include "pipeline/result/recorder.h"
#include "pipeline/settings/settings.h"
#include "shuffle/plan.h"

#include <stdbool.h>
#include <stdint.h>

/* Consumer of the records. Called by the loader's thread. */
struct loader_sink {
    /* The next epoch has this many draws. Returns the address of the first. */
    uint64_t (*expect)(void *state, uint64_t draws);
    void (*cancel)(void *state); /* the loader failed: stop waiting for its records */
    void *state;
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
    uint64_t memory_bytes;              /* for records; see loader_memory_needed() */
    uint64_t epochs_max;                /* per run */
    uint64_t resume_epoch;              /* this epoch starts at draw resume_draw */
    uint64_t resume_draw;
    uint32_t alignment;        /* of memory */
    struct meter *meter;       /* counts reads and waits; may be NULL */
    struct recorder *recorder; /* marks phases; may be NULL */
};

#endif
