/* SPDX-License-Identifier: Apache-2.0
 *
 * layers: settings come from defaults, a workload (--workload), a preset (--as), a job file and the
 * command line; later layers override earlier ones. And the options that train and infer share
 * (network and input), and the job made from them. Main thread.
 */
#ifndef IOBENCH_CMD_LAYERS_H
#define IOBENCH_CMD_LAYERS_H

#include "cmd/command.h"
#include "pipeline/settings/job.h"
#include "trainer/training.h"

#include <stddef.h>

/* Apply a preset of shuffle/preset.h, skipping options without a row in table: `train` does not
 * overlap epochs, `shuffle` has its own option for orders. Returns 0 or -EINVAL. */
int layers_preset(const char *name, const struct option_spec *table, void *settings);

/* Apply what a workload of base/profiles/workload sets. Returns 0 or a negative errno. */
int layers_workload(const char *name, const struct option_spec *table, void *settings);

/* Apply the command line, the last layer. Returns 0 or -EINVAL. */
int layers_command_line(const struct invocation *invocation, const struct option_spec *table,
                        void *settings);

/* Set the options of a job that have no row in table, whose settings hold the job at job_at, to the
 * defaults of `iobench run`. Returns 0 or -EINVAL. */
int layers_complete(const struct option_spec *table, size_t job_at, struct job *job);

struct network_settings {
    char *name, *backend;
    uint64_t side, classes, threads;
    struct job job; /* how its input is read; options without a row: see network_choose() */
};

/* One or two rows each. */
/* clang-format off */
#define NETWORK_FIELD(type, field) \
    .offset = offsetof(type, network) + offsetof(struct network_settings, field)
/* Offset of the job in a `type` with a struct network_settings network. */
#define NETWORK_JOB(type) (offsetof(type, network) + offsetof(struct network_settings, job))
/* Rows of an option table whose settings are such a `type`. */
#define NETWORK_OPTIONS(type) \
    {"network", 'N', OPTION_TEXT, NETWORK_FIELD(type, name), .fallback = "resnet50", \
     .metavar = "NAME", .section = "The network", .summary = "network to compute"}, \
    {"backend", 0, OPTION_TEXT, NETWORK_FIELD(type, backend), .fallback = "auto", \
     .metavar = "NAME", .summary = "compute backend: cuda, cpu (oneDNN) or reference"}, \
    {"size", 0, OPTION_COUNT, NETWORK_FIELD(type, side), .fallback = "auto", .zero = "auto", \
     .maximum = 4096, \
     .summary = "side of the input images in pixels; auto is the network's own"}, \
    {"classes", 0, OPTION_COUNT, NETWORK_FIELD(type, classes), .fallback = "auto", \
     .zero = "auto", .maximum = 1 << 24, \
     .summary = "number of classes; auto is the network's own"}, \
    {"compute-threads", 0, OPTION_COUNT, NETWORK_FIELD(type, threads), .fallback = "auto", \
     .zero = "auto", .maximum = 4096, .summary = "compute threads; auto is one per CPU"}, \
    JOB_SEED_ROW(NETWORK_JOB(type)), \
    {"data", 'd', OPTION_TEXT, JOB_FIELD(NETWORK_JOB(type), read.data), .metavar = "PATH", \
     .reach = OPTION_INDEXES_SET, \
     .section = "Data set", .summary = "data set: file, folder or nfs:// URL (required)"}, \
    JOB_SET_ROWS(NETWORK_JOB(type))
/* clang-format on */

/* Complete settings->job: options without a row in the command's table take the defaults of
 * `iobench run`; the trainer is the network. job_at: NETWORK_JOB(). Always release the job with
 * option_release(job_options). *training: network and backend. Returns 0, or a negative errno with
 * a reason. */
int network_choose(struct network_settings *settings, const struct option_spec *table,
                   size_t job_at, struct training_config *training);

#endif
