/* SPDX-License-Identifier: Apache-2.0 */
#include "report/svg.h"

#include "base/child.h"
#include "base/escape.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "report/report.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Pixels. LETTER: mean width of a letter at 11 pixels, which no renderer is asked for. */
enum {
    LEFT = 66,
    RIGHT = 24,
    LINE = 16,
    HEADING = 22,
    BELOW = 42,
    SWATCH = 22,
    SHADES = 16,
    NAMES_MOST = 256,
    TICKS_MOST = 10
};
static const double LETTER = 6.2;
static const uint64_t convert_limit_ns = UINT64_C(120000000000);

struct svg_axis {
    char *label;
    enum svg_scale scale;
    double from, to;
};

struct svg_label {
    double at;
    char *text;
};

struct svg_shade {
    double from, to;
    const char *color;
    char *name;
};

struct svg_point {
    double x, y, low, high;
    char *name; /* NULL: none */
};

struct svg_curve {
    struct svg_curve *next;
    struct svg_panel *panel;
    char *name;
    const char *color;
    double width;
    unsigned style;
    struct svg_point *points;
    size_t count;
};

struct svg_panel {
    struct svg_panel *next;
    struct svg *svg;
    char *title;
    struct svg_axis x, y;
    struct svg_curve *first, *last;
    struct svg_label *ticks, *marks;
    struct svg_shade *bands;
    size_t tick_count, mark_count, band_count, bar_curves, rows, columns;
    const double *map;
    double map_most;
    bool is_wide;
};

const char *svg_color(size_t number)
{
    static const char *const colors[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                         "#e69f00", "#56b4e9", "#8c564b", "#000000"};

    return colors[number % (sizeof colors / sizeof *colors)];
}

double svg_step(double range, unsigned ticks)
{
    const double power = pow(10, floor(log10(range / ticks))), parts = range / ticks / power;

    return power * (parts <= 1 ? 1 : parts <= 2 ? 2 : parts <= 5 ? 5 : 10);
}

/* ---- building ---- */

static char *keep_text(struct svg *svg, const char *text)
{
    char *copy = strdup(text);

    svg->is_short_of_memory |= !copy;
    return copy;
}

/* Reserve space for an element more; false if there is no memory. */
static bool has_room(struct svg *svg, void *rows, size_t count, size_t size)
{
    const bool fits = memory_room(rows, count, size, "parts of a chart") == 0;

    svg->is_short_of_memory |= !fits;
    return fits;
}

void svg_begin(struct svg *svg, const char *title, unsigned width, unsigned plot_height,
               unsigned columns)
{
    *svg = (struct svg){.width = width, .plot_height = plot_height, .columns = columns};
    svg->title = *title ? keep_text(svg, title) : NULL;
}

void svg_release(struct svg *svg)
{
    for (struct svg_panel *panel = svg->first, *next; panel; panel = next) {
        next = panel->next;
        for (struct svg_curve *curve = panel->first, *after; curve; curve = after) {
            after = curve->next;
            for (size_t i = 0; i < curve->count; i++)
                free(curve->points[i].name);
            free(curve->points);
            free(curve->name);
            free(curve);
        }
        for (size_t i = 0; i < panel->tick_count; i++)
            free(panel->ticks[i].text);
        for (size_t i = 0; i < panel->mark_count; i++)
            free(panel->marks[i].text);
        for (size_t i = 0; i < panel->band_count; i++)
            free(panel->bands[i].name);
        free(panel->ticks);
        free(panel->marks);
        free(panel->bands);
        free(panel->x.label);
        free(panel->y.label);
        free(panel->title);
        free(panel);
    }
    free(svg->title);
    *svg = (struct svg){0};
}

struct svg_panel *svg_panel(struct svg *svg, const char *title)
{
    struct svg_panel *panel = memory_zeroed(sizeof *panel);

    svg->is_short_of_memory |= !panel;
    if (!panel)
        return NULL;
    *panel = (struct svg_panel){
        .svg = svg, .x = {.from = NAN, .to = NAN}, .y = {.from = NAN, .to = NAN}};
    panel->title = *title ? keep_text(svg, title) : NULL;
    if (svg->last)
        svg->last->next = panel;
    else
        svg->first = panel;
    return svg->last = panel;
}

static void set_axis(struct svg_panel *panel, struct svg_axis *axis, const char *label,
                     enum svg_scale scale, double from, double to)
{
    free(axis->label);
    *axis = (struct svg_axis){*label ? keep_text(panel->svg, label) : NULL, scale, from, to};
}

void svg_x(struct svg_panel *panel, const char *label, enum svg_scale scale, double from, double to)
{
    if (panel)
        set_axis(panel, &panel->x, label, scale, from, to);
}

void svg_y(struct svg_panel *panel, const char *label, enum svg_scale scale, double from, double to)
{
    if (panel)
        set_axis(panel, &panel->y, label, scale, from, to);
}

void svg_tick(struct svg_panel *panel, double x, const char *text)
{
    if (panel && has_room(panel->svg, &panel->ticks, panel->tick_count, sizeof *panel->ticks))
        panel->ticks[panel->tick_count++] = (struct svg_label){x, keep_text(panel->svg, text)};
}

void svg_mark(struct svg_panel *panel, double x, const char *text)
{
    if (panel && has_room(panel->svg, &panel->marks, panel->mark_count, sizeof *panel->marks))
        panel->marks[panel->mark_count++] = (struct svg_label){x, keep_text(panel->svg, text)};
}

void svg_band(struct svg_panel *panel, double from, double to, const char *color, const char *name)
{
    if (panel && has_room(panel->svg, &panel->bands, panel->band_count, sizeof *panel->bands))
        panel->bands[panel->band_count++] =
            (struct svg_shade){from, to, color, name ? keep_text(panel->svg, name) : NULL};
}

void svg_map(struct svg_panel *panel, const double *values, size_t rows, size_t columns,
             double most)
{
    if (!panel)
        return;
    panel->map = values;
    panel->rows = rows;
    panel->columns = columns;
    panel->map_most = most;
}

void svg_widen(struct svg_panel *panel)
{
    if (panel)
        panel->is_wide = true;
}

void svg_name(struct svg_curve *curve, const char *name)
{
    if (curve && curve->count && !curve->points[curve->count - 1].name)
        curve->points[curve->count - 1].name = keep_text(curve->panel->svg, name);
}

struct svg_curve *svg_curve(struct svg_panel *panel, const char *name, const char *color,
                            double width, unsigned style)
{
    struct svg_curve *curve = panel ? memory_zeroed(sizeof *curve) : NULL;

    if (!curve) {
        if (panel)
            panel->svg->is_short_of_memory = true;
        return NULL;
    }
    *curve = (struct svg_curve){.panel = panel,
                                .name = keep_text(panel->svg, name),
                                .color = color,
                                .width = width,
                                .style = style};
    panel->bar_curves += style & SVG_BARS ? 1 : 0;
    if (panel->last)
        panel->last->next = curve;
    else
        panel->first = curve;
    return panel->last = curve;
}

void svg_interval(struct svg_curve *curve, double x, double y, double low, double high)
{
    if (curve && has_room(curve->panel->svg, &curve->points, curve->count, sizeof *curve->points))
        curve->points[curve->count++] = (struct svg_point){x, y, low, high, NULL};
}

void svg_point(struct svg_curve *curve, double x, double y)
{
    svg_interval(curve, x, y, NAN, NAN);
}

/* ---- axes ---- */

/* Where a panel's plot is. */
struct svg_frame {
    double left, top, width, height;
    struct svg_axis x, y; /* with the ends that are drawn */
};

/* Return the place of a value on an axis, 0 to 1; NAN if it has none. */
static double share_of(const struct svg_axis *axis, double value)
{
    const double place = axis->scale == SVG_LINEAR
                             ? (value - axis->from) / (axis->to - axis->from)
                             : log(value / axis->from) / log(axis->to / axis->from);

    return isfinite(place) ? fmin(fmax(place, 0), 1) : NAN;
}

static double x_of(const struct svg_frame *frame, double value)
{
    return frame->left + share_of(&frame->x, value) * frame->width;
}

static double y_of(const struct svg_frame *frame, double value)
{
    return frame->top + (1 - share_of(&frame->y, value)) * frame->height;
}

/* Extend an axis to a value, but not to one that no storage, clock or memory has: nothing else
 * would be visible. */
static void cover(struct svg_axis *axis, double value)
{
    if (!(fabs(value) < 1e30) || (axis->scale != SVG_LINEAR && !(value > 1e-30)))
        return;
    axis->from = fmin(axis->from, value); /* of NAN and a number, fmin() is the number */
    axis->to = fmax(axis->to, value);
}

/* Return the nearest power of two, or of ten times 1, 2 or 5, not above value (up: not below). */
static double round_log(enum svg_scale scale, double value, bool up)
{
    if (scale != SVG_LOG)
        return exp2(up ? ceil(log2(value) - 1e-9) : floor(log2(value) + 1e-9));
    const double power = pow(10, floor(log10(value) + 1e-9)), parts = value / power;
    const double edge = 1e-9;

    if (up)
        return power * (parts <= 1 + edge ? 1 : parts <= 2 + edge ? 2 : parts <= 5 + edge ? 5 : 10);
    return power * (parts >= 5 - edge ? 5 : parts >= 2 - edge ? 2 : 1);
}

/* The range of the data, then for y that of whole ticks. */
static void fit_axes(const struct svg_panel *panel, struct svg_frame *frame)
{
    struct svg_axis *x = &frame->x, *y = &frame->y;

    *x = panel->x;
    *y = panel->y;
    if (y->scale == SVG_LINEAR)
        cover(y, 0);
    for (const struct svg_curve *curve = panel->first; curve; curve = curve->next)
        for (size_t i = 0; i < curve->count; i++) {
            const struct svg_point *point = &curve->points[i];
            const double half = curve->style & SVG_BARS ? 0.5 : 0;
            cover(x, point->x - half);
            cover(x, point->x + half);
            cover(y, point->y);
            cover(y, point->low);
            cover(y, point->high);
        }
    if (panel->map) {
        *x = (struct svg_axis){x->label, x->scale, -0.5, (double)panel->columns - 0.5};
        *y = (struct svg_axis){y->label, y->scale, (double)panel->rows - 0.5, -0.5};
        return;
    }
    struct svg_axis *const both[] = {x, y};
    for (size_t i = 0; i < 2; i++) {
        struct svg_axis *axis = both[i];
        const bool is_linear = axis->scale == SVG_LINEAR;
        axis->from = isfinite(axis->from) ? axis->from : is_linear ? 0 : 1;
        axis->to = isfinite(axis->to) ? axis->to : axis->from;
        if (!is_linear && axis == y) {
            axis->from = round_log(axis->scale, axis->from, false);
            axis->to = round_log(axis->scale, axis->to, true);
        }
        if (!(axis->to - axis->from > fmax(fabs(axis->from) * 1e-6, 1e-30)))
            axis->to = is_linear ? axis->from + fmax(1, fabs(axis->from) * 1e-3) : axis->from * 2;
        if (is_linear && axis == y) {
            const double step = svg_step(axis->to - axis->from, 6);
            axis->from = floor(axis->from / step + 1e-9) * step;
            axis->to = ceil(axis->to / step - 1e-9) * step;
        }
        assert(axis->to > axis->from);
    }
}

/* Set the values of at most TICKS_MOST ticks. Returns their number. */
static unsigned ticks_of(const struct svg_axis *axis, double at[TICKS_MOST + 2])
{
    const double low = fmin(axis->from, axis->to), high = fmax(axis->from, axis->to),
                 edge = (high - low) * 1e-9;
    unsigned count = 0;

    if (axis->scale == SVG_BARE)
        return 0;
    if (axis->scale == SVG_LINEAR) {
        const double step = svg_step(high - low, 7);
        for (double i = ceil(low / step - 1e-9); i * step <= high + edge && count < TICKS_MOST; i++)
            at[count++] = i * step;
        return count;
    }
    const bool is_binary = axis->scale != SVG_LOG;
    const double base = is_binary ? 2 : 10, decades = log(high / low) / log(base);
    const double stride = ceil(decades / (TICKS_MOST - 2));
    const bool has_parts = !is_binary && decades < 3;

    for (double power = floor(log(low) / log(base) + 1e-9); count < TICKS_MOST;
         power += fmax(stride, 1)) {
        static const double parts[] = {1, 2, 5};
        if (pow(base, power) > high * (1 + 1e-9))
            break;
        for (size_t i = 0; i < (has_parts ? 3 : 1) && count < TICKS_MOST; i++) {
            const double value = pow(base, power) * parts[i];
            if (value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9))
                at[count++] = value;
        }
    }
    return count;
}

static void tick_text(const struct svg_axis *axis, double value, char text[32])
{
    static const struct {
        double factor;
        const char *unit;
    } units[] = {{1e9, " G"}, {1e6, " M"}, {1e3, " k"}},
      binary[] = {{0x1p30, " GiB"}, {0x1p20, " MiB"}, {0x1p10, " KiB"}};

    snprintf(text, 32, axis->scale == SVG_BYTES ? "%.4g B" : "%.4g",
             fabs(value) < 1e-12 ? 0 : value);
    for (size_t i = 0; i < 3; i++) {
        const bool is_bytes = axis->scale == SVG_BYTES;
        const double factor = is_bytes ? binary[i].factor : units[i].factor;
        if (fabs(value) < (is_bytes ? factor : fmax(factor, 1e4)))
            continue;
        snprintf(text, 32, "%.4g%s", value / factor, is_bytes ? binary[i].unit : units[i].unit);
        break;
    }
}

/* ---- drawing ---- */

void svg_escape(FILE *stream, const char *text)
{
    for (text = escape_shown(text); *text; text++) {
        if (strchr("<>&\"'", *text))
            fprintf(stream, "&#%d;", *text);
        else
            fputc(*text, stream);
    }
}

/* attributes: of the element, with a leading blank. */
static void write_text(FILE *stream, double x, double y, const char *attributes, const char *text)
{
    fprintf(stream, "<text x=\"%.1f\" y=\"%.1f\"%s>", x, y, attributes);
    svg_escape(stream, text);
    fputs("</text>\n", stream);
}

static const char *dashes_of(unsigned style)
{
    return style & SVG_DASHED   ? " stroke-dasharray=\"5 3\""
           : style & SVG_DOTTED ? " stroke-dasharray=\"2 3\""
                                : "";
}

/* Lay out or draw the legend, with rows of the plot's width from y on. Returns its height. */
static double write_legend(FILE *stream, const struct svg_panel *panel, double left, double y,
                           double width)
{
    const struct svg_curve *curve = panel->first;
    double x = left, rows = 0;

    for (size_t i = 0; curve || i < panel->band_count;) {
        const char *name = curve ? curve->name : panel->bands[i].name;
        const double room = name ? SWATCH + LETTER * (double)strlen(name) + 14 : 0;
        if (name && *name) {
            if (rows == 0 || (x > left && x + room > left + width)) {
                x = left;
                rows++;
            }
            const double line = y + rows * LINE - 5;
            if (stream && curve && !(curve->style & SVG_BARS))
                fprintf(stream, "<path stroke=\"%s\" stroke-width=\"2\"%s d=\"M%.1f %.1fh16\"/>\n",
                        curve->color, dashes_of(curve->style), x, line - 4);
            else if (stream)
                fprintf(stream, "<path fill=\"%s\" d=\"M%.1f %.1fh16v9h-16z\"/>\n",
                        curve ? curve->color : panel->bands[i].color, x, line - 8);
            if (stream)
                write_text(stream, x + SWATCH, line, "", name);
            x += room;
        }
        if (curve)
            curve = curve->next;
        else
            i++;
    }
    return rows * LINE;
}

/* Return whether the names on the x axis are too wide to stand side by side. */
static bool are_slanted(const struct svg_panel *panel, double width)
{
    for (size_t i = 0; i < panel->tick_count; i++)
        if (panel->ticks[i].text &&
            LETTER * (double)strlen(panel->ticks[i].text) + 6 > width / (double)panel->tick_count)
            return true;
    return false;
}

static double names_height(const struct svg_panel *panel, double width)
{
    size_t longest = 0;

    for (size_t i = 0; are_slanted(panel, width) && i < panel->tick_count; i++)
        if (panel->ticks[i].text && strlen(panel->ticks[i].text) > longest)
            longest = strlen(panel->ticks[i].text);
    return fmin(0.5 * LETTER * (double)longest, 120);
}

static void write_axes(FILE *stream, const struct svg_panel *panel, const struct svg_frame *frame)
{
    const double bottom = frame->top + frame->height, right = frame->left + frame->width;
    double at[TICKS_MOST + 2];
    char text[32];
    unsigned count = ticks_of(&frame->y, at);

    for (unsigned i = 0; i < count; i++) {
        const double y = y_of(frame, at[i]);
        if (!panel->map)
            fprintf(stream, "<path stroke=\"#ddd\" d=\"M%.1f %.1fH%.1f\"/>\n", frame->left, y,
                    right);
        tick_text(&frame->y, at[i], text);
        write_text(stream, frame->left - 5, y + 4, " text-anchor=\"end\"", text);
    }
    count = panel->tick_count ? (unsigned)panel->tick_count : ticks_of(&frame->x, at);
    for (unsigned i = 0; i < count; i++) {
        const double value = panel->tick_count ? panel->ticks[i].at : at[i], x = x_of(frame, value);
        char turn[96] = " text-anchor=\"middle\"";
        if (!isfinite(x) || (panel->tick_count && (value < frame->x.from || value > frame->x.to)))
            continue;
        tick_text(&frame->x, value, text);
        if (are_slanted(panel, frame->width))
            snprintf(turn, sizeof turn, " text-anchor=\"end\" transform=\"rotate(-30 %.1f %.1f)\"",
                     x + 4, bottom + 12);
        fprintf(stream, "<path stroke=\"#888\" d=\"M%.1f %.1fv4\"/>\n", x, bottom);
        write_text(stream, x, bottom + 15, turn,
                   panel->tick_count ? panel->ticks[i].text ? panel->ticks[i].text : "" : text);
    }
    fprintf(stream, "<path stroke=\"#888\" d=\"M%.1f %.1fV%.1fH%.1f\"/>\n", frame->left, frame->top,
            bottom, right);
    if (panel->y.label)
        write_text(stream, frame->left - LEFT + 12, frame->top - 9, "", panel->y.label);
    if (panel->x.label)
        write_text(stream, frame->left + frame->width / 2,
                   bottom + 31 + names_height(panel, frame->width), " text-anchor=\"middle\"",
                   panel->x.label);
}

static void write_panel(FILE *stream, const struct svg_panel *panel, const struct svg_frame *frame)
{
    const double bottom = frame->top + frame->height;
    size_t bars = 0;

    for (size_t i = 0; i < panel->band_count; i++) {
        const double from = x_of(frame, panel->bands[i].from), to = x_of(frame, panel->bands[i].to);
        if (!isfinite(from) || !isfinite(to))
            continue;
        fprintf(stream, "<path fill=\"%s\" d=\"M%.1f %.1fH%.1fV%.1fH%.1fz\"/>\n",
                panel->bands[i].color, from, frame->top, to, bottom, from);
    }
    if (panel->map) {
        const size_t count = panel->rows * panel->columns;
        const double wide = frame->width / (double)panel->columns;
        const double high = frame->height / (double)panel->rows;
        double most = panel->map_most;
        for (size_t i = 0; isnan(panel->map_most) && i < count; i++)
            most = fmax(most, panel->map[i]);
        for (int shade = 1; shade <= SHADES && most > 0; shade++) {
            fprintf(stream,
                    "<path stroke=\"#08519c\" stroke-width=\"%.2f\" stroke-opacity=\"%.3f\" d=\"",
                    high, (double)shade / SHADES);
            for (size_t i = 0; i < count; i++)
                if (panel->map[i] > 0 && (int)ceil(fmin(panel->map[i] / most, 1) * SHADES) == shade)
                    fprintf(stream, "M%.1f %.1fh%.2f",
                            frame->left + (double)(i % panel->columns) * wide,
                            frame->top + ((double)(i / panel->columns) + 0.5) * high, wide);
            fputs("\"/>\n", stream);
        }
    }
    write_axes(stream, panel, frame);
    for (size_t i = 0; i < panel->mark_count; i++) {
        const double x = x_of(frame, panel->marks[i].at);
        if (!isfinite(x))
            continue;
        fprintf(stream, "<path stroke=\"#888\" stroke-dasharray=\"2 3\" d=\"M%.1f %.1fV%.1f\"/>\n",
                x, frame->top, bottom);
        if (panel->marks[i].text && *panel->marks[i].text)
            write_text(stream, x + 4, frame->top + 11, "", panel->marks[i].text);
    }
    for (const struct svg_curve *curve = panel->first; curve; curve = curve->next)
        if (curve->style & SVG_BARS) {
            const double slot = frame->width / (frame->x.to - frame->x.from);
            const double width = 0.8 * slot / (double)curve->panel->bar_curves;
            const double offset = -0.4 * slot + (double)bars++ * width;
            fprintf(stream, "<path fill=\"%s\" d=\"", curve->color);
            for (size_t i = 0; i < curve->count; i++) {
                const double x = x_of(frame, curve->points[i].x),
                             y = y_of(frame, curve->points[i].y);
                if (isfinite(x) && isfinite(y))
                    fprintf(stream, "M%.1f %.1fh%.1fV%.1fh%.1fz", x + offset, y, width,
                            y_of(frame, fmax(frame->y.from,
                                             frame->y.scale == SVG_LINEAR ? 0 : frame->y.from)),
                            -width);
            }
            fputs("\"/>\n", stream);
        } else {
            bool is_down = false;
            if (!(curve->style & SVG_ALONE)) {
                fprintf(stream, "<path class=\"curve\" stroke=\"%s\" stroke-width=\"%g\"%s d=\"",
                        curve->color, curve->width, dashes_of(curve->style));
                for (size_t i = 0; i < curve->count; i++) {
                    const double x = x_of(frame, curve->points[i].x),
                                 y = y_of(frame, curve->points[i].y);
                    const bool is_known = isfinite(x) && isfinite(y);
                    if (is_known)
                        fprintf(stream, "%c%.1f %.1f", is_down ? 'L' : 'M', x, y);
                    is_down = is_known;
                }
                fputs("\"/>\n", stream);
            }
            for (size_t i = 0; i < curve->count; i++) {
                const struct svg_point *point = &curve->points[i];
                const double x = x_of(frame, point->x), y = y_of(frame, point->y);
                const double low = y_of(frame, point->low), high = y_of(frame, point->high);
                if (isfinite(x) && isfinite(low) && isfinite(high))
                    fprintf(stream, "<path stroke=\"%s\" d=\"M%.1f %.1fh6m-3 0V%.1fm-3 0h6\"/>\n",
                            curve->color, x - 3, low, high);
                if (curve->style & (SVG_POINTS | SVG_ALONE) && isfinite(x) && isfinite(y))
                    fprintf(stream, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.8\" fill=\"%s\"/>\n", x,
                            y, curve->color);
            }
        }
    /* Names of points from the first on; one that would overlap moves down. */
    static struct {
        double x, y, width;
    } names[NAMES_MOST];
    size_t count = 0;
    for (const struct svg_curve *curve = panel->first; curve; curve = curve->next)
        for (size_t i = 0; i < curve->count && count < NAMES_MOST; i++) {
            const char *name = curve->points[i].name;
            const double at = x_of(frame, curve->points[i].x), x = at + 8;
            const double beside = y_of(frame, curve->points[i].y) + 4;
            const double width = name ? LETTER * (double)strlen(name) : 0;
            double y = beside;
            if (!name || !isfinite(x) || !isfinite(y))
                continue;
            for (size_t k = 0; k < count; k++)
                if (fabs(names[k].y - y) < LINE - 3 && x < names[k].x + names[k].width &&
                    names[k].x < x + width) {
                    y = names[k].y + LINE - 2;
                    k = (size_t)-1; /* check all names again */
                }
            names[count].x = x;
            names[count].y = y;
            names[count++].width = width;
            if (y > beside + LINE)
                fprintf(stream, "<path stroke=\"#bbb\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", at,
                        beside - 4, x - 2, y - 4);
            write_text(stream, x, y, "", name);
        }
}

int svg_write(const struct svg *svg, FILE *stream)
{
    double total = svg->title ? HEADING + 6 : 6;

    if (svg->is_short_of_memory)
        return fail(ENOMEM, "out of memory");
    for (int draws = 0; draws <= 1; draws++) { /* the height comes first */
        double top = svg->title ? HEADING + 6 : 6;
        if (draws)
            fprintf(stream,
                    "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%.0f\" "
                    "viewBox=\"0 0 %u %.0f\">\n"
                    "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
                    "<style>text{fill:#222;stroke:none}</style>\n"
                    "<g fill=\"none\" stroke-linejoin=\"round\" font-family=\"sans-serif\" "
                    "font-size=\"11\">\n",
                    svg->width, total, svg->width, total);
        if (draws && svg->title)
            write_text(stream, svg->width / 2.0, HEADING - 4,
                       " font-size=\"15\" text-anchor=\"middle\"", svg->title);
        for (const struct svg_panel *row = svg->first, *next; row; row = next) {
            double above = 0, below = BELOW;
            unsigned column = 0;
            const double cell = row->is_wide ? svg->width : (double)svg->width / svg->columns;
            const double width = cell - LEFT - RIGHT;
            next = row;
            for (; next && column < (row->is_wide ? 1 : svg->columns) &&
                   (next == row || !next->is_wide);
                 next = next->next, column++) {
                above = fmax(above, (next->title ? HEADING : 0) +
                                        write_legend(NULL, next, 0, 0, width + LEFT) +
                                        (next->y.label ? LINE + 4 : 8));
                below = fmax(below, BELOW + names_height(next, width));
            }
            column = 0;
            for (const struct svg_panel *panel = row; draws && panel != next;
                 panel = panel->next, column++) {
                struct svg_frame frame = {column * cell + LEFT, top + above, width,
                                          svg->plot_height,     {0},         {0}};
                if (panel->title)
                    write_text(stream, frame.left - LEFT + 12, top + 13,
                               " font-size=\"13\" font-weight=\"bold\"", panel->title);
                write_legend(stream, panel, frame.left - LEFT + 12,
                             top + (panel->title ? HEADING : 0), width + LEFT);
                fit_axes(panel, &frame);
                write_panel(stream, panel, &frame);
            }
            top += above + svg->plot_height + below;
        }
        total = top;
    }
    fputs("</g></svg>\n", stream);
    return 0;
}

char *svg_text(const struct svg *svg, size_t *bytes)
{
    struct text_stream stream;
    char *text = NULL;
    int code = text_stream_open(&stream);

    if (code == 0)
        code = svg_write(svg, stream.stream);
    if (code == 0)
        text_stream_take(&stream, &text, bytes);
    else
        text_stream_close(&stream);
    return text;
}

/* ---- files ---- */

enum { IS_SVG, IS_PNG, IS_PDF, KINDS };

static int kind_of(const char *path)
{
    static const char *const suffixes[KINDS] = {".svg", ".png", ".pdf"};
    const char *dot = strrchr(path, '.');

    if (strcmp(path, "-") == 0)
        return IS_SVG;
    for (int i = 0; i < KINDS; i++)
        if (dot && strcmp(dot, suffixes[i]) == 0)
            return i;
    return fail(EINVAL, "%s: unknown suffix: expected .svg, .png or .pdf", path);
}

int svg_check_path(const char *path)
{
    const int kind = kind_of(path);

    return kind < 0 ? kind : 0;
}

/* Replace *text, an SVG, by what rsvg-convert makes of it. Files in memory leave nothing behind. */
static int convert(int kind, char **text, size_t *bytes)
{
    const char *const argv[] = {"rsvg-convert", "-f", kind == IS_PNG ? "png" : "pdf", NULL};
    const int input = memfd_create("chart.svg", MFD_CLOEXEC),
              output = memfd_create("chart", MFD_CLOEXEC);
    const struct child_task task = {
        .argv = argv, .input = input, .output = output, .timeout_ns = convert_limit_ns};
    struct child_result result;
    int code = input < 0 || output < 0
                   ? fail(errno, "cannot create a file in memory: %s", fail_errno_text(errno))
                   : 0;

    if (code == 0)
        code = file_write_at(input, *text, *bytes, 0, "rsvg-convert");
    if (code == 0)
        code = child_run(&task, &result);
    if (code == -ENOENT)
        code = fail(ENOENT, "PNG and PDF need rsvg-convert, which is not installed: apt-get "
                            "install librsvg2-bin or similar, or write .svg");
    else if (code == 0 && result.status)
        code = fail(EIO, "rsvg-convert drew nothing: exit status %d: %s", result.status,
                    result.output);
    free(*text);
    *text = code ? NULL : file_read_all(output, bytes, "rsvg-convert");
    if (code == 0 &&
        (!*text || *bytes < 5 || memcmp(*text, kind == IS_PNG ? "\x89PNG" : "%PDF", 4) != 0))
        code = *text ? fail(EIO, "rsvg-convert drew nothing") : -EIO;
    if (input >= 0)
        close(input);
    if (output >= 0)
        close(output);
    return code;
}

int svg_save(const struct svg *svg, const char *path)
{
    const int kind = kind_of(path);
    size_t bytes = 0;
    char *text = kind < 0 ? NULL : svg_text(svg, &bytes);
    int code = kind < 0 ? kind : text ? 0 : -ENOMEM;

    if (code == 0 && kind != IS_SVG)
        code = convert(kind, &text, &bytes);
    if (code == 0)
        code = report_write_file(strcmp(path, "-") == 0 ? "/dev/stdout" : path, text, bytes);
    free(text);
    return code;
}
