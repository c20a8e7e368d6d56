/* SPDX-License-Identifier: Apache-2.0
 *
 * The time series of a result: as sparklines, as CSV (--series) and as JSON (docs/json.md), both of
 * which are read back.
 */
#include "base/bytes.h"
#include "base/escape.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "report/report.h"
#include "report/words.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- text ---- */

enum { SPARKS = 50, INDENT = 11 };

static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
static const char *const letters[] = {".", ":", "-", "=", "+", "*", "#", "@"};

double report_spark(const struct timeline *timeline, const char *key, char *text)
{
    const uint32_t column = timeline_find(timeline, key);
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    double from_s = NAN, to_s = NAN, means[SPARKS], most = 0;
    const char *locale = NULL; /* of the environment: setlocale() needs the locale's files */

    for (size_t i = 0; i < 3 && (!locale || !*locale); i++)
        locale = getenv(names[i]);
    const bool is_utf8 = locale && (strcasestr(locale, "utf-8") || strcasestr(locale, "utf8"));
    const char *const *const sparks = is_utf8 ? blocks : letters;
    for (uint32_t i = 0; i < timeline->phase_count; i++)
        if (strcmp(timeline->phases[i].name, "epoch") == 0) {
            from_s = isnan(from_s) ? timeline->phases[i].from_s : from_s;
            to_s = timeline->phases[i].to_s;
        }
    text[0] = '\0';
    if (column == timeline->column_count || timeline->row_count == 0 || isnan(from_s))
        return 0;
    for (int i = 0; i < SPARKS; i++) {
        means[i] = timeline_mean(timeline, column, from_s + (to_s - from_s) * i / SPARKS,
                                 from_s + (to_s - from_s) * (i + 1) / SPARKS);
        most = fmax(most, means[i]); /* fmax() ignores NAN */
    }
    for (int i = 0; i < SPARKS; i++) {
        const double share = most > 0 ? means[i] / most : 0;
        strcat(text, !(share > 0) ? " " : sparks[share >= 1 ? 7 : (int)(share * 8)]);
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

void report_timeline_text(FILE *stream, const struct timeline *timeline)
{
    static const struct {
        const char *name, *key;
    } lines[] = {{"read", "read_bytes_per_s"},
                 {"disk", "from_local_bytes_per_s"},
                 {"fabric", "from_fabric_bytes_per_s"}};
    enum { NODES_SHOWN = 16 };
    const char *heading = "Series";
    char text[6][WORDS_BYTES], line[4 * WORDS_BYTES];
    char spark[REPORT_SPARK_BYTES], rate[WORDS_BYTES];

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        const double most = report_spark(timeline, lines[i].key, spark);
        if (most < 1)
            continue;
        fprintf(stream, "  %-9s%-7s%s %s MB/s\n", heading, lines[i].name, spark,
                words_rate(most / 1e6, rate));
        heading = "";
    }
    const struct provenance *all = &timeline->provenance;
    if (all->read > 0) {
        char read[WORDS_BYTES], cache[WORDS_BYTES], local[WORDS_BYTES], fabric[WORDS_BYTES];
        char ahead[3 * WORDS_BYTES] = "";
        if (all->ahead > 0.005 * all->read)
            snprintf(ahead, sizeof ahead, " - %s ahead", size_text(all->ahead, read));
        words_printf(stream, "  Sources", INDENT,
                     "%s read = %s page cache + %s local disk + %s fabric%s",
                     size_text(all->read, read), size_text(all->page_cache, cache),
                     size_text(all->local, local), size_text(all->fabric, fabric), ahead);
        ahead[0] = '\0';
        if (all->gradients > 0)
            snprintf(ahead, sizeof ahead, "; gradients: %s expected, %s sent in total",
                     size_text(all->gradients, cache), size_text(all->sent, local));
        if (all->fabric > 0 || all->gradients > 0)
            words_printf(stream, "", INDENT, "received - sent = %s%s%s", all->excess < 0 ? "-" : "",
                         size_text(fabs(all->excess), read), ahead);
    }
    /* One line per node, with clocks relative to the first node's. */
    if (timeline->node_count == 0)
        return;
    fprintf(stream, "  %-12s%11s%11s%11s%11s%11s%11s\n", "Nodes", "read", "page cache",
            "local disk", "fabric", "received", "sent");
    for (uint32_t i = 0; i < timeline->node_count && i < NODES_SHOWN; i++) {
        const struct timeline_node *node = &timeline->nodes[i];
        const struct provenance *its = &node->timeline->provenance;
        fprintf(stream, "    %-10.10s%11s%11s%11s%11s%11s%11s\n", node->host,
                size_text(its->read, text[0]), size_text(its->page_cache, text[1]),
                size_text(its->local, text[2]), size_text(its->fabric, text[3]),
                size_text(its->received, text[4]), size_text(its->sent, text[5]));
    }
    if (timeline->node_count > NODES_SHOWN)
        fprintf(stream, "           and %u more\n", timeline->node_count - NODES_SHOWN);
    double most_s = 0, uncertain_s = 0;
    for (uint32_t i = 1; i < timeline->node_count; i++) {
        most_s = fmax(most_s, fabs(timeline->nodes[i].clock_offset_s));
        uncertain_s = fmax(uncertain_s, timeline->nodes[i].clock_uncertainty_s);
    }
    snprintf(line, sizeof line, "times of day differ by up to %s; series aligned within %s",
             words_duration((uint64_t)(most_s * 1e9), text[0]),
             words_duration((uint64_t)(uncertain_s * 1e9), text[1]));
    words_print(stream, "  Clocks", INDENT, line);
}

/* ---- CSV ---- */

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
        /* Phases during the row, "epoch 1+shuffle 2"; names need no quotes. */
        const char *plus = "";
        for (uint32_t k = 0; k < timeline->phase_count; k++) {
            const struct timeline_phase *phase = &timeline->phases[k];
            if (phase->from_s >= to_s || phase->to_s <= from_s)
                continue;
            fprintf(stream, "%s%s %llu", plus, phase->name, (unsigned long long)phase->number + 1);
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

/* Load "epoch 1+shuffle 2", the phases from from_s to to_s. Those that lasted to from_s continue.
 */
static int load_csv_phases(const char *name, char *phases, double from_s, double to_s,
                           struct timeline *timeline, uint64_t capacity)
{
    char *each;

    while (*phases && (each = strsep(&phases, "+"))) {
        struct timeline_phase phase = {.from_s = from_s, .to_s = to_s};
        unsigned long long number;
        if (sscanf(each, "%15s %llu", phase.name, &number) != 2)
            return fail(EINVAL, "%s: second %g: '%.40s' is not a phase", name, to_s, each);
        phase.number = number - 1;
        uint32_t i = timeline->phase_count;
        while (i-- > 0)
            if (timeline->phases[i].to_s == from_s && timeline->phases[i].number == phase.number &&
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

struct timeline *report_series_load(const char *name, char *text)
{
    const size_t bytes = strlen(text);
    size_t columns = 0, rows = 0;
    char *heading = strsep(&text, "\n"), *line;
    const char *key;

    if (strncmp(heading, "time_s,phases,", 14) == 0)
        for (const char *at = heading; (at = strchr(at, ',')); at++)
            columns++;
    for (const char *at = text; at && (at = strchr(at, '\n')); at++)
        rows++;
    if (columns < 2 || ++rows > bytes / columns + 1 || columns > UINT32_MAX) {
        fail(EINVAL, "%s: not an iobench series (written with --series FILE)", name);
        return NULL;
    }
    /* Every column, those of nodes without their host. */
    struct timeline *all = timeline_blank((uint32_t)columns - 1, rows, PHASES_MAX), *timeline = all;
    struct node_columns *nodes = memory_array(columns, sizeof *nodes);
    uint32_t node_count = 0;
    int code = all && nodes ? 0 : -ENOMEM;
    if (code == 0)
        all->column_count = 0;
    strsep(&heading, ",");
    strsep(&heading, ",");
    while (code == 0 && (key = strsep(&heading, ","))) {
        const size_t length = strcspn(key, ":");
        /* "n1:read_bytes_per_s" starts the columns of n1. Counter names may also contain a colon,
         * but end differently. */
        if (key[length] == ':' && strcmp(key + length + 1, FIRST_KEY) == 0) {
            struct node_columns *node = &nodes[node_count++];
            if (length >= sizeof node->host) {
                code = fail(EINVAL, "%s: host name of %zu bytes, at most %zu: %.40s...", name,
                            length, sizeof node->host - 1, key);
                break;
            }
            *node = (struct node_columns){.first = all->column_count};
            memcpy(node->host, key, length);
        }
        if (node_count)
            key += length + (key[length] == ':');
        if (strlen(key) >= TIMELINE_KEY_BYTES)
            code = fail(EINVAL, "%s: column name of %zu bytes, at most %d: %.40s...", name,
                        strlen(key), TIMELINE_KEY_BYTES - 1, key);
        else
            snprintf(all->keys[all->column_count++], TIMELINE_KEY_BYTES, "%s", key);
    }
    if (code == 0)
        all->figure_count = all->column_count;
    while (code == 0 && (line = strsep(&text, "\n"))) {
        if (!*line)
            continue;
        const uint64_t row = all->row_count;
        double *values = timeline_row(all, row);
        const double before_s = row ? timeline_time_s(all, row - 1) : 0;
        char *cell = strsep(&line, ","), *end;
        values[0] = strtod(cell, &end);
        if (end == cell || !(values[0] >= before_s))
            code = fail(EINVAL, "%s: row %llu does not start with a time after %g s", name,
                        (unsigned long long)row + 1, before_s);
        cell = strsep(&line, ",");
        if (code == 0 && cell)
            code = load_csv_phases(name, cell, before_s, values[0], all, PHASES_MAX);
        for (uint32_t k = 0; k < all->column_count && code == 0; k++) {
            cell = strsep(&line, ",");
            if (!cell)
                code = fail(EINVAL, "%s: row %llu has %u numbers, expected %u", name,
                            (unsigned long long)row + 1, k, all->column_count);
            else
                values[1 + k] = *cell ? strtod(cell, NULL) : NAN;
        }
        all->row_count++;
        all->interval_s = values[0] / (double)all->row_count;
    }
    if (code == 0 && node_count) { /* the columns before the first node's are the sums */
        timeline = take_columns(all, 0, nodes[0].first);
        if (timeline)
            timeline->nodes = memory_array(node_count, sizeof *timeline->nodes);
        for (uint32_t i = 0; timeline && timeline->nodes && i < node_count; i++) {
            const uint32_t first = nodes[i].first;
            const uint32_t end = i + 1 < node_count ? nodes[i + 1].first : all->column_count;
            struct timeline_node *node = &timeline->nodes[i];
            assert(first < end); /* a node has the column that begins it */
            memcpy(node->host, nodes[i].host, sizeof node->host);
            node->timeline = take_columns(all, first, end - first);
            if (!node->timeline)
                break;
            timeline->node_count++;
        }
        if (timeline && timeline->node_count < node_count)
            code = -ENOMEM;
    }
    free(nodes);
    if (code && timeline != all)
        timeline_destroy(timeline);
    if (code || timeline != all)
        timeline_destroy(all);
    return code ? NULL : timeline;
}

/* ---- JSON ---- */

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

/* Figures that are written and read back. */
#define AT(type, of, field) FIGURE_AT(type, of, field)
static const struct figure series_rows[] = {
    {"start_unix_s", AT(TIME, timeline, start_unix_ns)},
    {"start_monotonic_s", AT(TIME, timeline, start_monotonic_ns)},
    {"clock_step_s", AT(REAL, timeline, clock_step_s)},
    {"interval_s", AT(REAL, timeline, interval_s)},
    {"samples", AT(COUNT, timeline, samples)},
    {"late_samples", AT(COUNT, timeline, late)},
    {"sampler_cpu_percent", AT(REAL, timeline, cpu_percent)},
    {"lost_phases", AT(COUNT, timeline, phases_lost)}, /* after the phases */
};
static const struct figure phase_rows[] = {
    {"run", AT(ORDINAL, timeline_phase, run)},
    {"epoch", AT(ORDINAL, timeline_phase, number)},
    {"from_s", AT(REAL, timeline_phase, from_s)},
    {"to_s", AT(REAL, timeline_phase, to_s)},
};
static const struct figure node_rows[] = {
    {"clock_offset_s", AT(REAL, timeline_node, clock_offset_s)},
    {"clock_uncertainty_s", AT(REAL, timeline_node, clock_uncertainty_s)},
    {"clock_drift_s", AT(REAL, timeline_node, clock_drift_s)},
};
#undef AT
enum {
    SERIES_ROWS = sizeof series_rows / sizeof *series_rows,
    PHASE_ROWS = sizeof phase_rows / sizeof *phase_rows,
    NODE_ROWS = sizeof node_rows / sizeof *node_rows
};

json_t *report_timeline(const struct timeline *timeline)
{
    json_t *object = json_object(), *absent = json_array(), *phases = json_array();
    json_t *columns = json_array(), *rows = json_array(), *nodes = json_array();

    report_figures(object, series_rows, SERIES_ROWS - 1, timeline);
    for (uint32_t i = 0; i < timeline->absent_count; i++)
        json_array_append_new(absent, json_text(timeline->absent[i]));
    json_object_set_new(object, "absent", absent);
    json_object_set_new(object, "origin", provenance_of(timeline->provenance));
    for (uint32_t i = 0; i < timeline->phase_count; i++) {
        const struct timeline_phase *phase = &timeline->phases[i];
        json_t *one = json_object();
        json_put_text(one, "phase", phase->name);
        report_figures(one, phase_rows, PHASE_ROWS, phase);
        if (strcmp(phase->name, "epoch") == 0)
            json_object_set_new(one, "origin", provenance_of(phase->provenance));
        json_array_append_new(phases, one);
    }
    json_object_set_new(object, "phases", phases);
    report_figures(object, series_rows + SERIES_ROWS - 1, 1, timeline);
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
        report_figures(one, node_rows, NODE_ROWS, node);
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
    report_figures_load(series, series_rows, SERIES_ROWS, timeline);
    timeline->begin_s = json_number_value(json_object_get(series, "begin_s")); /* none: 0 */
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
    double before_s = timeline->begin_s;
    for (size_t i = 0; code == 0 && i < json_array_size(rows); i++, timeline->row_count++) {
        const json_t *row = json_array_get(rows, i);
        double *values = timeline_row(timeline, i);
        for (size_t k = 0; k <= timeline->column_count; k++)
            values[k] = real_of(json_array_get(row, k));
        if (!(values[0] >= before_s))
            code = fail(EINVAL, "%s: series: row %zu is earlier than its predecessor", name, i);
        before_s = values[0];
    }
    for (size_t i = 0; code == 0 && i < json_array_size(phases); i++) {
        const json_t *object = json_array_get(phases, i);
        struct timeline_phase *phase = &timeline->phases[timeline->phase_count++];
        const char *phase_name = load_text(object, "phase");
        report_figures_load(object, phase_rows, PHASE_ROWS, phase);
        if (!phase_name || strlen(phase_name) >= sizeof phase->name || !isfinite(phase->from_s) ||
            !isfinite(phase->to_s))
            code = fail(EINVAL, "%s: series: phase %zu without name or time", name, i);
        else
            memcpy(phase->name, phase_name, strlen(phase_name) + 1);
        if (json_object_get(object, "origin"))
            load_provenance(json_object_get(object, "origin"), &phase->provenance);
    }
    if (code) {
        timeline_destroy(timeline);
        return NULL;
    }
    return timeline;
}

struct timeline *report_timeline_load(const char *name, const json_t *series)
{
    struct timeline *timeline = load_one(name, series);
    const json_t *nodes = json_object_get(series, "nodes");
    const size_t count = json_array_size(nodes);
    int code = 0;

    if (!timeline)
        return NULL;
    if (count > NODES_MAX)
        code = fail(EINVAL, "%s: series: invalid number of nodes: %zu", name, count);
    else if (!(timeline->nodes = memory_array(count, sizeof *timeline->nodes)))
        code = -ENOMEM;
    for (size_t i = 0; i < count && code == 0; i++) { /* which have no nodes themselves */
        const json_t *object = json_array_get(nodes, i);
        struct timeline_node *node = &timeline->nodes[timeline->node_count++];
        const char *host = load_text(object, "host");
        if (!host || strlen(host) >= sizeof node->host) {
            code = fail(EINVAL, "%s: series: node %zu without a valid host", name, i);
            break;
        }
        memcpy(node->host, host, strlen(host) + 1);
        report_figures_load(object, node_rows, NODE_ROWS, node);
        node->timeline = load_one(name, object);
        code = node->timeline ? 0 : -EINVAL;
    }
    if (code == 0)
        return timeline;
    timeline_destroy(timeline);
    return NULL;
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
