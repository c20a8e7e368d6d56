/* SPDX-License-Identifier: Apache-2.0
 *
 * result: what a job measured, as plain numbers. Filled by pipeline/jobs, read by report/. Fields
 * carry their unit. What could not be measured is unknown, with a reason, and never zero.
 */
#ifndef IOBENCH_PIPELINE_RESULT_RESULT_H
#define IOBENCH_PIPELINE_RESULT_RESULT_H

#include "base/stats.h"
#include "base/thread.h"
#include "base/trace.h"
#include "cachectl/residency.h"
#include "cachectl/server.h"
#include "dataset/catalog.h"
#include "decode/decoder.h"
#include "pipeline/result/timeline.h"
#include "pipeline/settings/job.h"
#include "ranks/ranks.h"
#include "shuffle/coalesce.h"
#include "telemetry/guard.h"
#include "trainer/accelerator.h"
#include "trainer/trainer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct result_epoch;

/* ---- figure: a table of figures, a row each: where it is in its struct, its key and unit, how it
 * merges, why it may be unknown, and what it means. From the rows of an epoch come its sums over
 * epochs and over ranks, JSON, CSV, the JSON Schema and the tables of docs/json.md and
 * docs/metrics.md ---- */

enum figure_type {
    FIGURE_COUNT,   /* uint64_t */
    FIGURE_ORDINAL, /* uint64_t from 0, reported from 1 */
    FIGURE_NUMBER,  /* uint32_t */
    FIGURE_TIME,    /* uint64_t nanoseconds, reported in seconds */
    FIGURE_REAL,    /* double */
    FIGURE_FLAG,    /* bool */
    FIGURE_TEXT,    /* char array; "" is unknown */
    FIGURE_STATS,   /* struct stats_summary, reported under five keys; count 0 is unknown */
    FIGURE_DERIVED, /* value() of an epoch; NAN is unknown */
    FIGURE_LIMIT,   /* enum result_limit */
    FIGURE_DIGEST,  /* two uint64_t, reported as a text */
};

enum figure_merge {
    FIGURE_FIRST, /* that of the first one, or merged by a rule of its own */
    FIGURE_SUM,
    FIGURE_XOR,
    FIGURE_MEAN,
    FIGURE_MOST,
};

struct figure {
    const char
        *key; /* in JSON, with the unit; "object.key" of an object within; NULL: not reported */
    enum figure_type type;
    size_t offset;
    enum figure_merge epochs, ranks;
    double (*value)(const struct result_epoch *epoch);
    /* Why the figure is unknown: where known_at is the offset of a bool, if that is false; else if
     * it is 0. reason_at: offset of a text that gives the reason. */
    const char *unknown;
    size_t known_at, reason_at;
    const char *column; /* in the CSV; NULL: not there */
    int digits;         /* after the point, there */
    /* For the documentation: what it is, by which clock, where measured, and by which test checked.
     */
    const char *meaning, *clock, *code, *witness;
};

/* Type and offset of a row, whose type is that of the field; and what says whether it is known. */
#define FIGURE_AT(kind, of, field)                        \
    FIGURE_##kind, .offset = offsetof(struct of, field) + \
                             0 * sizeof(FIGURE_IS_##kind(((struct of *)0)->field))
#define FIGURE_KNOWN(of, field) \
    .known_at = offsetof(struct of, field) + 0 * sizeof(FIGURE_IS_FLAG(((struct of *)0)->field))
#define FIGURE_REASON(of, field) \
    .reason_at = offsetof(struct of, field) + 0 * sizeof(FIGURE_IS_TEXT(((struct of *)0)->field))
#define FIGURE_IS_COUNT(field) _Generic(field, uint64_t : 0)
#define FIGURE_IS_ORDINAL(field) _Generic(field, uint64_t : 0)
#define FIGURE_IS_NUMBER(field) _Generic(field, uint32_t : 0)
#define FIGURE_IS_TIME(field) _Generic(field, uint64_t : 0)
#define FIGURE_IS_REAL(field) _Generic(field, double : 0)
#define FIGURE_IS_STATS(field) _Generic(field, struct stats_summary : 0)
#define FIGURE_IS_DERIVED(field) _Generic(field, struct result_epoch : 0)
#define FIGURE_IS_LIMIT(field) _Generic(field, enum result_limit : 0)
#define FIGURE_IS_DIGEST(field) _Generic(field, uint64_t : 0)
#define FIGURE_IS_FLAG(field) _Generic(field, bool : 0)
#define FIGURE_IS_TEXT(field) _Generic(field, char * : 0)

/* The figures of an epoch, in the order of reports. */
extern const struct figure figures_of_epoch[];
extern const size_t figures_of_epoch_count;

/* Add a later epoch of the same ranks. */
void result_epoch_add(struct result_epoch *sum, const struct result_epoch *later);
/* Merge an epoch of `count` ranks, at least one, by the rows. What has no row, or a rule of its
 * own, is that of the first rank. The epochs of the ranks are `stride` bytes apart. */
void figures_merge_ranks(const struct result_epoch *first, size_t stride, uint32_t count,
                         struct result_epoch *merged);

static inline const struct result_epoch *figures_of_rank(const struct result_epoch *first,
                                                         size_t stride, uint32_t rank)
{
    return (const struct result_epoch *)(const void *)((const char *)first + stride * rank);
}

struct result;

/* ---- findings: defects in the samples of a run: their number, and the first ones by file and
 * offset. Counted by each decode thread, summed over threads and ranks. One thread each ---- */

enum finding {
    FINDING_SKIPPED, /* left out because of --on-error skip */
    FINDING_IMAGE,   /* decoded up to the damage because of jpeg:damaged=decode */
    FINDING_LABEL,   /* not a class number; delivered without a class */
    FINDING_EMPTY,   /* has no image; delivered with pixels of zero */
    FINDING_KINDS,
};

enum { FINDINGS_NAMED = 3, FINDING_BYTES = 384 };

struct findings_kind {
    uint64_t count; /* summed over epochs, so that a record counts once per epoch */
    /* The first of these records in the data set, each listed once. */
    uint32_t named;
    uint64_t records[FINDINGS_NAMED];
    char texts[FINDINGS_NAMED][FINDING_BYTES]; /* file, offset and cause */
};

struct findings {
    struct findings_kind kinds[FINDING_KINDS];
};

void findings_note(struct findings *findings, enum finding kind, uint64_t record, const char *text);
void findings_add(struct findings *into, const struct findings *from);
/* Add a notice for each kind; damaged images degrade the result. where: text such as "run 1". */
void findings_tell(const struct findings *findings, const char *where, struct result *result);

extern const char *const finding_keys[FINDING_KINDS]; /* the name in JSON */

/* Bytes counted by a witness outside the pipeline. */
struct result_bytes {
    bool known;
    bool of_node; /* counts all processes of the node, else only this one */
    uint64_t bytes;
    /* Bytes that the underlying disks read, for any process of the node: fewer than `bytes` if an
     * intermediate layer, such as a loop device's file, was cached. */
    bool beneath_known;
    uint64_t beneath_bytes;
    char method[96];  /* the counter, such as "/proc/self/io read_bytes" */
    char reason[160]; /* why it is unknown; "" if it is known */
};

/* State of the caches before a run, from best to worst. */
enum result_cache {
    RESULT_CACHE_COLD,        /* no data, here or on a server; no dentries and inodes here */
    RESULT_CACHE_BYPASSED,    /* direct reads bypassed the page cache; all bytes left storage */
    RESULT_CACHE_DATA_COLD,   /* no data; dentries and inodes may be cached */
    RESULT_CACHE_CLIENT_COLD, /* nothing here; the server's cache is unknown */
    RESULT_CACHE_UNVERIFIED,
    RESULT_CACHE_WARM,
};

/* The evidence for it. */
struct result_cold {
    enum result_cache state;     /* result_cold_state(), once gathered and after the run */
    enum residency_state pages;  /* of the files, in this machine's page cache and below it */
    bool metadata_dropped;       /* dentries and inodes too, or this machine caches none */
    bool bypassed;               /* reads were direct, and all bytes left storage */
    struct server_result server; /* asked by rank 0 only */
    bool dropped;                /* a drop was requested and done */
    uint64_t total_bytes;        /* of the set */
    uint64_t resident_bytes, read_bytes; /* of what the first epoch reads, each rank for itself */
    uint64_t explained_bytes;            /* that with all that may be read ahead */
    double residue_percent;              /* of read_bytes; undefined if pages are unverified */
    uint64_t drop_ns;                    /* off the clock */
    char method[160];                    /* how it was dropped and measured */
    char reason[400]; /* what is still cached, and where; or why it is unverified */
};

/* Times that each stage waited: sums over the threads of the stage. */
struct result_waits {
    uint64_t loader_storage_ns, loader_memory_ns;
    uint64_t decode_input_ns, decode_slot_ns, decode_busy_ns;
    uint64_t decode_hints_ns; /* decode threads made hints (--entry-points) */
    uint64_t trainer_input_ns;
};

enum result_limit {
    RESULT_LIMIT_STORAGE,
    RESULT_LIMIT_PAGE_CACHE, /* storage, but most records came from memory */
    RESULT_LIMIT_RATE,       /* storage, as throttled by --limit-rate */
    RESULT_LIMIT_DECODE,
    RESULT_LIMIT_UPLOAD,  /* copying batches to a device */
    RESULT_LIMIT_TRAINER, /* compute on a CPU or GPU */
    RESULT_LIMIT_EXCHANGE,
    RESULT_LIMIT_ORDER,   /* making the sample order */
    RESULT_LIMIT_QUOTA,   /* the control group's CPU time, whatever else would be */
    RESULT_LIMIT_CPU,     /* not storage: a thread waited for a CPU */
    RESULT_LIMIT_HARNESS, /* the program itself: nothing is read, decoded or trained */
};

/* An epoch of one rank or of all. pipeline/result/result.c says what a figure is, and how it
 * merges. */
struct result_epoch {
    uint64_t epoch; /* from 0 */
    uint64_t samples, skipped, batches;
    uint64_t record_bytes, request_bytes, requests;
    uint64_t start_ns, wall_ns; /* start on the monotonic clock */
    uint64_t shuffle_ns,
        order_ns; /* making the sample order; the part of it that the trainer waited */
    uint64_t storage_idle_ns;
    uint64_t read_head_ns, read_rest_ns;
    uint64_t steady_samples, steady_ns; /* after the head of the reads, in steady state; 0: none */
    uint64_t first_batch_ns;            /* from the epoch's start to its first full batch */
    /* All batches but the first, and the time from first to last: n batches are n - 1 intervals. */
    uint64_t paced_samples, paced_bytes, paced_ns;
    /* All samples, with those that were read and not used, and the time from the start of the first
     * read to the end of the last one; 0: unknown. */
    uint64_t read_samples, read_ns;
    /* Phases of the trainer's loop, on a device without what is overlapped, so that they add up. */
    uint64_t wait_ns, compute_ns, upload_ns, exchange_ns, update_ns;
    uint64_t nominal_ns;                      /* of replayed steps */
    uint64_t first_step_ns, first_compute_ns; /* from the start to the end of the first step */
    uint64_t copy_ns;                         /* all uploads, overlapped or not */
    uint64_t start_barrier_ns, stop_barrier_ns;
    uint64_t met_ns; /* from the epoch's start until all ranks knew that all had ended it */
    struct guard_counts guard; /* of the rank's process */
    struct result_waits waits;
    enum result_limit limit;
    double cpu_user_s, cpu_system_s;
    struct result_bytes device;      /* left storage during the epoch */
    uint64_t merged;                 /* later epochs merged into this row */
    bool digests_differ;             /* of those epochs */
    uint64_t digest_sum, digest_xor; /* over (label, image checksum), in any order */
};

/* One rank in a run. */
enum { RESULT_ROWS = 1001 };

struct result_rank {
    uint32_t rank, node;
    bool leads; /* lowest rank of its node, for which it reports */
    char host[RANKS_HOST_BYTES];
    struct result_epoch total; /* of all its epochs */
    uint64_t read_p50_ns, read_p99_ns, read_max_ns;
};

struct result_node {
    char host[RANKS_HOST_BYTES];
    uint32_t ranks;
    struct result_cold cold;
};

/* Kinds of epochs by what they read from: the first one from caches as they were found or made,
 * later ones from those that it left, an evaluation from another set. */
enum result_epoch_kind {
    RESULT_EPOCH_FIRST,
    RESULT_EPOCH_LATER,
    RESULT_EPOCH_EVALUATION, /* not among all reads of the run */
    RESULT_EPOCH_KINDS
};

struct result_run {
    uint64_t number;         /* from 0 */
    uint64_t turn;           /* position among the runs of all jobs of the session, from 0 */
    struct result_cold cold; /* of the node whose caches were warmest */
    uint64_t epochs_run;     /* completed */
    /* At most RESULT_ROWS rows: the first epoch has its own row; if there are more epochs than
     * rows, each later row merges row_epochs epochs, the last row maybe fewer. See
     * result_run_add(). */
    uint32_t epoch_count, row_epochs;
    struct result_epoch *epochs;
    struct histogram read_latency_ns; /* of all reads, and by the epoch that needs them: */
    struct histogram epoch_latency_ns[RESULT_EPOCH_KINDS];
    struct histogram batch_late_ns; /* open loop: how late batches were ready; else empty */
    uint64_t read_errors, short_reads;
    struct decode_figures decode;
    struct findings findings;
    uint64_t memory_peak_bytes; /* of record memory */
    bool valid;
    char invalid_reason[256];
    /* with several ranks */
    uint32_t rank_count, node_count;
    struct result_rank *ranks;
    struct result_node *nodes;
};

/* A session (JSON key "session"): jobs measured together by one process, taking turns. Runs are
 * numbered by round, and each job runs once per round. */
struct result_session {
    char id[24];
    char boot_id[40];    /* "": the kernel did not say */
    uint32_t jobs, job;  /* how many jobs take turns, and the index of this job */
    uint64_t order_seed; /* 0: a single job */
    uint64_t turns;      /* runs that make up one pair */
    bool is_until;       /* --runs auto */
    bool is_reached;
    double half_percent; /* half the width of the widest interval; NAN: unknown */
};

/* --entry-points: hints that the first epoch of the first run made. Of all ranks. */
struct result_hints {
    uint64_t memory_bytes;    /* they take at most */
    bool were_made;           /* some, in an epoch that has ended or was interrupted */
    uint64_t records, images; /* looked at, and of them those with a hint */
    uint64_t decode_ns;       /* decode threads took to make them */
    uint64_t keep_ns;         /* took to write them, after that epoch */
    uint64_t kept_images;     /* in the file, with earlier ones */
    char path[512];           /* the file; "": not written */
    char reason[256];         /* why not */
};

enum { RESULT_NOTICES = 16, RESULT_NOTICE_BYTES = 320 };

/* The machine and its storage, recorded with every result. */
struct environment {
    char host[128], kernel[160], cpu[128], clock_source[64];
    uint32_t cpu_count;
    uint64_t memory_bytes, memory_limit_bytes; /* limit 0: none */
    char file_system[32], mount_options[256], mount_point[256];
    char devices[256]; /* leaf block devices beneath the data, "vda" */
    char sandbox[32];  /* "landlock ABI 7" or "none" */
    char started[40];  /* ISO 8601, UTC */
    char command[1024];
};

struct result {
    const struct job *job;
    struct environment environment;
    struct result_session session;
    /* the data set */
    char data[512], format[64];
    uint64_t shards, records, data_bytes, record_bytes_total;
    uint64_t data_identity; /* catalog_identity() */
    uint64_t unread_samples,
        other_files; /* left out: samples of unsupported kinds, and files that are no samples */
    char first_unread[FINDING_BYTES];
    uint32_t remark_count;
    char remarks[REMARK_KINDS][REMARK_TEXT_BYTES];
    bool data_was_made; /* a synthetic set, by its manifest or because none was named */
    /* as used */
    bool decodes; /* to pixels */
    char reader_engine[192];
    char decoder_engine[160];
    char shuffle[160]; /* what --shuffle auto chose, else --shuffle */
    uint32_t iodepth;  /* queue depth; with auto the saturation depth, 0 if none was found */
    uint32_t threads;
    uint64_t memory_bytes;
    struct coalesce reads;                                /* how records are coalesced into reads */
    uint64_t memory_needed_bytes, memory_available_bytes; /* in total, when the budget was made */
    uint64_t slots;
    uint32_t ranks, nodes; /* of this job */
    uint64_t memory_before_bytes,
        memory_during_bytes; /* resident: before the first run, and after its first epoch */
    struct trainer_memory trainer_memory; /* at the end of the last run */
    /* The ceiling: the rate of the same loop without storage and decoding, and the loop's AU when
     * fed from memory; 0: not measured. */
    double ceiling_samples_per_s;
    double au_calibration_percent;
    struct result_hints hints;
    uint32_t run_count;
    struct result_run *runs;
    struct timeline *timeline; /* NULL: not recorded */
    char timeline_reason[160]; /* why it was not recorded */
    struct trace *trace;       /* of the first run, on rank 0; NULL: not recorded */
    bool valid;
    char invalid_reason[256];
    bool interrupted;          /* asked to end before it was done */
    char degraded_reason[256]; /* valid, but a figure may mislead; "": not degraded */
    uint64_t index_faults;     /* damaged places left out of the index (--on-error skip) */
    uint32_t notice_count;
    char notices[RESULT_NOTICES][RESULT_NOTICE_BYTES];
};

/* Phases of a step. */
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
    /* The straggler is the rank that worked longest, not counting barriers and the exchange, in
     * which the other ranks wait for it. behind_percent compares it with the median rank;
     * behind_phase is where it lost most. */
    uint32_t straggler;
    char straggler_host[RANKS_HOST_BYTES];
    double behind_percent;
    enum result_phase behind_phase;
    enum result_limit straggler_limit; /* what the straggler waited for */
};

/* Compare `count` ranks, at least one. Returns 0 or -ENOMEM. */
int result_compare(const struct result_rank *ranks, uint32_t count,
                   struct result_comparison *comparison);

/* ---- derived figures, here so that all reports agree ---- */
double result_epoch_samples_per_s(const struct result_epoch *epoch);
double result_epoch_bytes_per_s(const struct result_epoch *epoch); /* record bytes */
/* Rate of the batches after the first one, from that to the last one; NAN with fewer than two. */
double result_epoch_paced_samples_per_s(const struct result_epoch *epoch);
double result_epoch_paced_bytes_per_s(const struct result_epoch *epoch);
double result_epoch_read_samples_per_s(const struct result_epoch *epoch); /* NAN: unknown */
/* NAN without a steady state; of a run, if any of its epochs has none. */
double result_run_steady_samples_per_s(const struct result_run *run);
/* Speed of reading the first quarter of the bytes relative to the rest; NAN: unknown. */
double result_epoch_head_ratio(const struct result_epoch *epoch);
/* Return the bottleneck of an epoch: the longest of the trainer's waits for batches, uploads and
 * exchange. The first two count only if they take at least 5% of the time, since a stage that keeps
 * up costs nothing; the exchange counts only if longer than compute, which hides it. Otherwise
 * compute is the bottleneck, if there is any. A wait for batches is a wait for the sample order if
 * more than half of it was, for decoding if the decode threads were busy more than half of the
 * time, else for storage, or for the program itself if nothing is read. Under a quota
 * that throttles the process the quota is the bottleneck, whatever else would be. */
enum result_limit result_epoch_limit(const struct result_epoch *epoch, uint32_t workers,
                                     bool reads);
/* Replace a storage bottleneck by the page cache, --limit-rate or CPUs where that is the cause.
 * Call once the epoch's device bytes are known. cold: the caches before the run. rate: --limit-rate
 * in bytes per second, 0: none. */
void result_epoch_name_source(struct result_epoch *epoch, bool is_first,
                              const struct result_cold *cold, uint64_t rate);
/* Return whether less than half of the bytes left storage; false if unknown. */
bool result_epoch_is_from_memory(const struct result_epoch *epoch, bool is_first,
                                 const struct result_cold *cold);
/* Return the number of rows for this many epochs. */
uint64_t result_rows(uint64_t epochs);
/* Return the state that follows from pages, metadata_dropped, bypassed and server. */
enum result_cache result_cold_state(const struct result_cold *cold);
/* Return why the caches, here or on a server, are not verified cold; NULL if they are or if direct
 * reads bypassed them. */
const char *result_cold_unproven(const struct result_cold *cold);
/* Add a finished epoch; run->epochs has room for result_rows() rows. */
void result_run_add(struct result_run *run, const struct result_epoch *epoch);
/* Return a run as one long epoch. */
struct result_epoch result_run_total(const struct result_run *run);
uint64_t result_epoch_phase_ns(const struct result_epoch *epoch, enum result_phase phase);
/* Return compute / (compute + wait) in percent; 0 if the trainer does nothing. */
double result_epoch_au_percent(const struct result_epoch *epoch);
/* Return the AU as defined by MLPerf Storage v3.0 (rules 3.3.2; compute_metrics_train in DLIO's
 * statscounter.py): compute over wall time in percent, both without the first step. NAN if there is
 * only one step. */
double result_epoch_mlperf_au_percent(const struct result_epoch *epoch);
/* Return the mean over the epochs that have more than one step. */
double result_run_mlperf_au_percent(const struct result_run *run);
/* Return the rate of a run: samples over the sum of the epochs' wall times. */
double result_run_samples_per_s(const struct result_run *run);
double result_run_bytes_per_s(const struct result_run *run);
double result_run_au_percent(const struct result_run *run);
/* Return the bytes that left storage over the bytes delivered in an epoch, in percent, by the
 * witness that counted least; negative: unknown. */
double result_epoch_device_percent(const struct result_epoch *epoch);
/* Return that of the run's first epoch. */
double result_run_device_percent(const struct result_run *run);
/* Return the same over the bytes requested. */
double result_run_request_percent(const struct result_run *run);
/* Return the bytes that the server's disks read in the whole run over the bytes delivered in its
 * first epoch, in percent. Delivered bytes count at most up to the size of the data set, which a
 * server need not read twice. Negative: unknown. */
double result_run_server_percent(const struct result_run *run);

/* Describe the data set. format: the format's name. */
void result_describe(struct result *result, const char *data, const char *format,
                     const struct catalog *catalog);
/* Mark the result degraded if the index leaves samples out. */
void result_note_unread(struct result *result, const struct catalog *catalog);
void result_notice(struct result *result, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void result_invalid(struct result *result, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void result_degraded(struct result *result, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void result_destroy(struct result *result);

/* ---- gather: combines what the ranks of a job measured; every rank gets the same result.
 * Collective, also for ranks that failed. Main thread only ---- */

/* Gather the caches of all nodes; `mine` counts if this rank leads its node. Fills run->nodes with
 * one entry per node, and run->cold with the worst one, naming its host. Returns 0 or -errno. */
int gather_cold(struct ranks *ranks, const struct result_cold *mine, struct result_run *run);

/* Turn *run from this rank's run, with room for epochs_max epochs, into the run of all ranks: see
 * struct result_epoch, and run->ranks. Returns 0 or -errno. */
int gather_run(struct ranks *ranks, uint64_t epochs_max, struct result_run *run);

/* Turn what a guard found on this rank into that of all. Returns 0 or -errno. */
int gather_guard(struct ranks *ranks, struct guard_counts *counts);

/* Collective. Rank 0 adds notices that only other ranks have, and why their result is degraded,
 * with rank and host of the first. All ranks reach it with the same code. Returns 0 or -errno. */
int gather_notices(struct ranks *ranks, struct result *result);

/* Gather one epoch of all ranks; returns a list with an entry per rank, or NULL with a reason. */
struct result_rank *gather_epoch(struct ranks *ranks, const struct result_epoch *epoch);
/* Return the time of an epoch from the first rank's start to the last one's end. The epochs of the
 * ranks are `stride` bytes apart. */
uint64_t gather_epoch_ns(const struct result_epoch *first, size_t stride, uint32_t count);

#endif
