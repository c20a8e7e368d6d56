/* SPDX-License-Identifier: Apache-2.0
 *
 * iobench report: results as one HTML page, complete in itself: report/page/ (template, style,
 * program) and the dygraphs library, embedded when iobench is built, one island of JSON, and
 * pictures. Results are untrusted: text from outside is escaped, or is data that
 * report/page/page.js shows as text.
 */
#include "base/fail.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "cmd/commands.h"
#include "cmd/outputs.h"
#include "cmd/shuffle/shuffle.h"
#include "report/chart.h"
#include "report/compare.h"
#include "report/report.h"
#include "report/svg.h"

#include <assert.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* Sections of the page that the caller fills with pictures. */
enum html_section {
    HTML_TIME,
    HTML_SCALING,
    HTML_LATENCY,
    HTML_SHUFFLE,
    HTML_OTHERS,
    HTML_SECTIONS
};

/* A job of a result file (docs/json.md). */
struct picture_result {
    const char *name;
    const json_t *job;
};

enum { PICTURES_WIDTH = 800, PICTURES_HEIGHT = 240 };

struct document_kind {
    const char *schema;
    const char *title;  /* of the picture */
    const char *picked; /* members that the page shows, separated by blanks */
    /* Begin a picture. Returns false, having begun nothing, if there is nothing to draw. */
    bool (*draw)(struct svg *svg, const json_t *document);
};

/* ---- HTML ---- */

/* Generated from report/page/ and the library: report/local.mk. */
extern const unsigned char html_template[], html_style[], html_program[], html_library[],
    html_library_style[];

enum { NONCE_BYTES = 16, DIGITS = 9 };

/* Write the page. words: the answer for readers without scripts, and sections: HTML, NULL
 * where empty.
 * Returns 0 or a negative errno with a reason. */
static int html_write(FILE *page, const char *title, const char *words,
                      const char *const sections[HTML_SECTIONS], const json_t *data)
{
    char nonce[2 * NONCE_BYTES + 1];
    const struct {
        const char *name, *text;
        bool is_outside; /* external text, to be escaped */
    } parts[] = {{"version", PACKAGE_VERSION, false},
                 {"nonce", nonce, false},
                 {"title", title, true},
                 {"words", words, false},
                 {"library-style", (const char *)html_library_style, false},
                 {"style", (const char *)html_style, false},
                 {"time", sections[HTML_TIME], false},
                 {"scaling", sections[HTML_SCALING], false},
                 {"latency", sections[HTML_LATENCY], false},
                 {"shuffle", sections[HTML_SHUFFLE], false},
                 {"others", sections[HTML_OTHERS], false},
                 {"library", (const char *)html_library, false},
                 {"program", (const char *)html_program, false},
                 {"data", NULL, false}};
    unsigned char bytes[NONCE_BYTES];
    int code = 0;

    /* With a nonce only this page's scripts and styles run, even if external text became markup. */
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        return fail(errno, "no random bytes: %s", fail_errno_text(errno));
    for (int i = 0; i < NONCE_BYTES; i++)
        snprintf(nonce + 2 * i, 3, "%02x", bytes[i]);
    for (const char *at = (const char *)html_template; *at && code == 0;) {
        const size_t length = strcspn(at, "@");
        fwrite(at, 1, length, page);
        at += length;
        if (strncmp(at, "@{", 2) != 0) { /* "@media" */
            at += *at ? (fputc(*at, page), 1) : 0;
            continue;
        }
        const size_t name = strcspn(at + 2, "}");
        for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
            if (strlen(parts[i].name) != name || strncmp(parts[i].name, at + 2, name) != 0)
                continue;
            if (strcmp(parts[i].name, "data") == 0) {
                /* Inside a script element nothing may look like markup. */
                char *text = json_to_text(data, JSON_COMPACT | JSON_REAL_PRECISION(DIGITS));
                for (const char *byte = text; byte && *byte; byte++)
                    fprintf(page, strchr("<>&", *byte) ? "\\u%04x" : "%c", *byte);
                code = text ? 0 : -ENOMEM;
                free(text);
            } else if (parts[i].is_outside)
                svg_escape(page, parts[i].text);
            else if (parts[i].text)
                fputs(parts[i].text, page);
        }
        at += 2 + name + 1;
    }
    return code;
}

/* ---- pictures of results ---- */

enum { LATENCIES_MOST = 16 };

/* ---- scaling ---- */

/* 0: the job has the same samples on any number of ranks (strong scaling); else a rank has. */
static const char per_rank[] = "settings.limit_samples_per_rank";

/* The order that was used: --shuffle may be auto. */
static const char *shuffle_of(const json_t *job)
{
    const char *used = load_text(job, "engine.shuffle");

    return used ? used : load_word(job, "settings.shuffle");
}

static bool same_group(const json_t *a, const json_t *b)
{
    static const char *const paths[] = {"dataset.format", "settings.trainer"};
    const double share = load_number(a, per_rank), other = load_number(b, per_rank);

    if (share != other && !(isnan(share) && isnan(other)))
        return false;

    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        if (strcmp(load_word(a, paths[i]), load_word(b, paths[i])) != 0)
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

static int compare_rows(const void *a, const void *b)
{
    const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
    const double one = load_number(x, "ranks"), other = load_number(y, "ranks");
    const int group = strcmp(load_word(x, "group"), load_word(y, "group"));

    return group ? group : (one > other) - (one < other);
}

/* Throughput of each result that has a counterpart with other ranks (same format, shuffle, trainer
 * and samples per rank), against the fewest: objects with "name", "group", "kind", "ranks",
 * "nodes", "samples_per_s", "speed_up", "efficiency_percent" and "limit", by group and ranks.
 * Returns NULL out of memory. */
static json_t *pictures_scaling_rows(const struct picture_result *results, size_t count)
{
    json_t **rows = memory_array(count + 1, sizeof *rows), *array = json_array();
    size_t used = 0;

    for (size_t i = 0; rows && i < count; i++) {
        const struct picture_result *result = &results[i];
        const json_t *job = result->job;
        /* The fewest ranks among the results like this one, and their mean throughput. */
        double fewest = INFINITY, most = 0, sum = 0;
        size_t same = 0;
        for (size_t k = 0; k < count; k++) {
            if (!is_charted(results[k].job) || !same_group(results[k].job, job))
                continue;
            fewest = fmin(fewest, ranks_of(results[k].job));
            most = fmax(most, ranks_of(results[k].job));
        }
        for (size_t k = 0; k < count; k++)
            if (is_charted(results[k].job) && same_group(results[k].job, job) &&
                !(ranks_of(results[k].job) > fewest)) {
                sum += load_number(results[k].job, "summary.samples_per_s");
                same++;
            }
        if (!is_charted(job) || !(most > fewest))
            continue;
        const double base = same ? sum / (double)same : NAN;
        const double samples = load_number(result->job, "summary.samples_per_s");
        const bool is_weak = load_number(result->job, per_rank) > 0;
        char group[256];
        json_t *row = json_object();
        snprintf(group, sizeof group, "%s: %s, shuffle %s, trainer %s", is_weak ? "weak" : "strong",
                 load_word(result->job, "dataset.format"), shuffle_of(result->job),
                 load_word(result->job, "settings.trainer"));
        json_put_text(row, "name", result->name);
        json_put_text(row, "group", group);
        json_put_text(row, "kind", is_weak ? "weak" : "strong");
        json_put_number(row, "ranks", ranks_of(result->job));
        json_put_number(row, "nodes", load_number(result->job, "engine.nodes"));
        json_put_number(row, "samples_per_s", samples);
        json_put_number(row, "speed_up", samples / base);
        json_put_number(row, "efficiency_percent",
                        100 * (samples / base / (ranks_of(result->job) / fewest)));
        json_put_text(row, "limit", load_word(result->job, "summary.limit"));
        rows[used++] = row;
    }
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

/* Begin a picture of them. */
static void pictures_scaling(struct svg *svg, const json_t *rows)
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
            if (!group || strcmp(group, load_word(row, "group")) != 0) {
                group = load_word(row, "group");
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

/* Begin a picture. Returns false, having begun nothing, if no result has latencies. */
static bool pictures_latency(struct svg *svg, const struct picture_result *results, size_t count)
{
    static const char *const ticks[] = {"0%", "90%", "99%", "99.9%", "99.99%", "99.999%"};
    struct svg_panel *panel = NULL;
    size_t used = 0;

    for (size_t i = 0; i < count && used < LATENCIES_MOST; i++) {
        bool is_drawn = false;
        for (int kind = 0; kind < LATENCY_KINDS; kind++) {
            const json_t *job = results[i].job,
                         *latency = load_member(job, latency_kinds[kind].path),
                         *later = load_member(job, latency_kinds[LATENCY_LATER].path),
                         *evaluation = load_member(job, latency_kinds[LATENCY_EVALUATION].path);
            const bool by_epoch =
                load_number(later, "p50_s") > 0 || load_number(evaluation, "p50_s") > 0;
            char name[512];
            if (by_epoch != (kind > 0) || !(load_number(latency, "p50_s") > 0))
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

/* ---- documents that are no runs, known by their "schema" (docs/json.md): an inference, throughput
 * and latency over batch size, for each precision ---- */

enum { PRECISIONS_DRAWN = 6 };

static bool is_inferred(const json_t *row)
{
    return load_text(row, "precision") && load_number(row, "batch_size") >= 1 &&
           load_number(row, "samples_per_s") > 0 && load_number(row, "network_samples_per_s") > 0 &&
           load_number(row, "latency.p50_ms") > 0 && load_number(row, "latency.p99_ms") > 0;
}

static bool draw_inference(struct svg *svg, const json_t *document)
{
    /* Two figures of each precision: solid and dashed. */
    static const struct {
        const char *title, *unit, *names[2], *keys[2];
    } panels[] = {
        {"Throughput",
         "images/s",
         {"pipeline", "network alone"},
         {"samples_per_s", "network_samples_per_s"}},
        {"Latency of a batch", "ms", {"median", "99%"}, {"latency.p50_ms", "latency.p99_ms"}}};
    const json_t *rows = json_object_get(document, "batch_sizes");
    const char *names[PRECISIONS_DRAWN];
    size_t index, count = 0;
    json_t *row;

    json_array_foreach(rows, index, row)
    {
        size_t i = 0;
        while (is_inferred(row) && i < count && strcmp(names[i], load_text(row, "precision")) != 0)
            i++;
        if (is_inferred(row) && i == count && count < PRECISIONS_DRAWN)
            names[count++] = load_text(row, "precision");
    }
    if (count == 0)
        return false;
    svg_begin(svg, "", PICTURES_WIDTH, PICTURES_HEIGHT, 2);
    for (size_t i = 0; i < 2; i++) {
        struct svg_panel *panel = svg_panel(svg, panels[i].title);
        svg_x(panel, "batch size", SVG_LOG2, NAN, NAN);
        svg_y(panel, panels[i].unit, SVG_LINEAR, 0, NAN);
        for (size_t k = 0; k < 2 * count; k++) {
            char name[160];
            snprintf(name, sizeof name, "%.80s, %s", names[k / 2], panels[i].names[k % 2]);
            struct svg_curve *curve = svg_curve(panel, name, svg_color(k / 2), 1.5,
                                                SVG_POINTS | (k % 2 ? SVG_DASHED : 0));
            json_array_foreach(rows, index, row)
            {
                if (is_inferred(row) && strcmp(load_text(row, "precision"), names[k / 2]) == 0)
                    svg_point(curve, load_number(row, "batch_size"),
                              load_number(row, panels[i].keys[k % 2]));
            }
        }
    }
    return true;
}

/* ---- checkpoints: the rate of each ---- */

static bool draw_checkpoints(struct svg *svg, const json_t *document)
{
    static const char *const kinds[][2] = {{"writes", "write"}, {"reads", "read"}};
    struct svg_panel *panel;
    bool is_rated = false;

    for (size_t i = 0; i < 2; i++) {
        const json_t *rows = json_object_get(document, kinds[i][0]);
        is_rated |= load_number(json_array_get(rows, 0), "bytes_per_s") > 0;
    }
    if (!is_rated)
        return false;
    svg_begin(svg, "", PICTURES_WIDTH, PICTURES_HEIGHT, 1);
    panel = svg_panel(svg, "");
    svg_x(panel, "checkpoint", SVG_LINEAR, NAN, NAN);
    svg_y(panel, "MB/s", SVG_LINEAR, 0, NAN);
    for (size_t i = 0; i < 2; i++) {
        const json_t *rows = json_object_get(document, kinds[i][0]), *row;
        struct svg_curve *bars = NULL;
        size_t index;
        json_array_foreach(rows, index, row)
        {
            const double number = load_number(row, "number"),
                         rate = load_number(row, "bytes_per_s");
            if (!(number >= 1 && rate > 0))
                continue;
            bars = bars ? bars : svg_curve(panel, kinds[i][1], svg_color(i), 1, SVG_BARS);
            svg_point(bars, number, rate / 1e6);
        }
    }
    return true;
}

/* ---- a fabric: latency and bandwidth over message size, all pairs as a map, collectives ---- */

enum { RANKS_DRAWN = 256, COLLECTIVES_DRAWN = 8 };

static struct svg_panel *begin_panel(struct svg *svg, const char *title, const char *unit)
{
    struct svg_panel *panel = svg_panel(svg, title);

    svg_x(panel, "message", SVG_BYTES, NAN, NAN);
    svg_y(panel, unit, SVG_LOG, NAN, NAN);
    return panel;
}

static bool draw_fabric(struct svg *svg, const json_t *document)
{
    static double values[RANKS_DRAWN * RANKS_DRAWN];
    const json_t *sizes = load_member(document, "messages.sizes"),
                 *pairs = load_member(document, "pairs.bytes_per_s");
    const size_t ranks = json_array_size(pairs);
    bool is_square = ranks >= 2 && ranks <= RANKS_DRAWN;

    for (size_t i = 0; i < ranks; i++)
        is_square = is_square && json_array_size(json_array_get(pairs, i)) == ranks;
    svg_begin(svg, "", PICTURES_WIDTH, PICTURES_HEIGHT, 2);
    if (json_array_size(sizes)) {
        static const struct {
            const char *key, *name, *unit;
            double scale; /* to the axis' unit */
        } curves[] = {{"latency", "latency", "s", 1e6},
                      {"forth", "forth", "bytes_per_s", 1e-6},
                      {"back", "back", "bytes_per_s", 1e-6},
                      {"both", "both at once", "bytes_per_s", 1e-6}};
        static const char *const ends[] = {"", "_low", "_high"};
        struct svg_panel *latency = begin_panel(svg, "Latency of a message", "us"),
                         *bandwidth = begin_panel(svg, "Bandwidth of messages", "MB/s");
        size_t index;
        json_t *row;
        for (size_t i = 0; i < sizeof curves / sizeof *curves; i++) {
            struct svg_curve *curve =
                svg_curve(i ? bandwidth : latency, curves[i].name, svg_color(i), 1, SVG_POINTS);
            json_array_foreach(sizes, index, row)
            {
                double figure[3];
                for (size_t k = 0; k < 3; k++) {
                    char key[64];
                    snprintf(key, sizeof key, "%s%s_%s", curves[i].key, ends[k], curves[i].unit);
                    figure[k] = load_number(row, key) * curves[i].scale;
                }
                if (load_number(row, "bytes") > 0)
                    svg_interval(curve, load_number(row, "bytes"), figure[0], figure[1], figure[2]);
            }
        }
    }
    const json_t *rows = json_object_get(document, "collectives");
    const char *names[COLLECTIVES_DRAWN];
    struct svg_curve *curves[COLLECTIVES_DRAWN];
    struct svg_panel *panel = NULL;
    size_t index, count = 0;
    json_t *row;
    json_array_foreach(rows, index, row)
    {
        size_t i = 0;
        if (!load_text(row, "name") || !(load_number(row, "bytes") > 0) ||
            !(load_number(row, "bus_bytes_per_s") > 0))
            continue;
        while (i < count && strcmp(names[i], load_text(row, "name")) != 0)
            i++;
        if (i == COLLECTIVES_DRAWN)
            continue;
        if (i == count) {
            panel = panel ? panel : begin_panel(svg, "Bus bandwidth of collectives", "MB/s");
            names[count] = load_text(row, "name");
            curves[count++] = svg_curve(panel, names[i], svg_color(i), 1, SVG_POINTS);
        }
        svg_point(curves[i], load_number(row, "bytes"), load_number(row, "bus_bytes_per_s") / 1e6);
    }
    if (is_square) { /* all pairs as a heat map, unless it is too large */
        struct svg_panel *map = svg_panel(svg, "All pairs, MB/s");
        double most = 0;
        char text[64];
        for (size_t i = 0; i < ranks * ranks; i++) {
            const json_t *value = json_array_get(json_array_get(pairs, i / ranks), i % ranks);
            values[i] = json_number_value(value) > 0 ? json_number_value(value) / 1e6 : NAN;
            most = fmax(most, values[i]);
        }
        svg_map(map, values, ranks, ranks, NAN);
        svg_x(map, "to rank", SVG_LINEAR, NAN, NAN);
        svg_y(map, "from rank", SVG_LINEAR, NAN, NAN);
        snprintf(text, sizeof text, "dark: %.0f", most);
        svg_curve(map, text, "#08519c", 1, SVG_BARS);
    }
    if (svg->first)
        return true;
    svg_release(svg);
    return false;
}

/* Return the kind of a document, or NULL. */
static const struct document_kind *documents_kind(const json_t *document)
{
    static const struct document_kind kinds[] = {
        {"iobench-infer", "Inference over batch size",
         "schema started command place degraded degraded_reason notices network backend side "
         "classes parameters gmacs data dataset checkpoint batch_sizes",
         draw_inference},
        {"iobench-checkpoint", "Rate of each checkpoint",
         "schema started command place valid invalid_reason degraded degraded_reason notices "
         "model settings write read training writes reads",
         draw_checkpoints},
        {"iobench-net", "Messages, pairs and collectives",
         "schema started command place transport nodes ranks settings verified_bytes degraded "
         "degraded_reason messages pairs collectives beside",
         draw_fabric},
    };
    const char *schema = load_text(document, "schema");

    for (size_t i = 0; schema && i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(schema, kinds[i].schema) == 0)
            return &kinds[i];
    return NULL;
}

/* ---- options ---- */

/* Values in all charts together, to bound the size of the page. */
enum { VALUES_MOST = 30000, BINS_LEAST = 80, BINS_MOST = 600, CHARTS_MOST = 16, WORDED = 64 };
enum { RUNS_SHOWN = 200, EPOCHS_SHOWN = 500, COMPARED = 25 };

struct report_settings {
    char *output, *title;
};

/* clang-format off: one row each */
#define FIELD(field) .offset = offsetof(struct report_settings, field)
static const struct option_spec report_options[] = {
    {"output", 'o', OPTION_TEXT, FIELD(output), .metavar = "FILE", .reach = OPTION_WRITES,
     .summary = "output file, .html; default: the first RESULT with .html appended; - is standard "
                "output"},
    {"title", 0, OPTION_TEXT, FIELD(title), .fallback = "Storage under training", .metavar = "TEXT",
     .summary = "title of the page"},
    {0},
};
#undef FIELD
/* clang-format on */

enum { REPORT_RESULTS = 256, REPORT_NAME_BYTES = 160 };

struct report_data {
    size_t count;
    struct picture_result results[REPORT_RESULTS]; /* jobs of all documents */
    char names[REPORT_RESULTS][REPORT_NAME_BYTES]; /* labels, made unique */
    json_t *documents;                             /* array: owns the jobs */
    json_t *shuffles;                              /* rows of iobench shuffle --json */
    json_t *others; /* inferences, checkpoints, fabrics: objects of "name" and "document" */
};

static const double alpha = 0.05;

/* ---- loading ---- */

static bool is_taken(const struct report_data *data, const char *name)
{
    for (size_t i = 0; i < data->count; i++)
        if (strcmp(data->names[i], name) == 0)
            return true;
    return false;
}

/* Add a file: a result, a document of another kind, or the rows of iobench shuffle
 * --json. Returns 0 or a negative errno with a reason. */
static int data_load(struct report_data *data, const char *path)
{
    json_t *document = load_file(path);

    if (!document)
        return -EINVAL;
    if (!data->documents) {
        data->documents = json_array();
        data->shuffles = json_array();
        data->others = json_array();
    }
    int code = 0;
    if (json_is_array(document)) {
        if (!load_text(json_array_get(document, 0), "shuffle"))
            code =
                fail(EINVAL, "%s: neither a result nor the output of iobench shuffle --json", path);
        else
            json_array_extend(data->shuffles, document);
    } else if (documents_kind(document)) {
        code = load_check_seal(path, document);
        if (code == 0 && json_array_size(data->others) == REPORT_RESULTS)
            code = fail(EINVAL, "%s: more than %d results", path, REPORT_RESULTS);
        if (code == 0)
            json_array_append_new(
                data->others,
                json_pack("{s:o, s:O}", "name", json_text(file_name(path)), "document", document));
    } else {
        const json_t *jobs = json_object_get(document, "jobs");
        code = load_check(path, document);
        for (size_t i = 0; i < json_array_size(data->documents) && code == 0; i++)
            code = load_refuse_copy(path, document, "an earlier file",
                                    json_array_get(data->documents, i));
        if (code == 0)
            json_array_append(data->documents, document);
        for (size_t i = 0; i < json_array_size(jobs) && code == 0; i++) {
            /* Name a run by its label, else its file, with more only if two names are equal. */
            const json_t *job = json_array_get(jobs, i);
            const char *label = load_text(job, "label"), *file = file_name(path);
            char *name = data->names[data->count];
            if (data->count == REPORT_RESULTS)
                code = fail(EINVAL, "%s: more than %d results", path, REPORT_RESULTS);
            else {
                snprintf(name, REPORT_NAME_BYTES, "%.100s", label && *label ? label : file);
                if (is_taken(data, name) && label && *label)
                    snprintf(name, REPORT_NAME_BYTES, "%.60s (%.60s)", label, file);
                for (unsigned number = 2; is_taken(data, name); number++)
                    snprintf(name, REPORT_NAME_BYTES, "%.60s (%.60s) %u",
                             label && *label ? label : file, file, number);
                data->results[data->count] = (struct picture_result){name, job};
                data->count++;
            }
        }
    }
    json_decref(document);
    return code;
}

/* ---- the data island ---- */

/* Return the members that `keys` names, separated by blanks. */
static json_t *pick(const json_t *object, const char *keys)
{
    json_t *picked = json_object();
    char key[64];

    for (; *keys; keys += strcspn(keys, " "), keys += strspn(keys, " ")) {
        assert(strcspn(keys, " ") < sizeof key);
        snprintf(key, sizeof key, "%.*s", (int)strcspn(keys, " "), keys);
        json_object_set(picked, key, json_object_get(object, key));
    }
    return picked;
}

/* Return what the page shows of a job: no series, and only the first of many runs. */
static json_t *job_of(const json_t *job, size_t *epochs_left)
{
    static const char keys[] =
        "headline entries label valid invalid_reason started command settings dataset engine "
        "place advice";
    static const char figures[] =
        "samples_per_s samples_per_s_low95 samples_per_s_high95 record_bytes_per_s "
        "first_epoch_samples_per_s first_epoch_samples_per_s_low95 "
        "first_epoch_samples_per_s_high95 first_epoch_record_bytes_per_s "
        "later_epochs_samples_per_s later_epochs_samples_per_s_low95 "
        "later_epochs_samples_per_s_high95 later_epochs_record_bytes_per_s interval_coverage "
        "limit limit_sentence shares";
    const json_t *runs = json_object_get(job, "runs"), *whole = json_object_get(job, "summary");
    json_t *object = pick(job, keys), *array = json_array(), *summary = pick(whole, figures),
           *latency = json_deep_copy(json_object_get(whole, "read_latency"));

    /* pictures_latency() draws the quantiles */
    json_object_del(latency, "quantiles");
    json_object_del(json_object_get(latency, "first_epoch"), "quantiles");
    json_object_del(json_object_get(latency, "later_epochs"), "quantiles");
    json_object_del(json_object_get(latency, "evaluation"), "quantiles");
    json_object_set_new(summary, "read_latency", latency);
    json_object_set_new(object, "summary", summary);
    for (size_t i = 0; i < json_array_size(runs) && i < RUNS_SHOWN; i++) {
        const json_t *run = json_array_get(runs, i), *epochs = json_object_get(run, "epochs");
        json_t *one = json_append_new(array, pick(run, "run cold first_epoch_device_percent"));
        json_t *list = json_put_new(one, "epochs", json_array());
        for (size_t k = 0; k < json_array_size(epochs) && *epochs_left; k++, --*epochs_left)
            json_array_append_new(list, pick(json_array_get(epochs, k),
                                             "epoch samples_per_s record_bytes_per_s wall_s "
                                             "first_batch_s au_percent limit"));
    }
    json_object_set_new(object, "runs", array);
    return object;
}

/* Compare each run with the first. */
static json_t *comparisons_of(const struct report_data *data)
{
    struct comparison comparisons[COMPARED];
    const size_t count = data->count - 1 < COMPARED ? data->count - 1 : COMPARED;
    json_t *array = json_array();

    for (size_t i = 0; i < count; i++) {
        const json_t *a = data->results[0].job, *b = data->results[i + 1].job;
        if (compare_groups(&(struct compare_group){&a, 1}, &(struct compare_group){&b, 1},
                           &comparisons[i])) {
            json_decref(array);
            return NULL;
        }
    }
    if (count)
        compare_correct(comparisons, count);
    for (size_t i = 0; i < count; i++) {
        const char *b = data->results[i + 1].name;
        struct text_stream stream;
        char *basis = NULL;
        size_t bytes;
        if (text_stream_open(&stream) == 0) {
            compare_basis(stream.stream, &comparisons[i], alpha);
            text_stream_take(&stream, &basis, &bytes);
        }
        json_t *object = json_append_new(array, json_object());
        json_put_text(object, "a", data->results[0].name);
        json_put_text(object, "b", b);
        json_put_text(object, "basis", basis);
        json_object_set_new(object, "comparison", compare_json(b, &comparisons[i], alpha));
        free(basis);
    }
    return array;
}

struct report_page {
    struct report_data data;
    struct text_stream streams[HTML_SECTIONS], words;
    char *sections[HTML_SECTIONS], *word_text;
    json_t *island, *charts;
};

/* ---- pictures ---- */

/* Add a picture, which is released, to a section. words: its text alternative. Embedded as an image
 * it is inert whatever it contains, and its ids do not clash. chart: index in the data island,
 * drawn by page.js instead of the picture; -1: none. */
static int add_picture(struct report_page *page, enum html_section section, const char *title,
                       const char *words, struct svg *svg, int chart)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    FILE *file = page->streams[section].stream;
    size_t bytes = 0;
    char *text = svg_text(svg, &bytes);

    svg_release(svg);
    if (!text)
        return -ENOMEM;
    fputs("<figure", file);
    if (chart >= 0)
        fprintf(file, " data-chart=\"%d\"", chart);
    fputs("><h3>", file);
    svg_escape(file, title);
    fputs("</h3>", file);
    fputs("<img alt=\"", file);
    svg_escape(file, words);
    fputs("\" src=\"data:image/svg+xml;base64,", file);
    for (size_t i = 0; i < bytes; i += 3) { /* base64 */
        uint32_t group = 0;
        for (size_t k = 0; k < 3; k++)
            group = group << 8 | (i + k < bytes ? (unsigned char)text[i + k] : 0U);
        for (size_t k = 0; k < 4; k++)
            fputc(i + k <= bytes ? digits[group >> (18 - 6 * k) & 63] : '=', file);
    }
    fputs("\">", file);
    fputs("<figcaption>", file);
    svg_escape(file, words);
    fputs("</figcaption></figure>\n", file);
    free(text);
    return 0;
}

static int add_chart(struct report_page *page, const char *title, const struct chart *chart)
{
    const size_t number = json_array_size(page->charts);
    struct svg svg;
    char words[4096] = "";

    for (uint32_t i = 0; i < chart->panel_count; i++) {
        char panel[1024];
        const size_t used = strlen(words);
        snprintf(words + used, sizeof words - used, "%s%s", i ? " " : "",
                 chart_words(chart, &chart->panels[i], panel, sizeof panel));
    }
    json_array_append_new(page->charts, chart_json(chart));
    chart_draw(&svg, "", chart);
    return add_picture(page, HTML_TIME, title, words, &svg, (int)number);
}

/* Chart a job; one of many nodes as their sum. */
static int chart_job(struct report_page *page, const char *name, const struct timeline *timeline,
                     uint32_t bins)
{
    struct chart_source sources[CHART_SOURCES] = {{name, timeline}};
    uint32_t count = timeline->node_count <= CHART_SOURCES ? timeline->node_count : 0;
    struct chart chart;

    for (uint32_t i = 0; i < count; i++) {
        timeline->nodes[i].timeline->start_unix_ns = timeline->start_unix_ns;
        sources[i] = (struct chart_source){timeline->nodes[i].host, timeline->nodes[i].timeline};
    }
    int code = chart_make(&chart, CHART_OF_NODES, sources, count ? count : 1, bins);
    if (code == 0)
        code = add_chart(page, name, &chart);
    chart_release(&chart);
    return code;
}

/* ---- shuffles ---- */

static int draw_shuffles(struct report_page *page)
{
    const json_t *rows = page->data.shuffles;
    const size_t count = json_array_size(rows);
    struct plot_panel *panels = count ? calloc(count, sizeof *panels) : NULL;
    double *values = NULL;
    struct svg svg;
    char words[2048] = "Read throughput of each shuffle:";
    size_t measured = 0;

    for (size_t i = 0; panels && i < count; i++) {
        const json_t *row = json_array_get(rows, i);
        const char *name = load_text(row, "shuffle");
        const double speed = load_number(row, "bytes_per_s");
        const double random =
            load_number(row, "labels_per_batch") / load_number(row, "labels_per_batch_at_random");
        if (name && random >= 0) {
            snprintf(panels[i].title, sizeof panels[i].title, "%s", name);
            panels[i].randomness = fmin(random, 1);
            panels[i].bytes_per_s = isfinite(speed) && speed > 0 ? speed : 0;
            panels[i].on_front = load_true(row, "on_front");
            panels[i].verified = load_number(row, "cold_runs") >= load_number(row, "runs");
        }
        measured += panels[i].bytes_per_s > 0;
        const size_t used = strlen(words);
        snprintf(words + used, sizeof words - used, "%s %s %.0f MiB/s at %.0f%% of a random draw",
                 i ? ";" : "", panels[i].title, panels[i].bytes_per_s / 1048576,
                 100 * panels[i].randomness);
    }
    int code = count && !panels ? fail(ENOMEM, "out of memory") : 0;
    if (measured && code == 0) {
        code = plot_begin(&svg, panels, count, false, &values);
        if (code == 0)
            code = add_picture(page, HTML_SHUFFLE, "Shuffles", words, &svg, -1);
        else
            svg_release(&svg);
        free(values);
    }
    free(panels);
    return code;
}

/* ---- other documents ---- */

static int draw_others(struct report_page *page)
{
    size_t index;
    json_t *other;
    int code = 0;

    json_array_foreach(page->data.others, index, other)
    {
        const json_t *document = json_object_get(other, "document");
        const struct document_kind *kind = documents_kind(document);
        struct svg svg;
        char title[REPORT_NAME_BYTES + 64];

        snprintf(title, sizeof title, "%s: %.*s", kind->title, REPORT_NAME_BYTES,
                 load_text(other, "name"));
        if (kind->draw(&svg, document))
            code = add_picture(page, HTML_OTHERS, title, "The table below has the same figures.",
                               &svg, -1);
        /* Leave out a series that cannot be charted. */
        const json_t *series = json_object_get(document, "series");
        const char *name = load_text(other, "name");
        struct timeline *timeline =
            code == 0 && json_is_object(series) ? report_timeline_load(name, series) : NULL;
        if (timeline)
            code = chart_job(page, name, timeline, BINS_LEAST);
        timeline_destroy(timeline);
        if (code && code != -ENODATA)
            return code;
        code = 0;
        fail_clear();
    }
    return 0;
}

/* ---- the page ---- */

static int fill_page(struct report_page *page)
{
    struct svg svg;
    size_t bytes;
    int code = text_stream_open(&page->words);

    const struct report_data *data = &page->data;
    json_t *island = page->island = json_object();
    json_t *comparisons = data->count ? comparisons_of(data) : json_array();
    page->charts = json_array();
    json_t *array = json_array();
    size_t epochs_left = EPOCHS_SHOWN;
    for (size_t i = 0; i < data->count; i++) {
        json_t *object = json_object();
        json_put_text(object, "name", data->results[i].name);
        json_object_set_new(object, "job", job_of(data->results[i].job, &epochs_left));
        json_array_append_new(array, object);
    }
    json_object_set_new(island, "results", array);
    json_object_set_new(island, "scaling", pictures_scaling_rows(data->results, data->count));
    json_object_set_new(island, "comparisons", comparisons);
    json_t *others_of = json_array();
    size_t index;
    json_t *other;
    json_array_foreach(data->others, index, other)
    {
        const json_t *document = json_object_get(other, "document");
        json_t *object = json_object();
        json_object_set(object, "name", json_object_get(other, "name"));
        json_object_set_new(object, "document", pick(document, documents_kind(document)->picked));
        json_array_append_new(others_of, object);
    }
    json_object_set_new(island, "others", others_of);
    for (int i = 0; i < HTML_SECTIONS && code == 0; i++)
        code = text_stream_open(&page->streams[i]);
    if (code == 0)
        code = comparisons ? json_check() : -ENOMEM;
    if (code == 0) {
        /* Leave out series that cannot be charted: the figures above do not depend on them. */
        struct timeline *timelines[CHARTS_MOST];
        struct chart_source sources[CHARTS_MOST];
        uint32_t count = 0, curves = 0;
        for (size_t i = 0; i < data->count && count < CHARTS_MOST; i++) {
            const json_t *series = json_object_get(data->results[i].job, "series");
            timelines[count] =
                json_is_object(series) ? report_timeline_load(data->results[i].name, series) : NULL;
            if (!timelines[count])
                continue;
            curves += 8 + 4 * timelines[count]->node_count;
            sources[count] = (struct chart_source){data->results[i].name, timelines[count]};
            count++;
        }
        const uint32_t room = VALUES_MOST / (curves + 1);
        const uint32_t bins = room > BINS_MOST ? BINS_MOST : room < BINS_LEAST ? BINS_LEAST : room;
        if (count > 1) { /* the storage throughput of all runs in one panel */
            struct chart chart;
            code = chart_make(&chart, CHART_OF_RUNS, sources, count, bins);
            if (code == 0 && strncmp(chart.panels[0].title, "Storage", 7) == 0) {
                chart.panel_count = 1;
                code = add_chart(page, "All runs", &chart);
            }
            chart_release(&chart);
        }
        for (uint32_t i = 0; i < count && (code == 0 || code == -ENODATA); i++)
            code = chart_job(page, sources[i].name, timelines[i], bins);
        for (uint32_t i = 0; i < count; i++)
            timeline_destroy(timelines[i]);
        if (code == -ENODATA)
            code = 0;
        if (code == 0)
            fail_clear();
    }
    if (code == 0 && json_array_size(json_object_get(page->island, "scaling"))) {
        pictures_scaling(&svg, json_object_get(page->island, "scaling"));
        code = add_picture(page, HTML_SCALING, "Speed-up and efficiency over ranks",
                           "The table below has the same figures.", &svg, -1);
    }
    if (code == 0 && pictures_latency(&svg, page->data.results, page->data.count))
        code = add_picture(page, HTML_LATENCY, "Latency by share of the reads, both logarithmic",
                           "The table below has the percentiles.", &svg, -1);
    if (code == 0)
        code = draw_shuffles(page);
    if (code == 0)
        code = draw_others(page);
    if (code)
        return code;
    FILE *stream = page->words.stream;
    for (size_t i = 0; i < data->count; i++) {
        const json_t *entries = json_object_get(data->results[i].job, "entries");
        fputs("<h3>", stream);
        svg_escape(stream, data->results[i].name);
        fputs("</h3><p>", stream);
        svg_escape(stream, load_word(data->results[i].job, "headline"));
        fputs("</p><dl>", stream);
        for (size_t k = 0; i < WORDED && k < json_array_size(entries); k++) {
            const json_t *entry = json_array_get(entries, k);
            fputs("<dt>", stream);
            svg_escape(stream, load_word(entry, "name"));
            fputs("</dt><dd>", stream);
            svg_escape(stream, load_word(entry, "text"));
            fputs("</dd>", stream);
        }
        fputs("</dl>\n", stream);
    }
    json_object_set(page->island, "charts", page->charts);
    code = text_stream_take(&page->words, &page->word_text, &bytes);
    for (int i = 0; i < HTML_SECTIONS && code == 0; i++)
        code = text_stream_take(&page->streams[i], &page->sections[i], &bytes);
    return code;
}

static int run_report(const struct invocation *invocation)
{
    const struct report_settings *settings = invocation->settings;
    struct report_page *page = calloc(1, sizeof *page);
    char *path = settings->output ? strdup(settings->output)
                                  : file_format_path("%s.html", invocation->operands[0]);
    const char *dot = path ? strrchr(path, '.') : NULL;
    int status;

    command_on_interrupt();
    if (!page || !path) {
        fail(ENOMEM, "out of memory");
        status = command_failed(invocation);
    } else if (strcmp(path, "-") != 0 && (!dot || strcmp(dot, ".html") != 0)) {
        fail(EINVAL, "%s: unknown suffix: expected .html; a browser prints the page as PDF", path);
        status = command_misused(invocation);
    } else {
        int code = 0;
        for (int i = 0; i < invocation->count && code == 0; i++)
            code = data_load(&page->data, invocation->operands[i]);
        if (code == 0)
            code = fill_page(page);
        struct text_stream stream;
        if (code == 0)
            code = text_stream_open(&stream);
        if (code == 0) {
            code = html_write(stream.stream, settings->title, page->word_text,
                              (const char *const *)page->sections, page->island);
            if (code == 0)
                code = outputs_write(path, &stream);
            else
                text_stream_close(&stream);
        }
        status = code ? command_failed(invocation) : COMMAND_OK;
        json_decref(page->data.documents);
        json_decref(page->data.shuffles);
        json_decref(page->data.others);
        json_decref(page->island);
        json_decref(page->charts);
        text_stream_close(&page->words);
        free(page->word_text);
        for (int i = 0; i < HTML_SECTIONS; i++) {
            text_stream_close(&page->streams[i]);
            free(page->sections[i]);
        }
    }
    free(page);
    free(path);
    return status;
}

const struct command command_report = {
    .name = "report",
    .summary = "results as one page for a browser",
    .operands = "RESULT...",
    .operands_minimum = 1,
    .operands_maximum = -1,
    .description =
        "Writes one HTML file that needs no network and no other file: the answer (what was "
        "measured, whether it is valid, the bottleneck, what it feeds, what to do next), charts "
        "over time with phases, scaling, formats and shuffles, latency, stalls, cold caches, "
        "comparison with the first result, and what differs between the runs. RESULT is a result "
        "(--json of run, train, infer, checkpoint or net, or a measurement that sweep keeps) or "
        "the output of iobench shuffle --measure --json. Several results are runs, named by their "
        "labels (--label). The page works in light and dark, on paper and without scripts. Charts "
        "over time can be zoomed if iobench was built with dygraphs.",
    .examples = "iobench report result.json\twrites result.json.html\n"
                "iobench report -o sweep.html FOLDER/cell-*.json shuffles.json\tof iobench sweep "
                "-o FOLDER\n"
                "iobench report -o report.html before.json after.json\tto send or print\n",
    .options = report_options,
    .settings_size = sizeof(struct report_settings),
    .operands_exist = true,
    .operands_reach = {OPTION_WRITES, OPTION_READS},
    .is_confined = true,
    .run = run_report,
};
