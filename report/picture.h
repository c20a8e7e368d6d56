/* SPDX-License-Identifier: Apache-2.0
 *
 * picture: the published picture of a training: what each node read from storage over time, what
 * its fabric received and sent and the difference of both, with the phases shaded. The program text
 * for report/gnuplot.h is written here; nothing is drawn. Any thread.
 */
#ifndef IOBENCH_REPORT_PICTURE_H
#define IOBENCH_REPORT_PICTURE_H

#include "pipeline/result/timeline.h"

#include <stdio.h>

enum { PICTURE_NODES = 64 };

struct picture_node {
    const char *name;
    const struct timeline *timeline;
};

/* Nodes are laid beside each other by their clocks (start_unix_ns); one whose timeline says no
 * time of day starts with the others. title: "" for none. 0, or -ENODATA with a reason when nothing
 * of a node can be drawn. */
int picture_write(FILE *script, const char *title, const struct picture_node *nodes,
                  uint32_t count);

#endif
