/* SPDX-License-Identifier: Apache-2.0
 *
 * LMDB as Caffe, Caffe2 and LSUN use it: one database whose values are samples. Indexing walks its
 * pages (formats/lmdb_walk.h). A record is a value, wherever it is in the file, so any reader can
 * read it. Keys are not read again, so a sample has no name. */
#include "formats/caffe.h"
#include "formats/lmdb_walk.h"
#include "formats/lmdb_write.h"
#include "formats/plugins.h"

#include "base/fail.h"
#include "base/file.h"
#include "base/option.h"
#include "dataset/lmdb_keys.h"
#include "dataset/store.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const flavours[] = {"auto", "datum", "tensors", "image", "tensors-int64", NULL};

static const struct option_spec lmdb_options[] = {
    {.name = "keys",
     .type = OPTION_TEXT,
     .offset = offsetof(struct lmdb_format_settings, keys),
     .metavar = "PATTERN",
     .summary = "only values whose keys match this shell pattern, as image-*"},
    {.name = "flavour",
     .type = OPTION_CHOICE,
     .offset = offsetof(struct lmdb_format_settings, flavour),
     .fallback = "auto",
     .choices = flavours,
     .summary =
         "type of the values: Caffe's Datum, Caffe2's TensorProtos (with INT32 or INT64 labels), "
         "bare images; auto detects each, and writes Datum"},
    {0},
};

/* Return the data file of a database, which is a folder or a single file. free() it. */
static char *database_path(const char *root)
{
    if (store_is_folder(root))
        return file_join(root, "data.mdb");
    char *path = strdup(root);
    if (!path)
        fail(ENOMEM, "out of memory for a path");
    return path;
}

static int lmdb_detect(const char *root)
{
    char *path = database_path(root);
    uint8_t start[256];
    int sure = 0;

    if (path && lmdb_looks_like(start, store_peek(path, start, sizeof start)))
        sure = 100;
    else if (path && strcmp(path, root) != 0 && store_exists(path))
        sure = 60; /* perhaps damaged: LMDB's message then helps most */
    free(path);
    return sure;
}

struct adding {
    struct catalog *catalog;
    const char *keys; /* NULL: all */
    uint64_t before;  /* left out before the first */
};

static int add_entry(void *context, const struct lmdb_entry *entry)
{
    struct adding *adding = context;
    char key[512];

    if (!lmdb_key_is_sample(entry->key, entry->key_bytes))
        return 0;
    if (adding->keys) {
        snprintf(key, sizeof key, "%.*s", (int)entry->key_bytes, (const char *)entry->key);
        if (fnmatch(adding->keys, key, 0) != 0) {
            adding->before += adding->catalog->record_count == 0;
            return 0;
        }
    }
    return catalog_add(adding->catalog, entry->offset, entry->bytes);
}

static int lmdb_index(const void *settings, const char *root, const struct format_scan *scan,
                      struct catalog *catalog)
{
    const struct lmdb_format_settings *lmdb = settings;
    struct adding adding = {.catalog = catalog, .keys = lmdb->keys};
    char *path = database_path(root);

    if (!path)
        return -ENOMEM;
    struct store_file *file;
    int code = store_open(path, STORE_READ, &file);
    if (code == 0)
        code = catalog_begin_shard(catalog, path, &file->status, 0);
    if (code == 0)
        code = lmdb_walk(file, scan, add_entry, &adding);
    if (code == 0)
        catalog_last(catalog)->layout = adding.before;
    store_close(file, false);
    free(path);
    return code;
}

static int lmdb_parse(const void *settings, const struct shard *shard, const void *record,
                      size_t bytes, unsigned flags, struct format_scratch *scratch,
                      struct sample *sample)
{
    const struct lmdb_format_settings *lmdb = settings;

    (void)shard, (void)scratch;
    int code = caffe_parse((enum caffe_flavour)lmdb->flavour, record, bytes, sample);
    if (code && flags & FORMAT_WHOLE) {
        *sample = (struct sample){.image = record, .image_bytes = bytes, .label = -1};
        return 0;
    }
    return code;
}

/* A data set is one database; LMDB tools know no shards. */
static int lmdb_shard_path(const char *folder, uint32_t shard, uint32_t shards, char **path)
{
    (void)shard;
    if (shards == 0)
        return 1;
    *path = file_join(folder, "data.mdb");
    return *path ? 0 : -ENOMEM;
}

const struct format_ops format_lmdb = {
    .plugin = {.name = "lmdb",
               .summary = "LMDB of Caffe (Datum), Caffe2 (TensorProtos) or LSUN (images)",
               .options = lmdb_options,
               .settings_size = sizeof(struct lmdb_format_settings),
               .state_size = sizeof(struct lmdb_write)},
    .detect = lmdb_detect,
    .index = lmdb_index,
    .parse = lmdb_parse,
    .writable = lmdb_writable,
    .shard_open = lmdb_write_open,
    .shard_append = lmdb_write_append,
    .shard_close = lmdb_write_close,
    .shard_path = lmdb_shard_path,
};
