/* SPDX-License-Identifier: Apache-2.0
 * An inference: throughput and latency over batch size, for each precision. */
#include "report/documents.h"

#include "report/load.h"
#include "report/pictures.h"

#include <math.h>
#include <string.h>

enum { PRECISIONS_DRAWN = 6 };

static bool is_drawn(const json_t *row)
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
        while (is_drawn(row) && i < count && strcmp(names[i], load_text(row, "precision")) != 0)
            i++;
        if (is_drawn(row) && i == count && count < PRECISIONS_DRAWN)
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
                if (is_drawn(row) && strcmp(load_text(row, "precision"), names[k / 2]) == 0)
                    svg_point(curve, load_number(row, "batch_size"),
                              load_number(row, panels[i].keys[k % 2]));
            }
        }
    }
    return true;
}

static const char *const keys[] = {
    "started",    "command",     "place",   "degraded",   "degraded_reason", "notices", "network",
    "backend",    "side",        "classes", "parameters", "gmacs",           "data",    "dataset",
    "checkpoint", "batch_sizes", NULL};

const struct document_kind document_infer = {"iobench-infer", "Inference over batch size", keys,
                                             draw_inference};
