/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/result/timeline.h"

#include "base/memory.h"
#include "pipeline/result/meter.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_start(const void *left, const void *right)
{
    const struct timeline_phase *a = left, *b = right;

    return a->from_s < b->from_s ? -1 : a->from_s > b->from_s;
}

struct timeline *timeline_make(const struct series *series, struct series_anchor anchor,
                               uint64_t interval_ns)
{
    const uint64_t start_ns = series->row_count ? series_time_ns(series, 0) : anchor.monotonic_ns;
    const uint32_t figures_most = METER_COUNTS + PROVENANCE_PARTS + MONITOR_FIGURES;
    struct timeline *timeline =
        timeline_blank(figures_most + series->metric_count, series->row_count, series->mark_count);

    if (!timeline)
        return NULL;
    timeline->start_monotonic_ns = start_ns;
    timeline->start_unix_ns = anchor.unix_ns + (start_ns - anchor.monotonic_ns);

    /* columns: the figures of available probes, then all counters */
    char(*keys)[TIMELINE_KEY_BYTES] = timeline->keys;
    uint32_t count = 0;
    for (int i = 0; i < METER_COUNTS; i++)
        if (meter_figures[i].key)
            snprintf(keys[count++], sizeof *keys, "%s", meter_figures[i].key);
    for (int i = 1; i < PROVENANCE_PARTS; i++) /* the meter counts the first */
        snprintf(keys[count++], sizeof *keys, "%s_per_s", provenance_keys[i]);
    for (int i = 0; i < MONITOR_FIGURES; i++)
        if (monitor_counts(series, &monitor_figures[i]))
            snprintf(keys[count++], sizeof *keys, "%s", monitor_figures[i].key);
    timeline->figure_count = count;
    for (uint32_t i = 0; i < series->metric_count; i++) {
        char name[TIMELINE_KEY_BYTES - 8];
        snprintf(keys[count++], sizeof *keys, "%s%s",
                 series_name(&series->metrics[i], name, sizeof name),
                 series->metrics[i].kind == METRIC_COUNTER ? "_per_s" : "");
    }
    assert(count <= timeline->column_count); /* room for all */
    timeline->column_count = count;

    /* Rows. Counting starts at the first row of the series, which is in no bin. Samples may follow
     * each other closely (sampler_sample()); a rate over a millisecond is not worth a row. */
    const uint64_t least_ns = interval_ns / 2;
    const uint64_t rows = series->row_count ? series->row_count - 1 : 0;
    const uint64_t together = rows ? (rows + TIMELINE_ROWS - 1) / TIMELINE_ROWS : 1;
    timeline->interval_s = (double)interval_ns / 1e9 * (double)(series->stride * together);
    for (uint64_t row = 0; row < rows; timeline->row_count++) {
        const uint64_t from_ns = series_time_ns(series, row);
        row = row + together < rows ? row + together : rows;
        while (row < rows && series_time_ns(series, row) - from_ns < least_ns)
            row++;
        const uint64_t to_ns = series_time_ns(series, row);
        const double seconds = (double)(to_ns - from_ns) / 1e9;
        double *values = timeline_row(timeline, timeline->row_count);
        struct provenance provenance;
        *values++ = (double)(int64_t)(to_ns - start_ns) / 1e9;
        for (int i = 0; i < METER_COUNTS; i++)
            if (meter_figures[i].key)
                *values++ = monitor_figure(series, &meter_figures[i], from_ns, to_ns);
        provenance_take(series, from_ns, to_ns, &provenance);
        for (int i = 1; i < PROVENANCE_PARTS; i++)
            *values++ = *provenance_part(&provenance, i) / seconds;
        for (int i = 0; i < MONITOR_FIGURES; i++)
            if (monitor_counts(series, &monitor_figures[i]))
                *values++ = monitor_figure(series, &monitor_figures[i], from_ns, to_ns);
        const uint64_t last = series_row_after(series, to_ns) - 1;
        for (uint32_t i = 0; i < series->metric_count; i++)
            *values++ = series->metrics[i].kind == METRIC_COUNTER
                            ? series_total(series, i, from_ns, to_ns) / seconds
                            : series_rate(series, last, i);
    }

    for (uint32_t i = 0; i < series->mark_count; i++) {
        const struct series_mark *mark = &series->marks[i];
        struct timeline_phase *phase = &timeline->phases[timeline->phase_count++];
        *phase = (struct timeline_phase){
            .run = mark->run,
            .number = mark->number,
            .from_s = (double)(int64_t)(mark->from_ns - start_ns) / 1e9,
            .to_s = (double)(int64_t)(mark->to_ns - start_ns) / 1e9,
        };
        memcpy(phase->name, mark->phase, sizeof phase->name);
        provenance_take(series, mark->from_ns, mark->to_ns, &phase->provenance);
        if (strcmp(phase->name, "epoch") == 0)
            provenance_add(&timeline->provenance, &phase->provenance);
    }
    qsort(timeline->phases, timeline->phase_count, sizeof *timeline->phases, by_start);
    timeline->phases_lost = series->marks_lost;
    return timeline;
}

struct timeline *timeline_blank(uint32_t columns, uint64_t rows, uint64_t phases)
{
    struct timeline *timeline = memory_zeroed(sizeof *timeline);

    if (!timeline)
        return NULL;
    timeline->column_count = timeline->figure_count = columns;
    timeline->keys = memory_array(columns, sizeof *timeline->keys);
    timeline->values = memory_array(rows, (1 + (size_t)columns) * sizeof *timeline->values);
    timeline->phases = memory_array(phases, sizeof *timeline->phases);
    if (!timeline->keys || !timeline->values || !timeline->phases) {
        timeline_destroy(timeline);
        return NULL;
    }
    return timeline;
}

void timeline_destroy(struct timeline *timeline)
{
    if (!timeline)
        return;
    for (uint32_t i = 0; i < timeline->node_count; i++)
        timeline_destroy(timeline->nodes[i].timeline);
    free(timeline->nodes);
    free(timeline->keys);
    free(timeline->values);
    free(timeline->phases);
    free(timeline);
}

double *timeline_row(const struct timeline *timeline, uint64_t row)
{
    return timeline->values + row * (1 + (uint64_t)timeline->column_count);
}

double timeline_time_s(const struct timeline *timeline, uint64_t row)
{
    return timeline_row(timeline, row)[0];
}

double timeline_value(const struct timeline *timeline, uint64_t row, uint32_t column)
{
    assert(row < timeline->row_count && column < timeline->column_count);
    return timeline_row(timeline, row)[1 + column];
}

uint32_t timeline_find(const struct timeline *timeline, const char *key)
{
    uint32_t column = 0;

    while (column < timeline->column_count && strcmp(timeline->keys[column], key) != 0)
        column++;
    return column;
}

static double begin_of(const struct timeline *timeline, uint64_t row)
{
    return row ? timeline_time_s(timeline, row - 1) : timeline->begin_s;
}

/* known_s: for how long of the interval it is known. */
static double mean_of(const struct timeline *timeline, uint32_t column, double from_s, double to_s,
                      double *known_s)
{
    double sum = 0, seconds = 0;
    uint64_t row = 0, high = timeline->row_count;

    while (row < high) { /* the first row that ends after from_s */
        const uint64_t middle = row + (high - row) / 2;
        if (timeline_time_s(timeline, middle) <= from_s)
            row = middle + 1;
        else
            high = middle;
    }
    for (; row < timeline->row_count && begin_of(timeline, row) < to_s; row++) {
        const double share =
            fmin(timeline_time_s(timeline, row), to_s) - fmax(begin_of(timeline, row), from_s);
        const double value = timeline_value(timeline, row, column);
        if (share > 0 && isfinite(value)) {
            sum += value * share;
            seconds += share;
        }
    }
    *known_s = seconds;
    return seconds > 0 ? sum / seconds : NAN;
}

double timeline_mean(const struct timeline *timeline, uint32_t column, double from_s, double to_s)
{
    double known_s;

    return mean_of(timeline, column, from_s, to_s, &known_s);
}

double timeline_end_s(const struct timeline *timeline)
{
    return begin_of(timeline, timeline->row_count);
}

double timeline_rebin(const struct timeline *timeline, uint32_t column, double from_s, double to_s)
{
    const double there_s = fmin(to_s, timeline_end_s(timeline)) - fmax(from_s, timeline->begin_s);
    double known_s;
    const double mean = mean_of(timeline, column, from_s, to_s, &known_s);

    if (known_s < there_s / 2)
        return NAN;
    /* A level, such as bytes in memory, holds for the whole row; everything else is a rate over
     * time. */
    const char *unit = strrchr(timeline->keys[column], '_');
    const bool is_level = unit && (strcmp(unit, "_bytes") == 0 || strcmp(unit, "_watts") == 0);
    return is_level || !(to_s > from_s) ? mean : mean * there_s / (to_s - from_s);
}
