/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/evidence/reach.h"

#include "base/bytes.h"
#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum { OPS = 256 };

static bool join_ranges(struct range *last, const struct range *next)
{
    const uint64_t last_end = last->offset + last->bytes, end = next->offset + next->bytes;

    if (next->offset < last->offset || next->offset > last_end)
        return false;
    if (end > last_end)
        last->bytes = end - last->offset;
    return true;
}

static int by_offset(const void *a, const void *b)
{
    const struct range *one = a, *other = b;

    return (one->offset > other->offset) - (one->offset < other->offset);
}

/* Records need not be numbered as they are stored. */
static int add_shard(struct reach *reach, const struct catalog *catalog, const struct shard *shard,
                     const uint8_t *marks, uint64_t ahead_bytes)
{
    struct ranges *ranges = &reach->ranges;
    const bool whole = shard->flags & SHARD_COMPRESSED;
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    const size_t first = ranges->first[ranges->count];
    size_t count = first, last = first;
    uint64_t explained = 0;

    for (uint64_t i = shard->first_record; i < shard->first_record + shard->record_count; i++) {
        const struct extent *extent = catalog_extent(catalog, i);
        const uint64_t start = whole ? 0 : bytes_align_down(extent->offset, page);
        const uint64_t end = bytes_align_up(extent->offset + extent->bytes, page);
        const uint64_t stop = whole || end > shard->bytes ? shard->bytes : end;
        const struct range pages = {start, stop > start ? stop - start : 0};
        if (!(marks[i / 8] >> i % 8 & 1) ||
            (count > first && join_ranges(&ranges->list[count - 1], &pages)))
            continue;
        if (memory_room(&ranges->list, count, sizeof *ranges->list, "parts of files"))
            return -ENOMEM;
        ranges->list[count++] = pages;
    }
    if (count == first)
        return 0;
    qsort(ranges->list + first, count - first, sizeof *ranges->list, by_offset);
    for (size_t i = first + 1; i < count; i++)
        if (!join_ranges(&ranges->list[last], &ranges->list[i]))
            ranges->list[++last] = ranges->list[i];
    for (size_t i = first; i <= last; i++)
        explained += ranges->list[i].bytes + 2 * ahead_bytes;
    reach->explained_bytes += explained < shard->bytes ? explained : shard->bytes;
    ranges->paths[ranges->count++] = shard->path;
    ranges->first[ranges->count] = last + 1;
    return 0;
}

int reach_make(struct reach *reach, struct plan *plan, const struct resume_point *from,
               uint64_t draws, uint64_t ahead_bytes)
{
    const struct catalog *catalog = plan->scope.catalog;
    struct ranges *ranges = &reach->ranges;
    uint8_t *marks = memory_zeroed(catalog->record_count / 8 + 1); /* what the plan fetches */
    struct plan_op ops[OPS];
    uint64_t drawn = 0;

    *reach = (struct reach){0};
    ranges->paths = memory_array(catalog->shard_count, sizeof *ranges->paths);
    ranges->first = memory_array(catalog->shard_count + 1, sizeof *ranges->first);
    int code = marks && ranges->paths && ranges->first ? plan_begin(plan, from->epoch) : -ENOMEM;
    if (code == 0 && from->sample)
        code = plan_seek(plan, from->sample);
    for (int count = 0; code == 0 && (draws == 0 || drawn < draws);) {
        count = plan_next(plan, ops, OPS);
        if (count <= 0) {
            code = count;
            break;
        }
        for (int i = 0; i < count && (draws == 0 || drawn < draws); i++)
            if (ops[i].kind == PLAN_DRAW)
                drawn++;
            else
                marks[ops[i].record / 8] |= (uint8_t)(1 << ops[i].record % 8);
    }
    for (uint32_t i = 0; code == 0 && i < catalog->shard_count; i++)
        code = add_shard(reach, catalog, &catalog->shards[i], marks, ahead_bytes);
    free(marks);
    return code;
}

void reach_clear(struct reach *reach)
{
    free(reach->ranges.paths);
    free(reach->ranges.first);
    free(reach->ranges.list);
    *reach = (struct reach){0};
}
