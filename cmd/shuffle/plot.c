/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/shuffle/plot.h"

#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum {
    WIDTH = 1100,
    HEIGHT = 170,
    MAP_VALUES = PLOT_BATCHES * PLOT_LABELS + PLOT_NEIGHBOURS * PLOT_NEIGHBOURS
};

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

    assert(label < panel->classes);
    /* Sampled: the first batch of each sixteenth of the epoch. */
    if (row < PLOT_BATCHES && (batch == 0 || (batch - 1) * PLOT_BATCHES / batches != row))
        panel->labels[row][column_of(panel, label, PLOT_LABELS)]++;
    if (draw > 0)
        panel->neighbours[column_of(panel, label, PLOT_NEIGHBOURS)]
                         [column_of(panel, panel->last_label, PLOT_NEIGHBOURS)]++;
    panel->last_label = label;
}

static int compare_speed(const void *a, const void *b)
{
    const struct plot_panel *x = *(struct plot_panel *const *)a,
                            *y = *(struct plot_panel *const *)b;

    return (x->bytes_per_s < y->bytes_per_s) - (x->bytes_per_s > y->bytes_per_s);
}

/* counts: rows of `stride`; even: their mean if all are as many. */
static void draw_map(struct svg_panel *map, const uint32_t *counts, size_t rows, size_t columns,
                     size_t stride, double even, double *values)
{
    for (size_t i = 0; i < rows * columns; i++)
        values[i] = counts[i / columns * stride + i % columns] / even;
    svg_map(map, values, rows, columns, 8);
}

int plot_begin(struct svg *svg, const struct plot_panel *panels, size_t count, bool has_maps,
               double **values)
{
    const struct plot_panel **read = memory_array(count, sizeof *read);
    size_t used = 0;

    *values = has_maps ? memory_array(count * MAP_VALUES, sizeof **values) : NULL;
    svg_begin(svg,
              has_maps ? "Left: labels of 16 batches, the first of the epoch on top. Right: label "
                         "of a sample and of "
                         "the next one. Dark: eight times the average"
                       : "",
              WIDTH, has_maps ? HEIGHT : 2 * HEIGHT, 4);
    if (!read || (has_maps && !*values)) {
        free(read);
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++)
        if (panels[i].title[0] && panels[i].bytes_per_s > 0)
            read[used++] = &panels[i];
    qsort(read, used, sizeof *read, compare_speed);
    if (used) { /* from the fastest down, so that names move into free space */
        struct svg_panel *chart = svg_panel(svg, "Randomness against throughput");
        struct svg_curve *front = svg_curve(chart, "Pareto front", "#aabbcc", 1, SVG_LINE);
        struct svg_curve *cold = svg_curve(chart, "verified cold", svg_color(0), 1, SVG_ALONE);
        struct svg_curve *others =
            svg_curve(chart, "not verified cold", svg_color(1), 1, SVG_ALONE);
        svg_widen(chart);
        svg_x(chart, "distinct labels per batch relative to a random draw", SVG_LINEAR, 0, 1.2);
        svg_y(chart, "MiB/s, read by one rank", SVG_LINEAR, 0, NAN);
        for (size_t i = 0; i < used; i++) {
            struct svg_curve *curve = read[i]->verified ? cold : others;
            const double rate = read[i]->bytes_per_s / (1 << 20);
            svg_point(curve, read[i]->randomness, rate);
            svg_name(curve, read[i]->title);
            if (read[i]->on_front)
                svg_point(front, read[i]->randomness, rate);
        }
    }
    free(read);
    for (size_t i = 0; has_maps && i < count; i++) {
        const struct plot_panel *panel = &panels[i];
        if (!panel->title[0])
            continue;
        const uint32_t columns = least(panel->classes, PLOT_LABELS),
                       side = least(panel->classes, PLOT_NEIGHBOURS);
        double *at = *values + i * MAP_VALUES;
        struct svg_panel *labels = svg_panel(svg, panel->title), *neighbours = svg_panel(svg, "");
        svg_x(labels, "label", SVG_BARE, NAN, NAN);
        svg_y(labels, "batch", SVG_BARE, NAN, NAN);
        svg_x(neighbours, "label", SVG_BARE, NAN, NAN);
        svg_y(neighbours, "label of the next", SVG_BARE, NAN, NAN);
        draw_map(labels, panel->labels[0], PLOT_BATCHES, columns, PLOT_LABELS,
                 (double)panel->batch_size / columns, at);
        draw_map(neighbours, panel->neighbours[0], side, side, PLOT_NEIGHBOURS,
                 (double)panel->draws / side / side, at + PLOT_BATCHES * PLOT_LABELS);
    }
    return 0;
}
