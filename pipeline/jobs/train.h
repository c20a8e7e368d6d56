/* SPDX-License-Identifier: Apache-2.0
 *
 * train: trains a network epoch by epoch through the engine that `iobench run` measures, evaluates
 * it on another data set, and measures the time to an accuracy: from the first step to the
 * evaluation that reaches it. It prints nothing. Main thread only.
 */
#ifndef IOBENCH_PIPELINE_JOBS_TRAIN_H
#define IOBENCH_PIPELINE_JOBS_TRAIN_H

#include "pipeline/settings/job.h"
#include "pipeline/result/result.h"
#include "trainer/training.h"

struct train_job {
    struct job job; /* how the data set is read, and for how many epochs; decoder without size,
                       trainer unused */
    const char *evaluation_data; /* NULL: no evaluation */
    uint64_t evaluate_every;     /* in epochs */
    /* Network, backend, and how ranks sum gradients; the rest is set from the job. */
    struct training_config training;
    enum backend_recipe recipe;
    /* Negative: taken from the recipe. */
    double rate, momentum, weight_decay, label_smoothing, warmup_epochs, clip_norm;
    double target;          /* stop at this top-1 accuracy; 0: never */
    const char *checkpoint; /* folder; NULL: none */
    bool resume;            /* from the checkpoint in that folder */
    bool restart;           /* replace that checkpoint */
    /* Files of trainer/weights.h: to start from, and to write at the end; NULL: none. */
    const char *initial_weights, *final_weights;
    struct ranks *ranks; /* joined */
};

/* One epoch and the evaluation after it. */
struct train_epoch {
    struct result_epoch io;
    double loss, accuracy; /* over the training batches, during training */
    double rate;           /* of the last step */
    bool evaluated;
    double evaluation_loss, top1, top5;
    uint64_t evaluation_ns;
    uint64_t elapsed_ns;  /* since the first step, with evaluations, without interruptions */
    double samples_per_s; /* of all ranks */
    struct result_comparison ranks;
};

struct train_result {
    struct recipe recipe;
    uint32_t accumulate;  /* batches per update */
    uint32_t zero_gammas; /* BN that started with gamma 0 */
    struct graph_cost cost;
    uint64_t records, evaluation_records;
    uint32_t epoch_count;
    struct train_epoch *epochs;
    uint64_t first_epoch; /* above 0: resumed */
    bool reached;         /* the target */
    uint64_t reached_ns;
    char backend[32], precision[8];
    char exchange[32], wire[8]; /* "": there is one rank */
    uint32_t number_bytes;      /* of a gradient on the wire */
    uint64_t activation_bytes;  /* of one image, in that precision */
    /* The input side as `iobench run` reports it: one run with the epochs of all ranks. job: its
     * settings. */
    struct result result;
    struct job job;
};

struct train_observer {
    void (*progress)(void *context, uint64_t epoch, bool evaluating, uint64_t done, uint64_t total,
                     uint64_t elapsed_ns, double loss);
    void (*cold)(void *context, uint64_t elapsed_ns); /* while caches are dropped and inspected */
    void (*stage)(void *context, const char *stage);  /* before the first step: what takes time */
    void (*epoch)(void *context, const struct train_result *result,
                  const struct train_epoch *epoch);
    void *context;
};

/* Returns 0 or -errno; after 0 the result may still be invalid because caches were not cold. Fills
 * *result as far as it got; do not move it, and destroy it in either case. */
int train_run(const struct train_job *job, const struct train_observer *observer,
              struct train_result *result);
void train_destroy(struct train_result *result);

#endif
