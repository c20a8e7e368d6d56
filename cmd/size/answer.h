/* SPDX-License-Identifier: Apache-2.0
 *
 * answer: what a buyer asks of a cluster: will it do, what limits it, what comes next, what would
 * more of each part bring, and how sure is that. Pure; any thread.
 */
#ifndef IOBENCH_CMD_SIZE_ANSWER_H
#define IOBENCH_CMD_SIZE_ANSWER_H

#include "base/stats.h"
#include "cmd/size/simulation.h"

enum {
    SIZING_DRAWS_LEAST = 20, /* 90% of fewer is all of them or no interval */
    SIZING_DRAWS_MOST = 1000
};

/* Share of the time that a job may lose to saving checkpoints. */
#define SIZING_SAVING_SHARE 0.01

struct sizing_request {
    const struct sizing_inputs *inputs;
    double gpus;
    double busy; /* target utilisation of the GPUs, 0..1 */
    unsigned draws;
    uint64_t seed;
};

struct sizing_range {
    double median, low, high; /* 90% of the draws are between low and high */
};

/* What the job would reach with one part doubled. */
struct sizing_upgrade {
    enum sizing_part part;
    double samples_per_s, gain; /* gain: 0.25 is 25% more */
};

struct sizing_answer {
    struct sizing_plant plant; /* at the stated figures */
    struct sizing_rates first, later;
    struct sizing_outcome outcome;
    struct sizing_range samples_per_s; /* checkpoints included */
    struct sizing_range first_batch_s, first_samples_per_s, later_samples_per_s, stall_share,
        checkpoint_share;
    double goal_samples_per_s;
    double probability; /* share of draws that reach the goal */
    /* Required to reach the goal: */
    double storage_bytes_per_s, storage_reads_per_s, node_bytes_per_s, cores;
    double fabric_bytes_per_s;     /* of a node, to exchange gradients during the backward pass */
    double checkpoint_write_per_s; /* bytes/s, to lose at most SIZING_SAVING_SHARE to saving */
    double checkpoint_read_per_s;  /* the same, to lose it to restores after failures */
    double start_bytes;            /* read at the start of an epoch to fill all buffers */
    double start_bytes_per_s;      /* to fill them within one step */
    double checkpoint_bytes_per_s, checkpoint_s, checkpoint_interval_s;
    struct sizing_upgrade upgrades[SIZING_PART_COUNT]; /* best first */
    unsigned upgrade_count;
};

/* Returns 0 or a negative errno with a reason. */
int sizing_answer(const struct sizing_request *request, struct sizing_answer *answer);

#endif
