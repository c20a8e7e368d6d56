/* SPDX-License-Identifier: Apache-2.0
 * An inference: throughput and latency over batch size, for each precision. */
#include "report/documents.h"

#include "report/gnuplot.h"
#include "report/load.h"
#include "report/pictures.h"

#include <string.h>

enum { PRECISIONS_DRAWN = 6 };

struct precisions {
    const char *names[PRECISIONS_DRAWN];
    size_t count;
};

static bool is_drawn(const json_t *row)
{
    return load_text(row, "precision") && load_number(row, "batch_size") >= 1 &&
           load_number(row, "samples_per_s") > 0 && load_number(row, "network_samples_per_s") > 0 &&
           load_number(row, "latency.p50_ms") > 0 && load_number(row, "latency.p99_ms") > 0;
}

static size_t find_precision(const struct precisions *found, const char *name)
{
    size_t i = 0;

    while (i < found->count && strcmp(found->names[i], name) != 0)
        i++;
    return i;
}

static void collect_precisions(struct precisions *found, const json_t *rows)
{
    size_t index;
    json_t *row;

    *found = (struct precisions){0};
    json_array_foreach(rows, index, row)
    {
        const char *name = load_text(row, "precision");
        if (is_drawn(row) && find_precision(found, name) == found->count &&
            found->count < PRECISIONS_DRAWN)
            found->names[found->count++] = name;
    }
}

static void write_inference(FILE *script, const json_t *rows, const struct precisions *found)
{
    size_t index;
    json_t *row;

    for (size_t i = 0; i < found->count; i++) {
        fprintf(script, "$precision%zu << END\n", i);
        json_array_foreach(rows, index, row)
        {
            if (!is_drawn(row) || find_precision(found, load_text(row, "precision")) != i)
                continue;
            fprintf(script, "%g %g %g %g %g\n", load_number(row, "batch_size"),
                    load_number(row, "samples_per_s"), load_number(row, "network_samples_per_s"),
                    load_number(row, "latency.p50_ms"), load_number(row, "latency.p99_ms"));
        }
        fputs("END\n", script);
    }
}

/* Plot two columns of each precision: solid and dashed. */
static void plot_pair(FILE *script, const struct precisions *found, int column, const char *solid,
                      const char *dashed)
{
    for (size_t i = 0; i < 2 * found->count; i++) {
        const bool second = i % 2;
        char title[160];
        snprintf(title, sizeof title, "%.80s, %s", found->names[i / 2], second ? dashed : solid);
        fprintf(script, "%s$precision%zu using 1:%d with linespoints linewidth 1.5 pointtype 7 %s",
                i ? ", \\\n " : "plot ", i / 2, column + second, second ? "dashtype 2 " : "");
        fprintf(script, "linecolor rgb '%s' title ", pictures_color(i / 2));
        gnuplot_text(script, title);
    }
    fputc('\n', script);
}

static bool draw_inference(FILE *script, const json_t *document)
{
    const json_t *rows = json_object_get(document, "batch_sizes");
    struct precisions found;

    collect_precisions(&found, rows);
    if (found.count == 0)
        return false;
    gnuplot_begin(script, PICTURES_WIDTH, PICTURES_HEIGHT);
    write_inference(script, rows, &found);
    fputs("set multiplot layout 1,2\nset xlabel 'batch size'\nset logscale x 2\nset grid\n"
          "set key below left Left reverse\nset pointsize 0.6\n"
          "set title 'Throughput'\nset ylabel 'images/s'\nset yrange [0:*]\n",
          script);
    plot_pair(script, &found, 2, "pipeline", "network alone");
    fputs("set title 'Latency of a batch'\nset ylabel 'ms'\n", script);
    plot_pair(script, &found, 4, "median", "99%");
    fputs("unset multiplot\n", script);
    return true;
}

static const char *const keys[] = {
    "started",    "command",     "place",   "degraded",   "degraded_reason", "notices", "network",
    "backend",    "side",        "classes", "parameters", "gmacs",           "data",    "dataset",
    "checkpoint", "batch_sizes", NULL};

const struct document_kind document_infer = {"iobench-infer", "Inference over batch size", keys,
                                             draw_inference};
