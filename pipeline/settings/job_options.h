/* SPDX-License-Identifier: Apache-2.0
 *
 * job_options: the rows of job_options that other commands have as well: how a data set is read is
 * asked in one way, whoever it is read for. A table's settings hold a struct job `at` bytes from
 * their start.
 */
#ifndef IOBENCH_PIPELINE_SETTINGS_JOB_OPTIONS_H
#define IOBENCH_PIPELINE_SETTINGS_JOB_OPTIONS_H

#include "pipeline/settings/job.h"
#include "shuffle/coalesce.h"
#include "shuffle/plan.h"

#include <stddef.h>

/* A row or two each. */
/* clang-format off */
#define JOB_FIELD(at, field) .offset = (at) + offsetof(struct job, field)

#define JOB_SET_ROWS(at) \
    {"format", 'f', OPTION_TEXT, JOB_FIELD(at, read.format), .fallback = "auto", \
     .metavar = "NAME[:...]", \
     .summary = "how samples lie in files; auto looks at names and first bytes"}, \
    {"limit-samples", 0, OPTION_COUNT, JOB_FIELD(at, order.limit_samples), .fallback = "all", \
     .zero = "all", .summary = "end each epoch after so many samples"}, \
    {"crc", 0, OPTION_FLAG, JOB_FIELD(at, decode.check_crc), .fallback = "yes", \
     .summary = "parse every record and check its CRC, also with --decode none"}, \
    {"on-error", 0, OPTION_CHOICE, JOB_FIELD(at, read.on_error), .fallback = "stop", \
     .choices = job_on_error_names, \
     .summary = "what a damaged record or a failed read does; skip counts it and marks the " \
                "result"}

#define JOB_AS_ROW(at) \
    {"as", 0, OPTION_TEXT, JOB_FIELD(at, as), .metavar = "FRAMEWORK", \
     .summary = "format, order, partition and reader as mxnet, horovod-tensorflow or caffe2 has " \
                "them; other options change single ones"}

#define JOB_READER_ROWS(at) \
    {"reader", 'r', OPTION_TEXT, JOB_FIELD(at, read.reader), .fallback = "auto", \
     .metavar = "NAME[:...]", .section = "How it is read", \
     .summary = "I/O engine; auto is io_uring, or blocking reads where it is refused; nfs for " \
                "nfs://"}, \
    {"iodepth", 'q', OPTION_COUNT, JOB_FIELD(at, read.iodepth), .fallback = "32", .zero = "auto", \
     .minimum = 0, .maximum = 65536, .summary = "reads kept in flight"}, \
    {"io-threads", 0, OPTION_COUNT, JOB_FIELD(at, read.loaders), .alias = "loaders", \
     .fallback = "auto", .zero = "auto", .maximum = 64, \
     .summary = "I/O threads, each with its own ring and memory on one NUMA node; auto is 1"}, \
    {"bs", 'b', OPTION_SIZE, JOB_FIELD(at, read.block_bytes), .fallback = "1MiB", .minimum = 512, \
     .maximum = 1 << 30, \
     .summary = "adjacent records are read together up to this size"}, \
    {"direct", 0, OPTION_FLAG, JOB_FIELD(at, read.direct), .fallback = "no", \
     .summary = "bypass the page cache (O_DIRECT)"}, \
    {"memory", 'm', OPTION_SIZE, JOB_FIELD(at, read.memory_bytes), .fallback = "auto", \
     .zero = "auto", \
     .summary = "for records in flight and in shuffle buffers; auto takes a share of what is " \
                "free"}, \
    {"io-timeout", 0, OPTION_DURATION, JOB_FIELD(at, read.io_timeout_ns), .fallback = "60s", \
     .zero = "none", .summary = "a read that takes longer has failed"}, \
    {"limit-rate", 0, OPTION_SIZE, JOB_FIELD(at, read.rate_limit_bytes), .fallback = "none", \
     .zero = "none", .per_second = true, \
     .summary = "read at most this much per second (500MiB/s, 1GB/s)"}

#define JOB_WINDOW_ROW(offset_of_it) \
    {"window", 0, OPTION_COUNT, .offset = (offset_of_it), .fallback = "auto", .zero = "auto", \
     .maximum = COALESCE_WINDOW_MAX, \
     .summary = "records of the order that are sorted by place at a time, so that adjacent ones " \
                "become one read; 1 reads each alone, as drawn; auto is what 24 reads of --bs hold"}

#define JOB_ORDER_ROWS(at) \
    {"shuffle", 's', OPTION_TEXT, JOB_FIELD(at, order.shuffle), .fallback = "epoch", \
     .metavar = "NAME[:...]", .section = "In which order", \
     .summary = "order of the samples of an epoch"}, \
    JOB_WINDOW_ROW((at) + offsetof(struct job, order.window)), \
    {"partition", 0, OPTION_CHOICE, JOB_FIELD(at, order.partition), .fallback = "disjoint", \
     .choices = plan_partition_names, .summary = "how samples are dealt to ranks"}, \
    {"remainder", 0, OPTION_CHOICE, JOB_FIELD(at, order.remainder), .fallback = "uneven", \
     .choices = plan_remainder_names, \
     .summary = "what is done when they cannot be dealt evenly; uneven is drop where ranks take " \
                "each step together"}

#define JOB_SEED_ROW(at) \
    {"seed", 0, OPTION_COUNT, JOB_FIELD(at, order.seed), .fallback = "1", \
     .summary = "the same seed gives the same order, the same crops and the same first weights"}

#define JOB_SILENCE_ROW(at) \
    {"rank-timeout", 0, OPTION_DURATION, JOB_FIELD(at, silence_ns), .alias = "silence", \
     .fallback = "60s", .zero = "none", \
     .summary = "abort if a rank that others wait for is unresponsive this long"}

#define JOB_DECODE_ROWS(at) \
    {"decode", 0, OPTION_TEXT, JOB_FIELD(at, decode.decoder), .fallback = "jpeg", \
     .metavar = "NAME[:...]", .section = "What is done with it", \
     .summary = "decoder of the images, in a network's size; none delivers them as they are"}, \
    {"decode-threads", 't', OPTION_COUNT, JOB_FIELD(at, decode.threads), .alias = "threads", \
     .fallback = "auto", .zero = "auto", .maximum = 4096, \
     .summary = "decode threads; auto is one per CPU"}, \
    {"prefetch", 0, OPTION_COUNT, JOB_FIELD(at, prefetch_batches), .fallback = "2", \
     .minimum = 1, .maximum = 1024, .summary = "decoded batches kept ready for the trainer"}

#define JOB_COLD_ROWS(at) \
    {"drop-caches", 'c', OPTION_CHOICE, JOB_FIELD(at, cold.drop_caches), .fallback = "no", \
     .choices = job_drop_names, .implied = "yes", .section = "Cold or warm", \
     .summary = "empty the caches before each run and prove it; strict fails when it cannot be " \
                "proven"}, \
    {"memory-limit", 0, OPTION_SIZE, JOB_FIELD(at, cold.memory_limit_bytes), .fallback = "none", \
     .zero = "none", .reach = OPTION_MAKES_GROUPS, \
     .summary = "keep memory and page cache together below this, so that a small set is read " \
                "again in each epoch as a large one is (control groups: as root, or a group of " \
                "your own)"}, \
    {"server-drop-cmd", 0, OPTION_TEXT, JOB_FIELD(at, cold.server_drop_command), \
     .metavar = "COMMAND", .reach = OPTION_RUNS, \
     .summary = "also run this before each run, to empty the caches of a storage server"}, \
    {"server-check-cmd", 0, OPTION_TEXT, JOB_FIELD(at, cold.server_check_command), \
     .metavar = "COMMAND", .reach = OPTION_RUNS, \
     .summary = "run this before and after that, and after the run: it prints what 'cachectl " \
                "status --json' prints on the server, which proves its cache cold"}, \
    {"drop-timeout", 0, OPTION_DURATION, JOB_FIELD(at, cold.drop_timeout_ns), .fallback = "10m", \
     .zero = "none", .summary = "give up dropping after so long"}

#define JOB_SERIES_ROWS(at) \
    {"sample-interval", 0, OPTION_DURATION, JOB_FIELD(at, output.sample_interval_ns), \
     .fallback = "100ms", .zero = "none", .minimum = 0.01, .maximum = 3600, \
     .summary = "read the counters of machine and pipeline so often, for the time series"}, \
    {"series", 0, OPTION_TEXT, JOB_FIELD(at, output.series), .metavar = "FILE", \
     .reach = OPTION_WRITES, \
     .summary = "write the time series as CSV, a row a sample; - is standard output"}, \
    {"label", 0, OPTION_TEXT, JOB_FIELD(at, output.label), .metavar = "TEXT", \
     .summary = "free text kept in the result"}
/* clang-format on */

#endif
