/* SPDX-License-Identifier: Apache-2.0
 *
 * monitor: the few figures that people look at, out of a series: what storage, fabric and
 * processors did from one time to another. Any thread.
 */
#ifndef IOBENCH_TELEMETRY_MONITOR_H
#define IOBENCH_TELEMETRY_MONITOR_H

#include "telemetry/series.h"

enum monitor_how {
    MONITOR_RATE, /* growth of all parts together, per second */
    MONITOR_SUM,  /* last levels of all parts, added */
    MONITOR_MEAN, /* last levels of all parts, mean */
    MONITOR_EACH, /* growth divided by the growth of another quantity: ms a READ */
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
};

enum { MONITOR_FIGURES = 20 };

extern const struct monitor_figure monitor_figures[MONITOR_FIGURES];

/* Is there a probe that counts for a figure? */
bool monitor_counts(const struct series *series, const struct monitor_figure *figure);

/* The figure that counts what one of MONITOR_EACH is divided by: means of several times are weighed
 * with it. -1 where time weighs, or nothing counts. */
int monitor_count_of(const struct monitor_figure *figure);

/* Of the rows after from_ns and up to to_ns; NAN: not known, as where there is no such probe. */
double monitor_figure(const struct series *series, const struct monitor_figure *figure,
                      uint64_t from_ns, uint64_t to_ns);
/* All of the table. */
void monitor_take(const struct series *series, uint64_t from_ns, uint64_t to_ns,
                  double values[MONITOR_FIGURES]);

#endif
