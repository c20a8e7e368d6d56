/* SPDX-License-Identifier: Apache-2.0 */
#include "shuffle/outline.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/random.h"

#include <errno.h>

struct catalog *outline_create(uint64_t records, uint32_t shards, uint32_t record_bytes,
                               uint32_t spread_bytes)
{
    if (records == 0 || shards == 0 || record_bytes <= spread_bytes) {
        fail(EINVAL, "a data set needs at least one shard and records of at least 1 byte");
        return NULL;
    }
    struct catalog *catalog = catalog_create("outline", "none");
    if (!catalog)
        return NULL;
    catalog->shards = memory_array(shards, sizeof *catalog->shards);
    struct extent *extents = memory_array(records, sizeof *extents);
    catalog->shard_count = catalog->shards ? shards : 0;
    catalog->records = extents;
    if (!catalog->shards || !extents) {
        catalog_destroy(catalog);
        return NULL;
    }
    catalog->record_count = records;
    for (uint64_t record = 0, s = 0; s < shards; s++) {
        struct shard *shard = &catalog->shards[s];
        const uint64_t end = (uint64_t)((unsigned __int128)records * (s + 1) / shards);
        shard->label = -1;
        shard->first_record = record;
        shard->record_count = end - record;
        for (; record < end; record++) {
            uint64_t step = (random_mix(record) >> 32) * (2 * (uint64_t)spread_bytes + 1) >> 32;
            uint32_t bytes = record_bytes - spread_bytes + (uint32_t)step;
            extents[record] =
                (struct extent){.offset = shard->bytes, .bytes = bytes, .shard = (uint32_t)s};
            shard->bytes += bytes;
            if (bytes > catalog->record_bytes_max)
                catalog->record_bytes_max = bytes;
        }
        shard->stream_bytes = shard->bytes;
        catalog->record_bytes_total += shard->bytes;
    }
    return catalog;
}
