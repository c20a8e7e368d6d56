/* SPDX-License-Identifier: Apache-2.0
 *
 * delivery: passes drawn records to the workers in draw order and takes them back.
 *
 * A draw leaves once its bytes are there and all earlier draws have left. Knows neither storage nor
 * plans. Workers use the queues; all else runs on the loader's thread.
 */
#ifndef IOBENCH_PIPELINE_LOADER_DELIVERY_H
#define IOBENCH_PIPELINE_LOADER_DELIVERY_H

#include "base/queue.h"
#include "pipeline/loader/fetch.h"

struct delivery {
    struct draw_list draws; /* not delivered yet */
    uint64_t outstanding;   /* fetches delivered and not collected */
    struct queue *ready;    /* fetches to workers, in draw order */
    struct queue *returned; /* and back */
};

/* fetches: at most this many exist. Returns 0 or -ENOMEM with a reason; call delivery_destroy()
 * either way. */
int delivery_create(struct delivery *delivery, uint32_t fetches);
void delivery_destroy(struct delivery *delivery);
void delivery_reset(struct delivery *delivery);

/* Deliver READY draws up to the first that is not. Returns their count or -ECANCELED. */
int delivery_push(struct delivery *delivery);
/* Collect up to FETCH_GROUP returned fetches; if wait, at least one. Returns their count, 0 at the
 * end, or -ECANCELED. */
int delivery_collect(struct delivery *delivery, struct fetch **fetches, bool wait);
/* Wake every waiting thread; the calls of all then return -ECANCELED. Any thread. */
void delivery_cancel(struct delivery *delivery);

#endif
