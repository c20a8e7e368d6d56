/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/loader/plan_prefetch.h"

#include "base/clock.h"

static int make_order(void *argument)
{
    struct plan_prefetch *prefetch = argument;
    const uint64_t start_ns = clock_now_ns();
    int code = plan_begin(prefetch->plans[0], prefetch->epoch);

    if (code == 0)
        recorder_mark(prefetch->recorder, "shuffle", prefetch->epoch, start_ns);
    flag_set(&prefetch->is_made);
    return code;
}

void plan_prefetch_request(struct plan_prefetch *prefetch, uint64_t epoch)
{
    prefetch->epoch = epoch;
    flag_clear(&prefetch->is_made);
    /* Without a thread the order is made when it is acquired. */
    prefetch->is_requested = thread_start(&prefetch->thread, "prefetch", make_order, prefetch) == 0;
}

bool plan_prefetch_is_ready(const struct plan_prefetch *prefetch)
{
    return prefetch->is_requested && flag_get(&prefetch->is_made);
}

int plan_prefetch_acquire(struct plan_prefetch *prefetch, uint64_t epoch, struct plan **plan)
{
    struct plan **plans = prefetch->plans;

    int code = thread_join(&prefetch->thread);

    if (!prefetch->is_requested) {
        prefetch->epoch = epoch;
        code = make_order(prefetch);
    }
    prefetch->is_requested = false;
    *plan = plans[0];
    if (plans[1]) {
        plans[0] = plans[1];
        plans[1] = *plan;
    }
    return code;
}

void plan_prefetch_stop(struct plan_prefetch *prefetch)
{
    thread_join(&prefetch->thread);
    prefetch->is_requested = false;
}
