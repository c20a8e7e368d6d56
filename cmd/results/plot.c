/* SPDX-License-Identifier: Apache-2.0
 *
 * iobench plot: charts of the time series in results and profiles.
 */
#include "base/fail.h"
#include "base/file.h"
#include "cmd/commands.h"
#include "report/chart.h"
#include "report/report.h"
#include "report/svg.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 128, MARKS_BYTES = 512 };

struct plot_settings {
    char *output, *title;
    uint64_t job;
};

/* clang-format off: one row each */
#define FIELD(field) .offset = offsetof(struct plot_settings, field)
static const struct option_spec plot_options[] = {
    {"output", 'o', OPTION_TEXT, FIELD(output), .metavar = "FILE", .reach = OPTION_WRITES,
     .summary = "output file, .svg, .png or .pdf; default: the first FILE with .svg appended; - is "
                "standard output (SVG)"},
    {"title", 0, OPTION_TEXT, FIELD(title), .fallback = "", .metavar = "TEXT",
     .summary = "title of the chart"},
    {"job", 0, OPTION_COUNT, FIELD(job), .fallback = "1", .minimum = 1, .maximum = 1e6,
     .summary = "number of the job in a result with several, from 1"},
    {0},
};
#undef FIELD
/* clang-format on */

struct page {
    struct chart_source sources[CHART_SOURCES];
    uint32_t count;
    char names[CHART_SOURCES][NAME_BYTES]; /* of files, or of the runs in them */
    struct timeline *timelines[CHART_SOURCES];
    uint32_t files, results; /* results: files of --json, which are runs, not nodes */
    bool is_only;            /* one file */
    char marks[MARKS_BYTES]; /* why not to trust them, for the title; "": no reason */
};

/* Add a mark once; name: of the run, if there are several. */
static void add_mark(struct page *page, const char *name, const char *mark)
{
    char text[NAME_BYTES + 32];
    const size_t used = strlen(page->marks);

    snprintf(text, sizeof text, "%s%s%s", name, *name ? ": " : "", mark);
    if (!strstr(page->marks, text))
        snprintf(page->marks + used, sizeof page->marks - used, "%s%s", used ? "; " : "", text);
}

/* Load a series, a profile, or a result of --json: a training run, or one of its jobs, whose label
 * names the run. The first bytes reveal the kind of file. */
static struct timeline *load(const char *path, uint64_t job, struct page *page)
{
    char *name = page->names[page->files], *text;
    struct timeline *timeline = NULL;
    size_t bytes;

    snprintf(name, NAME_BYTES, "%s", file_name(path));
    if (file_load(path, LOAD_BYTES_MAX, &text, &bytes))
        return NULL;
    if (strncmp(text, "time_s,", 7) == 0)
        timeline = report_series_load(path, text);
    else if (strncmp(text, "{\"unix_time_s\"", 14) == 0)
        timeline = report_lines_load(path, text);
    else { /* a job that was cut out of a document has no version */
        json_t *document = load_any(path, text, bytes);
        const json_t *chosen = document, *jobs = json_object_get(document, "jobs");
        if (json_object_get(document, "schema_version") && load_check_version(path, document)) {
            chosen = NULL;
        } else if (jobs && job > json_array_size(jobs)) {
            fail(EINVAL, "%s: has %zu jobs, no job %llu (--job)", path, json_array_size(jobs),
                 (unsigned long long)job);
        } else if (document) {
            if (jobs)
                chosen = json_array_get(jobs, job - 1);
            const char *label = load_text(chosen, "label");
            if (label && *label)
                snprintf(name, NAME_BYTES, "%s", label);
            page->results++;
            /* What the table of a result says of all its figures. */
            if (load_true(chosen, "dataset.synthetic"))
                add_mark(page, "", "synthetic data");
            const bool is_invalid = json_is_false(json_object_get(chosen, "valid"));
            if (is_invalid || load_degraded(chosen))
                add_mark(page, page->is_only ? "" : name, is_invalid ? "INVALID" : "DEGRADED");
            timeline = report_timeline_load(path, json_object_get(chosen, "series"));
        }
        json_decref(document);
    }
    free(text);
    return timeline;
}

static int run_plot(const struct invocation *invocation)
{
    const struct plot_settings *settings = invocation->settings;
    struct page *page = calloc(1, sizeof *page);
    char *path = settings->output ? strdup(settings->output)
                                  : file_format_path("%s.svg", invocation->operands[0]);
    int status;

    command_on_interrupt();
    if (!page || !path) {
        fail(ENOMEM, "out of memory");
        status = command_failed(invocation);
    } else if (svg_check_path(path)) {
        status = command_misused(invocation);
    } else {
        const uint32_t files = (uint32_t)invocation->count;
        int code =
            files > CHART_SOURCES ? fail(EINVAL, "at most %d series per chart", CHART_SOURCES) : 0;
        page->is_only = files == 1;
        for (uint32_t i = 0; i < files && code == 0; i++) {
            page->timelines[i] = load(invocation->operands[i], settings->job, page);
            code = page->timelines[i] ? 0 : -EINVAL;
            page->files += code == 0;
        }
        if (code == 0 && page->results && page->results < files)
            code =
                fail(EINVAL, "results are runs, profiles and series are nodes: chart them apart");
        for (uint32_t i = 0; i < files && code == 0; i++) {
            const uint32_t nodes = page->timelines[i]->node_count;
            uint32_t room = CHART_SOURCES - page->count - (files - i - 1);
            if (page->results > 1)
                room = 0;
            if (nodes > room && !page->results)
                snprintf(page->names[i], NAME_BYTES, "%u nodes", nodes);
            /* Nodes of one job share a clock, whatever their time of day. Nodes that do not fit are
             * drawn as a sum. */
            if (nodes == 0 || nodes > room)
                page->sources[page->count++] =
                    (struct chart_source){page->names[i], page->timelines[i]};
            for (uint32_t k = 0; k < nodes && nodes <= room; k++) {
                struct timeline_node *node = &page->timelines[i]->nodes[k];
                node->timeline->start_unix_ns = page->timelines[i]->start_unix_ns;
                page->sources[page->count++] = (struct chart_source){node->host, node->timeline};
            }
        }
        struct chart chart = {0};
        char *title = file_format_path("%s%s%s", settings->title,
                                       *settings->title && *page->marks ? "; " : "", page->marks);
        if (code == 0)
            code = title ? chart_make(&chart, page->results > 1 ? CHART_OF_RUNS : CHART_OF_NODES,
                                      page->sources, page->count, CHART_BINS)
                         : -ENOMEM;
        if (code == 0) {
            struct svg svg;
            chart_draw(&svg, title, &chart);
            code = svg_save(&svg, path);
            svg_release(&svg);
        }
        chart_release(&chart);
        free(title);
        for (uint32_t i = 0; i < page->files; i++)
            timeline_destroy(page->timelines[i]);
        status = code ? command_failed(invocation) : COMMAND_OK;
    }
    free(page);
    free(path);
    return status;
}

const struct command command_plot = {
    .name = "plot",
    .summary = "chart storage, fabric, CPU and memory over time",
    .operands = "FILE...",
    .operands_minimum = 1,
    .operands_maximum = -1,
    .description = "Charts storage reads, fabric traffic (received, sent, and received - sent, "
                   "which is storage traffic over the fabric), CPU with iowait, the page cache and "
                   "GPUs over time, as far as there is data; indexing, dropping caches, shuffles, "
                   "evaluations and checkpoints are shaded. FILE is a result (--json), a series "
                   "(--series) or a profile (iobench monitor --json). Nodes of a job are drawn "
                   "separately and as a sum; so are several series or profiles, aligned by their "
                   "clocks (a series has none and starts with the first). Several results are "
                   "runs, named by their labels, and each starts at second 0. PNG and PDF need "
                   "rsvg-convert.",
    .examples = "iobench plot result.json\twrites result.json.svg\n"
                "iobench plot -o both.svg node0.jsonl node1.jsonl\teach node and the sum\n"
                "iobench plot -o runs.png before.json after.json\ttwo runs\n",
    .options = plot_options,
    .settings_size = sizeof(struct plot_settings),
    .operands_exist = true,
    .operands_reach = {OPTION_WRITES, OPTION_READS},
    .is_confined = true,
    .run = run_plot,
};
