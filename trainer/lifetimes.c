/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/lifetimes.h"

#include "base/bytes.h"
#include "base/memory.h"

#include <assert.h>
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
        uint64_t gap = 0; /* the lowest among those placed whose lifetimes overlap */
        for (uint32_t j = 0; j < i; j++) {
            const struct lifetime *other = order[j];
            if (other->first > next->last || next->first > other->last)
                continue;
            if (other->offset >= gap + next->bytes)
                break;
            uint64_t behind = bytes_align_up(other->offset + other->bytes, ALIGNMENT);
            gap = behind > gap ? behind : gap;
        }
        assert(gap % ALIGNMENT == 0);
        next->offset = gap;
        *total = gap + next->bytes > *total ? gap + next->bytes : *total;
        uint32_t place = i;
        for (; place > 0 && order[place - 1]->offset > next->offset; place--)
            order[place] = order[place - 1];
        order[place] = next;
    }
    free(order);
    return 0;
}
