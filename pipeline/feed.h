/* SPDX-License-Identifier: Apache-2.0
 *
 * feed: a data set on its way into a network, to learn from or to be judged by. It joins a job, its
 * catalog and an engine whose trainer is the caller's, and adds up what the network made of the
 * batches. Main thread only.
 */
#ifndef IOBENCH_PIPELINE_FEED_H
#define IOBENCH_PIPELINE_FEED_H

#include "pipeline/engine.h"
#include "trainer/training.h"

enum feed_use {
    FEED_LEARN,    /* in the job's order, with random views */
    FEED_EVALUATE, /* every sample once, in the order of storage, centre crops */
};

struct feed {
    struct job job;
    struct ranks *ranks;
    struct job_plugins plugins;
    char decode[256], order[8], resume_at[32];
    struct catalog *catalog;
    struct engine *engine;
    struct result_run run;
    struct trainer trainer;
    struct meter *meter; /* given to the engine by feed_open(), as is recorder */
    struct recorder *recorder;
    /* Sums over the batches since feed_forget(). */
    double loss;
    uint64_t counted, correct, correct_top5;
};

/* The catalog of `data`, and how it is read: as `job` says, with images of side x side, by these
 * ranks. Notices go into result. All ranks call, and all fail alike: 0 or a negative errno. Call
 * feed_close() in either case. */
int feed_find(struct feed *feed, const struct job *job, const char *data, enum feed_use use,
              uint32_t side, struct ranks *ranks, struct result *result);
/* Samples that this rank takes in the job's first epoch. 0 or a negative errno. */
int feed_draws(const struct feed *feed, uint64_t *draws);
/* An engine for `epochs` epochs from `first_epoch`, whose batches `step` is given with `state`.
 * May be called again, after the job was changed. */
int feed_open(struct feed *feed, const struct trainer_ops *ops, void *state, uint64_t first_epoch,
              uint64_t epochs, struct result *result);
/* The engine goes, and with it the trainer's memory; the rest stays. */
void feed_shut(struct feed *feed);
void feed_close(struct feed *feed);

void feed_forget(struct feed *feed);
void feed_count(struct feed *feed, const struct backend_loss *loss);

#endif
