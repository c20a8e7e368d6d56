/* SPDX-License-Identifier: Apache-2.0
 *
 * The time series of a result: as JSON (docs/json.md), as CSV, and as a few characters a line.
 */
#include "report/report.h"

#include "base/bytes.h"
#include "report/words.h"

#include <math.h>
#include <string.h>

enum { SPARKS = 56 };

/* ---- JSON ---- */

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *origin_of(const struct origin *origin)
{
    const struct {
        const char *key;
        double value;
    } parts[] = {{"read_bytes", origin->read},
                 {"from_page_cache_bytes", origin->page_cache},
                 {"from_local_bytes", origin->local},
                 {"from_fabric_bytes", origin->fabric},
                 {"ahead_bytes", origin->ahead},
                 {"fabric_receive_bytes", origin->received},
                 {"fabric_send_bytes", origin->sent},
                 {"fabric_excess_bytes", origin->excess},
                 {"expected_gradient_bytes", origin->gradients}};
    json_t *object = json_object();

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        char key[64];
        if (isfinite(parts[i].value)) {
            json_object_set_new(object, parts[i].key,
                                json_integer((json_int_t)llround(parts[i].value)));
            continue;
        }
        snprintf(key, sizeof key, "%s_reason", parts[i].key);
        json_object_set_new(object, parts[i].key, json_null());
        json_object_set_new(object, key, json_string("no probe counted it"));
    }
    json_object_set_new(object, "method", json_string(origin_witness_text(origin->witness)));
    return object;
}

static json_t *phases_of(const struct timeline *timeline)
{
    json_t *phases = json_array();

    for (uint32_t i = 0; i < timeline->phase_count; i++) {
        const struct timeline_phase *phase = &timeline->phases[i];
        json_t *object = json_object();
        json_object_set_new(object, "phase", json_string(phase->name));
        json_object_set_new(object, "run", json_integer((json_int_t)phase->run));
        json_object_set_new(object, "epoch", json_integer((json_int_t)phase->number));
        json_object_set_new(object, "from_s", number(phase->from_s));
        json_object_set_new(object, "to_s", number(phase->to_s));
        if (strcmp(phase->name, "epoch") == 0)
            json_object_set_new(object, "origin", origin_of(&phase->origin));
        json_array_append_new(phases, object);
    }
    return phases;
}

static json_t *columns_of(const struct timeline *timeline)
{
    json_t *columns = json_array();

    json_array_append_new(columns, json_string("time_s"));
    for (uint32_t i = 0; i < timeline->figure_count; i++)
        json_array_append_new(columns, json_string(timeline->keys[i]));
    return columns;
}

static json_t *rows_of(const struct timeline *timeline)
{
    json_t *rows = json_array();

    for (uint64_t i = 0; i < timeline->row_count; i++) {
        json_t *row = json_array();
        json_array_append_new(row, number(timeline_time_s(timeline, i)));
        for (uint32_t k = 0; k < timeline->figure_count; k++)
            json_array_append_new(row, number(timeline_value(timeline, i, k)));
        json_array_append_new(rows, row);
    }
    return rows;
}

json_t *report_timeline(const struct timeline *timeline)
{
    json_t *object = json_object(), *absent = json_array();

    for (uint32_t i = 0; i < timeline->absent_count; i++)
        json_array_append_new(absent, json_string(timeline->absent[i]));
    json_object_set_new(object, "start_unix_s", json_real((double)timeline->start_unix_ns / 1e9));
    json_object_set_new(object, "start_monotonic_s",
                        json_real((double)timeline->start_monotonic_ns / 1e9));
    json_object_set_new(object, "interval_s", json_real(timeline->interval_s));
    json_object_set_new(object, "samples", json_integer((json_int_t)timeline->samples));
    json_object_set_new(object, "late_samples", json_integer((json_int_t)timeline->late));
    json_object_set_new(object, "sampler_cpu_percent", number(timeline->cpu_percent));
    json_object_set_new(object, "absent", absent);
    json_object_set_new(object, "origin", origin_of(&timeline->origin));
    json_object_set_new(object, "phases", phases_of(timeline));
    json_object_set_new(object, "lost_phases", json_integer((json_int_t)timeline->phases_lost));
    json_object_set_new(object, "columns", columns_of(timeline));
    json_object_set_new(object, "rows", rows_of(timeline));
    return object;
}

/* ---- CSV ---- */

/* The phases of a row's time, "epoch 0+shuffle 1"; names need no quotes. */
static void print_phases(FILE *stream, const struct timeline *timeline, double from_s, double to_s)
{
    const char *plus = "";

    for (uint32_t i = 0; i < timeline->phase_count; i++) {
        const struct timeline_phase *phase = &timeline->phases[i];
        if (phase->from_s >= to_s || phase->to_s <= from_s)
            continue;
        fprintf(stream, "%s%s %llu", plus, phase->name, (unsigned long long)phase->number);
        plus = "+";
    }
}

void report_series_csv(FILE *stream, const struct timeline *timeline)
{
    double from_s = 0;

    fputs("time_s,phases", stream);
    for (uint32_t k = 0; k < timeline->column_count; k++)
        fprintf(stream, ",%s", timeline->keys[k]);
    fputc('\n', stream);
    for (uint64_t i = 0; i < timeline->row_count; i++) {
        double to_s = timeline_time_s(timeline, i);
        fprintf(stream, "%.6f,", to_s);
        print_phases(stream, timeline, from_s, to_s);
        for (uint32_t k = 0; k < timeline->column_count; k++) {
            double value = timeline_value(timeline, i, k);
            fputc(',', stream);
            if (isfinite(value))
                fprintf(stream, "%.9g", value);
        }
        fputc('\n', stream);
        from_s = to_s;
    }
}

/* ---- text ---- */

static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

/* The mean of a column over a part of the time, each row for as long as it lasts. */
static double mean_between(const struct timeline *timeline, uint32_t column, double from_s,
                           double to_s)
{
    double sum = 0, seconds = 0, before_s = 0;

    for (uint64_t i = 0; i < timeline->row_count; i++) {
        const double end_s = timeline_time_s(timeline, i);
        const double share = fmin(end_s, to_s) - fmax(before_s, from_s);
        const double value = timeline_value(timeline, i, column);
        if (share > 0 && isfinite(value)) {
            sum += value * share;
            seconds += share;
        }
        before_s = end_s;
    }
    return seconds > 0 ? sum / seconds : NAN;
}

/* From the first epoch to the end of the last one. */
static bool span_of(const struct timeline *timeline, double *from_s, double *to_s)
{
    bool found = false;

    for (uint32_t i = 0; i < timeline->phase_count; i++) {
        const struct timeline_phase *phase = &timeline->phases[i];
        if (strcmp(phase->name, "epoch") != 0)
            continue;
        *from_s = found ? *from_s : phase->from_s;
        *to_s = phase->to_s;
        found = true;
    }
    return found && timeline->row_count > 0;
}

double report_spark(const struct timeline *timeline, const char *key, char *text)
{
    const uint32_t column = timeline_find(timeline, key);
    double from_s, to_s, means[SPARKS], most = 0;

    text[0] = '\0';
    if (column == timeline->column_count || !span_of(timeline, &from_s, &to_s))
        return 0;
    for (int i = 0; i < SPARKS; i++) {
        means[i] = mean_between(timeline, column, from_s + (to_s - from_s) * i / SPARKS,
                                from_s + (to_s - from_s) * (i + 1) / SPARKS);
        most = fmax(most, means[i]); /* fmax() leaves NAN out */
    }
    for (int i = 0; i < SPARKS; i++) {
        const double share = most > 0 ? means[i] / most : 0;
        strcat(text, !(share > 0) ? " " : blocks[share >= 1 ? 7 : (int)(share * 8)]);
    }
    return most;
}

static const char *size_text(double bytes, char *text)
{
    if (isfinite(bytes))
        bytes_text((uint64_t)fmax(bytes, 0), text, WORDS_BYTES);
    else
        snprintf(text, WORDS_BYTES, "?");
    return text;
}

static void print_origin(FILE *stream, const struct origin *origin)
{
    char read[WORDS_BYTES], cache[WORDS_BYTES], local[WORDS_BYTES], fabric[WORDS_BYTES];

    fprintf(stream, "  Origin   %s read = %s page cache + %s local disk + %s fabric",
            size_text(origin->read, read), size_text(origin->page_cache, cache),
            size_text(origin->local, local), size_text(origin->fabric, fabric));
    if (origin->ahead > 0.005 * origin->read)
        fprintf(stream, " - %s ahead", size_text(origin->ahead, read));
    fputc('\n', stream);
    if (!(origin->fabric > 0 || origin->gradients > 0))
        return;
    fprintf(stream, "           received - sent = %s%s", origin->excess < 0 ? "-" : "",
            size_text(fabs(origin->excess), read));
    if (origin->gradients > 0)
        fprintf(stream, "; gradients: %s expected, %s sent in all",
                size_text(origin->gradients, cache), size_text(origin->sent, local));
    fputc('\n', stream);
}

void report_timeline_text(FILE *stream, const struct timeline *timeline)
{
    static const struct {
        const char *name, *key;
    } lines[] = {{"read", "read_bytes_per_s"},
                 {"disk", "from_local_bytes_per_s"},
                 {"fabric", "from_fabric_bytes_per_s"}};
    const char *heading = "Series";
    char spark[REPORT_SPARK_BYTES], rate[WORDS_BYTES];

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        const double most = report_spark(timeline, lines[i].key, spark);
        if (most < 1)
            continue;
        fprintf(stream, "  %-9s%-7s%s %s MB/s\n", heading, lines[i].name, spark,
                words_rate(most / 1e6, rate));
        heading = "";
    }
    if (timeline->origin.read > 0)
        print_origin(stream, &timeline->origin);
}
