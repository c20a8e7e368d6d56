/* SPDX-License-Identifier: Apache-2.0
 * The picture of a study: bars by run, lines over a figure, or lines over time. */
#include "cmd/study/study.h"

#include "base/fail.h"
#include "base/file.h"
#include "base/text_stream.h"
#include "report/gnuplot.h"
#include "report/load.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 860, HEIGHT = 420, COLORS = 8 };

/* Okabe and Ito's palette, which colour-blind people can tell apart. */
static const char *const colors[COLORS] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                           "#e69f00", "#56b4e9", "#000000", "#999999"};

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = load_text(object, key);

    return text ? text : "";
}

static double number_of(const json_t *point, size_t index)
{
    return json_number_value(json_array_get(point, index));
}

/* Write one data block per line: x and y, or for bars their names and y. */
static void write_data(FILE *script, const json_t *lines)
{
    const json_t *line, *point;
    size_t i, k;

    json_array_foreach(lines, i, line)
    {
        fprintf(script, "$line%zu << end_of_data\n", i);
        json_array_foreach(json_object_get(line, "points"), k, point)
        {
            const char *name = json_string_value(json_array_get(point, 0));
            if (name) {
                fputs("\"", script);
                for (; *name; name++)
                    fputc(strchr("\"\\\n", *name) ? ' ' : *name, script);
                fprintf(script, "\" %.10g\n", number_of(point, 1));
            } else {
                fprintf(script, "%.10g %.10g\n", number_of(point, 0), number_of(point, 1));
            }
        }
        fputs("end_of_data\n", script);
    }
}

static void write_lines(FILE *script, const json_t *lines, const char *kind)
{
    const bool bars = strcmp(kind, "bars") == 0;
    const char *with = bars ? "using 2:xtic(1) with histograms fill solid 0.9"
                       : strcmp(kind, "time") == 0
                           ? "using 1:2 with lines lw 1.5"
                           : "using 1:2 with linespoints lw 1.5 pt 7 ps 0.6";
    const json_t *line;
    size_t i;

    fputs("plot ", script);
    json_array_foreach(lines, i, line)
    {
        fprintf(script, "%s$line%zu %s lc rgb '%s' title ", i ? ", " : "", i, with,
                colors[i % COLORS]);
        gnuplot_text(script, text_of(line, "name"));
    }
    fputc('\n', script);
}

static void write_script(FILE *script, const char *title, const json_t *picture)
{
    const char *kind = text_of(picture, "kind"), *log = text_of(picture, "log");

    gnuplot_begin(script, WIDTH, HEIGHT);
    fputs("set title ", script);
    gnuplot_text(script, title);
    fputs("\nset xlabel ", script);
    gnuplot_text(script, text_of(picture, "x"));
    fputs("\nset ylabel ", script);
    gnuplot_text(script, text_of(picture, "y"));
    fputs("\nset grid ytics lc rgb '#dddddd'\nset key outside right top\nset border 3\n"
          "set tics nomirror out\n",
          script);
    if (strchr(log, 'x'))
        fputs("set logscale x 2\n", script);
    if (strchr(log, 'y'))
        fputs("set logscale y\n", script);
    else
        fputs("set yrange [0:*]\n", script);
    if (strcmp(kind, "bars") == 0)
        fputs("set style histogram clustered gap 1\nset xtics rotate by -20\n", script);
    write_data(script, json_object_get(picture, "lines"));
    write_lines(script, json_object_get(picture, "lines"), kind);
}

/* Return whether a run whose figures may mislead is among those drawn. */
static bool draws_doubtful(const json_t *figures)
{
    const json_t *doubt;
    size_t i;

    json_array_foreach(json_object_get(figures, "doubts"), i,
                       doubt) if (load_true(doubt, "in_figures")) return true;
    return false;
}

int study_picture(const struct study_plan *plan, const json_t *figures)
{
    const json_t *picture = json_object_get(figures, "picture");
    struct text_stream stream;
    char *script = NULL;
    size_t bytes = 0;

    if (json_array_size(json_object_get(picture, "lines")) == 0)
        return 1;
    if (text_stream_open(&stream))
        return -ENOMEM;
    char *title = study_value(plan->study, "study", "title"), marked[512];
    char *path = file_join(plan->options->folder, "picture.svg");
    snprintf(marked, sizeof marked, "%s%s", title ? title : "",
             draws_doubtful(figures) ? " (some runs are DEGRADED)" : "");
    write_script(stream.stream, marked, picture);
    int code = text_stream_take(&stream, &script, &bytes);
    if (code == 0)
        code = path ? gnuplot_draw(script, bytes, path) : -ENOMEM;
    free(path);
    free(title);
    free(script);
    return code;
}
