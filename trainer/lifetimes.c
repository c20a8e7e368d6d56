/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/lifetimes.h"

#include "base/bytes.h"
#include "base/memory.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

enum { ALIGNMENT = 64 };

static int by_size(const void *left, const void *right)
{
    const struct lifetime *a = *(struct lifetime *const *)left;
    const struct lifetime *b = *(struct lifetime *const *)right;

    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    return a < b ? -1 : a > b; /* for the same result on every machine */
}

/* The lowest gap among placed tensors (sorted by offset) with overlapping lifetimes. */
static uint64_t lowest_gap(struct lifetime *const *placed, uint32_t count,
                           const struct lifetime *wanted)
{
    uint64_t end = 0;

    for (uint32_t i = 0; i < count; i++) {
        const struct lifetime *other = placed[i];
        bool together = other->first <= wanted->last && wanted->first <= other->last;
        if (!together)
            continue;
        if (other->offset >= end + wanted->bytes)
            break;
        uint64_t behind = bytes_align_up(other->offset + other->bytes, ALIGNMENT);
        end = behind > end ? behind : end;
    }
    return end;
}

int lifetimes_plan(struct lifetime *lifetimes, uint32_t count, uint64_t *total)
{
    struct lifetime **order = memory_array(count, sizeof *order);

    if (!order)
        return -ENOMEM;
    /* From i on: by size, still to place. Before i: by offset, placed. */
    for (uint32_t i = 0; i < count; i++)
        order[i] = &lifetimes[i];
    qsort(order, count, sizeof(*order), by_size);
    *total = 0;
    for (uint32_t i = 0; i < count && order[i]->bytes > 0; i++) {
        struct lifetime *next = order[i];
        next->offset = lowest_gap(order, i, next);
        uint64_t end = next->offset + next->bytes;
        *total = end > *total ? end : *total;
        uint32_t place = i;
        for (; place > 0 && order[place - 1]->offset > next->offset; place--)
            order[place] = order[place - 1];
        order[place] = next;
    }
    free(order);
    return 0;
}
