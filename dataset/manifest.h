/* SPDX-License-Identifier: Apache-2.0
 *
 * manifest: the list of files that make up a data set, kept in its folder by pack.
 *
 * While a set is made the list is MANIFEST_UNFINISHED and grows by a block per finished shard; when
 * the set is complete it is renamed to MANIFEST_SET. So a folder that has the first but not the
 * second is no data set, which manifest_check_complete() tells every command; and what the second
 * lists may be replaced, because each file is known by path, size and time.
 *
 * The text is hostile: a line that is not understood is skipped, and so lists nothing. Any thread,
 * one at a time for each manifest. 0 or a negative errno with a reason.
 *
 *     iobench set 2, plan PLAN, draft SUFFIX, shards COUNT
 *     by PROCESS                    in escapes, as the command and the path
 *     command TEXT
 *     source synthetic              its images were generated, as far as its maker knew
 *     shard NUMBER                  a block: it replaces an earlier one of the same shard
 *     file BYTES MTIME_NS PATH      below the folder
 *     folder PATH
 *     done NUMBER                   without it the block does not count
 */
#ifndef IOBENCH_DATASET_MANIFEST_H
#define IOBENCH_DATASET_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MANIFEST_UNFINISHED ".iobench-unfinished"
#define MANIFEST_SET ".iobench-set"
#define MANIFEST_DRAFT ".iobench-draft-" /* then a suffix: the folder that shards are made in */

#define MANIFEST_SYNTHETIC "source synthetic" /* a line */

enum { MANIFEST_SUFFIX_BYTES = 9, MANIFEST_SHARDS_MAX = 1000000 };

struct manifest_file {
    char *path;     /* below the folder: "00001/00000005.jpg" */
    bool is_folder; /* then neither bytes nor time */
    uint64_t bytes;
    int64_t mtime_ns;
    uint32_t shard;
};

struct manifest {
    uint64_t plan; /* a hash of all that decides which bytes come out */
    char suffix[MANIFEST_SUFFIX_BYTES];
    uint32_t shards, finished;
    bool *done;                  /* of each shard */
    struct manifest_file *files; /* of finished shards, sorted by path */
    size_t file_count;
    char *maker;   /* "12345 on host", the last process that worked on it; NULL: unknown */
    char *command; /* that completes it; NULL: unknown. Nobody vouches for either */
};

/* text ends with a NUL; path is for reasons. -ENODATA (no reason): it was cut in its first line,
 * so nothing had been made yet. -EINVAL: no manifest of this version. Release after any. */
int manifest_parse(struct manifest *manifest, const char *text, size_t bytes, const char *path);
void manifest_release(struct manifest *manifest);

/* NULL: no finished shard has it. */
const struct manifest_file *manifest_find(const struct manifest *manifest, const char *path);
/* Is it a folder of a finished shard, or of one of its files? */
bool manifest_has_folder(const struct manifest *manifest, const char *path);

/* Text to be written; free() it; NULL with a reason. A block: start it with no text, add its files,
 * end it. */
char *manifest_head(uint64_t plan, const char *suffix, uint32_t shards);
char *manifest_start(const char *command, bool is_synthetic); /* of each process that works on it */
struct manifest_block;
struct manifest_block *manifest_block_begin(uint32_t shard);
int manifest_block_add(struct manifest_block *block, const char *path, uint64_t bytes,
                       int64_t mtime_ns);
int manifest_block_add_folder(struct manifest_block *block, const char *path);
char *manifest_block_end(struct manifest_block *block); /* and free it */

/* Does root (a folder or a file) belong to a data set that is not complete? 0: no. -EINPROGRESS:
 * the reason says how far it is and how to complete it. */
int manifest_check_complete(const char *root);

/* Does the manifest of root (a folder or a file in it) say that the images were generated? */
bool manifest_is_synthetic(const char *root);

#endif
