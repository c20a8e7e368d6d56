/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/shuffle_plot.h"

#include "base/fail.h"
#include "report/report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIDE = 160, WIDE = 384, GAP = 24, TITLE = 18, CHART = 360 };

void plot_draw(struct plot_panel *panel, uint64_t draw, uint32_t label)
{
    const uint64_t batches = panel->draws / panel->batch_size;
    const uint64_t batch = draw / panel->batch_size;
    const uint64_t step = batches > PLOT_BATCHES ? batches / PLOT_BATCHES : 1;
    const uint64_t stride = panel->draws > PLOT_POINTS ? panel->draws / PLOT_POINTS : 1;

    if (batch % step == 0 && batch / step < PLOT_BATCHES)
        panel->labels[batch / step][(uint64_t)label * PLOT_LABELS / panel->classes]++;
    if (draw > 0 && draw % stride == 0 && panel->point_count < PLOT_POINTS) {
        uint16_t *point = panel->points[panel->point_count++];
        point[0] = (uint16_t)((uint64_t)panel->last_label * 1000 / panel->classes);
        point[1] = (uint16_t)((uint64_t)label * 1000 / panel->classes);
    }
    panel->last_label = label;
}

bool plot_on_front(const struct plot_panel *panels, size_t count, size_t index)
{
    const struct plot_panel *panel = &panels[index];

    for (size_t i = 0; i < count; i++)
        if (panels[i].randomness >= panel->randomness &&
            panels[i].bytes_per_s >= panel->bytes_per_s &&
            (panels[i].randomness > panel->randomness ||
             panels[i].bytes_per_s > panel->bytes_per_s))
            return false;
    return panel->bytes_per_s > 0;
}

/* Titles hold what a user typed. */
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

/* A row a batch; the taller a stroke, the more of the batch is of those labels. */
static void write_labels(FILE *svg, const struct plot_panel *panel, double x, double y)
{
    const double row = (double)SIDE / PLOT_BATCHES, column = (double)WIDE / PLOT_LABELS;

    write_frame(svg, x, y, WIDE, SIDE);
    fprintf(svg, "<path stroke-width=\"%g\" d=\"", column);
    for (int batch = 0; batch < PLOT_BATCHES; batch++)
        for (int label = 0; label < PLOT_LABELS; label++) {
            double share = (double)panel->labels[batch][label] / panel->batch_size;
            if (share > 0)
                fprintf(svg, "M%.1f %.1fv-%.1f", x + (label + 0.5) * column, y + (batch + 1) * row,
                        (share < 0.05 ? 0.15 + 14 * share : 0.85 + 0.15 * share) * row);
        }
    fputs("\"/>\n", svg);
}

static void write_points(FILE *svg, const struct plot_panel *panel, double x, double y)
{
    write_frame(svg, x, y, SIDE, SIDE);
    fputs("<path stroke-width=\"1.5\" d=\"", svg);
    for (uint32_t i = 0; i < panel->point_count; i++)
        fprintf(svg, "M%.1f %.1fh1.5", x + panel->points[i][0] * SIDE / 1000.0,
                y + SIDE - panel->points[i][1] * SIDE / 1000.0);
    fputs("\"/>\n", svg);
}

static void write_chart(FILE *svg, const struct plot_panel *panels, size_t count, double y)
{
    const double width = GAP + WIDE + SIDE;
    double most = 0;
    char text[200];

    for (size_t i = 0; i < count; i++)
        most = panels[i].bytes_per_s > most ? panels[i].bytes_per_s : most;
    snprintf(text, sizeof text,
             "randomness (labels a batch over a random draw, to the right 1) against cold "
             "throughput (up to %.0f MiB/s); filled: Pareto front",
             most / (1 << 20));
    write_text(svg, GAP, y - 5, text);
    write_frame(svg, GAP, y, width, CHART);
    for (size_t i = 0; i < count; i++) {
        const struct plot_panel *panel = &panels[i];
        const double right = GAP + panel->randomness * (width - 90);
        const double up = y + CHART - panel->bytes_per_s / most * (CHART - 20);
        if (panel->bytes_per_s <= 0)
            continue;
        fprintf(svg, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" %s/>\n", right, up,
                plot_on_front(panels, count, i) ? "fill=\"#136\"" : "");
        write_text(svg, right + 7, up + 4, panel->title);
    }
}

int plot_write(const char *path, const struct plot_panel *panels, size_t count)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *svg = open_memstream(&text, &bytes);
    bool measured = false;

    if (!svg)
        return fail(errno, "%s: out of memory", path);
    for (size_t i = 0; i < count; i++)
        measured = measured || panels[i].bytes_per_s > 0;
    const double below = (double)count * (TITLE + SIDE + GAP) + GAP;
    fprintf(svg,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%g\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
            "<g font-family=\"sans-serif\" font-size=\"12\" fill=\"#222\">\n"
            "<g fill=\"none\" stroke=\"#136\">\n"
            "<style>text{fill:#222;stroke:none}rect{stroke:#bbb}</style>\n",
            3 * GAP + WIDE + SIDE, below + (measured ? CHART + TITLE + GAP : 0));
    for (size_t i = 0; i < count; i++) {
        const double y = GAP + (double)i * (TITLE + SIDE + GAP) + TITLE;
        write_text(svg, GAP, y - 5, panels[i].title);
        write_text(svg, 2 * GAP + WIDE, y - 5, "next label over label");
        write_labels(svg, &panels[i], GAP, y);
        write_points(svg, &panels[i], 2 * GAP + WIDE, y);
    }
    if (measured)
        write_chart(svg, panels, count, below + TITLE);
    fputs("</g></g></svg>\n", svg);
    int code =
        fclose(svg) ? fail(errno, "%s: out of memory", path) : report_write_file(path, text, bytes);
    free(text);
    return code;
}
