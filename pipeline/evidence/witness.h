/* SPDX-License-Identifier: Apache-2.0
 *
 * witness: evidence on a run from outside the reader: the page cache before it, and the bytes that
 * left storage during it. A figure is trusted only if both agree with it.
 */
#ifndef IOBENCH_PIPELINE_EVIDENCE_WITNESS_H
#define IOBENCH_PIPELINE_EVIDENCE_WITNESS_H

#include "dataset/catalog.h"
#include "pipeline/evidence/reach.h"
#include "pipeline/result/result.h"

struct witness;

/* reader: that will read the files. Returns NULL with a reason. */
struct witness *witness_open(const struct cold_settings *settings, const struct catalog *catalog,
                             const struct plugin *reader);
void witness_close(struct witness *witness);

/* Before a run: drop caches as the settings say, on each node by its first rank, and inspect them,
 * each rank what it reads (reach; NULL: the first rank all files); then on the server by rank 0
 * with the server's commands. Fills run->cold and run->nodes. Collective. Returns 0 or -errno, the
 * same on all ranks; with strict, also fails if the run cannot be verified cold. */
int witness_make_cold(struct witness *witness, const struct job_plugins *plugins,
                      struct ranks *ranks, const struct reach *reach,
                      const struct cache_observer *observer, struct result_run *run);
/* After the run, while no rank reads: ask the server again. One rank. */
void witness_ask_server(struct witness *witness, struct result_cold *cold);

/* Count the bytes that leave storage between the two calls around an epoch. After
 * witness_make_cold() the first epoch counts from there, since opening files and read-ahead of maps
 * read data too. */
void witness_before(struct witness *witness);
void witness_after(struct witness *witness, struct result_bytes *device);

/* Record host, kernel, CPU, file system and devices of the data. */
void witness_environment(const struct witness *witness, struct environment *environment);

#endif
