/* SPDX-License-Identifier: Apache-2.0
 *
 * iobench inspect: describes a data set.
 */
#include "cmd/pack/inspection.h"

#include "base/bytes.h"
#include "base/escape.h"
#include "base/json.h"
#include "base/memory.h"
#include "cmd/commands.h"
#include "cmd/json_file.h"
#include "cmd/line.h"
#include "report/words.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void show(void *context, uint64_t done_bytes, uint64_t total_bytes)
{
    struct line *line = context;
    char bar[LINE_PART_BYTES], text[sizeof line->last];

    snprintf(text, sizeof text, "indexing %s", line_bar(bar, done_bytes, total_bytes));
    line_show(line, text);
}

/* "name min 1.00 KiB, median ..., p99 ..., max ..." */
static void print_sizes(const char *name, const struct histogram *sizes)
{
    char least[32], median[32], most_of[32], most[32];

    if (sizes->count)
        printf("%-10s min %s, median %s, p99 %s, max %s\n", name,
               bytes_text(sizes->minimum, least, sizeof least),
               bytes_text(histogram_quantile(sizes, 0.5), median, sizeof median),
               bytes_text(histogram_quantile(sizes, 0.99), most_of, sizeof most_of),
               bytes_text(sizes->maximum, most, sizeof most));
}

static void print_images(const struct inspection *found)
{
    const struct {
        const char *name;
        uint64_t count;
    } kinds[] = {{"JPEG", found->of_kind[IMAGE_JPEG]},
                 {"PNG", found->of_kind[IMAGE_PNG]},
                 {"WebP", found->of_kind[IMAGE_WEBP]},
                 {"GIF", found->of_kind[IMAGE_GIF]},
                 {"BMP", found->of_kind[IMAGE_BMP]},
                 {"raw", found->raw},
                 {"of other kinds", found->of_kind[IMAGE_UNKNOWN]},
                 {"progressive", found->progressive},
                 {"gray", found->gray},
                 {"CMYK or YCCK", found->four_components},
                 {"damaged", found->damaged}};
    char count[WORDS_BYTES];

    printf("sampled    %s record%s:", words_count(found->looked, count),
           found->looked == 1 ? "" : "s");
    const char *comma = " ";
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (kinds[i].count) {
            printf("%s%s %s", comma, words_count(kinds[i].count, count), kinds[i].name);
            comma = ", ";
        }
    }
    putchar('\n');
    if (found->width.count)
        printf("pixels     %" PRIu64 " x %" PRIu64 " median, up to %" PRIu64 " x %" PRIu64 "\n",
               histogram_quantile(&found->width, 0.5), histogram_quantile(&found->height, 0.5),
               found->width.maximum, found->height.maximum);
}

static void print_labels(const struct inspection *found)
{
    if (found->classes == 0) {
        printf("labels     none\n");
        return;
    }
    printf("labels     %" PRId32 " .. %" PRId32 ", %" PRIu64 " different, %" PRIu64 " to %" PRIu64
           " records each",
           found->label_minimum, found->label_maximum, found->classes, found->class_minimum,
           found->class_maximum);
    if (found->unlabelled)
        printf(", %" PRIu64 " records without label", found->unlabelled);
    putchar('\n');
}

/* ---- JSON ---- */

static json_t *sizes_json(const struct histogram *sizes)
{
    if (sizes->count == 0)
        return json_null();
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:o}", "minimum", (json_int_t)sizes->minimum,
                     "median", (json_int_t)histogram_quantile(sizes, 0.5), "p90",
                     (json_int_t)histogram_quantile(sizes, 0.9), "p99",
                     (json_int_t)histogram_quantile(sizes, 0.99), "maximum",
                     (json_int_t)sizes->maximum, "mean",
                     json_number((double)sizes->sum / (double)sizes->count));
}

static json_t *record_json(const struct inspect_record *record)
{
    if (record->damaged)
        return json_pack("{s:o, s:I, s:I, s:o}", "shard", json_text(record->shard), "offset",
                         (json_int_t)record->offset, "bytes", (json_int_t)record->bytes, "damaged",
                         json_text(record->reason));
    return json_pack("{s:o, s:I, s:I, s:i, s:I, s:o, s:s, s:i, s:i, s:i, s:I}", "shard",
                     json_text(record->shard), "offset", (json_int_t)record->offset, "bytes",
                     (json_int_t)record->bytes, "label", (int)record->label, "id",
                     (json_int_t)record->id, "name", json_text(record->name), "kind", record->kind,
                     "width", (int)record->width, "height", (int)record->height, "components",
                     (int)record->components, "image_bytes", (json_int_t)record->image_bytes);
}

static int inspect_command(const struct invocation *invocation)
{
    struct inspect_job *job = invocation->settings;
    struct line line = line_start();
    const struct inspect_observer observer = {.progress = show, .context = &line};
    struct inspection *found = memory_zeroed(sizeof *found);

    if (!found)
        return command_failed(invocation);
    job->path = invocation->operands[0];
    int code = inspect_run(job, &observer, found);
    line_clear(&line);
    if (code == 0 && job->json) {
        json_t *labels =
            found->classes == 0
                ? json_null()
                : json_pack("{s:i, s:i, s:I, s:I, s:I, s:I}", "minimum", (int)found->label_minimum,
                            "maximum", (int)found->label_maximum, "different",
                            (json_int_t)found->classes, "fewest_records",
                            (json_int_t)found->class_minimum, "most_records",
                            (json_int_t)found->class_maximum, "records_without",
                            (json_int_t)found->unlabelled);
        json_t *first = json_array();
        for (uint32_t i = 0; i < found->shown; i++)
            json_array_append_new(first, record_json(&found->first[i]));
        json_t *looked = json_pack(
            "{s:I, s:I, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o}",
            "records", (json_int_t)found->looked, "damaged", (json_int_t)found->damaged,
            "first_damage", found->damaged ? json_text(found->first_damage) : json_null(), "jpeg",
            (json_int_t)found->of_kind[IMAGE_JPEG], "png", (json_int_t)found->of_kind[IMAGE_PNG],
            "webp", (json_int_t)found->of_kind[IMAGE_WEBP], "gif",
            (json_int_t)found->of_kind[IMAGE_GIF], "bmp", (json_int_t)found->of_kind[IMAGE_BMP],
            "raw", (json_int_t)found->raw, "other", (json_int_t)found->of_kind[IMAGE_UNKNOWN],
            "progressive", (json_int_t)found->progressive, "gray", (json_int_t)found->gray, "cmyk",
            (json_int_t)found->four_components, "image_bytes", sizes_json(&found->image_bytes),
            "width_pixels", sizes_json(&found->width), "height_pixels", sizes_json(&found->height),
            "labels", labels);
        code = json_file_write(
            job->json,
            json_pack("{s:o, s:I, s:I, s:o, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o}",
                      "data", json_text(job->path), "unread_samples",
                      (json_int_t)found->unread_samples, "other_files",
                      (json_int_t)found->other_files, "remarks",
                      json_texts(found->remark_count, REMARK_TEXT_BYTES, found->remarks[0]),
                      "format", found->format, "compression", found->compression, "index",
                      found->sidecar, "shards", (json_int_t)found->shards, "records",
                      (json_int_t)found->records, "data_bytes", (json_int_t)found->data_bytes,
                      "record_bytes_total", (json_int_t)found->record_bytes, "shard_bytes",
                      sizes_json(&found->shard_bytes), "record_bytes",
                      sizes_json(&found->size_bytes), "looked_at", looked, "first_records", first));
    }
    if (code == 0 && !(job->json && strcmp(job->json, "-") == 0)) {
        char count[WORDS_BYTES], bytes[32];
        printf("%s\n", escape_shown(job->path));
        printf("format     %s, compression %s\n", found->format, found->compression);
        printf("shards     %s, %s\n", words_count(found->shards, count),
               bytes_text(found->data_bytes, bytes, sizeof bytes));
        if (found->shards > 1)
            print_sizes("", &found->shard_bytes);
        printf("records    %s, %s\n", words_count(found->records, count),
               bytes_text(found->record_bytes, bytes, sizeof bytes));
        print_sizes("", &found->size_bytes);
        printf("index      %s\n", strcmp(found->sidecar, "fresh") == 0 ? "kept beside the data"
                                  : strcmp(found->sidecar, "none") == 0
                                      ? "none yet; the first run writes it"
                                  : strcmp(found->sidecar, "stale") == 0
                                      ? "stale: the data changed; the next run rewrites it"
                                      : "damaged; the next run rewrites it");
        print_images(found);
        print_labels(found);
        char image[WORDS_BYTES];
        for (uint32_t i = 0; i < found->shown; i++) {
            const struct inspect_record *record = &found->first[i];
            printf("record %-3" PRIu32 " %s at %" PRIu64 ": ", i, escape_shown(record->shard),
                   record->offset);
            if (record->damaged) {
                printf("damaged: %s\n", escape_shown(record->reason));
                continue;
            }
            printf("label %" PRId32 ", %s %" PRIu32 " x %" PRIu32 ", %s", record->label,
                   record->kind, record->width, record->height,
                   bytes_text(record->image_bytes, image, sizeof image));
            printf("%s%s\n", record->name[0] ? ", " : "", escape_shown(record->name));
        }
        if (found->other_files)
            printf("other      %s file%s without samples\n", words_count(found->other_files, count),
                   found->other_files == 1 ? "" : "s");
        char damaged[WORDS_BYTES], looked[WORDS_BYTES];
        if (found->damaged)
            printf("DAMAGED    %s of %s sampled records, the first: %s; to check all: iobench "
                   "verify\n",
                   words_count(found->damaged, damaged), words_count(found->looked, looked),
                   escape_shown(found->first_damage));
    }
    const bool sound = found->damaged + found->unread_samples == 0;
    free(found);
    return code ? command_failed(invocation) : sound ? COMMAND_OK : COMMAND_FAILED;
}

const struct command command_inspect = {
    .name = "inspect",
    .summary = "describe a data set",
    .operands = "DATA",
    .operands_minimum = 1,
    .operands_maximum = 1,
    .description = "Describes DATA: format, shards, records and their sizes, and from a sample of "
                   "records the kinds and sizes of images and the labels. Changes nothing. Exits "
                   "with 1 if a sampled record is damaged or samples are left out. "
                   "iobench verify checks every record.",
    .examples = "iobench inspect /mnt/imagenet/train\ta summary\n"
                "iobench inspect --json /mnt/set | jq .record_bytes.median\tfor scripts\n",
    .options = inspect_options,
    .settings_size = sizeof(struct inspect_job),
    .operands_exist = true,
    .operands_reach = {OPTION_READS_SET},
    .is_confined = true,
    .run = inspect_command,
};
