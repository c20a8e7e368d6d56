/* SPDX-License-Identifier: Apache-2.0
 *
 * Output of a survey of orders: tables, a letter chart, JSON and CSV. */
#include "cmd/shuffle/shuffle.h"

#include "base/bytes.h"
#include "base/escape.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/text_stream.h"
#include "cmd/json_file.h"
#include "pipeline/result/result.h"
#include "ranks/ranks.h"
#include "report/report.h"
#include "report/words.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHART_WIDTH = 64, CHART_HEIGHT = 14, NAME_WIDTH = 12, TITLE_WIDTH = 20 };

double shuffle_randomness(const struct shuffle_row *row)
{
    const double share = row->quality.labels_per_batch / row->quality.labels_at_random;

    return share > 1 ? 1 : share;
}

const char *shuffle_title(const struct survey *survey, const struct shuffle_row *row, char *text,
                          size_t text_bytes)
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
                 (unsigned long long)survey->settings->batch_size);
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
static char letter(const struct survey *survey, const struct shuffle_row *row)
{
    const char plain = (char)('a' + (row - survey->rows) % 26);

    return row->speed.on_front ? (char)toupper(plain) : plain;
}

static void print_speed(const struct survey *survey, const struct shuffle_row *row)
{
    const struct shuffle_speed *speed = &row->speed;
    char title[160], name[164], samples[WORDS_BYTES], random[24];

    if (row->refused[0])
        return;
    snprintf(name, sizeof name, "%c %s", letter(survey, row),
             shuffle_title(survey, row, title, sizeof title));
    if (speed->refused[0]) {
        words_printf(stdout, name, TITLE_WIDTH, "not read: %s", speed->refused);
        return;
    }
    words_name(stdout, name, TITLE_WIDTH);
    printf("%7s%10.1f%10.1f%10.1f%11s", number(random, shuffle_randomness(row), "%.3f"),
           speed->bytes.median / (1 << 20), speed->bytes.minimum / (1 << 20),
           speed->bytes.maximum / (1 << 20), words_rate(speed->samples.median, samples));
    printf("  %u of %u\n", speed->cold_runs, speed->runs);
    if (speed->cold_runs == speed->runs)
        return;
    words_printf(stdout, "", TITLE_WIDTH, "unverified: %s", escape_shown(speed->warm_reason));
}

void shuffle_print_speeds(const struct survey *survey)
{
    double most = 0;

    printf("\nRead cold by one rank, median of %llu round%s\n%*s%7s%10s%10s%10s%11s  %s\n",
           (unsigned long long)survey->settings->runs,
           survey->settings->runs == 1 ? "" : "s, alternating", TITLE_WIDTH, "", "random", "MiB/s",
           "min", "max", "samples/s", "cold");
    for (size_t i = 0; i < survey->row_count; i++) {
        print_speed(survey, &survey->rows[i]);
        most = fmax(most, survey->rows[i].speed.bytes.median);
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
            *cell = letter(survey, row);
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
    /* Which files these figures are of, and whose. */
    struct result *result = survey->settings->data ? memory_zeroed(sizeof *result) : NULL;
    const struct ranks here = ranks_alone();
    if (result) {
        result_describe(result, survey->settings->data, survey->format.plugin->name,
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
