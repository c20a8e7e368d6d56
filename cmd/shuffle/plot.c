/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/shuffle/plot.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/text_stream.h"
#include "report/report.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Pixels. A cell of the page holds the two maps of a shuffle; two cells are side by side. */
enum {
    SIDE = 160,
    WIDE = 320,
    GAP = 24,
    TITLE = 18,
    CELL_WIDTH = WIDE + SIDE + 2 * GAP,
    CELL_HEIGHT = TITLE + SIDE + GAP,
    PAGE = 2 * CELL_WIDTH + GAP,
    SHADES = 5,
};

/* The frame of the chart; its right-hand part is for names. */
enum { LEFT = 70, CHART_WIDTH = PAGE - LEFT - GAP, CHART = 400, NAMES = 170, NAME_HEIGHT = 13 };

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Column of a label; may hold several labels. */
static uint32_t column_of(const struct plot_panel *panel, uint32_t label, uint32_t columns)
{
    return (uint32_t)((uint64_t)label * least(panel->classes, columns) / panel->classes);
}

void plot_draw(struct plot_panel *panel, uint64_t draw, uint32_t label)
{
    const uint64_t batches = (panel->draws + panel->batch_size - 1) / panel->batch_size;
    const uint64_t batch = draw / panel->batch_size, row = batch * PLOT_BATCHES / batches;

    /* Sampled: the first batch of each sixteenth of the epoch. */
    if (row < PLOT_BATCHES && (batch == 0 || (batch - 1) * PLOT_BATCHES / batches != row))
        panel->labels[row][column_of(panel, label, PLOT_LABELS)]++;
    if (draw > 0)
        panel->neighbours[column_of(panel, label, PLOT_NEIGHBOURS)]
                         [column_of(panel, panel->last_label, PLOT_NEIGHBOURS)]++;
    panel->last_label = label;
}

/* Titles hold user input: escape it. */
static void write_text(FILE *svg, double x, double y, const char *text)
{
    fprintf(svg, "<text x=\"%g\" y=\"%g\">", x, y);
    for (; *text; text++) {
        if (*text == '<' || *text == '&')
            fprintf(svg, "&#%d;", *text);
        else
            fputc(*text, svg);
    }
    fputs("</text>\n", svg);
}

static void write_frame(FILE *svg, double x, double y, double width, double height)
{
    fprintf(svg, "<rect x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\"/>\n", x, y, width, height);
}

/* Return a shade from 0 (none) to SHADES (eight times `even`, the count of an even spread). */
static int shade_of(uint32_t count, double even)
{
    return (int)fmin(ceil(count / even / 8 * SHADES), SHADES);
}

/* Draw counts as a map of height SIDE; stride: counts per row. */
static void write_map(FILE *svg, const uint32_t *cells, uint32_t rows, uint32_t columns,
                      uint32_t stride, double even, double x, double y, double width)
{
    const double row_height = (double)SIDE / rows, cell_width = width / columns;

    write_frame(svg, x, y, width, SIDE);
    for (int shade = 1; shade <= SHADES; shade++) {
        fprintf(svg, "<path stroke-width=\"%.2f\" stroke-opacity=\"%.2f\" d=\"", row_height,
                (double)shade / SHADES);
        for (uint32_t row = 0; row < rows; row++)
            for (uint32_t column = 0, run; column < columns; column += run) {
                const uint32_t *cell = cells + (size_t)row * stride + column;
                for (run = 0; column + run < columns && shade_of(cell[run], even) == shade; run++)
                    ;
                if (run)
                    fprintf(svg, "M%.1f %.1fh%.1f", x + column * cell_width,
                            y + (row + 0.5) * row_height, run * cell_width);
                else
                    run = 1;
            }
        fputs("\"/>\n", svg);
    }
}

static void write_neighbours(FILE *svg, const struct plot_panel *panel, double x, double y)
{
    const uint32_t side = least(panel->classes, PLOT_NEIGHBOURS);

    write_map(svg, panel->neighbours[0], side, side, PLOT_NEIGHBOURS,
              (double)panel->draws / side / side, x, y, SIDE);
}

/* ---- randomness against throughput ---- */

struct name {
    double x, y, width; /* left end, base line */
};

/* Tick distance: 1, 2 or 5 times a power of ten, at most eight ticks. */
static double nice_step(double most)
{
    const double power = pow(10, floor(log10(most / 8)));
    const double parts = most / 8 / power;

    return power * (parts <= 1 ? 1 : parts <= 2 ? 2 : parts <= 5 ? 5 : 10);
}

static double chart_x(double randomness)
{
    return LEFT + randomness * (CHART_WIDTH - NAMES);
}

static double chart_y(double top, double most, double bytes_per_s)
{
    return top + CHART - bytes_per_s / most * (CHART - 20);
}

/* If names overlap, move the lower one. */
static struct name place_name(const struct name *names, size_t count, struct name name)
{
    for (size_t i = 0; i < count; i++)
        if (fabs(names[i].y - name.y) < NAME_HEIGHT - 0.5 && name.x < names[i].x + names[i].width &&
            names[i].x < name.x + name.width) {
            name.y = names[i].y + NAME_HEIGHT;
            i = (size_t)-1; /* check all again */
        }
    return name;
}

static int compare_speed(const void *a, const void *b)
{
    const struct plot_panel *x = *(struct plot_panel *const *)a,
                            *y = *(struct plot_panel *const *)b;

    return (x->bytes_per_s < y->bytes_per_s) - (x->bytes_per_s > y->bytes_per_s);
}

/* Chart the panels that have a throughput, if any. */
static int write_front(FILE *svg, const struct plot_panel *panels, size_t count)
{
    const struct plot_panel **read = memory_array(count, sizeof *read);
    struct name *names = memory_array(count, sizeof *names);
    size_t used = 0;
    int code = read && names ? 0 : -ENOMEM;

    for (size_t i = 0; code == 0 && i < count; i++)
        if (panels[i].title[0] && panels[i].bytes_per_s > 0)
            read[used++] = &panels[i];
    if (used) {
        qsort(read, used, sizeof *read, compare_speed);
        /* Place names from the fastest down, so that they move into free space. */
        const double top = GAP + TITLE;
        const double most = read[0]->bytes_per_s;
        const char *move = "M";
        const double mib = most / (1 << 20), step = nice_step(mib);
        char text[32];
        write_frame(svg, LEFT, top, CHART_WIDTH, CHART);
        for (double value = 0; value <= mib; value += step) {
            const double y = chart_y(top, mib, value);
            fprintf(svg, "<path stroke=\"#ddd\" d=\"M%d %.1fh%d\"/>\n", LEFT, y, CHART_WIDTH);
            snprintf(text, sizeof text, "%g", value);
            write_text(svg, 24, y + 4, text);
        }
        for (int quarter = 0; quarter <= 4; quarter++) {
            const double x = chart_x(quarter / 4.0);
            fprintf(svg, "<path stroke=\"#ddd\" d=\"M%.1f %.1fv%d\"/>\n", x, top, CHART);
            snprintf(text, sizeof text, "%g", quarter / 4.0);
            write_text(svg, x - 8, top + CHART + 15, text);
        }
        write_text(svg, GAP, top - 8, "MiB/s, read cold by one rank");
        write_text(
            svg, LEFT, top + CHART + 32,
            "randomness: distinct labels per batch relative to a random draw. Filled, with a "
            "line: the Pareto front. Dashed: not verified cold");
        fputs("<path stroke=\"#abc\" d=\"", svg);
        for (size_t i = 0; i < used; i++)
            if (read[i]->on_front) {
                fprintf(svg, "%s%.1f %.1f", move, chart_x(read[i]->randomness),
                        chart_y(top, most, read[i]->bytes_per_s));
                move = "L";
            }
        fputs("\"/>\n", svg);
        for (size_t i = 0; i < used; i++) {
            const double x = chart_x(read[i]->randomness);
            const double y = chart_y(top, most, read[i]->bytes_per_s);
            names[i] = place_name(
                names, i, (struct name){x + 9, y + 4, 6.3 * (double)strlen(read[i]->title)});
            fprintf(svg, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\"%s%s/>\n", x, y,
                    read[i]->on_front ? " fill=\"#136\"" : "",
                    read[i]->verified ? "" : " stroke-dasharray=\"2 2\"");
            if (names[i].y > y + NAME_HEIGHT)
                fprintf(svg, "<path stroke=\"#bbb\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", x + 4, y,
                        names[i].x - 2, names[i].y - 4);
            write_text(svg, names[i].x, names[i].y, read[i]->title);
        }
    }
    free(read);
    free(names);
    return code;
}

/* ---- the page ---- */

static void write_cells(FILE *svg, const struct plot_panel *panels, size_t count, double top)
{
    size_t cell = 0;

    write_text(svg, GAP, top,
               "Left: labels of 16 batches, the first of the epoch on top. Right: label of a "
               "sample (across) and of the next one (down). Pale: the average count; dark: eight "
               "times the average");
    top += 2 * TITLE;
    for (size_t i = 0; i < count; i++) {
        if (!panels[i].title[0])
            continue;
        const double x = GAP + (double)(cell % 2) * CELL_WIDTH;
        const double y = top + (double)(cell / 2) * CELL_HEIGHT;
        write_text(svg, x, y - 5, panels[i].title);
        /* The first batch is on top. */
        const uint32_t columns = least(panels[i].classes, PLOT_LABELS);
        write_map(svg, panels[i].labels[0], PLOT_BATCHES, columns, PLOT_LABELS,
                  (double)panels[i].batch_size / columns, x, y, WIDE);
        write_neighbours(svg, &panels[i], x + GAP + WIDE, y);
        cell++;
    }
}

static bool has_front(const struct plot_panel *panels, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (panels[i].bytes_per_s > 0)
            return true;
    return false;
}

int plot_svg(FILE *svg, const struct plot_panel *panels, size_t count, bool has_maps)
{
    const double top = has_front(panels, count) ? TITLE + CHART + 3 * GAP + TITLE : GAP;
    size_t cells = 0;
    for (size_t i = 0; i < count; i++)
        cells += panels[i].title[0] != '\0';
    const double maps = 2 * TITLE + (double)((cells + 1) / 2) * CELL_HEIGHT;

    fprintf(svg,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%g\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
            "<g font-family=\"sans-serif\" font-size=\"12\" fill=\"#222\">\n"
            "<g fill=\"none\" stroke=\"#136\">\n"
            "<style>text{fill:#222;stroke:none}rect{stroke:#bbb}</style>\n",
            PAGE, top + (has_maps ? maps : 0));
    int code = write_front(svg, panels, count);
    if (has_maps)
        write_cells(svg, panels, count, top);
    fputs("</g></g></svg>\n", svg);
    return code;
}

int plot_write(const char *path, const struct plot_panel *panels, size_t count)
{
    struct text_stream stream;
    char *text = NULL;
    size_t bytes = 0;

    if (text_stream_open(&stream))
        return -ENOMEM;
    int code = plot_svg(stream.stream, panels, count, true);
    int taken = text_stream_take(&stream, &text, &bytes);
    if (code == 0)
        code = taken;
    if (code == 0)
        code = report_write_file(path, text, bytes);
    free(text);
    return code;
}
