/* SPDX-License-Identifier: Apache-2.0
 *
 * job: the settings of `iobench run`, and the single option table behind parsing, --help, man page,
 * completion, job files and the report's settings.
 */
#ifndef IOBENCH_PIPELINE_SETTINGS_JOB_H
#define IOBENCH_PIPELINE_SETTINGS_JOB_H

#include "base/option.h"
#include "base/plugin.h"
#include "ranks/ranks.h"

#include <stdbool.h>
#include <stdint.h>

/* Settings are grouped by the part of the pipeline that reads them. Each part gets a pointer to its
 * groups and nothing else. */

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

struct job {
    char *as;       /* a preset of shuffle/preset.h, which the parser applies before all else */
    char *workload; /* of base/profiles/workload, applied before that; NULL: none */
    struct read_settings read;
    struct order_settings order;
    struct decode_settings decode;
    struct cold_settings cold;
    struct output_settings output;
    char *trainer;
    uint64_t batch_size;
    uint64_t prefetch_batches;
    uint64_t rank_timeout_ns; /* an unresponsive rank ends the job after this time; 0: never */
    uint64_t epochs;
    uint64_t runs;        /* 0: until the interval is narrow enough, see job_until_percent() */
    double until_percent; /* 0: not given */
    uint64_t until_runs, until_time_ns;
    char *beside;   /* options of a job to run at the same time; NULL: none */
    char *against;  /* options of rival jobs, one per line, which the parser turns into jobs; NULL:
                       none */
    bool paired;    /* the sections of a job file are rivals */
    uint64_t turns; /* runs of each rival that make up one pair */
    uint64_t order_seed;          /* of the turns that the jobs of a session take; 0: drawn */
    double require_samples_per_s; /* of all ranks together, the median of the runs; 0: none */
    uint64_t require_rate_bytes;  /* the same in bytes/s */
    char *start_at;               /* time of day at which the run starts; NULL: once it is ready */
    bool dry_run;
    /* Open loop: this many of the replayed trainer take batches in turns, each due at a fixed time
     * (trainer/trainer.h); 0: closed loop. Set by `iobench ramp`; no option. */
    double open_load;
    bool calibrate; /* measure the program alone, and the AU of a loop fed from memory */
};

extern const struct option_spec job_options[];
extern const char *const job_drop_names[], *const job_on_error_names[]; /* names of the enums */

/* Where the first epoch of a run starts. sample is a multiple of the batch size, so that all
 * batches are the same as without the interruption. Returns 0 or -EINVAL with a reason. */
struct resume_point {
    uint64_t epoch, sample;
};
int job_resume(const struct job *job, struct resume_point *place);

/* With --runs auto: half-width of the interval at which to stop. */
double job_until_percent(const struct job *job);
/* Maximum number of runs. */
uint64_t job_runs_most(const struct job *job);

/* The file that an option of job_options names as an output; NULL: none. */
const char *job_output(const struct job *job, const struct option_spec *row);
/* Count the outputs written to standard output. */
int job_stdout_count(const struct job *job);

/* Divide the job among the ranks that were started. If they synchronise every step, drop an uneven
 * remainder. Returns 0 or -EINVAL with a reason. */
int job_share(struct job *job, const struct ranks_place *place);

/* Collective: compare the values of all options of a table, but paths and resources, which may
 * differ. With another seed one rank would repeat some samples and omit others; with another batch
 * size it would wait for steps that nobody takes. All fail alike, naming the option. */
int options_check_alike(const struct option_spec *table, const void *settings, struct ranks *ranks);

/* The plug-ins of a job, checked against each other. */
struct job_plugins {
    struct plugin_choice format, reader, shuffle, decoder, trainer;
    bool reader_is_auto; /* --reader auto: the reader may fall back */
    bool direct;         /* the reader bypasses the page cache, by --direct or by its own option */
};

/* Choose all but the format, which find_data() chooses, as it may the reader and the shuffle.
 * Returns 0 or -EINVAL with a reason. */
int job_choose(const struct job *job, struct job_plugins *plugins);
void job_release(struct job_plugins *plugins);

#endif
