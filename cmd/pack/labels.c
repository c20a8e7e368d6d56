/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/pack/labels.h"

#include "base/fail.h"
#include "base/memory.h"
#include "formats/format.h"
#include "cmd/pack/cursor.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { TOLD_EVERY = 256 }; /* records */

bool labels_in_paths(const struct catalog *catalog)
{
    for (uint32_t s = 0; s < catalog->shard_count; s++)
        if (catalog->shards[s].label < 0 && catalog->shards[s].record_count)
            return false;
    return true;
}

static int compare_labels(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

    return (x > y) - (x < y);
}

int labels_read(const struct plugin_choice *format, const struct catalog *catalog,
                void (*progress)(void *context, uint64_t done_bytes, uint64_t total_bytes),
                void *context, struct labels *labels)
{
    *labels = (struct labels){.of = memory_array(catalog->record_count, sizeof *labels->of)};
    int code = labels->of ? 0 : -ENOMEM;

    if (code == 0 && !labels_in_paths(catalog)) {
        struct cursor *cursor = cursor_create(catalog);
        void *bytes = memory_zeroed(catalog->record_bytes_max);
        struct format_scratch scratch = {.bytes = memory_zeroed(catalog->record_bytes_max),
                                         .capacity = catalog->record_bytes_max};
        uint64_t done_bytes = 0;
        code = cursor && bytes && scratch.bytes ? 0 : -ENOMEM;
        for (uint64_t record = 0; code == 0 && record < catalog->record_count; record++) {
            const struct extent *extent = catalog_extent(catalog, record);
            struct sample sample;
            code = cursor_read(cursor, record, bytes);
            if (code == 0)
                code = format_parse(format, &catalog->shards[extent->shard], bytes, extent->bytes,
                                    0, &scratch, &sample);
            labels->of[record] = code ? -1 : sample.label;
            done_bytes += extent->bytes;
            if (progress && record % TOLD_EVERY == 0)
                progress(context, done_bytes, catalog->record_bytes_total);
        }
        cursor_destroy(cursor);
        free(bytes);
        free(scratch.bytes);
    } else
        for (uint64_t i = 0; code == 0 && i < catalog->record_count; i++)
            labels->of[i] = catalog->shards[catalog_extent(catalog, i)->shard].label;
    for (uint64_t i = 0; code == 0 && i < catalog->record_count; i++)
        if (labels->of[i] < 0)
            code = fail(ENODATA, "record %llu of %s has no label", (unsigned long long)i,
                        catalog->root);
    if (code == 0) {
        /* Replace each label by its rank among those that occur. */
        const uint64_t count = catalog->record_count;
        int32_t *there = memory_array(count, sizeof *there);
        uint64_t used = 0;
        if (!there)
            code = -ENOMEM;
        else {
            memcpy(there, labels->of, count * sizeof *there);
            qsort(there, count, sizeof *there, compare_labels);
            for (uint64_t i = 0; i < count; i++)
                if (used == 0 || there[used - 1] != there[i])
                    there[used++] = there[i];
            for (uint64_t i = 0; i < count; i++) {
                const int32_t *place =
                    bsearch(&labels->of[i], there, used, sizeof *there, compare_labels);
                assert(place);
                labels->of[i] = (int32_t)(place - there);
            }
            labels->classes = (uint32_t)used;
            free(there);
        }
    }
    if (code) {
        free(labels->of);
        *labels = (struct labels){0};
    }
    return code;
}
