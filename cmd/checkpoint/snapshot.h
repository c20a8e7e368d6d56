/* SPDX-License-Identifier: Apache-2.0
 *
 * snapshot: checkpoints in a folder, each complete or not there.
 *
 * A checkpoint is a folder, checkpoint-NNNNNN, of its files and a manifest with their sizes and the
 * CRC-32C of each chunk. It is written as .checkpoint-NNNNNN.partial; when every file is durable
 * the manifest follows, and then the folder is renamed. Removing begins with renaming it back. So
 * whatever ends the program at any moment leaves complete checkpoints and at most one partial
 * folder, which the next run removes. Nothing is replaced, and only files of these names are
 * removed.
 *
 * Main thread, one process of a job unless stated otherwise. Returns 0 or a negative errno with a
 * reason.
 */
#ifndef IOBENCH_CMD_CHECKPOINT_SNAPSHOT_H
#define IOBENCH_CMD_CHECKPOINT_SNAPSHOT_H

#include "base/draft.h"
#include "base/folder.h"
#include "cmd/checkpoint/model.h"

#include <stdbool.h>
#include <stdint.h>

enum { SNAPSHOT_NUMBER_MAX = 999999, SNAPSHOT_MANIFEST_BYTES_MAX = 1 << 28 };
#define SNAPSHOT_SINGLE "state.bin" /* file name if all ranks share one file */

struct snapshot_file {
    char name[32];
    uint32_t rank;
    uint64_t bytes;
    uint64_t offset;      /* in the shared file; 0 in a file of its own */
    uint64_t first_chunk; /* index of its first chunk in checksums */
};

/* Set by snapshot_plan() or snapshot_load(). */
struct snapshot {
    uint32_t number, ranks;
    char model[MODEL_NAME_BYTES];
    uint64_t seed;
    bool is_single;
    uint32_t chunk_bytes;
    uint32_t file_count;
    struct snapshot_file *files;
    uint64_t bytes, chunk_count;
    uint32_t *checksums;
};

/* Refuse files whose manifest would be too large to be loaded again. */
int snapshot_check_size(const struct model_files *files, uint32_t chunk_bytes);
int snapshot_plan(struct snapshot *snapshot, const struct model_files *files, uint32_t chunk_bytes,
                  bool is_single);
void snapshot_release(struct snapshot *snapshot);

/* Return the manifest as text, to be freed; NULL with a reason. */
char *snapshot_text(const struct snapshot *snapshot);
/* Parse NUL-terminated, possibly hostile text; path: for reasons. Release in either case. */
int snapshot_parse(struct snapshot *snapshot, char *text, size_t bytes, const char *path);

struct snapshot_store {
    struct folder folder;
    struct file_lock lock;
};

/* Open the folder of checkpoints. writes: create and lock it, and remove what a killed run left. */
int snapshot_open(struct snapshot_store *store, const char *path, bool writes);
void snapshot_close(struct snapshot_store *store);

/* List the numbers of all complete checkpoints, ascending. Free *numbers. */
int snapshot_list(const struct snapshot_store *store, uint32_t **numbers, size_t *count);
/* The same without folders that have no valid manifest or, with_files, lack what it lists: others
 * may be removed for the rest. */
int snapshot_list_whole(const struct snapshot_store *store, bool with_files, uint32_t **numbers,
                        size_t *count);
/* Ask how much space the removal of each of these would free, in their order. Free *bytes. */
int snapshot_sizes(const struct snapshot_store *store, uint64_t **bytes, size_t *count);
/* Find a number above all in use. */
int snapshot_next_number(const struct snapshot_store *store, uint32_t *number);

int snapshot_begin(const struct snapshot_store *store, const struct snapshot *snapshot);
/* Open the draft folder to write files into it, after snapshot_begin(). Any process. */
int snapshot_open_draft(const struct snapshot_store *store, uint32_t number, struct folder *draft);
int snapshot_commit(const struct snapshot_store *store, const struct snapshot *snapshot);
int snapshot_abandon(const struct snapshot_store *store, uint32_t number);
int snapshot_remove(const struct snapshot_store *store, uint32_t number);
/* Remove the oldest complete checkpoints beyond `keep`. A folder without a valid manifest, or with
 * a file that is missing or too short, is not counted and stays: no good one goes for its sake. */
int snapshot_prune(const struct snapshot_store *store, uint64_t keep);

/* Load the manifest of a complete checkpoint. Release in either case. Any process. */
int snapshot_load(const char *folder, uint32_t number, struct snapshot *snapshot);
/* Return the path of a complete checkpoint's file, to be freed; NULL with a reason. */
char *snapshot_path(const char *folder, uint32_t number, const char *name);

#endif
