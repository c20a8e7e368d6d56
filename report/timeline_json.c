/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes and reads the time series of a result as JSON (docs/json.md).
 */
#include "report/report.h"

#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "report/load.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum { COLUMNS_MAX = 4096, NODES_MAX = 1 << 16 };

/* ---- writing ---- */

static json_t *provenance_of(struct provenance provenance)
{
    json_t *object = json_object();

    for (int i = 0; i < PROVENANCE_PARTS; i++) {
        const char *key = provenance_keys[i];
        const double value = *provenance_part(&provenance, i);
        char reason[64];
        if (isfinite(value)) {
            json_object_set_new(object, key, json_integer((json_int_t)llround(value)));
            continue;
        }
        snprintf(reason, sizeof reason, "%s_reason", key);
        json_object_set_new(object, key, json_null());
        json_object_set_new(object, reason, json_text("not counted by any probe"));
    }
    json_put_text(object, "method", provenance_witness_text(provenance.witness));
    return object;
}

static json_t *phases_of(const struct timeline *timeline)
{
    json_t *phases = json_array();

    for (uint32_t i = 0; i < timeline->phase_count; i++) {
        const struct timeline_phase *phase = &timeline->phases[i];
        json_t *object = json_object();
        json_put_text(object, "phase", phase->name);
        json_object_set_new(object, "run", json_integer((json_int_t)phase->run));
        json_object_set_new(object, "epoch", json_integer((json_int_t)phase->number));
        json_put_number(object, "from_s", phase->from_s);
        json_put_number(object, "to_s", phase->to_s);
        if (strcmp(phase->name, "epoch") == 0)
            json_object_set_new(object, "origin", provenance_of(phase->provenance));
        json_array_append_new(phases, object);
    }
    return phases;
}

static json_t *columns_of(const struct timeline *timeline)
{
    json_t *columns = json_array();

    json_array_append_new(columns, json_text("time_s"));
    for (uint32_t i = 0; i < timeline->figure_count; i++)
        json_array_append_new(columns, json_text(timeline->keys[i]));
    return columns;
}

static json_t *rows_of(const struct timeline *timeline)
{
    json_t *rows = json_array();

    for (uint64_t i = 0; i < timeline->row_count; i++) {
        json_t *row = json_array();
        json_array_append_new(row, json_number(timeline_time_s(timeline, i)));
        for (uint32_t k = 0; k < timeline->figure_count; k++)
            json_array_append_new(row, json_number(timeline_value(timeline, i, k)));
        json_array_append_new(rows, row);
    }
    return rows;
}

static json_t *nodes_of(const struct timeline *timeline)
{
    json_t *nodes = json_array();

    for (uint32_t i = 0; i < timeline->node_count; i++) {
        const struct timeline_node *node = &timeline->nodes[i];
        json_t *object = report_timeline(node->timeline);
        json_put_text(object, "host", node->host);
        json_put_number(object, "begin_s", node->timeline->begin_s);
        json_put_number(object, "clock_offset_s", node->clock_offset_s);
        json_put_number(object, "clock_uncertainty_s", node->clock_uncertainty_s);
        json_put_number(object, "clock_drift_s", node->clock_drift_s);
        json_array_append_new(nodes, object);
    }
    return nodes;
}

json_t *report_timeline(const struct timeline *timeline)
{
    json_t *object = json_object(), *absent = json_array();

    for (uint32_t i = 0; i < timeline->absent_count; i++)
        json_array_append_new(absent, json_text(timeline->absent[i]));
    json_object_set_new(object, "start_unix_s", json_number((double)timeline->start_unix_ns / 1e9));
    json_object_set_new(object, "start_monotonic_s",
                        json_number((double)timeline->start_monotonic_ns / 1e9));
    json_put_number(object, "clock_step_s", timeline->clock_step_s);
    json_put_number(object, "interval_s", timeline->interval_s);
    json_object_set_new(object, "samples", json_integer((json_int_t)timeline->samples));
    json_object_set_new(object, "late_samples", json_integer((json_int_t)timeline->late));
    json_put_number(object, "sampler_cpu_percent", timeline->cpu_percent);
    json_object_set_new(object, "absent", absent);
    json_object_set_new(object, "origin", provenance_of(timeline->provenance));
    json_object_set_new(object, "phases", phases_of(timeline));
    json_object_set_new(object, "lost_phases", json_integer((json_int_t)timeline->phases_lost));
    json_object_set_new(object, "columns", columns_of(timeline));
    json_object_set_new(object, "rows", rows_of(timeline));
    if (timeline->node_count)
        json_object_set_new(object, "nodes", nodes_of(timeline));
    return object;
}

/* ---- reading ---- */

static double real_of(const json_t *value)
{
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* Files are untrusted. */
static uint64_t count_of(const json_t *object, const char *key)
{
    return (uint64_t)fmin(fmax(0, load_number(object, key)), 0x1p62);
}

static uint64_t nanoseconds_of(const json_t *object, const char *key)
{
    return (uint64_t)llround(fmin(fmax(0, load_number(object, key)), 9e9) * 1e9);
}

static void load_provenance(const json_t *object, struct provenance *provenance)
{
    const char *method = load_text(object, "method");

    for (int i = 0; i < PROVENANCE_PARTS; i++)
        *provenance_part(provenance, i) = load_number(object, provenance_keys[i]);
    for (int witness = PROVENANCE_NOTHING; method && witness <= PROVENANCE_RECEIVED; witness++)
        if (strcmp(method, provenance_witness_text((enum provenance_witness)witness)) == 0)
            provenance->witness = (enum provenance_witness)witness;
}

static int load_keys(const char *name, const json_t *columns, struct timeline *timeline)
{
    for (uint32_t i = 0; i <= timeline->column_count; i++) {
        const char *key = json_string_value(json_array_get(columns, i));
        if (!key || strlen(key) >= TIMELINE_KEY_BYTES || (i == 0 && strcmp(key, "time_s") != 0))
            return fail(EINVAL, "%s: series: unknown name of column %u", name, i);
        if (i)
            memcpy(timeline->keys[i - 1], key, strlen(key) + 1);
    }
    return 0;
}

/* Check before allocating. */
static int check_rows(const char *name, const json_t *rows, size_t width)
{
    for (size_t i = 0; i < json_array_size(rows); i++)
        if (json_array_size(json_array_get(rows, i)) != width)
            return fail(EINVAL, "%s: series: row %zu has %zu numbers, expected %zu", name, i,
                        json_array_size(json_array_get(rows, i)), width);
    return 0;
}

static int load_rows(const char *name, const json_t *rows, struct timeline *timeline)
{
    const size_t width = 1 + (size_t)timeline->column_count;
    double before_s = timeline->begin_s;

    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        double *values = timeline->values + i * width;
        for (size_t k = 0; k < width; k++)
            values[k] = real_of(json_array_get(row, k));
        if (!(values[0] >= before_s))
            return fail(EINVAL, "%s: series: row %zu is earlier than its predecessor", name, i);
        before_s = values[0];
        timeline->row_count++;
    }
    return 0;
}

static int load_phases(const char *name, const json_t *phases, struct timeline *timeline)
{
    for (size_t i = 0; i < json_array_size(phases); i++) {
        const json_t *object = json_array_get(phases, i);
        struct timeline_phase *phase = &timeline->phases[timeline->phase_count++];
        const char *phase_name = load_text(object, "phase");
        *phase = (struct timeline_phase){.run = count_of(object, "run"),
                                         .number = count_of(object, "epoch"),
                                         .from_s = load_number(object, "from_s"),
                                         .to_s = load_number(object, "to_s")};
        if (!phase_name || strlen(phase_name) >= sizeof phase->name || !isfinite(phase->from_s) ||
            !isfinite(phase->to_s))
            return fail(EINVAL, "%s: series: phase %zu without name or time", name, i);
        memcpy(phase->name, phase_name, strlen(phase_name) + 1);
        if (json_object_get(object, "origin"))
            load_provenance(json_object_get(object, "origin"), &phase->provenance);
    }
    return 0;
}

static void load_sampling(const json_t *series, struct timeline *timeline)
{
    const json_t *absent = json_object_get(series, "absent");

    timeline->start_unix_ns = nanoseconds_of(series, "start_unix_s");
    timeline->start_monotonic_ns = nanoseconds_of(series, "start_monotonic_s");
    timeline->clock_step_s = load_number(series, "clock_step_s");
    timeline->interval_s = load_number(series, "interval_s");
    timeline->begin_s = json_number_value(json_object_get(series, "begin_s")); /* none: 0 */
    timeline->samples = count_of(series, "samples");
    timeline->late = count_of(series, "late_samples");
    timeline->cpu_percent = load_number(series, "sampler_cpu_percent");
    timeline->phases_lost = count_of(series, "lost_phases");
    for (size_t i = 0; i < json_array_size(absent) && i < TIMELINE_REASONS; i++) {
        const char *reason = json_string_value(json_array_get(absent, i));
        snprintf(timeline->absent[timeline->absent_count++], sizeof timeline->absent[0], "%s",
                 reason ? reason : "");
    }
    load_provenance(json_object_get(series, "origin"), &timeline->provenance);
}

static struct timeline *load_one(const char *name, const json_t *series)
{
    const json_t *columns = json_object_get(series, "columns");
    const json_t *rows = json_object_get(series, "rows");
    const json_t *phases = json_object_get(series, "phases");

    if (json_array_size(columns) < 2 || json_array_size(columns) > COLUMNS_MAX) {
        fail(EINVAL, "%s: no series (was --sample-interval none used?)", name);
        return NULL;
    }
    if (check_rows(name, rows, json_array_size(columns)))
        return NULL;
    struct timeline *timeline = timeline_blank((uint32_t)json_array_size(columns) - 1,
                                               json_array_size(rows), json_array_size(phases));
    if (!timeline)
        return NULL;
    load_sampling(series, timeline);
    if (load_keys(name, columns, timeline) || load_rows(name, rows, timeline) ||
        load_phases(name, phases, timeline)) {
        timeline_destroy(timeline);
        return NULL;
    }
    return timeline;
}

/* The series of a node have no nodes themselves. */
static int load_nodes(const char *name, const json_t *nodes, struct timeline *timeline)
{
    const size_t count = json_array_size(nodes);

    if (count > NODES_MAX)
        return fail(EINVAL, "%s: series: invalid number of nodes: %zu", name, count);
    timeline->nodes = memory_array(count, sizeof *timeline->nodes);
    if (!timeline->nodes)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        const json_t *object = json_array_get(nodes, i);
        struct timeline_node *node = &timeline->nodes[timeline->node_count++];
        const char *host = load_text(object, "host");
        if (!host || strlen(host) >= sizeof node->host)
            return fail(EINVAL, "%s: series: node %zu without a valid host", name, i);
        memcpy(node->host, host, strlen(host) + 1);
        node->clock_offset_s = load_number(object, "clock_offset_s");
        node->clock_uncertainty_s = load_number(object, "clock_uncertainty_s");
        node->clock_drift_s = load_number(object, "clock_drift_s");
        node->timeline = load_one(name, object);
        if (!node->timeline)
            return -EINVAL;
    }
    return 0;
}

struct timeline *report_timeline_load(const char *name, const json_t *series)
{
    struct timeline *timeline = load_one(name, series);

    if (timeline && load_nodes(name, json_object_get(series, "nodes"), timeline)) {
        timeline_destroy(timeline);
        return NULL;
    }
    return timeline;
}

/* ---- iobench monitor --json ---- */

static bool is_figure(const char *key, const json_t *value)
{
    return strcmp(key, "unix_time_s") != 0 && strcmp(key, "elapsed_s") != 0 &&
           strcmp(key, "interval_s") != 0 && (json_is_number(value) || json_is_null(value));
}

/* The first line defines the figures of all lines. */
static struct timeline *start_lines(const char *name, const json_t *first, size_t bytes,
                                    size_t rows)
{
    const size_t figures = json_object_size(first);
    struct timeline *timeline;
    const char *key;
    json_t *value;

    if (figures == 0 || figures > COLUMNS_MAX || rows > bytes / figures) {
        fail(EINVAL, "%s: first line is not from iobench monitor --json", name);
        return NULL;
    }
    timeline = timeline_blank((uint32_t)figures, rows, 0);
    if (!timeline)
        return NULL;
    timeline->column_count = 0;
    timeline->start_unix_ns =
        nanoseconds_of(first, "unix_time_s") - nanoseconds_of(first, "elapsed_s");
    json_object_foreach((json_t *)(uintptr_t)first, key,
                        value) if (is_figure(key, value) && strlen(key) < TIMELINE_KEY_BYTES)
        snprintf(timeline->keys[timeline->column_count++], TIMELINE_KEY_BYTES, "%s", key);
    timeline->figure_count = timeline->column_count;
    return timeline;
}

static int load_line(const char *name, const json_t *line, struct timeline *timeline)
{
    const uint64_t row = timeline->row_count;
    double *values = timeline_row(timeline, row);

    values[0] = load_number(line, "elapsed_s");
    if (!(values[0] >= (row ? timeline_time_s(timeline, row - 1) : 0)))
        return fail(EINVAL, "%s: line %llu is not from iobench monitor --json", name,
                    (unsigned long long)row + 1);
    for (uint32_t k = 0; k < timeline->column_count; k++)
        values[1 + k] = real_of(json_object_get(line, timeline->keys[k]));
    timeline->row_count++;
    timeline->interval_s = values[0] / (double)timeline->row_count;
    return 0;
}

struct timeline *report_lines_load(const char *name, const char *text)
{
    const size_t bytes = strlen(text);
    struct timeline *timeline = NULL;
    size_t rows = 1, length;
    int code = 0;

    for (const char *at = text; (at = strchr(at, '\n')); at++)
        rows++;
    for (; *text && code == 0; text += length + (text[length] == '\n')) {
        length = strcspn(text, "\n");
        json_t *line = json_loadb(text, length, 0, NULL);
        if (!timeline)
            timeline = start_lines(name, line, bytes, rows);
        code = timeline ? load_line(name, line, timeline) : -EINVAL;
        json_decref(line);
    }
    if (code) {
        timeline_destroy(timeline);
        timeline = NULL;
    }
    return timeline;
}
