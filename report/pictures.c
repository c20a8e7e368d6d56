/* SPDX-License-Identifier: Apache-2.0 */
#include "report/pictures.h"

#include "base/json.h"
#include "base/memory.h"
#include "report/gnuplot.h"
#include "report/load.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Okabe and Ito's palette. */
static const char *const colors[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                     "#e69f00", "#56b4e9", "#8c564b", "#000000"};
enum { COLORS = sizeof colors / sizeof colors[0], LATENCIES_MOST = 16 };

const char *pictures_color(size_t number)
{
    return colors[number % COLORS];
}

static const char *text_of(const json_t *object, const char *path)
{
    const char *text = load_text(object, path);

    return text ? text : "";
}

/* ---- scaling ---- */

/* 0: the samples of the job are the same on any number of ranks (strong scaling); else of a rank.
 */
static const char per_rank[] = "settings.limit_samples_per_rank";

/* The order that was used: --shuffle may be auto. */
static const char *shuffle_of(const json_t *job)
{
    const char *used = load_text(job, "engine.shuffle");

    return used ? used : text_of(job, "settings.shuffle");
}

static bool same_group(const json_t *a, const json_t *b)
{
    static const char *const paths[] = {"dataset.format", "settings.trainer"};
    const double share = load_number(a, per_rank), other = load_number(b, per_rank);

    if (share != other && !(isnan(share) && isnan(other)))
        return false;

    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        if (strcmp(text_of(a, paths[i]), text_of(b, paths[i])) != 0)
            return false;
    return strcmp(shuffle_of(a), shuffle_of(b)) == 0;
}

static double ranks_of(const json_t *job)
{
    return load_number(job, "engine.ranks");
}

static bool is_charted(const json_t *job)
{
    return ranks_of(job) >= 1 && load_number(job, "summary.samples_per_s") > 0;
}

/* Find the fewest ranks among the results like this one, and their mean throughput. Returns whether
 * other ranks exist at all. */
static bool find_base(const struct picture_result *results, size_t count, const json_t *job,
                      double *ranks, double *samples_per_s)
{
    double fewest = INFINITY, most = 0, sum = 0;
    size_t same = 0;

    for (size_t i = 0; i < count; i++) {
        if (!is_charted(results[i].job) || !same_group(results[i].job, job))
            continue;
        fewest = fmin(fewest, ranks_of(results[i].job));
        most = fmax(most, ranks_of(results[i].job));
    }
    for (size_t i = 0; i < count; i++)
        if (is_charted(results[i].job) && same_group(results[i].job, job) &&
            !(ranks_of(results[i].job) > fewest)) {
            sum += load_number(results[i].job, "summary.samples_per_s");
            same++;
        }
    *ranks = fewest;
    *samples_per_s = same ? sum / (double)same : NAN;
    return most > fewest;
}

double pictures_efficiency(double speed_up, double ranks, double fewest)
{
    return speed_up / (ranks / fewest);
}

static json_t *scaling_row(const struct picture_result *result, double base_ranks, double base)
{
    const double ranks = ranks_of(result->job);
    const double samples = load_number(result->job, "summary.samples_per_s");
    const bool is_weak = load_number(result->job, per_rank) > 0;
    char group[256];
    json_t *row = json_object();

    snprintf(group, sizeof group, "%s: %s, shuffle %s, trainer %s", is_weak ? "weak" : "strong",
             text_of(result->job, "dataset.format"), shuffle_of(result->job),
             text_of(result->job, "settings.trainer"));
    json_put_text(row, "name", result->name);
    json_put_text(row, "group", group);
    json_put_text(row, "kind", is_weak ? "weak" : "strong");
    json_put_number(row, "ranks", ranks);
    json_put_number(row, "nodes", load_number(result->job, "engine.nodes"));
    json_put_number(row, "samples_per_s", samples);
    json_put_number(row, "speed_up", samples / base);
    json_put_number(row, "efficiency_percent",
                    100 * pictures_efficiency(samples / base, ranks, base_ranks));
    json_put_text(row, "limit", text_of(result->job, "summary.limit"));
    return row;
}

static int compare_rows(const void *a, const void *b)
{
    const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
    const double one = load_number(x, "ranks"), other = load_number(y, "ranks");
    const int group = strcmp(text_of(x, "group"), text_of(y, "group"));

    return group ? group : (one > other) - (one < other);
}

json_t *pictures_scaling_rows(const struct picture_result *results, size_t count)
{
    json_t **rows = memory_array(count + 1, sizeof *rows), *array = json_array();
    size_t used = 0;
    double ranks, base;

    for (size_t i = 0; rows && i < count; i++)
        if (is_charted(results[i].job) && find_base(results, count, results[i].job, &ranks, &base))
            rows[used++] = scaling_row(&results[i], ranks, base);
    if (rows)
        qsort(rows, used, sizeof *rows, compare_rows);
    for (size_t i = 0; i < used; i++)
        json_array_append_new(array, rows[i]);
    if (!rows) {
        json_decref(array);
        array = NULL;
    }
    free(rows);
    return array;
}

static void write_curves(FILE *script, const json_t *rows, const char *key, const char *style)
{
    const char *group = NULL;
    unsigned number = 0;
    size_t index;
    json_t *row;

    json_array_foreach(rows, index, row)
    {
        if (group && strcmp(group, text_of(row, "group")) == 0)
            continue;
        group = text_of(row, "group");
        fprintf(script, "%s$%s%u using 1:2 with linespoints %s linecolor rgb '%s' title ",
                number ? ", \\\n " : "plot ", key, number, style, pictures_color(number));
        gnuplot_text(script, group);
        number++;
    }
}

static void write_blocks(FILE *script, const json_t *rows, const char *key)
{
    const char *group = NULL;
    unsigned number = 0;
    size_t index;
    json_t *row;

    json_array_foreach(rows, index, row)
    {
        const bool begins = !group || strcmp(group, text_of(row, "group")) != 0;
        group = text_of(row, "group");
        if (begins)
            fprintf(script, "%s$%s%u << END\n", number ? "END\n" : "", key, number);
        number += begins;
        fprintf(script, "%g %g\n", load_number(row, "ranks"), load_number(row, key));
    }
    fputs("END\n", script);
}

void pictures_scaling(FILE *script, const json_t *rows)
{
    gnuplot_begin(script, PICTURES_WIDTH, PICTURES_HEIGHT);
    write_blocks(script, rows, "speed_up");
    write_blocks(script, rows, "efficiency_percent");
    fputs("set multiplot layout 1,2\nset xlabel 'ranks'\nset logscale x 2\nset grid\n"
          "set key below left Left reverse\nset pointsize 0.6\n"
          "set title 'Speed-up'\nset logscale y 2\nset yrange [1:*]\n",
          script);
    write_curves(script, rows, "speed_up", "linewidth 1.5 pointtype 7");
    fputs(", \\\n x / ", script);
    fprintf(script, "%g", load_number(json_array_get(rows, 0), "ranks"));
    fputs(" with lines dashtype 2 linecolor rgb '#999999' title 'ideal'\n"
          "unset logscale y\nset title 'Efficiency'\nset ylabel '%'\nset yrange [0:*]\n",
          script);
    write_curves(script, rows, "efficiency_percent", "linewidth 1.5 pointtype 7");
    fputs("\nunset multiplot\n", script);
}

/* ---- latency ---- */

/* Write the points of one result: share of the reads, latency in ms. Returns their count. */
static size_t write_points(FILE *script, const json_t *latency)
{
    static const struct {
        const char *key;
        double share;
    } points[] = {{"p50_s", 0.5}, {"p90_s", 0.9}, {"p99_s", 0.99}, {"p99_9_s", 0.999}};
    const json_t *quantiles = json_object_get(latency, "quantiles");
    size_t written = 0;

    for (size_t i = 0; i < json_array_size(quantiles); i++) {
        const json_t *pair = json_array_get(quantiles, i);
        const double share = json_number_value(json_array_get(pair, 0));
        const double value_s = json_number_value(json_array_get(pair, 1));
        if (share >= 0 && share < 1 && value_s > 0 && isfinite(value_s))
            written += fprintf(script, "%.9g %.6g\n", 1 / (1 - share), value_s * 1e3) > 0;
    }
    for (size_t i = 0; written == 0 && i < sizeof points / sizeof points[0]; i++) {
        const double value_s = load_number(latency, points[i].key);
        if (value_s > 0 && isfinite(value_s))
            written += fprintf(script, "%.9g %.6g\n", 1 / (1 - points[i].share), value_s * 1e3) > 0;
    }
    return written;
}

/* The curves of a result: of all reads, or if it has later epochs or evaluations one for each. */
enum { LATENCY_LATER = 2, LATENCY_EVALUATION, LATENCY_KINDS };
static const struct {
    const char *path, *name;
} latency_kinds[LATENCY_KINDS] = {{"summary.read_latency", ""},
                                  {"summary.read_latency.first_epoch", ", first epoch"},
                                  {"summary.read_latency.later_epochs", ", later epochs"},
                                  {"summary.read_latency.evaluation", ", evaluation"}};

/* Return the latencies of this kind; NULL: no curve. */
static const json_t *latency_of(const struct picture_result *result, int kind)
{
    const json_t *latency = load_member(result->job, latency_kinds[kind].path),
                 *later = load_member(result->job, latency_kinds[LATENCY_LATER].path),
                 *evaluation = load_member(result->job, latency_kinds[LATENCY_EVALUATION].path);
    const bool by_epoch = load_number(later, "p50_s") > 0 || load_number(evaluation, "p50_s") > 0;

    return by_epoch == (kind > 0) && load_number(latency, "p50_s") > 0 ? latency : NULL;
}

static void write_latencies(FILE *script, const struct picture_result *result, size_t number)
{
    for (int kind = 0; kind < LATENCY_KINDS; kind++) {
        if (!latency_of(result, kind))
            continue;
        fprintf(script, "$result%zu_%d << END\n", number, kind);
        write_points(script, latency_of(result, kind));
        fputs("END\n", script);
    }
}

/* The first result of the picture has used 0. Later epochs are dashed, evaluations dotted. */
static void plot_latencies(FILE *script, const struct picture_result *result, size_t number,
                           size_t used)
{
    bool begins = used == 0;

    for (int kind = 0; kind < LATENCY_KINDS; kind++) {
        char title[512];
        if (!latency_of(result, kind))
            continue;
        snprintf(title, sizeof title, "%s%s", result->name, latency_kinds[kind].name);
        fprintf(script,
                "%s$result%zu_%d using 1:2 with linespoints linewidth 1.5 pointsize 0.4 "
                "pointtype %zu dashtype %d linecolor rgb '%s' title ",
                begins ? "plot " : ", \\\n ", number, kind, used / COLORS + 1,
                kind >= LATENCY_LATER ? kind : 1, pictures_color(used));
        gnuplot_text(script, title);
        begins = false;
    }
}

static bool has_latency(const struct picture_result *result)
{
    return latency_of(result, 0) || latency_of(result, 1) || latency_of(result, LATENCY_LATER);
}

bool pictures_latency(FILE *script, const struct picture_result *results, size_t count)
{
    size_t used = 0;

    for (size_t i = 0; i < count; i++)
        if (has_latency(&results[i]) && ++used == LATENCIES_MOST)
            count = i + 1;
    if (used == 0)
        return false;
    gnuplot_begin(script, PICTURES_WIDTH, PICTURES_HEIGHT);
    for (size_t i = 0; i < count; i++)
        write_latencies(script, &results[i], i);
    fputs("set logscale xy\nset grid\nset xlabel 'share of the reads that took at most this'\n"
          "set ylabel 'ms'\nset key left top Left reverse\n"
          "set xtics ('0%%' 1, '50%%' 2, '90%%' 10, '99%%' 100, '99.9%%' 1000, '99.99%%' 10000, "
          "'99.999%%' 100000)\nset xrange [1:*]\n",
          script);
    used = 0;
    for (size_t i = 0; i < count; i++)
        if (has_latency(&results[i]))
            plot_latencies(script, &results[i], i, used++);
    fputc('\n', script);
    return true;
}
