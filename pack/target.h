/* SPDX-License-Identifier: Apache-2.0
 *
 * target: the folder that a data set is made in. It is locked from the first change to the last.
 *
 * Shards are made in a hidden folder in it, each in a folder of its own; the manifest
 * (dataset/manifest.h) lists those that are finished. When all are, the set that is replaced is
 * removed, the shards get their names, and the manifest is renamed, which completes the set. Each
 * of these steps can be repeated, so after a crash at any point the same pack goes on, and at no
 * point does a part of the set have the name of a whole one.
 *
 * Only what a manifest proves to be ours is ever removed: path, size, time and owner of a regular
 * file with one name. Private to pack; one thread at a time. 0 or a negative errno with a reason.
 */
#ifndef IOBENCH_PACK_TARGET_H
#define IOBENCH_PACK_TARGET_H

#include "base/lock.h"
#include "dataset/manifest.h"
#include "formats/format.h"
#include "pack/place.h"

struct target_request {
    const char *path;
    const struct plugin_choice *format; /* borrowed */
    uint32_t shards;
    uint64_t plan;
    bool force, start_over; /* replace a whole set; an unfinished one */
    const char *command;    /* to be repeated after an interruption; may be NULL */
    bool is_synthetic;      /* the images are generated */
};

struct target {
    struct target_request request;
    char *path; /* without a slash at its end */
    struct place place;
    bool is_open;    /* the folder is there, and place is on it */
    bool is_made;    /* by this pack */
    bool is_begun;   /* locked, and the manifest is there */
    bool is_resumed; /* an earlier pack of the same plan was interrupted */
    bool *finished;  /* of each shard */
    char *draft;     /* name of the hidden folder */
    struct file_lock lock;
    struct manifest unfinished, old; /* what is there: an interrupted pack, a whole set */
    uint64_t unfinished_owner, old_owner;
    bool has_unfinished, has_old;
};

/* Look whether the set can be made there, and what is there; nothing is changed. -EEXIST with a
 * reason when not. Release in either case. */
int target_open(struct target *target, const struct target_request *request);
void target_release(struct target *target);

/* Each file that target_finish() would remove. Not 0 ends it with that code. */
typedef int (*target_visit)(void *context, const char *path, uint64_t bytes);
int target_list_removed(struct target *target, target_visit visit, void *context);

/* -ENOSPC with figures when bytes do not fit there. */
int target_check_room(const struct target *target, uint64_t bytes);

/* Lock the folder and look again; begin, or go on. -EBUSY: another process is at work there. */
int target_begin(struct target *target);
/* Where shard is to be made; free() the path. What an earlier try left is removed. */
int target_shard_begin(struct target *target, uint32_t shard, char **path);
int target_shard_done(struct target *target, uint32_t shard);
/* All shards are done: complete the set. */
int target_finish(struct target *target);
/* Not all are: keep what is finished for later, or leave nothing when nothing is. */
void target_leave(struct target *target);

#endif
