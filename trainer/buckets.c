/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/buckets.h"

#include "base/memory.h"
#include "trainer/graph.h"

#include <errno.h>
#include <stdlib.h>

/* Where buckets may end: behind each layer, in the order in which gradients become final. The last
 * one is the end of the arena. */
static uint32_t find_borders(const struct graph *graph, uint64_t *borders)
{
    uint64_t before = 0;
    uint32_t count = 0;

    for (uint32_t i = graph->node_count; i-- > 0;) {
        uint64_t border = graph_final_floats(graph, i);
        if (border < graph->parameter_floats)
            border -= border % BUCKET_ALIGNMENT_FLOATS;
        if (border > before)
            borders[count++] = before = border;
    }
    return count;
}

/* Return which border begins the last bucket. */
static uint32_t find_last(const uint64_t *borders, uint32_t count, uint32_t wanted)
{
    const uint64_t floats = borders[count - 1];
    const uint64_t most = floats / (wanted > BUCKET_LAST_SHARE ? wanted : BUCKET_LAST_SHARE);
    uint32_t last = 0;

    while (last + 2 < count && borders[last] < floats - most)
        last++;
    return last;
}

/* Return the one of `count` borders that is nearest to an offset. */
static uint32_t find_nearest(const uint64_t *borders, uint32_t count, uint64_t offset)
{
    uint32_t i = 0;

    while (i + 1 < count && borders[i + 1] <= offset)
        i++;
    return i + 1 < count && borders[i] < offset && borders[i + 1] - offset < offset - borders[i]
               ? i + 1
               : i;
}

/* Leave only the borders at which buckets end. Return how many those are. */
static uint32_t choose_borders(uint64_t *borders, uint32_t count, uint32_t wanted)
{
    uint32_t chosen = 0;

    if (wanted > 1 && count > 1) {
        const uint32_t last = find_last(borders, count, wanted), parts = wanted - 1;
        const uint64_t start = borders[last], part = start / parts;
        uint32_t next = 0;
        for (uint32_t i = 1; i < parts && last > 0; i++) {
            const uint32_t at = find_nearest(borders, last, part * i); /* never below `chosen` */
            if (at < next)
                continue; /* a layer is larger than a part */
            borders[chosen++] = borders[at];
            next = at + 1;
        }
        borders[chosen++] = start;
    }
    borders[chosen++] = borders[count - 1];
    return chosen;
}

int buckets_by_layer(struct buckets *buckets, const struct graph *graph, uint32_t wanted)
{
    *buckets = (struct buckets){.floats = graph->parameter_floats};
    buckets->ends = memory_array(graph->node_count, sizeof *buckets->ends);
    if (!buckets->ends)
        return -ENOMEM;
    const uint32_t borders = find_borders(graph, buckets->ends);
    buckets->count = borders ? choose_borders(buckets->ends, borders, wanted) : 1;
    return 0;
}

void buckets_free(struct buckets *buckets)
{
    free(buckets->ends);
    *buckets = (struct buckets){0};
}
