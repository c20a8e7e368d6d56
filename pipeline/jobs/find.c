/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/jobs/find.h"

#include "base/crc32c.h"
#include "base/fail.h"
#include "base/random.h"
#include "dataset/sidecar.h"
#include "dataset/store.h"
#include "decode/decoder.h"
#include "readers/reader.h"
#include "shuffle/plan.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct search {
    const struct job *job;
    const struct format_scan *scan;
    struct job_plugins *plugins;
    struct catalog **catalog;
    struct result *result;
};

/* With --on-error skip: count the damage and report the first place. */
static int note_fault(void *context, const struct catalog_fault *fault)
{
    struct result *result = context;

    if (result->index_faults++ == 0)
        result_notice(result, "the index omits damaged samples, the first: %s: offset %llu: %s",
                      fault->path, (unsigned long long)fault->offset, fault->what);
    return 0;
}

/* Index with many threads; only if there is damage, index again with one thread that can skip it.
 */
static int search(void *context)
{
    const struct search *search = context;
    const struct job *job = search->job;
    const struct plugin_choice *format = &search->plugins->format;
    int code = format_choose(job->read.format, job->read.data, &search->plugins->format);

    if (code)
        return code;
    code = format_catalog(format, job->read.data, true, search->scan, search->catalog);
    /* Retry for damage in a file, not for failures that would recur. */
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

int find_data(const struct job *job, struct ranks *ranks, const struct format_scan *scan,
              struct job_plugins *plugins, struct catalog **catalog, struct result *result)
{
    struct search mine = {
        .job = job, .scan = scan, .plugins = plugins, .catalog = catalog, .result = result};
    uint32_t other = 0;

    store_set_timeout(job->read.io_timeout_ns);
    result->decodes = decoder_of(plugins->decoder.plugin)->gives_pixels;
    int code = options_check_alike(job_options, job, ranks);
    if (code == 0)
        code = ranks_in_turn(ranks, search, &mine);
    if (code)
        return code;
    /* All ranks need the same data set: else some samples are read twice, others never. Not the
     * same names, times and sizes of files, which copies on nodes may not share: an LMDB's map. */
    const struct catalog *found = *catalog;
    code = ranks_compare(
        ranks,
        random_hash(found->record_count, found->record_bytes_total,
                    crc32c(0, found->records, found->record_count * sizeof *found->records)),
        &other);
    if (code == 0 && other)
        code = fail(EINVAL,
                    "%s: the data set differs between nodes: rank %u on %s found other samples "
                    "than rank 0 on %s",
                    job->read.data, other, ranks->peers[other].host, ranks->peers[0].host);
    if (code)
        return code;
    format_say_remarks(found);
    result_note_unread(result, found);
    /* Hints make decoding faster, nothing else: without them, or with bad ones, the job runs. */
    if (decoder_uses_hints(&plugins->decoder)) {
        if (hints_file_load(found, &(*catalog)->hints))
            result_notice(result, "%s: not used; 'iobench verify --entry-points' renews it",
                          fail_reason());
        fail_clear();
    }
    /* The order of --shuffle auto depends on the data. An order that the user chose stays: the
     * reader refuses it if it goes back in a compressed shard. */
    plugin_release(&plugins->shuffle);
    code = shuffle_choose(job->order.shuffle, found->compressed, &plugins->shuffle);
    if (code)
        return code;
    snprintf(result->shuffle, sizeof result->shuffle, "%s", plugins->shuffle.text);
    /* Compressed shards are indexed by offsets in the inflated stream, which only one reader
     * serves.
     */
    const struct plugin *reader = plugins->reader.plugin;
    if (!found->compressed || reader->idle || reader_of(reader)->inflates)
        return 0;
    const struct plugin *inflating = reader_auto(store_of(found->root)->scheme, true);
    result_notice(result,
                  "the shards are compressed as a whole: they are read by the %s reader, not %s, "
                  "and %s shuffles",
                  inflating->name, reader->name, plugins->shuffle.plugin->name);
    plugin_release(&plugins->reader);
    return plugin_choose("reader", reader_registry, inflating->name, &plugins->reader);
}
