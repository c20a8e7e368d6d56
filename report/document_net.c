/* SPDX-License-Identifier: Apache-2.0
 *
 * A fabric: latency and bandwidth over message size, all pairs as a heat map, and collectives. */
#include "report/documents.h"

#include "report/load.h"
#include "report/pictures.h"

#include <math.h>
#include <string.h>

enum { RANKS_DRAWN = 256, COLLECTIVES_DRAWN = 8 };

static struct svg_panel *begin_panel(struct svg *svg, const char *title, const char *unit)
{
    struct svg_panel *panel = svg_panel(svg, title);

    svg_x(panel, "message", SVG_BYTES, NAN, NAN);
    svg_y(panel, unit, SVG_LOG, NAN, NAN);
    return panel;
}

static void draw_messages(struct svg *svg, const json_t *sizes)
{
    static const struct {
        const char *key, *name, *unit;
        double scale; /* to the axis' unit */
    } curves[] = {{"latency", "latency", "s", 1e6},
                  {"forth", "forth", "bytes_per_s", 1e-6},
                  {"back", "back", "bytes_per_s", 1e-6},
                  {"both", "both at once", "bytes_per_s", 1e-6}};
    static const char *const ends[] = {"", "_low", "_high"};
    struct svg_panel *latency = begin_panel(svg, "Latency of a message", "us"),
                     *bandwidth = begin_panel(svg, "Bandwidth of messages", "MB/s");
    size_t index;
    json_t *row;

    for (size_t i = 0; i < sizeof curves / sizeof *curves; i++) {
        struct svg_curve *curve =
            svg_curve(i ? bandwidth : latency, curves[i].name, svg_color(i), 1, SVG_POINTS);
        json_array_foreach(sizes, index, row)
        {
            double figure[3];
            for (size_t k = 0; k < 3; k++) {
                char key[64];
                snprintf(key, sizeof key, "%s%s_%s", curves[i].key, ends[k], curves[i].unit);
                figure[k] = load_number(row, key) * curves[i].scale;
            }
            if (load_number(row, "bytes") > 0)
                svg_interval(curve, load_number(row, "bytes"), figure[0], figure[1], figure[2]);
        }
    }
}

/* Draw all pairs as a heat map, if they are a square that is not too large. values: the map's. */
static void draw_pairs(struct svg *svg, const json_t *rows, double *values)
{
    const size_t ranks = json_array_size(rows);
    struct svg_panel *panel = svg_panel(svg, "All pairs, MB/s");
    double most = 0;
    char text[64];

    for (size_t i = 0; i < ranks * ranks; i++) {
        const json_t *value = json_array_get(json_array_get(rows, i / ranks), i % ranks);
        values[i] = json_number_value(value) > 0 ? json_number_value(value) / 1e6 : NAN;
        most = fmax(most, values[i]);
    }
    svg_map(panel, values, ranks, ranks, NAN);
    svg_x(panel, "to rank", SVG_LINEAR, NAN, NAN);
    svg_y(panel, "from rank", SVG_LINEAR, NAN, NAN);
    snprintf(text, sizeof text, "dark: %.0f", most);
    svg_curve(panel, text, "#08519c", 1, SVG_BARS);
}

static bool is_drawn(const json_t *row)
{
    return load_text(row, "name") && load_number(row, "bytes") > 0 &&
           load_number(row, "bus_bytes_per_s") > 0;
}

static void draw_collectives(struct svg *svg, const json_t *rows)
{
    const char *names[COLLECTIVES_DRAWN];
    struct svg_curve *curves[COLLECTIVES_DRAWN];
    struct svg_panel *panel = NULL;
    size_t index, count = 0;
    json_t *row;

    json_array_foreach(rows, index, row)
    {
        size_t i = 0;
        if (!is_drawn(row))
            continue;
        while (i < count && strcmp(names[i], load_text(row, "name")) != 0)
            i++;
        if (i == COLLECTIVES_DRAWN)
            continue;
        if (i == count) {
            panel = panel ? panel : begin_panel(svg, "Bus bandwidth of collectives", "MB/s");
            names[count] = load_text(row, "name");
            curves[count++] = svg_curve(panel, names[i], svg_color(i), 1, SVG_POINTS);
        }
        svg_point(curves[i], load_number(row, "bytes"), load_number(row, "bus_bytes_per_s") / 1e6);
    }
}

static bool draw_fabric(struct svg *svg, const json_t *document)
{
    static double values[RANKS_DRAWN * RANKS_DRAWN];
    const json_t *sizes = load_member(document, "messages.sizes"),
                 *pairs = load_member(document, "pairs.bytes_per_s");
    const size_t ranks = json_array_size(pairs);
    bool is_square = ranks >= 2 && ranks <= RANKS_DRAWN;

    for (size_t i = 0; i < ranks; i++)
        is_square = is_square && json_array_size(json_array_get(pairs, i)) == ranks;
    svg_begin(svg, "", PICTURES_WIDTH, PICTURES_HEIGHT, 2);
    if (json_array_size(sizes))
        draw_messages(svg, sizes);
    draw_collectives(svg, json_object_get(document, "collectives"));
    if (is_square)
        draw_pairs(svg, pairs, values);
    if (svg->first)
        return true;
    svg_release(svg);
    return false;
}

static const char *const keys[] = {"started",     "command",         "place",    "transport",
                                   "nodes",       "ranks",           "settings", "verified_bytes",
                                   "degraded",    "degraded_reason", "messages", "pairs",
                                   "collectives", "beside",          NULL};

const struct document_kind document_net = {"iobench-net", "Messages, pairs and collectives", keys,
                                           draw_fabric};
