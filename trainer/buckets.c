/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/buckets.h"

#include "base/memory.h"
#include "trainer/graph.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

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

int buckets_by_layer(struct buckets *buckets, const struct graph *graph, uint32_t wanted)
{
    uint64_t before = 0;
    uint32_t count = 0, chosen = 0;

    *buckets = (struct buckets){.floats = graph->parameter_floats, .count = 1};
    uint64_t *borders = buckets->ends = memory_array(graph->node_count, sizeof *borders);
    if (!borders)
        return -ENOMEM;
    /* Where buckets may end: behind each layer, in the order in which gradients become final. The
     * last one is the end of the arena. */
    for (uint32_t i = graph->node_count; i-- > 0;) {
        uint64_t border = graph_final_floats(graph, i);
        if (border < graph->parameter_floats)
            border -= border % BUCKET_ALIGNMENT_FLOATS;
        if (border > before)
            borders[count++] = before = border;
    }
    if (count == 0)
        return 0;
    /* Leave only those at which they end. */
    if (wanted > 1 && count > 1) {
        const uint64_t floats = borders[count - 1];
        const uint64_t most = floats / (wanted > BUCKET_LAST_SHARE ? wanted : BUCKET_LAST_SHARE);
        uint32_t last = 0, next = 0; /* last: where the last bucket begins */
        while (last + 2 < count && borders[last] < floats - most)
            last++;
        const uint32_t parts = wanted - 1;
        const uint64_t start = borders[last], part = start / parts;
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
    assert(chosen <= count);
    buckets->count = chosen;
    return 0;
}

void buckets_free(struct buckets *buckets)
{
    free(buckets->ends);
    *buckets = (struct buckets){0};
}
