/* SPDX-License-Identifier: Apache-2.0
 *
 * sidecar: the catalog stored beside the data, so that the next start needs no scan.
 *
 * The extents in it are in their memory layout. They are read, not mapped: a lookup on the clock
 * never waits for a disk, and checked data cannot change. A sidecar is used only if format, key,
 * size and time of every shard and the names of the files below the root match. Its contents are
 * untrusted: every extent is checked against its shard, and only files that a walk below the root
 * reaches can be named, so a data set may move and nothing outside it can be referenced. A set
 * with shards elsewhere, or with a link that leaves it, has no sidecar and is scanned each time. A
 * file that another user may have written is ignored: see file_trusted().
 */
#ifndef IOBENCH_DATASET_SIDECAR_H
#define IOBENCH_DATASET_SIDECAR_H

#include "dataset/catalog.h"
#include "dataset/hints.h"

enum sidecar_place {
    SIDECAR_BESIDE, /* ROOT/.iobench-index, or ROOT.iobench-index when the root is a file */
    SIDECAR_CACHE,  /* below $XDG_CACHE_HOME/iobench (or ~/.cache/iobench), for read-only data */
};

/* Return the path of a data set's sidecar, to free(); NULL with a reason. */
char *sidecar_path(const char *root, enum sidecar_place place);

/* Return 0, or -ESTALE with a reason if a shard has changed since it was indexed. dated: NULL, or
 * the catalog's shards, whose ctime is then set. */
int sidecar_check_shards(const struct catalog *catalog, struct shard *dated);

/* key: hash of the settings that affect the index. Creates a missing folder. */
int sidecar_save(const struct catalog *catalog, const char *path, uint64_t key);

/* Returns 0 and *catalog; -ENOENT if no sidecar exists, -ESTALE if the data changed, -EINVAL if
 * damaged, -EPERM if untrusted: then index again. */
int sidecar_load(const char *path, const char *root, const char *format, uint64_t key,
                 struct catalog **catalog);

/* ---- the hints of a data set, kept where its index is, as .iobench-hints ----
 *
 * Used only for a data set with as many records and bytes. Untrusted, as an index. */

/* Stores where: to free(). */
int hints_file_save(const struct catalog *catalog, const struct hints *hints, char **path);

/* Returns 0 and *hints, the newest usable ones of all places; NULL if there are none; a negative
 * errno with the file in the reason if they are damaged, of other data (-ESTALE), or untrusted
 * (-EPERM). */
int hints_file_load(const struct catalog *catalog, struct hints **hints);

#endif
