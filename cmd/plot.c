/* SPDX-License-Identifier: Apache-2.0
 *
 * iobench plot: charts of the time series in results and profiles.
 */
#include "base/fail.h"
#include "base/file.h"
#include "base/text_stream.h"
#include "cmd/commands.h"
#include "report/gnuplot.h"
#include "report/load.h"
#include "report/chart.h"
#include "report/report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_BYTES_MAX = 256 << 20, NAME_BYTES = 128 };

struct plot_settings {
    char *output, *title;
    uint64_t job;
    bool script;
};

/* clang-format off: one row each */
#define FIELD(field) .offset = offsetof(struct plot_settings, field)
static const struct option_spec plot_options[] = {
    {"output", 'o', OPTION_TEXT, FIELD(output), .metavar = "FILE.svg", .reach = OPTION_WRITES,
     .summary = "output file; default: the first FILE with .svg appended; - is standard output"},
    {"title", 0, OPTION_TEXT, FIELD(title), .fallback = "", .metavar = "TEXT",
     .summary = "title of the chart"},
    {"job", 0, OPTION_COUNT, FIELD(job), .fallback = "1", .minimum = 1, .maximum = 1e6,
     .summary = "number of the job in a result with several, from 1"},
    {"script", 0, OPTION_FLAG, FIELD(script), .fallback = "no",
     .summary = "write the gnuplot script with its data instead of the chart"},
    {0},
};
#undef FIELD
/* clang-format on */

struct page {
    struct chart_node nodes[CHART_NODES];
    uint32_t count;
    char names[CHART_NODES][NAME_BYTES]; /* names of files */
    struct timeline *timelines[CHART_NODES];
    uint32_t files;
    bool is_synthetic; /* a node read synthetic data */
};

/* A result of --json: a training run, or one of its jobs; its host names the node. */
static struct timeline *load_result(const char *path, const char *text, size_t bytes, uint64_t job,
                                    struct page *page)
{
    char *name = page->names[page->files];
    json_t *document = load_any(path, text, bytes);
    const json_t *chosen = document, *jobs = json_object_get(document, "jobs");
    struct timeline *timeline = NULL;

    if (jobs && job > json_array_size(jobs)) {
        fail(EINVAL, "%s: has %zu jobs, no job %llu (--job)", path, json_array_size(jobs),
             (unsigned long long)job);
    } else if (document) {
        if (jobs)
            chosen = json_array_get(jobs, job - 1);
        const char *host = load_text(chosen, "place.host");
        if (host)
            snprintf(name, NAME_BYTES, "%s", host);
        page->is_synthetic |= load_true(chosen, "dataset.synthetic");
        timeline = report_timeline_load(path, json_object_get(chosen, "series"));
    }
    json_decref(document);
    return timeline;
}

/* The first bytes reveal the kind of file. */
static struct timeline *load(const char *path, uint64_t job, struct page *page)
{
    const char *slash = strrchr(path, '/');
    struct timeline *timeline;
    char *text;
    size_t bytes;

    snprintf(page->names[page->files], NAME_BYTES, "%s", slash ? slash + 1 : path);
    if (file_load(path, FILE_BYTES_MAX, &text, &bytes))
        return NULL;
    if (strncmp(text, "time_s,", 7) == 0)
        timeline = report_series_load(path, text);
    else if (strncmp(text, "{\"unix_time_s\"", 14) == 0)
        timeline = report_lines_load(path, text);
    else
        timeline = load_result(path, text, bytes, job, page);
    free(text);
    return timeline;
}

/* Nodes of one job share a clock, whatever their time of day. Nodes that do not fit are drawn as a
 * sum. */
static void add_nodes(struct page *page, const char *name, struct timeline *timeline, uint32_t room)
{
    if (timeline->node_count == 0 || timeline->node_count > room) {
        page->nodes[page->count++] = (struct chart_node){name, timeline};
        return;
    }
    for (uint32_t i = 0; i < timeline->node_count; i++) {
        struct timeline_node *node = &timeline->nodes[i];
        node->timeline->start_unix_ns = timeline->start_unix_ns;
        page->nodes[page->count++] = (struct chart_node){node->host, node->timeline};
    }
}

static int load_all(const struct invocation *invocation, struct page *page)
{
    const struct plot_settings *settings = invocation->settings;
    const int files = invocation->count;

    if (files > CHART_NODES)
        return fail(EINVAL, "at most %d series per chart", CHART_NODES);
    for (int i = 0; i < files; i++) {
        struct timeline *timeline = load(invocation->operands[i], settings->job, page);
        if (!timeline)
            return -EINVAL;
        const uint32_t room = CHART_NODES - page->count - (uint32_t)(files - i - 1);
        if (timeline->node_count > room)
            snprintf(page->names[page->files], NAME_BYTES, "%u nodes", timeline->node_count);
        page->timelines[page->files] = timeline;
        add_nodes(page, page->names[page->files++], timeline, room);
    }
    return 0;
}

static int draw(const struct plot_settings *settings, const struct page *page, const char *path)
{
    struct text_stream stream;
    char *script = NULL;
    size_t bytes = 0;

    if (text_stream_open(&stream))
        return -ENOMEM;
    const char *title =
        !*settings->title && page->is_synthetic ? "synthetic data" : settings->title;
    int code = chart_write(stream.stream, title, page->nodes, page->count);
    int taken = text_stream_take(&stream, &script, &bytes);
    if (code == 0)
        code = taken;
    if (code == 0 && settings->script && strcmp(path, "-") == 0)
        fwrite(script, 1, bytes, stdout);
    else if (code == 0)
        code = settings->script ? report_write_file(path, script, bytes)
                                : gnuplot_draw(script, bytes, path);
    free(script);
    return code;
}

static int run_plot(const struct invocation *invocation)
{
    const struct plot_settings *settings = invocation->settings;
    struct page *page = calloc(1, sizeof *page);
    char *path = settings->output ? strdup(settings->output)
                                  : file_format_path("%s.%s", invocation->operands[0],
                                                     settings->script ? "gnuplot" : "svg");
    command_on_interrupt(NULL);
    int code = page && path ? load_all(invocation, page) : fail(ENOMEM, "out of memory");

    if (code == 0)
        code = draw(settings, page, path);
    for (uint32_t i = 0; page && i < page->files; i++)
        timeline_destroy(page->timelines[i]);
    free(page);
    free(path);
    return code ? command_failed(invocation) : COMMAND_OK;
}

const struct command command_plot = {
    .name = "plot",
    .summary = "chart storage and fabric traffic over time",
    .operands = "FILE...",
    .operands_minimum = 1,
    .operands_maximum = -1,
    .description = "Charts storage reads and fabric traffic (received, sent, and received - sent, "
                   "which is storage traffic over the fabric) over time; indexing, dropping "
                   "caches, shuffles, evaluations and checkpoints are shaded. FILE is a result "
                   "(--json), a series (--series) or a profile (iobench monitor --json). Nodes of "
                   "a job are drawn separately and as a sum; so are several FILEs, aligned by "
                   "their clocks (a series has none and starts with the first). Needs gnuplot.",
    .examples = "iobench plot result.json\twrites result.json.svg\n"
                "iobench plot -o both.svg node0.jsonl node1.jsonl\teach node and the sum\n",
    .options = plot_options,
    .settings_size = sizeof(struct plot_settings),
    .operands_reach = {OPTION_WRITES, OPTION_READS},
    .is_confined = true,
    .run = run_plot,
};
