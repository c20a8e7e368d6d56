/* SPDX-License-Identifier: Apache-2.0
 *
 * iobench inspect: describes a data set.
 */
#include "base/bytes.h"
#include "base/escape.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/image_header.h"
#include "base/sample.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/option.h"
#include "base/stats.h"
#include "cmd/commands.h"
#include "cmd/outputs.h"
#include "cmd/pack/cursor.h"
#include "cmd/pack/packing.h"
#include "dataset/catalog.h"
#include "dataset/store.h"
#include "formats/format.h"
#include "report/words.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* inspect: describes a data set: its files, the sizes of its records, and what a sample of them
 * contains. Writes nothing, not even a sidecar. One thread.
 */

enum { INSPECT_SHOWN = 8, INSPECT_NAME_BYTES = 64 };

struct inspect_job {
    const char *path;       /* borrowed */
    char *format;           /* "auto" or NAME[:OPTIONS] */
    uint64_t samples;       /* number of records to inspect */
    uint64_t io_timeout_ns; /* see store_set_timeout() */
    uint64_t shown;         /* of the first records, at most INSPECT_SHOWN */
    char *json;             /* for the calling command */
};

struct inspect_record {
    char shard[INSPECT_NAME_BYTES]; /* last part of the path */
    char name[INSPECT_NAME_BYTES];
    uint64_t offset, bytes, id, image_bytes;
    int32_t label;
    uint32_t width, height, components;
    const char *kind; /* "JPEG", "PNG", "raw", "other" */
    char reason[256]; /* "": not damaged */
};

/* What is being inspected, and what was found. */
struct inspection {
    const struct inspect_job *job;
    struct plugin_choice format;
    struct catalog *catalog;
    struct cursor *cursor;
    const char *sidecar;                      /* "fresh", "stale", "damaged", "none" */
    const char *compression;                  /* "none", "gzip", "zlib", "zstd" */
    struct histogram shard_bytes, size_bytes; /* of each shard, of each record */
    /* of the inspected records */
    uint64_t looked, damaged, raw, progressive, gray, four_components;
    uint64_t of_kind[IMAGE_KINDS]; /* by the images' first bytes */
    char first_damage[640];        /* of the first inspected record: file, offset and fault */
    struct histogram image_bytes, width, height;
    uint64_t labelled, unlabelled, classes; /* classes: distinct labels */
    int32_t *labels, label_minimum, label_maximum;
    uint64_t class_minimum,
        class_maximum; /* records with the rarest and with the commonest label */
    uint32_t shown;
    struct inspect_record first[INSPECT_SHOWN];
};

/* What is counted among the inspected records: key in JSON, and name. */
#define COUNTED(member) offsetof(struct inspection, member)
static const struct {
    const char *key, *name;
    size_t offset;
} counted[] = {
    {"jpeg", "JPEG", COUNTED(of_kind[IMAGE_JPEG])},
    {"png", "PNG", COUNTED(of_kind[IMAGE_PNG])},
    {"webp", "WebP", COUNTED(of_kind[IMAGE_WEBP])},
    {"gif", "GIF", COUNTED(of_kind[IMAGE_GIF])},
    {"bmp", "BMP", COUNTED(of_kind[IMAGE_BMP])},
    {"raw", "raw", COUNTED(raw)},
    {"other", "of other kinds", COUNTED(of_kind[IMAGE_UNKNOWN])},
    {"progressive", "progressive", COUNTED(progressive)},
    {"gray", "gray", COUNTED(gray)},
    {"cmyk", "CMYK or YCCK", COUNTED(four_components)},
};

static uint64_t count_of(const struct inspection *found, size_t row)
{
    return *(const uint64_t *)(const void *)((const char *)found + counted[row].offset);
}

static const struct option_spec inspect_options[] = {
    {"format", 'f', OPTION_TEXT, offsetof(struct inspect_job, format), "auto",
     .metavar = "NAME[:OPTIONS]", .summary = "format of the data set"},
    {"samples", 'n', OPTION_COUNT, offsetof(struct inspect_job, samples), "2000", .maximum = 1e9,
     .summary = "number of records to inspect, spread over the data set"},
    {"show", 0, OPTION_COUNT, offsetof(struct inspect_job, shown), "3", .maximum = INSPECT_SHOWN,
     .summary = "number of first records to show"},
    {"json", 0, OPTION_TEXT, offsetof(struct inspect_job, json), .metavar = "FILE",
     .reach = OPTION_WRITES, .begins = "{\"data\": \"\", \"unread_samples\"", .implied = "-",
     .summary = "write JSON to FILE, by default to standard output"},
    {"io-timeout", 0, OPTION_DURATION, offsetof(struct inspect_job, io_timeout_ns), "60s",
     .zero = "none", .summary = "time-out for a server that does not respond (nfs://)"},
    {0},
};

/* ---- records ---- */

/* Inspect one record. Returns 0, also if it is damaged, or -ENOMEM. */
static int count_record(struct inspection *inspection, uint64_t number)
{
    const struct extent *extent = catalog_extent(inspection->catalog, number);
    struct inspect_record seen = {.offset = extent->offset, .bytes = extent->bytes, .label = -1};
    struct image_header header = {0};
    struct sample sample;

    snprintf(seen.shard, sizeof seen.shard, "%s",
             file_name(inspection->catalog->shards[extent->shard].path));
    int code = cursor_load(inspection->cursor, number);
    if (code == 0)
        code = cursor_parse(inspection->cursor, &inspection->format, FORMAT_ODD_LABELS, &sample);
    if (code == 0)
        code = format_remark_sample(inspection->catalog, extent, &sample);
    if (code == -ENOMEM)
        return code;
    if (code == 0) {
        seen.label = sample.label;
        seen.id = sample.id;
        seen.image_bytes = sample.image_bytes;
        snprintf(seen.name, sizeof seen.name, "%.*s", (int)sample.name_bytes, sample.name);
        if (sample.image_bytes == 0) {
            seen.kind = "no image";
        } else if (sample.encoding == SAMPLE_ENCODED) {
            code = image_header_check(sample.image, sample.image_bytes, &header);
            seen.kind = image_kind_name(header.kind);
            inspection->of_kind[header.kind]++;
            inspection->raw += header.kind == IMAGE_NETPBM;
            inspection->progressive += header.progressive;
            inspection->gray += header.components == 1;
            inspection->four_components += header.components == 4 && header.kind == IMAGE_JPEG;
        } else {
            header = (struct image_header){
                .width = sample.width, .height = sample.height, .components = sample.channels};
            seen.kind = "raw";
            inspection->raw++;
        }
        seen.width = header.width;
        seen.height = header.height;
        seen.components = header.components;
    }
    inspection->looked++;
    if (code) {
        snprintf(seen.reason, sizeof seen.reason, "%.255s", fail_reason());
        if (inspection->damaged++ == 0)
            snprintf(inspection->first_damage, sizeof inspection->first_damage,
                     "%.300s: offset %llu: %s", seen.shard, (unsigned long long)seen.offset,
                     seen.reason);
    }
    if (number < inspection->job->shown && number < INSPECT_SHOWN)
        inspection->first[inspection->shown++] = seen;
    if (seen.image_bytes)
        histogram_add(&inspection->image_bytes, seen.image_bytes);
    if (seen.width) {
        histogram_add(&inspection->width, seen.width);
        histogram_add(&inspection->height, seen.height);
    }
    if (seen.label >= 0)
        inspection->labels[inspection->labelled++] = seen.label;
    else
        inspection->unlabelled++;
    return 0;
}

/* The first few, then evenly spread ones; of compressed shards only the first, since the last would
 * require inflating all before it. */
static int count_records(struct inspection *inspection)
{
    const struct catalog *catalog = inspection->catalog;
    uint64_t wanted = inspection->job->samples < catalog->record_count ? inspection->job->samples
                                                                       : catalog->record_count;
    uint64_t shown = inspection->job->shown < wanted ? inspection->job->shown : wanted;

    inspection->cursor = cursor_create(catalog);
    inspection->labels = memory_array(wanted + 1, sizeof *inspection->labels);
    if (!inspection->cursor || !inspection->labels)
        return -ENOMEM;
    const unsigned __int128 among = catalog->record_count - shown;
    uint64_t run = 0;
    int code = 0;
    for (uint64_t i = 0; i < wanted && code == 0; i++)
        code = count_record(inspection,
                            i < shown || catalog->compressed
                                ? i
                                : shown + (uint64_t)(among * (i - shown) / (wanted - shown)));
    if (inspection->labelled != 0) {
        qsort(inspection->labels, inspection->labelled, sizeof *inspection->labels, labels_compare);
        inspection->label_minimum = inspection->labels[0];
        inspection->label_maximum = inspection->labels[inspection->labelled - 1];
        inspection->class_minimum = UINT64_MAX;
        for (uint64_t i = 0; i < inspection->labelled; i++) {
            run++;
            if (i + 1 < inspection->labelled && inspection->labels[i + 1] == inspection->labels[i])
                continue;
            inspection->classes++;
            if (run < inspection->class_minimum)
                inspection->class_minimum = run;
            if (run > inspection->class_maximum)
                inspection->class_maximum = run;
            run = 0;
        }
    }
    return code;
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
    if (record->reason[0])
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

static void print_inspection(const struct inspection *found)
{
    const struct catalog *catalog = found->catalog;
    char count[WORDS_BYTES], bytes[WORDS_BYTES];

    printf("%s\n", escape_shown(found->job->path));
    printf("format     %s, compression %s\n", found->format.plugin->name, found->compression);
    printf("shards     %s, %s\n", words_count(catalog->shard_count, count),
           bytes_text(catalog_data_bytes(catalog), bytes, sizeof bytes));
    if (catalog->shard_count > 1)
        print_sizes("", &found->shard_bytes);
    printf("records    %s, %s\n", words_count(catalog->record_count, count),
           bytes_text(catalog->record_bytes_total, bytes, sizeof bytes));
    print_sizes("", &found->size_bytes);
    printf("index      %s\n", strcmp(found->sidecar, "fresh") == 0 ? "kept beside the data"
                              : strcmp(found->sidecar, "none") == 0
                                  ? "none yet; the first run writes it"
                              : strcmp(found->sidecar, "stale") == 0
                                  ? "stale: the data changed; the next run rewrites it"
                                  : "damaged; the next run rewrites it");
    printf("sampled    %s record%s:", words_count(found->looked, count),
           found->looked == 1 ? "" : "s");
    const char *comma = " ";
    for (size_t i = 0; i < sizeof counted / sizeof *counted; i++) {
        if (count_of(found, i)) {
            printf("%s%s %s", comma, words_count(count_of(found, i), count), counted[i].name);
            comma = ", ";
        }
    }
    if (found->damaged)
        printf("%s%s damaged", comma, words_count(found->damaged, count));
    putchar('\n');
    if (found->width.count)
        printf("pixels     %" PRIu64 " x %" PRIu64 " median, up to %" PRIu64 " x %" PRIu64 "\n",
               histogram_quantile(&found->width, 0.5), histogram_quantile(&found->height, 0.5),
               found->width.maximum, found->height.maximum);
    if (found->classes == 0)
        printf("labels     none\n");
    else {
        printf("labels     %" PRId32 " .. %" PRId32 ", %" PRIu64 " different, %" PRIu64
               " to %" PRIu64 " records each",
               found->label_minimum, found->label_maximum, found->classes, found->class_minimum,
               found->class_maximum);
        if (found->unlabelled)
            printf(", %" PRIu64 " records without label", found->unlabelled);
        putchar('\n');
    }
    for (uint32_t i = 0; i < found->shown; i++) {
        const struct inspect_record *record = &found->first[i];
        printf("record %-3" PRIu32 " %s at %" PRIu64 ": ", i, escape_shown(record->shard),
               record->offset);
        if (record->reason[0])
            printf("damaged: %s\n", escape_shown(record->reason));
        else {
            printf("label %" PRId32 ", %s %" PRIu32 " x %" PRIu32 ", %s", record->label,
                   record->kind, record->width, record->height,
                   bytes_text(record->image_bytes, bytes, sizeof bytes));
            printf("%s%s\n", record->name[0] ? ", " : "", escape_shown(record->name));
        }
    }
    if (catalog->left_out)
        printf("other      %s file%s without samples\n", words_count(catalog->left_out, count),
               catalog->left_out == 1 ? "" : "s");
    if (found->damaged)
        printf("DAMAGED    %s of %s sampled records, the first: %s; to check all: iobench verify\n",
               words_count(found->damaged, count), words_count(found->looked, bytes),
               escape_shown(found->first_damage));
}

static json_t *inspection_json(const struct inspection *found)
{
    json_t *labels =
        found->classes == 0
            ? json_null()
            : json_pack("{s:i, s:i, s:I, s:I, s:I, s:I}", "minimum", (int)found->label_minimum,
                        "maximum", (int)found->label_maximum, "different",
                        (json_int_t)found->classes, "fewest_records",
                        (json_int_t)found->class_minimum, "most_records",
                        (json_int_t)found->class_maximum, "records_without",
                        (json_int_t)found->unlabelled);
    const struct catalog *catalog = found->catalog;
    char remarks[REMARK_KINDS][REMARK_TEXT_BYTES];
    const uint32_t remark_count = catalog_remarks(catalog, remarks);
    json_t *first = json_array();

    for (uint32_t i = 0; i < found->shown; i++)
        json_array_append_new(first, record_json(&found->first[i]));
    json_t *looked = json_pack("{s:I, s:I, s:o}", "records", (json_int_t)found->looked, "damaged",
                               (json_int_t)found->damaged, "first_damage",
                               found->damaged ? json_text(found->first_damage) : json_null());
    for (size_t i = 0; i < sizeof counted / sizeof *counted; i++)
        json_object_set_new(looked, counted[i].key, json_integer((json_int_t)count_of(found, i)));
    json_object_set_new(looked, "image_bytes", sizes_json(&found->image_bytes));
    json_object_set_new(looked, "width_pixels", sizes_json(&found->width));
    json_object_set_new(looked, "height_pixels", sizes_json(&found->height));
    json_object_set_new(looked, "labels", labels);
    return json_pack("{s:o, s:I, s:I, s:o, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o}",
                     "data", json_text(found->job->path), "unread_samples",
                     (json_int_t)catalog->remarks[REMARK_LEFT_OUT].count, "other_files",
                     (json_int_t)catalog->left_out, "remarks",
                     json_texts(remark_count, REMARK_TEXT_BYTES, remarks[0]), "format",
                     found->format.plugin->name, "compression", found->compression, "index",
                     found->sidecar, "shards", (json_int_t)catalog->shard_count, "records",
                     (json_int_t)catalog->record_count, "data_bytes",
                     (json_int_t)catalog_data_bytes(catalog), "record_bytes_total",
                     (json_int_t)catalog->record_bytes_total, "shard_bytes",
                     sizes_json(&found->shard_bytes), "record_bytes",
                     sizes_json(&found->size_bytes), "looked_at", looked, "first_records", first);
}

static int inspect_command(const struct invocation *invocation)
{
    struct inspect_job *job = invocation->settings;
    struct pack_line line = {.line = line_start(), .looking = "indexing"};
    const struct format_scan scan = {.progress = pack_show_look, .progress_context = &line};
    /* It is large: do not put it on the stack. */
    struct inspection *found = memory_zeroed(sizeof *found);
    bool sound = false;

    if (!found)
        return command_failed(invocation);
    job->path = invocation->operands[0];
    found->job = job;
    store_set_timeout(job->io_timeout_ns);
    int code = format_choose(job->format, job->path, &found->format);
    if (code == 0) {
        code = format_catalog_kept(&found->format, job->path, &found->catalog);
        found->sidecar = code == 0         ? "fresh"
                         : code == -ENOENT ? "none"
                         : code == -ESTALE ? "stale"
                                           : "damaged";
        if (code)
            code = format_catalog(&found->format, job->path, false, &scan, &found->catalog);
    }
    const struct catalog *catalog = found->catalog;
    if (code == 0) {
        found->compression = "none";
        for (uint32_t i = 0; i < catalog->shard_count; i++) {
            const uint32_t flags = catalog->shards[i].flags;
            histogram_add(&found->shard_bytes, catalog->shards[i].bytes);
            found->compression = flags & SHARD_GZIP   ? "gzip"
                                 : flags & SHARD_ZLIB ? "zlib"
                                 : flags & SHARD_ZSTD ? "zstd"
                                                      : found->compression;
        }
        for (uint64_t i = 0; i < catalog->record_count; i++)
            histogram_add(&found->size_bytes, catalog_extent(catalog, i)->bytes);
        code = count_records(found);
        format_say_remarks(catalog);
    }
    line_clear(&line.line);
    if (code == 0 && job->json)
        code = json_file_write(job->json, inspection_json(found));
    if (code == 0) {
        if (!(job->json && strcmp(job->json, "-") == 0))
            print_inspection(found);
        sound = found->damaged + catalog->remarks[REMARK_LEFT_OUT].count == 0;
    }
    cursor_destroy(found->cursor);
    free(found->labels);
    catalog_destroy(found->catalog);
    plugin_release(&found->format);
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
