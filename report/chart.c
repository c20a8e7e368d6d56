/* SPDX-License-Identifier: Apache-2.0 */
#include "report/chart.h"

#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "report/words.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const double CHATTER = 0.5; /* MB/s */

/* Lines of a source. A value is the sum of the columns in the first row of keys that has any
 * present: results of `run` have provenance, files of `monitor` only machine totals. */
enum chart_line {
    READ,
    STORAGE,
    RECEIVE,
    SEND,
    USER,
    SYSTEM,
    IO_WAIT,
    CACHE,
    DIRTY,
    GPU,
    POWER,
    LINES
};

static const struct {
    const char *keys[2][4];
    double factor;
    bool is_share; /* average over nodes instead of adding up */
} lines[LINES] = {
    [READ] = {{{"read_bytes_per_s"}}, 1e-6, false},
    [STORAGE] = {{{"from_local_bytes_per_s", "from_fabric_bytes_per_s"},
                  {"storage_read_bytes_per_s", "nfs_read_bytes_per_s", "lustre_read_bytes_per_s"}},
                 1e-6,
                 false},
    [RECEIVE] = {{{"fabric_receive_bytes_per_s"},
                  {"infiniband_receive_bytes_per_s", "net_receive_bytes_per_s"}},
                 1e-6,
                 false},
    [SEND] = {{{"fabric_send_bytes_per_s"},
               {"infiniband_transmit_bytes_per_s", "net_transmit_bytes_per_s"}},
              1e-6,
              false},
    [USER] = {{{"cpu_user_percent"}}, 1, true},
    [SYSTEM] = {{{"cpu_system_percent"}}, 1, true},
    [IO_WAIT] = {{{"cpu_io_wait_percent"}}, 1, true},
    [CACHE] = {{{"page_cache_bytes"}}, 1e-9, false},
    [DIRTY] = {{{"dirty_bytes"}}, 1e-9, false},
    [GPU] = {{{"gpu_utilization_percent"}}, 1, true},
    [POWER] = {{{"gpu_power_watts"}}, 1, false},
};

/* Okabe and Ito's palette, which colour-blind people can tell apart. */
#define BLUE "#0072b2"
#define VERMILION "#d55e00"
#define GREEN "#009e73"
#define BLACK "#000000"
#define GREY "#999999"
enum { COLORS = 7 }; /* those of svg_color() but black */

/* ---- numbers ---- */

struct sheet {
    struct chart *chart;
    enum chart_kind kind;
    const struct chart_source *sources;
    uint32_t count;
    double late_s[CHART_SOURCES]; /* start after the first one's */
    double *values;               /* [source][line][bin]; NAN: unknown */
};

static double plus(double sum, double value)
{
    return isnan(value) ? sum : isnan(sum) ? value : sum + value;
}

static double *bins_of(const struct sheet *sheet, uint32_t source, enum chart_line line)
{
    return sheet->values + ((size_t)source * LINES + line) * sheet->chart->bins;
}

/* Distribute rows over bins, weighted by their overlap. */
static void fill_bins(const struct sheet *sheet, uint32_t source, enum chart_line line)
{
    const struct timeline *timeline = sheet->sources[source].timeline;
    uint32_t columns = 0, at[4];

    for (int row = 0; row < 2 && columns == 0; row++)
        for (int i = 0; i < 4 && lines[line].keys[row][i]; i++) {
            const uint32_t column = timeline_find(timeline, lines[line].keys[row][i]);
            bool known = false;
            for (uint64_t k = 0; column < timeline->column_count && k < timeline->row_count; k++)
                known = known || isfinite(timeline_value(timeline, k, column));
            if (known)
                at[columns++] = column;
            /* The port counters include IPoIB: never count both. */
            if (known && (line == RECEIVE || line == SEND))
                break;
        }
    const uint32_t count = sheet->chart->bins;
    const double step_s = sheet->chart->step_s;
    double from_s = sheet->late_s[source], filled_s = 0, area = 0;
    double *bins = bins_of(sheet, source, line);
    uint32_t bin = 0;

    for (uint32_t i = 0; i < count; i++)
        bins[i] = NAN;
    for (uint64_t row = 0; row < timeline->row_count && columns; row++) {
        const double to_s = sheet->late_s[source] + timeline_time_s(timeline, row);
        double value = NAN;
        for (uint32_t i = 0; i < columns; i++)
            value = plus(value, timeline_value(timeline, row, at[i]));
        while (bin < count && from_s < to_s) {
            const double end_s = fmin(to_s, (bin + 1) * step_s);
            if (end_s > from_s && isfinite(value)) {
                area += value * (end_s - from_s);
                filled_s += end_s - from_s;
            }
            from_s = fmax(from_s, end_s);
            bins[bin] = filled_s > 0 ? area / filled_s * lines[line].factor : NAN;
            if (end_s < (bin + 1) * step_s)
                break; /* the next row continues in this bin */
            bin++;
            area = filled_s = 0;
        }
    }
}

/* Put all sources on a common time axis. */
static int lay_out(struct sheet *sheet, uint32_t bins_most)
{
    struct chart *chart = sheet->chart;
    uint64_t first_ns = UINT64_MAX;
    double end_s = 0;

    for (uint32_t i = 0; i < sheet->count; i++) {
        const uint64_t start_ns = sheet->sources[i].timeline->start_unix_ns;
        first_ns = start_ns && start_ns < first_ns ? start_ns : first_ns;
    }
    for (uint32_t i = 0; i < sheet->count; i++) {
        const struct timeline *timeline = sheet->sources[i].timeline;
        if (timeline->row_count == 0)
            return fail(ENODATA, "%s: series without rows", sheet->sources[i].name);
        if (timeline->start_unix_ns && sheet->kind == CHART_OF_NODES)
            sheet->late_s[i] = (double)(timeline->start_unix_ns - first_ns) / 1e9;
        end_s = fmax(end_s, sheet->late_s[i] + timeline_time_s(timeline, timeline->row_count - 1));
        chart->step_s = fmax(chart->step_s, timeline->interval_s);
    }
    chart->step_s = fmax(chart->step_s, end_s / bins_most);
    if (!(chart->step_s > 0) || !(end_s < 1e9))
        return fail(ENODATA, "the series are %.0f s apart, or empty", end_s);
    chart->bins = (uint32_t)ceil(end_s / chart->step_s);
    chart->brief_s = 2 * end_s / bins_most;
    if (sheet->kind == CHART_OF_NODES || sheet->count == 1)
        chart->phases = sheet->sources[0].timeline;
    chart->phases_late_s = sheet->late_s[0];
    sheet->values = memory_array((size_t)sheet->count * LINES * chart->bins, sizeof(double));
    if (!sheet->values)
        return -ENOMEM;
    for (uint32_t i = 0; i < sheet->count; i++)
        for (int line = 0; line < LINES; line++)
            fill_bins(sheet, i, (enum chart_line)line);
    return 0;
}

static bool knows(const struct sheet *sheet, uint32_t source, enum chart_line line)
{
    for (uint32_t i = 0; i < sheet->chart->bins; i++)
        if (isfinite(bins_of(sheet, source, line)[i]))
            return true;
    return false;
}

/* ---- panels ---- */

/* name: of the source; "" for all. */
static void begin_panel(struct chart *chart, const char *title, const char *name, const char *unit,
                        bool is_share)
{
    struct chart_panel *panel = &chart->panels[chart->panel_count++];

    *panel = (struct chart_panel){
        .unit = unit, .is_share = is_share, .curves = chart->curves + chart->curve_count};
    snprintf(panel->title, sizeof panel->title, "%s%s%s", title, *name ? " of " : "", name);
}

static double *add_curve(struct chart *chart, const char *name, const char *color, double width)
{
    struct chart_curve *curve = &chart->curves[chart->curve_count];

    *curve =
        (struct chart_curve){.color = color,
                             .width = width,
                             .values = chart->values + (size_t)chart->curve_count * chart->bins};
    snprintf(curve->name, sizeof curve->name, "%s", name);
    chart->curve_count++;
    chart->panels[chart->panel_count - 1].curve_count++;
    return curve->values;
}

/* Add up sources first .. last - 1; average a share. */
static void combine(const struct sheet *sheet, enum chart_line line, uint32_t first, uint32_t last,
                    double *values)
{
    for (uint32_t bin = 0; bin < sheet->chart->bins; bin++) {
        double sum = NAN;
        uint32_t known = 0;
        for (uint32_t i = first; i < last; i++) {
            known += isfinite(bins_of(sheet, i, line)[bin]) ? 1 : 0;
            sum = plus(sum, bins_of(sheet, i, line)[bin]);
        }
        values[bin] = lines[line].is_share ? sum / known : sum;
    }
}

/* Add a panel with the lines that any of the sources first .. last - 1 has, if any. */
static void add_machine(const struct sheet *sheet, uint32_t first, uint32_t last, const char *name)
{
    static const struct {
        const char *title, *unit;
        struct {
            enum chart_line line;
            const char *name, *color;
        } curves[3];
    } panels[] = {
        {"CPU",
         "%",
         {{USER, "user", BLUE}, {SYSTEM, "system", GREEN}, {IO_WAIT, "iowait", VERMILION}}},
        {"Memory", "GB", {{CACHE, "page cache", BLUE}, {DIRTY, "dirty", VERMILION}}},
        {"GPU use", "%", {{GPU, "mean of the GPUs", BLUE}}},
        {"GPU power", "W", {{POWER, "sum of the GPUs", VERMILION}}}};
    struct chart *chart = sheet->chart;

    for (size_t i = 0; i < sizeof panels / sizeof panels[0]; i++) {
        bool is_begun = false;
        for (int k = 0; k < 3 && panels[i].curves[k].name; k++) {
            const enum chart_line line = panels[i].curves[k].line;
            bool known = false;
            for (uint32_t source = first; source < last; source++)
                known = known || knows(sheet, source, line);
            if (!known)
                continue;
            if (!is_begun)
                begin_panel(chart, panels[i].title, name, panels[i].unit, lines[line].is_share);
            is_begun = true;
            combine(sheet, line, first, last,
                    add_curve(chart, panels[i].curves[k].name, panels[i].curves[k].color,
                              line == IO_WAIT ? 1.5 : 1.2));
        }
    }
}

/* Chart nodes together if they can be added up, runs separately. */
static void add_panels(const struct sheet *sheet)
{
    const bool nodes = sheet->kind == CHART_OF_NODES, alone = sheet->count == 1;
    bool storage = false;

    for (uint32_t i = 0; i < sheet->count; i++)
        storage = storage || knows(sheet, i, STORAGE) || knows(sheet, i, READ);
    if (storage) {
        struct chart *chart = sheet->chart;
        const char *name = "from storage";
        begin_panel(chart, "Storage read throughput", "", "MB/s", false);
        if (sheet->count == 1 && knows(sheet, 0, READ))
            combine(sheet, READ, 0, 1, add_curve(chart, "read by the pipeline", GREY, 1));
        for (uint32_t i = 0; i < sheet->count; i++) {
            if (!knows(sheet, i, STORAGE))
                continue;
            name = sheet->count == 1 ? name : sheet->sources[i].name;
            double *values = add_curve(chart, name, svg_color(i % COLORS), 1.5);
            chart->curves[chart->curve_count - 1].is_dashed = i / COLORS % 2;
            combine(sheet, STORAGE, i, i + 1, values);
        }
        if (sheet->count > 1 && sheet->kind == CHART_OF_NODES)
            combine(sheet, STORAGE, 0, sheet->count, add_curve(chart, "all nodes", BLACK, 1.5));
    }
    for (uint32_t i = 0; i < sheet->count; i++) {
        const char *name = alone ? "" : sheet->sources[i].name;
        /* A machine that reads its own disk has a network too, with background traffic only. */
        bool has_fabric = false;
        for (uint32_t bin = 0; bin < sheet->chart->bins; bin++)
            has_fabric |=
                bins_of(sheet, i, RECEIVE)[bin] > CHATTER || bins_of(sheet, i, SEND)[bin] > CHATTER;
        if (has_fabric) {
            struct chart *chart = sheet->chart;
            begin_panel(chart, "Fabric", name, "MB/s", false);
            double *received = add_curve(chart, "received", BLUE, 1.2);
            double *sent = add_curve(chart, "sent", VERMILION, 1.2);
            chart->curves[chart->curve_count - 1].is_dashed = true;
            double *excess = add_curve(chart, "received - sent", BLACK, 1.5);
            combine(sheet, RECEIVE, i, i + 1, received);
            combine(sheet, SEND, i, i + 1, sent);
            for (uint32_t bin = 0; bin < chart->bins; bin++)
                excess[bin] = received[bin] - sent[bin];
        }
        if (!nodes)
            add_machine(sheet, i, i + 1, name);
    }
    if (nodes)
        add_machine(sheet, 0, sheet->count, alone ? "" : "all nodes");
}

int chart_make(struct chart *chart, enum chart_kind kind, const struct chart_source *sources,
               uint32_t count, uint32_t bins_most)
{
    struct sheet sheet = {.chart = chart, .kind = kind, .sources = sources, .count = count};

    *chart = (struct chart){0};
    int code = lay_out(&sheet, bins_most);
    for (uint32_t i = 0; i < count && code == 0; i++) {
        bool known = false;
        for (int line = 0; line < LINES; line++)
            known = known || knows(&sheet, i, (enum chart_line)line);
        if (!known)
            code = fail(ENODATA, "%s: no probe counted storage, network, CPU or memory",
                        sources[i].name);
    }
    if (code == 0) {
        /* Per source: in the storage panel 1, fabric 3, machine 7 in 4 panels; more once. */
        const size_t panels = 5 + 5 * count, curves = 9 + 11 * count;
        chart->panels = memory_array(panels, sizeof *chart->panels);
        chart->curves = memory_array(curves, sizeof *chart->curves);
        chart->values = memory_array(curves * chart->bins, sizeof *chart->values);
        code = chart->panels && chart->curves && chart->values ? 0 : -ENOMEM;
    }
    if (code == 0)
        add_panels(&sheet);
    free(sheet.values);
    return code;
}

void chart_release(struct chart *chart)
{
    free(chart->panels);
    free(chart->curves);
    free(chart->values);
    *chart = (struct chart){0};
}

enum { WIDTH = 1100, PANEL = 210, ROW_DIGITS = 4, EPOCHS_SHOWN = 24 };

/* Shades of phases other than reading; the rest of an epoch is white. */
static const struct {
    const char *phase, *color, *meaning;
} shades[] = {
    {"index", "#d9d9d9", "index"},           {"calibrate", "#f0f0f0", "calibrate"},
    {"drop", "#bdd7e7", "caches dropped"},   {"shuffle", "#fdae6b", "shuffle"},
    {"drain", "#fee6ce", "drain"},           {"evaluation", "#c7e9c0", "evaluation"},
    {"checkpoint", "#dadaeb", "checkpoint"},
};
enum { SHADES = sizeof shades / sizeof shades[0] };

static int shade_of(const char *phase)
{
    for (int i = 0; i < SHADES; i++)
        if (strcmp(phase, shades[i].phase) == 0)
            return i;
    return SHADES;
}

/* Return whether to draw a phase: not if it is too brief to be seen, nor an epoch that begins so
 * soon after the last one drawn, *epoch_s, that their names would overlap. */
static bool is_drawn(const struct chart *chart, const struct timeline_phase *phase, double *epoch_s)
{
    if (shade_of(phase->name) < SHADES)
        return phase->to_s - phase->from_s >= chart->brief_s;
    if (strcmp(phase->name, "epoch") != 0 ||
        phase->from_s < *epoch_s + chart->bins * chart->step_s / EPOCHS_SHOWN)
        return false;
    *epoch_s = phase->from_s;
    return true;
}

/* ---- SVG ---- */

void chart_draw(struct svg *svg, const char *title, const struct chart *chart)
{
    svg_begin(svg, title, WIDTH, PANEL, 1);
    for (uint32_t i = 0; i < chart->panel_count; i++) {
        const struct chart_panel *source = &chart->panels[i];
        struct svg_panel *panel = svg_panel(svg, source->title);
        svg_x(panel, "seconds", SVG_LINEAR, 0, chart->bins * chart->step_s);
        svg_y(panel, source->unit, SVG_LINEAR, 0, source->is_share ? 100 : NAN);
        /* Shade the phases other than reading, and mark the start of each epoch. is_named: in the
         * legend.
         */
        const bool is_named = i == 0;
        const struct timeline *timeline = chart->phases;
        double epoch_s = -INFINITY;
        unsigned named = 0;
        for (uint32_t k = 0; timeline && k < timeline->phase_count; k++) {
            const struct timeline_phase *phase = &timeline->phases[k];
            const double from_s = chart->phases_late_s + phase->from_s;
            const int shade = shade_of(phase->name);
            char text[48];
            if (!is_drawn(chart, phase, &epoch_s))
                continue;
            if (shade < SHADES) {
                const bool is_new = is_named && !(named & 1u << shade);
                svg_band(panel, from_s, chart->phases_late_s + phase->to_s, shades[shade].color,
                         is_new ? shades[shade].meaning : NULL);
                named |= 1u << shade;
                continue;
            }
            snprintf(text, sizeof text, "epoch %llu", (unsigned long long)phase->number + 1);
            svg_mark(panel, from_s, text);
        }
        for (uint32_t k = 0; k < source->curve_count; k++) {
            const struct chart_curve *from = &source->curves[k];
            struct svg_curve *curve = svg_curve(panel, from->name, from->color, from->width,
                                                from->is_dashed ? SVG_DASHED : SVG_LINE);
            for (uint32_t bin = 0; bin < chart->bins; bin++)
                svg_point(curve, (bin + 0.5) * chart->step_s, from->values[bin]);
        }
    }
}

/* ---- JSON ---- */

json_t *chart_json(const struct chart *chart)
{
    json_t *object = json_object(), *panels = json_array(), *phases = json_array();
    double epoch_s = -INFINITY;

    for (uint32_t k = 0; k < chart->panel_count; k++) {
        const struct chart_panel *panel = &chart->panels[k];
        json_t *one = json_object(), *curves = json_array();
        char words[1024];
        for (uint32_t i = 0; i < panel->curve_count; i++) {
            const struct chart_curve *curve = &panel->curves[i];
            json_t *entry = json_object(), *values = json_array();
            for (uint32_t bin = 0; bin < chart->bins;
                 bin++) { /* more digits than a screen shows would only enlarge the page */
                char text[32];
                snprintf(text, sizeof text, "%.*g", ROW_DIGITS, curve->values[bin]);
                json_array_append_new(values, json_number(strtod(text, NULL)));
            }
            json_put_text(entry, "name", curve->name);
            json_put_text(entry, "color", curve->color);
            json_put_number(entry, "width", curve->width);
            json_object_set_new(entry, "dashed", json_boolean(curve->is_dashed));
            json_object_set_new(entry, "values", values);
            json_array_append_new(curves, entry);
        }
        json_put_text(one, "title", panel->title);
        json_put_text(one, "unit", panel->unit);
        json_object_set_new(one, "share", json_boolean(panel->is_share));
        json_put_text(one, "words", chart_words(chart, panel, words, sizeof words));
        json_object_set_new(one, "curves", curves);
        json_array_append_new(panels, one);
    }
    for (uint32_t i = 0; chart->phases && i < chart->phases->phase_count; i++) {
        const struct timeline_phase *phase = &chart->phases->phases[i];
        const int shade = shade_of(phase->name);
        const bool is_epoch = shade == SHADES;
        char name[48];
        if (!is_drawn(chart, phase, &epoch_s))
            continue;
        snprintf(name, sizeof name, "epoch %llu", (unsigned long long)phase->number + 1);
        json_t *one = json_object();
        json_put_text(one, "name", is_epoch ? name : shades[shade].meaning);
        json_object_set_new(one, "color", is_epoch ? json_null() : json_text(shades[shade].color));
        json_put_number(one, "from_s", chart->phases_late_s + phase->from_s);
        json_put_number(one, "to_s", chart->phases_late_s + phase->to_s);
        json_array_append_new(phases, one);
    }
    json_put_number(object, "step_s", chart->step_s);
    json_object_set_new(object, "panels", panels);
    json_object_set_new(object, "phases", phases);
    return object;
}

/* ---- words ---- */

char *chart_words(const struct chart *chart, const struct chart_panel *panel, char *text,
                  size_t text_bytes)
{
    size_t used = (size_t)snprintf(text, text_bytes, "%s in %s.", panel->title, panel->unit);

    for (uint32_t i = 0; i < panel->curve_count && used < text_bytes; i++) {
        double sum = 0, most = -INFINITY;
        uint32_t known = 0;
        char mean_text[WORDS_BYTES], most_text[WORDS_BYTES];
        for (uint32_t bin = 0; bin < chart->bins; bin++) {
            const double value = panel->curves[i].values[bin];
            if (!isfinite(value))
                continue;
            known++;
            sum += value;
            most = fmax(most, value);
        }
        used += (size_t)snprintf(text + used, text_bytes - used, "%s %s: mean %s, highest %s",
                                 i ? ";" : "", panel->curves[i].name,
                                 words_rate(known ? sum / known : NAN, mean_text),
                                 words_rate(known ? most : NAN, most_text));
    }
    return text;
}
