/* SPDX-License-Identifier: Apache-2.0
 *
 * manifest: the list of files that make up a data set, kept in its folder by pack.
 *
 * While a set is made the list is MANIFEST_UNFINISHED and grows by a block per finished shard; a
 * complete set's list is renamed to MANIFEST_SET. A folder with the first but not the second is not
 * a data set, which manifest_check_complete() reports to every command.
 *
 * The text is untrusted: unknown lines are skipped. Any thread, one at a time per manifest. Returns
 * 0 or a negative errno with a reason.
 *
 *     iobench set 2, plan PLAN, draft SUFFIX, shards COUNT
 *     by PROCESS                    in escapes, as the command and the path
 *     command TEXT
 *     source synthetic              the images were generated, as far as pack knew shard NUMBER
 *                  a block: it replaces an earlier one of the same shard file BYTES MTIME_NS PATH
 *        below the folder folder PATH done NUMBER                   without it the block is ignored
 */
#ifndef IOBENCH_DATASET_MANIFEST_H
#define IOBENCH_DATASET_MANIFEST_H

#include "base/file.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MANIFEST_UNFINISHED ".iobench-unfinished"
#define MANIFEST_SET ".iobench-set"
#define MANIFEST_DRAFT ".iobench-draft-" /* then a suffix: the folder that shards are made in */

enum { MANIFEST_SUFFIX_BYTES = 9, MANIFEST_SHARDS_MAX = 1000000 };

struct manifest_file {
    char *path;     /* below the folder: "00001/00000005.jpg" */
    bool is_folder; /* then neither bytes nor time */
    uint64_t bytes;
    int64_t mtime_ns;
    uint32_t shard;
};

struct manifest {
    uint64_t plan; /* hash of everything that determines the output */
    char suffix[MANIFEST_SUFFIX_BYTES];
    uint32_t shards, finished;
    bool *done;                  /* of each shard */
    struct manifest_file *files; /* of finished shards, sorted by path */
    size_t file_count;
    char *maker;   /* "12345 on host", the last process that worked on it; NULL: unknown */
    char *command; /* completes the set; NULL: unknown. Both are untrusted */
};

/* Parse NUL-terminated text; path is for reasons. Returns -ENODATA (no reason) if it is truncated
 * in its first line, so nothing was made yet; -EINVAL if it is not a manifest of this version.
 * Release in all cases. */
int manifest_parse(struct manifest *manifest, const char *text, size_t bytes, const char *path);
void manifest_release(struct manifest *manifest);

/* Text to be written; free() it; NULL with a reason. */
char *manifest_head(uint64_t plan, const char *suffix, uint32_t shards);
char *manifest_start(const char *command, bool is_synthetic); /* of each process that works on it */
/* A block: begin it, add its files, of which the shard does not count, and end it if it was begun.
 */
int manifest_block_begin(struct text_stream *block, uint32_t shard);
int manifest_block_add(struct text_stream *block, const struct manifest_file *file);
char *manifest_block_end(struct text_stream *block, uint32_t shard);

/* Return -EINPROGRESS if root (a folder or a file) belongs to an incomplete data set, with its
 * progress and how to complete it as the reason; else 0. */
int manifest_check_complete(const char *root);

/* Return whether the manifest of root (a folder or a file in it) marks its images as generated. */
bool manifest_is_synthetic(const char *root);

#endif
