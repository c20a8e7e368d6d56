/* SPDX-License-Identifier: Apache-2.0
 *
 * shard_list: the shard files of a data set, in the order of their names, for formats whose
 * shards are files. It knows no format: the caller says which names are wanted. One thread.
 */
#ifndef IOBENCH_FORMATS_SHARD_LIST_H
#define IOBENCH_FORMATS_SHARD_LIST_H

#include <stdbool.h>
#include <stdint.h>

struct shard_list {
    char **paths;
    uint32_t count;
};

/* root: a file (that one alone, whatever its name) or a folder: its files whose names fit the
 * shell pattern match or, without one, that wanted() accepts. Never hidden names, drafts
 * ("*.partial") and indexes. Shards numbered NAME-00000-of-00004 must be complete and of one set: a
 * missing one is -ENOENT and named. No shard at all: -ENOENT. Release in either case. */
int shard_list_open(struct shard_list *list, const char *root, const char *match,
                    bool (*wanted)(const char *name));
void shard_list_release(struct shard_list *list);

/* The first shard below root (or root itself), for looking at its first bytes; NULL when there is
 * none (a reason may be left). free() it. */
char *shard_list_first(const char *root, bool (*wanted)(const char *name));

/* Is name numbered as one of a set ("train-00003-of-01024", maybe with ".ext" behind)? The length
 * of the part before "-00003", or -1. */
int shard_list_numbered(const char *name, uint64_t *number, uint64_t *of);

/* Does name end so? */
bool shard_list_ends(const char *name, const char *end);

#endif
