/* SPDX-License-Identifier: Apache-2.0
 *
 * loader: the one place where plan and bytes meet. Its thread owns the plan and the reader: it
 * issues fetches as far ahead as its memory goes, and yields records in draw order, whatever
 * order storage answers in. It knows neither formats nor decoding. With several loaders the reads
 * are done on that many further threads (readers/parallel_reader.h); plan and delivery stay on this
 * one.
 *
 * Decode workers take fetches and return them; everything else runs on the loader's thread. All
 * memory is taken when it is created.
 */
#ifndef IOBENCH_PIPELINE_LOADER_LOADER_H
#define IOBENCH_PIPELINE_LOADER_LOADER_H

#include "base/plugin.h"
#include "dataset/catalog.h"
#include "pipeline/result/recorder.h"
#include "readers/depth.h"
#include "readers/reader.h"
#include "shuffle/coalesce.h"
#include "shuffle/plan.h"

#include <stdbool.h>
#include <stdint.h>

struct loader;

/* Where the records go. Called by the loader's thread. */
struct loader_sink {
    /* The next epoch has this many draws: the address of its first. */
    uint64_t (*expect)(void *state, uint64_t draws);
    void (*cancel)(void *state); /* the loader failed: nobody shall wait for its records */
    void *state;
};

enum {
    LOADER_DEPTH_MOST = 256,         /* of depth 0 */
    LOADER_ALIGNMENT_BUFFERED = 512, /* of memory, where reads are not direct */
};

struct loader_config {
    const struct catalog *catalog;
    const struct plugin_choice *reader;
    bool reader_falls_back; /* see struct reader_config */
    struct plan *plan;      /* open; used by the loader's thread while it runs */
    struct plan *next_plan; /* a second one of the same scope: the next order is made, and its first
                               fetches are issued, before an epoch is delivered. NULL: one epoch is
                               drained before the next one begins */
    struct loader_sink sink;
    uint32_t loaders;          /* threads that read; 1 (or 0): the loader's own */
    uint32_t depth;            /* reads in flight at most; 0: find the storage's knee */
    uint64_t memory_bytes;     /* for records; see loader_memory_needed() */
    uint64_t block_bytes;      /* adjacent records are read together up to this size */
    uint32_t window;           /* of coalesce_rules(); 0: auto */
    uint64_t io_timeout_ns;    /* 0: wait for ever */
    uint64_t rate_limit_bytes; /* per second; 0: none */
    uint64_t limit_samples;    /* draws of an epoch; 0: all */
    uint64_t epochs_max;       /* of one run */
    uint64_t resume_epoch;     /* this epoch starts at draw resume_draw */
    uint64_t resume_draw;
    /* Of memory: 4096 for direct reads, else 512. Direct reads into memory that does not begin at a
     * page work, but gave 7% less. */
    uint32_t alignment;
    bool skip_errors;          /* a record that cannot be read is delivered with its error */
    struct meter *meter;       /* what it does is counted there; NULL: nowhere */
    struct recorder *recorder; /* its phases are marked there; NULL: nowhere */
};

/* One record on its way. A worker holds it between loader_take() and loader_return(). */
struct fetch {
    uint64_t record;
    uint64_t address;  /* batch and row: of the sink */
    const void *bytes; /* the framed record; NULL when the reader brings none */
    uint32_t length;
    uint64_t epoch;
    int code; /* 0, or the negative errno it failed with (only when errors are skipped) */
    /* the loader's own */
    uint32_t state;
    bool alone;         /* read it in a block of its own: the block it was in failed */
    struct fetch *next; /* of its block */
    struct block *block;
    void *copy; /* its own memory, when it was copied out of its block */
};

struct loader_figures {
    uint64_t requests, request_bytes;
    uint64_t plan_ns;     /* making the epoch's order */
    uint64_t idle_ns;     /* storage had nothing to do since the epoch before */
    uint64_t read_end_ns; /* when its last read ended, on the monotonic clock; 0: reads went on */
    uint64_t quarter_ns;  /* when a quarter of its bytes had come, on the same; 0: not known */
    uint64_t head_ns;     /* that the first quarter took, from the first read's end on */
};

/* Memory a plan, a depth and so many loaders need at least, and what is comfortable. */
struct loader_memory {
    uint64_t least_bytes, wanted_bytes;
};
struct loader_memory loader_memory_needed(const struct catalog *catalog,
                                          const struct plan_traits *plan, uint32_t depth,
                                          uint64_t block_bytes, uint32_t loaders, uint32_t window);

/* How so many loaders with this memory make reads of fetches; memory UINT64_MAX: any. The reader's
 * alignment is not known here. */
struct coalesce loader_reads(const struct catalog *catalog, uint64_t memory_bytes,
                             uint64_t block_bytes, uint32_t loaders, uint32_t window);

/* What the loader takes besides the records' memory itself. */
uint64_t loader_tables_bytes(const struct coalesce *reads, const struct plan_traits *plan,
                             uint64_t memory_bytes, uint32_t alignment);

struct loader *loader_create(const struct loader_config *config); /* NULL with a reason */
void loader_destroy(struct loader *loader);

/* Start the thread and open the reader on it. 0, or why it could not be opened. */
int loader_start(struct loader *loader);
const struct reader_traits *loader_traits(const struct loader *loader);
/* Let it work on the next epoch of this run. Several may be asked for at once. */
void loader_begin(struct loader *loader, uint64_t epoch);
/* No more epochs: workers get 0 from loader_take() once all is delivered. */
void loader_finish(struct loader *loader);
void loader_cancel(struct loader *loader);
/* Close the reader and wait for the thread. Only when no worker holds a fetch any more: records
 * may lie in the reader's own memory. The first failure of the thread, or 0. */
int loader_join(struct loader *loader);

/* Workers: up to max fetches in draw order. Their count, 0 at the end, or -ECANCELED. */
int loader_take(struct loader *loader, struct fetch **fetches, uint32_t max);
void loader_return(struct loader *loader, struct fetch *const *fetches, uint32_t count);

/* Of the oldest epoch not asked for yet; waits for its end. False when the run was cancelled. */
bool loader_epoch_figures(struct loader *loader, struct loader_figures *figures);
/* Of the whole run; after loader_join(). */
/* What was found for depth 0, or is being found; after loader_join(). */
const struct depth *loader_depth(const struct loader *loader);
const struct reader_figures *loader_reader_figures(const struct loader *loader);
uint64_t loader_memory_peak_bytes(const struct loader *loader);
/* Windows that ended by the memory they may take, before they had all their records. */
uint64_t loader_windows_cut(const struct loader *loader);

/* Until now and since loader_start(); waits that go on are counted. Any thread. */
struct loader_waits {
    uint64_t storage_ns; /* the loader for the reader */
    uint64_t memory_ns;  /* the loader for memory */
    uint64_t records_ns; /* all workers together for records */
};
struct loader_waits loader_waits(struct loader *loader);

#endif
