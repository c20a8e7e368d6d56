/* SPDX-License-Identifier: Apache-2.0
 * Timelines of several nodes: serialised, aligned and summed. */
#include "base/memory.h"
#include "pipeline/result/timeline.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- one piece of memory ---- */

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
    static const char *const ends[] = {"_per_s",
                                       "_bytes",
                                       "_watts",
                                       "_for_storage_percent",
                                       "_for_memory_percent",
                                       "_for_records_percent",
                                       "_for_batch_percent",
                                       "_busy_percent"};

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const size_t length = strlen(key), end = strlen(ends[i]);
        if (length >= end && strcmp(key + length - end, ends[i]) == 0)
            return true;
    }
    return false;
}

/* Collect the figures of all nodes that can be summed. */
static void name_sums(const struct timeline_node *nodes, uint32_t count, struct timeline *sum)
{
    sum->column_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct timeline *timeline = nodes[i].timeline;
        for (uint32_t k = 0; k < timeline->figure_count; k++)
            if (adds_up(timeline->keys[k]) &&
                timeline_find(sum, timeline->keys[k]) == sum->column_count)
                memcpy(sum->keys[sum->column_count++], timeline->keys[k], sizeof *sum->keys);
    }
    sum->figure_count = sum->column_count;
}

/* A value unknown on one node is unknown in the sum. A node that lacks the column, or was not
 * running for most of the row, adds nothing that is unknown: rows of two nodes never end together.
 */
static void add_column(const struct timeline *timeline, uint32_t column, struct timeline *sum)
{
    const uint32_t from = timeline_find(timeline, sum->keys[column]);
    double before_s = sum->begin_s;

    for (uint64_t row = 0; row < sum->row_count && from < timeline->column_count; row++) {
        double *values = timeline_row(sum, row);
        const double there_s =
            fmin(values[0], timeline_end_s(timeline)) - fmax(before_s, timeline->begin_s);
        const bool there = there_s > (values[0] - before_s) / 2;
        const double value = timeline_rebin(timeline, from, before_s, values[0]);
        if (there || !isnan(value))
            values[1 + column] = isnan(values[1 + column]) ? NAN : values[1 + column] + value;
        before_s = values[0];
    }
}

static double end_of(const struct timeline_node *nodes, uint32_t count)
{
    double end_s = timeline_end_s(nodes[0].timeline);

    for (uint32_t i = 1; i < count; i++)
        if (nodes[i].timeline->row_count)
            end_s = fmax(end_s, timeline_end_s(nodes[i].timeline));
    return end_s;
}

/* Return how many rows follow those of the first node until end_s. */
static uint64_t rows_after(const struct timeline *first, double end_s)
{
    const double rest_s = end_s - timeline_end_s(first);
    const double rest_rows = first->interval_s > 0 ? rest_s / first->interval_s : 0;
    const uint64_t more = (uint64_t)fmin(rest_rows + 0.5, TIMELINE_ROWS);

    return more == 0 && rest_s > 0 && first->row_count == 0 ? 1 : more;
}

/* Take the first node's rows, then rows of the same length until the last node ends; extend the
 * last row by a remainder too short for its own row. */
static void name_rows(const struct timeline *first, double end_s, struct timeline *sum)
{
    const double from_s = timeline_end_s(first);
    const uint64_t more = sum->row_count - first->row_count;

    for (uint64_t row = 0; row < first->row_count; row++)
        timeline_row(sum, row)[0] = timeline_time_s(first, row);
    for (uint64_t i = 1; i < more; i++)
        timeline_row(sum, first->row_count + i - 1)[0] =
            from_s + (end_s - from_s) * (double)i / (double)more;
    if (sum->row_count)
        timeline_row(sum, sum->row_count - 1)[0] = end_s;
}

/* Find the same phase on another node. */
static void add_phase(const struct timeline *timeline, struct timeline_phase *sum)
{
    for (uint32_t i = 0; i < timeline->phase_count; i++) {
        const struct timeline_phase *phase = &timeline->phases[i];
        if (phase->run == sum->run && phase->number == sum->number &&
            strcmp(phase->name, sum->name) == 0) {
            provenance_add(&sum->provenance, &phase->provenance);
            return;
        }
    }
}

static void add_phases(const struct timeline_node *nodes, uint32_t count, struct timeline *sum)
{
    memcpy(sum->phases, nodes[0].timeline->phases, phases_bytes(sum));
    for (uint32_t i = 1; i < count; i++) {
        provenance_add(&sum->provenance, &nodes[i].timeline->provenance);
        for (uint32_t k = 0; k < sum->phase_count; k++)
            add_phase(nodes[i].timeline, &sum->phases[k]);
    }
}

struct timeline *timeline_join(struct timeline_node *nodes, uint32_t count)
{
    const struct timeline *first = nodes[0].timeline;
    const double end_s = end_of(nodes, count);
    const uint64_t rows = first->row_count + rows_after(first, end_s);
    uint32_t columns = 0;

    for (uint32_t i = 0; i < count; i++)
        columns += nodes[i].timeline->figure_count;
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
    name_sums(nodes, count, sum);
    name_rows(first, end_s, sum);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < sum->column_count; k++)
            add_column(nodes[i].timeline, k, sum);
    add_phases(nodes, count, sum);
    return sum;
}
