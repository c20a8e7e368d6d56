/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes and reads the time series of a result as CSV (--series).
 */
#include "report/report.h"

#include "base/escape.h"
#include "base/fail.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PHASES_MAX = 4096 };

/* Column prefix of each node. */
#define FIRST_KEY "read_bytes_per_s"

static void print_value(FILE *stream, double value)
{
    if (isfinite(value))
        fprintf(stream, ",%.9g", value);
    else
        fputc(',', stream);
}

void report_series_csv(FILE *stream, const struct timeline *timeline)
{
    double from_s = 0;

    fputs("time_s,phases", stream);
    for (uint32_t k = 0; k < timeline->column_count; k++)
        fprintf(stream, ",%s", timeline->keys[k]);
    /* Every column of every node is "HOST:key"; nodes of the same name get a number. */
    for (uint32_t i = 0; i < timeline->node_count; i++) {
        const struct timeline_node *node = &timeline->nodes[i];
        char number[16] = "";
        for (uint32_t k = 0; k < timeline->node_count; k++)
            if (k != i && strcmp(timeline->nodes[k].host, node->host) == 0)
                snprintf(number, sizeof number, "#%u", i);
        for (uint32_t k = 0; k < node->timeline->column_count; k++) {
            fputc(',', stream);
            for (const char *at = escape_shown(node->host); *at; at++)
                fputc(strchr(",:\"", *at) ? '_' : *at, stream); /* separators */
            fprintf(stream, "%s:%s", number, node->timeline->keys[k]);
        }
    }
    fputc('\n', stream);
    for (uint64_t i = 0; i < timeline->row_count; i++) {
        double to_s = timeline_time_s(timeline, i);
        fprintf(stream, "%.6f,", to_s);
        /* Phases during the row, "epoch 0+shuffle 1"; names need no quotes. */
        const char *plus = "";
        for (uint32_t k = 0; k < timeline->phase_count; k++) {
            const struct timeline_phase *phase = &timeline->phases[k];
            if (phase->from_s >= to_s || phase->to_s <= from_s)
                continue;
            fprintf(stream, "%s%s %llu", plus, phase->name, (unsigned long long)phase->number);
            plus = "+";
        }
        for (uint32_t k = 0; k < timeline->column_count; k++)
            print_value(stream, timeline_value(timeline, i, k));
        for (uint32_t n = 0; n < timeline->node_count; n++)
            for (uint32_t k = 0; k < timeline->nodes[n].timeline->column_count; k++)
                print_value(stream, timeline_rebin(timeline->nodes[n].timeline, k, from_s, to_s));
        fputc('\n', stream);
        from_s = to_s;
    }
}

/* ---- reading ---- */

/* First column of a node in the table. */
struct node_columns {
    char host[sizeof(((struct timeline_node *)0)->host)];
    uint32_t first;
};

struct table {
    struct timeline *all; /* every column, node columns without their host */
    struct node_columns *nodes;
    uint32_t node_count;
};

static int load_heading(const char *name, char *heading, struct table *table)
{
    struct timeline *all = table->all;
    const char *key;

    strsep(&heading, ",");
    strsep(&heading, ",");
    while ((key = strsep(&heading, ","))) {
        const size_t length = strcspn(key, ":");
        /* "n1:read_bytes_per_s" starts the columns of n1. Counter names may also contain a colon,
         * but end differently. */
        if (key[length] == ':' && strcmp(key + length + 1, FIRST_KEY) == 0) {
            struct node_columns *node = &table->nodes[table->node_count++];
            if (length >= sizeof node->host)
                return fail(EINVAL, "%s: host name of %zu bytes, at most %zu: %.40s...", name,
                            length, sizeof node->host - 1, key);
            *node = (struct node_columns){.first = all->column_count};
            memcpy(node->host, key, length);
        }
        if (table->node_count)
            key += length + (key[length] == ':');
        if (strlen(key) >= TIMELINE_KEY_BYTES)
            return fail(EINVAL, "%s: column name of %zu bytes, at most %d: %.40s...", name,
                        strlen(key), TIMELINE_KEY_BYTES - 1, key);
        snprintf(all->keys[all->column_count++], TIMELINE_KEY_BYTES, "%s", key);
    }
    all->figure_count = all->column_count;
    return 0;
}

/* Load "epoch 0+shuffle 1": the phases from from_s to to_s. Phases that lasted until from_s
 * continue. */
static int load_phases(const char *name, char *phases, double from_s, double to_s,
                       struct timeline *timeline, uint64_t capacity)
{
    char *each;

    while (*phases && (each = strsep(&phases, "+"))) {
        struct timeline_phase phase = {.from_s = from_s, .to_s = to_s};
        unsigned long long number;
        if (sscanf(each, "%15s %llu", phase.name, &number) != 2)
            return fail(EINVAL, "%s: second %g: '%.40s' is not a phase", name, to_s, each);
        phase.number = number;
        uint32_t i = timeline->phase_count;
        while (i-- > 0)
            if (timeline->phases[i].to_s == from_s && timeline->phases[i].number == number &&
                strcmp(timeline->phases[i].name, phase.name) == 0)
                break;
        if (i != UINT32_MAX)
            timeline->phases[i].to_s = to_s;
        else if (timeline->phase_count < capacity)
            timeline->phases[timeline->phase_count++] = phase;
        else
            timeline->phases_lost++;
        if (!phases)
            break;
    }
    return 0;
}

static int load_row(const char *name, char *line, struct timeline *timeline, uint64_t phases)
{
    const uint64_t row = timeline->row_count;
    double *values = timeline_row(timeline, row);
    const double before_s = row ? timeline_time_s(timeline, row - 1) : 0;
    char *cell = strsep(&line, ","), *end;

    values[0] = strtod(cell, &end);
    if (end == cell || !(values[0] >= before_s))
        return fail(EINVAL, "%s: row %llu does not start with a time after %g s", name,
                    (unsigned long long)row + 1, before_s);
    cell = strsep(&line, ",");
    if (cell && load_phases(name, cell, before_s, values[0], timeline, phases))
        return -EINVAL;
    for (uint32_t k = 0; k < timeline->column_count; k++) {
        cell = strsep(&line, ",");
        if (!cell)
            return fail(EINVAL, "%s: row %llu has %u numbers, expected %u", name,
                        (unsigned long long)row + 1, k, timeline->column_count);
        values[1 + k] = *cell ? strtod(cell, NULL) : NAN;
    }
    timeline->row_count++;
    timeline->interval_s = values[0] / (double)timeline->row_count;
    return 0;
}

/* Extract columns of the table, with its phases. */
static struct timeline *take_columns(const struct timeline *all, uint32_t first, uint32_t count)
{
    struct timeline *part = timeline_blank(count, all->row_count, all->phase_count);

    if (!part)
        return NULL;
    part->interval_s = all->interval_s;
    part->row_count = all->row_count;
    part->phase_count = all->phase_count;
    part->phases_lost = all->phases_lost;
    memcpy(part->phases, all->phases, all->phase_count * sizeof *all->phases);
    memcpy(part->keys, all->keys + first, count * sizeof *all->keys);
    for (uint64_t row = 0; row < all->row_count; row++) {
        const double *from = timeline_row(all, row);
        double *to = part->values + row * (1 + (uint64_t)count);
        to[0] = from[0];
        memcpy(to + 1, from + 1 + first, count * sizeof *to);
    }
    return part;
}

/* The columns before the first node's are the sums. */
static struct timeline *deal_out(const struct table *table)
{
    struct timeline *sum = take_columns(table->all, 0, table->nodes[0].first);

    if (sum)
        sum->nodes = memory_array(table->node_count, sizeof *sum->nodes);
    for (uint32_t i = 0; sum && sum->nodes && i < table->node_count; i++) {
        const uint32_t first = table->nodes[i].first;
        const uint32_t end =
            i + 1 < table->node_count ? table->nodes[i + 1].first : table->all->column_count;
        struct timeline_node *node = &sum->nodes[i];
        assert(first < end); /* a node has the column that begins it */
        memcpy(node->host, table->nodes[i].host, sizeof node->host);
        node->timeline = take_columns(table->all, first, end - first);
        if (!node->timeline)
            break;
        sum->node_count++;
    }
    if (sum && sum->node_count < table->node_count) {
        timeline_destroy(sum);
        return NULL;
    }
    return sum;
}

struct timeline *report_series_load(const char *name, char *text)
{
    const size_t bytes = strlen(text);
    size_t columns = 0, rows = 0;
    char *heading = strsep(&text, "\n");

    if (strncmp(heading, "time_s,phases,", 14) == 0)
        for (const char *at = heading; (at = strchr(at, ',')); at++)
            columns++;
    for (const char *at = text; at && (at = strchr(at, '\n')); at++)
        rows++;
    if (columns < 2 || ++rows > bytes / columns + 1 || columns > UINT32_MAX) {
        fail(EINVAL, "%s: not an iobench series (written with --series FILE)", name);
        return NULL;
    }
    struct table table = {.all = timeline_blank((uint32_t)columns - 1, rows, PHASES_MAX),
                          .nodes = memory_array(columns, sizeof *table.nodes)};
    struct timeline *timeline = NULL;
    if (table.all && table.nodes) {
        table.all->column_count = 0;
        char *line;
        int code = load_heading(name, heading, &table);
        while (code == 0 && (line = strsep(&text, "\n")))
            if (*line)
                code = load_row(name, line, table.all, PHASES_MAX);
        if (code == 0)
            timeline = table.node_count ? deal_out(&table) : table.all;
    }
    if (timeline != table.all)
        timeline_destroy(table.all);
    free(table.nodes);
    return timeline;
}
