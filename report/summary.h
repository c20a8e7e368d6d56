/* SPDX-License-Identifier: Apache-2.0
 *
 * summary: summarises a result over all runs: medians with intervals, one latency histogram, one
 * sentence on the bottleneck, and advice. All reports use it, so they agree. Pure except for
 * allocations. Any thread.
 */
#ifndef IOBENCH_REPORT_SUMMARY_H
#define IOBENCH_REPORT_SUMMARY_H

#include "base/stats.h"
#include "pipeline/result/result.h"

#include <jansson.h>

enum { SUMMARY_ADVICE = 8, SUMMARY_ADVICE_BYTES = 320 };

/* One kind of epochs: the first of each run, or the later ones. */
struct summary_part {
    struct stats_summary samples_per_s, bytes_per_s, au_percent; /* count 0: none */
};

/* Shares of a stage's time in percent, over all complete epochs. */
struct summary_shares {
    double loader_storage, loader_memory;                        /* of the loader's wall time */
    double decode_input, decode_slot, decode_busy, decode_hints; /* of the decode threads' */
    double trainer_input, trainer_upload, trainer_compute, trainer_exchange; /* of the trainer's */
    double trainer_order; /* of the trainer's; a part of trainer_input */
};

struct summary {
    uint32_t runs; /* complete runs; only they count */
    struct stats_summary samples_per_s, bytes_per_s, au_percent, mlperf_au_percent;
    struct summary_part first, later;
    struct stats_summary storage_bytes_per_s;  /* requested in epochs that storage limited */
    struct stats_summary steady_samples_per_s; /* count 0: no steady state */
    struct stats_summary head_ratio; /* over the first epochs, see result_epoch_head_ratio() */
    bool bursts; /* storage is the bottleneck, and the first quarter was significantly faster */
    uint64_t mean_run_ns; /* wall time of all epochs of a run */
    struct trend drift;   /* of samples_per_s over the runs */
    bool drifts;          /* significant (p below 0.05) and more than 2% */
    bool trains;          /* the trainer computes, so AU is meaningful */
    bool decodes;         /* images are decoded */
    struct histogram read_latency_ns, epoch_latency_ns[RESULT_EPOCH_KINDS];
    struct result_epoch all; /* sum of the complete epochs of all runs */
    uint64_t read_errors, short_reads;
    /* Over the first epochs of all runs; device_known if known for each. */
    uint64_t first_record_bytes, device_bytes;
    bool device_known;
    uint64_t memory_record_bytes;   /* bytes of epochs that were read from memory */
    struct result_comparison ranks; /* over all complete runs; ranks 0: single rank */
    enum result_cache cache;        /* the worst state before any run */
    bool residue_known;             /* known for every run */
    double residue_percent;         /* the largest */
    enum result_limit limit;        /* the most frequent bottleneck */
    struct summary_shares shares;
    char limit_sentence[320];
    uint32_t advice_count;
    char advice[SUMMARY_ADVICE][SUMMARY_ADVICE_BYTES];
};

/* Returns 0, or -ENOMEM with a reason. */
int summary_make(const struct result *result, struct summary *summary);

/* "storage", "decode", ... */
const char *summary_limit_name(enum result_limit limit);
/* "cold", "client cold, server unverified", ... */
const char *summary_cache_name(enum result_cache cache);

/* ---- mlperf: which rules of MLPerf Storage v3.0 for training (docs/mlperf.md) a result with
 * --workload meets. A result of iobench is never one of MLPerf, which needs its own program ---- */

/* Requirements of a workload, from its profile. */
struct mlperf_workload {
    char title[80], network[32], accelerator[32], submission[16];
    uint64_t batch, epochs;
    double step_s, au_percent, sample_bytes;
};

/* Measured figures that the rules judge. */
struct mlperf_facts {
    double accelerators;          /* ranks x batch size / the workload's batch */
    uint64_t hosts, memory_bytes; /* memory of one host */
    uint64_t samples, epochs, prefetch, threads;
    bool is_whole; /* epochs read all samples */
    double step_s; /* step time of one accelerator's batch; 0: not replayed */
    uint32_t runs;
    double lowest_au_percent; /* lowest of the runs, without the first if there are several */
};

enum mlperf_rule_name {
    MLPERF_WORKLOAD,
    MLPERF_DATASET,
    MLPERF_RUNS,
    MLPERF_EPOCHS,
    MLPERF_AU,
    MLPERF_STEP,
    MLPERF_READS,
    MLPERF_RULES,
};

struct mlperf_rule {
    bool met;
    char text[96]; /* "dataset 1.00 GiB < 117 GiB" */
};

struct mlperf {
    struct mlperf_workload workload;
    double samples_needed;
    struct mlperf_rule rules[MLPERF_RULES];
};

/* Read a workload's profile. Returns 0 or a negative errno with a reason. */
int mlperf_workload_load(const char *name, struct mlperf_workload *workload);
/* Judge facts by the rules; judgement->workload must be set. */
void mlperf_judge(const struct mlperf_facts *facts, struct mlperf *judgement);
/* Judge a result whose job has a workload. Returns 0 or a negative errno with a reason. */
int mlperf_check(const struct result *result, struct mlperf *judgement);

enum { MLPERF_TEXT_BYTES = 800 };
/* Write the rules not met as one sentence. text: MLPERF_TEXT_BYTES. */
const char *mlperf_sentence(const struct mlperf *judgement, char *text);
/* Write how many emulated accelerators, and real GPUs at their best published rate, consume this
 * many samples per second. text: MLPERF_TEXT_BYTES. */
const char *mlperf_feeds(const struct mlperf *judgement, double samples_per_s, char *text);
json_t *mlperf_json(const struct mlperf *judgement, double samples_per_s);

#endif
