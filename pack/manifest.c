/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/manifest.h"

#include "base/fail.h"
#include "dataset/store.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MANIFEST_LIMIT = 256 << 20 };

static const char manifest_head[] = "iobench pack 1, plan %016" PRIx64 "\n";

/* Size and time of a finished shard; a folder's are those of its entry. */
static bool shard_mark(const char *path, uint64_t *bytes, int64_t *mtime_ns)
{
    struct store_status status;

    if (store_stat(path, &status))
        return false;
    *bytes = status.bytes;
    *mtime_ns = status.mtime_ns;
    return true;
}

static void read_line(const char *line, uint32_t shards, char *const *shard_paths, bool *finished)
{
    uint32_t shard;
    uint64_t bytes, bytes_now;
    int64_t mtime_ns, mtime_now;
    char end;

    if (sscanf(line, "shard %" SCNu32 " %" SCNu64 " %" SCNd64 "%c", &shard, &bytes, &mtime_ns,
               &end) == 4 &&
        end == '\n' && shard < shards && shard_mark(shard_paths[shard], &bytes_now, &mtime_now) &&
        bytes == bytes_now && mtime_ns == mtime_now)
        finished[shard] = true;
}

int manifest_open(struct manifest *manifest, const char *path, uint64_t plan, uint32_t shards,
                  char *const *shard_paths, bool *finished)
{
    char *text;
    size_t bytes;
    uint64_t plan_found;

    *manifest = (struct manifest){.path = strdup(path)};
    if (!manifest->path)
        return fail(ENOMEM, "out of memory for a path");
    if (!store_exists(manifest->path))
        return 0;
    int code = store_load(manifest->path, MANIFEST_LIMIT, &text, &bytes);
    if (code)
        return code;
    manifest->found = true;
    if (sscanf(text, manifest_head, &plan_found) == 1 && plan_found == plan) {
        manifest->same = true;
        for (char *line = strchr(text, '\n'); line; line = strchr(line + 1, '\n'))
            read_line(line + 1, shards, shard_paths, finished);
    }
    free(text);
    return 0;
}

static int write_line(struct manifest *manifest, const char *line)
{
    struct store_file *file;
    int code = store_open(manifest->path, STORE_EXTEND, &file);

    if (code)
        return code;
    /* After a crash perhaps a part of the line is there, at the very end. */
    code = store_write_at(file, line, strlen(line), file->status.bytes);
    int closed = store_close(file, code == 0);
    return code ? code : closed;
}

int manifest_start(struct manifest *manifest, uint64_t plan)
{
    char line[64];

    if (!manifest->same && manifest->found)
        store_discard(manifest->path);
    /* What a crash left of a line must not become the start of the next one. */
    snprintf(line, sizeof line, manifest_head, plan);
    return write_line(manifest, manifest->same ? "\n" : line);
}

int manifest_add(struct manifest *manifest, uint32_t shard, const char *shard_path)
{
    char line[96];
    uint64_t bytes;
    int64_t mtime_ns;

    if (!shard_mark(shard_path, &bytes, &mtime_ns))
        return -EIO;
    snprintf(line, sizeof line, "shard %" PRIu32 " %" PRIu64 " %" PRId64 "\n", shard, bytes,
             mtime_ns);
    return write_line(manifest, line);
}

void manifest_remove(struct manifest *manifest)
{
    store_discard(manifest->path);
}

void manifest_close(struct manifest *manifest)
{
    free(manifest->path);
    *manifest = (struct manifest){0};
}
