/* SPDX-License-Identifier: Apache-2.0
 *
 * target: the place a data set is made in: is it free, may what is there be replaced, is there
 * room, what did an interrupted pack leave. Private to pack; one thread.
 */
#ifndef IOBENCH_PACK_TARGET_H
#define IOBENCH_PACK_TARGET_H

#include "formats/format.h"

struct target {
    const char *path;
    uint32_t shards;
    char **shard_paths;
    bool *finished; /* by an interrupted pack of the same plan */
    char *manifest_path;
    bool inside; /* the shards, and so the manifest, lie in the folder path */
};

/* Name the shards. Release in either case. */
int target_open(struct target *target, const char *path, const struct plugin_choice *format,
                uint32_t shards);
void target_release(struct target *target);

/* 0 when nothing is there but, perhaps, an empty folder; else -EEXIST with a reason. */
int target_check_free(const struct target *target);

/* Remove the data set at path, shard by shard, and nothing else. -EEXIST when something else is
 * there, -ENOTEMPTY when the folder must go and cannot. */
int target_clear(const struct target *target);

/* Remove what unfinished shards left under temporary names. */
void target_remove_drafts(const struct target *target);

/* -ENOSPC with figures when bytes do not fit there. */
int target_check_room(const struct target *target, uint64_t bytes);

#endif
