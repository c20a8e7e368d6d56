/* SPDX-License-Identifier: Apache-2.0 */
#include "report/documents.h"

#include "base/fail.h"
#include "report/gnuplot.h"
#include "report/load.h"
#include "report/pictures.h"
#include "report/seal.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum { DOCUMENT_VERSION = 1, PRECISIONS_DRAWN = 6, TICS_MOST = 20 };

/* ---- an inference: throughput and latency over batch size, for each precision ---- */

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

static const char *const inference_keys[] = {
    "started", "command",    "place",       "degraded", "degraded_reason", "notices",
    "network", "backend",    "side",        "classes",  "parameters",      "gmacs",
    "data",    "checkpoint", "batch_sizes", NULL};

/* ---- checkpoints: the rate of each ---- */

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

static const char *const checkpoint_keys[] = {
    "started",         "command", "place", "valid",    "invalid_reason", "degraded",
    "degraded_reason", "notices", "model", "settings", "write",          "read",
    "training",        "writes",  "reads", NULL};

/* ---- all kinds ---- */

static const struct document_kind kinds[] = {
    {"iobench-infer", "Inference over batch size", inference_keys, draw_inference},
    {"iobench-checkpoint", "Rate of each checkpoint", checkpoint_keys, draw_checkpoints},
};

const struct document_kind *documents_kind(const json_t *document)
{
    const char *schema = load_text(document, "schema");

    for (size_t i = 0; schema && i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(schema, kinds[i].schema) == 0)
            return &kinds[i];
    return NULL;
}

int documents_check(const char *name, const json_t *document)
{
    const double version = load_number(document, "schema_version");

    if (!(version == DOCUMENT_VERSION))
        return fail(EINVAL, "%s: schema version %g, this program reads %d", name, version,
                    DOCUMENT_VERSION);
    if (seal_is_broken(document))
        return fail(EBADMSG, "%s: checksum mismatch: changed since iobench wrote it", name);
    return 0;
}

json_t *documents_pick(const struct document_kind *kind, const json_t *document)
{
    json_t *picked = json_object();

    json_object_set_new(picked, "schema", json_string(kind->schema));
    for (const char *const *key = kind->picked; *key; key++)
        json_object_set(picked, *key, json_object_get(document, *key));
    return picked;
}
