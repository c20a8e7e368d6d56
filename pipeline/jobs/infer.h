/* SPDX-License-Identifier: Apache-2.0
 *
 * infer: measures inference throughput, latency and accuracy of a network over a data set, for each
 * batch size and precision. It changes no weights and prints nothing. Main thread only.
 */
#ifndef IOBENCH_PIPELINE_JOBS_INFER_H
#define IOBENCH_PIPELINE_JOBS_INFER_H

#include "pipeline/settings/job.h"
#include "pipeline/result/result.h"
#include "trainer/quantise.h"
#include "trainer/training.h"

enum { INFER_BATCH_SIZES_MAX = 16, INFER_PRECISIONS_MAX = 8 };

struct infer_job {
    struct job job; /* how the data set is read; shuffle, trainer and batch size are ignored */
    struct training_config training; /* network and backend; the rest is set from the job */
    const char *checkpoint;          /* file or folder; NULL: */
    const char *weights;             /* file of trainer/weights.h; NULL: random ones, no accuracy */
    uint32_t batch_sizes[INFER_BATCH_SIZES_MAX], batch_size_count;
    uint32_t warmup; /* batches off the clock */
    /* Each precision is measured at all batch sizes: "fp16", "int8", or NULL for the backend's
     * default. */
    const char *precisions[INFER_PRECISIONS_MAX];
    uint32_t precision_count;
    /* INT8: number of images from which tensor ranges are found in FP32. */
    uint32_t calibrate;
    const char *calibrate_data; /* NULL: the job's */
    enum quantise_method calibrate_by;
};

/* One batch size. */
struct infer_row {
    uint32_t batch_size;
    char precision[8]; /* as requested */
    bool is_int8;      /* int8: share of layers; none means all ran in floating point */
    struct quantise_share int8;
    struct result_epoch io;
    /* Latency of a full batch, from memory to its results, with exclusive use of the network;
     * compute_ns excludes the upload to a device. A partial last batch is left out if there are
     * others. */
    struct histogram latency_ns, compute_ns;
    uint64_t counted;        /* labelled samples */
    double loss, top1, top5; /* over labelled samples; only with weights from a file */
};

struct infer_result {
    struct graph_cost cost;
    uint64_t records;
    uint64_t calibrated; /* images used for INT8 calibration */
    char backend[32];
    char weights[512]; /* the file used; "": none */
    uint32_t row_count;
    struct infer_row *rows;
    struct result result; /* for notices; its runs are unused */
};

struct infer_observer {
    /* row: its batch size is set; NULL during calibration. */
    void (*progress)(void *context, const struct infer_row *row, uint64_t done, uint64_t total,
                     uint64_t elapsed_ns);
    void (*row)(void *context, const struct infer_result *result, const struct infer_row *row);
    void *context;
};

/* Returns 0 or -errno. Fills *result as far as it got; destroy it in either case. */
int infer_run(const struct infer_job *job, const struct infer_observer *observer,
              struct infer_result *result);
void infer_destroy(struct infer_result *result);

/* Return the samples per second of the network alone, by its median time. */
double infer_compute_samples_per_s(const struct infer_row *row);

#endif
