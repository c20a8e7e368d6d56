/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/jobs/find.h"

#include "base/crc32c.h"
#include "base/fail.h"
#include "base/memory.h"
#include "dataset/store.h"
#include "decode/decoder.h"
#include "readers/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct search {
    const struct job *job;
    const struct format_scan *scan;
    struct job_plugins *plugins;
    struct catalog **catalog;
    struct result *result;
};

/* With --on-error skip damage is left out, counted, and the first place of it told. */
static int note_fault(void *context, const struct catalog_fault *fault)
{
    struct result *result = context;

    if (result->index_faults++ == 0)
        result_notice(result,
                      "the index leaves out what is damaged, the first: %s: offset %llu: %s",
                      fault->path, (unsigned long long)fault->offset, fault->what);
    return 0;
}

/* A sound set is indexed by many threads; only where there is damage is it walked again, by one. */
static int search(void *context)
{
    const struct search *search = context;
    const struct job *job = search->job;
    const struct plugin_choice *format = &search->plugins->format;
    int code = format_choose(job->read.format, job->read.data, &search->plugins->format);

    if (code)
        return code;
    code = format_catalog(format, job->read.data, true, search->scan, search->catalog);
    /* Whatever is wrong with one file, but not what would be as wrong the second time. */
    if (code == 0 || code == -ENOMEM || code == -EINTR || code == -ECANCELED ||
        code == -ETIMEDOUT || code == -EINPROGRESS)
        return code;
    if (job->read.on_error != JOB_ERROR_SKIP)
        return code;
    struct format_scan skipping = *search->scan;
    skipping.fault = note_fault;
    skipping.fault_context = search->result;
    return format_catalog(format, job->read.data, false, &skipping, search->catalog);
}

/* Ranks may keep the set elsewhere, and may have to make do with less than others. All else is told
 * once, for all of them. */
static bool may_differ(const char *option)
{
    static const char *const names[] = {"data",       "json",       "csv",    "series",
                                        "label",      "ranks",      "rank",   "decode-threads",
                                        "memory",     "limit-rate", "reader", "io-timeout",
                                        "io-threads", "iodepth",    NULL};
    const char *const *name = names;

    while (*name && strcmp(*name, option) != 0)
        name++;
    return *name != NULL;
}

enum { OPTIONS_MAX = 128 };

/* Another seed on one rank, and samples come twice while others never do. */
static int check_options(const struct job *job, struct ranks *ranks)
{
    uint32_t mine[OPTIONS_MAX] = {0}, count = 0;
    uint32_t *all = memory_array(ranks->place.ranks, sizeof mine);
    char text[4096];

    for (const struct option_spec *row = job_options; row->name && count < OPTIONS_MAX; row++) {
        option_text(row, job, text, sizeof text);
        mine[count++] = may_differ(row->name) ? 0 : crc32c(0, text, strlen(text));
    }
    int code = ranks_meet(ranks, all ? 0 : -ENOMEM, NULL);
    if (code == 0)
        code = ranks_gather(ranks, mine, sizeof mine, all);
    for (uint32_t i = 0; code == 0 && i < ranks->place.ranks * OPTIONS_MAX; i++)
        if (all[i] != all[i % OPTIONS_MAX])
            code = fail(EINVAL,
                        "--%s of rank %u is not that of rank 0: all ranks of a job take the same "
                        "options",
                        job_options[i % OPTIONS_MAX].name, i / OPTIONS_MAX);
    free(all);
    return code;
}

/* What every rank takes for the data set must be the same. */
static int check_same(const struct job *job, struct ranks *ranks, const struct catalog *catalog)
{
    const double records = (double)catalog->record_count,
                 bytes = (double)catalog->record_bytes_total, count = ranks->place.ranks;
    double sums[] = {records, bytes};
    int code = ranks_sum(ranks, sums, 2);

    if (code == 0 && (sums[0] != records * count || sums[1] != bytes * count))
        code = fail(EINVAL,
                    "%s: it is not the same data set on all nodes: %.0f samples of %.0f bytes "
                    "here, %.1f of %.1f bytes in the mean",
                    job->read.data, records, bytes, sums[0] / count, sums[1] / count);
    return code;
}

/* The index of compressed shards is of the inflated stream, which one reader alone can serve. */
static int check_compressed(const struct catalog *catalog, struct job_plugins *plugins,
                            struct result *result)
{
    const struct plugin *reader = plugins->reader.plugin;
    const struct plugin *inflating = reader_auto(store_of(catalog->root)->scheme, true);

    if (!catalog->compressed || reader->idle || reader_of(reader)->inflates)
        return 0;
    result_notice(result,
                  "the shards are compressed as a whole: they are read by the %s reader, not %s",
                  inflating->name, reader->name);
    plugin_release(&plugins->reader);
    return plugin_choose("reader", reader_registry, inflating->name, &plugins->reader);
}

int find_data(const struct job *job, struct ranks *ranks, const struct format_scan *scan,
              struct job_plugins *plugins, struct catalog **catalog, struct result *result)
{
    struct search mine = {
        .job = job, .scan = scan, .plugins = plugins, .catalog = catalog, .result = result};

    store_set_timeout(job->read.io_timeout_ns);
    int code = ranks->place.ranks > 1 ? check_options(job, ranks) : 0;
    if (code == 0)
        code = ranks_in_turn(ranks, search, &mine);
    if (code == 0)
        code = check_same(job, ranks, *catalog);
    if (code == 0)
        result_note_unread(result, *catalog);
    result->decodes = decoder_of(plugins->decoder.plugin)->gives_pixels;
    return code ? code : check_compressed(*catalog, plugins, result);
}
