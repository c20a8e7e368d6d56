/* SPDX-License-Identifier: Apache-2.0
 * The loader's insides, shared by loader.c (thread, delivery), window.c (plan to blocks) and
 * room.c (memory, files). */
#ifndef IOBENCH_PIPELINE_LOADER_LOADER_PRIVATE_H
#define IOBENCH_PIPELINE_LOADER_LOADER_PRIVATE_H

#include "base/pace.h"
#include "base/atomic.h"
#include "base/heap.h"
#include "base/memory.h"
#include "base/queue.h"
#include "base/stall.h"
#include "base/thread.h"
#include "pipeline/loader/loader.h"
#include "pipeline/loader/plan_prefetch.h"
#include "readers/parallel_reader.h"
#include "readers/rate.h"

#include <pthread.h>

/*
 * Life of a fetch: PENDING in the window -> READING in a block -> READY (bytes there or failed)
 * -> with a worker -> free. It gets its address when the plan draws it, which may be before or
 * after its bytes are there; it is delivered when it has both and all earlier draws are out.
 */
enum fetch_state { FETCH_FREE, FETCH_PENDING, FETCH_READING, FETCH_READY, FETCH_DELIVERED };

#define FETCH_UNDRAWN UINT64_MAX

/* One read: a run of neighbouring records. Lives until its last record has come back. */
struct block {
    struct read_request request;
    struct block *next; /* of those that the reader refused */
    uint64_t releases;  /* of the loader, when it was submitted */
    uint32_t holders;
    uint32_t fetch_count;
    struct fetch *fetches; /* chained by next */
    void *memory;          /* from the arena, NULL when the reader lends */
};

enum {
    PLAN_OPS = 256,
    EPOCHS_AHEAD = 8,  /* of the figures that are asked for: the caller begins one ahead */
    GROUP = 64,        /* fetches moved through a queue at once */
    BLOCKS_LEAST = 16, /* that the memory of each loader holds */
};

/* Registered buffers may be 1 GiB at most, and a read must lie in one of them. */
#define ARENA_BYTES_MAX (UINT64_C(1) << 30)
_Static_assert(CATALOG_RECORD_BYTES_MAX + 2 * 65536 <= ARENA_BYTES_MAX, "each record has a place");

struct loader {
    struct loader_config config;
    struct thread thread;
    struct queue *ready;    /* fetches to workers, in draw order */
    struct queue *returned; /* and back */
    struct queue *epochs;   /* numbers + 1, from loader_begin() */
    struct queue *opened;   /* one entry: the reader was opened, or failed to */
    struct queue *closing;  /* one entry: no worker holds a fetch any more */
    struct queue *ended;    /* the figures of each ended epoch */
    struct numa numa;
    struct parallel_reader_settings lanes; /* with several loaders */
    struct reader reader;
    uint32_t depth_most;                  /* what the reader is opened with */
    struct depth depth;                   /* finds the knee; else stays at depth_most */
    bool depth_is_used;                   /* as many reads are in flight as depth says */
    struct loader_figures figures;        /* of the epoch that runs */
    struct pace brought;                  /* bytes that came in it */
    uint64_t reads_end_ns;                /* when a read ended last, in this run */
    struct loader_figures *epoch_figures; /* of the ended ones, epochs_ahead: a ring */
    uint64_t epochs_run;
    uint32_t epochs_ahead; /* that are asked for and whose figures are not */

    struct heap **arenas; /* as many for each loader, one loader after the other */
    uint32_t arena_count;
    struct iovec *regions;
    bool memory_is_held; /* the kernel may still write to it: a read timed out */

    struct fetch *fetches; /* fetch_count of them */
    struct fetch **free_fetches;
    uint32_t fetch_count, free_fetch_count;
    struct block *blocks;
    struct block **free_blocks;
    uint32_t block_count, free_block_count;

    /* plan */
    struct plan_prefetch *prefetch; /* of overlapping epochs, else NULL */
    uint64_t next_epoch; /* + 1: already taken from `epochs`, its order is being made; 0: none */
    struct plan *plan;   /* of the epoch that is read */
    struct plan_op ops[PLAN_OPS];
    uint32_t op_at, op_count;
    bool plan_ended;
    bool plan_is_cut; /* the epoch ends before its plan does */
    uint64_t epoch, drawn, draws, first_address;
    struct fetch **slots; /* plan slot -> the fetch it holds */
    uint64_t slot_count;

    struct coalesce reads; /* how fetches become reads */
    /* fetches that wait to be read, sorted by place from window_at on */
    struct fetch **window;         /* reads.window, and room for a block that failed */
    struct fetch **window_scratch; /* reads.window */
    uint32_t window_at, window_count;
    uint64_t windows_cut;

    /* draws not yet delivered, in order: a ring of fetch_count entries */
    struct fetch **draw_ring;
    uint64_t draw_head, draw_tail;

    uint64_t outstanding; /* fetches with workers */
    /* Set when it waits for the reader although it could read more if a fetch came back. */
    struct flag wants_returned;

    pthread_mutex_t waits_lock; /* of the loader's own waits */
    struct stall for_storage, for_memory;

    /* A reader without a free file or map refuses a read (-EAGAIN) that nothing in flight will make
     * room for. It is submitted again after the next release of a file; if there was none since it
     * was submitted, the loader is starved. */
    struct block *refused;
    uint64_t releases; /* reads that ended and loans that were given back */
    bool starved;
    uint64_t heard_ns; /* when the reader answered last, or got work while it had none */
    struct rate rate;
};

/* Start an epoch of the plan. */
int window_begin(struct loader *loader, uint64_t epoch);
/* Run the plan ahead and submit blocks until the reader is full or starved, or memory is out.
 * 1 when something was submitted, 0 when not, or negative. *blocked says whether it is memory
 * (or fetches) that stopped it. */
int window_submit(struct loader *loader, bool *blocked);
/* True when the plan has ended and no fetch waits to be read. */
bool window_empty(const struct loader *loader);
/* The plan was cut short: fetches that no draw will use any more are dropped. */
void window_drop_slots(struct loader *loader);

/* Each loader has as much memory, in as many arenas. 0, or a negative errno with a reason. */
int loader_create_arenas(struct loader *loader);
/* Memory that the kernel may still write to is left. */
void loader_destroy_arenas(struct loader *loader);
void *loader_memory_take(struct loader *loader, uint64_t bytes, uint32_t *region);
void loader_memory_give(struct loader *loader, void *memory);
void loader_block_release(struct loader *loader, struct block *block);
/* The reader has room again for what it refused. */
void loader_note_release(struct loader *loader);
/* Give a record memory of its own, if there is some, and let go of its block. */
void loader_copy_out(struct loader *loader, struct fetch *fetch);
/* Nothing is in flight or with workers, and the reader refuses reads: copy records out of its maps.
 * 0, or why nothing could be given back. */
int loader_make_room(struct loader *loader);
/* The same for memory: the shuffle holds all. */
int loader_fail_stuck(const struct loader *loader);
void loader_fetch_free(struct loader *loader, struct fetch *fetch);

#endif
