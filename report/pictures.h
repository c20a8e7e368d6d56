/* SPDX-License-Identifier: Apache-2.0
 *
 * pictures: the charts of a report whose axis is not time: scaling over ranks, and latency by
 * percentile. Results are untrusted. Any thread.
 */
#ifndef IOBENCH_REPORT_PICTURES_H
#define IOBENCH_REPORT_PICTURES_H

#include "report/svg.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* A job of a result file (docs/json.md). */
struct picture_result {
    const char *name;
    const json_t *job;
};

enum { PICTURES_WIDTH = 800, PICTURES_HEIGHT = 240 };

/* Throughput of each result that has a counterpart with other ranks (same format, shuffle, trainer
 * and samples per rank), against the fewest: objects with "name", "group", "kind", "ranks",
 * "nodes", "samples_per_s", "speed_up", "efficiency_percent" and "limit", by group and ranks.
 * Returns NULL out of memory. */
json_t *pictures_scaling_rows(const struct picture_result *results, size_t count);
/* Speed-up over the growth in ranks. */
double pictures_efficiency(double speed_up, double ranks, double fewest);
/* Begin a picture of them. */
void pictures_scaling(struct svg *svg, const json_t *rows);

/* Begin a picture. Returns false, having begun nothing, if no result has latencies. */
bool pictures_latency(struct svg *svg, const struct picture_result *results, size_t count);

#endif
