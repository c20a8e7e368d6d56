/* SPDX-License-Identifier: Apache-2.0
 *
 * training: one network that learns: a graph on a backend, a recipe, checkpoints. It knows no
 * storage: batches come from outside, as `iobench run --trainer resnet50` and `iobench train` both
 * give them. One state, one thread.
 */
#ifndef IOBENCH_TRAINER_TRAINING_H
#define IOBENCH_TRAINER_TRAINING_H

#include "trainer/backend.h"
#include "trainer/exchange.h"
#include "trainer/recipe.h"
#include "trainer/trainer.h"

struct training_config {
    const struct network *network;
    const char *backend; /* NAME[:options]; "auto": the first that works */
    /* What it computes in: "fp16"; NULL: as `backend` says. In INT8, with `ranges`, what stays in
     * floating point is computed in that. */
    const char *precision;
    const float *ranges; /* see backend_config, as the next one; only to infer */
    struct calibration *calibration;
    uint32_t side, classes;
    uint32_t batch_size; /* of this rank */
    uint64_t seed;       /* of the first weights and of dropout */
    uint32_t threads;    /* 0: all CPUs */
    bool learns;         /* false: only to infer */
    struct recipe recipe;
    struct ranks *ranks;   /* that learn together; NULL: this one alone */
    const char *exchange;  /* how, see exchange_open(); NULL: "auto" */
    uint32_t buckets;      /* of the gradients; 0: 4 */
    uint64_t silence_ns;   /* a rank that is waited for longer has failed; 0: never */
    uint64_t memory_bytes; /* of this process, beyond which it would be ended; 0: none is known */
    bool late;             /* losses and times of batches may come later, see training_step() */
};

struct training {
    struct training_config config;
    struct graph *graph;
    struct plugin_choice choice;
    struct backend backend;
    struct exchange exchange; /* open when there are several ranks */
    bool failed;              /* the course did: sums may be under way when it is closed */
    uint64_t step;            /* finished, over all epochs */
    uint64_t given;           /* batches to learn from; those beyond `step` are under way */
    double rate_before;
};

/* 0 or a negative errno. Call training_close() in either case. */
int training_open(struct training *training, const struct training_config *config);
void training_close(struct training *training);

/* What it computes in: "fp32", "int8". */
const char *training_precision(const struct training *training);

/* One batch: forward, backward, exchange, update. The batch is the caller's again when this
 * returns. With config.late a device computes on: loss and times are those of the oldest batch not
 * reported yet, or nothing (loss->count is 0). */
int training_step(struct training *training, const struct trainer_batch *batch,
                  struct trainer_times *times, struct backend_loss *loss);
/* Wait for the oldest batch not yet reported. Returns 1, or 0 when all were reported: call until
 * then before training_save() and training_load(), and between learning and inferring. */
int training_finish(struct training *training, struct trainer_times *times,
                    struct backend_loss *loss);
/* Memory for batches that reaches the backend at full speed. NULL with a reason. */
void *training_allocate(struct training *training, size_t bytes);
void training_release(struct training *training, void *memory);
void training_memory(struct training *training, struct trainer_memory *memory);
/* One batch by the running statistics, changing nothing; late as training_step(). */
int training_infer(struct training *training, const struct trainer_batch *batch,
                   struct trainer_times *times, struct backend_loss *loss);

/* What a loop over batches keeps beside the weights. */
struct training_position {
    uint64_t epoch; /* finished */
    uint64_t elapsed_ns, samples;
};

/* A checkpoint of this moment, and back to it. Seed and global batch size must be the same. */
int training_save(struct training *training, const char *path,
                  const struct training_position *position);
int training_load(struct training *training, const char *path, struct training_position *position);

/* Pixels of a square side x side x 3 row, or 0. */
uint32_t training_side(size_t row_bytes);

#endif
