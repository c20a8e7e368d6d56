/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/loader/plan_prefetch.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/queue.h"
#include "base/thread.h"

#include <errno.h>
#include <stdlib.h>

struct plan_prefetch {
    struct plan *plans[2]; /* the next order is made in the first one */
    struct recorder *recorder;
    struct queue *requests; /* epoch + 1 */
    struct queue *made;     /* the plan, or NULL: it failed */
    bool is_requested;      /* and not acquired yet */
    bool is_answered;       /* `answer` was popped from `made` */
    void *answer;
    struct thread thread;
};

static int make_order(struct plan_prefetch *prefetch, uint64_t epoch)
{
    const uint64_t start_ns = clock_now_ns();
    int code = plan_begin(prefetch->plans[0], epoch);

    if (code == 0)
        recorder_mark(prefetch->recorder, "shuffle", epoch, start_ns);
    return code;
}

static int body(void *argument)
{
    struct plan_prefetch *prefetch = argument;
    int code = 0;
    void *entry;

    while (code == 0 && queue_pop_many(prefetch->requests, &entry, 1, true) == 1) {
        struct plan *plan = prefetch->plans[0];
        code = make_order(prefetch, (uint64_t)(uintptr_t)entry - 1);
        queue_push(prefetch->made, code ? NULL : plan);
    }
    return code;
}

struct plan_prefetch *plan_prefetch_create(struct plan *first, struct plan *second,
                                           struct recorder *recorder)
{
    struct plan_prefetch *prefetch = memory_zeroed(sizeof *prefetch);

    if (!prefetch)
        return NULL;
    *prefetch = (struct plan_prefetch){.plans = {first, second},
                                       .recorder = recorder,
                                       .requests = queue_create(1),
                                       .made = queue_create(1)};
    if (prefetch->requests && prefetch->made)
        return prefetch;
    plan_prefetch_destroy(prefetch);
    return NULL;
}

void plan_prefetch_destroy(struct plan_prefetch *prefetch)
{
    if (!prefetch)
        return;
    queue_destroy(prefetch->requests);
    queue_destroy(prefetch->made);
    free(prefetch);
}

bool plan_prefetch_overlaps(const struct plan_prefetch *prefetch)
{
    return prefetch->plans[1];
}

int plan_prefetch_start(struct plan_prefetch *prefetch)
{
    queue_reset(prefetch->requests);
    queue_reset(prefetch->made);
    prefetch->is_requested = prefetch->is_answered = false;
    return plan_prefetch_overlaps(prefetch)
               ? thread_start(&prefetch->thread, "prefetch", body, prefetch)
               : 0;
}

void plan_prefetch_cancel(struct plan_prefetch *prefetch)
{
    queue_cancel(prefetch->requests);
    queue_cancel(prefetch->made);
}

int plan_prefetch_stop(struct plan_prefetch *prefetch)
{
    queue_close(prefetch->requests);
    return thread_join(&prefetch->thread);
}

void plan_prefetch_request(struct plan_prefetch *prefetch, uint64_t epoch)
{
    prefetch->is_requested = true;
    queue_push(prefetch->requests, (void *)(uintptr_t)(epoch + 1));
}

static bool look(struct plan_prefetch *prefetch, bool wait)
{
    if (!prefetch->is_answered)
        prefetch->is_answered = queue_pop_many(prefetch->made, &prefetch->answer, 1, wait) == 1;
    return prefetch->is_answered;
}

bool plan_prefetch_is_ready(struct plan_prefetch *prefetch)
{
    return look(prefetch, false);
}

int plan_prefetch_acquire(struct plan_prefetch *prefetch, uint64_t epoch, struct plan **plan)
{
    if (!plan_prefetch_overlaps(prefetch)) {
        *plan = prefetch->plans[0];
        return make_order(prefetch, epoch);
    }
    if (!prefetch->is_requested)
        plan_prefetch_request(prefetch, epoch);
    if (!look(prefetch, true))
        return -ECANCELED;
    if (!prefetch->answer)
        return plan_prefetch_stop(prefetch);
    prefetch->is_requested = prefetch->is_answered = false;
    *plan = prefetch->answer;
    /* The thread waits for a request: no other thread uses the plans now. */
    prefetch->plans[0] = prefetch->plans[1];
    prefetch->plans[1] = *plan;
    return 0;
}
