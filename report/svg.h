/* SPDX-License-Identifier: Apache-2.0
 *
 * svg: charts as SVG: panels in a grid, each with axes, a legend, and lines, points, bars or a heat
 * map. Build a chart by svg_begin(), svg_panel() and svg_curve(), then save it. Out of memory is
 * remembered and reported at the end: builders then return NULL, and accept it. Text is copied and
 * escaped. One thread at a time.
 */
#ifndef IOBENCH_REPORT_SVG_H
#define IOBENCH_REPORT_SVG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct svg_panel;
struct svg_curve;

struct svg {
    unsigned width, plot_height, columns; /* pixels; panels side by side */
    char *title;                          /* above all panels; NULL: none */
    struct svg_panel *first, *last;
    bool is_short_of_memory;
};

/* title: "" for none. Release in any case. */
void svg_begin(struct svg *svg, const char *title, unsigned width, unsigned plot_height,
               unsigned columns);
void svg_release(struct svg *svg);

/* title: "" for none. */
struct svg_panel *svg_panel(struct svg *svg, const char *title);

enum svg_scale {
    SVG_LINEAR,
    SVG_LOG,
    SVG_LOG2,
    SVG_BYTES /* log2, as "4 KiB" */,
    SVG_BARE /* no ticks */
};

/* from, to: the axis covers at least this; NAN: the data. A linear y axis also covers 0. */
void svg_x(struct svg_panel *panel, const char *label, enum svg_scale scale, double from,
           double to);
void svg_y(struct svg_panel *panel, const char *label, enum svg_scale scale, double from,
           double to);
/* Name a place on the x axis; with any, it has no other ticks. */
void svg_tick(struct svg_panel *panel, double x, const char *text);

enum svg_style {
    SVG_LINE = 0,
    SVG_POINTS = 1,
    SVG_DASHED = 2,
    SVG_DOTTED = 4,
    SVG_BARS = 8,
    SVG_ALONE = 16 /* points without a line */
};

/* Bars of several curves at one x stand side by side. color: of svg_color(), or "#rrggbb"; static.
 */
struct svg_curve *svg_curve(struct svg_panel *panel, const char *name, const char *color,
                            double width, unsigned style);
/* A value that is not finite interrupts the line. */
void svg_point(struct svg_curve *curve, double x, double y);
/* Draw a value with the ends of its interval; NAN: none. */
void svg_interval(struct svg_curve *curve, double x, double y, double low, double high);

/* Shade a range of x; name: for the legend, once; NULL: none. color: static. */
void svg_band(struct svg_panel *panel, double from, double to, const char *color, const char *name);
/* Draw a vertical line; text: "" for none. */
void svg_mark(struct svg_panel *panel, double x, const char *text);
/* Write a name beside the last point, where no earlier name is. */
void svg_name(struct svg_curve *curve, const char *name);
/* Fill the panel with rows of values, the first on top: dark at `most` (NAN: the highest), white if
 * NAN or 0. values: kept by the caller. */
void svg_map(struct svg_panel *panel, const double *values, size_t rows, size_t columns,
             double most);
/* Give the panel a row of its own. */
void svg_widen(struct svg_panel *panel);

/* Write untrusted text, escaped for SVG and HTML. */
void svg_escape(FILE *stream, const char *text);
/* Return a colour of Okabe and Ito's palette, which colour-blind people can tell apart. */
const char *svg_color(size_t number);
/* Return a tick distance of 1, 2 or 5 times a power of ten, for at most `ticks` up to `range`. */
double svg_step(double range, unsigned ticks);

/* Write the chart. Returns 0 or -ENOMEM with a reason. */
int svg_write(const struct svg *svg, FILE *stream);
/* Return its text, to be freed; NULL with a reason. */
char *svg_text(const struct svg *svg, size_t *bytes);

/* Return 0 if path ends in .svg, .png or .pdf or is "-" (SVG), else -EINVAL with a reason. */
int svg_check_path(const char *path);
/* Write the chart to path as its suffix says ("-": SVG to standard output); PNG and PDF by
 * rsvg-convert(1). Returns 0 or a negative errno with a reason. */
int svg_save(const struct svg *svg, const char *path);

#endif
