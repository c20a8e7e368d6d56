/* SPDX-License-Identifier: Apache-2.0
 *
 * job_options: rows of job_options shared with other commands, so that every command reads a data
 * set with the same options. A table's settings hold a struct job `at` bytes from their start.
 */
#ifndef IOBENCH_PIPELINE_SETTINGS_JOB_OPTIONS_H
#define IOBENCH_PIPELINE_SETTINGS_JOB_OPTIONS_H

#include "formats/format.h"
#include "pipeline/settings/job.h"
#include "shuffle/coalesce.h"
#include "shuffle/plan.h"

#include <stddef.h>

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
