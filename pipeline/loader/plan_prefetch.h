/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_prefetch: makes the order of the next epoch on its own thread while the loader works on the
 * current one. Two plans take turns: the loader uses one, the thread the other.
 *
 * Start, ask, take and stop from one thread; cancel from any.
 */
#ifndef IOBENCH_PIPELINE_LOADER_PLAN_PREFETCH_H
#define IOBENCH_PIPELINE_LOADER_PLAN_PREFETCH_H

#include "pipeline/result/recorder.h"
#include "shuffle/plan.h"

struct plan_prefetch;

/* The plans are open, for the same scope, and the caller's. NULL with a reason. */
struct plan_prefetch *plan_prefetch_create(struct plan *first, struct plan *second,
                                           struct recorder *recorder);
void plan_prefetch_destroy(struct plan_prefetch *prefetch);

int plan_prefetch_start(struct plan_prefetch *prefetch);
void plan_prefetch_cancel(struct plan_prefetch *prefetch);
/* Waits for an order that is being made. The thread's failure, or 0. */
int plan_prefetch_stop(struct plan_prefetch *prefetch);

/* Begin to make the order of an epoch, which the next plan_prefetch_take() is for. */
void plan_prefetch_ask(struct plan_prefetch *prefetch, uint64_t epoch);
/* The order that was asked for is made, or has failed: plan_prefetch_take() would not wait. */
bool plan_prefetch_ready(struct plan_prefetch *prefetch);
/* The plan, at the start of the epoch; the other one goes back to the thread. Waits for it; asks
 * for it when nobody has. 0 or a negative errno with a reason. */
int plan_prefetch_take(struct plan_prefetch *prefetch, uint64_t epoch, struct plan **plan);

#endif
