/* SPDX-License-Identifier: Apache-2.0
 * The picture of a study: bars by run, lines over a figure, or lines over time. */
#include "cmd/study/study.h"

#include "base/fail.h"
#include "base/file.h"
#include "report/load.h"
#include "report/svg.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 860, HEIGHT = 300 };

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = load_text(object, key);

    return text ? text : "";
}

int study_picture(const struct study_plan *plan, const json_t *figures)
{
    const json_t *picture = json_object_get(figures, "picture");
    char *title = study_value(plan->study, "study", "title"), marked[512];
    char *path = file_join(plan->options->folder, "picture.svg");
    struct svg svg;
    int code = 1;

    if (json_array_size(json_object_get(picture, "lines"))) {
        bool is_doubtful = false; /* a run whose figures may mislead is among those drawn */
        const json_t *doubt;
        size_t number;
        json_array_foreach(json_object_get(figures, "doubts"), number, doubt) is_doubtful |=
            load_true(doubt, "in_figures");
        snprintf(marked, sizeof marked, "%s%s", title ? title : "",
                 is_doubtful ? " (some runs are DEGRADED)" : "");
        const char *kind = text_of(picture, "kind"), *log = text_of(picture, "log");
        const bool has_bars = strcmp(kind, "bars") == 0, is_over_time = strcmp(kind, "time") == 0;
        const json_t *line, *point;
        json_t *names = json_object(); /* of bars, to their places */
        size_t i, k;
        svg_begin(&svg, marked, WIDTH, HEIGHT, 1);
        struct svg_panel *panel = svg_panel(&svg, "");
        svg_x(panel, text_of(picture, "x"), strchr(log, 'x') ? SVG_LOG2 : SVG_LINEAR,
              is_over_time ? 0 : NAN, NAN);
        svg_y(panel, text_of(picture, "y"), strchr(log, 'y') ? SVG_LOG : SVG_LINEAR, NAN, NAN);
        json_array_foreach(json_object_get(picture, "lines"), i, line)
        {
            struct svg_curve *curve = svg_curve(panel, text_of(line, "name"), svg_color(i), 1.5,
                                                has_bars       ? SVG_BARS
                                                : is_over_time ? SVG_LINE
                                                               : SVG_POINTS);
            json_array_foreach(json_object_get(line, "points"), k, point)
            {
                const json_t *at = json_array_get(point, 0);
                const char *name = json_string_value(at);
                double x = json_number_value(at);
                if (name) {
                    const json_t *known = json_object_get(names, name);
                    x = known ? json_number_value(known) : (double)json_object_size(names);
                    if (!known) {
                        svg_tick(panel, x, name);
                        json_object_set_new(names, name, json_real(x));
                    }
                }
                svg_point(curve, x, json_number_value(json_array_get(point, 1)));
            }
        }
        json_decref(names);
        code = path ? svg_save(&svg, path) : -ENOMEM;
        svg_release(&svg);
    }
    free(path);
    free(title);
    return code;
}
