/* SPDX-License-Identifier: Apache-2.0
 *
 * monitor: headline figures from a series: activity of storage, fabric and processors within an
 * interval. Any thread.
 */
#ifndef IOBENCH_TELEMETRY_MONITOR_H
#define IOBENCH_TELEMETRY_MONITOR_H

#include "telemetry/series.h"

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

enum { MONITOR_FIGURES = 21 };

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

#endif
