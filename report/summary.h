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

#endif
