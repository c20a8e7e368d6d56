/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/loader/plan_prefetch.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/queue.h"
#include "base/thread.h"

#include <errno.h>
#include <stdlib.h>

struct plan_prefetch {
    struct plan *plans[2]; /* the thread makes the next order in the first of them */
    struct recorder *recorder;
    struct queue *asked; /* epoch + 1 */
    struct queue *made;  /* the plan, or NULL: it failed */
    bool is_asked;       /* and not taken yet */
    bool is_answered;    /* `answer` was popped from `made` */
    void *answer;
    struct thread thread;
};

static int body(void *argument)
{
    struct plan_prefetch *prefetch = argument;
    int code = 0;
    void *entry;

    while (code == 0 && queue_pop_many(prefetch->asked, &entry, 1, true) == 1) {
        const uint64_t epoch = (uint64_t)(uintptr_t)entry - 1, start_ns = clock_now_ns();
        struct plan *plan = prefetch->plans[0];
        code = plan_begin(plan, epoch);
        if (code == 0)
            recorder_mark(prefetch->recorder, "shuffle", epoch, start_ns);
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
                                       .asked = queue_create(1),
                                       .made = queue_create(1)};
    if (prefetch->asked && prefetch->made)
        return prefetch;
    plan_prefetch_destroy(prefetch);
    return NULL;
}

void plan_prefetch_destroy(struct plan_prefetch *prefetch)
{
    if (!prefetch)
        return;
    queue_destroy(prefetch->asked);
    queue_destroy(prefetch->made);
    free(prefetch);
}

int plan_prefetch_start(struct plan_prefetch *prefetch)
{
    queue_reset(prefetch->asked);
    queue_reset(prefetch->made);
    prefetch->is_asked = prefetch->is_answered = false;
    return thread_start(&prefetch->thread, "prefetch", body, prefetch);
}

void plan_prefetch_cancel(struct plan_prefetch *prefetch)
{
    queue_cancel(prefetch->asked);
    queue_cancel(prefetch->made);
}

int plan_prefetch_stop(struct plan_prefetch *prefetch)
{
    queue_close(prefetch->asked);
    return thread_join(&prefetch->thread);
}

void plan_prefetch_ask(struct plan_prefetch *prefetch, uint64_t epoch)
{
    prefetch->is_asked = true;
    queue_push(prefetch->asked, (void *)(uintptr_t)(epoch + 1));
}

static bool look(struct plan_prefetch *prefetch, bool wait)
{
    if (!prefetch->is_answered)
        prefetch->is_answered = queue_pop_many(prefetch->made, &prefetch->answer, 1, wait) == 1;
    return prefetch->is_answered;
}

bool plan_prefetch_ready(struct plan_prefetch *prefetch)
{
    return look(prefetch, false);
}

int plan_prefetch_take(struct plan_prefetch *prefetch, uint64_t epoch, struct plan **plan)
{
    if (!prefetch->is_asked)
        plan_prefetch_ask(prefetch, epoch);
    if (!look(prefetch, true))
        return -ECANCELED;
    if (!prefetch->answer)
        return plan_prefetch_stop(prefetch);
    prefetch->is_asked = prefetch->is_answered = false;
    *plan = prefetch->answer;
    /* The thread waits to be asked: nobody else looks at the plans now. */
    prefetch->plans[0] = prefetch->plans[1];
    prefetch->plans[1] = *plan;
    return 0;
}
