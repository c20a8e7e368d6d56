/* SPDX-License-Identifier: Apache-2.0
 *
 * manifest: which shards of an unfinished data set are finished, kept until all are. Text: a line
 * with the plan (a hash of all that decides which bytes come out), then a line a shard, synced
 * after each. A shard counts only while its size and time are still those of its line; a last line
 * cut off by a crash is ignored. One thread at a time.
 */
#ifndef IOBENCH_PACK_MANIFEST_H
#define IOBENCH_PACK_MANIFEST_H

#include <stdbool.h>
#include <stdint.h>

struct manifest {
    char *path;
    bool found; /* there was one */
    bool same;  /* and it was of this plan */
};

/* Look for a manifest at path. finished: shards entries, set to true for each one that is done.
 * 0 or a negative errno. Close in either case. */
int manifest_open(struct manifest *manifest, const char *path, uint64_t plan, uint32_t shards,
                  char *const *shard_paths, bool *finished);
/* Begin, or go on. */
int manifest_start(struct manifest *manifest, uint64_t plan);
int manifest_add(struct manifest *manifest, uint32_t shard, const char *shard_path);
void manifest_remove(struct manifest *manifest); /* all is done */
void manifest_close(struct manifest *manifest);

#endif
