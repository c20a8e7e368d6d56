/* SPDX-License-Identifier: Apache-2.0
 *
 * A chart as SVG, as JSON and in words.
 */
#include "report/chart.h"

#include "base/json.h"
#include "report/words.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

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

/* More digits than a screen shows would only enlarge the page. */
static json_t *rounded(double value)
{
    char text[32];

    snprintf(text, sizeof text, "%.*g", ROW_DIGITS, value);
    return json_number(isfinite(value) ? strtod(text, NULL) : value);
}

static json_t *panel_json(const struct chart *chart, const struct chart_panel *panel)
{
    json_t *object = json_object(), *curves = json_array();
    char words[1024];

    for (uint32_t i = 0; i < panel->curve_count; i++) {
        const struct chart_curve *curve = &panel->curves[i];
        json_t *entry = json_object(), *values = json_array();
        for (uint32_t bin = 0; bin < chart->bins; bin++)
            json_array_append_new(values, rounded(curve->values[bin]));
        json_put_text(entry, "name", curve->name);
        json_put_text(entry, "color", curve->color);
        json_put_number(entry, "width", curve->width);
        json_object_set_new(entry, "dashed", json_boolean(curve->is_dashed));
        json_object_set_new(entry, "values", values);
        json_array_append_new(curves, entry);
    }
    json_put_text(object, "title", panel->title);
    json_put_text(object, "unit", panel->unit);
    json_object_set_new(object, "share", json_boolean(panel->is_share));
    json_put_text(object, "words", chart_words(chart, panel, words, sizeof words));
    json_object_set_new(object, "curves", curves);
    return object;
}

static json_t *phases_json(const struct chart *chart)
{
    json_t *phases = json_array();
    double epoch_s = -INFINITY;

    for (uint32_t i = 0; chart->phases && i < chart->phases->phase_count; i++) {
        const struct timeline_phase *phase = &chart->phases->phases[i];
        const int shade = shade_of(phase->name);
        const bool is_epoch = shade == SHADES;
        char name[48];
        if (!is_drawn(chart, phase, &epoch_s))
            continue;
        snprintf(name, sizeof name, "epoch %llu", (unsigned long long)phase->number + 1);
        json_t *object = json_object();
        json_put_text(object, "name", is_epoch ? name : shades[shade].meaning);
        json_object_set_new(object, "color",
                            is_epoch ? json_null() : json_text(shades[shade].color));
        json_put_number(object, "from_s", chart->phases_late_s + phase->from_s);
        json_put_number(object, "to_s", chart->phases_late_s + phase->to_s);
        json_array_append_new(phases, object);
    }
    return phases;
}

json_t *chart_json(const struct chart *chart)
{
    json_t *object = json_object(), *panels = json_array();

    for (uint32_t i = 0; i < chart->panel_count; i++)
        json_array_append_new(panels, panel_json(chart, &chart->panels[i]));
    json_put_number(object, "step_s", chart->step_s);
    json_object_set_new(object, "panels", panels);
    json_object_set_new(object, "phases", phases_json(chart));
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
