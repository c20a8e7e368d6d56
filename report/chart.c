/* SPDX-License-Identifier: Apache-2.0 */
#include "report/chart.h"

#include "base/fail.h"
#include "base/memory.h"
#include "report/gnuplot.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double CHATTER = 0.5; /* MB/s */

enum { WIDTH = 1100, PANEL = 290, BINS_MAX = 1000, LINES = 4 };

/* Curves of a node. A value is the sum of the columns in the first row of keys that has any of them
 * present: results of `run` have provenance, files of `monitor` only machine totals. */
enum chart_line { READ, STORAGE, RECEIVE, SEND };

static const char *const line_keys[LINES][2][4] = {
    [READ] = {{"read_bytes_per_s"}},
    [STORAGE] = {{"from_local_bytes_per_s", "from_fabric_bytes_per_s"},
                 {"storage_read_bytes_per_s", "nfs_read_bytes_per_s", "lustre_read_bytes_per_s"}},
    [RECEIVE] = {{"fabric_receive_bytes_per_s"},
                 {"infiniband_receive_bytes_per_s", "net_receive_bytes_per_s"}},
    [SEND] = {{"fabric_send_bytes_per_s"},
              {"infiniband_transmit_bytes_per_s", "net_transmit_bytes_per_s"}},
};

/* Shades of phases other than reading; the rest of an epoch is white. */
static const struct {
    const char *phase, *color, *meaning;
} shades[] = {
    {"index", "#d9d9d9", "index"},           {"calibrate", "#f0f0f0", "calibrate"},
    {"drop", "#bdd7e7", "caches dropped"},   {"shuffle", "#fdae6b", "shuffle"},
    {"drain", "#fee6ce", "drain"},           {"evaluation", "#c7e9c0", "evaluation"},
    {"checkpoint", "#dadaeb", "checkpoint"},
};
enum { SHADES = sizeof shades / sizeof shades[0] };

static const char *const colors[] = {"#1f77b4", "#d62728", "#2ca02c", "#9467bd",
                                     "#ff7f0e", "#17becf", "#8c564b", "#e377c2"};
enum { COLORS = sizeof colors / sizeof colors[0] };

/* ---- numbers ---- */

struct columns {
    uint32_t count, at[4];
};

struct sheet {
    const struct chart_node *nodes;
    uint32_t count, bins;
    double step_s;
    double late_s[CHART_NODES]; /* start after the first node's */
    double *values;             /* [node][line][bin] in MB/s; NAN: unknown */
};

static struct columns find_columns(const struct timeline *timeline, enum chart_line line)
{
    struct columns columns = {0};

    for (int row = 0; row < 2 && columns.count == 0; row++)
        for (int i = 0; i < 4 && line_keys[line][row][i]; i++) {
            const uint32_t column = timeline_find(timeline, line_keys[line][row][i]);
            bool known = false;
            for (uint64_t k = 0; column < timeline->column_count && k < timeline->row_count; k++)
                known = known || isfinite(timeline_value(timeline, k, column));
            if (known)
                columns.at[columns.count++] = column;
            /* The port counters include IPoIB: never count both. */
            if (known && (line == RECEIVE || line == SEND))
                break;
        }
    return columns;
}

static double sum_of(const struct timeline *timeline, uint64_t row, const struct columns *columns)
{
    double sum = NAN;

    for (uint32_t i = 0; i < columns->count; i++) {
        const double value = timeline_value(timeline, row, columns->at[i]);
        sum = isnan(value) ? sum : isnan(sum) ? value : sum + value;
    }
    return sum;
}

/* Distribute rows over bins, weighted by their overlap. */
static void fill_bins(const struct sheet *sheet, uint32_t node, enum chart_line line, double *bins)
{
    const struct timeline *timeline = sheet->nodes[node].timeline;
    const struct columns columns = find_columns(timeline, line);
    double from_s = sheet->late_s[node], filled_s = 0, area = 0;
    uint32_t bin = 0;

    for (uint32_t i = 0; i < sheet->bins; i++)
        bins[i] = NAN;
    for (uint64_t row = 0; row < timeline->row_count && columns.count; row++) {
        const double to_s = sheet->late_s[node] + timeline_time_s(timeline, row);
        const double value = sum_of(timeline, row, &columns);
        while (bin < sheet->bins && from_s < to_s) {
            const double end_s = fmin(to_s, (bin + 1) * sheet->step_s);
            if (end_s > from_s && isfinite(value)) {
                area += value * (end_s - from_s);
                filled_s += end_s - from_s;
            }
            from_s = fmax(from_s, end_s);
            bins[bin] = filled_s > 0 ? area / filled_s / 1e6 : NAN;
            if (end_s < (bin + 1) * sheet->step_s)
                break; /* the next row continues in this bin */
            bin++;
            area = filled_s = 0;
        }
    }
}

static double *bins_of(const struct sheet *sheet, uint32_t node, enum chart_line line)
{
    return sheet->values + ((size_t)node * LINES + line) * sheet->bins;
}

/* Put all nodes on a common time axis. */
static int lay_out(struct sheet *sheet)
{
    uint64_t first_ns = UINT64_MAX;
    double end_s = 0;

    for (uint32_t i = 0; i < sheet->count; i++) {
        const uint64_t start_ns = sheet->nodes[i].timeline->start_unix_ns;
        first_ns = start_ns && start_ns < first_ns ? start_ns : first_ns;
    }
    for (uint32_t i = 0; i < sheet->count; i++) {
        const struct timeline *timeline = sheet->nodes[i].timeline;
        if (timeline->row_count == 0)
            return fail(ENODATA, "%s: series without rows", sheet->nodes[i].name);
        if (timeline->start_unix_ns)
            sheet->late_s[i] = (double)(timeline->start_unix_ns - first_ns) / 1e9;
        end_s = fmax(end_s, sheet->late_s[i] + timeline_time_s(timeline, timeline->row_count - 1));
        sheet->step_s = fmax(sheet->step_s, timeline->interval_s);
    }
    sheet->step_s = fmax(sheet->step_s, end_s / BINS_MAX);
    if (!(sheet->step_s > 0) || !(end_s < 1e9))
        return fail(ENODATA, "the series are %.0f s apart, or empty", end_s);
    sheet->bins = (uint32_t)ceil(end_s / sheet->step_s);
    sheet->values = memory_array((size_t)sheet->count * LINES * sheet->bins, sizeof(double));
    if (!sheet->values)
        return -ENOMEM;
    for (uint32_t i = 0; i < sheet->count; i++)
        for (int line = 0; line < LINES; line++)
            fill_bins(sheet, i, (enum chart_line)line, bins_of(sheet, i, (enum chart_line)line));
    return 0;
}

static bool knows(const struct sheet *sheet, uint32_t node, enum chart_line line)
{
    for (uint32_t i = 0; i < sheet->bins; i++)
        if (isfinite(bins_of(sheet, node, line)[i]))
            return true;
    return false;
}

/* A machine that reads its own disk also has a network, but with only background traffic. */
static bool has_fabric(const struct sheet *sheet, uint32_t node)
{
    for (uint32_t i = 0; i < sheet->bins; i++)
        if (bins_of(sheet, node, RECEIVE)[i] > CHATTER || bins_of(sheet, node, SEND)[i] > CHATTER)
            return true;
    return false;
}

/* ---- text ---- */

/* Write a named data block with lines "second value ...". */
static void write_data(FILE *script, const struct sheet *sheet)
{
    for (uint32_t node = 0; node < sheet->count; node++) {
        fprintf(script, "$node%u << END\n", node);
        for (uint32_t i = 0; i < sheet->bins; i++) {
            fprintf(script, "%.6g", (i + 0.5) * sheet->step_s);
            for (int line = 0; line < LINES; line++)
                fprintf(script, " %.6g", bins_of(sheet, node, (enum chart_line)line)[i]);
            fputc('\n', script);
        }
        fputs("END\n", script);
    }
    fputs("$all << END\n", script);
    for (uint32_t i = 0; i < sheet->bins; i++) {
        double sum = NAN;
        for (uint32_t node = 0; node < sheet->count; node++) {
            const double value = bins_of(sheet, node, STORAGE)[i];
            sum = isnan(value) ? sum : isnan(sum) ? value : sum + value;
        }
        fprintf(script, "%.6g %.6g\n", (i + 0.5) * sheet->step_s, sum);
    }
    fputs("END\n", script);
}

/* Draw rectangles behind the curves and a line at the start of each epoch. Phases of the first node
 * apply to all: they start and end together. */
static unsigned write_phases(FILE *script, const struct sheet *sheet)
{
    const struct timeline *timeline = sheet->nodes[0].timeline;
    unsigned used = 0;

    for (uint32_t i = 0; i < timeline->phase_count; i++) {
        const struct timeline_phase *phase = &timeline->phases[i];
        const double from_s = sheet->late_s[0] + phase->from_s;
        for (int k = 0; k < SHADES; k++)
            if (strcmp(phase->name, shades[k].phase) == 0) {
                fprintf(script,
                        "set object rectangle from %.6f, graph 0 to %.6f, graph 1 behind "
                        "fillcolor rgb '%s' fillstyle solid noborder\n",
                        from_s, sheet->late_s[0] + phase->to_s, shades[k].color);
                used |= 1u << k;
            }
        if (strcmp(phase->name, "epoch") != 0)
            continue;
        fprintf(script,
                "set arrow from %.6f, graph 0 to %.6f, graph 1 nohead back linecolor rgb '#888888' "
                "dashtype 3\n"
                "set label 'epoch %llu' at %.6f, graph 0.96 offset 0.4,0 font ',10' textcolor rgb "
                "'#666666'\n",
                from_s, from_s, (unsigned long long)phase->number, from_s);
    }
    return used;
}

static void write_shade_keys(FILE *script, unsigned used)
{
    for (int k = 0; k < SHADES; k++)
        if (used & 1u << k)
            fprintf(script, ", \\\n NaN with boxes fillstyle solid linecolor rgb '%s' title '%s'",
                    shades[k].color, shades[k].meaning);
    fputc('\n', script);
}

static void write_curve(FILE *script, const char *data, int column, const char *color, double width,
                        const char *name)
{
    fprintf(script, "%s using 1:%d with lines linewidth %g linecolor rgb '%s' title ", data, column,
            width, color);
    gnuplot_text(script, name);
}

static void write_storage(FILE *script, const struct sheet *sheet, unsigned used)
{
    char data[32], name[160];
    const char *comma = "";

    fputs("set title 'Storage read throughput' font ',13'\nset ylabel 'MB/s'\n"
          "set yrange [0:*]\nplot ",
          script);
    if (sheet->count == 1 && knows(sheet, 0, READ)) {
        write_curve(script, "$node0", 2 + READ, "#b0b0b0", 1, "read by the pipeline");
        comma = ", \\\n ";
    }
    for (uint32_t node = 0; node < sheet->count; node++) {
        snprintf(data, sizeof data, "%s$node%u", comma, node);
        if (sheet->count == 1)
            snprintf(name, sizeof name, "from storage");
        else
            snprintf(name, sizeof name, "%s", sheet->nodes[node].name);
        write_curve(script, data, 2 + STORAGE, colors[node % COLORS], 1.5, name);
        comma = ", \\\n ";
    }
    if (sheet->count > 1) {
        snprintf(data, sizeof data, "%s$all", comma);
        write_curve(script, data, 2, "#000000", 1.5, "all nodes");
    }
    write_shade_keys(script, used);
}

static void write_fabric(FILE *script, const struct sheet *sheet, uint32_t node)
{
    char title[200];

    snprintf(title, sizeof title, "Fabric%s%s", sheet->count > 1 ? " of " : "",
             sheet->count > 1 ? sheet->nodes[node].name : "");
    fputs("set title ", script);
    gnuplot_text(script, title);
    fprintf(script,
            " font ',13'\nset ylabel 'MB/s'\nset yrange [*<0:*]\n"
            "plot $node%u using 1:%d with lines linewidth 1.2 linecolor rgb '#1f77b4' title "
            "'received', \\\n"
            " '' using 1:%d with lines linewidth 1.2 linecolor rgb '#d62728' title 'sent', \\\n"
            " '' using 1:($%d-$%d) with lines linewidth 1.5 linecolor rgb '#000000' title "
            "'received - sent'\n",
            node, 2 + RECEIVE, 2 + SEND, 2 + RECEIVE, 2 + SEND);
}

static void write_pages(FILE *script, const char *title, const struct sheet *sheet)
{
    uint32_t panels = 1;

    for (uint32_t node = 0; node < sheet->count; node++)
        panels += has_fabric(sheet, node) ? 1 : 0;
    gnuplot_begin(script, WIDTH, PANEL * panels + (*title ? 30 : 0));
    write_data(script, sheet);
    fprintf(script, "set multiplot layout %u,1", panels);
    if (*title) {
        fputs(" title ", script);
        gnuplot_text(script, title);
        fputs(" font ',15'", script);
    }
    fprintf(script,
            "\nset xrange [0:%.6g]\nset xlabel 'seconds'\nset lmargin 10\nset grid ytics\n"
            "set key at graph 1.02, graph 1 left top Left reverse samplen 2\nset rmargin 26\n",
            sheet->bins * sheet->step_s);
    write_storage(script, sheet, write_phases(script, sheet));
    for (uint32_t node = 0; node < sheet->count; node++)
        if (has_fabric(sheet, node))
            write_fabric(script, sheet, node);
    fputs("unset multiplot\n", script);
}

int chart_write(FILE *script, const char *title, const struct chart_node *nodes, uint32_t count)
{
    struct sheet sheet = {.nodes = nodes, .count = count};
    int code = lay_out(&sheet);

    for (uint32_t node = 0; node < count && code == 0; node++)
        if (!knows(&sheet, node, STORAGE) && !knows(&sheet, node, RECEIVE))
            code =
                fail(ENODATA, "%s: no probe counted storage or network traffic", nodes[node].name);
    if (code == 0)
        write_pages(script, title, &sheet);
    free(sheet.values);
    return code;
}
