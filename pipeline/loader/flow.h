/* SPDX-License-Identifier: Apache-2.0
 *
 * flow: moves records from the plan to the workers, in draw order, and takes them back.
 *
 * Joins window, blocks and reads in flight: one turn of the loader's loop, and its waits. A draw
 * leaves once its bytes are there and all earlier draws have left. Knows neither threads nor where
 * epochs come from. The loader's thread, unless a line says
 * otherwise.
 */
#ifndef IOBENCH_PIPELINE_LOADER_FLOW_H
#define IOBENCH_PIPELINE_LOADER_FLOW_H

#include "base/atomic.h"
#include "base/histogram.h"
#include "base/queue.h"
#include "base/trace.h"
#include "pipeline/loader/arenas.h"
#include "pipeline/loader/blocks.h"
#include "pipeline/loader/config.h"
#include "pipeline/loader/inflight.h"
#include "pipeline/loader/window.h"
#include "pipeline/result/result.h"

struct flow {
    const struct loader_config *config;
    struct arenas arenas;
    struct window window;
    struct inflight inflight;
    struct blocks blocks;
    struct draw_list draws;                          /* not delivered yet */
    uint64_t next_address;                           /* the least that may be delivered next */
    uint64_t outstanding;                            /* fetches delivered and not returned */
    struct queue *ready;                             /* fetches to workers, in draw order */
    struct queue *returned;                          /* and back */
    struct histogram latency_ns[RESULT_EPOCH_KINDS]; /* of reads, by the epoch that needs them */
    struct trace_ring *trace;                        /* of the loader's thread; NULL: none */
    uint64_t planned_ns;                             /* when the window was filled, for the trace */
    struct flag wants_returned; /* it waits for the reader, but could use a returned fetch */
};

/* config must outlive the flow. Returns 0 or a negative errno with a reason; call flow_destroy()
 * either way. */
int flow_create(struct flow *flow, const struct loader_config *config, const struct numa *numa);
void flow_destroy(struct flow *flow);
/* Forget what a previous run left behind. */
void flow_reset(struct flow *flow);

/* Take back returned fetches, submit reads, reap those that ended and deliver what is ready.
 * Returns 1 if any of it happened, 0 if not, or a negative errno. *blocked: memory (or fetches) ran
 * out. */
int flow_turn(struct flow *flow, bool *blocked);
/* After a turn that did nothing, wait until another can do something. Returns a negative errno with
 * a reason if none ever will. */
int flow_wait(struct flow *flow, bool blocked);
/* True if every record of the epoch has been delivered. */
bool flow_is_drained(const struct flow *flow);
/* Take back returned fetches, waiting for the first up to METER_WAIT_NS. Returns 0 or -ECANCELED.
 */
int flow_collect(struct flow *flow, bool wait);
/* Assert that the run left nothing behind: all fetches are returned. */
void flow_check_end(const struct flow *flow);
/* Drop the records that the plan still holds in its slots. Returns their number. */
uint64_t flow_drop_slots(struct flow *flow);

/* Workers: see loader_release(). */
void flow_release(struct flow *flow, struct fetch *const *fetches, uint32_t count);

#endif
