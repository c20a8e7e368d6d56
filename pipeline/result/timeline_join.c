/* SPDX-License-Identifier: Apache-2.0
 * Timelines of several nodes: serialised, aligned and summed. */
#include "base/memory.h"
#include "pipeline/result/meter.h"
#include "pipeline/result/timeline.h"

#include <assert.h>
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
