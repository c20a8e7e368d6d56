/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/pack/cursor.h"

#include "base/fail.h"
#include "base/memory.h"
#include "dataset/store.h"
#include "formats/format.h"
#include "readers/reader.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { NO_SHARD = UINT32_MAX };

/* A plain shard is read from its store; a compressed one by the inflate reader, one request at a
 * time. reader_at: that reader's position in its shard. */
struct cursor {
    const struct catalog *catalog;
    uint32_t shard; /* whose file is open */
    struct store_file *file;
    bool reader_open;
    struct plugin_choice inflate;
    struct reader reader;
    uint32_t reader_shard;
    uint64_t reader_at;
    const struct extent *loaded;
    void *bytes; /* of the loaded record */
    struct format_scratch scratch;
};

struct cursor *cursor_create(const struct catalog *catalog)
{
    struct cursor *cursor = memory_zeroed(sizeof *cursor);

    if (!cursor)
        return NULL;
    cursor->catalog = catalog;
    cursor->shard = cursor->reader_shard = NO_SHARD;
    return cursor;
}

static void close_reader(struct cursor *cursor)
{
    if (cursor->reader_open) {
        reader_close(&cursor->reader);
        plugin_release(&cursor->inflate);
    }
    cursor->reader_open = false;
}

void cursor_destroy(struct cursor *cursor)
{
    if (!cursor)
        return;
    close_reader(cursor);
    store_close(cursor->file, false);
    free(cursor->bytes);
    free(cursor->scratch.bytes);
    free(cursor);
}

int cursor_read(struct cursor *cursor, uint64_t record, void *buffer)
{
    const struct extent *extent = catalog_extent(cursor->catalog, record);
    const struct shard *shard = &cursor->catalog->shards[extent->shard];

    assert(extent->bytes <= cursor->catalog->record_bytes_max);
    if (shard->flags & SHARD_COMPRESSED) {
        struct read_request request = {.offset = extent->offset,
                                       .shard = extent->shard,
                                       .bytes = extent->bytes,
                                       .needed = extent->bytes,
                                       .buffer = buffer};
        struct read_request *done;
        bool back = extent->shard == cursor->reader_shard && extent->offset < cursor->reader_at;
        int code = 0;
        if (!cursor->reader_open || back) {
            const struct reader_config site = {.catalog = cursor->catalog, .depth = 1};
            const char *scheme = store_of(cursor->catalog->root)->scheme;
            close_reader(cursor);
            code = plugin_choose("reader", reader_registry, reader_auto(scheme, true)->name,
                                 &cursor->inflate);
            cursor->reader_open = code == 0;
            if (code == 0)
                code = reader_open(&cursor->reader, &cursor->inflate, &site);
        }
        if (code == 0)
            code = reader_submit(&cursor->reader, &request);
        while (code == 0) {
            code = reader_reap(&cursor->reader, &done, 1, 1000000000);
            if (code > 0) {
                code = done->result < 0 ? done->result : 0;
                break;
            }
        }
        cursor->reader_shard = extent->shard;
        cursor->reader_at = extent->offset + extent->bytes;
        return code;
    }
    if (cursor->shard != extent->shard) {
        store_close(cursor->file, false);
        cursor->shard = NO_SHARD;
        int code = store_open(shard->path, STORE_READ, &cursor->file);
        if (code)
            return code;
        cursor->shard = extent->shard;
    }
    ssize_t got = store_read_at(cursor->file, buffer, extent->bytes, extent->offset);
    if (got >= 0 && (uint64_t)got < extent->bytes)
        return fail(EBADMSG, "%s: offset %llu: the file ends inside a record: it was truncated",
                    shard->path, (unsigned long long)extent->offset);
    return got < 0 ? (int)got : 0;
}

int cursor_load(struct cursor *cursor, uint64_t record)
{
    const size_t most = cursor->catalog->record_bytes_max;

    if (!cursor->bytes) {
        cursor->bytes = memory_zeroed(most);
        cursor->scratch = (struct format_scratch){.bytes = memory_zeroed(most), .capacity = most};
    }
    if (!cursor->bytes || !cursor->scratch.bytes)
        return -ENOMEM;
    cursor->loaded = catalog_extent(cursor->catalog, record);
    return cursor_read(cursor, record, cursor->bytes);
}

int cursor_parse(struct cursor *cursor, const struct plugin_choice *format, unsigned flags,
                 struct sample *sample)
{
    const struct extent *extent = cursor->loaded;

    assert(extent);
    return format_parse(format, &cursor->catalog->shards[extent->shard], cursor->bytes,
                        extent->bytes, flags, &cursor->scratch, sample);
}

/* ---- labels ---- */

enum { TOLD_EVERY = 256 }; /* records */

bool labels_in_paths(const struct catalog *catalog)
{
    for (uint32_t s = 0; s < catalog->shard_count; s++)
        if (catalog->shards[s].label < 0 && catalog->shards[s].record_count)
            return false;
    return true;
}

int labels_compare(const void *a, const void *b)
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
        uint64_t done_bytes = 0;
        code = cursor ? 0 : -ENOMEM;
        for (uint64_t record = 0; code == 0 && record < catalog->record_count; record++) {
            struct sample sample;
            code = cursor_load(cursor, record);
            if (code == 0)
                code = cursor_parse(cursor, format, 0, &sample);
            labels->of[record] = code ? -1 : sample.label;
            done_bytes += catalog_extent(catalog, record)->bytes;
            if (progress && record % TOLD_EVERY == 0)
                progress(context, done_bytes, catalog->record_bytes_total);
        }
        cursor_destroy(cursor);
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
            qsort(there, count, sizeof *there, labels_compare);
            for (uint64_t i = 0; i < count; i++)
                if (used == 0 || there[used - 1] != there[i])
                    there[used++] = there[i];
            for (uint64_t i = 0; i < count; i++) {
                const int32_t *place =
                    bsearch(&labels->of[i], there, used, sizeof *there, labels_compare);
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
