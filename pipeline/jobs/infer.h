/* SPDX-License-Identifier: Apache-2.0
 *
 * infer: a network answers over a data set, once for each batch size: images a second, the latency
 * of a batch, and how often it is right. It changes no weights and prints nothing. Main thread
 * only.
 */
#ifndef IOBENCH_PIPELINE_JOBS_INFER_H
#define IOBENCH_PIPELINE_JOBS_INFER_H

#include "pipeline/settings/job.h"
#include "pipeline/result/result.h"
#include "trainer/quantise.h"
#include "trainer/training.h"

enum { INFER_BATCH_SIZES_MAX = 16, INFER_PRECISIONS_MAX = 8 };

struct infer_job {
    struct job job; /* how the data set is read; shuffle, trainer and batch size are not used */
    const struct network *network;
    const char *backend;
    uint32_t side, classes, threads;
    const char *checkpoint; /* file or folder; NULL: random weights, and no accuracy */
    uint32_t batch_sizes[INFER_BATCH_SIZES_MAX], batch_size_count;
    uint32_t warmup; /* batches before the clock */
    /* Each over all batch sizes: "fp16"; "int8"; NULL: the backend's own. */
    const char *precisions[INFER_PRECISIONS_MAX];
    uint32_t precision_count;
    /* INT8: the ranges of tensors are found over so many images of a data set, in FP32. */
    uint32_t calibrate;
    const char *calibrate_data; /* NULL: the job's */
    enum quantise_method calibrate_by;
};

/* One batch size. */
struct infer_row {
    uint32_t batch_size;
    char precision[8]; /* what was asked for */
    bool is_int8;      /* then: of how many layers; of none, all was in floating point */
    struct quantise_share int8;
    struct result_epoch io;
    /* From a complete batch in memory to its predictions, with exclusive use of the network; and
     * without its upload to a device. A last batch that is not full is left out where there are
     * others. */
    struct histogram latency_ns, compute_ns;
    uint64_t counted;        /* samples with a label */
    double loss, top1, top5; /* over those; only with a checkpoint */
};

struct infer_result {
    struct graph_cost cost;
    uint64_t records, first_step; /* steps the checkpoint had learnt */
    uint64_t calibrated;          /* images looked at for INT8 */
    char backend[32];
    char checkpoint[512]; /* the file; "": none */
    uint32_t row_count;
    struct infer_row *rows;
    struct result result; /* notices; its runs are not used */
};

struct infer_observer {
    /* row: of which batch size is known; NULL while it calibrates. */
    void (*progress)(void *context, const struct infer_row *row, uint64_t done, uint64_t total,
                     uint64_t elapsed_ns);
    void (*row)(void *context, const struct infer_result *result, const struct infer_row *row);
    void *context;
};

/* *result is filled as far as it came; destroy it. 0 or a negative errno. */
int infer_run(const struct infer_job *job, const struct infer_observer *observer,
              struct infer_result *result);
void infer_destroy(struct infer_result *result);

/* Samples a second: through the whole pipeline, and of the network alone by its median time. */
double infer_samples_per_s(const struct infer_row *row);
double infer_compute_samples_per_s(const struct infer_row *row);

#endif
