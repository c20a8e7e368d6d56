/* SPDX-License-Identifier: Apache-2.0
 *
 * network: the options that commands with a network have in common, which network and what it is
 * fed from, and the job they make. Main thread.
 */
#ifndef IOBENCH_CMD_NETWORK_H
#define IOBENCH_CMD_NETWORK_H

#include "base/option.h"
#include "pipeline/job.h"
#include "trainer/graph.h"

#include <stddef.h>

struct network_settings {
    char *name, *backend, *data, *format, *reader, *decode;
    uint64_t side, classes, limit_samples, seed;
    uint64_t workers, threads, prefetch, iodepth, memory_bytes;
    bool direct;
};

/* A row or two each. */
/* clang-format off */
#define NETWORK_FIELD(type, field) \
    .offset = offsetof(type, network) + offsetof(struct network_settings, field)
/* Rows of an option table whose settings are a `type` with a struct network_settings network. */
#define NETWORK_OPTIONS(type) \
    {"network", 'N', OPTION_TEXT, NETWORK_FIELD(type, name), .fallback = "resnet50", \
     .metavar = "NAME", .section = "The network", .summary = "which network"}, \
    {"backend", 0, OPTION_TEXT, NETWORK_FIELD(type, backend), .fallback = "auto", \
     .metavar = "NAME", .summary = "what computes it: cpu (oneDNN) or reference"}, \
    {"size", 0, OPTION_COUNT, NETWORK_FIELD(type, side), .fallback = "auto", .zero = "auto", \
     .maximum = 4096, \
     .summary = "side of the images in pixels; auto is what the network was made for"}, \
    {"classes", 0, OPTION_COUNT, NETWORK_FIELD(type, classes), .fallback = "auto", \
     .zero = "auto", .maximum = 1 << 24, \
     .summary = "of the data set; auto is what the network was made for"}, \
    {"compute-threads", 0, OPTION_COUNT, NETWORK_FIELD(type, threads), .fallback = "auto", \
     .zero = "auto", .maximum = 4096, .summary = "that compute; auto is one a CPU"}, \
    {"seed", 0, OPTION_COUNT, NETWORK_FIELD(type, seed), .fallback = "1", \
     .summary = "the same seed gives the same weights, order and crops, hence the same bits"}, \
    {"data", 'd', OPTION_TEXT, NETWORK_FIELD(type, data), .metavar = "PATH", \
     .section = "What from", .summary = "the data set"}, \
    {"format", 'f', OPTION_TEXT, NETWORK_FIELD(type, format), .fallback = "auto", \
     .metavar = "NAME[:...]", \
     .summary = "how samples lie in files; auto looks at names and first bytes"}, \
    {"limit-samples", 0, OPTION_COUNT, NETWORK_FIELD(type, limit_samples), .fallback = "all", \
     .zero = "all", .summary = "end a pass over it after so many samples"}, \
    {"reader", 'r', OPTION_TEXT, NETWORK_FIELD(type, reader), .fallback = "auto", \
     .metavar = "NAME[:...]", .summary = "I/O engine"}, \
    {"iodepth", 'q', OPTION_COUNT, NETWORK_FIELD(type, iodepth), .fallback = "32", \
     .zero = "auto", .maximum = 65536, .summary = "reads kept in flight"}, \
    {"direct", 0, OPTION_FLAG, NETWORK_FIELD(type, direct), .fallback = "no", \
     .summary = "bypass the page cache (O_DIRECT)"}, \
    {"memory", 'm', OPTION_SIZE, NETWORK_FIELD(type, memory_bytes), .fallback = "auto", \
     .zero = "auto", .summary = "for records in flight and in shuffle buffers"}, \
    {"decode", 0, OPTION_TEXT, NETWORK_FIELD(type, decode), .fallback = "jpeg", \
     .metavar = "NAME[:...]", .summary = "decoder of the images; its size is the network's"}, \
    {"threads", 't', OPTION_COUNT, NETWORK_FIELD(type, workers), .fallback = "auto", \
     .zero = "auto", .maximum = 4096, .summary = "decode workers; auto is one a CPU"}, \
    {"prefetch", 0, OPTION_COUNT, NETWORK_FIELD(type, prefetch), .fallback = "2", .minimum = 1, \
     .maximum = 1024, .summary = "decoded batches kept ready"}
/* clang-format on */

/* What the settings ask for. job is zeroed before; release it with option_release(job_options).
 * shuffle: NULL for the default. 0, or a negative errno with a reason. */
struct network_choice {
    const struct network *network;
    uint32_t side, classes, threads;
};
int network_choose(const struct network_settings *settings, const char *shuffle, struct job *job,
                   struct network_choice *choice);

#endif
