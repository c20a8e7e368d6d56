/* SPDX-License-Identifier: Apache-2.0
 *
 * settings: what a user can ask of a job, grouped by the part of the pipeline that reads it. Each
 * part gets a pointer to its groups and nothing else. The option table is in job.h.
 */
#ifndef IOBENCH_PIPELINE_SETTINGS_SETTINGS_H
#define IOBENCH_PIPELINE_SETTINGS_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

enum job_drop { JOB_DROP_NO, JOB_DROP_YES, JOB_DROP_STRICT };
enum job_on_error { JOB_ERROR_STOP, JOB_ERROR_SKIP };

/* How records get into memory. */
struct read_settings {
    char *data;   /* NULL: a synthetic set, generated once and kept */
    char *format; /* "auto" or NAME[:options] */
    char *reader;
    uint64_t io_threads; /* I/O threads; 0: auto */
    uint64_t iodepth;
    uint64_t block_bytes; /* adjacent records are read together up to this size */
    bool direct;
    uint64_t memory_bytes; /* for records in flight and in shuffle buffers; 0: from the machine */
    uint64_t io_timeout_ns;
    uint64_t rate_limit_bytes; /* per second; 0: none */
    int on_error;              /* enum job_on_error */
    int odd_labels;            /* enum format_odd_labels */
};

/* auto means 1: in measurements so far more I/O threads were never faster. */
static inline uint32_t read_io_threads(const struct read_settings *read)
{
    return read->io_threads ? (uint32_t)read->io_threads : 1;
}

/* Choice and order of the samples. */
struct order_settings {
    char *shuffle;
    uint64_t window;                 /* see shuffle/coalesce.h; 0: auto */
    uint64_t limit_samples;          /* of an epoch, of all ranks together; 0: all */
    uint64_t limit_samples_per_rank; /* 0: all; see order_rank_samples() */
    int partition;                   /* enum plan_partition */
    int remainder;                   /* enum plan_remainder */
    uint64_t ranks, rank;
    uint64_t seed;
    char *resume_at; /* "EPOCH:SAMPLE", see job_resume(); NULL: from the start */
    bool overlap_epochs;
};

/* Return the samples after which this rank ends an epoch; 0: all. The ranks' shares add up to
 * limit_samples, but for a remainder that is dropped or padded. */
uint64_t order_rank_samples(const struct order_settings *order);

/* Processing of a record once it is read. */
struct decode_settings {
    char *decoder;
    uint64_t threads; /* decode threads; 0: one per CPU */
    bool check_crc;
    bool digest;       /* sum up (label, image checksum), independent of order */
    bool entry_points; /* make the decoder's hints in the first epoch */
};

/* Caches before a run, and memory during it. */
struct cold_settings {
    uint64_t memory_limit_bytes; /* memory and page cache, see session.h; 0: none */
    int drop_caches;             /* enum job_drop */
    char *server_drop_command, *server_check_command;
    uint64_t drop_timeout_ns;
};

struct output_settings {
    uint64_t sample_interval_ns; /* of the time series; 0: none */
    char *json, *csv, *series, *profile, *trace;
    char *label; /* free text kept in the result */
};

#endif
