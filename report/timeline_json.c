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
        if (isfinite(value))
            json_object_set_new(object, key, json_integer((json_int_t)llround(value)));
        else
            report_null(object, key, "not counted by any probe");
    }
    json_put_text(object, "method", provenance_witness_text(provenance.witness));
    return object;
}

json_t *report_timeline(const struct timeline *timeline)
{
    json_t *object = json_object(), *absent = json_array(), *phases = json_array();
    json_t *columns = json_array(), *rows = json_array(), *nodes = json_array();

    json_put_number(object, "start_unix_s", (double)timeline->start_unix_ns / 1e9);
    json_put_number(object, "start_monotonic_s", (double)timeline->start_monotonic_ns / 1e9);
    json_put_number(object, "clock_step_s", timeline->clock_step_s);
    json_put_number(object, "interval_s", timeline->interval_s);
    json_put_count(object, "samples", timeline->samples);
    json_put_count(object, "late_samples", timeline->late);
    json_put_number(object, "sampler_cpu_percent", timeline->cpu_percent);
    for (uint32_t i = 0; i < timeline->absent_count; i++)
        json_array_append_new(absent, json_text(timeline->absent[i]));
    json_object_set_new(object, "absent", absent);
    json_object_set_new(object, "origin", provenance_of(timeline->provenance));
    for (uint32_t i = 0; i < timeline->phase_count; i++) {
        const struct timeline_phase *phase = &timeline->phases[i];
        json_t *one = json_object();
        json_put_text(one, "phase", phase->name);
        json_put_count(one, "run", phase->run);
        json_put_count(one, "epoch", phase->number);
        json_put_number(one, "from_s", phase->from_s);
        json_put_number(one, "to_s", phase->to_s);
        if (strcmp(phase->name, "epoch") == 0)
            json_object_set_new(one, "origin", provenance_of(phase->provenance));
        json_array_append_new(phases, one);
    }
    json_object_set_new(object, "phases", phases);
    json_put_count(object, "lost_phases", timeline->phases_lost);
    json_array_append_new(columns, json_text("time_s"));
    for (uint32_t i = 0; i < timeline->figure_count; i++)
        json_array_append_new(columns, json_text(timeline->keys[i]));
    json_object_set_new(object, "columns", columns);
    for (uint64_t i = 0; i < timeline->row_count; i++) {
        json_t *row = json_array();
        for (uint32_t k = 0; k < 1 + timeline->figure_count; k++) /* the time, and the figures */
            json_array_append_new(row, json_number(timeline_row(timeline, i)[k]));
        json_array_append_new(rows, row);
    }
    json_object_set_new(object, "rows", rows);
    for (uint32_t i = 0; i < timeline->node_count; i++) {
        const struct timeline_node *node = &timeline->nodes[i];
        json_t *one = report_timeline(node->timeline);
        json_put_text(one, "host", node->host);
        json_put_number(one, "begin_s", node->timeline->begin_s);
        json_put_number(one, "clock_offset_s", node->clock_offset_s);
        json_put_number(one, "clock_uncertainty_s", node->clock_uncertainty_s);
        json_put_number(one, "clock_drift_s", node->clock_drift_s);
        json_array_append_new(nodes, one);
    }
    if (timeline->node_count)
        json_object_set(object, "nodes", nodes);
    json_decref(nodes);
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

static int load_rows(const char *name, const json_t *rows, struct timeline *timeline)
{
    double before_s = timeline->begin_s;

    for (size_t i = 0; i < json_array_size(rows); i++, timeline->row_count++) {
        const json_t *row = json_array_get(rows, i);
        double *values = timeline_row(timeline, i);
        for (size_t k = 0; k <= timeline->column_count; k++)
            values[k] = real_of(json_array_get(row, k));
        if (!(values[0] >= before_s))
            return fail(EINVAL, "%s: series: row %zu is earlier than its predecessor", name, i);
        before_s = values[0];
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

static struct timeline *load_one(const char *name, const json_t *series)
{
    const json_t *columns = json_object_get(series, "columns");
    const json_t *rows = json_object_get(series, "rows");
    const json_t *phases = json_object_get(series, "phases");
    const json_t *absent = json_object_get(series, "absent");
    const size_t width = json_array_size(columns);
    int code = 0;

    if (width < 2 || width > COLUMNS_MAX) {
        fail(EINVAL, "%s: no series (was --sample-interval none used?)", name);
        return NULL;
    }
    for (size_t i = 0; i < json_array_size(rows); i++) /* before allocating */
        if (json_array_size(json_array_get(rows, i)) != width) {
            fail(EINVAL, "%s: series: row %zu has %zu numbers, expected %zu", name, i,
                 json_array_size(json_array_get(rows, i)), width);
            return NULL;
        }
    struct timeline *timeline =
        timeline_blank((uint32_t)width - 1, json_array_size(rows), json_array_size(phases));
    if (!timeline)
        return NULL;
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
    for (uint32_t i = 0; code == 0 && i < width; i++) {
        const char *key = json_string_value(json_array_get(columns, i));
        if (!key || strlen(key) >= TIMELINE_KEY_BYTES || (i == 0 && strcmp(key, "time_s") != 0))
            code = fail(EINVAL, "%s: series: unknown name of column %u", name, i);
        else if (i)
            memcpy(timeline->keys[i - 1], key, strlen(key) + 1);
    }
    if (code || load_rows(name, rows, timeline) || load_phases(name, phases, timeline)) {
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
        json_t *line = json_loadb(text, length, 0, NULL), *value;
        const size_t figures = json_object_size(line);
        const char *key;
        if (!timeline && (figures == 0 || figures > COLUMNS_MAX || rows > bytes / figures))
            code = fail(EINVAL, "%s: first line is not from iobench monitor --json", name);
        else if (!timeline && (timeline = timeline_blank((uint32_t)figures, rows, 0))) {
            timeline->column_count = 0; /* the first line defines the figures of all lines */
            timeline->start_unix_ns =
                nanoseconds_of(line, "unix_time_s") - nanoseconds_of(line, "elapsed_s");
            json_object_foreach(line, key, value)
            {
                if (strcmp(key, "unix_time_s") != 0 && strcmp(key, "elapsed_s") != 0 &&
                    strcmp(key, "interval_s") != 0 && strlen(key) < TIMELINE_KEY_BYTES &&
                    (json_is_number(value) || json_is_null(value)))
                    snprintf(timeline->keys[timeline->column_count++], TIMELINE_KEY_BYTES, "%s",
                             key);
            }
            timeline->figure_count = timeline->column_count;
        }
        if (!timeline) {
            json_decref(line);
            return NULL;
        }
        const uint64_t row = timeline->row_count++;
        double *values = timeline_row(timeline, row);
        values[0] = load_number(line, "elapsed_s");
        if (!(values[0] >= (row ? timeline_time_s(timeline, row - 1) : 0)))
            code = fail(EINVAL, "%s: line %llu is not from iobench monitor --json", name,
                        (unsigned long long)row + 1);
        for (uint32_t k = 0; k < timeline->column_count; k++)
            values[1 + k] = real_of(json_object_get(line, timeline->keys[k]));
        timeline->interval_s = values[0] / (double)timeline->row_count;
        json_decref(line);
    }
    if (code) {
        timeline_destroy(timeline);
        timeline = NULL;
    }
    return timeline;
}
