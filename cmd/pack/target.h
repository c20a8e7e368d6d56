/* SPDX-License-Identifier: Apache-2.0
 *
 * target: the folder where a data set is made, locked from the first change to the last.
 *
 * Shards are made in a hidden folder in it, each in a folder of its own; the manifest
 * (dataset/manifest.h) lists the finished ones. When all are finished, the shards are renamed into
 * place, and renaming the manifest completes the set. Each step can be repeated, so the same pack
 * continues after a crash at any point, and no part of the set ever has the name of a complete one.
 *
 * Nothing is replaced: a folder with other files is refused. Private to pack; one thread at a time.
 * Returns 0 or a negative errno with a reason.
 */
#ifndef IOBENCH_CMD_PACK_TARGET_H
#define IOBENCH_CMD_PACK_TARGET_H

#include "base/draft.h"
#include "base/folder.h"
#include "dataset/manifest.h"
#include "formats/format.h"

struct target_request {
    const char *path;
    const struct plugin_choice *format; /* borrowed */
    uint32_t shards;
    uint64_t plan;
    bool start_over;     /* discard an unfinished set of another plan */
    const char *command; /* command that resumes an interrupted pack; may be NULL */
    bool is_synthetic;   /* the images are generated */
};

struct target {
    struct target_request request;
    char *path;           /* without trailing slash */
    bool is_local;        /* else on a server */
    bool is_open;         /* the folder exists */
    bool is_made;         /* by this pack */
    bool is_begun;        /* locked, and the manifest exists */
    bool is_resumed;      /* an earlier pack of the same plan was interrupted */
    bool *finished;       /* of each shard */
    char *draft;          /* name of the hidden folder */
    struct folder folder; /* open, if local */
    struct file_lock lock;
    struct manifest unfinished; /* of an interrupted pack */
    uint64_t unfinished_owner;
    bool has_unfinished;
};

/* Check whether the set can be made there, and find existing contents; changes nothing. Returns
 * -EEXIST with a reason if not. Release in either case. */
int target_open(struct target *target, const struct target_request *request);
void target_release(struct target *target);

/* Returns -ENOSPC with figures if `bytes` do not fit. */
int target_check_room(const struct target *target, uint64_t bytes);

/* Lock the folder and check again; begin, or resume. Returns -EBUSY if another process is at work
 * there. */
int target_begin(struct target *target);
/* Return where to make the shard; free() the path. Removes leftovers of an earlier attempt. */
int target_shard_begin(struct target *target, uint32_t shard, char **path);
int target_shard_done(struct target *target, uint32_t shard);
/* Complete the set: all shards are done. */
int target_finish(struct target *target);
/* Close an unfinished set: keep the finished ones for later, or leave nothing. */
void target_leave(struct target *target);

#endif
