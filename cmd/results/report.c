/* SPDX-License-Identifier: Apache-2.0
 *
 * iobench report: results as one HTML page.
 */
#include "base/fail.h"
#include "base/file.h"
#include "base/json.h"
#include "base/stats.h"
#include "base/text_stream.h"
#include "cmd/commands.h"
#include "cmd/shuffle/plot.h"
#include "report/chart.h"
#include "report/compare.h"
#include "report/documents.h"
#include "report/html.h"
#include "report/load.h"
#include "report/pictures.h"
#include "report/report.h"
#include "report/svg.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

static int add_document(struct report_data *data, const char *path, json_t *document)
{
    const json_t *jobs = json_object_get(document, "jobs");
    int code = load_check(path, document);

    for (size_t i = 0; i < json_array_size(data->documents) && code == 0; i++)
        code =
            load_refuse_copy(path, document, "an earlier file", json_array_get(data->documents, i));
    if (code)
        return code;
    json_array_append(data->documents, document);
    for (size_t i = 0; i < json_array_size(jobs) && code == 0; i++) {
        /* Name a run by its label, else its file, with more of the path only if two names are
         * equal. */
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
    return code;
}

static int add_shuffles(struct report_data *data, const char *path, json_t *rows)
{
    if (!load_text(json_array_get(rows, 0), "shuffle"))
        return fail(EINVAL, "%s: neither a result nor the output of iobench shuffle --json", path);
    json_array_extend(data->shuffles, rows);
    return 0;
}

static int add_other(struct report_data *data, const char *path, json_t *document)
{
    json_t *other = json_object();
    int code = load_check_seal(path, document);

    if (code == 0 && json_array_size(data->others) == REPORT_RESULTS)
        code = fail(EINVAL, "%s: more than %d results", path, REPORT_RESULTS);
    json_put_text(other, "name", file_name(path));
    json_object_set(other, "document", document);
    if (code == 0)
        json_array_append(data->others, other);
    json_decref(other);
    return code;
}

/* Add a file: a result, a document of a kind of report/documents.h, or the rows of iobench shuffle
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
    int code = json_is_array(document)    ? add_shuffles(data, path, document)
               : documents_kind(document) ? add_other(data, path, document)
                                          : add_document(data, path, document);
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

static json_t *run_of(const json_t *run, size_t *epochs_left)
{
    const json_t *epochs = json_object_get(run, "epochs");
    json_t *object = pick(run, "run cold first_epoch_device_percent"), *array = json_array();

    for (size_t i = 0; i < json_array_size(epochs) && *epochs_left; i++, --*epochs_left)
        json_array_append_new(
            array,
            pick(json_array_get(epochs, i),
                 "epoch samples_per_s record_bytes_per_s wall_s first_batch_s au_percent limit"));
    json_object_set_new(object, "epochs", array);
    return object;
}

/* Return the figures that the page shows; pictures_latency() draws the quantiles. */
static json_t *summary_of(const json_t *job)
{
    static const char keys[] =
        "samples_per_s samples_per_s_low95 samples_per_s_high95 record_bytes_per_s "
        "first_epoch_samples_per_s first_epoch_samples_per_s_low95 "
        "first_epoch_samples_per_s_high95 first_epoch_record_bytes_per_s "
        "later_epochs_samples_per_s later_epochs_samples_per_s_low95 "
        "later_epochs_samples_per_s_high95 later_epochs_record_bytes_per_s interval_coverage "
        "limit limit_sentence shares";
    const json_t *whole = json_object_get(job, "summary");
    json_t *summary = pick(whole, keys),
           *latency = json_deep_copy(json_object_get(whole, "read_latency"));

    json_object_del(latency, "quantiles");
    json_object_del(json_object_get(latency, "first_epoch"), "quantiles");
    json_object_del(json_object_get(latency, "later_epochs"), "quantiles");
    json_object_set_new(summary, "read_latency", latency);
    return summary;
}

/* Return what the page shows of a job: no series, and only the first of many runs. */
static json_t *job_of(const json_t *job, size_t *epochs_left)
{
    static const char keys[] =
        "headline entries label valid invalid_reason started command settings dataset engine "
        "place advice";
    const json_t *runs = json_object_get(job, "runs");
    json_t *object = pick(job, keys), *array = json_array();

    json_object_set_new(object, "summary", summary_of(job));

    for (size_t i = 0; i < json_array_size(runs) && i < RUNS_SHOWN; i++)
        json_array_append_new(array, run_of(json_array_get(runs, i), epochs_left));
    json_object_set_new(object, "runs", array);
    return object;
}

static json_t *comparison_of(const struct report_data *data, size_t b,
                             const struct comparison *comparison)
{
    struct text_stream stream;
    char *basis = NULL;
    size_t bytes;
    json_t *object = json_object();

    if (text_stream_open(&stream) == 0) {
        compare_basis(stream.stream, comparison, alpha);
        text_stream_take(&stream, &basis, &bytes);
    }
    json_put_text(object, "a", data->results[0].name);
    json_put_text(object, "b", data->results[b].name);
    json_put_text(object, "basis", basis);
    json_object_set_new(object, "comparison",
                        compare_json(data->results[b].name, comparison, alpha));
    free(basis);
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
    for (size_t i = 0; i < count; i++)
        json_array_append_new(array, comparison_of(data, i + 1, &comparisons[i]));
    return array;
}

/* Return the island without charts: "results", "scaling", "comparisons", "others". NULL with a
 * reason. */
static json_t *data_island(const struct report_data *data)
{
    json_t *island = json_object();
    json_t *comparisons = data->count ? comparisons_of(data) : json_array();

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
    if (comparisons && json_check() == 0)
        return island;
    json_decref(island);
    return NULL;
}

struct report_page {
    struct report_data data;
    struct text_stream streams[HTML_SECTIONS], words;
    char *sections[HTML_SECTIONS], *word_text;
    json_t *island, *charts;
};

/* ---- pictures ---- */

/* Add a picture, which is released, to a section. */
static int add_picture(struct report_page *page, enum html_section section, const char *title,
                       const char *words, struct svg *svg, int chart)
{
    size_t bytes = 0;
    char *text = svg_text(svg, &bytes);

    if (text)
        html_figure(page->streams[section].stream, title, words, text, bytes, chart);
    svg_release(svg);
    free(text);
    return text ? 0 : -ENOMEM;
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

/* Chart the storage throughput of all runs in one panel. */
static int chart_runs(struct report_page *page, const struct chart_source *sources, uint32_t count,
                      uint32_t bins)
{
    struct chart chart;
    int code = chart_make(&chart, CHART_OF_RUNS, sources, count, bins);

    if (code == 0 && strncmp(chart.panels[0].title, "Storage", 7) == 0) {
        chart.panel_count = 1;
        code = add_chart(page, "All runs", &chart);
    }
    chart_release(&chart);
    return code;
}

/* ---- shuffles ---- */

static void fill_panel(const json_t *row, struct plot_panel *panel)
{
    const char *name = load_text(row, "shuffle");
    const double speed = load_number(row, "bytes_per_s");
    const double random =
        load_number(row, "labels_per_batch") / load_number(row, "labels_per_batch_at_random");

    if (!name || !(random >= 0))
        return;
    snprintf(panel->title, sizeof panel->title, "%s", name);
    panel->randomness = fmin(random, 1);
    panel->bytes_per_s = isfinite(speed) && speed > 0 ? speed : 0;
    panel->on_front = load_true(row, "on_front");
    panel->verified = load_number(row, "cold_runs") >= load_number(row, "runs");
}

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
        fill_panel(json_array_get(rows, i), &panels[i]);
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

/* Leave out a series that cannot be charted. */
static int chart_other(struct report_page *page, const char *name, const json_t *series)
{
    struct timeline *timeline = json_is_object(series) ? report_timeline_load(name, series) : NULL;
    int code = timeline ? chart_job(page, name, timeline, BINS_LEAST) : 0;

    timeline_destroy(timeline);
    if (code && code != -ENODATA)
        return code;
    fail_clear();
    return 0;
}

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
        if (code == 0)
            code = chart_other(page, load_text(other, "name"), json_object_get(document, "series"));
        if (code)
            return code;
    }
    return 0;
}

/* ---- the page ---- */

static int fill_page(struct report_page *page)
{
    struct svg svg;
    size_t bytes;
    int code = text_stream_open(&page->words);

    page->charts = json_array();
    page->island = data_island(&page->data);
    for (int i = 0; i < HTML_SECTIONS && code == 0; i++)
        code = text_stream_open(&page->streams[i]);
    if (code == 0 && !page->island)
        code = -ENOMEM;
    if (code == 0) {
        /* Leave out series that cannot be charted: the figures above do not depend on them. */
        const struct report_data *data = &page->data;
        struct timeline *timelines[CHARTS_MOST];
        struct chart_source sources[CHARTS_MOST];
        uint32_t count = 0, curves = 0;
        code = 0;
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
        if (count > 1)
            code = chart_runs(page, sources, count, bins);
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
    const struct report_data *data = &page->data;
    for (size_t i = 0; i < data->count; i++) {
        const json_t *entries = json_object_get(data->results[i].job, "entries");
        const char *headline = load_text(data->results[i].job, "headline");
        fputs("<h3>", stream);
        html_text(stream, data->results[i].name);
        fputs("</h3><p>", stream);
        html_text(stream, headline ? headline : "");
        fputs("</p><dl>", stream);
        for (size_t k = 0; i < WORDED && k < json_array_size(entries); k++) {
            const char *name = load_text(json_array_get(entries, k), "name");
            const char *text = load_text(json_array_get(entries, k), "text");
            fputs("<dt>", stream);
            html_text(stream, name ? name : "");
            fputs("</dt><dd>", stream);
            html_text(stream, text ? text : "");
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

static int write_page(const struct report_page *page, const char *title, const char *path)
{
    struct text_stream stream;
    char *text = NULL;
    size_t bytes = 0;

    if (text_stream_open(&stream))
        return -ENOMEM;
    int code = html_write(stream.stream, title, page->word_text,
                          (const char *const *)page->sections, page->island);
    const int taken = text_stream_take(&stream, &text, &bytes);
    code = code ? code : taken;
    if (code == 0)
        code = report_write_file(strcmp(path, "-") == 0 ? "/dev/stdout" : path, text, bytes);
    free(text);
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
        if (code == 0)
            code = write_page(page, settings->title, path);
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
