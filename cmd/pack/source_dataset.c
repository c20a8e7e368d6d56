/* SPDX-License-Identifier: Apache-2.0
 *
 * A data set of any format as a source. Its records are the samples.
 */
#include "cmd/pack/plugins.h"

#include "base/fail.h"
#include "base/option.h"
#include "base/random.h"
#include "formats/format.h"
#include "cmd/pack/cursor.h"

#include <errno.h>
#include <stdio.h>

struct dataset_settings {
    char *format; /* first: set by source_open() */
};

static const struct option_spec dataset_options[] = {
    {"format", 0, OPTION_TEXT, offsetof(struct dataset_settings, format), "auto",
     .metavar = "NAME[:OPTIONS]", .summary = "format of the data set"},
    {0},
};

struct dataset {
    unsigned parse_flags;
    struct plugin_choice format;
    struct catalog *catalog;
};

static int dataset_detect(const char *path)
{
    int surest;

    format_most_likely(path, &surest);
    return surest;
}

static int skip_fault(void *context, const struct catalog_fault *fault)
{
    struct source_traits *traits = context;

    if (traits->skipped++ == 0)
        snprintf(traits->first_skipped, sizeof traits->first_skipped, "%.300s: offset %llu: %.150s",
                 fault->path, (unsigned long long)fault->offset, fault->what);
    return 0;
}

static int dataset_open(void *state, const void *settings, const char *path,
                        const struct source_config *config, struct source_traits *traits)
{
    const struct dataset_settings *asked = settings;
    struct dataset *dataset = state;
    struct format_scan scan = {.progress = config->progress,
                               .progress_context = config->progress_context,
                               .fault = config->skip ? skip_fault : NULL,
                               .fault_context = traits};
    int code = format_choose(asked->format, path, &dataset->format);
    dataset->parse_flags = format_odd_labels_flags(config->odd_labels);

    /* Use an existing index, but write none into a folder that is only read. */
    if (code == 0 && format_catalog_kept(&dataset->format, path, &dataset->catalog))
        code = format_catalog(&dataset->format, path, false, &scan, &dataset->catalog);
    if (code)
        return code;
    const struct catalog *catalog = dataset->catalog;
    format_say_remarks(catalog);
    const struct remark *left_out = &catalog->remarks[REMARK_LEFT_OUT];
    const struct remark *several = &catalog->remarks[REMARK_SEVERAL_IMAGES];
    if (left_out->count && !config->skip)
        return fail(ENOTSUP, "%s (%llu such samples in all); --on-error skip leaves them out",
                    left_out->first, (unsigned long long)left_out->count);
    if (several->count && !config->skip)
        return fail(ENOTSUP,
                    "%s: several images (%llu such samples in all), of which all but one would be "
                    "lost; --on-error skip takes the first",
                    several->first, (unsigned long long)several->count);
    traits->skipped += left_out->count; /* of an index: a scan reports each as a fault */
    if (left_out->count)
        snprintf(traits->first_skipped, sizeof traits->first_skipped, "%s", left_out->first);
    traits->count = catalog->record_count;
    traits->image_bytes = catalog->record_bytes_total;
    traits->in_order = catalog->compressed;
    for (uint32_t i = 0; i < catalog->shard_count; i++)
        traits->fingerprint =
            random_hash(traits->fingerprint,
                        random_hash(catalog->shards[i].bytes, catalog->shards[i].record_count, i),
                        (uint64_t)catalog->shards[i].mtime_ns);
    snprintf(traits->what, sizeof traits->what, "%s, %u shard%s%s", dataset->format.plugin->name,
             catalog->shard_count, catalog->shard_count == 1 ? "" : "s",
             catalog->compressed ? ", compressed" : "");
    return 0;
}

static void dataset_close(void *state)
{
    struct dataset *dataset = state;

    catalog_destroy(dataset->catalog);
    plugin_release(&dataset->format);
}

static int dataset_cursor_open(void *state, void **cursor)
{
    struct dataset *dataset = state;

    *cursor = cursor_create(dataset->catalog);
    return *cursor ? 0 : -ENOMEM;
}

static void dataset_cursor_close(void *state, void *cursor)
{
    (void)state;
    cursor_destroy(cursor);
}

static int dataset_read(void *state, void *cursor, uint64_t number, struct source_buffer *slot,
                        struct sample *sample)
{
    struct dataset *dataset = state;
    const struct extent *extent = catalog_extent(dataset->catalog, number);
    const struct shard *shard = &dataset->catalog->shards[extent->shard];
    int code = source_reserve(&slot->record, &slot->record_capacity, extent->bytes);

    if (code == 0)
        code = source_reserve(&slot->scratch, &slot->scratch_capacity, extent->bytes);
    if (code == 0)
        code = cursor_read(cursor, number, slot->record);
    if (code)
        return code;
    struct format_scratch scratch = {slot->scratch, slot->scratch_capacity};
    code = format_parse(&dataset->format, shard, slot->record, extent->bytes, dataset->parse_flags,
                        &scratch, sample);
    if (code == 0 && sample->image_bytes == 0)
        code = fail(ENODATA, "no image in it; --on-error skip leaves it out");
    if (code)
        return fail(code, "%s: offset %llu: %s%s", shard->path, (unsigned long long)extent->offset,
                    fail_reason(),
                    !sample->has_odd_label ? ""
                    : sample->odd_text[0]  ? "; --odd-labels none leaves them out"
                                           : "; --odd-labels round takes the nearest");
    return 0;
}

const struct source_ops source_dataset = {
    .plugin = {.name = "dataset",
               .summary = "a data set in any of the formats",
               .options = dataset_options,
               .settings_size = sizeof(struct dataset_settings),
               .state_size = sizeof(struct dataset)},
    .detect = dataset_detect,
    .open = dataset_open,
    .close = dataset_close,
    .cursor_open = dataset_cursor_open,
    .cursor_close = dataset_cursor_close,
    .read = dataset_read,
};
