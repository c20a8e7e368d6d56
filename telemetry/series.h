/* SPDX-License-Identifier: Apache-2.0
 *
 * series: samples of many metrics over time, and what follows from them: rates, headline figures,
 * and where bytes came from.
 *
 * Memory is allocated once. When it is full, either every second row is dropped and the interval
 * doubles (which costs counters only resolution), or the older half is dropped. One thread appends;
 * the caller serialises concurrent readers.
 */
#ifndef IOBENCH_TELEMETRY_SERIES_H
#define IOBENCH_TELEMETRY_SERIES_H

#include "telemetry/probe.h"

/* A phase and its interval. Phases may overlap. */
struct series_mark {
    char phase[16];       /* "drop", "index", "epoch", "shuffle", ... */
    uint64_t run, number; /* number: of the epoch; both from 0 */
    uint64_t from_ns, to_ns;
};

enum series_full { SERIES_THIN, SERIES_RECENT };

struct series {
    enum series_full when_full;
    struct metric *metrics;
    uint32_t metric_count;
    uint64_t *rows; /* row_capacity times (1 time + metric_count values) */
    uint64_t row_count, row_capacity;
    uint64_t stride; /* one of this many samples is kept */
    uint64_t offered;
    struct series_mark *marks;
    uint32_t mark_count, mark_capacity;
    uint64_t marks_lost;
};

/* One moment on both clocks, to align the rows of several machines. */
struct series_anchor {
    uint64_t monotonic_ns, unix_ns;
};
struct series_anchor series_anchor_now(void);
/* Return by how many seconds the time of day was set in between. */
double series_clock_step_s(const struct series_anchor *before, const struct series_anchor *after);

/* Copies the metrics. Returns 0 or -ENOMEM; close in either case. */
int series_open(struct series *series, const struct metric *metrics, uint32_t metric_count,
                uint64_t row_capacity, uint32_t mark_capacity, enum series_full when_full);
void series_close(struct series *series);

void series_append(struct series *series, uint64_t time_ns, const uint64_t *values);
void series_mark(struct series *series, const struct series_mark *mark); /* copied */

uint64_t series_time_ns(const struct series *series, uint64_t row);
uint64_t series_value(const struct series *series, uint64_t row, uint32_t metric);

/* Compute a counter's growth between two values. Returns false if unknown: one of them is missing,
 * the counter restarted (went back without wrapping), or it is stuck at its maximum. */
bool series_growth(const struct metric *metric, uint64_t before, uint64_t after, uint64_t *growth);

/* Return a counter's rate per second, in the unit of its name, since the last row in which it was
 * known; or a level's value. NAN: unknown. */
double series_rate(const struct series *series, uint64_t row, uint32_t metric);

/* Return a counter's growth over rows in (from_ns, to_ns], in the unit of its name. NAN unless
 * known twice. */
double series_total(const struct series *series, uint32_t metric, uint64_t from_ns, uint64_t to_ns);

/* The index of a metric, or metric_count. part NULL: any. */
uint32_t series_find(const struct series *series, const char *probe, const char *part,
                     const char *quantity);

/* Format as "disk.vda.read_bytes". Returns text. */
char *series_name(const struct metric *metric, char *text, size_t text_bytes);

/* ---- headline figures: activity of storage, fabric and processors within an interval ---- */

enum monitor_how {
    MONITOR_RATE, /* growth of all parts together, per second */
    MONITOR_SUM,  /* sum of the last levels of all parts */
    MONITOR_MEAN, /* mean of the last levels of all parts */
    MONITOR_EACH, /* growth divided by the growth of another quantity: ms per READ */
};

struct monitor_figure {
    const char *key;            /* with its unit: "storage_read_bytes_per_s" */
    const char *heading, *unit; /* for a table: "read", "MB/s" */
    const char *probe, *part;   /* part NULL: all of them */
    const char *quantity, *per; /* per: of MONITOR_EACH */
    enum monitor_how how;
    double factor;       /* from the metric's unit to the key's */
    double table_factor; /* from the key's unit to the table's */
    bool of_a_cpu;       /* divided by the number of processors */
    int leaves;          /* a table that is too wide, in this order from 1; 0: never */
};

enum { MONITOR_FIGURES = 23 };

extern const struct monitor_figure monitor_figures[MONITOR_FIGURES];

bool monitor_counts(const struct series *series, const struct monitor_figure *figure);

/* Return the figure that counts the divisor of a MONITOR_EACH, which weights means over several
 * intervals; -1 if time is the weight, or nothing counts. */
int monitor_count_of(const struct monitor_figure *figure);

/* Over rows in (from_ns, to_ns]; NAN if unknown, as without such a probe. */
double monitor_figure(const struct series *series, const struct monitor_figure *figure,
                      uint64_t from_ns, uint64_t to_ns);
void monitor_take(const struct series *series, uint64_t from_ns, uint64_t to_ns,
                  double values[MONITOR_FIGURES]);

/* ---- where the bytes of an interval came from: how much of what the reader delivered was served
 *      by the page cache, local disks and the fabric ---- */

/* Source of the figure for bytes over the fabric. */
enum provenance_witness {
    PROVENANCE_NOTHING,  /* neither disk nor network serves the data: it is in memory */
    PROVENANCE_DISK,     /* no fabric: only block devices beneath the data */
    PROVENANCE_SERVER,   /* NFS or Lustre client counters */
    PROVENANCE_RECEIVED, /* received - sent: no client counters, as with BeeGFS */
};

/* Provenance in bytes; NAN: unknown.
 *   read + ahead = page_cache + local + fabric, and ahead or page_cache is 0. */
struct provenance {
    double read;           /* delivered by the reader */
    double local;          /* from local disks, for this process */
    double fabric;         /* from a storage server */
    double page_cache;     /* the rest */
    double ahead;          /* read by storage but not requested: kernel read-ahead, or the rest of a
                              block */
    double received, sent; /* by all fabrics of this node: InfiniBand, and interfaces that no port
                              counts (IPoIB, soft-RoCE) */
    double excess;         /* received - sent: storage reads, if gradient traffic is symmetric */
    double gradients;      /* expected from the trainer's exchange */
    enum provenance_witness witness;
};

void provenance_take(const struct series *series, uint64_t from_ns, uint64_t to_ns,
                     struct provenance *provenance);

/* The byte counts, `read` first, and their names in a result. */
enum { PROVENANCE_PARTS = 9 };
extern const char *const provenance_keys[PROVENANCE_PARTS];
double *provenance_part(struct provenance *provenance, int part);

/* Add part to *sum, whose witness becomes the part's. */
void provenance_add(struct provenance *sum, const struct provenance *part);

const char *provenance_witness_text(enum provenance_witness witness);

/* ---- the sampler ----
 *
 * Samples a set of probes at a fixed interval, on a thread of its own, into a preallocated series.
 * Slow probes have threads of their own and never delay the others. Open, start, stop and close
 * from one thread; mark and sample from any. The series may be read when stopped, or at any time
 * through sampler_look(). */

struct sampler;

struct sampler_site {
    struct probe_site probes;
    const char *names;               /* "disk,nfs,...": required probes; NULL: all that work */
    const struct plugin_choice *own; /* an additional probe of the caller; NULL: none */
    uint64_t interval_ns;            /* 0: 100 ms */
    uint64_t memory_bytes;           /* at most, for the series; 0: 64 MiB */
    enum series_full when_full;
    uint64_t rows_max; /* 0: 16384, half an hour at 100 ms before the interval doubles */
};

struct sampler_figures {
    uint64_t samples;
    uint64_t late;       /* samples more than half an interval late */
    uint64_t cpu_ns;     /* of the sampler's threads */
    uint64_t wall_ns;    /* since start */
    uint64_t longest_ns; /* the slowest sample */
};

/* Returns NULL with a reason. Omits probes that have nothing to count here, see sampler_absent().
 */
struct sampler *sampler_open(const struct sampler_site *site);
void sampler_close(struct sampler *sampler); /* stops it */

int sampler_start(struct sampler *sampler); /* the first sample is taken before it returns */
void sampler_stop(struct sampler *sampler); /* after a last sample */

void sampler_mark(struct sampler *sampler, const struct series_mark *mark);
/* Take an extra sample now, so that an interval between two of them is exact. Any thread, while
 * running. */
void sampler_sample(struct sampler *sampler);

const struct series *sampler_series(const struct sampler *sampler);
/* After sampler_stop(). */
struct sampler_figures sampler_figures(const struct sampler *sampler);

/* Call look() while no row is being added; for live views. */
void sampler_look(struct sampler *sampler, void (*look)(void *context, const struct series *series),
                  void *context);

/* Return why a probe is absent; NULL if index is past the last. */
const char *sampler_absent(const struct sampler *sampler, uint32_t index);

#endif
