/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/loader/orders.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/queue.h"
#include "base/thread.h"

#include <errno.h>
#include <stdlib.h>

struct orders {
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
    struct orders *orders = argument;
    int code = 0;
    void *entry;

    while (code == 0 && queue_pop_many(orders->asked, &entry, 1, true) == 1) {
        const uint64_t epoch = (uint64_t)(uintptr_t)entry - 1, start_ns = clock_now_ns();
        struct plan *plan = orders->plans[0];
        code = plan_begin(plan, epoch);
        if (code == 0)
            recorder_mark(orders->recorder, "shuffle", epoch, start_ns);
        queue_push(orders->made, code ? NULL : plan);
    }
    return code;
}

struct orders *orders_create(struct plan *first, struct plan *second, struct recorder *recorder)
{
    struct orders *orders = memory_zeroed(sizeof *orders);

    if (!orders)
        return NULL;
    *orders = (struct orders){.plans = {first, second},
                              .recorder = recorder,
                              .asked = queue_create(1),
                              .made = queue_create(1)};
    if (orders->asked && orders->made)
        return orders;
    orders_destroy(orders);
    return NULL;
}

void orders_destroy(struct orders *orders)
{
    if (!orders)
        return;
    queue_destroy(orders->asked);
    queue_destroy(orders->made);
    free(orders);
}

int orders_start(struct orders *orders)
{
    queue_reset(orders->asked);
    queue_reset(orders->made);
    orders->is_asked = orders->is_answered = false;
    return thread_start(&orders->thread, "orders", body, orders);
}

void orders_cancel(struct orders *orders)
{
    queue_cancel(orders->asked);
    queue_cancel(orders->made);
}

int orders_stop(struct orders *orders)
{
    queue_close(orders->asked);
    return thread_join(&orders->thread);
}

void orders_ask(struct orders *orders, uint64_t epoch)
{
    orders->is_asked = true;
    queue_push(orders->asked, (void *)(uintptr_t)(epoch + 1));
}

static bool look(struct orders *orders, bool wait)
{
    if (!orders->is_answered)
        orders->is_answered = queue_pop_many(orders->made, &orders->answer, 1, wait) == 1;
    return orders->is_answered;
}

bool orders_ready(struct orders *orders)
{
    return look(orders, false);
}

int orders_take(struct orders *orders, uint64_t epoch, struct plan **plan)
{
    if (!orders->is_asked)
        orders_ask(orders, epoch);
    if (!look(orders, true))
        return -ECANCELED;
    if (!orders->answer)
        return orders_stop(orders);
    orders->is_asked = orders->is_answered = false;
    *plan = orders->answer;
    /* The thread waits to be asked: nobody else looks at the plans now. */
    orders->plans[0] = orders->plans[1];
    orders->plans[1] = *plan;
    return 0;
}
