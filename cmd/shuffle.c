/* SPDX-License-Identifier: Apache-2.0
 *
 * iobench shuffle: how random each order is and what it asks of storage, without reading; with
 * --measure also how fast the storage gives it.
 */
#include "base/bytes.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/stats.h"
#include "cmd/arguments.h"
#include "cmd/commands.h"
#include "cmd/json_file.h"
#include "cmd/line.h"
#include "cmd/shuffle_plot.h"
#include "formats/format.h"
#include "pipeline/run.h"
#include "report/words.h"
#include "shuffle/outline.h"
#include "shuffle/quality.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct shuffle_settings {
    char *data, *format;
    uint64_t records, shards, sample_bytes, classes;
    char *partitions, *ranks;
    int remainder;
    uint64_t batch_size, epochs, seed, block_bytes;
    bool measure;
    char *reader;
    uint64_t iodepth, runs, limit_samples;
    char *plot, *json;
};

/* clang-format off: a row each */
#define FIELD(field) .offset = offsetof(struct shuffle_settings, field)
static const struct option_spec shuffle_options[] = {
    {"data", 'd', OPTION_TEXT, FIELD(data), .metavar = "PATH", .section = "Which data set",
     .summary = "file or folder of a data set; without it one of so many records is imagined"},
    {"format", 'f', OPTION_TEXT, FIELD(format), .fallback = "auto", .metavar = "NAME[:...]",
     .summary = "how samples lie in its files"},
    {"records", 0, OPTION_COUNT, FIELD(records), .fallback = "1281167", .minimum = 1,
     .maximum = 1e11, .summary = "records of the imagined set"},
    {"shards", 0, OPTION_COUNT, FIELD(shards), .fallback = "1024", .minimum = 1, .maximum = 4e9,
     .summary = "its files"},
    {"sample-size", 0, OPTION_SIZE, FIELD(sample_bytes), .fallback = "110KB", .minimum = 1,
     .maximum = 4e9, .summary = "bytes of a record"},
    {"classes", 0, OPTION_COUNT, FIELD(classes), .fallback = "1000", .minimum = 1, .maximum = 1e9,
     .summary = "labels; records are taken to be sorted by label"},

    {"partition", 0, OPTION_TEXT, FIELD(partitions), .fallback = "disjoint", .metavar = "LIST",
     .section = "Which orders",
     .summary = "disjoint, sticky, shards, replicated, elastic (several with commas), or all"},
    {"ranks", 0, OPTION_TEXT, FIELD(ranks), .fallback = "1", .metavar = "LIST",
     .summary = "numbers of ranks, with commas"},
    {"remainder", 0, OPTION_CHOICE, FIELD(remainder), .fallback = "uneven",
     .choices = plan_remainder_names,
     .summary = "what is done when samples cannot be dealt evenly"},
    {"batch-size", 'B', OPTION_COUNT, FIELD(batch_size), .fallback = "256", .minimum = 1,
     .maximum = 1 << 20, .summary = "samples in a batch of one rank"},
    {"epochs", 'e', OPTION_COUNT, FIELD(epochs), .fallback = "2", .minimum = 1, .maximum = 1000,
     .summary = "epochs that are looked at"},
    {"seed", 0, OPTION_COUNT, FIELD(seed), .fallback = "1", .summary = "of the orders"},
    {"bs", 'b', OPTION_SIZE, FIELD(block_bytes), .fallback = "1MiB", .minimum = 512,
     .maximum = 1 << 30, .summary = "neighbouring records are read together up to this size"},

    {"measure", 0, OPTION_FLAG, FIELD(measure), .fallback = "no", .section = "How fast they are",
     .summary = "also read --data in each order, with cold caches"},
    {"reader", 'r', OPTION_TEXT, FIELD(reader), .metavar = "NAME[:...]",
     .summary = "I/O engine; without it that of iobench run"},
    {"iodepth", 'q', OPTION_COUNT, FIELD(iodepth), .fallback = "32", .minimum = 1, .maximum = 65536,
     .summary = "reads kept in flight"},
    {"runs", 'n', OPTION_COUNT, FIELD(runs), .fallback = "1", .minimum = 1, .maximum = 100,
     .summary = "repetitions; the median counts"},
    {"limit-samples", 0, OPTION_COUNT, FIELD(limit_samples), .fallback = "all", .zero = "all",
     .summary = "end each epoch after so many samples"},

    {"plot", 0, OPTION_TEXT, FIELD(plot), .metavar = "FILE.svg", .section = "What comes out",
     .summary = "draw labels of sample batches and of neighbours; with --measure also the front"},
    {"json", 'j', OPTION_TEXT, FIELD(json), .metavar = "FILE", .implied = "-",
     .summary = "write JSON instead; without FILE to the standard output"},
    {0},
};
#undef FIELD
/* clang-format on */

/* With the sizes that their authors take. */
static const char *const usual_orders[] = {
    "epoch",      "none", "block",     "buffer", "mxnet", "mxnet-chunk", "tfdata", "dali",
    "webdataset", "ffcv", "corgipile", "py1s",   "py2s",  "py1br",       "py1e",   "naive",
};

struct survey {
    const struct invocation *invocation;
    const struct shuffle_settings *settings;
    struct plugin_choice format; /* of --data */
    struct catalog *catalog;
    bool partitions[5];
    uint32_t ranks[64];
    size_t rank_count;
    struct line line;
    json_t *rows; /* NULL: a table */
    struct plot_panel *panels;
    size_t panel_count, panel_capacity;
};

/* What is looked at: one line of the table. */
struct row {
    const char *shuffle;
    enum plan_partition partition;
    uint32_t ranks;
    bool refused;
    char reason[FAIL_REASON_BYTES];
    struct quality quality;
    double bytes_per_s, samples_per_s; /* NAN: not measured */
    bool cold;
};

/* ---- what is asked ---- */

static int parse_partitions(struct survey *survey)
{
    char *copy = strdup(survey->settings->partitions), *cursor = copy, *part;
    int code = copy ? 0 : fail(ENOMEM, "out of memory");

    while (code == 0 && (part = strsep(&cursor, ","))) {
        bool found = false;
        for (int i = 0; plan_partition_names[i]; i++)
            if (strcmp(part, plan_partition_names[i]) == 0 || strcmp(part, "all") == 0)
                survey->partitions[i] = found = true;
        if (!found)
            code = fail(EINVAL,
                        "--partition: '%s' is none of disjoint, sticky, shards, "
                        "replicated, elastic, all",
                        part);
    }
    free(copy);
    return code;
}

static int parse_ranks(struct survey *survey)
{
    char *copy = strdup(survey->settings->ranks), *cursor = copy, *part;
    int code = copy ? 0 : fail(ENOMEM, "out of memory");

    while (code == 0 && (part = strsep(&cursor, ","))) {
        uint64_t count;
        code = option_parse_size(part, &count);
        if (code == 0 && (count == 0 || count > 1 << 20))
            code = fail(EINVAL, "--ranks: '%s' is not within 1 .. %d", part, 1 << 20);
        if (code == 0 && survey->rank_count == sizeof survey->ranks / sizeof *survey->ranks)
            code = fail(EINVAL, "--ranks: at most 64 numbers");
        if (code == 0)
            survey->ranks[survey->rank_count++] = (uint32_t)count;
    }
    free(copy);
    return code;
}

static void show_indexing(void *context, uint64_t done_bytes, uint64_t total_bytes)
{
    struct line *line = context;
    char bar[LINE_PART_BYTES], text[sizeof line->last];

    snprintf(text, sizeof text, "indexing %s", line_bar(bar, done_bytes, total_bytes));
    line_show(line, text);
}

static int open_catalog(struct survey *survey)
{
    const struct shuffle_settings *settings = survey->settings;

    if (!settings->data) {
        survey->catalog = outline_create(settings->records, (uint32_t)settings->shards,
                                         (uint32_t)settings->sample_bytes, 0);
        return survey->catalog ? 0 : -EINVAL;
    }
    const struct format_scan scan = {.progress = show_indexing, .progress_context = &survey->line};
    int code = arguments_check_data(settings->data);
    if (code == 0)
        code = format_choose(settings->format, settings->data, &survey->format);
    if (code == 0)
        code = format_catalog(&survey->format, settings->data, true, &scan, &survey->catalog);
    line_clear(&survey->line);
    return code;
}

/* ---- one order ---- */

static void draw_seen(void *context, uint32_t rank, uint64_t epoch, uint64_t draw, uint64_t record)
{
    const struct survey *survey = context;
    const struct catalog *catalog = survey->catalog;
    struct plot_panel *panel = &survey->panels[survey->panel_count];

    if (rank == 0 && epoch == 0)
        plot_draw(panel, draw,
                  (uint32_t)((unsigned __int128)record * panel->classes / catalog->record_count));
}

static int add_panel(struct survey *survey, const struct row *row)
{
    if (survey->panel_count == survey->panel_capacity) {
        size_t larger = survey->panel_capacity * 2 + 16;
        struct plot_panel *grown = realloc(survey->panels, larger * sizeof *grown);
        if (!grown)
            return fail(ENOMEM, "out of memory");
        survey->panels = grown;
        survey->panel_capacity = larger;
    }
    struct plot_panel *panel = &survey->panels[survey->panel_count];
    *panel = (struct plot_panel){
        .draws =
            survey->catalog->record_count / (row->partition == PLAN_REPLICATED ? 1 : row->ranks),
        .batch_size = (uint32_t)survey->settings->batch_size,
        .classes = (uint32_t)survey->settings->classes,
    };
    snprintf(panel->title, sizeof panel->title, "%s, %s, %u rank%s", row->shuffle,
             plan_partition_names[row->partition], row->ranks, row->ranks == 1 ? "" : "s");
    return 0;
}

/* Read the data set in this order, as one of the ranks. */
static int measure(const struct survey *survey, struct row *row)
{
    const struct shuffle_settings *settings = survey->settings;
    double rates[100], samples[100];
    struct result result;
    struct job job = {0};
    int code = option_defaults(job_options, &job);

    const char *texts[][2] = {{"data", settings->data},     {"format", settings->format},
                              {"shuffle", row->shuffle},    {"decode", "none"},
                              {"reader", settings->reader}, {"calibrate", "no"},
                              {"drop-caches", "yes"},       {"trainer", "none"}};
    for (size_t i = 0; code == 0 && i < sizeof texts / sizeof *texts; i++)
        if (texts[i][1])
            code = option_set(job_options, &job, texts[i][0], texts[i][1], texts[i][0]);
    job.partition = (int)row->partition;
    job.remainder = settings->remainder;
    job.ranks = row->ranks;
    job.seed = settings->seed;
    job.batch_size = settings->batch_size;
    job.block_bytes = settings->block_bytes;
    job.iodepth = settings->iodepth;
    job.runs = settings->runs;
    job.limit_samples = settings->limit_samples;
    if (code == 0) {
        code = run_job(&job, NULL, &result);
        row->cold = code == 0 && result.run_count > 0;
        for (uint32_t i = 0; code == 0 && i < result.run_count; i++) {
            rates[i] = result_run_bytes_per_s(&result.runs[i]);
            samples[i] = result_run_samples_per_s(&result.runs[i]);
            row->cold = row->cold && result.runs[i].cold.state == RESULT_CACHE_COLD;
        }
        if (code == 0 && result.run_count) {
            row->bytes_per_s = stats_summarise(rates, result.run_count).median;
            row->samples_per_s = stats_summarise(samples, result.run_count).median;
        }
        result_destroy(&result);
    }
    option_release(job_options, &job);
    return code;
}

static int look_at(struct survey *survey, struct row *row)
{
    const struct shuffle_settings *settings = survey->settings;
    struct plugin_choice choice;
    char text[sizeof survey->line.last];
    int code = plugin_choose("shuffle", shuffle_registry, row->shuffle, &choice);

    if (code == 0 && settings->plot)
        code = add_panel(survey, row);
    if (code == 0) {
        const struct quality_terms terms = {
            .shuffle = &choice,
            .scope = {.catalog = survey->catalog,
                      .seed = settings->seed,
                      .ranks = row->ranks,
                      .partition = row->partition,
                      .remainder = (enum plan_remainder)settings->remainder,
                      .batch_size = (uint32_t)settings->batch_size,
                      .memory_bytes = memory_available_bytes()},
            .epochs = settings->epochs,
            .classes = (uint32_t)settings->classes,
            .ahead = 512,
            .block_bytes = settings->block_bytes,
            .alignment = 4096,
            .draw = settings->plot ? draw_seen : NULL,
            .context = survey,
        };
        snprintf(text, sizeof text, "%s, %s, %u ranks", row->shuffle,
                 plan_partition_names[row->partition], row->ranks);
        line_show(&survey->line, text);
        code = quality_measure(&terms, &row->quality);
        line_clear(&survey->line);
    }
    plugin_release(&choice);
    row->refused = code == -EINVAL;
    if (row->refused) {
        snprintf(row->reason, sizeof row->reason, "%s", fail_reason());
        return 0;
    }
    if (code == 0 && settings->measure)
        code = measure(survey, row);
    if (code == 0 && settings->plot) {
        struct plot_panel *panel = &survey->panels[survey->panel_count++];
        panel->randomness = row->quality.labels_per_batch / row->quality.labels_at_random;
        panel->bytes_per_s = settings->measure ? row->bytes_per_s : 0;
    }
    return code;
}

/* ---- what comes out ---- */

static void print_heading(const struct survey *survey, enum plan_partition partition,
                          uint32_t ranks)
{
    printf("\npartition %s, %u rank%s\n", plan_partition_names[partition], ranks,
           ranks == 1 ? "" : "s");
    printf("%-21s%7s%7s%7s%5s%8s%10s%9s%5s%11s%s\n", "", "labels", "shards", "same", "kept",
           "missing", "again", "KiB/read", "amp.", "buffer",
           survey->settings->measure ? "     MiB/s" : "");
}

static const char *number(char *text, double value, const char *format)
{
    if (isnan(value))
        return "-";
    snprintf(text, 24, format, value);
    return text;
}

static void print_row(const struct survey *survey, const struct row *row)
{
    const struct quality *q = &row->quality;
    char text[8][24], buffer[32], missing[WORDS_BYTES], again[WORDS_BYTES];

    if (row->refused) {
        printf("%-21s refused: %s\n", row->shuffle, row->reason);
        return;
    }
    printf("%-21s%7s%7s%7s%5s%8s%10s%9s%5s%11s", row->shuffle,
           number(text[0], q->labels_per_batch, "%.1f"),
           number(text[1], q->shards_per_batch, "%.1f"), number(text[2], q->same_label, "%.4f"),
           number(text[3], q->retention, "%.2f"), words_count(q->missing, missing),
           words_count(q->repeated, again), number(text[4], q->bytes_per_read / 1024, "%.1f"),
           number(text[5], q->amplification, "%.2f"),
           bytes_text(q->buffer_bytes, buffer, sizeof buffer));
    if (survey->settings->measure)
        printf("%10s%s", number(text[6], row->bytes_per_s / (1 << 20), "%.1f"),
               row->cold ? "" : " warm?");
    putchar('\n');
}

static json_t *real_or_null(double value)
{
    return isnan(value) ? json_null() : json_real(value);
}

static json_t *row_json(const struct survey *survey, const struct row *row)
{
    const struct quality *q = &row->quality;
    json_t *object =
        json_pack("{s:o, s:s, s:I}", "shuffle", json_file_text(row->shuffle), "partition",
                  plan_partition_names[row->partition], "ranks", (json_int_t)row->ranks);
    const struct {
        const char *key;
        double value;
    } reals[] = {
        {"labels_per_batch", q->labels_per_batch},
        {"labels_per_batch_at_random", q->labels_at_random},
        {"shards_per_batch", q->shards_per_batch},
        {"shards_per_batch_at_random", q->shards_at_random},
        {"same_label_probability", q->same_label},
        {"same_label_probability_at_random", q->same_label_at_random},
        {"rank_retention", q->retention},
        {"read_amplification", q->amplification},
        {"bytes_per_read", q->bytes_per_read},
        {"distance_between_reads_bytes", q->distance_bytes},
    };
    const struct {
        const char *key;
        uint64_t value;
    } counts[] = {
        {"records_missing", q->missing},
        {"draws_repeated", q->repeated},
        {"draws", q->draws},
        {"draws_of_poorest_rank", q->draws_least},
        {"draws_of_richest_rank", q->draws_most},
        {"buffer_bytes", q->buffer_bytes},
        {"slots", q->slots},
        {"state_bytes", q->state_bytes},
        {"order_ns", q->begin_ns},
    };

    if (row->refused) {
        json_object_set_new(object, "refused", json_file_text(row->reason));
        return object;
    }
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++)
        json_object_set_new(object, reals[i].key, real_or_null(reals[i].value));
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        json_object_set_new(object, counts[i].key, json_integer((json_int_t)counts[i].value));
    if (survey->settings->measure) {
        json_object_set_new(object, "bytes_per_s", real_or_null(row->bytes_per_s));
        json_object_set_new(object, "samples_per_s", real_or_null(row->samples_per_s));
        json_object_set_new(object, "cold", json_boolean(row->cold));
    }
    return object;
}

static void print_set(const struct survey *survey)
{
    const struct catalog *catalog = survey->catalog;
    char records[WORDS_BYTES], shards[WORDS_BYTES], bytes[32];

    printf("%s records in %s shards, %s; %llu classes, taken as sorted; batches of %llu\n",
           words_count(catalog->record_count, records), words_count(catalog->shard_count, shards),
           bytes_text(catalog->record_bytes_total, bytes, sizeof bytes),
           (unsigned long long)survey->settings->classes,
           (unsigned long long)survey->settings->batch_size);
}

static void print_legend(const struct row *row)
{
    const struct quality *q = &row->quality;

    if (row->refused)
        return;
    printf("\nA draw at random: %.1f labels and %.1f shards in a batch, the next label the same "
           "with %.4f.\nkept: share of a rank's samples that it also had in the epoch before; "
           "missing, again: records\nnever drawn and drawn twice in an epoch over all ranks; "
           "amp.: bytes read over bytes used;\nbuffer: the most that one rank's order holds at "
           "once.\n",
           q->labels_at_random, q->shards_at_random, q->same_label_at_random);
}

static int look_at_all(struct survey *survey)
{
    char *const *orders = survey->invocation->operands;
    size_t count = (size_t)survey->invocation->count;
    struct row row = {0}, last = {.refused = true};
    int code = 0;

    if (count == 0) {
        orders = (char *const *)(uintptr_t)usual_orders;
        count = sizeof usual_orders / sizeof *usual_orders;
    }
    if (!survey->rows)
        print_set(survey);
    for (int partition = 0; plan_partition_names[partition]; partition++) {
        if (!survey->partitions[partition])
            continue;
        for (size_t r = 0; r < survey->rank_count; r++) {
            if (!survey->rows)
                print_heading(survey, (enum plan_partition)partition, survey->ranks[r]);
            for (size_t i = 0; i < count; i++) {
                row = (struct row){.shuffle = orders[i],
                                   .partition = (enum plan_partition)partition,
                                   .ranks = survey->ranks[r],
                                   .bytes_per_s = NAN,
                                   .samples_per_s = NAN};
                code = look_at(survey, &row);
                if (code)
                    return code;
                if (survey->rows)
                    json_array_append_new(survey->rows, row_json(survey, &row));
                else
                    print_row(survey, &row);
                fflush(stdout);
                last = row.refused ? last : row;
            }
        }
    }
    if (!survey->rows)
        print_legend(&last);
    return 0;
}

/* All that can be asked wrongly, before any work. */
static int check(struct survey *survey)
{
    const struct invocation *invocation = survey->invocation;
    int code = parse_partitions(survey);

    if (code == 0)
        code = parse_ranks(survey);
    if (code == 0 && survey->settings->measure && !survey->settings->data)
        code = fail(EINVAL, "--measure reads a data set: name it with --data");
    for (int i = 0; code == 0 && i < invocation->count; i++) {
        struct plugin_choice choice;
        code = plugin_choose("shuffle", shuffle_registry, invocation->operands[i], &choice);
        plugin_release(&choice);
    }
    return code;
}

static int shuffle_run(const struct invocation *invocation)
{
    const struct shuffle_settings *settings = invocation->settings;
    struct survey survey = {.invocation = invocation, .settings = settings, .line = line_start()};

    if (check(&survey))
        return command_misused(invocation);
    survey.rows = settings->json ? json_array() : NULL;
    int code = open_catalog(&survey);
    if (code == 0)
        code = look_at_all(&survey);
    if (code == 0 && settings->plot)
        code = plot_write(settings->plot, survey.panels, survey.panel_count);
    if (code == 0 && survey.rows)
        code = json_file_write(settings->json, json_incref(survey.rows));
    json_decref(survey.rows);
    catalog_destroy(survey.catalog);
    plugin_release(&survey.format);
    free(survey.panels);
    return code ? command_failed(invocation) : COMMAND_OK;
}

const struct command command_shuffle = {
    .name = "shuffle",
    .summary = "how random each order is and what it asks of storage, without reading",
    .operands = "[ORDER...]",
    .operands_maximum = -1,
    .description =
        "Runs the orders of a data set, or of an imagined one, on numbers alone: how many labels "
        "and shards a batch holds, how often neighbours have the same label, what ranks keep, "
        "whether each sample comes once, which reads are made of it and how much memory it takes. "
        "Without ORDER all orders are shown, with the sizes their authors take. With --measure "
        "each is also read from --data with cold caches.",
    .examples = "iobench shuffle\tall orders on a set like ImageNet, one rank\n"
                "iobench shuffle epoch buffer:10000 --ranks 1,8 --partition all\ttwo of them\n"
                "iobench shuffle --data /mnt/set --measure --plot front.svg\twhich can I afford?\n",
    .options = shuffle_options,
    .settings_size = sizeof(struct shuffle_settings),
    .run = shuffle_run,
};
