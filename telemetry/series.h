/* SPDX-License-Identifier: Apache-2.0
 *
 * series: samples of many metrics over time, and the rates derived from them.
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
/* The first row later than a time, or row_count. */
uint64_t series_row_after(const struct series *series, uint64_t time_ns);
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

#endif
