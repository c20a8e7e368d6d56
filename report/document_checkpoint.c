/* SPDX-License-Identifier: Apache-2.0
 * Checkpoints: the rate of each. */
#include "report/documents.h"

#include "report/gnuplot.h"
#include "report/load.h"
#include "report/pictures.h"

enum { TICS_MOST = 20 };

static size_t write_checkpoints(FILE *script, const json_t *rows, const char *block)
{
    size_t index, written = 0;
    json_t *row;

    fprintf(script, "$%s << END\n", block);
    json_array_foreach(rows, index, row)
    {
        const double number = load_number(row, "number"), rate = load_number(row, "bytes_per_s");
        if (number >= 1 && rate > 0)
            written += fprintf(script, "%g %g\n", number, rate / 1e6) > 0;
    }
    fputs("END\n", script);
    return written;
}

static bool is_rated(const json_t *rows)
{
    return load_number(json_array_get(rows, 0), "bytes_per_s") > 0;
}

static bool draw_checkpoints(FILE *script, const json_t *document)
{
    const json_t *writes = json_object_get(document, "writes"),
                 *reads = json_object_get(document, "reads");
    const char *join = "plot ";

    if (!is_rated(writes) && !is_rated(reads))
        return false;
    gnuplot_begin(script, PICTURES_WIDTH, PICTURES_HEIGHT);
    const size_t written = write_checkpoints(script, writes, "writes");
    const size_t read = write_checkpoints(script, reads, "reads");
    fprintf(script, "set xtics %s\n", json_array_size(writes) < TICS_MOST ? "1" : "auto");
    fputs("set xlabel 'checkpoint'\nset ylabel 'MB/s'\nset yrange [0:*]\nset grid\n"
          "set key below left Left reverse\nset boxwidth 0.35\nset style fill solid 0.8\n",
          script);
    if (written) {
        fprintf(script,
                "plot $writes using ($1-0.18):2 with boxes linecolor rgb '%s' title 'write'",
                pictures_color(0));
        join = ", ";
    }
    if (read)
        fprintf(script, "%s$reads using ($1+0.18):2 with boxes linecolor rgb '%s' title 'read'",
                join, pictures_color(1));
    fputc('\n', script);
    return written || read;
}

static const char *const keys[] = {"started",        "command",  "place",           "valid",
                                   "invalid_reason", "degraded", "degraded_reason", "notices",
                                   "model",          "settings", "write",           "read",
                                   "training",       "writes",   "reads",           NULL};

const struct document_kind document_checkpoint = {"iobench-checkpoint", "Rate of each checkpoint",
                                                  keys, draw_checkpoints};
