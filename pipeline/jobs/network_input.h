/* SPDX-License-Identifier: Apache-2.0
 *
 * network_input: feeds a data set to a network, for training or evaluation. Joins a job, its
 * catalog and an engine whose trainer is the caller's, and adds up what the network made of the
 * batches. Main thread only.
 */
#ifndef IOBENCH_PIPELINE_JOBS_NETWORK_INPUT_H
#define IOBENCH_PIPELINE_JOBS_NETWORK_INPUT_H

#include "pipeline/engine/engine.h"
#include "trainer/training.h"

enum input_use {
    INPUT_LEARN,    /* in the job's order, with random views */
    INPUT_EVALUATE, /* every sample once, in the order of storage, centre crops */
};

struct network_input {
    struct job job;
    struct ranks *ranks;
    struct job_plugins plugins;
    char decode[256], resume_at[32];
    struct catalog *catalog;
    struct engine *engine;
    struct result_run run;
    struct trainer trainer;
    struct meter *meter; /* given to the engine by input_open(), as is recorder */
    struct recorder *recorder;
    /* Sums over the batches since input_forget(). */
    double loss;
    uint64_t counted, correct, correct_top5;
};

/* The catalog of `data`, and how it is read: as `job` says, with images of side x side, by these
 * ranks. Notices go into result. All ranks call, and all fail alike: 0 or a negative errno. Call
 * input_close() in either case. */
int input_find(struct network_input *input, const struct job *job, const char *data,
               enum input_use use, uint32_t side, struct ranks *ranks, struct result *result);
/* Samples that this rank takes in the job's first epoch. 0 or a negative errno. */
int input_draws(const struct network_input *input, uint64_t *draws);
/* An engine for `epochs` epochs from `first_epoch`, whose batches `step` is given with `state`.
 * May be called again, after the job was changed. */
int input_open(struct network_input *input, const struct trainer_ops *ops, void *state,
               uint64_t first_epoch, uint64_t epochs, struct result *result);
/* The engine goes, and with it the trainer's memory; the rest stays. */
void input_shut(struct network_input *input);
void input_close(struct network_input *input);

void input_forget(struct network_input *input);
void input_count(struct network_input *input, const struct backend_loss *loss);

#endif
