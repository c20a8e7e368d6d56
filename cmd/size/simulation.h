/* SPDX-License-Identifier: Apache-2.0
 *
 * simulation: follows samples from storage to the step that uses them, through queues of limited
 * length, on as many nodes as the job has. Nodes are alike: up to SIZING_NODES_MOST are followed
 * and stand for all, with fluctuations as large as the slowest of all would show. Batches move in
 * pieces, and each piece waits for what comes before it: the reads of its node, memory, decode
 * threads, a free batch, the step, the other nodes. Pure; any thread.
 */
#ifndef IOBENCH_CMD_SIZE_SIMULATION_H
#define IOBENCH_CMD_SIZE_SIMULATION_H

#include "cmd/size/rates.h"

enum { SIZING_NODES_MOST = 32, SIZING_PIECES_MOST = 64, SIZING_STEPS_MOST = 4096 };

struct sizing_outcome {
    double samples_per_s;         /* of all epochs, without checkpoints */
    double reached_samples_per_s; /* the same with them */
    double first_samples_per_s;   /* of the first epoch */
    double later_samples_per_s;   /* of the later epochs; with one epoch, that one's */
    double first_batch_s;         /* from the start until the first batch is complete */
    double stall_share;           /* share of time that steps wait for a batch */
    double checkpoint_share;      /* share of time stopped to save, if saving stops training */
};

/* steps: most steps simulated per epoch; the rest take the pace of the second half. 0:
 * SIZING_STEPS_MOST. Returns 0, or -ENOMEM with a reason. */
int sizing_simulate(const struct sizing_plant *plant, unsigned steps, uint64_t seed,
                    struct sizing_outcome *outcome);

#endif
