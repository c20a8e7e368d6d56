/* SPDX-License-Identifier: Apache-2.0
 *
 * summary: what a result says over all its runs: medians with intervals, one latency histogram,
 * one sentence about the limit, and what to do next. All reports are made of it, so they agree.
 * Pure but for the allocation; it prints nothing. Any thread.
 */
#ifndef IOBENCH_REPORT_SUMMARY_H
#define IOBENCH_REPORT_SUMMARY_H

#include "base/histogram.h"
#include "base/stats.h"
#include "base/trend.h"
#include "pipeline/result/result.h"

enum { SUMMARY_ADVICE = 8, SUMMARY_ADVICE_BYTES = 320 };

/* Of one kind of epochs: the first of each run, or the later ones. */
struct summary_part {
    struct stats_summary samples_per_s, bytes_per_s, au_percent; /* count 0: there are none */
};

/* Shares of a stage's time, percent; the waits of all complete epochs together. */
struct summary_shares {
    double loader_storage, loader_memory;          /* of the loader's wall time */
    double decode_input, decode_slot, decode_busy; /* of the workers' wall time */
    double trainer_input, trainer_upload, trainer_compute, trainer_exchange; /* of the trainer's */
};

struct summary {
    uint32_t runs; /* complete ones: only they are counted */
    struct stats_summary samples_per_s, bytes_per_s, au_percent, mlperf_au_percent;
    struct summary_part first, later;
    struct stats_summary steady_samples_per_s; /* count 0: in no steady state */
    struct stats_summary head_ratio; /* of the first epochs, see result_epoch_head_ratio() */
    bool bursts; /* storage limits, and gave the first quarter faster, by more than chance */
    uint64_t mean_run_ns; /* wall time of all epochs of a run */
    struct trend drift;   /* of samples_per_s over the runs */
    bool drifts;          /* it is more than chance (p below 0.05), and more than 2% */
    bool trains;          /* the trainer does work, AU means something */
    bool decodes;         /* images are decoded */
    struct histogram read_latency_ns;
    struct result_epoch all; /* the complete epochs of all runs, added up */
    uint64_t read_errors, short_reads;
    /* Over the first epochs of all runs; device_known when every one is. */
    uint64_t first_record_bytes, device_bytes;
    bool device_known;
    uint64_t memory_record_bytes;   /* of the epochs that were read out of memory */
    struct result_comparison ranks; /* over all complete runs; ranks 0: one alone */
    enum result_cache cache;        /* the worst of all runs before they began */
    bool residue_known;             /* of every run */
    double residue_percent;         /* the largest */
    enum result_limit limit;        /* of most of the time */
    struct summary_shares shares;
    char limit_sentence[320];
    uint32_t advice_count;
    char advice[SUMMARY_ADVICE][SUMMARY_ADVICE_BYTES];
};

/* 0 or -ENOMEM with a reason. */
int summary_make(const struct result *result, struct summary *summary);

/* "storage", "decode", ... */
const char *summary_limit_name(enum result_limit limit);
/* "cold", "client cold, server unverified", ... */
const char *summary_cache_name(enum result_cache cache);

#endif
