/* SPDX-License-Identifier: Apache-2.0
 *
 * restore: reads the files of this process's ranks of a checkpoint, a thread per rank, through the
 * readers of a run, and compares each chunk with its checksum.
 */
#ifndef IOBENCH_CHECKPOINT_RESTORE_H
#define IOBENCH_CHECKPOINT_RESTORE_H

#include "checkpoint/save.h"
#include "dataset/catalog.h"

/* The files of a complete checkpoint, as a reader and the witnesses of a run want them: a shard per
 * file. NULL with a reason. */
struct catalog *restore_catalog(const char *folder, const struct snapshot *snapshot);

struct restore {
    const struct snapshot *snapshot;
    const struct catalog *catalog;
    const struct plugin_choice *reader;
    bool falls_back; /* the reader was not chosen by the user */
    bool verify;
    struct rank_buffers *buffers; /* their contents are lost */
    uint32_t first_rank;          /* whose files the first of them reads, modulo snapshot->ranks */
    uint64_t timeout_ns;
    const struct flag *interrupted;
    struct rank_figures *figures; /* one per rank of buffers->ranks */
    /* Set by restore_run(). */
    struct rank_start start;
    char engine[160], notice[256];
    struct flag stopped, held; /* private */
};

/* Damaged chunks are counted, not a failure. Returns 0, -EINTR, or another negative errno with a
 * reason. */
int restore_run(struct restore *restore);

#endif
