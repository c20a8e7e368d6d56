/* SPDX-License-Identifier: Apache-2.0
 *
 * sidecar: the catalog kept on disk beside the data, so that the next start needs no scan.
 *
 * Layout (little-endian): a 64-byte header (magic "IOBCATLG", version, counts, key, CRC-32C of the
 * shard table and of the records), the shard table, then the extents as they are in memory; the
 * records part is mapped, not copied. A sidecar is used only when format, key, and every shard's
 * size and time still agree. Parsed as hostile: every extent is checked against its shard.
 */
#ifndef IOBENCH_DATASET_SIDECAR_H
#define IOBENCH_DATASET_SIDECAR_H

#include "dataset/catalog.h"

/* Where the sidecar of a data set lies: ROOT/.iobench-index (or ROOT.iobench-index for a single
 * file), or under $XDG_CACHE_HOME/iobench when that folder may not be written. free() it. */
char *sidecar_path(const char *root);

/* key: a hash of the settings that shape the index. */
int sidecar_save(const struct catalog *catalog, const char *path, uint64_t key);

/* 0 and *catalog; -ENOENT when there is none; -ESTALE when the data changed; -EINVAL when it is
 * damaged. All but 0 mean: index again. */
int sidecar_load(const char *path, const char *root, const char *format, uint64_t key,
                 struct catalog **catalog);

#endif
