/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/pack/cursor.h"

#include "base/fail.h"
#include "base/memory.h"
#include "dataset/store.h"
#include "readers/reader.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

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
