/* SPDX-License-Identifier: Apache-2.0
 *
 * mlperf: which rules of MLPerf Storage v3.0 for training (docs/mlperf.md) a result with --workload
 * meets. A result of iobench is never one of MLPerf, which needs its own program. Pure except for
 * allocations; any thread.
 */
#ifndef IOBENCH_REPORT_MLPERF_H
#define IOBENCH_REPORT_MLPERF_H

#include "pipeline/result/result.h"

#include <jansson.h>

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
