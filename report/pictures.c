/* SPDX-License-Identifier: Apache-2.0 */
#include "report/pictures.h"

#include "base/json.h"
#include "base/memory.h"
#include "report/load.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LATENCIES_MOST = 16 };

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

void pictures_scaling(struct svg *svg, const json_t *rows)
{
    static const struct {
        const char *title, *key, *unit;
        enum svg_scale scale;
        double from;
    } panels[] = {{"Speed-up", "speed_up", "", SVG_LOG2, 1},
                  {"Efficiency", "efficiency_percent", "%", SVG_LINEAR, 0}};
    const double fewest = load_number(json_array_get(rows, 0), "ranks");

    svg_begin(svg, "", PICTURES_WIDTH, PICTURES_HEIGHT, 2);
    for (size_t i = 0; i < sizeof panels / sizeof *panels; i++) {
        struct svg_panel *panel = svg_panel(svg, panels[i].title);
        struct svg_curve *curve = NULL;
        const char *group = NULL;
        double most = fewest;
        size_t index, number = 0;
        json_t *row;
        svg_x(panel, "ranks", SVG_LOG2, NAN, NAN);
        svg_y(panel, panels[i].unit, panels[i].scale, panels[i].from, NAN);
        json_array_foreach(rows, index, row)
        {
            if (!group || strcmp(group, text_of(row, "group")) != 0) {
                group = text_of(row, "group");
                curve = svg_curve(panel, group, svg_color(number++), 1.5, SVG_POINTS);
            }
            svg_point(curve, load_number(row, "ranks"), load_number(row, panels[i].key));
            most = fmax(most, load_number(row, "ranks"));
        }
        if (panels[i].scale == SVG_LOG2) {
            curve = svg_curve(panel, "ideal", "#999999", 1, SVG_DASHED);
            svg_point(curve, fewest, 1);
            svg_point(curve, most, most / fewest);
        }
    }
}

/* ---- latency ---- */

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

bool pictures_latency(struct svg *svg, const struct picture_result *results, size_t count)
{
    static const char *const ticks[] = {"0%", "90%", "99%", "99.9%", "99.99%", "99.999%"};
    struct svg_panel *panel = NULL;
    size_t used = 0;

    for (size_t i = 0; i < count && used < LATENCIES_MOST; i++) {
        bool is_drawn = false;
        for (int kind = 0; kind < LATENCY_KINDS; kind++) {
            const json_t *latency = latency_of(&results[i], kind);
            char name[512];
            if (!latency)
                continue;
            if (!panel) {
                svg_begin(svg, "", PICTURES_WIDTH, PICTURES_HEIGHT, 1);
                panel = svg_panel(svg, "");
                svg_x(panel, "share of the reads that took at most this", SVG_LOG, 1, NAN);
                svg_y(panel, "ms", SVG_LOG, NAN, NAN);
                svg_tick(panel, 2, "50%");
                for (size_t k = 0; k < sizeof ticks / sizeof *ticks; k++)
                    svg_tick(panel, pow(10, (double)k), ticks[k]);
            }
            snprintf(name, sizeof name, "%s%s", results[i].name, latency_kinds[kind].name);
            struct svg_curve *curve =
                svg_curve(panel, name, svg_color(used), 1.5,
                          SVG_POINTS | (kind == LATENCY_EVALUATION ? SVG_DOTTED
                                        : kind == LATENCY_LATER    ? SVG_DASHED
                                                                   : 0));
            static const struct {
                const char *key;
                double share;
            } points[] = {{"p50_s", 0.5}, {"p90_s", 0.9}, {"p99_s", 0.99}, {"p99_9_s", 0.999}};
            const json_t *quantiles = json_object_get(latency, "quantiles");
            size_t drawn = 0;
            for (size_t k = 0; k < json_array_size(quantiles); k++) {
                const json_t *pair = json_array_get(quantiles, k);
                const double share = json_number_value(json_array_get(pair, 0));
                const double value_s = json_number_value(json_array_get(pair, 1));
                if (share >= 0 && share < 1 && value_s > 0 && isfinite(value_s)) {
                    svg_point(curve, 1 / (1 - share), value_s * 1e3);
                    drawn++;
                }
            }
            for (size_t k = 0; drawn == 0 && k < sizeof points / sizeof points[0]; k++) {
                const double value_s = load_number(latency, points[k].key);
                if (value_s > 0 && isfinite(value_s))
                    svg_point(curve, 1 / (1 - points[k].share), value_s * 1e3);
            }
            is_drawn = true;
        }
        used += is_drawn;
    }
    return used > 0;
}
