/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_prefetch: makes the order of the next epoch on its own thread while the loader works on the
 * current one. Two plans take turns: the loader uses one, the thread the other. With one plan each
 * order is made when it is acquired. The loader's thread.
 */
#ifndef IOBENCH_PIPELINE_LOADER_PLAN_PREFETCH_H
#define IOBENCH_PIPELINE_LOADER_PLAN_PREFETCH_H

#include "base/atomic.h"
#include "base/thread.h"
#include "pipeline/result/recorder.h"
#include "shuffle/plan.h"

struct plan_prefetch {
    /* Open, of the same scope; the next order is made in the first one. The second may be NULL. */
    struct plan *plans[2];
    struct recorder *recorder;
    /* private */
    struct thread thread;
    uint64_t epoch;
    bool is_requested; /* and not acquired yet */
    struct flag is_made;
};

/* Start making the order of the epoch that the next acquire returns. Needs two plans. */
void plan_prefetch_request(struct plan_prefetch *prefetch, uint64_t epoch);
/* Return true if acquire would not wait: the requested order is made or has failed. */
bool plan_prefetch_is_ready(const struct plan_prefetch *prefetch);
/* Wait for the plan, at the start of the epoch; make its order now if it was not requested. Returns
 * 0 or a negative errno with a reason. */
int plan_prefetch_acquire(struct plan_prefetch *prefetch, uint64_t epoch, struct plan **plan);
/* Wait for an order being made and forget it. */
void plan_prefetch_stop(struct plan_prefetch *prefetch);

#endif
