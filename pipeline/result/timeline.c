/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "pipeline/result/meter.h"
#include "pipeline/result/timeline.h"

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
        for (uint32_t i = 0; i < series->metric_count; i++)
            *values++ = series->metrics[i].kind == METRIC_COUNTER
                            ? series_total(series, i, from_ns, to_ns) / seconds
                            : series_rate(series, row, i);
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

/* ---- several nodes: in one piece of memory ---- */

static uint64_t keys_bytes(const struct timeline *timeline)
{
    return timeline->column_count * (uint64_t)TIMELINE_KEY_BYTES;
}

static uint64_t values_bytes(const struct timeline *timeline)
{
    return timeline->row_count * (1 + (uint64_t)timeline->column_count) * sizeof(double);
}

static uint64_t phases_bytes(const struct timeline *timeline)
{
    return timeline->phase_count * sizeof *timeline->phases;
}

static uint64_t packed_bytes(const struct timeline *timeline)
{
    return sizeof *timeline + keys_bytes(timeline) + values_bytes(timeline) +
           phases_bytes(timeline);
}

void *timeline_pack(const struct timeline *timeline, uint32_t columns, uint64_t *bytes)
{
    struct timeline head = *timeline;

    if (columns < head.column_count)
        head.column_count = columns;
    if (columns < head.figure_count)
        head.figure_count = columns;
    head.node_count = 0;
    *bytes = packed_bytes(&head);
    char *packed = memory_zeroed(*bytes), *at = packed;
    if (!packed)
        return NULL;
    memcpy(at, &head, sizeof head);
    at += sizeof head;
    memcpy(at, timeline->keys, keys_bytes(&head));
    at += keys_bytes(&head);
    assert(head.figure_count <= head.column_count);
    const size_t row_bytes = (1 + (size_t)head.column_count) * sizeof(double);
    for (uint64_t row = 0; row < head.row_count; row++, at += row_bytes)
        memcpy(at, timeline_row(timeline, row), row_bytes);
    memcpy(at, timeline->phases, phases_bytes(&head));
    return packed;
}

static bool sound_provenance(const struct provenance *provenance)
{
    return provenance->witness >= PROVENANCE_NOTHING && provenance->witness <= PROVENANCE_RECEIVED;
}

/* Check that texts are terminated and enumerations in range: a rank may run another build. */
static bool is_sound(const struct timeline *timeline)
{
    bool sound =
        sound_provenance(&timeline->provenance) && timeline->absent_count <= TIMELINE_REASONS;

    for (uint32_t i = 0; sound && i < timeline->absent_count; i++)
        sound = memchr(timeline->absent[i], 0, sizeof timeline->absent[i]) != NULL;
    for (uint32_t i = 0; sound && i < timeline->column_count; i++)
        sound = memchr(timeline->keys[i], 0, sizeof timeline->keys[i]) != NULL;
    for (uint32_t i = 0; sound && i < timeline->phase_count; i++)
        sound = memchr(timeline->phases[i].name, 0, sizeof timeline->phases[i].name) &&
                sound_provenance(&timeline->phases[i].provenance);
    return sound;
}

/* Let head describe the arrays of a blank timeline instead of its own. */
static void take_head(struct timeline *timeline, struct timeline head)
{
    head.keys = timeline->keys;
    head.values = timeline->values;
    head.phases = timeline->phases;
    head.nodes = NULL;
    head.node_count = 0;
    *timeline = head;
}

struct timeline *timeline_unpack(const void *packed, uint64_t bytes)
{
    const char *at = packed;
    struct timeline head;

    if (bytes < sizeof head)
        return NULL;
    memcpy(&head, at, sizeof head);
    if (head.row_count > bytes / sizeof(double) || packed_bytes(&head) != bytes ||
        head.figure_count > head.column_count)
        return NULL;
    struct timeline *timeline = timeline_blank(head.column_count, head.row_count, head.phase_count);
    if (!timeline)
        return NULL;
    take_head(timeline, head);
    memcpy(timeline->keys, at += sizeof head, keys_bytes(&head));
    memcpy(timeline->values, at += keys_bytes(&head), values_bytes(&head));
    memcpy(timeline->phases, at + values_bytes(&head), phases_bytes(&head));
    if (is_sound(timeline))
        return timeline;
    timeline_destroy(timeline);
    return NULL;
}

/* ---- another clock ---- */

void timeline_move(struct timeline *timeline, double start_s, double end_s)
{
    const double length_s = timeline_end_s(timeline);
    const double pace = length_s > 0 ? (end_s - start_s) / length_s : 1;

    timeline->begin_s = start_s + pace * timeline->begin_s;
    for (uint64_t row = 0; row < timeline->row_count; row++) {
        double *time_s = timeline_row(timeline, row);
        *time_s = start_s + pace * *time_s;
    }
    for (uint32_t i = 0; i < timeline->phase_count; i++) {
        timeline->phases[i].from_s = start_s + pace * timeline->phases[i].from_s;
        timeline->phases[i].to_s = start_s + pace * timeline->phases[i].to_s;
    }
}

/* ---- sums ---- */

/* Rates of bytes and counts, bytes, watts, and the program's own counters. */
static bool adds_up(const char *key)
{
    static const char *const ends[] = {"_per_s", "_bytes", "_watts"};
    const size_t length = strlen(key);

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (length >= strlen(ends[i]) && strcmp(key + length - strlen(ends[i]), ends[i]) == 0)
            return true;
    for (int i = 0; i < METER_COUNTS; i++)
        if (meter_figures[i].key && strcmp(key, meter_figures[i].key) == 0)
            return true;
    return false;
}

struct timeline *timeline_join(struct timeline_node *nodes, uint32_t count)
{
    const struct timeline *first = nodes[0].timeline;
    const double first_end_s = timeline_end_s(first);
    double end_s = first_end_s;
    uint32_t columns = 0;

    assert(count > 0);
    for (uint32_t i = 0; i < count; i++) {
        columns += nodes[i].timeline->figure_count;
        if (nodes[i].timeline->row_count)
            end_s = fmax(end_s, timeline_end_s(nodes[i].timeline));
    }
    /* After the first node's rows come rows of the same length until the last node ends; a
     * remainder too short for its own row extends the last one. */
    const double rest_s = end_s - first_end_s;
    const double rest_rows = first->interval_s > 0 ? rest_s / first->interval_s : 0;
    uint64_t more = (uint64_t)fmin(rest_rows + 0.5, TIMELINE_ROWS);
    if (more == 0 && rest_s > 0 && first->row_count == 0)
        more = 1;
    const uint64_t rows = first->row_count + more;
    struct timeline *sum = timeline_blank(columns, rows, first->phase_count);
    if (!sum) {
        for (uint32_t i = 0; i < count; i++)
            timeline_destroy(nodes[i].timeline);
        free(nodes);
        return NULL;
    }
    take_head(sum, *first); /* start time, sampling and provenance */
    sum->nodes = nodes;
    sum->node_count = count;
    sum->row_count = rows;
    sum->column_count = 0;
    for (uint32_t i = 0; i < count; i++) { /* the figures of all nodes that can be summed */
        const struct timeline *timeline = nodes[i].timeline;
        for (uint32_t k = 0; k < timeline->figure_count; k++)
            if (adds_up(timeline->keys[k]) &&
                timeline_find(sum, timeline->keys[k]) == sum->column_count)
                memcpy(sum->keys[sum->column_count++], timeline->keys[k], sizeof *sum->keys);
    }
    sum->figure_count = sum->column_count;
    for (uint64_t row = 0; row < first->row_count; row++)
        timeline_row(sum, row)[0] = timeline_time_s(first, row);
    for (uint64_t i = 1; i < more; i++)
        timeline_row(sum, first->row_count + i - 1)[0] =
            first_end_s + rest_s * (double)i / (double)more;
    if (rows)
        timeline_row(sum, rows - 1)[0] = end_s;
    assert(sum->column_count <= columns);

    /* A value unknown on one node is unknown in the sum. A node that lacks the column, or was not
     * running for most of the row, adds nothing that is unknown: rows of two nodes never end
     * together. */
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < sum->column_count; k++) {
            const struct timeline *timeline = nodes[i].timeline;
            const uint32_t from = timeline_find(timeline, sum->keys[k]);
            double before_s = sum->begin_s;
            for (uint64_t row = 0; row < rows && from < timeline->column_count; row++) {
                double *values = timeline_row(sum, row);
                const double there_s =
                    fmin(values[0], timeline_end_s(timeline)) - fmax(before_s, timeline->begin_s);
                const bool there = there_s > (values[0] - before_s) / 2;
                const double value = timeline_rebin(timeline, from, before_s, values[0]);
                if (there || !isnan(value))
                    values[1 + k] = isnan(values[1 + k]) ? NAN : values[1 + k] + value;
                before_s = values[0];
            }
        }

    memcpy(sum->phases, first->phases, phases_bytes(sum));
    for (uint32_t i = 1; i < count; i++) {
        provenance_add(&sum->provenance, &nodes[i].timeline->provenance);
        for (uint32_t k = 0; k < sum->phase_count; k++) { /* the same phase there */
            struct timeline_phase *same = &sum->phases[k];
            for (uint32_t p = 0; p < nodes[i].timeline->phase_count; p++) {
                const struct timeline_phase *phase = &nodes[i].timeline->phases[p];
                if (phase->run == same->run && phase->number == same->number &&
                    strcmp(phase->name, same->name) == 0) {
                    provenance_add(&same->provenance, &phase->provenance);
                    break;
                }
            }
        }
    }
    return sum;
}
