/* SPDX-License-Identifier: Apache-2.0
 *
 * train: a network learns from a data set, epoch by epoch, through the same engine that `iobench
 * run` times; it is evaluated on another set, and the time to an accuracy is taken: from the first
 * step to the evaluation that passes. It prints nothing. Main thread only.
 */
#ifndef IOBENCH_PIPELINE_JOBS_TRAIN_H
#define IOBENCH_PIPELINE_JOBS_TRAIN_H

#include "pipeline/settings/job.h"
#include "pipeline/result/result.h"
#include "trainer/training.h"

struct train_job {
    struct job job; /* how the data set is read, and epochs; its decoder without size, its trainer
                       unused */
    const char *evaluation_data; /* NULL: never evaluated */
    uint64_t evaluate_every;     /* epochs */
    const struct network *network;
    const char *backend;
    uint32_t side, classes, threads;
    enum backend_recipe recipe;
    /* Below 0: as the recipe has it. */
    double rate, momentum, weight_decay, label_smoothing, warmup_epochs;
    double target;          /* top-1 share at which it is done; 0: never */
    const char *checkpoint; /* folder; NULL: none */
    bool resume;            /* from the checkpoint that lies there */
    uint32_t buckets;       /* of the gradients */
    const char *exchange;   /* how ranks add them up */
    struct ranks *ranks;    /* joined */
};

/* One epoch, and the evaluation behind it. */
struct train_epoch {
    struct result_epoch io;
    double loss, accuracy; /* over the training batches, while learning */
    double rate;           /* of the last step */
    bool evaluated;
    double evaluation_loss, top1, top5;
    uint64_t evaluation_ns, evaluation_samples;
    uint64_t elapsed_ns;  /* since the first step, evaluations included, stops not */
    double samples_per_s; /* of all ranks */
    struct result_comparison ranks;
};

struct train_result {
    struct recipe recipe;
    struct graph_cost cost;
    uint64_t records, evaluation_records;
    uint64_t steps_per_epoch;
    uint32_t epoch_count;
    struct train_epoch *epochs;
    uint64_t first_epoch; /* above 0: it went on */
    bool reached;         /* the target */
    uint64_t reached_ns;
    char backend[32];
    /* The input pipeline, as `iobench run` reports it: one run whose epochs are those that were
     * carried out, by all ranks; job: their settings. */
    struct result result;
    struct job job;
};

struct train_observer {
    void (*progress)(void *context, uint64_t epoch, bool evaluating, uint64_t done, uint64_t total,
                     uint64_t elapsed_ns, double loss);
    void (*cold)(void *context, uint64_t elapsed_ns); /* caches are dropped, looked at */
    void (*epoch)(void *context, const struct train_result *result,
                  const struct train_epoch *epoch);
    void *context;
};

/* *result is filled as far as it came, and stays where it is; destroy it. 0 or a negative errno;
 * with 0 it may still not be valid: the caches were to be cold and were not. */
int train_run(const struct train_job *job, const struct train_observer *observer,
              struct train_result *result);
void train_destroy(struct train_result *result);

#endif
