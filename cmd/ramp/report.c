/* SPDX-License-Identifier: Apache-2.0
 * The table, JSON document and chart of `iobench ramp`. */
#include "cmd/ramp/ramp.h"

#include "base/escape.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text_stream.h"
#include "cmd/json_file.h"
#include "report/svg.h"
#include "report/report.h"
#include "report/words.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCHES_FOR_P99 = 100, COLUMN = 11 };

static int compare_loads(const void *a, const void *b)
{
    const struct ramp_point *x = a, *y = b;

    return (x->load > y->load) - (x->load < y->load);
}

/* Return the points by load, to be freed; NULL with a reason. */
static struct ramp_point *sorted_points(const struct ramp *ramp)
{
    struct ramp_point *points = memory_array(ramp->count, sizeof *points);

    if (!points)
        return NULL;
    memcpy(points, ramp->points, ramp->count * sizeof *points);
    qsort(points, ramp->count, sizeof *points, compare_loads);
    return points;
}

static enum result_cache worst_cache(const struct ramp *ramp)
{
    enum result_cache worst = RESULT_CACHE_COLD;

    for (size_t i = 0; i < ramp->count; i++)
        if (ramp->points[i].cache > worst)
            worst = ramp->points[i].cache;
    return worst;
}

static bool is_synthetic(const struct ramp *ramp)
{
    return json_is_true(json_object_get(ramp->dataset, "synthetic"));
}

/* ---- text ---- */

static const char *verdict_of(const struct ramp *ramp, const struct ramp_point *point)
{
    if (point->holds)
        return "fed";
    return point->stall_percent < ramp->settings->limit_percent ? "behind" : "late";
}

int ramp_print(const struct ramp *ramp)
{
    const struct ramp_answer answer = ramp_search_answer(&ramp->search);
    struct ramp_point *points = sorted_points(ramp);
    char count[WORDS_BYTES], rates[3][WORDS_BYTES], times[2][WORDS_BYTES];

    if (!points)
        return -ENOMEM;
    const enum result_cache cache = worst_cache(ramp);
    const char *trainer = escape_shown(ramp->settings->job.trainer);
    char step[WORDS_BYTES];
    if (ramp->interrupted)
        printf("iobench ramp: interrupted: no answer yet\n\n");
    else if (ramp->failed)
        printf("iobench ramp: a run failed: no answer\n\n");
    else if (answer.held == 0)
        printf("iobench ramp: not even %.4g x %s is fed\n\n", answer.failed, trainer);
    else if (answer.failed == 0)
        printf("iobench ramp: %.4g x %s are fed, the highest load tried (--to)\n\n", answer.held,
               trainer);
    else if (isfinite(answer.high))
        printf("iobench ramp: %.4g x %s are fed (interval %.4g .. %.4g)\n\n", answer.held, trainer,
               answer.low, answer.high);
    else
        printf(
            "iobench ramp: %.4g x %s are fed (interval from %.4g, open above: runs disagree)\n\n",
            answer.held, trainer, answer.low);
    printf("  Fed      99%% of the batches late by less than %.3g%% of a step of %s\n",
           ramp->settings->limit_percent, words_duration((uint64_t)ramp->step_ns, step));
    if (ramp->degraded[0])
        words_print(stdout, "  DEGRADED", COLUMN, escape_shown(ramp->degraded));
    printf("  Data     %s: %s, %s samples%s\n", escape_shown(ramp->data), ramp->format,
           words_count(ramp->records, count), is_synthetic(ramp) ? ", synthetic" : "");
    printf("  Storage  %s\n", escape_shown(ramp->storage));
    printf("  Cache    %s before each run%s\n\n", summary_cache_name(cache),
           cache == RESULT_CACHE_WARM && ramp->settings->job.cold.drop_caches == JOB_DROP_NO
               ? ": --drop-caches reads storage"
               : "");
    printf("%9s%12s%11s%9s%11s%11s%10s\n", "", "samples/s", "samples/s", "", "lateness", "lateness",
           "stall");
    printf("%9s%12s%11s%9s%11s%11s%10s\n", "load", "offered", "delivered", "MB/s", "p50", "p99",
           "p99");
    for (size_t i = 0; i < ramp->count; i++) {
        const struct ramp_point *point = &points[i];
        printf("%9.4g%12s%11s%9s%11s%11s%9.2f%%  %s%s\n", point->load,
               words_rate(point->offered_samples_per_s, rates[0]),
               words_rate(point->samples_per_s, rates[1]),
               words_rate(point->bytes_per_s / 1e6, rates[2]),
               words_duration(point->late_p50_ns, times[0]),
               words_duration(point->late_p99_ns, times[1]), point->stall_percent,
               verdict_of(ramp, point), point->preview ? "?" : "");
    }
    uint64_t batches = UINT64_MAX;
    for (size_t i = 0; i < ramp->count; i++)
        if (!ramp->points[i].preview && ramp->points[i].batches < batches)
            batches = ramp->points[i].batches;
    printf(
        "\n  Stall    p99 of lateness over the step; a batch is due every step / load, whether\n"
        "           or not the one before was ready; the first 10 batches of a run set the\n"
        "           clock; ?: a short preview, which decides nothing; behind: in time, but only\n"
        "           with what was read before the first batch: samples were read slower than\n"
        "           they were taken\n");
    if (batches < BATCHES_FOR_P99)
        printf("  Note     the p99 of %llu batches is their maximum: use a larger data set or a\n"
               "           smaller batch\n",
               (unsigned long long)batches);
    free(points);
    return 0;
}

/* ---- JSON ---- */

static json_t *point_json(const struct ramp_point *point)
{
    json_t *object = json_pack(
        "{s:o, s:b, s:b, s:s, s:s, s:I}", "load", json_number(point->load), "holds", point->holds,
        "preview", point->preview, "cache", summary_cache_name(point->cache), "limit",
        summary_limit_name(point->limit), "batches", (json_int_t)point->batches);
    const struct {
        const char *key;
        double value;
    } rows[] = {
        {"offered_samples_per_s", point->offered_samples_per_s},
        {"samples_per_s", point->samples_per_s},
        {"read_samples_per_s", point->read_samples_per_s},
        {"record_bytes_per_s", point->bytes_per_s},
        {"lateness_p50_s", (double)point->late_p50_ns * 1e-9},
        {"lateness_p99_s", (double)point->late_p99_ns * 1e-9},
        {"lateness_max_s", (double)point->late_max_ns * 1e-9},
        {"stall_p99_percent", point->stall_percent},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        json_object_set_new(object, rows[i].key, json_number(rows[i].value));
    return object;
}

static json_t *settings_json(const struct ramp_settings *settings)
{
    const struct job *job = &settings->job;
    json_t *object = json_object();
    char text[512];

    for (const struct option_spec *row = job_options; row->name; row++)
        json_object_set_new(object, row->alias ? row->alias : row->name,
                            json_text(option_text(row, job, text, sizeof text)));
    return object;
}

static json_t *ramp_json(const struct ramp *ramp)
{
    const struct ramp_settings *settings = ramp->settings;
    const struct ramp_answer answer = ramp_search_answer(&ramp->search);
    json_t *points = json_array();
    json_t *object = json_pack(
        "{s:o, s:o, s:s, s:o, s:o, s:I, s:b, s:o, s:O, s:s, s:s}", "label",
        json_text(settings->job.output.label), "data", json_text(ramp->data), "format",
        ramp->format, "trainer", json_text(settings->job.trainer), "settings",
        settings_json(settings), "ranks", (json_int_t)ramp->ranks->place.ranks, "cold",
        worst_cache(ramp) == RESULT_CACHE_COLD, "degraded_reason",
        ramp->degraded[0] ? json_text(ramp->degraded) : json_null(), "dataset", ramp->dataset,
        "storage", ramp->storage, "cache_before", summary_cache_name(worst_cache(ramp)));
    const struct {
        const char *key;
        double value;
    } rows[] = {
        {"load", answer.held > 0 ? answer.held : NAN},
        {"load_that_fails", answer.failed > 0 ? answer.failed : NAN},
        {"load_low", answer.low},
        {"load_high", answer.high},
        {"step_s", ramp->step_ns * 1e-9},
        {"limit_percent", settings->limit_percent},
        {"precision_percent", settings->precision_percent},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        json_object_set_new(object, rows[i].key, json_number(rows[i].value));
    for (size_t i = 0; i < ramp->count; i++)
        json_array_append_new(points, point_json(&ramp->points[i]));
    json_object_set_new(object, "points", points);
    return object;
}

static int write_json(const struct ramp *ramp, const char *path)
{
    json_t *jobs = json_array();
    json_t *members = json_pack("{s:o}", "ramp", ramp_json(ramp));
    json_t *document = members && json_check() == 0 ? report_json_document(jobs, members) : NULL;

    json_decref(jobs);
    json_decref(members);
    return json_file_write(path, document);
}

/* ---- chart ---- */

static int draw(const struct ramp *ramp, const char *path)
{
    const struct ramp_answer answer = ramp_search_answer(&ramp->search);
    struct ramp_point *points = sorted_points(ramp);
    struct svg svg;
    char title[600];

    if (!points)
        return -ENOMEM;
    snprintf(title, sizeof title, "%.4g x %s fed, cache %s%s%s", answer.held,
             ramp->settings->job.trainer, summary_cache_name(worst_cache(ramp)),
             is_synthetic(ramp) ? ", synthetic data" : "", ramp->degraded[0] ? "; DEGRADED" : "");
    svg_begin(&svg, title, 800, 230, 1);
    struct svg_panel *rate = svg_panel(&svg, ""), *lateness = svg_panel(&svg, "");
    struct svg_curve *offered = svg_curve(rate, "offered", "#888888", 1, SVG_LINE),
                     *delivered = svg_curve(rate, "delivered", svg_color(0), 1.5, SVG_POINTS),
                     *p50 = svg_curve(lateness, "p50", svg_color(2), 1.5, SVG_POINTS),
                     *p99 = svg_curve(lateness, "p99", svg_color(1), 1.5, SVG_POINTS),
                     *limit = svg_curve(lateness, "limit", "#888888", 1, SVG_DOTTED);
    svg_x(rate, "", SVG_LINEAR, 0, NAN);
    svg_x(lateness, "load", SVG_LINEAR, 0, NAN);
    svg_y(rate, "samples/s", SVG_LINEAR, 0, NAN);
    svg_y(lateness, "lateness, ms", SVG_LOG, NAN, NAN);
    for (size_t i = 0; i < ramp->count; i++) {
        svg_point(offered, points[i].load, points[i].offered_samples_per_s);
        svg_point(delivered, points[i].load, points[i].samples_per_s);
        svg_point(p50, points[i].load, fmax((double)points[i].late_p50_ns * 1e-6, 1e-3));
        svg_point(p99, points[i].load, fmax((double)points[i].late_p99_ns * 1e-6, 1e-3));
        svg_point(limit, points[i].load,
                  ramp->settings->limit_percent / 100 * ramp->step_ns * 1e-6);
    }
    if (answer.held > 0) {
        svg_mark(rate, answer.held, "");
        svg_mark(lateness, answer.held, "");
    }
    int code = svg_save(&svg, path);
    svg_release(&svg);
    free(points);
    return code;
}

int ramp_write_files(const struct ramp *ramp)
{
    const char *json = ramp->settings->job.output.json;
    int code = json ? write_json(ramp, json) : 0;

    if (code == 0 && ramp->settings->plot)
        code = draw(ramp, ramp->settings->plot);
    return code;
}
