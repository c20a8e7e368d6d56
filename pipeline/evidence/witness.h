/* SPDX-License-Identifier: Apache-2.0
 *
 * witness: evidence on a run from outside the reader: the page cache before it, and the bytes that
 * left storage during it. A figure is trusted only if both agree with it.
 */
#ifndef IOBENCH_PIPELINE_EVIDENCE_WITNESS_H
#define IOBENCH_PIPELINE_EVIDENCE_WITNESS_H

#include "cachectl/residency.h"
#include "dataset/catalog.h"
#include "pipeline/result/result.h"
#include "pipeline/settings/job.h"
#include "shuffle/plan.h"

/* ---- the parts of its files that this rank reads in the first epoch of a run, by its plan ----
 *
 * A set may be a file of 1 TiB with 100 MB of values, or little of it may be read. Off the clock.
 */

struct reach {
    struct ranges ranges;     /* in whole pages; of a compressed shard all of it */
    uint64_t explained_bytes; /* what may be read for them, with all read-ahead */
};

/* plan: open, and not in use. from, draws: where it begins and how many samples it delivers; 0:
 * all. ahead_bytes: on each side of a part. Clear in either case. Returns 0 or -errno with a
 * reason. */
int reach_make(struct reach *reach, struct plan *plan, const struct resume_point *from,
               uint64_t draws, uint64_t ahead_bytes);
void reach_clear(struct reach *reach);

/* ---- the machine that this process runs on; proc, sys: "/proc" and "/sys". Any thread ---- */

/* Fill in host, kernel, CPU, memory, sandbox and the time; not the storage or the command. */
void machine_describe(struct environment *environment, const char *proc, const char *sys);
/* Return whether a hypervisor, and maybe its cache, is beneath. */
bool machine_is_virtual(const char *proc, const char *sys);

/* ---- the witness ---- */

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
