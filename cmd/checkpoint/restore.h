/* SPDX-License-Identifier: Apache-2.0
 *
 * restore: reads the files of this process's ranks of a checkpoint, a thread per rank, through the
 * readers of a run, and compares each chunk with its checksum.
 */
#ifndef IOBENCH_CHECKPOINT_RESTORE_H
#define IOBENCH_CHECKPOINT_RESTORE_H

#include "cmd/checkpoint/save.h"
#include "dataset/catalog.h"

/* Return a catalog of a complete checkpoint for readers and witnesses, one shard per file. NULL
 * with a reason. */
struct catalog *restore_catalog(const char *folder, const struct snapshot *snapshot);

struct restore {
    const struct snapshot *snapshot;
    const struct catalog *catalog;
    const struct plugin_choice *reader;
    bool falls_back; /* use another reader if this one fails: the user did not choose it */
    bool verify;
    struct rank_buffers *buffers; /* overwritten */
    uint32_t first_rank; /* rank whose files the first of them reads, modulo snapshot->ranks */
    uint64_t timeout_ns;
    struct rank_figures *figures; /* one per rank of buffers->ranks */
    /* Set by restore_run(). */
    struct rank_start start;
    char engine[192], notice[256];
    struct flag stopped, held; /* private */
};

/* Read and verify; damaged chunks are counted and are not a failure. Returns 0, -EINTR, or another
 * negative errno with a reason. */
int restore_run(struct restore *restore);

#endif
