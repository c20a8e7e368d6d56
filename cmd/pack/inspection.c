/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/pack/inspection.h"

#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "dataset/store.h"
#include "formats/format.h"
#include "cmd/pack/cursor.h"
#include "cmd/pack/image_check.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct option_spec inspect_options[] = {
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

struct inspect {
    const struct inspect_job *job;
    struct inspection *inspection;
    struct plugin_choice format;
    struct catalog *catalog;
    struct cursor *cursor;
    void *record;
    struct format_scratch scratch;
    int32_t *labels; /* among the inspected records */
    uint64_t labelled;
};

/* ---- the catalog ---- */

static int open_catalog(struct inspect *inspect, const struct inspect_observer *observer)
{
    const struct inspect_job *job = inspect->job;
    struct format_scan scan = {.progress = observer ? observer->progress : NULL,
                               .progress_context = observer ? observer->context : NULL};
    int code = format_choose(job->format, job->path, &inspect->format);

    if (code)
        return code;
    code = format_catalog_kept(&inspect->format, job->path, &inspect->catalog);
    inspect->inspection->sidecar = code == 0         ? "fresh"
                                   : code == -ENOENT ? "none"
                                   : code == -ESTALE ? "stale"
                                                     : "damaged";
    if (code)
        code = format_catalog(&inspect->format, job->path, false, &scan, &inspect->catalog);
    return code;
}

/* ---- records ---- */

/* Inspect one record. Returns 0, or a code such as -EBADMSG if it is damaged. */
static int look_into(struct inspect *inspect, uint64_t number, struct inspect_record *seen)
{
    const struct extent *extent = catalog_extent(inspect->catalog, number);
    const struct shard *shard = &inspect->catalog->shards[extent->shard];
    struct inspection *inspection = inspect->inspection;
    struct image_header header = {0};
    struct sample sample;

    *seen = (struct inspect_record){.offset = extent->offset, .bytes = extent->bytes, .label = -1};
    snprintf(seen->shard, sizeof seen->shard, "%s", file_name(shard->path));
    int code = cursor_read(inspect->cursor, number, inspect->record);
    if (code == 0)
        code = format_parse(&inspect->format, shard, inspect->record, extent->bytes,
                            FORMAT_ODD_LABELS, &inspect->scratch, &sample);
    if (code == 0)
        code = format_remark_sample(inspect->catalog, extent, &sample);
    if (code)
        return code;
    seen->label = sample.label;
    seen->id = sample.id;
    seen->image_bytes = sample.image_bytes;
    snprintf(seen->name, sizeof seen->name, "%.*s", (int)sample.name_bytes, sample.name);
    if (sample.image_bytes == 0) {
        seen->kind = "no image";
        return 0;
    }
    if (sample.encoding == SAMPLE_ENCODED) {
        code = image_check_headers(sample.image, sample.image_bytes, &header);
        inspection->of_kind[header.kind]++;
        inspection->raw += header.kind == IMAGE_NETPBM;
        inspection->progressive += header.progressive;
        inspection->gray += header.components == 1;
        inspection->four_components += header.components == 4 && header.kind == IMAGE_JPEG;
    } else {
        header = (struct image_header){
            .width = sample.width, .height = sample.height, .components = sample.channels};
        inspection->raw++;
    }
    seen->kind = sample.encoding != SAMPLE_ENCODED ? "raw" : image_kind_name(header.kind);
    seen->width = header.width;
    seen->height = header.height;
    seen->components = header.components;
    return code;
}

static void count_record(struct inspect *inspect, uint64_t number)
{
    struct inspection *inspection = inspect->inspection;
    struct inspect_record seen;
    int code = look_into(inspect, number, &seen);

    inspection->looked++;
    if (code) {
        seen.damaged = true;
        snprintf(seen.reason, sizeof seen.reason, "%.255s", fail_reason());
        if (inspection->damaged++ == 0)
            snprintf(inspection->first_damage, sizeof inspection->first_damage,
                     "%.300s: offset %llu: %s", seen.shard, (unsigned long long)seen.offset,
                     seen.reason);
    }
    if (number < inspect->job->shown && number < INSPECT_SHOWN)
        inspection->first[inspection->shown++] = seen;
    if (seen.image_bytes)
        histogram_add(&inspection->image_bytes, seen.image_bytes);
    if (seen.width) {
        histogram_add(&inspection->width, seen.width);
        histogram_add(&inspection->height, seen.height);
    }
    if (seen.label >= 0)
        inspect->labels[inspect->labelled++] = seen.label;
    else
        inspection->unlabelled++;
}

static int compare_labels(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

    return (x > y) - (x < y);
}

/* The first few, then evenly spread ones; of compressed shards only the first, since the last would
 * require inflating all before it. */
static int count_records(struct inspect *inspect)
{
    const struct catalog *catalog = inspect->catalog;
    uint64_t wanted = inspect->job->samples < catalog->record_count ? inspect->job->samples
                                                                    : catalog->record_count;
    uint64_t shown = inspect->job->shown < wanted ? inspect->job->shown : wanted;

    inspect->cursor = cursor_create(catalog);
    inspect->record = memory_zeroed(catalog->record_bytes_max);
    inspect->scratch.bytes = memory_zeroed(catalog->record_bytes_max);
    inspect->scratch.capacity = catalog->record_bytes_max;
    inspect->labels = memory_array(wanted + 1, sizeof *inspect->labels);
    if (!inspect->cursor || !inspect->record || !inspect->scratch.bytes || !inspect->labels)
        return -ENOMEM;
    for (uint64_t i = 0; i < shown; i++)
        count_record(inspect, i);
    uint64_t left = wanted - shown, among = catalog->record_count - shown;
    for (uint64_t i = 0; i < left; i++)
        count_record(
            inspect,
            shown + (catalog->compressed ? i : (uint64_t)((unsigned __int128)among * i / left)));
    struct inspection *inspection = inspect->inspection;
    uint64_t run = 0;
    if (inspect->labelled != 0) {
        qsort(inspect->labels, inspect->labelled, sizeof *inspect->labels, compare_labels);
        inspection->label_minimum = inspect->labels[0];
        inspection->label_maximum = inspect->labels[inspect->labelled - 1];
        inspection->class_minimum = UINT64_MAX;
        for (uint64_t i = 0; i < inspect->labelled; i++) {
            run++;
            if (i + 1 < inspect->labelled && inspect->labels[i + 1] == inspect->labels[i])
                continue;
            inspection->classes++;
            if (run < inspection->class_minimum)
                inspection->class_minimum = run;
            if (run > inspection->class_maximum)
                inspection->class_maximum = run;
            run = 0;
        }
    }
    return 0;
}

int inspect_run(const struct inspect_job *job, const struct inspect_observer *observer,
                struct inspection *inspection)
{
    struct inspect inspect = {.job = job, .inspection = inspection};

    *inspection = (struct inspection){0};
    store_set_timeout(job->io_timeout_ns);
    int code = open_catalog(&inspect, observer);
    if (code == 0) {
        snprintf(inspection->format, sizeof inspection->format, "%s", inspect.format.plugin->name);
        inspection->compression = "none";
        for (uint32_t i = 0; i < inspect.catalog->shard_count; i++) {
            histogram_add(&inspection->shard_bytes, inspect.catalog->shards[i].bytes);
            if (inspect.catalog->shards[i].flags & SHARD_GZIP)
                inspection->compression = "gzip";
            else if (inspect.catalog->shards[i].flags & SHARD_ZLIB)
                inspection->compression = "zlib";
            else if (inspect.catalog->shards[i].flags & SHARD_ZSTD)
                inspection->compression = "zstd";
        }
        for (uint64_t i = 0; i < inspect.catalog->record_count; i++)
            histogram_add(&inspection->size_bytes, catalog_extent(inspect.catalog, i)->bytes);
        inspection->shards = inspect.catalog->shard_count;
        inspection->records = inspect.catalog->record_count;
        inspection->data_bytes = catalog_data_bytes(inspect.catalog);
        inspection->record_bytes = inspect.catalog->record_bytes_total;
        inspection->other_files = inspect.catalog->left_out;
        inspection->unread_samples = inspect.catalog->remarks[REMARK_LEFT_OUT].count;
        code = count_records(&inspect);
        format_say_remarks(inspect.catalog);
        inspection->remark_count = catalog_remarks(inspect.catalog, inspection->remarks);
    }
    cursor_destroy(inspect.cursor);
    free(inspect.record);
    free(inspect.scratch.bytes);
    free(inspect.labels);
    catalog_destroy(inspect.catalog);
    plugin_release(&inspect.format);
    return code;
}
