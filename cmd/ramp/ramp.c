/* SPDX-License-Identifier: Apache-2.0
 *
 * iobench ramp: raises the load until batches are late, and finds the highest load that holds.
 */
#include "cmd/ramp/ramp.h"

#include "base/escape.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "cmd/arguments.h"
#include "cmd/commands.h"
#include "cmd/layers.h"
#include "cmd/line.h"
#include "cmd/outputs.h"
#include "pipeline/jobs/run.h"
#include "pipeline/jobs/session.h"
#include "pipeline/settings/job.h"
#include "report/report.h"
#include "report/svg.h"
#include "report/words.h"
#include "trainer/trainer.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the search ---- */

/* Loads that may be guessed; after them the bracket is bisected, whatever runs deliver. */
enum { GUESSES_MOST = 6 };

/* Return what most runs say so far; previews say it while there are none. */
static enum ramp_verdict judge_load(const struct ramp_load *load)
{
    if (load->held == load->failed)
        return load->held ? RAMP_UNDECIDED : load->preview;
    return load->held > load->failed ? RAMP_HOLDS : RAMP_FAILS;
}

static bool is_settled(const struct ramp_search *search, const struct ramp_load *load)
{
    const uint32_t majority = search->runs / 2 + 1;

    return load->held >= majority || load->failed >= majority;
}

/* Four digits: finer than any search resolves, short enough to type. */
static double rounded(double load)
{
    const double unit = pow(10, floor(log10(load)) - 3);

    return round(load / unit) * unit;
}

struct ramp_answer ramp_search_answer(const struct ramp_search *search)
{
    struct ramp_answer answer = {.high = INFINITY};
    bool all_held = true;

    for (size_t i = 0; i < search->count; i++) {
        const struct ramp_load *load = &search->loads[i];
        const enum ramp_verdict verdict = judge_load(load);
        if (verdict == RAMP_FAILS && answer.failed == 0)
            answer.failed = load->load;
        if (verdict == RAMP_HOLDS && answer.failed == 0)
            answer.held = load->load;
        all_held = all_held && load->failed == 0;
        if (all_held && load->held > 0)
            answer.low = load->load;
        if (load->held > 0)
            answer.high = INFINITY;
        else if (load->failed > 0 && isinf(answer.high))
            answer.high = load->load;
    }
    return answer;
}

static bool is_between(const struct ramp_answer *answer, double load)
{
    return load > answer->held && load < answer->failed;
}

/* Return a load just below or above the rate that the lowest failing load delivered; 0: that says
 * nothing, since it kept up and was late for another reason, or it was tried. */
static double guess(const struct ramp_search *search, const struct ramp_answer *answer)
{
    const double half = 1 + 0.45 * search->precision; /* the two are closer than the precision */

    for (size_t i = 0; i < search->count && search->guesses < GUESSES_MOST; i++) {
        const struct ramp_load *load = &search->loads[i];
        if (load->load == answer->failed && load->delivered > 0 &&
            load->delivered < load->load / (1 + search->precision)) {
            const double below = rounded(load->delivered / half);
            const double above = rounded(load->delivered * half);
            if (is_between(answer, below))
                return below;
            return is_between(answer, above) ? above : 0;
        }
    }
    return 0;
}

struct ramp_step ramp_search_next(const struct ramp_search *search)
{
    const struct ramp_answer answer = ramp_search_answer(search);
    const bool is_bracket = answer.failed > 0 && answer.held > 0;
    struct ramp_step step = {0};

    for (size_t i = 0; i < search->count; i++)
        if (judge_load(&search->loads[i]) == RAMP_UNDECIDED)
            return (struct ramp_step){.load = search->loads[i].load};
    const bool is_narrow = is_bracket && answer.failed <= answer.held * (1 + search->precision);
    if (search->count < RAMP_LOADS && is_bracket && !is_narrow) {
        const double middle = rounded(sqrt(answer.held * answer.failed));
        step.load = guess(search, &answer);
        if (step.load == 0 && is_between(&answer, middle))
            step.load = middle;
    } else if (search->count < RAMP_LOADS && answer.failed > 0 && !is_bracket) {
        /* Find the other end, if there is one. */
        step.load = answer.failed > ldexp(search->from, -RAMP_HALVINGS) ? answer.failed / 2 : 0;
    } else if (search->count < RAMP_LOADS && !is_bracket) {
        step.load = answer.held == 0           ? search->from
                    : answer.held < search->to ? fmin(2 * answer.held, search->to)
                                               : 0;
    }
    step.preview = step.load > 0 && !is_bracket && search->from < search->to;
    for (size_t i = 0; i < search->count && step.load == 0; i++) {
        const struct ramp_load *load = &search->loads[i];
        if ((load->load == answer.held || load->load == answer.failed) && !is_settled(search, load))
            step.load = load->load;
    }
    return step;
}

void ramp_search_add(struct ramp_search *search, struct ramp_step step, bool holds,
                     double delivered)
{
    const struct ramp_answer answer = ramp_search_answer(search);
    size_t place = 0;

    if (step.load == guess(search, &answer))
        search->guesses++;
    while (place < search->count && search->loads[place].load < step.load)
        place++;
    struct ramp_load *at = &search->loads[place];
    if (place == search->count || at->load > step.load) {
        memmove(at + 1, at, (search->count - place) * sizeof *at);
        *at = (struct ramp_load){.load = step.load};
        search->count++;
    }
    if (step.preview)
        at->preview = holds ? RAMP_HOLDS : RAMP_FAILS;
    at->held += holds && !step.preview;
    at->failed += !holds && !step.preview;
    if (!holds)
        at->delivered = delivered;
}

struct ramp_point ramp_point_of(struct ramp_step step, const struct result_run *run,
                                double limit_percent, double *step_ns)
{
    const struct result_epoch *epoch = &run->epochs[0];
    const struct histogram *late = &run->batch_late_ns;
    struct ramp_point point = {
        .load = step.load,
        .preview = step.preview,
        .offered_samples_per_s = (double)epoch->samples / (double)epoch->nominal_ns * 1e9,
        .samples_per_s = result_epoch_paced_samples_per_s(epoch),
        .bytes_per_s = result_epoch_paced_bytes_per_s(epoch),
        .read_samples_per_s = result_epoch_read_samples_per_s(epoch),
        .batches = late->count,
        .late_p50_ns = histogram_quantile(late, 0.5),
        .late_p99_ns = histogram_quantile(late, 0.99),
        .late_max_ns = histogram_quantile(late, 1),
        .cache = run->cold.state,
        .limit = epoch->limit,
    };

    *step_ns = (double)epoch->nominal_ns / (double)epoch->batches * step.load;
    point.stall_percent = 100 * (double)point.late_p99_ns / *step_ns;
    /* Samples that were read before the first batch, a window and more, say nothing about the
     * storage's rate. */
    point.is_behind = point.read_samples_per_s < point.samples_per_s;
    if (point.is_behind) {
        point.bytes_per_s *= point.read_samples_per_s / point.samples_per_s;
        point.samples_per_s = point.read_samples_per_s;
    }
    point.holds = point.stall_percent < limit_percent && !point.is_behind;
    return point;
}

/* ---- what was measured ---- */

enum { BATCHES_FOR_P99 = 100, COLUMN = 11 };

struct ramp_settings {
    struct job job;
    double from, to, limit_percent, precision_percent;
    uint64_t runs, duration_ns;
    char *plot;
};

struct ramp {
    const struct ramp_settings *settings;
    struct ranks *ranks;
    struct line line;
    struct ramp_search search;
    double step_ns; /* of one trainer's batch; 0: not known yet */
    struct ramp_point *points;
    size_t count;
    json_t *list;       /* the points as JSON, in measurement order */
    struct result last; /* what was read; without its runs */
    char storage[160];
    char degraded[256];       /* first reason of a run that is no preview; "": none */
    bool interrupted, failed; /* before the answer was found */
};

static int compare_loads(const void *a, const void *b)
{
    const struct ramp_point *x = a, *y = b;

    return (x->load > y->load) - (x->load < y->load);
}

static enum result_cache worst_cache(const struct ramp *ramp)
{
    enum result_cache worst = RESULT_CACHE_COLD;

    for (size_t i = 0; i < ramp->count; i++)
        if (ramp->points[i].cache > worst)
            worst = ramp->points[i].cache;
    return worst;
}

/* ---- text ---- */

static void print_ramp(const struct ramp *ramp)
{
    const struct ramp_answer answer = ramp_search_answer(&ramp->search);
    char count[WORDS_BYTES], rates[3][WORDS_BYTES], times[2][WORDS_BYTES];
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
    printf("  Data     %s: %s, %s samples%s\n", escape_shown(ramp->last.data), ramp->last.format,
           words_count(ramp->last.records, count), ramp->last.data_was_made ? ", synthetic" : "");
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
        const struct ramp_point *point = &ramp->points[i];
        printf("%9.4g%12s%11s%9s%11s%11s%9.2f%%  %s%s\n", point->load,
               words_rate(point->offered_samples_per_s, rates[0]),
               words_rate(point->samples_per_s, rates[1]),
               words_rate(point->bytes_per_s / 1e6, rates[2]),
               words_duration(point->late_p50_ns, times[0]),
               words_duration(point->late_p99_ns, times[1]), point->stall_percent,
               point->holds                                           ? "fed"
               : point->stall_percent < ramp->settings->limit_percent ? "behind"
                                                                      : "late",
               point->preview ? "?" : "");
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

static json_t *ramp_json(const struct ramp *ramp)
{
    const struct ramp_settings *settings = ramp->settings;
    const struct ramp_answer answer = ramp_search_answer(&ramp->search);
    json_t *options = json_object();
    char text[512];
    for (const struct option_spec *row = job_options; row->name; row++)
        json_put_text(options, row->name, option_text(row, &settings->job, text, sizeof text));
    json_t *object =
        json_pack("{s:o, s:o, s:s, s:o, s:o, s:I, s:b, s:o, s:o, s:s, s:s}", "label",
                  json_text(settings->job.output.label), "data", json_text(ramp->last.data),
                  "format", ramp->last.format, "trainer", json_text(settings->job.trainer),
                  "settings", options, "ranks", (json_int_t)ramp->ranks->place.ranks, "cold",
                  worst_cache(ramp) == RESULT_CACHE_COLD, "degraded_reason",
                  ramp->degraded[0] ? json_text(ramp->degraded) : json_null(), "dataset",
                  report_dataset(&ramp->last), "storage", ramp->storage, "cache_before",
                  summary_cache_name(worst_cache(ramp)));
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
    json_object_set(object, "points", ramp->list);
    return object;
}

/* ---- chart ---- */

static int draw(const struct ramp *ramp, const char *path)
{
    const struct ramp_answer answer = ramp_search_answer(&ramp->search);
    const struct ramp_point *points = ramp->points;
    struct svg svg;
    char title[600];

    snprintf(title, sizeof title, "%.4g x %s fed, cache %s%s%s", answer.held,
             ramp->settings->job.trainer, summary_cache_name(worst_cache(ramp)),
             ramp->last.data_was_made ? ", synthetic data" : "",
             ramp->degraded[0] ? "; DEGRADED" : "");
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
    return code;
}

/* Write the JSON document and the chart if requested. Returns 0 or -errno. */
static int write_ramp(const struct ramp *ramp)
{
    const char *json = ramp->settings->job.output.json;
    int code = 0;

    if (json) {
        json_t *jobs = json_array();
        json_t *members = json_pack("{s:o}", "ramp", ramp_json(ramp));
        json_t *document =
            members && json_check() == 0 ? report_json_document(jobs, members) : NULL;
        json_decref(jobs);
        json_decref(members);
        code = json_file_write(json, document);
    }
    if (code == 0 && ramp->settings->plot)
        code = draw(ramp, ramp->settings->plot);
    return code;
}

/* ---- options ---- */

/* A p99 needs 100 batches, after the warm-up. A preview only has to detect a load that is twice too
 * high. */
enum { BATCHES_LEAST = 110, BATCHES_PREVIEW = 40, BATCHES_MOST = 1 << 30, PREVIEW_SHARE = 8 };

/* clang-format off: one or two rows each */
#define FIELD(field) .offset = offsetof(struct ramp_settings, field)
#define JOB offsetof(struct ramp_settings, job)
static const struct option_spec ramp_options[] = {
    {"from", 0, OPTION_REAL, FIELD(from), .fallback = "1", .minimum = 1e-3, .maximum = 1e6,
     .metavar = "LOAD", .section = "The ramp",
     .summary = "first load: how many of the trainer take batches in turns; may be fractional"},
    {"to", 0, OPTION_REAL, FIELD(to), .fallback = "65536", .minimum = 1e-3, .maximum = 1e6,
     .metavar = "LOAD", .summary = "highest load to try"},
    {"limit", 0, OPTION_REAL, FIELD(limit_percent), .fallback = "1%", .minimum = 0.01,
     .maximum = 1000, .percent = true, .metavar = "PERCENT",
     .summary = "a load holds if 99% of its batches are late by less than this share of a step"},
    {"precision", 0, OPTION_REAL, FIELD(precision_percent), .fallback = "2%", .minimum = 0.1,
     .maximum = 100, .percent = true, .metavar = "PERCENT",
     .summary = "stop when the highest load that holds and the next one are this close"},
    {"runs", 'n', OPTION_COUNT, FIELD(runs), .fallback = "3", .minimum = 1, .maximum = 99,
     .summary = "runs of the answer's loads at most; a majority decides"},
    {"duration", 0, OPTION_DURATION, FIELD(duration_ns), .fallback = "10s", .minimum = 0.1,
     .maximum = 86400,
     .summary =
         "length of a run, of at least 110 batches and at most one epoch; previews take an eighth"},
    {"trainer", 'T', OPTION_TEXT, JOB_FIELD(JOB, trainer), .fallback = "replay:h200",
     .metavar = "NAME[:...]", .summary = "the GPU to emulate: one unit of load"},
    {"batch-size", 'B', OPTION_COUNT, JOB_FIELD(JOB, batch_size), .fallback = "256", .minimum = 1,
     .maximum = 1 << 20, .summary = "samples per batch of one GPU"},

    {"data", 'd', OPTION_TEXT, JOB_FIELD(JOB, read.data), .metavar = "PATH",
     .reach = OPTION_INDEXES_SET, .section = "Data set",
     .summary = "data set: file, folder or nfs:// URL (required)"},
    JOB_SET_ROWS(JOB),
    JOB_AS_ROW(JOB),
    JOB_WORKLOAD_ROW(JOB),
    JOB_READER_ROWS(JOB),
    JOB_ORDER_ROWS(JOB),
    JOB_SEED_ROW(JOB),
    JOB_RANK_TIMEOUT_ROW(JOB),
    JOB_DECODE_ROWS(JOB),
    JOB_COLD_ROWS(JOB),

    {"json", 'j', OPTION_TEXT, JOB_FIELD(JOB, output.json), .metavar = "FILE",
     .reach = OPTION_WRITES, .section = "Output",
     .summary = "write the result as JSON; - is standard output instead of the table"},
    {"plot", 0, OPTION_TEXT, FIELD(plot), .metavar = "FILE", .reach = OPTION_WRITES,
     .summary = "chart throughput and lateness against load: .svg, .png or .pdf"},
    {"label", 0, OPTION_TEXT, JOB_FIELD(JOB, output.label), .metavar = "TEXT",
     .summary = "free text to store in the result"},
    {0},
};
#undef JOB
#undef FIELD
/* clang-format on */

/* ---- one run ---- */

static void show_progress(void *context, const struct run_progress *progress)
{
    struct ramp *ramp = context;
    char text[sizeof ramp->line.last], bar[LINE_PART_BYTES];

    if (ramp->ranks->place.rank)
        return;
    snprintf(text, sizeof text, "run %zu, load %.4g %s", ramp->count + 1, progress->job->open_load,
             line_bar(bar, progress->done, progress->total));
    line_show(&ramp->line, text);
}

/* ---- the command ---- */

static int prepare_ramp(const struct invocation *invocation, struct ramp_settings *settings)
{
    struct job *job = &settings->job;
    /* Apply the workload and the preset; options on the command line override them. */
    const bool any = settings->job.as || settings->job.workload;
    int code = 0;
    if (settings->job.workload)
        code = layers_workload(settings->job.workload, ramp_options, settings);
    if (code == 0 && settings->job.as)
        code = layers_preset(settings->job.as, ramp_options, settings);
    if (code == 0 && any)
        code = layers_command_line(invocation, ramp_options, settings);

    if (code == 0)
        code = layers_complete(ramp_options, offsetof(struct ramp_settings, job), job);
    if (code == 0) {
        struct plugin_choice choice;
        code = trainer_choose(job->trainer, &choice);
        if (code == 0 && !trainer_of(choice.plugin)->replays)
            code = fail(EINVAL,
                        "--trainer %s: a load is a multiple of an emulated GPU: use a trainer that "
                        "replays step times",
                        job->trainer);
        plugin_release(&choice);
    }
    if (code == 0 && settings->runs % 2 == 0)
        code = fail(EINVAL, "--runs %llu: expected an odd number, for a majority",
                    (unsigned long long)settings->runs);
    if (code == 0)
        code = job->read.data ? arguments_check_data("data", job->read.data)
                              : fail(EINVAL, "--data is required");
    if (code == 0 && settings->plot && svg_check_path(settings->plot))
        code = -EINVAL;
    job->runs = 1;
    job->calibrate = false;
    job->output.sample_interval_ns = 0;
    return code;
}

/* Returns enum command_exit. */
static int run_ramp(const struct invocation *invocation, struct ramp *ramp)
{
    const bool speaks = ramp->ranks->place.rank == 0;
    const bool table = job_stdout_count(&ramp->settings->job) == 0;
    int code = ranks_meet(
        ramp->ranks, speaks ? outputs_check(&ramp->settings->job, "{\"schema\"", "") : 0, NULL);
    int status = COMMAND_OK;

    if (code)
        return speaks || ramp->ranks->is_unheard ? command_misused(invocation) : COMMAND_FAILED;
    const struct ramp_settings *settings = ramp->settings;
    ramp->search = (struct ramp_search){.from = fmin(settings->from, settings->to),
                                        .to = settings->to,
                                        .precision = settings->precision_percent / 100,
                                        .runs = (uint32_t)settings->runs};
    for (struct ramp_step step; code == 0 && (step = ramp_search_next(&ramp->search)).load > 0;) {
        const struct run_observer observer = {.progress = show_progress, .context = ramp};
        struct result result = {0};
        struct job job = ramp->settings->job;
        job.open_load = step.load;
        const double duration = (double)settings->duration_ns / (step.preview ? PREVIEW_SHARE : 1);
        double batches = step.preview ? BATCHES_PREVIEW : BATCHES_LEAST;
        if (ramp->step_ns > 0)
            batches =
                fmax(batches, step.load / ramp->ranks->place.ranks * duration / ramp->step_ns);
        const uint64_t samples = (uint64_t)fmin(batches, BATCHES_MOST) * settings->job.batch_size;
        const uint64_t limit = order_rank_samples(&settings->job.order);
        job.order.limit_samples_per_rank = limit && limit < samples ? limit : samples;
        job.order.limit_samples = 0;
        code = run_jobs(&job, 1, ramp->ranks, &observer, &result);
        if (code == 0 && !result.valid)
            code = fail(EPROTO, "load %.4g: invalid: %s", step.load, result.invalid_reason);
        if (code == 0) {
            if (memory_room(&ramp->points, ramp->count, sizeof *ramp->points, "points"))
                code = -ENOMEM;
            else if (result.runs[0].batch_late_ns.count == 0)
                code = fail(
                    EINVAL,
                    "%llu samples are too few: a run needs more than 10 batches of %llu on each "
                    "rank; use a smaller --batch-size or a larger data set",
                    (unsigned long long)result.records,
                    (unsigned long long)ramp->settings->job.batch_size);
            else {
                ramp->points[ramp->count++] = ramp_point_of(
                    step, &result.runs[0], ramp->settings->limit_percent, &ramp->step_ns);
                json_array_append_new(ramp->list, point_json(&ramp->points[ramp->count - 1]));
                snprintf(ramp->storage, sizeof ramp->storage, "%.30s at %.120s",
                         result.environment.file_system, result.environment.mount_point);
                if (!step.preview && !ramp->degraded[0]) {
                    const uint64_t skipped = result.runs[0].epochs[0].skipped;
                    if (result.degraded_reason[0])
                        snprintf(ramp->degraded, sizeof ramp->degraded, "%s",
                                 result.degraded_reason);
                    else if (skipped)
                        snprintf(ramp->degraded, sizeof ramp->degraded, "%llu %s skipped",
                                 (unsigned long long)skipped,
                                 skipped == 1 ? "record was" : "records were");
                }
            }
        }
        result_destroy(&result);
        if (code == 0) {
            ramp->last = result;
            const struct ramp_point *point = &ramp->points[ramp->count - 1];
            ramp_search_add(&ramp->search, step, point->holds,
                            step.load * point->samples_per_s / point->offered_samples_per_s);
        }
    }
    line_clear(&ramp->line);
    if (ramp->count)
        qsort(ramp->points, ramp->count, sizeof *ramp->points, compare_loads);
    ramp->interrupted = code == -EINTR;
    ramp->failed = code && code != -EINTR;
    if (code)
        status = speaks || ramp->ranks->is_unheard ? command_failed(invocation) : COMMAND_FAILED;
    else if (ramp->degraded[0])
        status = COMMAND_FAILED;
    if (speaks && table && ramp->count)
        print_ramp(ramp);
    if (speaks && code == 0 && write_ramp(ramp))
        status = command_failed(invocation);
    return status;
}

static int ramp_run(const struct invocation *invocation)
{
    struct ramp_settings *settings = invocation->settings;
    struct ranks ranks;
    struct ramp ramp = {
        .settings = settings, .ranks = &ranks, .line = line_start(), .list = json_array()};
    int status;

    if (prepare_ramp(invocation, settings)) {
        status = command_misused(invocation);
    } else {
        int code = command_join(&ranks);
        if (code == 0)
            code = ranks_meet(&ranks, job_share(&settings->job, &ranks.place), NULL);
        command_on_interrupt(); /* after MPI has installed its handlers */
        status = code ? command_failed(invocation) : run_ramp(invocation, &ramp);
        ranks_leave(&ranks, status != COMMAND_OK);
    }
    json_decref(ramp.list);
    free(ramp.points);
    option_release(job_options, &settings->job);
    return status;
}

const struct command command_ramp = {
    .name = "ramp",
    .summary = "find how many GPUs a storage feeds before their batches are late",
    .description =
        "Raises the load, doubling in short previews and then bisecting, until batches are late. A "
        "load of N stands for N GPUs that take batches in turns: one batch is due every step time "
        "/ N, whether or not the one before was ready (open loop), so a slow storage is not spared "
        "the requests that a waiting GPU would not make. A batch's stall is its lateness as a "
        "share of a GPU's step; a load holds if the 99th percentile of the stalls is below "
        "--limit, and samples were read as fast as they were taken. Prints the highest load that "
        "holds, the interval in which runs agree, and throughput and lateness at each load. Under "
        "mpirun or srun the ranks share each load.",
    .examples =
        "iobench ramp --data /mnt/set --drop-caches --trainer replay:h200 -B 400\thow many "
        "H200 does cold storage feed?\n"
        "iobench ramp --data /mnt/set --decode none --trainer replay:rate=486\tGPUs of 486 "
        "samples/s, storage alone\n"
        "iobench ramp --data /mnt/unet3d --workload unet3d-b200\tof MLPerf Storage's emulated "
        "B200\n"
        "iobench ramp --data /mnt/set --limit 10% --plot ramp.svg\twith a chart\n",
    .options = ramp_options,
    .settings_size = sizeof(struct ramp_settings),
    .is_confined = true,
    .run = ramp_run,
};
