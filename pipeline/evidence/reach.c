/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/evidence/reach.h"

#include "base/bytes.h"
#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum { OPS = 256 };

static bool is_marked(const uint8_t *marks, uint64_t record)
{
    return marks[record / 8] >> record % 8 & 1;
}

/* Mark what the plan fetches before its last draw. */
static int mark(struct plan *plan, const struct resume_point *from, uint64_t draws, uint8_t *marks)
{
    struct plan_op ops[OPS];
    uint64_t drawn = 0;
    int count = plan_begin(plan, from->epoch);

    if (count == 0 && from->sample)
        count = plan_seek(plan, from->sample);
    if (count)
        return count;
    while ((!draws || drawn < draws) && (count = plan_next(plan, ops, OPS)) > 0)
        for (int i = 0; i < count && (!draws || drawn < draws); i++)
            if (ops[i].kind == PLAN_DRAW)
                drawn++;
            else
                marks[ops[i].record / 8] |= (uint8_t)(1 << ops[i].record % 8);
    return count < 0 ? count : 0;
}

static int by_offset(const void *a, const void *b)
{
    const struct range *one = a, *other = b;

    return (one->offset > other->offset) - (one->offset < other->offset);
}

/* Sort and join those from `first` on; return how many remain in all. */
static size_t join(struct range *list, size_t first, size_t count)
{
    size_t last = first;

    qsort(list + first, count - first, sizeof *list, by_offset);
    for (size_t i = first + 1; i < count; i++) {
        const uint64_t end = list[i].offset + list[i].bytes;
        const uint64_t joined_end = list[last].offset + list[last].bytes;
        if (list[i].offset > joined_end)
            list[++last] = list[i];
        else if (end > joined_end)
            list[last].bytes = end - list[last].offset;
    }
    return last + 1;
}

/* Append the pages of the marked records of a shard. */
static int add_shard(struct ranges *ranges, const struct catalog *catalog,
                     const struct shard *shard, const uint8_t *marks, size_t *count)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE),
                   end = shard->first_record + shard->record_count;
    const size_t first = *count;

    for (uint64_t record = shard->first_record; record < end; record++) {
        const struct extent *extent = catalog_extent(catalog, record);
        struct range range = {0, shard->bytes};
        if (!is_marked(marks, record) || extent->offset >= shard->stream_bytes)
            continue;
        if (!(shard->flags & SHARD_COMPRESSED)) {
            range.offset = bytes_align_down(extent->offset, page);
            const uint64_t to = bytes_align_up(extent->offset + extent->bytes, page);
            range.bytes = (to < shard->bytes ? to : shard->bytes) - range.offset;
        }
        struct range *last = *count > first ? &ranges->list[*count - 1] : NULL;
        if (last && range.offset >= last->offset && range.offset <= last->offset + last->bytes) {
            if (range.offset + range.bytes > last->offset + last->bytes)
                last->bytes = range.offset + range.bytes - last->offset;
            continue;
        }
        if (memory_room(&ranges->list, *count, sizeof *ranges->list, "parts of files"))
            return -ENOMEM;
        ranges->list[(*count)++] = range;
    }
    if (*count > first)
        *count = join(ranges->list, first, *count);
    return 0;
}

static uint64_t explain(const struct range *list, size_t count, uint64_t file_bytes, uint64_t ahead)
{
    uint64_t bytes = 0, done = 0;

    for (size_t i = 0; i < count; i++) {
        const uint64_t to = list[i].offset + list[i].bytes + ahead;
        const uint64_t end = to < file_bytes ? to : file_bytes;
        const uint64_t start = list[i].offset > ahead ? list[i].offset - ahead : 0;
        bytes += end > done ? end - (start > done ? start : done) : 0;
        done = end;
    }
    return bytes;
}

int reach_make(struct reach *reach, struct plan *plan, const struct resume_point *from,
               uint64_t draws, uint64_t ahead_bytes)
{
    const struct catalog *catalog = plan->scope.catalog;
    struct ranges *ranges = &reach->ranges;
    uint8_t *marks = memory_zeroed(catalog->record_count / 8 + 1);
    size_t count = 0;

    *reach = (struct reach){0};
    ranges->paths = memory_array(catalog->shard_count, sizeof *ranges->paths);
    ranges->first = memory_array(catalog->shard_count + 1, sizeof *ranges->first);
    int code = marks && ranges->paths && ranges->first ? mark(plan, from, draws, marks) : -ENOMEM;
    for (uint32_t i = 0; code == 0 && i < catalog->shard_count; i++) {
        const struct shard *shard = &catalog->shards[i];
        const size_t first = count;
        code = add_shard(ranges, catalog, shard, marks, &count);
        if (count == first)
            continue;
        /* Read-ahead is as long as it is set, and as long once more when its mark is met. */
        reach->explained_bytes +=
            explain(ranges->list + first, count - first, shard->bytes, 2 * ahead_bytes);
        ranges->paths[ranges->count++] = shard->path;
        ranges->first[ranges->count] = count;
    }
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
