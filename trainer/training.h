/* SPDX-License-Identifier: Apache-2.0
 *
 * training: trains one network: a graph on a backend, a recipe, checkpoints. Independent of
 * storage: the caller supplies batches, as `iobench run --trainer resnet50` and `iobench train` do.
 * One thread per state.
 */
#ifndef IOBENCH_TRAINER_TRAINING_H
#define IOBENCH_TRAINER_TRAINING_H

#include "base/stop.h"
#include "trainer/backend.h"
#include "trainer/weights.h"
#include "trainer/exchange.h"
#include "trainer/trainer.h"

struct training_config {
    const struct network *network;
    const char *backend; /* NAME[:OPTIONS]; "auto": the first that works */
    /* Compute precision: "fp16"; NULL: the backend's default. With INT8 (`ranges`): of everything
     * that stays in floating point. */
    const char *precision;
    const float *ranges; /* see backend_config, as for the next one; inference only */
    struct calibration *calibration;
    uint32_t side, classes;
    uint32_t batch_size; /* of this rank */
    uint32_t accumulate; /* batches per update; 0: 1 */
    uint64_t seed;       /* for initial weights and dropout */
    uint32_t threads;    /* 0: all CPUs */
    bool learns;         /* false: inference only */
    struct recipe recipe;
    struct ranks *ranks;      /* that train together; NULL: a single rank */
    const char *exchange;     /* see exchange_choose(); NULL: "auto" */
    uint32_t buckets;         /* of gradients; 0: 4 */
    uint64_t rank_timeout_ns; /* abort if a rank is unresponsive this long; 0: never */
    uint64_t memory_bytes;    /* limit beyond which this process would be killed; 0: unknown */
    bool late;                /* losses and times may be reported later, see training_step() */
    /* Asked while the network is made, which may take minutes; nonzero ends that, as its result.
     * Outlives the training. */
    struct tick tick;
};

struct training {
    struct training_config config;
    struct graph *graph;
    struct plugin_choice choice;
    struct backend backend;
    uint32_t zero_gammas;     /* BN that start with gamma 0, as the recipe has it */
    struct buckets buckets;   /* of the exchange */
    struct exchange exchange; /* open if there are several ranks */
    bool failed;              /* the training run failed: sums may be pending when it is closed */
    uint64_t step;            /* updates finished, over all epochs */
    uint64_t given;           /* updates whose batches were all passed; some may be in flight */
    uint32_t begun;           /* batches passed for the next one */
    double rate_before;
    uint64_t loaded;  /* a hash of what was loaded or imported; 0: nothing */
    char notice[512]; /* of backend and exchange */
};

/* Returns 0 or a negative errno. Call training_close() in either case. */
int training_open(struct training *training, const struct training_config *config);
void training_close(void *training); /* this and the next four: hooks of struct trainer_ops */

/* Return memory for batches that transfers to the backend at full speed. NULL with a reason. */
void *training_allocate(void *training, size_t bytes);
void training_release(void *training, void *memory);
void training_memory(void *training, struct trainer_memory *memory);
const char *training_notice(void *training);

/* Compute precision: "fp32", "int8". */
const char *training_precision(const struct training *training);
/* Outputs of all nodes for one image, in that precision. */
uint64_t training_activation_bytes(const struct training *training);

/* Train on one batch: forward, backward, and after every `accumulate` batches, or the epoch's last,
 * exchange and update. The batch belongs to the caller again on
 * return. With config.late a device may still be computing: loss and times are those of the oldest
 * batch not yet reported, or none (loss->count is 0). */
int training_step(struct training *training, const struct trainer_batch *batch,
                  struct trainer_times *times, struct backend_loss *loss);
/* Batches of `count` images will come, to learn from or to infer: compile for them now, off the
 * clock. After weights were loaded, with no batch in flight. */
int training_prepare(struct training *training, uint32_t count, bool learns);
/* Wait for the oldest batch not yet reported. Returns 1, or 0 if none is left: times are then of
 * the last update, if a device had not reported it. Call until then before training_save() and
 * training_load(), and when switching between training and inference. */
int training_finish(struct training *training, struct trainer_times *times,
                    struct backend_loss *loss);
/* Infer one batch by the running statistics; change nothing. Late as training_step(). */
int training_infer(struct training *training, const struct trainer_batch *batch,
                   struct trainer_times *times, struct backend_loss *loss);

/* Collective: all ranks get the mean of their running statistics, which each collected from its own
 * images, in the same bits. Call it when nothing is computed, before evaluations and checkpoints.
 */
int training_average_statistics(struct training *training);

/* Save a checkpoint; restore one. Seed and samples per update must match. */
int training_save(struct training *training, const char *path,
                  const struct training_position *position);
int training_load(struct training *training, const char *path, struct training_position *position);

/* Set the weights from a safetensors file, or write them to a new one (trainer/weights.h). Momenta
 * stay. */
int training_import(struct training *training, const char *path);
int training_export(struct training *training, const char *path);

#endif
