/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/loader/delivery.h"

#include <assert.h>
#include <errno.h>

int delivery_create(struct delivery *delivery, uint32_t fetches)
{
    *delivery =
        (struct delivery){.ready = queue_create(fetches), .returned = queue_create(fetches)};
    return delivery->ready && delivery->returned ? 0 : -ENOMEM;
}

void delivery_destroy(struct delivery *delivery)
{
    queue_destroy(delivery->ready);
    queue_destroy(delivery->returned);
}

void delivery_reset(struct delivery *delivery)
{
    delivery->draws = (struct draw_list){0};
    delivery->outstanding = 0;
    queue_reset(delivery->ready);
    queue_reset(delivery->returned);
}

int delivery_push(struct delivery *delivery)
{
    void *group[FETCH_GROUP];
    int pushed = 0;

    for (;;) {
        struct fetch *fetch;
        uint32_t count = 0;
        while (count < FETCH_GROUP && (fetch = delivery->draws.first) &&
               fetch->state == FETCH_READY) {
            delivery->draws.first = fetch->next_drawn;
            fetch->state = FETCH_DELIVERED;
            group[count++] = fetch;
        }
        if (count == 0)
            return pushed;
        delivery->outstanding += count;
        int code = queue_push_many(delivery->ready, group, count);
        if (code)
            return code;
        pushed += (int)count;
    }
}

static int pop(struct queue *queue, struct fetch **fetches, uint32_t max, bool wait)
{
    void *group[FETCH_GROUP];
    int count = queue_pop_many(queue, group, max < FETCH_GROUP ? max : FETCH_GROUP, wait);

    for (int i = 0; i < count; i++)
        fetches[i] = group[i];
    return count;
}

int delivery_collect(struct delivery *delivery, struct fetch **fetches, bool wait)
{
    int count = pop(delivery->returned, fetches, FETCH_GROUP, wait);

    if (count > 0)
        delivery->outstanding -= (uint32_t)count;
    return count;
}

void delivery_cancel(struct delivery *delivery)
{
    queue_cancel(delivery->ready);
    queue_cancel(delivery->returned);
}

int delivery_acquire(struct delivery *delivery, struct fetch **fetches, uint32_t max)
{
    return pop(delivery->ready, fetches, max, true);
}

void delivery_release(struct delivery *delivery, struct fetch *const *fetches, uint32_t count)
{
    void *group[FETCH_GROUP];

    assert(count <= FETCH_GROUP);
    for (uint32_t i = 0; i < count; i++)
        group[i] = fetches[i];
    queue_push_many(delivery->returned, group, count);
}
