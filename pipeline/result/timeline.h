/* SPDX-License-Identifier: Apache-2.0
 *
 * timeline: a recorded series over time, one row per time bin: headline figures first, then the
 * rate of every counter (the value of a level). Plain numbers and texts, with one moment on both
 * clocks, so that timelines of several machines can be aligned. Made off the clock; any thread may
 * read it.
 */
#ifndef IOBENCH_PIPELINE_RESULT_TIMELINE_H
#define IOBENCH_PIPELINE_RESULT_TIMELINE_H

#include "base/atomic.h"
#include "pipeline/settings/job.h"
#include "ranks/ranks.h"
#include "telemetry/probe.h"
#include "telemetry/series.h"

enum { TIMELINE_ROWS = 2000, TIMELINE_KEY_BYTES = 128, TIMELINE_REASONS = 16 };

struct timeline_phase {
    char name[16];
    uint64_t run, number;         /* number: of the epoch */
    double from_s, to_s;          /* since the start */
    struct provenance provenance; /* of the bytes read during the phase */
};

/* A node of several; its timeline counts seconds from node 0's start. */
struct timeline_node {
    char host[64];
    double clock_offset_s;      /* its wall-clock time minus node 0's, at the start */
    double clock_uncertainty_s; /* error bound of the offset and of the alignment */
    double clock_drift_s;       /* growth of the offset until the end */
    struct timeline *timeline;
};

/* A timeline of one node, or of several together: then a row's figures are sums over the nodes. */
struct timeline {
    uint64_t start_monotonic_ns,
        start_unix_ns;   /* the same moment on two clocks: second 0, the first sample */
    double clock_step_s; /* by how much the time of day was set until the end; NAN: not recorded */
    double begin_s;      /* of the first row */
    double interval_s;   /* of a row */
    uint32_t column_count, figure_count; /* the figures are the first columns */
    char (*keys)[TIMELINE_KEY_BYTES];    /* one per column, with its unit */
    uint64_t row_count;                  /* at most TIMELINE_ROWS */
    double *values; /* row_count times (1 time + column_count); the time is the end of the bin in
                       seconds since the start; NAN: unknown */
    uint32_t phase_count;
    struct timeline_phase *phases; /* in the order of their start */
    uint64_t phases_lost;
    struct provenance provenance; /* of all epochs together */
    /* how it was sampled */
    uint64_t samples, late;
    double cpu_percent; /* of one core */
    uint32_t absent_count;
    char absent[TIMELINE_REASONS][160]; /* which probes had nothing to count, and why */
    uint32_t node_count;                /* 0: a single node */
    struct timeline_node *nodes;
};

/* Make a timeline from a series sampled every interval_ns; the caller fills in how sampling went.
 * Returns NULL with a reason. */
struct timeline *timeline_make(const struct series *series, struct series_anchor anchor,
                               uint64_t interval_ns);
void timeline_destroy(struct timeline *timeline);

/* Allocate an empty timeline of at most this size, to be filled. Returns NULL with a reason. */
struct timeline *timeline_blank(uint32_t columns, uint64_t rows, uint64_t phases);

/* Return a row: its time and the values of the columns. */
double *timeline_row(const struct timeline *timeline, uint64_t row);
double timeline_time_s(const struct timeline *timeline, uint64_t row);
double timeline_value(const struct timeline *timeline, uint64_t row, uint32_t column);
/* Return the column of a key, or column_count. */
uint32_t timeline_find(const struct timeline *timeline, const char *key);
/* Return the mean of a column over an interval, weighted by the time of rows; NAN if unknown. */
double timeline_mean(const struct timeline *timeline, uint32_t column, double from_s, double to_s);
double timeline_end_s(const struct timeline *timeline); /* of the last row */
/* Return a column's value in a row of another timeline: rates are 0 outside this timeline's rows,
 * so rows that cover all of it have the same sum. NAN if most of it is unknown, however little of a
 * known neighbour the row has, too. */
double timeline_rebin(const struct timeline *timeline, uint32_t column, double from_s, double to_s);

/* ---- several nodes ---- */

/* Convert to another clock, on which the timeline runs from start_s to end_s. */
void timeline_move(struct timeline *timeline, double start_s, double end_s);

/* Sum all nodes in the rows of node 0, extended to the end of the last node: columns that can be
 * summed, phases and provenance. What others recorded before node 0 is left out. Takes ownership of
 * the nodes. Returns NULL without memory. */
struct timeline *timeline_join(struct timeline_node *nodes, uint32_t count);

/* Serialise the first `columns` columns, without nodes, for another process of this program; free()
 * the result. Returns NULL without memory. */
void *timeline_pack(const struct timeline *timeline, uint32_t columns, uint64_t *bytes);
/* Returns NULL without memory or if the bytes are not a packed timeline. */
struct timeline *timeline_unpack(const void *packed, uint64_t bytes);

/* ---- meter: the pipeline's own counters, and the probe that samples them together with the
 * machine's. Each stage adds to its own counters. Any thread. A NULL meter counts nothing ---- */

enum meter_count {
    METER_READ_BYTES, /* bytes delivered by the reader; completed reads */
    METER_READ_COUNT,
    METER_PASSTHROUGH_BYTES, /* of the read ones, by commands to the disk itself */
    METER_CLIENT_BYTES,      /* ... by a client of the server in the reader (libnfs) */
    METER_RECORD_BYTES,      /* parsed and decoded into rows, framing included */
    METER_RECORD_COUNT,
    METER_TRAINED_COUNT,     /* samples of finished steps */
    METER_LOADER_STORAGE_NS, /* the loader waited for storage */
    METER_LOADER_MEMORY_NS,  /* ... for memory: decode or trainer is behind */
    METER_DECODE_RECORD_NS,  /* sum over decode threads: waiting for records */
    METER_DECODE_BATCH_NS,   /* ... for an open batch: the trainer is behind */
    METER_DECODE_BUSY_NS,
    METER_DECODE_HINTS_NS,  /* ... making hints */
    METER_TRAINER_BATCH_NS, /* the trainer waited for a batch */
    METER_TRAINER_BUSY_NS,
    METER_GRADIENT_BYTES, /* that this rank sends in a ring all-reduce */
    METER_COUNTS
};

/* A waiting thread says so at least this often, or a timeline shows neither wait nor work. */
#define METER_WAIT_NS UINT64_C(100000000)

struct meter {
    struct counter counts[METER_COUNTS];
};

/* Figures of a timeline from the counters; key NULL: none. */
extern const struct monitor_figure meter_figures[METER_COUNTS];

static inline void meter_add(struct meter *meter, enum meter_count count, uint64_t amount)
{
    if (meter)
        counter_add(&meter->counts[count], amount);
}

/* Settings of the probe, which adds up the meters of several ranks. */
struct meter_list {
    struct meter *const *meters;
    uint32_t count;
};
extern const struct probe_ops meter_probe;

/* ---- recorder: records machine and pipeline during a job as a timeline. The stages of the engine
 * count into its meter and mark phases on their own threads; session.c starts and finishes it. A
 * NULL recorder records nothing ---- */

struct recorder;

/* Start sampling. The lowest rank of each node samples for all ranks on it. Collective. Returns
 * NULL with a reason on all ranks if telemetry is impossible or unwanted
 * (settings->sample_interval_ns is 0); telemetry never fails a job. */
struct recorder *recorder_start(const char *data, const struct output_settings *settings,
                                struct ranks *ranks);
/* Stop sampling. Returns the timeline: that of all nodes on rank 0, NULL on other ranks; after a
 * failure each node keeps its own; NULL without memory. Collective; code: the job's status, the
 * same on all ranks. */
struct timeline *recorder_finish(struct recorder *recorder, int code);

struct meter *recorder_meter(struct recorder *recorder);
/* Assign later marks to this run. Call between runs. */
void recorder_begin_run(struct recorder *recorder, uint64_t run);
/* Take an extra sample, so that counts between two such samples are exact. Any thread. */
void recorder_sample(struct recorder *recorder);
/* Mark a phase that ends now. Any thread. */
void recorder_mark(struct recorder *recorder, const char *phase, uint64_t number, uint64_t from_ns);

#endif
