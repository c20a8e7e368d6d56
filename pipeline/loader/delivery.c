/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/loader/delivery.h"

#include <errno.h>

int delivery_create(struct delivery *delivery, uint32_t fetches)
{
    *delivery = (struct delivery){.ready = queue_create(fetches, sizeof(struct fetch *)),
                                  .returned = queue_create(fetches, sizeof(struct fetch *))};
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
    struct fetch *group[FETCH_GROUP];
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

int delivery_collect(struct delivery *delivery, struct fetch **fetches, bool wait)
{
    int count = queue_pop_many(delivery->returned, fetches, FETCH_GROUP, wait);

    if (count > 0)
        delivery->outstanding -= (uint32_t)count;
    return count;
}

void delivery_cancel(struct delivery *delivery)
{
    queue_cancel(delivery->ready);
    queue_cancel(delivery->returned);
}
