/* SPDX-License-Identifier: Apache-2.0
 *
 * job: the settings of `iobench run`, and the single option table behind parsing, --help, man page,
 * completion, job files and the report's settings.
 */
#ifndef IOBENCH_PIPELINE_SETTINGS_JOB_H
#define IOBENCH_PIPELINE_SETTINGS_JOB_H

#include "base/option.h"
#include "base/plugin.h"
#include "formats/format.h"
#include "ranks/ranks.h"
#include "shuffle/coalesce.h"
#include "shuffle/plan.h"

#include <stdbool.h>
#include <stddef.h>
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

/* ---- rows of job_options shared with other commands, so that each reads a data set with the same
 *      options. A table's settings hold a struct job `at` bytes from their start ---- */

/* With less, the kernel would kill the program before its needs can be compared with the limit. */
enum { MEMORY_LIMIT_LEAST = 8 << 20 };

/* One or two rows each. */
/* clang-format off */
#define JOB_FIELD(at, field) .offset = (at) + offsetof(struct job, field)

#define JOB_SET_ROWS(at) \
    {"format", 'f', OPTION_TEXT, JOB_FIELD(at, read.format), .fallback = "auto", \
     .metavar = "NAME[:...]", \
     .summary = "data set format; auto looks at names and first bytes"}, \
    {"limit-samples", 0, OPTION_COUNT, JOB_FIELD(at, order.limit_samples), .fallback = "all", \
     .zero = "all", \
     .summary = "end each epoch after this many samples, divided evenly among the ranks"}, \
    {"limit-samples-per-rank", 0, OPTION_COUNT, JOB_FIELD(at, order.limit_samples_per_rank), \
     .fallback = "all", .zero = "all", \
     .summary = "the same for each rank: the job's samples grow with its ranks (weak scaling)"}, \
    {"crc", 0, OPTION_FLAG, JOB_FIELD(at, decode.check_crc), .fallback = "yes", \
     .summary = "parse every record and check its CRC, even with --decode none"}, \
    {"on-error", 0, OPTION_CHOICE, JOB_FIELD(at, read.on_error), .fallback = "stop", \
     .choices = job_on_error_names, \
     .summary = "on a damaged record or failed read: stop, or skip, count it and mark the result"}, \
    {"odd-labels", 0, OPTION_CHOICE, JOB_FIELD(at, read.odd_labels), .fallback = "none", \
     .choices = format_odd_labels_names, \
     .summary = "labels that are not integers: none (samples without a class, counted), rounded, " \
                "or refused as damage"}

#define JOB_AS_ROW(at) \
    {"as", 0, OPTION_TEXT, JOB_FIELD(at, as), .metavar = "FRAMEWORK", \
     .summary = "format, shuffle, partition and reader of a framework: mxnet, horovod-tensorflow " \
                "or caffe2; other options override single settings"}

#define JOB_WORKLOAD_ROW(at) \
    {"workload", 0, OPTION_TEXT, JOB_FIELD(at, workload), .metavar = "NAME", \
     .reach = OPTION_READS, \
     .summary = "format, batches, steps and epochs of a workload of MLPerf Storage, such as " \
                "unet3d-b200, and its rules (iobench list profiles); other options override"}

#define JOB_READER_ROWS(at) \
    {"reader", 'r', OPTION_TEXT, JOB_FIELD(at, read.reader), .fallback = "auto", \
     .metavar = "NAME[:...]", .section = "Reading", \
     .summary = "I/O engine; auto is the reader of the URL, io_uring, or blocking reads if " \
                "io_uring is refused"}, \
    {"iodepth", 'q', OPTION_COUNT, JOB_FIELD(at, read.iodepth), .fallback = "32", .zero = "auto", \
     .minimum = 0, .maximum = 65536, .summary = "queue depth: reads in flight"}, \
    {"io-threads", 0, OPTION_COUNT, JOB_FIELD(at, read.io_threads), \
     .fallback = "auto", .zero = "auto", .maximum = 64, \
     .summary = "I/O threads, each with its own ring and memory on one NUMA node; auto is 1"}, \
    {"bs", 'b', OPTION_SIZE, JOB_FIELD(at, read.block_bytes), .fallback = "1MiB", .minimum = 512, \
     .maximum = 1 << 30, \
     .summary = "coalesce adjacent records into reads of at most this size"}, \
    {"direct", 0, OPTION_FLAG, JOB_FIELD(at, read.direct), .fallback = "no", \
     .summary = "bypass the page cache (O_DIRECT)"}, \
    {"memory", 'm', OPTION_SIZE, JOB_FIELD(at, read.memory_bytes), .fallback = "auto", \
     .zero = "auto", \
     .summary = "memory for records in flight and in shuffle buffers; auto is a share of free " \
                "memory"}, \
    {"io-timeout", 0, OPTION_DURATION, JOB_FIELD(at, read.io_timeout_ns), .fallback = "60s", \
     .zero = "none", .summary = "fail a read that takes longer"}, \
    {"limit-rate", 0, OPTION_SIZE, JOB_FIELD(at, read.rate_limit_bytes), .fallback = "none", \
     .zero = "none", .per_second = true, \
     .summary = "read at most at this rate (500MiB/s, 1GB/s)"}

#define JOB_WINDOW_ROW(offset_of_it) \
    {"window", 0, OPTION_COUNT, .offset = (offset_of_it), .fallback = "auto", .zero = "auto", \
     .maximum = COALESCE_WINDOW_MAX, \
     .summary = "look-ahead window: records sorted by file offset together to coalesce adjacent " \
                "ones; 1 reads each alone, in draw order; auto is what 24 reads of --bs hold"}

#define JOB_ORDER_ROWS(at) \
    {"shuffle", 's', OPTION_TEXT, JOB_FIELD(at, order.shuffle), .fallback = "auto", \
     .metavar = "NAME[:...]", .section = "Sample order", \
     .summary = "shuffle strategy: the sample order of an epoch; auto is epoch, or tfdata if shards " \
                "are compressed as a whole"}, \
    JOB_WINDOW_ROW((at) + offsetof(struct job, order.window)), \
    {"partition", 0, OPTION_CHOICE, JOB_FIELD(at, order.partition), .fallback = "disjoint", \
     .choices = plan_partition_names, .summary = "how samples are divided among ranks"}, \
    {"remainder", 0, OPTION_CHOICE, JOB_FIELD(at, order.remainder), .fallback = "uneven", \
     .choices = plan_remainder_names, \
     .summary = "how to treat samples that do not divide evenly; uneven becomes drop where ranks " \
                "synchronise every step"}

#define JOB_SEED_ROW(at) \
    {"seed", 0, OPTION_COUNT, JOB_FIELD(at, order.seed), .fallback = "1", \
     .summary = "random seed of sample order, crops and initial weights"}

#define JOB_RANK_TIMEOUT_ROW(at) \
    {"rank-timeout", 0, OPTION_DURATION, JOB_FIELD(at, rank_timeout_ns), \
     .fallback = "60s", .zero = "none", \
     .summary = "abort if a rank that others wait for is unresponsive this long"}

#define JOB_DECODE_ROWS(at) \
    {"decode", 0, OPTION_TEXT, JOB_FIELD(at, decode.decoder), .fallback = "jpeg", \
     .metavar = "NAME[:...]", .section = "Processing", \
     .summary = "image decoder, to the network's input size; none delivers encoded images"}, \
    {"decode-threads", 't', OPTION_COUNT, JOB_FIELD(at, decode.threads), \
     .fallback = "auto", .zero = "auto", .maximum = 4096, \
     .summary = "decode threads; auto is one per CPU"}, \
    {"prefetch", 0, OPTION_COUNT, JOB_FIELD(at, prefetch_batches), .fallback = "2", \
     .minimum = 1, .maximum = 1024, .summary = "decoded batches to keep ready for the trainer"}

#define JOB_ENTRY_POINTS_ROW(at) \
    {"entry-points", 0, OPTION_FLAG, JOB_FIELD(at, decode.entry_points), .fallback = "no", \
     .summary = "in the first epoch, also note where decoding of each JPEG can begin, beside the " \
                "data, which makes later random crops faster; that epoch is slower"}

/* offset_of_it: offset of a struct cold_settings. */
#define JOB_DROP_ROW(offset_of_it, by_default) \
    {"drop-caches", 'c', OPTION_CHOICE, \
     .offset = (offset_of_it) + offsetof(struct cold_settings, drop_caches), \
     .fallback = (by_default), .choices = job_drop_names, .implied = "yes", \
     .section = "Cold caches", \
     .summary = "drop caches before each run and verify; strict fails if they cannot be verified " \
                "cold"}

#define JOB_SERVER_ROWS(offset_of_it) \
    {"server-drop-cmd", 0, OPTION_TEXT, \
     .offset = (offset_of_it) + offsetof(struct cold_settings, server_drop_command), \
     .metavar = "COMMAND", .reach = OPTION_RUNS, \
     .summary = "command to run before each run, to drop a storage server's caches"}, \
    {"server-check-cmd", 0, OPTION_TEXT, \
     .offset = (offset_of_it) + offsetof(struct cold_settings, server_check_command), \
     .metavar = "COMMAND", .reach = OPTION_RUNS, \
     .summary = "command that prints 'cachectl status --json' of the server, to verify its cache " \
                "cold; runs before and after --server-drop-cmd and after each run"}, \
    {"drop-timeout", 0, OPTION_DURATION, \
     .offset = (offset_of_it) + offsetof(struct cold_settings, drop_timeout_ns), \
     .fallback = "10m", .zero = "none", .summary = "abort if dropping caches takes longer"}

#define JOB_COLD_ROWS(at) \
    JOB_DROP_ROW((at) + offsetof(struct job, cold), "no"), \
    {"memory-limit", 0, OPTION_SIZE, JOB_FIELD(at, cold.memory_limit_bytes), .fallback = "none", \
     .zero = "none", .minimum = MEMORY_LIMIT_LEAST, .reach = OPTION_MAKES_GROUPS, \
     .summary = "limit memory plus page cache, so that every epoch reads a small set from " \
                "storage again, like a large one (control groups: as root, or in a delegated " \
                "group)"}, \
    JOB_SERVER_ROWS((at) + offsetof(struct job, cold))

#define JOB_SERIES_ROWS(at) \
    {"sample-interval", 0, OPTION_DURATION, JOB_FIELD(at, output.sample_interval_ns), \
     .fallback = "100ms", .zero = "none", .minimum = 0.01, .maximum = 3600, \
     .summary = "interval between samples of machine and pipeline counters, for the time series"}, \
    {"series", 0, OPTION_TEXT, JOB_FIELD(at, output.series), .metavar = "FILE", \
     .reach = OPTION_WRITES, \
     .summary = "write the time series as CSV, one row per sample; - is standard output"}, \
    {"label", 0, OPTION_TEXT, JOB_FIELD(at, output.label), .metavar = "TEXT", \
     .summary = "free text to store in the result"}
/* clang-format on */

#endif
