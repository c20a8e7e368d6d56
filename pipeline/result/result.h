/* SPDX-License-Identifier: Apache-2.0
 *
 * result: what a job measured, as plain numbers. Made by pipeline/run, read by report/.
 * Every field carries its unit. What could not be measured is not known and says why; it is
 * never zero.
 */
#ifndef IOBENCH_PIPELINE_RESULT_RESULT_H
#define IOBENCH_PIPELINE_RESULT_RESULT_H

#include "base/histogram.h"
#include "cachectl/residency.h"
#include "cachectl/server.h"
#include "dataset/catalog.h"
#include "decode/decoder.h"
#include "pipeline/result/findings.h"
#include "pipeline/settings/job.h"
#include "pipeline/result/timeline.h"
#include "ranks/ranks.h"
#include "shuffle/coalesce.h"
#include "trainer/trainer.h"

#include <stdbool.h>
#include <stdint.h>

/* A byte count from an outside witness. */
struct result_bytes {
    bool known;
    bool of_node; /* of all processes of a node, else of this one */
    uint64_t bytes;
    /* What the disks beneath the files gave, to whomever of the node: less than bytes when a layer
     * between, as a loop device's file, had it in memory. */
    bool beneath_known;
    uint64_t beneath_bytes;
    char method[96];  /* where it was read, e.g. "/proc/self/io read_bytes" */
    char reason[160]; /* why it is not known; "" when it is */
};

/* What was cached before a run, from the best to the worst. */
enum result_cache {
    RESULT_CACHE_COLD,        /* no data, here or on a server; no dentries and inodes here */
    RESULT_CACHE_BYPASSED,    /* direct reads past the page cache, whose bytes all left storage */
    RESULT_CACHE_DATA_COLD,   /* no data; dentries and inodes were not dropped */
    RESULT_CACHE_CLIENT_COLD, /* nothing here; what a server holds is not known */
    RESULT_CACHE_UNVERIFIED,
    RESULT_CACHE_WARM,
};

struct result_cold {
    enum result_cache state;     /* what the next four come to: result_cold_settle() */
    enum residency_state pages;  /* of the files in this machine's page cache, and beneath it */
    bool metadata_dropped;       /* dentries and inodes too, or this machine has none of them */
    bool bypassed;               /* direct reads, and all bytes left storage */
    struct server_result server; /* which rank 0 alone asks */
    bool dropped;                /* a drop was asked for and done */
    uint64_t resident_bytes, total_bytes;
    double residue_percent; /* of total_bytes; meaningless when pages are unverified */
    uint64_t drop_ns;       /* outside the clock */
    char method[160];       /* how it was dropped and measured */
    char reason[400];       /* what is still resident and who holds it, or why unverified */
};

/* Where the time of the threads went: stalls of each stage. All are sums over the
 * threads of a stage. */
struct result_waits {
    uint64_t loader_storage_ns; /* the loader waited for the reader */
    uint64_t loader_memory_ns;  /* ... for memory: decode or trainer is behind */
    uint64_t decode_input_ns;   /* decode workers waited for records: storage is behind */
    uint64_t decode_slot_ns;    /* ... for a free batch: the trainer is behind */
    uint64_t decode_busy_ns;    /* they worked */
    uint64_t trainer_input_ns;  /* the trainer waited for a batch */
};

enum result_limit {
    RESULT_LIMIT_STORAGE,
    RESULT_LIMIT_PAGE_CACHE, /* records were waited for, and most of them came out of memory */
    RESULT_LIMIT_RATE,       /* records were waited for, and --limit-rate allows no more */
    RESULT_LIMIT_DECODE,
    RESULT_LIMIT_UPLOAD,  /* of batches to a device */
    RESULT_LIMIT_TRAINER, /* compute: a CPU's, a GPU's */
    RESULT_LIMIT_EXCHANGE,
    RESULT_LIMIT_HARNESS, /* null reader, none decoder, none trainer */
};

/* One epoch of a rank; or of all: then counts and bytes are sums, wall_ns and first_batch_ns those
 * of the slowest rank, and all other times the mean over the ranks. */
struct result_epoch {
    uint64_t epoch;
    uint64_t samples, skipped, batches;
    uint64_t record_bytes;  /* of the records delivered, framing included */
    uint64_t request_bytes; /* asked of the reader; over record_bytes this is read amplification */
    uint64_t requests;
    uint64_t start_ns, wall_ns; /* start on the monotonic clock */
    uint64_t shuffle_ns;        /* making the order */
    uint64_t storage_idle_ns;   /* storage had nothing to do since the epoch before */
    uint64_t read_head_ns;      /* the reads of the first quarter of the bytes; 0: not known */
    uint64_t read_rest_ns;      /* and of the other three */
    uint64_t steady_samples, steady_ns; /* after that quarter, in a steady state; 0: in none */
    uint64_t first_batch_ns;            /* from the epoch's start to its first full batch */
    /* Of the trainer's loop; on a device what it does not hide, so that they add up to its time. */
    uint64_t wait_ns, compute_ns, upload_ns, exchange_ns, update_ns;
    uint64_t nominal_ns;                        /* that replayed steps should have taken, else 0 */
    uint64_t first_step_ns, first_compute_ns;   /* from the epoch's start to its first step's end;
                                                   and what of that was compute */
    uint64_t copy_ns;                           /* the uploads themselves, hidden or not */
    uint64_t start_barrier_ns, stop_barrier_ns; /* waited for the other ranks, outside of wall_ns */
    struct result_waits waits;
    enum result_limit limit;
    double cpu_user_s, cpu_system_s; /* of this process */
    struct result_bytes device;      /* left storage during the epoch */
    uint64_t merged;                 /* epochs in this row; 0 or 1: one */
    bool digests_differ;             /* of those epochs */
    uint64_t digest_sum, digest_xor; /* over (label, image checksum), any order; see run.h */
};

/* One rank in a run. */
enum { RESULT_ROWS = 1001 };

struct result_rank {
    uint32_t rank, node;
    bool leads; /* its node: what is of the node comes from it */
    char host[RANKS_HOST_BYTES];
    struct result_epoch total; /* of all its epochs */
    uint64_t read_p50_ns, read_p99_ns, read_max_ns;
};

struct result_node {
    char host[RANKS_HOST_BYTES];
    uint32_t ranks;
    struct result_cold cold;
};

struct result_run {
    uint64_t number;         /* from 0 */
    uint64_t turn;           /* among the runs of all jobs of the sitting, from 0 */
    struct result_cold cold; /* the worst of all nodes */
    uint64_t epochs_run;     /* whole ones */
    /* Rows of them, RESULT_ROWS at most: the first epoch has a row of its own, later ones share one
     * where there are more, each as many (the last maybe fewer). See result_run_add(). */
    uint32_t epoch_count, row_epochs;
    struct result_epoch *epochs;
    struct histogram read_latency_ns;
    uint64_t read_errors, short_reads;
    struct decode_figures decode;
    struct findings findings;
    uint64_t memory_peak_bytes; /* of the record arena */
    bool valid;
    char invalid_reason[256];
    /* with several ranks */
    uint32_t rank_count, node_count;
    struct result_rank *ranks;
    struct result_node *nodes;
};

/* What was measured at one time by one process, run by run in turns if of several jobs. The numbers
 * of runs are those of rounds, in each of which every job has one run. */
struct result_sitting {
    char id[24];
    char boot_id[40];    /* "": the kernel did not say */
    uint32_t jobs, job;  /* how many take turns, and which one this is */
    uint64_t order_seed; /* 0: one alone */
    bool is_until;       /* --runs auto */
    bool is_reached;
    double half_percent; /* half of the interval's width, the widest of all comparisons; NAN:
                            unknown */
};

enum { RESULT_NOTICES = 16, RESULT_NOTICE_BYTES = 320 };

/* The machine and the settings, recorded with every result. */
struct environment {
    char host[128], kernel[160], cpu[128], clock_source[64];
    uint32_t cpu_count;
    uint64_t memory_bytes, memory_limit_bytes; /* limit 0: none */
    char file_system[32], mount_options[256], mount_point[256];
    char devices[256]; /* leaf block devices beneath the data, "vda" */
    char sandbox[32];  /* what confined the process: "landlock ABI 7"; "none" */
    char started[40];  /* ISO 8601, UTC */
    char command[1024];
};

struct result {
    const struct job *job;
    struct environment environment;
    struct result_sitting sitting;
    /* the data set */
    char data[512], format[64];
    uint64_t shards, records, data_bytes, record_bytes_total;
    uint64_t unread_samples, other_files; /* left out: samples of kinds that are not read; files
                                             that are none */
    uint32_t unread_named;
    char unread[CATALOG_UNREAD_NAMED][FINDING_BYTES]; /* the first of them */
    bool data_was_made; /* a synthetic set: its manifest says so, or nobody named a set */
    /* what really ran */
    bool decodes; /* to pixels */
    char reader_engine[160];
    uint32_t iodepth; /* reads in flight at most; with auto the knee, 0 when none was found */
    uint32_t threads;
    uint64_t memory_bytes;
    struct coalesce reads; /* how records of the order become reads */
    uint64_t memory_needed_bytes, memory_available_bytes; /* of all, when it was weighed */
    uint64_t slots;
    uint32_t ranks, nodes;                             /* of this job */
    uint64_t memory_before_bytes, memory_during_bytes; /* resident: before the first run, in it */
    struct trainer_memory trainer_memory;              /* at the end of the last run */
    /* the floor: the same loop with the null reader and no decoding, and the AU of a loop fed
     * from memory; 0 when not measured */
    double floor_samples_per_s;
    double au_calibration_percent;
    uint32_t run_count;
    struct result_run *runs;
    struct timeline *timeline; /* NULL: not recorded */
    char timeline_reason[160]; /* why not */
    bool valid;
    char invalid_reason[256];
    char degraded_reason[256]; /* valid, but a figure does not say what it seems to; "": none */
    uint64_t index_faults;     /* damage that the index leaves out (--on-error skip) */
    uint32_t notice_count;
    char notices[RESULT_NOTICES][RESULT_NOTICE_BYTES];
};

/* ---- how ranks compare ---- */

/* The parts of a step. */
enum result_phase {
    RESULT_PHASE_WAIT,
    RESULT_PHASE_UPLOAD,
    RESULT_PHASE_COMPUTE,
    RESULT_PHASE_EXCHANGE,
    RESULT_PHASE_UPDATE,
    RESULT_PHASES,
};

struct result_spread {
    double minimum, median, maximum;
};

struct result_comparison {
    uint32_t ranks, nodes;
    struct result_spread samples_per_s, wall_s, barrier_s, phase_s[RESULT_PHASES];
    /* The rank that was longest at work: its time without barriers and exchange, in which the
     * others wait for it, over that of the median rank; and the phase that it lost most in. */
    uint32_t straggler;
    char straggler_host[RANKS_HOST_BYTES];
    double behind_percent;
    enum result_phase behind_phase;
    enum result_limit straggler_limit; /* what a wait of its was for */
};

/* 0 or -ENOMEM. count: above 0. */
int result_compare(const struct result_rank *ranks, uint32_t count,
                   struct result_comparison *comparison);

/* ---- derived figures, in one place so that every report agrees ---- */
double result_epoch_samples_per_s(const struct result_epoch *epoch);
double result_epoch_bytes_per_s(const struct result_epoch *epoch); /* record bytes */
/* NAN: in no steady state, of a run when one of its epochs was in none. */
double result_epoch_steady_samples_per_s(const struct result_epoch *epoch);
double result_run_steady_samples_per_s(const struct result_run *run);
/* How much faster the first quarter of the bytes was read than the rest: 1 is as fast; NAN: not
 * known. */
double result_epoch_head_ratio(const struct result_epoch *epoch);
/* What held the epoch up: the longest of the trainer's wait for batches, of uploads that it waited
 * for, and of the exchange. Of the first two only what is 5% of the time at least counts: a stage
 * ahead of the trainer that keeps up costs it nothing. The exchange stands behind compute, so it
 * must be longer than that. If none is, compute is the limit where there is any. Who waits for
 * batches waits for decoding where the workers were busy for more than half of the time, else for
 * storage; where nothing is read, for the program itself. */
enum result_limit result_epoch_limit(const struct result_epoch *epoch, uint32_t workers,
                                     bool reads);
/* Where that is storage: is it storage itself? To be asked when the epoch's device bytes are known.
 * cold: before its run. rate: --limit-rate in bytes a second, 0: none. */
void result_epoch_name_source(struct result_epoch *epoch, bool is_first,
                              const struct result_cold *cold, uint64_t rate);
/* Less than half of the bytes left storage; false when nobody can tell. */
bool result_epoch_is_from_memory(const struct result_epoch *epoch, bool is_first,
                                 const struct result_cold *cold);
/* Rows that a run of so many epochs takes. */
uint64_t result_rows(uint64_t epochs);
/* Sets the state, from pages, metadata_dropped, bypassed and server. */
void result_cold_settle(struct result_cold *cold);
/* Why it is not proven that nothing was cached, here or on a server; NULL when it is, or when
 * direct reads passed the data's cache by. */
const char *result_cold_unproven(const struct result_cold *cold);
/* One more epoch has ended; run->epochs has result_rows() of them all. */
void result_run_add(struct result_run *run, const struct result_epoch *epoch);
/* Adds up all that can be: counts, bytes and times. */
void result_epoch_add(struct result_epoch *sum, const struct result_epoch *epoch);
uint64_t result_epoch_phase_ns(const struct result_epoch *epoch, enum result_phase phase);
/* compute / (compute + wait), percent; 0 when the trainer does no work. */
double result_epoch_au_percent(const struct result_epoch *epoch);
/* AU as MLPerf Storage v3.0 counts (rules 3.3.2; compute_metrics_train in DLIO's statscounter.py):
 * compute of all steps but the first over the epoch's time without its first step, percent. NAN
 * with one step. */
double result_epoch_mlperf_au_percent(const struct result_epoch *epoch);
/* Mean of the epochs', those of one step left out. */
double result_run_mlperf_au_percent(const struct result_run *run);
/* Of a whole run: samples over the sum of the epochs' wall times. */
double result_run_samples_per_s(const struct result_run *run);
double result_run_bytes_per_s(const struct result_run *run);
double result_run_au_percent(const struct result_run *run);
/* Bytes that left storage over delivered bytes of the run's first epoch, percent, by the witness
 * that saw least; negative: not known. */
double result_run_device_percent(const struct result_run *run);
/* The same over the bytes that were requested. */
double result_run_request_percent(const struct result_run *run);
/* Bytes that the server's disks read in the whole run over those delivered in its first epoch, but
 * no more than the set has, which a server need not read twice; percent. Negative: not known. */
double result_run_server_percent(const struct result_run *run);

/* What the data set is. format: its name. */
void result_describe(struct result *result, const char *data, const char *format,
                     const struct catalog *catalog);
/* Samples that no reader of it will see make the result degraded. */
void result_note_unread(struct result *result, const struct catalog *catalog);
void result_notice(struct result *result, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void result_invalid(struct result *result, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void result_degraded(struct result *result, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void result_destroy(struct result *result);

#endif
