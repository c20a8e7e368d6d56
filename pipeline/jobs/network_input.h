/* SPDX-License-Identifier: Apache-2.0
 *
 * network_input: feeds a data set to a network, for training or evaluation. It joins a job, its
 * catalog and an engine whose trainer is the network, and sums the losses of the batches. Main
 * thread only.
 */
#ifndef IOBENCH_PIPELINE_JOBS_NETWORK_INPUT_H
#define IOBENCH_PIPELINE_JOBS_NETWORK_INPUT_H

#include "pipeline/engine/engine.h"
#include "trainer/training.h"

enum input_use {
    INPUT_LEARN,    /* the job's sample order, random crops */
    INPUT_EVALUATE, /* every sample once, in storage order, centre crops */
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
    struct training *training;
    enum input_use use;
    /* The caller may set these between input_find() and input_open(). */
    struct meter *meter;
    struct recorder *recorder;
    struct hinting *hinting;
    uint64_t gradient_bytes; /* sent per step, for the meter */
    void (*finished)(void *context, const struct trainer_times *, const struct backend_loss *);
    void *context; /* of finished, which is called once per batch */
    /* Sums over the batches since input_forget(). */
    double loss;
    uint64_t counted, correct, correct_top5;
};

/* Find `data` and its catalog, which these ranks read as `job` says, as side x side images. Notices
 * go to result. Collective. Returns 0 or -errno; call input_close() in either case. */
int input_find(struct network_input *input, const struct job *job, const char *data,
               enum input_use use, uint32_t side, struct ranks *ranks, struct result *result);
/* Create an engine for `epochs` epochs, starting with `first_epoch`, whose batches go to this
 * network. May be called again after the job was changed. */
int input_open(struct network_input *input, struct training *training, uint64_t first_epoch,
               uint64_t epochs, struct result *result);
/* Destroy the engine and the batches, which are the network's memory; keep everything else. */
void input_shut(struct network_input *input);
void input_close(struct network_input *input);

void input_forget(struct network_input *input);

#endif
