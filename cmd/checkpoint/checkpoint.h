/* SPDX-License-Identifier: Apache-2.0
 *
 * checkpoint: measures checkpoints: writes them as often as asked, between the steps of an emulated
 * training loop if there is one, then reads them back from cold caches and verifies them.
 *
 * The ranks of the model are divided among the processes of the job (mpirun, srun); a process has a
 * thread for each of its ranks. The first process alone makes, completes and removes checkpoints.
 */
#ifndef IOBENCH_CMD_CHECKPOINT_CHECKPOINT_H
#define IOBENCH_CMD_CHECKPOINT_CHECKPOINT_H

#include "cmd/checkpoint/save.h"
#include "pipeline/result/result.h"
#include "pipeline/settings/job.h"
#include "ranks/ranks.h"
#include "telemetry/storage.h"

#include <jansson.h>

struct checkpoint_job {
    const char *path, *command; /* command: the command line, for the report */
    struct model_request model;
    int is_single; /* 1: all ranks share one file */
    uint64_t chunk_bytes, depth;
    const struct plugin *writer; /* NULL: the best available */
    const char *reader;          /* as for a run */
    bool direct, sync, verify;
    bool is_async; /* training goes on while a checkpoint is written */
    bool leave;    /* keep the last checkpoints after the job */
    uint64_t writes, reads, keep;
    uint64_t step_ns, interval; /* steps between checkpoints; step_ns 0: no training */
    uint64_t rank_shift;        /* rank r reads what rank r + shift wrote */
    uint64_t seed, io_timeout_ns, rank_timeout_ns, mtbf_ns;
    struct cold_settings cold;
    /* Before each checkpoint; NULL: nobody looks. */
    void (*progress)(void *context, bool is_read, uint64_t number, uint64_t total);
    void *progress_context;
};

/* One checkpoint, written or read by all ranks. */
struct checkpoint_row {
    uint32_t number;
    uint64_t bytes, wall_ns; /* of the slowest rank */
    uint64_t median_ns, fastest_ns;
    uint32_t slowest;                   /* that rank */
    uint64_t sync_ns;                   /* the longest in fsync(2) */
    uint64_t synced_bytes;              /* of files whose fsync(2) returned */
    uint64_t durable_ns;                /* until the checkpoint was complete; 0 for a read */
    uint64_t stall_ns;                  /* how long training waited for it; 0 for a read */
    double process_bytes, device_bytes; /* written, by all; NAN: unknown, as of a read */
    uint64_t damaged;
    struct histogram latency_ns;
};

/* Totals of one rank over all checkpoints. */
struct checkpoint_rank {
    uint32_t rank;
    char host[RANKS_HOST_BYTES];
    uint64_t written, write_ns, read, read_ns;
};

struct checkpoint_result {
    struct model_files files; /* files written; count 0: none */
    uint32_t ranks, processes, nodes;
    uint64_t write_count, read_count; /* rows */
    struct checkpoint_row *writes, *reads;
    struct checkpoint_rank *each; /* per rank */
    char writer_engine[WRITER_ENGINE_BYTES];
    struct content_ceiling ceiling; /* of one rank */
    uint64_t steps, loop_ns;        /* of the training loop */
    /* Environment, notices, validity, and a run per read with its witnesses. */
    struct result evidence;
};

/* Durability of a checkpoint after it was written. */
enum checkpoint_durability {
    CHECKPOINT_NOT_DURABLE = 0, /* some of its files were not synced */
    CHECKPOINT_UNVERIFIED,      /* synced, but no device counted as many bytes */
    CHECKPOINT_DURABLE,
};

enum checkpoint_durability checkpoint_durability(const struct checkpoint_row *row);

/* Collective. After a failure nothing of this job is left in the folder or, if job->leave is set,
 * only complete checkpoints. Destroy the result in either case. Returns 0 with a result, valid or
 * not, or a negative errno with a reason. */
int checkpoint_run(const struct checkpoint_job *job, struct ranks *ranks,
                   struct checkpoint_result *result);
void checkpoint_destroy(struct checkpoint_result *result);

/* ---- private to job.c and its test: what the phases of a job share ---- */

struct checkpoint_shared {
    const struct checkpoint_job *job;
    struct checkpoint_result *result;
    struct ranks *ranks;
    struct snapshot_store store;
    struct storage *storage; /* beneath it */
    struct rank_buffers buffers;
    uint32_t first_rank; /* first rank of the buffers */
    struct rank_figures *figures;
    struct guard_counts guard; /* of the writes, and of the ceiling */
};

/* Collective: merge the figures of all ranks into a row and into result->each. written: by this
 * process and its node's devices; NULL for a read. */
int checkpoint_collect(struct checkpoint_shared *shared, uint32_t ranks,
                       const struct storage_bytes *written, struct checkpoint_row *row);

/* ---- the table and the JSON of a result ---- */

/* Returns 0 or, with nothing printed, -ENOMEM with a reason. */
int checkpoint_report_text(const struct checkpoint_job *job,
                           const struct checkpoint_result *result);
/* Set the median rates of all writes and of all reads, bytes/s. Returns 0 or -ENOMEM with a
 * reason. */
int checkpoint_report_rates(const struct checkpoint_result *result, double *written, double *read);
/* Return the sealed document; NULL with a reason. */
json_t *checkpoint_report_json(const struct checkpoint_job *job,
                               const struct checkpoint_result *result);

#endif
