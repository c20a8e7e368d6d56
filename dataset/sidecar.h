/* SPDX-License-Identifier: Apache-2.0
 *
 * sidecar: the catalog kept on disk beside the data, so that the next start needs no scan.
 *
 * Layout (little-endian): a 64-byte header (magic "IOBCATLG", version, counts, key, hash of the
 * names below the root, CRC-32C of the shard table, of the extents and of the header), the shard
 * table, then from the next multiple of 4096 the extents as they are in memory. They are read
 * into memory of our own, not mapped: a lookup on the clock then never waits for a disk, and what
 * was checked stays as it was. A sidecar is used only when format, key, every shard's size and
 * time and the names of the files below the root still agree. Parsed as hostile: every extent is
 * checked against its shard, and only files that a walk below the root meets can be named, so a
 * data set may move, and nothing outside it can be meant. A set whose shards lie elsewhere, or in
 * which a link leads out, has no sidecar: it is scanned each time. One that somebody else may
 * have written is not believed: see file_trusted().
 */
#ifndef IOBENCH_DATASET_SIDECAR_H
#define IOBENCH_DATASET_SIDECAR_H

#include "dataset/catalog.h"

enum sidecar_place {
    SIDECAR_BESIDE, /* ROOT/.iobench-index, or ROOT.iobench-index when the root is a file */
    SIDECAR_CACHE,  /* below $XDG_CACHE_HOME/iobench (or ~/.cache/iobench), for read-only data */
};

/* Where the sidecar of a data set lies. free() it; NULL with a reason. */
char *sidecar_path(const char *root, enum sidecar_place place);

/* key: a hash of the settings that shape the index. The folder is made when it is missing. */
int sidecar_save(const struct catalog *catalog, const char *path, uint64_t key);

/* 0 and *catalog; -ENOENT when there is none; -ESTALE when the data changed; -EINVAL when it is
 * damaged, -EPERM when it is not trusted. All but 0 mean: index again. */
int sidecar_load(const char *path, const char *root, const char *format, uint64_t key,
                 struct catalog **catalog);

#endif
