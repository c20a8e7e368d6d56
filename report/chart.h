/* SPDX-License-Identifier: Apache-2.0
 *
 * chart: what a machine did over time, in panels that share a time axis: storage reads, fabric
 * traffic, CPU, memory, GPU, with the phases of a job. chart_make() computes the curves;
 * chart_draw() draws them, chart_json() gives them to cmd/results/report.c.
 * Any thread.
 */
#ifndef IOBENCH_REPORT_CHART_H
#define IOBENCH_REPORT_CHART_H

#include "pipeline/result/timeline.h"
#include "report/svg.h"

#include <jansson.h>
#include <stddef.h>

enum { CHART_SOURCES = 64, CHART_BINS = 1000, CHART_NAME_BYTES = 160 };

struct chart_source {
    const char *name;
    const struct timeline *timeline;
};

/* Nodes of one job: aligned by their clocks (start_unix_ns; a node without one starts with
 * the others) and added up. Runs: each starts at 0, no sum. */
enum chart_kind { CHART_OF_NODES, CHART_OF_RUNS };

struct chart_curve {
    char name[CHART_NAME_BYTES];
    const char *color; /* "#0072b2" */
    double width;
    bool is_dashed;
    double *values; /* one per bin; NAN: unknown */
};

struct chart_panel {
    char title[CHART_NAME_BYTES];
    const char *unit;
    bool is_share; /* in percent */
    uint32_t curve_count;
    struct chart_curve *curves;
};

struct chart {
    const struct timeline *phases; /* of the first source, for all nodes; borrowed; NULL for runs */
    double phases_late_s;          /* how late its second 0 is */
    double step_s;                 /* of a bin; the first begins at 0 */
    double brief_s;                /* shorter phases are not drawn */
    uint32_t bins, panel_count, curve_count;
    struct chart_panel *panels;
    struct chart_curve *curves; /* of all panels */
    double *values;             /* of all curves */
};

/* Returns 0, or -ENODATA with a reason if a source has nothing to chart. Release in either case. */
int chart_make(struct chart *chart, enum chart_kind kind, const struct chart_source *sources,
               uint32_t count, uint32_t bins_most);
void chart_release(struct chart *chart);

/* Begin a picture of the chart. title: "" for none. Release it by svg_release(). */
void chart_draw(struct svg *svg, const char *title, const struct chart *chart);

/* Return the page's data: "step_s", "panels" and "phases". */
json_t *chart_json(const struct chart *chart);
/* Describe a panel as a text alternative: mean and highest value of each curve. */
char *chart_words(const struct chart *chart, const struct chart_panel *panel, char *text,
                  size_t text_bytes);

#endif
