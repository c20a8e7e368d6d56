/* SPDX-License-Identifier: Apache-2.0 */
#include "report/documents.h"

#include "report/load.h"
#include "report/pictures.h"

#include <math.h>
#include <string.h>

/* ---- an inference: throughput and latency over batch size, for each precision ---- */

enum { PRECISIONS_DRAWN = 6 };

static bool is_inferred(const json_t *row)
{
    return load_text(row, "precision") && load_number(row, "batch_size") >= 1 &&
           load_number(row, "samples_per_s") > 0 && load_number(row, "network_samples_per_s") > 0 &&
           load_number(row, "latency.p50_ms") > 0 && load_number(row, "latency.p99_ms") > 0;
}

static bool draw_inference(struct svg *svg, const json_t *document)
{
    /* Two figures of each precision: solid and dashed. */
    static const struct {
        const char *title, *unit, *names[2], *keys[2];
    } panels[] = {
        {"Throughput",
         "images/s",
         {"pipeline", "network alone"},
         {"samples_per_s", "network_samples_per_s"}},
        {"Latency of a batch", "ms", {"median", "99%"}, {"latency.p50_ms", "latency.p99_ms"}}};
    const json_t *rows = json_object_get(document, "batch_sizes");
    const char *names[PRECISIONS_DRAWN];
    size_t index, count = 0;
    json_t *row;

    json_array_foreach(rows, index, row)
    {
        size_t i = 0;
        while (is_inferred(row) && i < count && strcmp(names[i], load_text(row, "precision")) != 0)
            i++;
        if (is_inferred(row) && i == count && count < PRECISIONS_DRAWN)
            names[count++] = load_text(row, "precision");
    }
    if (count == 0)
        return false;
    svg_begin(svg, "", PICTURES_WIDTH, PICTURES_HEIGHT, 2);
    for (size_t i = 0; i < 2; i++) {
        struct svg_panel *panel = svg_panel(svg, panels[i].title);
        svg_x(panel, "batch size", SVG_LOG2, NAN, NAN);
        svg_y(panel, panels[i].unit, SVG_LINEAR, 0, NAN);
        for (size_t k = 0; k < 2 * count; k++) {
            char name[160];
            snprintf(name, sizeof name, "%.80s, %s", names[k / 2], panels[i].names[k % 2]);
            struct svg_curve *curve = svg_curve(panel, name, svg_color(k / 2), 1.5,
                                                SVG_POINTS | (k % 2 ? SVG_DASHED : 0));
            json_array_foreach(rows, index, row)
            {
                if (is_inferred(row) && strcmp(load_text(row, "precision"), names[k / 2]) == 0)
                    svg_point(curve, load_number(row, "batch_size"),
                              load_number(row, panels[i].keys[k % 2]));
            }
        }
    }
    return true;
}

/* ---- checkpoints: the rate of each ---- */

static bool draw_checkpoints(struct svg *svg, const json_t *document)
{
    static const char *const kinds[][2] = {{"writes", "write"}, {"reads", "read"}};
    struct svg_panel *panel;
    bool is_rated = false;

    for (size_t i = 0; i < 2; i++) {
        const json_t *rows = json_object_get(document, kinds[i][0]);
        is_rated |= load_number(json_array_get(rows, 0), "bytes_per_s") > 0;
    }
    if (!is_rated)
        return false;
    svg_begin(svg, "", PICTURES_WIDTH, PICTURES_HEIGHT, 1);
    panel = svg_panel(svg, "");
    svg_x(panel, "checkpoint", SVG_LINEAR, NAN, NAN);
    svg_y(panel, "MB/s", SVG_LINEAR, 0, NAN);
    for (size_t i = 0; i < 2; i++) {
        const json_t *rows = json_object_get(document, kinds[i][0]), *row;
        struct svg_curve *bars = NULL;
        size_t index;
        json_array_foreach(rows, index, row)
        {
            const double number = load_number(row, "number"),
                         rate = load_number(row, "bytes_per_s");
            if (!(number >= 1 && rate > 0))
                continue;
            bars = bars ? bars : svg_curve(panel, kinds[i][1], svg_color(i), 1, SVG_BARS);
            svg_point(bars, number, rate / 1e6);
        }
    }
    return true;
}

/* ---- a fabric: latency and bandwidth over message size, all pairs as a heat map, collectives ----
 */

enum { RANKS_DRAWN = 256, COLLECTIVES_DRAWN = 8 };

static struct svg_panel *begin_panel(struct svg *svg, const char *title, const char *unit)
{
    struct svg_panel *panel = svg_panel(svg, title);

    svg_x(panel, "message", SVG_BYTES, NAN, NAN);
    svg_y(panel, unit, SVG_LOG, NAN, NAN);
    return panel;
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
    if (json_array_size(sizes)) {
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
    const json_t *rows = json_object_get(document, "collectives");
    const char *names[COLLECTIVES_DRAWN];
    struct svg_curve *curves[COLLECTIVES_DRAWN];
    struct svg_panel *panel = NULL;
    size_t index, count = 0;
    json_t *row;
    json_array_foreach(rows, index, row)
    {
        size_t i = 0;
        if (!load_text(row, "name") || !(load_number(row, "bytes") > 0) ||
            !(load_number(row, "bus_bytes_per_s") > 0))
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
    if (is_square)
        draw_pairs(svg, pairs, values);
    if (svg->first)
        return true;
    svg_release(svg);
    return false;
}

/* ---- */

const struct document_kind *documents_kind(const json_t *document)
{
    static const struct document_kind kinds[] = {
        {"iobench-infer", "Inference over batch size",
         "schema started command place degraded degraded_reason notices network backend side "
         "classes parameters gmacs data dataset checkpoint batch_sizes",
         draw_inference},
        {"iobench-checkpoint", "Rate of each checkpoint",
         "schema started command place valid invalid_reason degraded degraded_reason notices "
         "model settings write read training writes reads",
         draw_checkpoints},
        {"iobench-net", "Messages, pairs and collectives",
         "schema started command place transport nodes ranks settings verified_bytes degraded "
         "degraded_reason messages pairs collectives beside",
         draw_fabric},
    };
    const char *schema = load_text(document, "schema");

    for (size_t i = 0; schema && i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(schema, kinds[i].schema) == 0)
            return &kinds[i];
    return NULL;
}
