/* SPDX-License-Identifier: Apache-2.0
 *
 * iobench shuffle: computes how random each shuffle is and which reads it makes, without reading;
 * --measure also reads the data.
 */
#include "cmd/shuffle/shuffle.h"

#include "base/bytes.h"
#include "base/memory.h"
#include "cmd/arguments.h"
#include "cmd/commands.h"
#include "cmd/layers.h"
#include "formats/format.h"
#include "pipeline/settings/job_options.h"
#include "pipeline/loader/loader.h"
#include "shuffle/outline.h"
#include "shuffle/preset.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANK_COUNTS = 64, DIRECT_ALIGNMENT = 4096 };

/* Labels of data sets up to this size are read by default. */
static const uint64_t SMALL_BYTES = UINT64_C(1) << 30;

static const char *const label_choices[] = {"auto", "sorted", "read", NULL};

/* clang-format off: one row each */
#define FIELD(field) .offset = offsetof(struct shuffle_settings, field)
static const struct option_spec shuffle_options[] = {
    {"data", 'd', OPTION_TEXT, FIELD(data), .metavar = "PATH", .reach = OPTION_INDEXES_SET,
     .section = "Data set",
     .summary = "file or folder of a data set; default: a hypothetical set of --records"},
    {"format", 'f', OPTION_TEXT, FIELD(format), .fallback = "auto", .metavar = "NAME[:...]",
     .summary = "format of the data set"},
    {"labels", 0, OPTION_CHOICE, FIELD(labels), .fallback = "auto", .choices = label_choices,
     .summary = "labels of --data: assumed sorted into --classes, or read from every record; "
                "auto reads if paths hold them or the set is below 1 GiB"},
    {"records", 0, OPTION_COUNT, FIELD(records), .fallback = "1281167", .minimum = 1,
     .maximum = 1e11, .summary = "records of the hypothetical set"},
    {"shards", 0, OPTION_COUNT, FIELD(shards), .fallback = "1024", .minimum = 1, .maximum = 4e9,
     .summary = "files of the hypothetical set"},
    {"sample-size", 0, OPTION_SIZE, FIELD(sample_bytes), .fallback = "110KB", .minimum = 1,
     .maximum = 4e9, .summary = "record size of the hypothetical set"},
    {"classes", 0, OPTION_COUNT, FIELD(classes), .fallback = "1000", .minimum = 1, .maximum = 1e9,
     .summary = "labels that records are sorted by, if not read"},

    {"partition", 0, OPTION_TEXT, FIELD(partitions), .fallback = "disjoint", .metavar = "LIST",
     .section = "Shuffles",
     .summary = "comma-separated disjoint, sticky, shards, replicated, elastic; or all"},
    {"ranks", 0, OPTION_TEXT, FIELD(ranks), .fallback = "1", .metavar = "LIST",
     .summary = "comma-separated numbers of ranks"},
    {"remainder", 0, OPTION_CHOICE, FIELD(remainder), .fallback = "uneven",
     .choices = plan_remainder_names, .summary = "how to treat samples that do not divide evenly"},
    {"batch-size", 'B', OPTION_COUNT, FIELD(batch_size), .fallback = "256", .minimum = 1,
     .maximum = 1 << 20, .summary = "samples per batch of one rank"},
    {"epochs", 'e', OPTION_COUNT, FIELD(epochs), .fallback = "2", .minimum = 1, .maximum = 1000,
     .summary = "epochs to compute"},
    {"seed", 0, OPTION_COUNT, FIELD(seed), .fallback = "1",
     .summary = "random seed of the "
                "shuffles"},
    {"bs", 'b', OPTION_SIZE, FIELD(block_bytes), .fallback = "1MiB", .minimum = 512,
     .maximum = 1 << 30, .summary = "coalesce adjacent records into reads of at most this size"},
    JOB_WINDOW_ROW(offsetof(struct shuffle_settings, window)),
    {"as", 0, OPTION_TEXT, FIELD(as), .metavar = "FRAMEWORK",
     .summary = "shuffle, partition, window and reads of a framework: mxnet, horovod-tensorflow or "
                "caffe2"},

    {"measure", 0, OPTION_FLAG, FIELD(measure), .fallback = "no", .section = "Throughput",
     .summary = "also read --data in each order with cold caches"},
    {"reader", 'r', OPTION_TEXT, FIELD(reader), .fallback = "auto", .metavar = "NAME[:...]",
     .summary = "I/O engine"},
    {"direct", 0, OPTION_FLAG, FIELD(direct), .fallback = "no",
     .summary = "bypass the page cache (O_DIRECT)"},
    {"iodepth", 'q', OPTION_COUNT, FIELD(iodepth), .fallback = "32", .minimum = 1, .maximum = 65536,
     .summary = "queue depth: reads in flight"},
    {"memory", 'm', OPTION_SIZE, FIELD(memory_bytes), .fallback = "auto", .zero = "auto",
     .summary = "memory for records in flight and in shuffle buffers; orders that need "
                "more are not read"},
    {"runs", 'n', OPTION_COUNT, FIELD(runs), .fallback = "3", .minimum = 1,
     .maximum = SHUFFLE_RUNS_MOST,
     .summary = "rounds, each reading every order once; reports the median"},
    {"limit-samples", 0, OPTION_COUNT, FIELD(limit_samples), .fallback = "all", .zero = "all",
     .summary = "end each epoch after this many samples, divided evenly among the ranks"},

    {"plot", 0, OPTION_TEXT, FIELD(plot), .metavar = "FILE.svg", .reach = OPTION_WRITES,
     .section = "Output",
     .summary = "chart the labels of sample batches and of neighbours; with --measure also the "
                "Pareto front"},
    {"json", 'j', OPTION_TEXT, FIELD(json), .metavar = "FILE", .reach = OPTION_WRITES,
     .begins = "[{\"shuffle\": \"\", \"partition\"", .implied = "-",
     .summary = "write JSON; without FILE to standard output instead of the table"},
    {"csv", 0, OPTION_TEXT, FIELD(csv), .metavar = "FILE", .reach = OPTION_WRITES,
     .summary = "write one CSV row per order"},
    {0},
};
#undef FIELD
/* clang-format on */

/* ---- options ---- */

/* One row per partition, number of ranks and order. */
static int list_rows(struct survey *survey, const struct invocation *invocation)
{
    const struct shuffle_settings *settings = survey->settings;
    const char *const *orders = (const char *const *)invocation->operands;
    const struct option_list rank_list = {
        .option = "ranks", .parse = option_parse_count, .most = 1 << 20, .count_most = RANK_COUNTS};
    size_t count = (size_t)invocation->count;
    bool wanted[8] = {false};
    uint64_t ranks[RANK_COUNTS];
    char *copy = strdup(settings->partitions), *cursor = copy, *part;
    int code = copy ? 0 : fail(ENOMEM, "out of memory");

    while (code == 0 && (part = strsep(&cursor, ","))) {
        bool found = false;
        for (int i = 0; plan_partition_names[i]; i++)
            if (strcmp(part, plan_partition_names[i]) == 0 || strcmp(part, "all") == 0)
                wanted[i] = found = true;
        if (!found)
            code = fail(EINVAL,
                        "--partition: '%s' is not one of disjoint, sticky, shards, replicated, "
                        "elastic, all",
                        part);
    }
    free(copy);
    const int rank_count = code ? code : option_parse_list(&rank_list, settings->ranks, ranks);
    if (rank_count < 0)
        return rank_count;
    if (count == 0 && settings->as) {
        orders = &survey->preset_order;
        count = 1;
    } else if (count == 0) {
        orders = NULL; /* with their authors' default sizes */
        while (shuffle_registry[count])
            count++;
    }
    survey->rows = memory_array(8 * (size_t)rank_count * count, sizeof *survey->rows);
    if (!survey->rows)
        return -ENOMEM;
    for (int partition = 0; plan_partition_names[partition]; partition++)
        for (int r = 0; wanted[partition] && r < rank_count; r++)
            for (size_t i = 0; i < count; i++)
                survey->rows[survey->row_count++] =
                    (struct shuffle_row){.order = orders ? orders[i] : shuffle_registry[i]->name,
                                         .partition = (enum plan_partition)partition,
                                         .ranks = (uint32_t)ranks[r]};
    if (settings->plot)
        survey->panels = memory_array(survey->row_count, sizeof *survey->panels);
    return settings->plot && !survey->panels ? -ENOMEM : 0;
}

/* ---- the data set ---- */

static void show_share(struct line *line, const char *what, uint64_t done_bytes,
                       uint64_t total_bytes)
{
    char bar[LINE_PART_BYTES], text[sizeof line->last];

    snprintf(text, sizeof text, "%s %s", what, line_bar(bar, done_bytes, total_bytes));
    line_show(line, text);
}

static void show_indexing(void *context, uint64_t done_bytes, uint64_t total_bytes)
{
    show_share(context, "indexing", done_bytes, total_bytes);
}

static void show_labels(void *context, uint64_t done_bytes, uint64_t total_bytes)
{
    show_share(context, "reading labels", done_bytes, total_bytes);
}

/* Return the memory for surveying a shuffle, in addition to the shuffle's own. */
static uint64_t looking_bytes(const struct survey *survey, uint64_t records)
{
    return records * (QUALITY_RECORD_BYTES + survey->settings->epochs);
}

/* Check that there is enough memory, before spending an hour. */
static int check_memory(const struct survey *survey, uint64_t records, uint64_t catalog_bytes)
{
    const struct shuffle_settings *settings = survey->settings;
    const uint64_t need = catalog_bytes + looking_bytes(survey, records);
    const uint64_t free_bytes = memory_available_bytes();
    char needed[32], available[32];

    if (need < free_bytes)
        return 0;
    return fail(
        ENOMEM,
        "surveying %llu records over %llu epochs takes %s plus the memory of each order; only %s "
        "available (memory, control group, ulimit -v): %suse fewer --epochs, or raise the limit",
        (unsigned long long)records, (unsigned long long)settings->epochs,
        bytes_text(need, needed, sizeof needed),
        bytes_text(free_bytes, available, sizeof available),
        settings->data ? "" : "use fewer --records, ");
}

static int open_catalog(struct survey *survey)
{
    const struct shuffle_settings *settings = survey->settings;
    const struct format_scan scan = {.progress = show_indexing, .progress_context = &survey->line};

    survey->classes = (uint32_t)settings->classes;
    if (!settings->data) {
        if (check_memory(survey, settings->records, settings->records * sizeof(struct extent)))
            return -ENOMEM;
        survey->catalog = outline_create(settings->records, (uint32_t)settings->shards,
                                         (uint32_t)settings->sample_bytes, 0);
        return survey->catalog ? 0 : -EINVAL;
    }
    int code = format_choose(settings->format, settings->data, &survey->format);
    if (code == 0)
        code = format_catalog(&survey->format, settings->data, true, &scan, &survey->catalog);
    if (code == 0)
        format_say_remarks(survey->catalog);
    if (code == 0)
        code = check_memory(survey, survey->catalog->record_count, 0);
    /* auto assumes sorted labels if they cannot be read; the heading reports this. */
    const bool is_auto = settings->labels == SHUFFLE_LABELS_AUTO;
    if (code == 0 && settings->labels != SHUFFLE_LABELS_SORTED &&
        !(is_auto && !labels_in_paths(survey->catalog) &&
          survey->catalog->record_bytes_total > SMALL_BYTES)) {
        code = labels_read(&survey->format, survey->catalog, show_labels, &survey->line,
                           &survey->labels);
        if (code == 0)
            survey->classes = survey->labels.classes;
        code = code == -ENODATA && is_auto ? 0 : code;
    }
    line_clear(&survey->line);
    return code;
}

/* ---- one order ---- */

/* Fill the charts with the draws of a plan. */
struct drawing {
    const struct quality_terms *terms;
    struct plot_panel *panel;
};

static void draw_seen(void *context, uint32_t rank, uint64_t epoch, uint64_t draw, uint64_t record)
{
    const struct drawing *drawing = context;

    if (rank == 0 && epoch == 0)
        plot_draw(drawing->panel, draw, quality_label(drawing->terms, record));
}

static int look_at(struct survey *survey, struct shuffle_row *row, struct plot_panel *panel)
{
    const struct shuffle_settings *settings = survey->settings;
    const uint64_t free_bytes = memory_available_bytes(),
                   taken_bytes = looking_bytes(survey, survey->catalog->record_count);
    struct plugin_choice choice;
    char title[160];
    struct quality_terms terms = {
        .shuffle = &choice,
        .scope = {.catalog = survey->catalog,
                  .seed = settings->seed,
                  .ranks = row->ranks,
                  .partition = row->partition,
                  .remainder = (enum plan_remainder)settings->remainder,
                  .batch_size = (uint32_t)settings->batch_size,
                  .memory_bytes = free_bytes > taken_bytes ? free_bytes - taken_bytes : 1},
        .epochs = settings->epochs,
        .labels = survey->labels.of,
        .classes = survey->classes,
        .reads = loader_reads(
            survey->catalog, settings->memory_bytes ? settings->memory_bytes : UINT64_MAX,
            &(struct read_settings){.block_bytes = settings->block_bytes}, settings->window),
    };
    struct drawing drawing = {.terms = &terms, .panel = panel};

    assert(row->ranks > 0);
    if (settings->direct)
        terms.reads.alignment = DIRECT_ALIGNMENT;
    row->reads = terms.reads;
    if (panel) {
        *panel = (struct plot_panel){
            .draws = survey->catalog->record_count /
                     (row->partition == PLAN_REPLICATED ? 1 : row->ranks),
            .batch_size = (uint32_t)settings->batch_size,
            .classes = survey->classes,
        };
        shuffle_title(survey, row, panel->title, sizeof panel->title);
        terms.draw = draw_seen;
        terms.context = &drawing;
    }
    int code = plugin_choose("shuffle", shuffle_registry, row->order, &choice);
    line_show(&survey->line, shuffle_title(survey, row, title, sizeof title));
    if (code == 0)
        code = quality_measure(&terms, &row->quality);
    line_clear(&survey->line);
    plugin_release(&choice);
    if (code != -EINVAL)
        return code;
    snprintf(row->refused, sizeof row->refused, "%s", fail_reason());
    if (panel)
        panel->title[0] = '\0';
    return 0;
}

/* ---- the command ---- */

/* Check all options before any work. */
static int check(struct survey *survey, const struct invocation *invocation)
{
    struct shuffle_settings *settings = invocation->settings;
    int code = 0;

    if (settings->as) { /* the command line overrides the preset that it names */
        code = layers_preset(settings->as, shuffle_options, settings);
        if (code == 0) {
            survey->preset_order = preset_value(preset_find(settings->as), "shuffle");
            code = layers_command_line(invocation, shuffle_options, settings);
        }
    }
    if (code == 0)
        code = list_rows(survey, invocation);
    if (code == 0 && settings->measure && !settings->data)
        code = fail(EINVAL, "--measure needs --data");
    if (code == 0 && settings->plot)
        code = svg_check_path(settings->plot);
    if (code == 0 && settings->data)
        code = arguments_check_data("data", settings->data);
    for (int i = 0; code == 0 && i < invocation->count; i++) {
        struct plugin_choice choice;
        code = plugin_choose("shuffle", shuffle_registry, invocation->operands[i], &choice);
        plugin_release(&choice);
    }
    return code;
}

static int carry_out(struct survey *survey)
{
    const struct shuffle_settings *settings = survey->settings;
    const bool table = !settings->json || strcmp(settings->json, "-") != 0;
    int code = open_catalog(survey);

    if (code == 0 && table)
        shuffle_print_set(survey);
    for (size_t i = 0; code == 0 && i < survey->row_count; i++) {
        struct shuffle_row *row = &survey->rows[i];
        if (table && (i == 0 || row->partition != row[-1].partition || row->ranks != row[-1].ranks))
            shuffle_print_heading(row);
        code = look_at(survey, row, survey->panels ? &survey->panels[i] : NULL);
        if (code == 0 && table)
            shuffle_print_row(row);
        fflush(stdout);
    }
    if (code == 0 && table)
        shuffle_print_legend(survey);
    if (code == 0 && settings->measure)
        code = shuffle_measure(survey);
    if (code == 0 && settings->measure && table)
        shuffle_print_speeds(survey);
    if (code == 0 && settings->plot) {
        struct svg svg;
        double *values;
        for (size_t i = 0; i < survey->row_count; i++) {
            const struct shuffle_row *row = &survey->rows[i];
            struct plot_panel *panel = &survey->panels[i];
            panel->randomness = shuffle_randomness(row);
            panel->bytes_per_s = isnan(panel->randomness) ? 0 : row->speed.bytes.median;
            panel->on_front = row->speed.on_front;
            panel->verified = row->speed.cold_runs == row->speed.runs;
        }
        code = plot_begin(&svg, survey->panels, survey->row_count, true, &values);
        if (code == 0)
            code = svg_save(&svg, settings->plot);
        svg_release(&svg);
        free(values);
    }
    return code == 0 && (settings->json || settings->csv) ? shuffle_write_files(survey) : code;
}

static int shuffle_run(const struct invocation *invocation)
{
    struct survey survey = {.settings = invocation->settings, .line = line_start()};
    int status = COMMAND_OK;

    if (check(&survey, invocation))
        status = command_misused(invocation);
    else if (carry_out(&survey))
        status = command_failed(invocation);
    catalog_destroy(survey.catalog);
    plugin_release(&survey.format);
    free(survey.labels.of);
    free(survey.rows);
    free(survey.panels);
    return status;
}

const struct command command_shuffle = {
    .name = "shuffle",
    .summary = "survey shuffles: randomness, reads, memory; reads no data",
    .operands = "[ORDER...]",
    .operands_maximum = -1,
    .description =
        "Computes the sample orders of a data set, or of a hypothetical one, without reading it: "
        "how many labels and shards a batch holds, how often neighbours share a label, what ranks "
        "keep between epochs, whether each sample comes exactly once, the resulting reads and the "
        "memory needed. Without ORDER, shows all shuffles with their authors' default sizes. "
        "--measure also reads each order from --data with cold caches.",
    .examples = "iobench shuffle\tall shuffles on a set like ImageNet, one rank\n"
                "iobench shuffle epoch buffer:10000 --ranks 1,8 --partition all\ttwo of them\n"
                "iobench shuffle --as mxnet\tthe reads of MXNet\n"
                "iobench shuffle --data /mnt/set --measure --plot front.svg\twhich can I afford?\n",
    .options = shuffle_options,
    .settings_size = sizeof(struct shuffle_settings),
    .is_confined = true,
    .run = shuffle_run,
};
