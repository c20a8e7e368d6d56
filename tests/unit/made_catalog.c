/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/made_catalog.h"

#include <assert.h>
#include <stdlib.h>

struct catalog *made_catalog(uint64_t records, uint32_t shards, uint32_t record_bytes)
{
    struct catalog *catalog = calloc(1, sizeof *catalog);
    struct extent *extents = calloc(records, sizeof *extents);
    uint64_t record = 0;

    assert(catalog && extents);
    catalog->shard_count = shards;
    catalog->shards = calloc(shards, sizeof *catalog->shards);
    assert(catalog->shards);
    for (uint32_t s = 0; s < shards; s++) {
        struct shard *shard = &catalog->shards[s];
        uint64_t end = records * (s + 1) / shards;
        shard->first_record = record;
        for (; record < end; record++) { /* lengths differ by a few bytes */
            uint32_t bytes = record_bytes - (uint32_t)(record % 7);
            extents[record] = (struct extent){.offset = shard->bytes, .bytes = bytes, .shard = s};
            shard->bytes += bytes;
        }
        shard->stream_bytes = shard->bytes;
        shard->record_count = end - shard->first_record;
        catalog->record_bytes_total += shard->bytes;
    }
    catalog->record_bytes_max = record_bytes;
    catalog->record_count = records;
    catalog->records = extents;
    return catalog;
}

void made_catalog_free(struct catalog *catalog)
{
    free((void *)(uintptr_t)catalog->records);
    free(catalog->shards);
    free(catalog);
}
