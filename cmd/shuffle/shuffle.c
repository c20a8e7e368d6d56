/* SPDX-License-Identifier: Apache-2.0
 *
 * iobench shuffle: computes how random each shuffle is and which reads it makes, without reading;
 * --measure also reads the data.
 */
#include "cmd/shuffle/shuffle.h"

#include "base/bytes.h"
#include "base/escape.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/file.h"
#include "cmd/arguments.h"
#include "cmd/commands.h"
#include "cmd/outputs.h"
#include "cmd/layers.h"
#include "decode/decoder.h"
#include "formats/format.h"
#include "pipeline/jobs/run.h"
#include "pipeline/loader/loader.h"
#include "pipeline/result/result.h"
#include "pipeline/settings/job.h"
#include "ranks/ranks.h"
#include "report/report.h"
#include "report/words.h"
#include "shuffle/quality.h"
#include "shuffle/preset.h"
#include "trainer/trainer.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum shuffle_labels { SHUFFLE_LABELS_AUTO, SHUFFLE_LABELS_SORTED, SHUFFLE_LABELS_READ };

enum { CHART_WIDTH = 64, CHART_HEIGHT = 14, NAME_WIDTH = 12, TITLE_WIDTH = 20 };

/* Distinct labels per batch relative to a random draw, at most 1; NAN without a full batch. */
static double shuffle_randomness(const struct shuffle_row *row)
{
    const double share = row->quality.labels_per_batch / row->quality.labels_at_random;

    return share > 1 ? 1 : share;
}

/* Names partition and ranks if there are several. */
static const char *shuffle_title(const struct survey *survey, const struct shuffle_row *row,
                                 char *text, size_t text_bytes)
{
    const struct shuffle_row *first = survey->rows, *last = first + survey->row_count - 1;

    if (first->partition == last->partition && first->ranks == last->ranks)
        snprintf(text, text_bytes, "%s", row->order);
    else
        snprintf(text, text_bytes, "%s, %s, %u rank%s", row->order,
                 plan_partition_names[row->partition], row->ranks, row->ranks == 1 ? "" : "s");
    return text;
}

/* ---- the table of qualities ---- */

void shuffle_print_set(const struct survey *survey)
{
    const struct catalog *catalog = survey->catalog;
    char records[WORDS_BYTES], shards[WORDS_BYTES], bytes[32];

    words_printf(stdout, "", 0, "%s records in %s shards, %s; %u classes, %s; batches of %llu",
                 words_count(catalog->record_count, records),
                 words_count(catalog->shard_count, shards),
                 bytes_text(catalog->record_bytes_total, bytes, sizeof bytes), survey->classes,
                 survey->labels.of ? "labels read" : "assumed sorted",
                 (unsigned long long)survey->settings->job.batch_size);
}

void shuffle_print_heading(const struct shuffle_row *row)
{
    printf("\npartition %s, %u rank%s\n", plan_partition_names[row->partition], row->ranks,
           row->ranks == 1 ? "" : "s");
    printf("%-*s%6s%7s%7s%5s%8s%10s%9s%5s%11s\n", NAME_WIDTH, "", "labels", "shards", "same",
           "kept", "missing", "again", "KiB/read", "amp.", "buffer");
}

static const char *number(char *text, double value, const char *format)
{
    if (isnan(value))
        return "-";
    snprintf(text, 24, format, value);
    return text;
}

void shuffle_print_row(const struct shuffle_row *row)
{
    const struct quality *q = &row->quality;
    char text[6][24], buffer[32], missing[WORDS_BYTES], again[WORDS_BYTES];
    char refused[FAIL_REASON_BYTES + 16];

    if (row->refused[0]) {
        snprintf(refused, sizeof refused, "refused: %s", row->refused);
        words_print(stdout, row->order, NAME_WIDTH, refused);
        return;
    }
    words_name(stdout, row->order, NAME_WIDTH);
    printf("%6s%7s%7s%5s%8s%10s%9s%5s%11s\n", number(text[0], q->labels_per_batch, "%.1f"),
           number(text[1], q->shards_per_batch, "%.1f"), number(text[2], q->same_label, "%.4f"),
           number(text[3], q->retention, "%.2f"), words_count(q->missing, missing),
           words_count(q->repeated, again), number(text[4], q->bytes_per_read / 1024, "%.1f"),
           number(text[5], q->amplification, "%.2f"),
           bytes_text(q->buffer_bytes, buffer, sizeof buffer));
}

void shuffle_print_legend(const struct survey *survey)
{
    const struct shuffle_row *row = survey->rows, *end = row + survey->row_count;
    char window[WORDS_WINDOW_BYTES], text[640];

    while (row < end && row->refused[0])
        row++;
    if (row == end)
        return;
    snprintf(text, sizeof text,
             "Random draw: %.1f labels and %.1f shards per batch, next label the same with "
             "probability %.4f.\nkept: share of a rank's samples that it also had in the previous "
             "epoch; missing, again: records never drawn and drawn twice in an epoch over all "
             "ranks; amp.: bytes of pages read over bytes used; buffer: peak memory of one rank's "
             "order. Reads: %s.",
             row->quality.labels_at_random, row->quality.shards_at_random,
             row->quality.same_label_at_random,
             words_window(row->reads.window, row->reads.read_bytes, window));
    putchar('\n');
    words_print(stdout, "", 0, text);
}

/* ---- throughput ---- */

/* One letter per row; a capital marks the Pareto front. */
static char letter_of(const struct survey *survey, const struct shuffle_row *row)
{
    const char plain = (char)('a' + (row - survey->rows) % 26);

    return row->speed.on_front ? (char)toupper(plain) : plain;
}

void shuffle_print_speeds(const struct survey *survey)
{
    double most = 0;

    printf("\nRead cold by one rank, median of %llu round%s\n%*s%7s%10s%10s%10s%11s  %s\n",
           (unsigned long long)survey->settings->runs,
           survey->settings->runs == 1 ? "" : "s, alternating", TITLE_WIDTH, "", "random", "MiB/s",
           "min", "max", "samples/s", "cold");
    for (size_t i = 0; i < survey->row_count; i++) {
        const struct shuffle_row *row = &survey->rows[i];
        const struct shuffle_speed *speed = &row->speed;
        char title[160], name[164], samples[WORDS_BYTES], random[24];
        most = fmax(most, speed->bytes.median);
        snprintf(name, sizeof name, "%c %s", letter_of(survey, row),
                 shuffle_title(survey, row, title, sizeof title));
        if (speed->refused[0] && !row->refused[0])
            words_printf(stdout, name, TITLE_WIDTH, "not read: %s", speed->refused);
        if (row->refused[0] || speed->refused[0])
            continue;
        words_name(stdout, name, TITLE_WIDTH);
        printf("%7s%10.1f%10.1f%10.1f%11s", number(random, shuffle_randomness(row), "%.3f"),
               speed->bytes.median / (1 << 20), speed->bytes.minimum / (1 << 20),
               speed->bytes.maximum / (1 << 20), words_rate(speed->samples.median, samples));
        printf("  %u of %u\n", speed->cold_runs, speed->runs);
        if (speed->cold_runs != speed->runs)
            words_printf(stdout, "", TITLE_WIDTH, "unverified: %s",
                         escape_shown(speed->warm_reason));
    }
    if (most <= 0)
        return;
    char cells[CHART_HEIGHT + 1][CHART_WIDTH + 1];
    memset(cells, ' ', sizeof cells);
    for (size_t i = 0; i < survey->row_count; i++) {
        const struct shuffle_row *row = &survey->rows[i];
        if (row->speed.runs == 0 || isnan(shuffle_randomness(row)))
            continue;
        const int up = (int)lround(row->speed.bytes.median / most * CHART_HEIGHT);
        const int right = (int)lround(shuffle_randomness(row) * CHART_WIDTH);
        char *cell = &cells[CHART_HEIGHT - up][right];
        if (*cell == ' ' || row->speed.on_front)
            *cell = letter_of(survey, row);
    }
    printf("\nMiB/s\n");
    for (int line = 0; line <= CHART_HEIGHT; line++) {
        if (line == 0 || line == CHART_HEIGHT)
            printf("%7.0f", line ? 0 : most / (1 << 20));
        else
            printf("%7s", "");
        /* Print a line of the chart without trailing blanks. */
        int width = CHART_WIDTH + 1;
        while (width > 0 && cells[line][width - 1] == ' ')
            width--;
        printf(" |%.*s\n", width, cells[line]);
    }
    printf("%7s +", "");
    for (int column = 0; column <= CHART_WIDTH; column++)
        putchar('-');
    printf("\n%9s0%*s\n", "", CHART_WIDTH,
           "randomness: labels per batch relative to a random draw  1");
    puts("Capital letters: the Pareto front; no other order is as random and faster.");
}

/* ---- JSON and CSV ---- */

static json_t *row_json(const struct survey *survey, const struct shuffle_row *row)
{
    const struct quality *q = &row->quality;
    json_t *object = json_pack("{s:o, s:s, s:I, s:s, s:I}", "shuffle", json_text(row->order),
                               "partition", plan_partition_names[row->partition], "ranks",
                               (json_int_t)row->ranks, "labels_from",
                               !survey->labels.of                 ? "sorted"
                               : labels_in_paths(survey->catalog) ? "paths"
                                                                  : "records",
                               "classes", (json_int_t)survey->classes);
    /* Add which files the figures are of, and the machine. */
    struct result *result = survey->settings->job.read.data ? memory_zeroed(sizeof *result) : NULL;
    const struct ranks here = ranks_alone();
    if (result) {
        result_describe(result, survey->settings->job.read.data, survey->format.plugin->name,
                        survey->catalog);
        json_object_set_new(object, "dataset", report_dataset(result));
        json_object_set_new(object, "place",
                            json_pack("{s:o}", "host", json_text(here.place.host)));
        free(result);
    }
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
        {"reads_per_epoch", q->reads},
        {"seeks_per_epoch", q->seeks},
        {"bytes_per_read", q->bytes_per_read},
        {"distance_between_reads_bytes", q->distance_bytes},
    };
    const struct {
        const char *key;
        uint64_t value;
    } counts[] = {
        {"window_records", row->reads.window},
        {"read_bytes_max", row->reads.read_bytes},
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

    if (row->refused[0]) {
        json_put_text(object, "refused", row->refused);
        return object;
    }
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++)
        json_object_set_new(object, reals[i].key, json_number(reals[i].value));
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        json_object_set_new(object, counts[i].key, json_integer((json_int_t)counts[i].value));
    if (survey->settings->measure) {
        json_t *runs = json_array();
        for (uint32_t i = 0; i < row->speed.runs; i++)
            json_array_append_new(runs, json_number(row->speed.bytes_per_s[i]));
        json_put_number(object, "bytes_per_s", row->speed.bytes.median);
        json_put_number(object, "bytes_per_s_min", row->speed.bytes.minimum);
        json_put_number(object, "bytes_per_s_max", row->speed.bytes.maximum);
        json_put_number(object, "samples_per_s", row->speed.samples.median);
        json_object_set_new(object, "runs", json_integer(row->speed.runs));
        json_object_set_new(object, "cold_runs", json_integer(row->speed.cold_runs));
        json_object_set_new(object, "unverified_reason",
                            row->speed.warm_reason[0] ? json_text(row->speed.warm_reason)
                                                      : json_null());
        json_object_set_new(object, "not_read_reason",
                            row->speed.refused[0] ? json_text(row->speed.refused) : json_null());
        json_object_set_new(object, "on_front", json_boolean(row->speed.on_front));
        json_object_set_new(object, "bytes_per_s_of_runs", runs);
    }
    return object;
}

/* One column per key that holds one value, with its name or value. */
static void write_line(FILE *csv, json_t *row, bool heading)
{
    const char *key, *comma = "";
    json_t *value;

    json_object_foreach(row, key, value)
    {
        if (json_is_array(value) || json_is_object(value))
            continue;
        fputs(comma, csv);
        comma = ",";
        if (heading)
            fputs(key, csv);
        else {
            if (json_is_string(value))
                report_csv_quoted(csv, json_string_value(value));
            else if (json_is_integer(value))
                fprintf(csv, "%lld", (long long)json_integer_value(value));
            else if (json_is_real(value))
                fprintf(csv, "%.9g", json_real_value(value));
            else if (json_is_boolean(value))
                fputs(json_is_true(value) ? "true" : "false", csv);
        }
    }
    fputc('\n', csv);
}

int shuffle_write_files(const struct survey *survey)
{
    json_t *rows = json_array();
    int code = 0;

    for (size_t i = 0; i < survey->row_count; i++)
        json_array_append_new(rows, row_json(survey, &survey->rows[i]));
    if (survey->settings->csv) {
        /* Refused shuffles have no line. */
        struct text_stream stream;
        char *text = NULL;
        size_t bytes, index;
        bool heading = true;
        json_t *row;
        code = text_stream_open(&stream);
        if (code == 0) {
            json_array_foreach(rows, index, row)
            {
                if (json_object_get(row, "refused"))
                    continue;
                if (heading)
                    write_line(stream.stream, row, true);
                heading = false;
                write_line(stream.stream, row, false);
            }
            code = text_stream_take(&stream, &text, &bytes);
            if (code == 0)
                code = report_write_file(survey->settings->csv, text, bytes);
            free(text);
        }
    }
    if (code == 0 && survey->settings->json)
        code = json_file_write(survey->settings->json, json_incref(rows));
    json_decref(rows);
    return code;
}

/* ---- charts ---- */

enum {
    PICTURE_WIDTH = 1100,
    PICTURE_HEIGHT = 170,
    MAP_VALUES = PLOT_BATCHES * PLOT_LABELS + PLOT_NEIGHBOURS * PLOT_NEIGHBOURS
};

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Column of a label; may hold several labels. */
static uint32_t column_of(const struct plot_panel *panel, uint32_t label, uint32_t columns)
{
    return (uint32_t)((uint64_t)label * least(panel->classes, columns) / panel->classes);
}

/* Add the next draw of the surveyed rank. */
static void plot_draw(struct plot_panel *panel, uint64_t draw, uint32_t label)
{
    const uint64_t batches = (panel->draws + panel->batch_size - 1) / panel->batch_size;
    const uint64_t batch = draw / panel->batch_size, row = batch * PLOT_BATCHES / batches;

    assert(label < panel->classes);
    /* Sampled: the first batch of each sixteenth of the epoch. */
    if (row < PLOT_BATCHES && (batch == 0 || (batch - 1) * PLOT_BATCHES / batches != row))
        panel->labels[row][column_of(panel, label, PLOT_LABELS)]++;
    if (draw > 0)
        panel->neighbours[column_of(panel, label, PLOT_NEIGHBOURS)]
                         [column_of(panel, panel->last_label, PLOT_NEIGHBOURS)]++;
    panel->last_label = label;
}

static int compare_speed(const void *a, const void *b)
{
    const struct plot_panel *x = *(struct plot_panel *const *)a,
                            *y = *(struct plot_panel *const *)b;

    return (x->bytes_per_s < y->bytes_per_s) - (x->bytes_per_s > y->bytes_per_s);
}

/* counts: rows of `stride`; even: their mean if all are as many. */
static void draw_map(struct svg_panel *map, const uint32_t *counts, size_t rows, size_t columns,
                     size_t stride, double even, double *values)
{
    for (size_t i = 0; i < rows * columns; i++)
        values[i] = counts[i / columns * stride + i % columns] / even;
    svg_map(map, values, rows, columns, 8);
}

int plot_begin(struct svg *svg, const struct plot_panel *panels, size_t count, bool has_maps,
               double **values)
{
    const struct plot_panel **read = memory_array(count, sizeof *read);
    size_t used = 0;

    *values = has_maps ? memory_array(count * MAP_VALUES, sizeof **values) : NULL;
    svg_begin(svg,
              has_maps ? "Left: labels of 16 batches, the first of the epoch on top. Right: label "
                         "of a sample and of "
                         "the next one. Dark: eight times the average"
                       : "",
              PICTURE_WIDTH, has_maps ? PICTURE_HEIGHT : 2 * PICTURE_HEIGHT, 4);
    if (!read || (has_maps && !*values)) {
        free(read);
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++)
        if (panels[i].title[0] && panels[i].bytes_per_s > 0)
            read[used++] = &panels[i];
    qsort(read, used, sizeof *read, compare_speed);
    if (used) { /* from the fastest down, so that names move into free space */
        struct svg_panel *chart = svg_panel(svg, "Randomness against throughput");
        struct svg_curve *front = svg_curve(chart, "Pareto front", "#aabbcc", 1, SVG_LINE);
        struct svg_curve *cold = svg_curve(chart, "verified cold", svg_color(0), 1, SVG_ALONE);
        struct svg_curve *others =
            svg_curve(chart, "not verified cold", svg_color(1), 1, SVG_ALONE);
        svg_widen(chart);
        svg_x(chart, "distinct labels per batch relative to a random draw", SVG_LINEAR, 0, 1.2);
        svg_y(chart, "MiB/s, read by one rank", SVG_LINEAR, 0, NAN);
        for (size_t i = 0; i < used; i++) {
            struct svg_curve *curve = read[i]->verified ? cold : others;
            const double rate = read[i]->bytes_per_s / (1 << 20);
            svg_point(curve, read[i]->randomness, rate);
            svg_name(curve, read[i]->title);
            if (read[i]->on_front)
                svg_point(front, read[i]->randomness, rate);
        }
    }
    free(read);
    for (size_t i = 0; has_maps && i < count; i++) {
        const struct plot_panel *panel = &panels[i];
        if (!panel->title[0])
            continue;
        const uint32_t columns = least(panel->classes, PLOT_LABELS),
                       side = least(panel->classes, PLOT_NEIGHBOURS);
        double *at = *values + i * MAP_VALUES;
        struct svg_panel *labels = svg_panel(svg, panel->title), *neighbours = svg_panel(svg, "");
        svg_x(labels, "label", SVG_BARE, NAN, NAN);
        svg_y(labels, "batch", SVG_BARE, NAN, NAN);
        svg_x(neighbours, "label", SVG_BARE, NAN, NAN);
        svg_y(neighbours, "label of the next", SVG_BARE, NAN, NAN);
        draw_map(labels, panel->labels[0], PLOT_BATCHES, columns, PLOT_LABELS,
                 (double)panel->batch_size / columns, at);
        draw_map(neighbours, panel->neighbours[0], side, side, PLOT_NEIGHBOURS,
                 (double)panel->draws / side / side, at + PLOT_BATCHES * PLOT_LABELS);
    }
    return 0;
}

/* ---- throughput ---- */

/* Differences within the noise of a few batches count as equal randomness. */
static const double SAME_RANDOMNESS = 0.005;

/* Measure one cold run of rank 0. */
static int read_once(const struct survey *survey, struct shuffle_row *row)
{
    struct shuffle_speed *speed = &row->speed;
    struct result result = {0};
    struct job job = survey->settings->job;

    job.order.shuffle = (char *)(uintptr_t)row->order;
    job.order.partition = (int)row->partition;
    job.order.ranks = row->ranks;
    int code = run_jobs(&job, 1, NULL, NULL, &result);
    if (code == 0 && result.run_count == 0)
        code = fail(EPROTO, "%s: invalid: %s", row->order, result.invalid_reason);
    if (code == 0) {
        const struct result_run *run = &result.runs[0];
        assert(speed->runs < SHUFFLE_RUNS_MOST);
        speed->bytes_per_s[speed->runs] = result_run_bytes_per_s(run);
        speed->samples_per_s[speed->runs] = result_run_samples_per_s(run);
        speed->runs++;
        const char *why = result_cold_unproven(&run->cold);
        if (*result.degraded_reason)
            snprintf(speed->warm_reason, sizeof speed->warm_reason, "DEGRADED: %s",
                     result.degraded_reason);
        else if (why) /* by itself makes the result invalid, so it comes first */
            snprintf(speed->warm_reason, sizeof speed->warm_reason, "%s", why);
        else if (!result.valid)
            snprintf(speed->warm_reason, sizeof speed->warm_reason, "INVALID: %s",
                     result.invalid_reason);
        else
            speed->cold_runs++;
    }
    result_destroy(&result);
    if (code == -ENOMEM) {
        snprintf(speed->refused, sizeof speed->refused, "%s", fail_reason());
        return 0;
    }
    return code;
}

static bool is_cold(const struct shuffle_speed *speed)
{
    return speed->runs > 0 && speed->cold_runs == speed->runs;
}

/* Read --data in each order: settings->runs rounds of one cold run each, so that disturbances hit
 * all orders alike; then mark the Pareto front. Orders that do not fit into memory are noted and
 * skipped. Returns 0, or -errno for any other failure. */
static int shuffle_measure(struct survey *survey)
{
    const uint64_t rounds = survey->settings->runs;
    char text[sizeof survey->line.last], title[160];
    int code = 0;

    for (uint64_t round = 0; code == 0 && round < rounds; round++)
        for (size_t i = 0; code == 0 && i < survey->row_count; i++) {
            struct shuffle_row *row = &survey->rows[i];
            if (row->refused[0] || row->speed.refused[0])
                continue;
            snprintf(text, sizeof text, "reading, round %u/%u: %s", (unsigned)round + 1,
                     (unsigned)rounds, shuffle_title(survey, row, title, sizeof title));
            line_show(&survey->line, text);
            code = read_once(survey, row);
        }
    line_clear(&survey->line);
    for (size_t i = 0; i < survey->row_count; i++) {
        struct shuffle_speed *speed = &survey->rows[i].speed;
        speed->bytes = stats_summarise(speed->bytes_per_s, speed->runs);
        speed->samples = stats_summarise(speed->samples_per_s, speed->runs);
    }
    /* Runs that were not cold say nothing about storage: ignore them if there are cold ones. */
    const size_t count = survey->row_count;
    bool any_cold = false;
    for (size_t i = 0; i < count; i++)
        any_cold = any_cold || is_cold(&survey->rows[i].speed);
    for (size_t i = 0; i < count; i++) {
        struct shuffle_speed *speed = &survey->rows[i].speed;
        speed->on_front = speed->runs > 0 && !isnan(shuffle_randomness(&survey->rows[i])) &&
                          (!any_cold || is_cold(speed));
        for (size_t k = 0; k < count && speed->on_front; k++) {
            /* Another order dominates: at least as random and as fast, and better in one. */
            const struct shuffle_row *other = &survey->rows[k];
            const double more = shuffle_randomness(other) - shuffle_randomness(&survey->rows[i]);
            const double faster = other->speed.bytes.median - speed->bytes.median;
            if (other->speed.runs && (!any_cold || is_cold(&other->speed)) &&
                more > -SAME_RANDOMNESS && faster >= 0 && (more > SAME_RANDOMNESS || faster > 0))
                speed->on_front = false;
        }
    }
    return code;
}

/* ---- options ---- */

enum { RANK_COUNTS = 64, DIRECT_ALIGNMENT = 4096 };

/* Labels of data sets up to this size are read by default. */
static const uint64_t SMALL_BYTES = UINT64_C(1) << 30;

static const char *const label_choices[] = {"auto", "sorted", "read", NULL};

/* clang-format off: one row each */
#define FIELD(field) .offset = offsetof(struct shuffle_settings, field)
static const struct option_spec shuffle_options[] = {
    {"data", 'd', OPTION_TEXT, FIELD(job.read.data), .metavar = "PATH", .reach = OPTION_INDEXES_SET,
     .section = "Data set",
     .summary = "file or folder of a data set; default: a hypothetical set of --records"},
    {"format", 'f', OPTION_TEXT, FIELD(job.read.format), .fallback = "auto",
     .metavar = "NAME[:...]", .summary = "format of the data set"},
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
    {"remainder", 0, OPTION_CHOICE, FIELD(job.order.remainder), .fallback = "uneven",
     .choices = plan_remainder_names, .summary = "how to treat samples that do not divide evenly"},
    {"batch-size", 'B', OPTION_COUNT, FIELD(job.batch_size), .fallback = "256", .minimum = 1,
     .maximum = 1 << 20, .summary = "samples per batch of one rank"},
    {"epochs", 'e', OPTION_COUNT, FIELD(epochs), .fallback = "2", .minimum = 1, .maximum = 1000,
     .summary = "epochs to compute"},
    {"seed", 0, OPTION_COUNT, FIELD(job.order.seed), .fallback = "1",
     .summary = "random seed of the "
                "shuffles"},
    {"bs", 'b', OPTION_SIZE, FIELD(job.read.block_bytes), .fallback = "1MiB", .minimum = 512,
     .maximum = 1 << 30, .summary = "coalesce adjacent records into reads of at most this size"},
    JOB_WINDOW_ROW(offsetof(struct shuffle_settings, job.order.window)),
    {"as", 0, OPTION_TEXT, FIELD(as), .metavar = "FRAMEWORK",
     .summary = "shuffle, partition, window and reads of a framework: mxnet, horovod-tensorflow or "
                "caffe2"},

    {"measure", 0, OPTION_FLAG, FIELD(measure), .fallback = "no", .section = "Throughput",
     .summary = "also read --data in each order with cold caches"},
    {"reader", 'r', OPTION_TEXT, FIELD(job.read.reader), .fallback = "auto",
     .metavar = "NAME[:...]", .summary = "I/O engine"},
    {"direct", 0, OPTION_FLAG, FIELD(job.read.direct), .fallback = "no",
     .summary = "bypass the page cache (O_DIRECT)"},
    {"iodepth", 'q', OPTION_COUNT, FIELD(job.read.iodepth), .fallback = "32", .minimum = 1,
     .maximum = 65536, .summary = "queue depth: reads in flight"},
    {"memory", 'm', OPTION_SIZE, FIELD(job.read.memory_bytes), .fallback = "auto", .zero = "auto",
     .summary = "memory for records in flight and in shuffle buffers; orders that need "
                "more are not read"},
    {"runs", 'n', OPTION_COUNT, FIELD(runs), .fallback = "3", .minimum = 1,
     .maximum = SHUFFLE_RUNS_MOST,
     .summary = "rounds, each reading every order once; reports the median"},
    {"limit-samples", 0, OPTION_COUNT, FIELD(job.order.limit_samples), .fallback = "all",
     .zero = "all",
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

struct share_show {
    struct line *line;
    const char *what;
};

static void show_share(void *context, uint64_t done_bytes, uint64_t total_bytes)
{
    const struct share_show *show = context;
    char bar[LINE_PART_BYTES], text[sizeof show->line->last];

    snprintf(text, sizeof text, "%s %s", show->what, line_bar(bar, done_bytes, total_bytes));
    line_show(show->line, text);
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
        settings->job.read.data ? "" : "use fewer --records, ");
}

static int open_catalog(struct survey *survey)
{
    const struct shuffle_settings *settings = survey->settings;
    struct share_show indexing = {&survey->line, "indexing"};
    struct share_show reading = {&survey->line, "reading labels"};
    const struct format_scan scan = {.progress = show_share, .progress_context = &indexing};

    survey->classes = (uint32_t)settings->classes;
    if (!settings->job.read.data) {
        if (check_memory(survey, settings->records, settings->records * sizeof(struct extent)))
            return -ENOMEM;
        survey->catalog = outline_create(settings->records, (uint32_t)settings->shards,
                                         (uint32_t)settings->sample_bytes, 0);
        return survey->catalog ? 0 : -EINVAL;
    }
    int code = format_choose(settings->job.read.format, settings->job.read.data, &survey->format);
    if (code == 0)
        code =
            format_catalog(&survey->format, settings->job.read.data, true, &scan, &survey->catalog);
    if (code == 0)
        format_say_remarks(survey->catalog);
    if (code == 0)
        code = check_memory(survey, survey->catalog->record_count, 0);
    /* auto assumes sorted labels if they cannot be read; the heading reports this. */
    const bool is_auto = settings->labels == SHUFFLE_LABELS_AUTO;
    if (code == 0 && settings->labels != SHUFFLE_LABELS_SORTED &&
        !(is_auto && !labels_in_paths(survey->catalog) &&
          survey->catalog->record_bytes_total > SMALL_BYTES)) {
        code = labels_read(&survey->format, survey->catalog, show_share, &reading, &survey->labels);
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
                  .seed = settings->job.order.seed,
                  .ranks = row->ranks,
                  .partition = row->partition,
                  .remainder = (enum plan_remainder)settings->job.order.remainder,
                  .batch_size = (uint32_t)settings->job.batch_size,
                  .memory_bytes = free_bytes > taken_bytes ? free_bytes - taken_bytes : 1},
        .epochs = settings->epochs,
        .labels = survey->labels.of,
        .classes = survey->classes,
        .reads = loader_reads(survey->catalog,
                              settings->job.read.memory_bytes ? settings->job.read.memory_bytes
                                                              : UINT64_MAX,
                              &settings->job.read, settings->job.order.window),
    };
    struct drawing drawing = {.terms = &terms, .panel = panel};

    assert(row->ranks > 0);
    if (settings->job.read.direct)
        terms.reads.alignment = DIRECT_ALIGNMENT;
    row->reads = terms.reads;
    if (panel) {
        *panel = (struct plot_panel){
            .draws = survey->catalog->record_count /
                     (row->partition == PLAN_REPLICATED ? 1 : row->ranks),
            .batch_size = (uint32_t)settings->job.batch_size,
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
    struct job *job = &settings->job;
    int code = layers_complete(shuffle_options, offsetof(struct shuffle_settings, job), job);

    if (code == 0)
        code =
            option_set(job_options, job, "decode", plugin_idle(decoder_registry)->name, "decode");
    if (code == 0)
        code =
            option_set(job_options, job, "trainer", plugin_idle(trainer_registry)->name, "trainer");
    job->cold.drop_caches = JOB_DROP_YES;
    job->calibrate = false;
    job->runs = 1;
    if (code == 0 && settings->as) { /* the command line overrides the preset that it names */
        code = layers_preset(settings->as, shuffle_options, settings);
        if (code == 0) {
            survey->preset_order = preset_value(preset_find(settings->as), "shuffle");
            code = layers_command_line(invocation, shuffle_options, settings);
        }
    }
    if (code == 0)
        code = list_rows(survey, invocation);
    if (code == 0 && settings->measure && !settings->job.read.data)
        code = fail(EINVAL, "--measure needs --data");
    if (code == 0 && settings->plot)
        code = svg_check_path(settings->plot);
    if (code == 0 && settings->job.read.data)
        code = arguments_check_data("data", settings->job.read.data);
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
    option_release(job_options, &((struct shuffle_settings *)invocation->settings)->job);
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
