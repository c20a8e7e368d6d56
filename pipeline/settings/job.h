/* SPDX-License-Identifier: Apache-2.0
 *
 * job: the settings of `iobench run`, and the single option table behind parsing, --help, man page,
 * completion, job files and the report's settings.
 */
#ifndef IOBENCH_PIPELINE_SETTINGS_JOB_H
#define IOBENCH_PIPELINE_SETTINGS_JOB_H

#include "base/option.h"
#include "base/plugin.h"
#include "pipeline/settings/settings.h"
#include "ranks/ranks.h"

#include <stdbool.h>
#include <stdint.h>

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
