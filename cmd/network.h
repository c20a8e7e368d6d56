/* SPDX-License-Identifier: Apache-2.0
 *
 * network: the options that commands with a network have in common, which network and what it is
 * fed from, and the job they make. Main thread.
 */
#ifndef IOBENCH_CMD_NETWORK_H
#define IOBENCH_CMD_NETWORK_H

#include "base/option.h"
#include "pipeline/settings/job_options.h"
#include "trainer/graph.h"

#include <stddef.h>

struct network_settings {
    char *name, *backend;
    uint64_t side, classes, threads;
    struct job job; /* how it is fed: what the command has rows for, see network_choose() */
};

/* A row or two each. */
/* clang-format off */
#define NETWORK_FIELD(type, field) \
    .offset = offsetof(type, network) + offsetof(struct network_settings, field)
/* Where the job lies in a `type` with a struct network_settings network. */
#define NETWORK_JOB(type) (offsetof(type, network) + offsetof(struct network_settings, job))
/* Rows of an option table whose settings are such a `type`. */
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
    JOB_SEED_ROW(NETWORK_JOB(type)), \
    {"data", 'd', OPTION_TEXT, JOB_FIELD(NETWORK_JOB(type), read.data), .metavar = "PATH", \
     .reach = OPTION_INDEXES_SET, \
     .section = "What is read", .summary = "the data set: file, folder or nfs:// URL"}, \
    JOB_SET_ROWS(NETWORK_JOB(type))
/* clang-format on */

/* Complete settings->job, which a command's table has filled in part: what it has no row for is as
 * `iobench run` would have it, the trainer is the network. job_at: NETWORK_JOB(). Release the job
 * with option_release(job_options) in either case. 0, or a negative errno with a reason. */
struct network_choice {
    const struct network *network;
    uint32_t side, classes, threads;
};
int network_choose(struct network_settings *settings, const struct option_spec *table,
                   size_t job_at, struct network_choice *choice);

#endif
