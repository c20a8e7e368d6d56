/* SPDX-License-Identifier: Apache-2.0
 *
 * witness: what others than the reader say about a run: the page cache before it, and the bytes
 * that left storage during it. A number is believed only when both agree with it.
 */
#ifndef IOBENCH_PIPELINE_EVIDENCE_WITNESS_H
#define IOBENCH_PIPELINE_EVIDENCE_WITNESS_H

#include "dataset/catalog.h"
#include "pipeline/result/result.h"

struct witness;

/* NULL with a reason. */
struct witness *witness_open(const struct cold_settings *settings, const struct catalog *catalog);
void witness_close(struct witness *witness);

/* Drop this machine's caches when the job says so, then look at them. What was found goes into
 * *cold, all but its server. 0 or -ENOMEM. */
int witness_make_cold(struct witness *witness, void (*progress)(void *context, uint64_t elapsed_ns),
                      void *context, struct result_cold *cold);

/* The same of a server that the files are on, by the job's commands: when all machines are done
 * with theirs, and again after the run, when none reads. One rank of the job. */
void witness_make_server_cold(struct witness *witness,
                              void (*progress)(void *context, uint64_t elapsed_ns), void *context,
                              struct result_cold *cold);
void witness_ask_server(struct witness *witness, struct result_cold *cold);

/* Take the files out of the page cache, whoever brought them in: what stays is free to a process
 * whose memory is limited. 0 or a negative errno with a reason. */
int witness_evict(struct witness *witness);

/* Around an epoch: bytes that left storage between the two calls. After witness_begin_run() the
 * first epoch counts from there: opening reads as well, and what a map brings in ahead is data. */
void witness_begin_run(struct witness *witness);
void witness_before(struct witness *witness);
void witness_after(struct witness *witness, struct result_bytes *device);

/* Host, kernel, processor, file system and devices of the data. */
void witness_environment(const struct witness *witness, struct environment *environment);

#endif
