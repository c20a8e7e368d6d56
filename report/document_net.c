/* SPDX-License-Identifier: Apache-2.0
 *
 * A fabric: latency and bandwidth over message size, all pairs as a heat map, and collectives. */
#include "report/documents.h"

#include "report/gnuplot.h"
#include "report/load.h"
#include "report/pictures.h"

#include <math.h>
#include <string.h>

enum { HEIGHT = 640, RANKS_DRAWN = 256, COLLECTIVES_DRAWN = 8, TICS_MOST = 16 };

/* ---- messages ---- */

static const struct {
    const char *key, *title;
    double scale; /* to the axis' unit */
} curves[] = {{"latency", "latency", 1e6},
              {"forth", "forth", 1e-6},
              {"back", "back", 1e-6},
              {"both", "both at once", 1e-6}};
enum { CURVES = sizeof curves / sizeof curves[0], LATENCY_CURVE = 0 };

/* A figure with the ends of its interval. */
static void write_figure(FILE *script, const json_t *row, size_t curve)
{
    static const char *const ends[] = {"", "_low", "_high"};
    const char *unit = curve == LATENCY_CURVE ? "s" : "bytes_per_s";

    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        char key[64];
        snprintf(key, sizeof key, "%s%s_%s", curves[curve].key, ends[i], unit);
        fprintf(script, " %g", load_number(row, key) * curves[curve].scale);
    }
}

static void write_messages(FILE *script, const json_t *sizes)
{
    size_t index;
    json_t *row;

    fputs("$messages << END\n", script);
    json_array_foreach(sizes, index, row)
    {
        if (!(load_number(row, "bytes") > 0))
            continue;
        fprintf(script, "%g", load_number(row, "bytes"));
        for (size_t i = 0; i < CURVES; i++)
            write_figure(script, row, i);
        fputc('\n', script);
    }
    fputs("END\n", script);
}

static void plot_messages(FILE *script, size_t from, size_t to)
{
    for (size_t i = from; i <= to; i++) {
        const size_t column = 2 + 3 * i;
        fprintf(script,
                "%s$messages using 1:%zu:%zu:%zu with yerrorlines pointtype 7 linecolor rgb '%s' "
                "title '%s'",
                i == from ? "plot " : ", \\\n ", column, column + 1, column + 2, pictures_color(i),
                curves[i].title);
    }
    fputc('\n', script);
}

/* ---- pairs ---- */

/* Return the number of ranks of a square matrix, 0 if it is none or too large to draw. */
static size_t square_of(const json_t *rows)
{
    const size_t ranks = json_array_size(rows);

    for (size_t i = 0; i < ranks; i++)
        if (json_array_size(json_array_get(rows, i)) != ranks)
            return 0;
    return ranks >= 2 && ranks <= RANKS_DRAWN ? ranks : 0;
}

static void plot_pairs(FILE *script, const json_t *rows, size_t ranks)
{
    fputs("$pairs << END\n", script);
    for (size_t from = 0; from < ranks; from++) {
        for (size_t to = 0; to < ranks; to++) {
            const json_t *value = json_array_get(json_array_get(rows, from), to);
            const double rate = json_is_number(value) ? json_number_value(value) : NAN;
            fprintf(script, rate > 0 ? "%g " : "NaN ", rate / 1e6);
        }
        fputc('\n', script);
    }
    fprintf(script,
            "END\nunset logscale\nset title 'All pairs, MB/s'\nset xlabel 'to rank'\n"
            "set ylabel 'from rank'\nset xrange [-0.5:%zu.5]\nset yrange [%zu.5:-0.5]\n"
            "set cbrange [0:*]\nset palette defined (0 '#f7fbff', 1 '#08519c')\nset xtics "
            "%s norotate\nset ytics %s\nunset key\nunset grid\n"
            "set format '%%.0f'\nplot $pairs matrix with image pixels\nset key below\nset grid\n"
            "set xrange [*:*]\nset yrange [*:*]\n",
            ranks - 1, ranks - 1, ranks <= TICS_MOST ? "1" : "auto",
            ranks <= TICS_MOST ? "1" : "auto");
}

/* ---- collectives ---- */

struct collective_names {
    const char *list[COLLECTIVES_DRAWN];
    size_t count;
};

static size_t find_name(const struct collective_names *names, const char *name)
{
    size_t i = 0;

    while (i < names->count && strcmp(names->list[i], name) != 0)
        i++;
    return i;
}

static bool is_drawn(const json_t *row)
{
    return load_text(row, "name") && load_number(row, "bytes") > 0 &&
           load_number(row, "bus_bytes_per_s") > 0;
}

static void collect_names(struct collective_names *names, const json_t *rows)
{
    size_t index;
    json_t *row;

    *names = (struct collective_names){0};
    json_array_foreach(rows, index, row)
    {
        if (is_drawn(row) && names->count < COLLECTIVES_DRAWN &&
            find_name(names, load_text(row, "name")) == names->count)
            names->list[names->count++] = load_text(row, "name");
    }
}

static void write_collectives(FILE *script, const json_t *rows,
                              const struct collective_names *names)
{
    size_t index;
    json_t *row;

    for (size_t i = 0; i < names->count; i++) {
        fprintf(script, "$collective%zu << END\n", i);
        json_array_foreach(rows, index, row)
        {
            if (is_drawn(row) && find_name(names, load_text(row, "name")) == i)
                fprintf(script, "%g %g\n", load_number(row, "bytes"),
                        load_number(row, "bus_bytes_per_s") / 1e6);
        }
        fputs("END\n", script);
    }
}

static void plot_collectives(FILE *script, const struct collective_names *names)
{
    for (size_t i = 0; i < names->count; i++) {
        fprintf(script,
                "%s$collective%zu using 1:2 with linespoints pointtype 7 linecolor rgb '%s' title ",
                i ? ", \\\n " : "plot ", i, pictures_color(i));
        gnuplot_text(script, names->list[i]);
    }
    fputc('\n', script);
}

/* ---- the picture ---- */

static void set_axes(FILE *script, const char *title, const char *unit)
{
    fprintf(script,
            "set title '%s'\nset xlabel 'bytes'\nset ylabel '%s'\nset logscale x 2\n"
            "set logscale y\nset format x '%%.0b %%BB'\nset xtics rotate\n",
            title, unit);
}

static bool draw_fabric(FILE *script, const json_t *document)
{
    const json_t *sizes = load_member(document, "messages.sizes"),
                 *pairs = load_member(document, "pairs.bytes_per_s"),
                 *rows = json_object_get(document, "collectives");
    const size_t ranks = square_of(pairs);
    struct collective_names names;

    collect_names(&names, rows);
    if (json_array_size(sizes) == 0 && ranks == 0 && names.count == 0)
        return false;
    gnuplot_begin(script, PICTURES_WIDTH, HEIGHT);
    write_messages(script, sizes);
    write_collectives(script, rows, &names);
    fputs("set multiplot layout 2,2\nset grid\nset key below\nset pointsize 0.5\n", script);
    if (json_array_size(sizes)) {
        set_axes(script, "Latency of a message", "us");
        plot_messages(script, LATENCY_CURVE, LATENCY_CURVE);
        set_axes(script, "Bandwidth of messages", "MB/s");
        plot_messages(script, LATENCY_CURVE + 1, CURVES - 1);
    }
    if (names.count) {
        set_axes(script, "Bus bandwidth of collectives", "MB/s");
        plot_collectives(script, &names);
    }
    if (ranks)
        plot_pairs(script, pairs, ranks);
    fputs("unset multiplot\n", script);
    return true;
}

static const char *const keys[] = {"started",     "command",         "place",    "transport",
                                   "nodes",       "ranks",           "settings", "verified_bytes",
                                   "degraded",    "degraded_reason", "messages", "pairs",
                                   "collectives", "beside",          NULL};

const struct document_kind document_net = {"iobench-net", "Messages, pairs and collectives", keys,
                                           draw_fabric};
