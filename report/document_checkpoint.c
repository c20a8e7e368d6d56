/* SPDX-License-Identifier: Apache-2.0
 * Checkpoints: the rate of each. */
#include "report/documents.h"

#include "report/load.h"
#include "report/pictures.h"

#include <math.h>

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

static const char *const keys[] = {"started",        "command",  "place",           "valid",
                                   "invalid_reason", "degraded", "degraded_reason", "notices",
                                   "model",          "settings", "write",           "read",
                                   "training",       "writes",   "reads",           NULL};

const struct document_kind document_checkpoint = {"iobench-checkpoint", "Rate of each checkpoint",
                                                  keys, draw_checkpoints};
