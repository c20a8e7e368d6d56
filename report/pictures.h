/* SPDX-License-Identifier: Apache-2.0
 *
 * pictures: the charts of a report whose axis is not time, as scripts for report/gnuplot.h:
 * scaling over ranks, and latency by percentile. Results are untrusted. Any thread.
 */
#ifndef IOBENCH_REPORT_PICTURES_H
#define IOBENCH_REPORT_PICTURES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* A job of a result file (docs/json.md). */
struct picture_result {
    const char *name;
    const json_t *job;
};

enum { PICTURES_WIDTH = 800, PICTURES_HEIGHT = 360 };

/* Throughput of each result that has a counterpart with other ranks (same format, shuffle, trainer
 * and samples per rank), against the fewest: objects with "name", "group", "kind", "ranks",
 * "nodes", "samples_per_s", "speed_up", "efficiency_percent" and "limit", by group and ranks.
 * Returns NULL out of memory. */
json_t *pictures_scaling_rows(const struct picture_result *results, size_t count);
/* Speed-up over the growth in ranks. */
double pictures_efficiency(double speed_up, double ranks, double fewest);
void pictures_scaling(FILE *script, const json_t *rows);

/* Returns false, having written nothing, if no result has latencies. */
bool pictures_latency(FILE *script, const struct picture_result *results, size_t count);

/* A colour of Okabe and Ito's palette, for gnuplot. */
const char *pictures_color(size_t number);

#endif
