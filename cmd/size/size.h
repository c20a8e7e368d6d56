/* SPDX-License-Identifier: Apache-2.0
 *
 * size: what `iobench size` was asked, and its page for a simulated cluster (cmd/size/cluster.c).
 * Main thread.
 */
#ifndef IOBENCH_CMD_SIZE_SIZE_H
#define IOBENCH_CMD_SIZE_SIZE_H

#include "cmd/command.h"

#include <jansson.h>

enum { SIZE_COUNTS_MOST = 64 };

struct size_settings {
    char *gpu;
    char *gpus; /* a list */
    double rate;
    double busy_percent;
    uint64_t sample_bytes;
    char *json; /* file or "-" for standard output; NULL: a table */
    bool simulate;
    char *network, *node, *storage, *fabric; /* storage: a list */
    char *profile;                           /* figures that override the other profiles */
    char *profiles;                          /* folder */
    char *recording;                         /* of `iobench monitor` */
    uint64_t recorded_gpus;
    uint64_t draws, seed;
    char *chart, *acceptance;
    char *measure, *read_sizes, *depths, *save; /* of a storage */
    uint64_t measure_ns;
};

/* Parse the numbers of GPUs. Returns how many there are, or -EINVAL with a reason. */
int size_counts(const char *text, uint64_t counts[SIZE_COUNTS_MOST]);

/* Return enum command_exit. */
int size_measure(const struct invocation *invocation);
int size_cluster(const struct invocation *invocation);

#endif
