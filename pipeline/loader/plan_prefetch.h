/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_prefetch: makes the order of the next epoch on its own thread while the loader works on the
 * current one. Two plans take turns: the loader uses one, the thread the other. With one plan there
 * is no thread, and each order is made when it is acquired.
 *
 * plan_prefetch_cancel(): any thread. All else: the loader's thread.
 */
#ifndef IOBENCH_PIPELINE_LOADER_PLAN_PREFETCH_H
#define IOBENCH_PIPELINE_LOADER_PLAN_PREFETCH_H

#include "pipeline/result/recorder.h"
#include "shuffle/plan.h"

#include <stdbool.h>

struct plan_prefetch;

/* Both plans are open, have the same scope and stay the caller's; second may be NULL. Returns NULL
 * with a reason. */
struct plan_prefetch *plan_prefetch_create(struct plan *first, struct plan *second,
                                           struct recorder *recorder);
void plan_prefetch_destroy(struct plan_prefetch *prefetch);

int plan_prefetch_start(struct plan_prefetch *prefetch);
void plan_prefetch_cancel(struct plan_prefetch *prefetch);
/* Wait for an order being made and stop. Returns the thread's failure, or 0. */
int plan_prefetch_stop(struct plan_prefetch *prefetch);

/* Return true if there are two plans. */
bool plan_prefetch_overlaps(const struct plan_prefetch *prefetch);
/* Start making the order of the epoch that the next acquire returns. Needs two plans. */
void plan_prefetch_request(struct plan_prefetch *prefetch, uint64_t epoch);
/* Return true if acquire would not wait: the requested order is made or has failed. */
bool plan_prefetch_is_ready(struct plan_prefetch *prefetch);
/* Wait for the plan, at the start of the epoch, and hand the other one back to the thread; request
 * it first if not yet requested. Returns 0 or a negative errno with a reason. */
int plan_prefetch_acquire(struct plan_prefetch *prefetch, uint64_t epoch, struct plan **plan);

#endif
