/* SPDX-License-Identifier: Apache-2.0
 *
 * shard_list: the shard files of a data set, sorted by name, for formats whose shards are files.
 * Knows no format: the caller says which names are wanted. One thread. */
#ifndef IOBENCH_FORMATS_SHARD_LIST_H
#define IOBENCH_FORMATS_SHARD_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shard_list {
    char **paths, *companion; /* companion: the first of them, or NULL */
    uint32_t count, companion_count;
};

/* root: a file (only that file, whatever its name) or a folder: those of its files whose names
 * match the shell pattern match or, without one, that wanted() accepts. Never includes hidden
 * names, drafts ("*.partial") and indexes. A file named as a shard and ".ANYTHING" but a number, as
 * other tools name checksums and indexes, is a companion. Shards numbered NAME-00000-of-00004 must
 * be complete and of one set: a missing one is -ENOENT, with its name in the reason. No shard at
 * all: -ENOENT. Release in either case. */
int shard_list_open(struct shard_list *list, const char *root, const char *match,
                    bool (*wanted)(const char *name));
void shard_list_release(struct shard_list *list);

/* Read the first bytes of the first shard below root (or of root itself), and set whether its name
 * is wanted. Returns their count; 0 if there is none (may leave a reason). */
size_t shard_list_peek(const char *root, bool (*wanted)(const char *name), void *start,
                       size_t bytes, bool *is_named);

/* Parse a name numbered as part of a set ("train-00003-of-01024", perhaps followed by ".ext").
 * Returns the length of the part before "-00003", or -1. */
int shard_list_numbered(const char *name, uint64_t *number, uint64_t *of);

/* Return whether shard_list_open() never takes a file of this name from a folder. */
bool shard_list_never(const char *name);

/* Return whether name ends in end. */
bool shard_list_ends(const char *name, const char *end);

#endif
