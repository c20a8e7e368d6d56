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

#include "base/thread.h"
#include "pipeline/loader/config.h"
#include "pipeline/loader/fetch.h"
#include "readers/depth.h"
#include "readers/reader.h"

struct loader;

struct loader *loader_create(const struct loader_config *config); /* NULL with a reason */
void loader_destroy(struct loader *loader);

/* Start the thread and open the reader on it. Returns 0 or a negative errno with a reason. */
int loader_start(struct loader *loader);
/* Trace fetches and reads of the runs to come. ring: the loader's thread's; NULL: do not. */
void loader_trace(struct loader *loader, struct trace_ring *ring);
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
