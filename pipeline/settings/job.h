/* SPDX-License-Identifier: Apache-2.0
 *
 * job: everything a user can ask of `iobench run`, and the one option table that parsing, --help,
 * the man page, completion, job files and the report's settings section come from.
 */
#ifndef IOBENCH_PIPELINE_SETTINGS_JOB_H
#define IOBENCH_PIPELINE_SETTINGS_JOB_H

#include "base/option.h"
#include "base/plugin.h"
#include "ranks/ranks.h"

#include <stdbool.h>
#include <stdint.h>

enum job_drop { JOB_DROP_NO, JOB_DROP_YES, JOB_DROP_STRICT };
enum job_on_error { JOB_ERROR_STOP, JOB_ERROR_SKIP };

struct job {
    /* what */
    char *data;   /* NULL: a synthetic set is made once and kept */
    char *format; /* "auto" or NAME[:options] */
    char *label;  /* free text kept in the result */
    char *as;     /* a preset of shuffle/preset.h, applied by whoever parses, before all else */
    uint64_t limit_samples; /* stop an epoch after so many; 0: all */
    /* how it is read */
    char *reader;
    uint64_t loaders; /* threads that read; 0: see job_loaders() */
    uint64_t iodepth;
    uint64_t block_bytes; /* neighbouring records are read together up to this size */
    bool direct;
    uint64_t memory_bytes; /* for records in flight and in shuffle buffers; 0: from the machine */
    uint64_t io_timeout_ns;
    uint64_t rate_limit_bytes; /* per second; 0: none */
    bool check_crc;
    int on_error; /* enum job_on_error */
    /* in which order */
    char *shuffle;
    uint64_t window; /* see shuffle/coalesce.h; 0: auto */
    int partition;   /* enum plan_partition */
    int remainder;   /* enum plan_remainder */
    uint64_t ranks, rank;
    uint64_t silence_ns; /* a rank without a sign of life for longer ends the job; 0: never */
    uint64_t seed;
    char *resume_at; /* "EPOCH:SAMPLE", see job_resume(); NULL: from the start */
    /* what is done with it */
    char *decode;
    uint64_t threads; /* decode workers; 0: one a CPU */
    char *trainer;
    uint64_t batch_size;
    uint64_t prefetch_batches;
    uint64_t epochs;
    uint64_t runs;        /* 0: until the interval is narrow enough, see job_until_percent() */
    double until_percent; /* 0: not said */
    uint64_t until_runs, until_time_ns;
    char
        *against; /* options of rivals, one a line; NULL: none. Whoever parses makes jobs of them */
    bool paired;  /* the sections of a job file are rivals */
    uint64_t order_seed; /* of the turns that jobs of a sitting take; 0: drawn */
    bool overlap_epochs;
    /* cold */
    uint64_t memory_limit_bytes; /* of memory and page cache, see memory_limit.h; 0: none */
    int drop_caches;             /* enum job_drop */
    char *server_drop_command, *server_check_command;
    uint64_t drop_timeout_ns;
    /* what comes out */
    uint64_t sample_interval_ns; /* of the time series; 0: none */
    char *json, *csv, *series;
    bool digest; /* print the order-independent digest of (label, image checksum) */
    bool dry_run;
    bool calibrate; /* measure the harness floor and the AU of a loop fed from memory */
};

extern const struct option_spec job_options[];
extern const char *const job_drop_names[], *const job_on_error_names[]; /* of the enums */

/* Where the first epoch of a run starts. sample is a whole number of batches, so that every batch
 * is what it would have been. 0, or -EINVAL with a reason. */
struct job_place {
    uint64_t epoch, sample;
};
int job_resume(const struct job *job, struct job_place *place);

/* With --runs auto: half of the interval's width at which it ends. */
double job_until_percent(const struct job *job);
/* As many runs as it may make. */
uint64_t job_runs_most(const struct job *job);

/* Threads that read. auto is one: nothing measured so far was faster with more. */
uint32_t job_loaders(const struct job *job);

/* How many of its files are the standard output. */
int job_stdout_count(const struct job *job);

/* Several ranks were started: they share the job; where they take each step together, the rest that
 * would be uneven is dropped. 0, or -EINVAL with a reason. */
int job_share(struct job *job, const struct ranks_place *place);

/* The plug-ins a job names, chosen and checked against each other. */
struct job_plugins {
    struct plugin_choice format, reader, shuffle, decoder, trainer;
    bool reader_is_auto; /* nobody named one: it may fall back */
    bool direct; /* the reader goes past the page cache: by --direct, or by its own option */
};

/* Choose all but the format, which needs the data (see run.h). 0 or -EINVAL with a reason. */
int job_choose(const struct job *job, struct job_plugins *plugins);
void job_release(struct job_plugins *plugins);

#endif
