/* SPDX-License-Identifier: Apache-2.0
 *
 * chart: storage reads of each node over time, traffic received and sent by its fabric and their
 * difference, with phases shaded. Writes the script for report/gnuplot.h; draws nothing. Any
 * thread.
 */
#ifndef IOBENCH_REPORT_CHART_H
#define IOBENCH_REPORT_CHART_H

#include "pipeline/result/timeline.h"

#include <stdio.h>

enum { CHART_NODES = 64 };

struct chart_node {
    const char *name;
    const struct timeline *timeline;
};

/* Nodes are aligned by their clocks (start_unix_ns); one without a time of day starts with the
 * others. title: "" for none. Returns 0, or -ENODATA with a reason if a node has nothing to chart.
 */
int chart_write(FILE *script, const char *title, const struct chart_node *nodes, uint32_t count);

#endif
