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

/* Drop this machine's caches if the settings say so, and inspect them. leads: the first rank of a
 * node drops, for all; the others evict what is left of theirs. reach: what is inspected; NULL: all
 * files, by the rank that leads. Fills *cold except for its server. Returns 0 or -ENOMEM. */
int witness_make_cold(struct witness *witness, bool leads, const struct reach *reach,
                      const struct cache_observer *observer, struct result_cold *cold);

/* Do the same with the commands of the server that holds the files: after all machines dropped
 * their caches, and again after the run, while no rank reads. One rank calls these. */
void witness_make_server_cold(struct witness *witness, uint32_t ranks,
                              const struct cache_observer *observer, struct result_cold *cold);
void witness_ask_server(struct witness *witness, struct result_cold *cold);

/* Evict the files, or those that are read, from the page cache, since pages charged to others would
 * bypass the memory limit. Returns 0 or -errno with a reason. */
int witness_evict(struct witness *witness, const struct reach *reach);

/* Count the bytes that leave storage between the two calls around an epoch. After
 * witness_begin_run() the first epoch counts from there, since opening files and read-ahead of maps
 * read data too. */
void witness_begin_run(struct witness *witness);
void witness_before(struct witness *witness);
void witness_after(struct witness *witness, struct result_bytes *device);

/* Record host, kernel, CPU, file system and devices of the data. */
void witness_environment(const struct witness *witness, struct environment *environment);

#endif
