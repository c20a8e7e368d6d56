/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/settings/job.h"

#include "base/crc32c.h"
#include "base/fail.h"
#include "base/memory.h"
#include "dataset/store.h"
#include "decode/decoder.h"
#include "formats/format.h"
#include "readers/reader.h"
#include "shuffle/plan.h"
#include "trainer/trainer.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const job_drop_names[] = {"no", "yes", "strict", NULL};
const char *const job_on_error_names[] = {"stop", "skip", NULL};

/* clang-format off */
#define FIELD(field) JOB_FIELD(0, field)
const struct option_spec job_options[] = {
    {"data", 'd', OPTION_TEXT, FIELD(read.data), .metavar = "PATH",
     .reach = OPTION_INDEXES_SET, .section = "Data set",
     .summary = "file or folder of the data set, or nfs://server/export/path; default: a "
                "synthetic set, generated once and kept"},
    JOB_SET_ROWS(0),
    JOB_AS_ROW(0),
    JOB_WORKLOAD_ROW(0),

    JOB_READER_ROWS(0),

    JOB_ORDER_ROWS(0),
    JOB_SEED_ROW(0),
    {"resume-at", 0, OPTION_TEXT, FIELD(order.resume_at), .metavar = "EPOCH:SAMPLE",
     .summary = "resume at this epoch and sample, both from 0, as after a checkpoint"},
    {"ranks", 0, OPTION_COUNT, FIELD(order.ranks), .fallback = "1", .minimum = 1, .maximum = 1 << 20,
     .summary = "number of processes that share the data set; set by mpirun and srun"},
    {"rank", 0, OPTION_COUNT, FIELD(order.rank), .fallback = "0", .maximum = 1 << 20,
     .summary = "rank of this process, from 0"},
    JOB_RANK_TIMEOUT_ROW(0),

    JOB_DECODE_ROWS(0),
    JOB_ENTRY_POINTS_ROW(0),
    {"trainer", 'T', OPTION_TEXT, FIELD(trainer), .fallback = "none", .metavar = "NAME[:...]",
     .summary = "consumer of the batches: replay:h200 waits as long as an H200 computes, "
                "resnet50 trains"},
    {"batch-size", 'B', OPTION_COUNT, FIELD(batch_size), .fallback = "256", .minimum = 1,
     .maximum = 1 << 20, .summary = "samples per batch"},
    {"epochs", 'e', OPTION_COUNT, FIELD(epochs), .fallback = "1", .minimum = 1,
     .maximum = 1 << 20, .summary = "passes over the data set in each run"},
    {"runs", 'n', OPTION_COUNT, FIELD(runs), .fallback = "3", .zero = "auto", .minimum = 1,
     .maximum = 10000,
     .summary = "repetitions; reports the median and its 95% interval; auto repeats until the "
                "interval is narrow enough (--until)"},
    {"until", 0, OPTION_REAL, FIELD(until_percent), .fallback = "none", .zero = "none",
     .minimum = 0.1, .maximum = 100, .percent = true, .metavar = "PERCENT",
     .summary = "half-width of the interval at which --runs auto ends, after at least 5 runs; "
                "default 2%"},
    {"until-runs", 0, OPTION_COUNT, FIELD(until_runs), .fallback = "50", .minimum = 5,
     .maximum = 10000, .summary = "most runs of --runs auto"},
    {"until-time", 0, OPTION_DURATION, FIELD(until_time_ns), .fallback = "30m", .zero = "none",
     .summary = "longest time of --runs auto"},
    {"overlap-epochs", 0, OPTION_FLAG, FIELD(order.overlap_epochs), .fallback = "no",
     .summary = "start planning and reading the next epoch before this one is consumed"},

    {"start-at", 0, OPTION_TEXT, FIELD(start_at), .metavar = "TIME",
     .summary = "once caches are dropped, wait until this time of day (2026-01-31T12:00:00Z, or "
                "@SECONDS since 1970), so that runs on several machines start together (iobench "
                "gather); with --runs 1"},

    JOB_COLD_ROWS(0),

    {"against", 0, OPTION_TEXT, FIELD(against), .metavar = "'OPTIONS'", .repeats = true,
     .section = "Comparison",
     .summary = "also measure with these options added, alternating runs in random order, and "
                "compare; may be repeated"},
    {"paired", 0, OPTION_FLAG, FIELD(paired), .fallback = "no",
     .summary = "alternate the sections of a job file in the same way, and compare each with the "
                "first"},
    {"turns", 0, OPTION_COUNT, FIELD(turns), .fallback = "1", .minimum = 1, .maximum = 1000,
     .summary = "runs of each job per pair of --against or --paired, whose mean is the pair's "
                "figure: several short runs cancel drift that one long run does not"},
    {"order-seed", 0, OPTION_COUNT, FIELD(order_seed), .fallback = "random", .zero = "random",
     .maximum = 4294967295,
     .summary = "random seed of the order in which --against, --paired and --beside alternate"},
    {"beside", 0, OPTION_TEXT, FIELD(beside), .metavar = "'OPTIONS'",
     .summary = "also measure a second job with these options added to the others, at the same "
                "time: each alone and both at once, alternating, and the slow-down of each"},

    {"json", 'j', OPTION_TEXT, FIELD(output.json), .metavar = "FILE", .reach = OPTION_WRITES,
     .section = "Output",
     .summary = "write the result as JSON; - is standard output instead of the table"},
    {"csv", 0, OPTION_TEXT, FIELD(output.csv), .metavar = "FILE", .reach = OPTION_WRITES,
     .summary = "write one CSV row per epoch; - is standard output instead of the table"},
    JOB_SERIES_ROWS(0),
    {"profile", 0, OPTION_TEXT, FIELD(output.profile), .metavar = "FILE", .reach = OPTION_WRITES,
     .summary = "write storage, data and decoding as measured, as a profile for 'iobench size'"},
    {"trace", 0, OPTION_TEXT, FIELD(output.trace), .metavar = "FILE", .reach = OPTION_WRITES,
     .summary = "write what rank 0 did and when in the first run, as JSON for Perfetto "
                "(ui.perfetto.dev)"},
    {"digest", 0, OPTION_FLAG, FIELD(decode.digest), .fallback = "no",
     .summary = "print a checksum over all (label, image) pairs; independent of sample order"},
    {"calibrate", 0, OPTION_FLAG, FIELD(calibrate), .fallback = "yes",
     .summary = "first measure the ceiling of the program itself, without storage"},
    {"require-samples-per-s", 0, OPTION_REAL, FIELD(require_samples_per_s), .fallback = "none",
     .zero = "none", .maximum = 1e15, .metavar = "N",
     .summary = "fail unless the median of the runs reaches this rate, of all ranks together"},
    {"require-rate", 0, OPTION_SIZE, FIELD(require_rate_bytes), .fallback = "none", .zero = "none",
     .per_second = true, .summary = "the same in bytes of records (500MiB/s, 1GB/s)"},
    {"dry-run", 0, OPTION_FLAG, FIELD(dry_run), .fallback = "no",
     .summary = "print the plan and its memory; read nothing"},
    {0},
};
#undef FIELD
/* clang-format on */

/* For "auto", choose the first reader that serves the data and works here. */
static int choose_reader(const struct job *job, struct job_plugins *plugins)
{
    const char *scheme = job->read.data ? store_of(job->read.data)->scheme : "";

    plugins->reader_is_auto = strcmp(job->read.reader, "auto") == 0;
    const struct plugin *best =
        plugins->reader_is_auto || *scheme ? reader_auto(scheme, false) : NULL;
    if (plugins->reader_is_auto && !best)
        return store_check(job->read.data)
                   ? -EINVAL
                   : fail(EINVAL, "%s: no reader for %s", job->read.data, scheme);
    int code =
        plugin_choose("reader", reader_registry,
                      plugins->reader_is_auto ? best->name : job->read.reader, &plugins->reader);
    if (code == 0 && !reader_of(plugins->reader.plugin)->falls_back) /* else open() decides */
        code = plugin_usable(plugins->reader.plugin);
    if (code || !*scheme || reader_serves(plugins->reader.plugin, scheme))
        return code;
    return fail(EINVAL, "--reader %s does not read %s: use --reader %s, or mount it",
                job->read.reader, job->read.data, best ? best->name : "auto");
}

/* --direct sets the reader's own option of that name. A server's files never were in this machine's
 * cache, whatever reads them. */
static int apply_direct(const struct job *job, struct plugin_choice *reader, bool *direct)
{
    const struct option_spec *options = reader->plugin->options;
    const struct option_spec *row = options ? option_find(options, "direct") : NULL;
    char text[8];
    int code = 0;

    if (reader_of(reader->plugin)->bypasses_cache) {
        *direct = !reader_of(reader->plugin)->scheme;
        return 0;
    }
    if (job->read.direct && !row)
        return fail(EINVAL, "--direct: the reader %s cannot bypass the page cache",
                    reader->plugin->name);
    if (job->read.direct)
        code = option_set(options, reader->settings, "direct", "yes", "--direct");
    *direct = row && strcmp(option_text(row, reader->settings, text, sizeof text), "yes") == 0;
    return code;
}

double job_until_percent(const struct job *job)
{
    return job->until_percent > 0 ? job->until_percent : 2;
}

uint64_t job_runs_most(const struct job *job)
{
    return (job->runs ? job->runs : job->until_runs) * job->turns;
}

int job_resume(const struct job *job, struct resume_point *point)
{
    unsigned long long epoch, sample;
    int end = 0;

    *point = (struct resume_point){0};
    if (!job->order.resume_at)
        return 0;
    if (sscanf(job->order.resume_at, "%llu:%llu%n", &epoch, &sample, &end) != 2 ||
        job->order.resume_at[end] != '\0')
        return fail(EINVAL, "--resume-at: '%s' is not EPOCH:SAMPLE, as in 3:25600",
                    job->order.resume_at);
    if (sample % job->batch_size)
        return fail(EINVAL, "--resume-at: sample %llu is not at the start of a batch of %llu",
                    sample, (unsigned long long)job->batch_size);
    *point = (struct resume_point){.epoch = epoch, .sample = sample};
    return 0;
}

uint64_t order_rank_samples(const struct order_settings *order)
{
    if (!order->limit_samples)
        return order->limit_samples_per_rank;
    const uint64_t share = order->limit_samples / order->ranks;
    const uint64_t rest = order->limit_samples % order->ranks;
    switch ((enum plan_remainder)order->remainder) {
    case PLAN_UNEVEN:
        return share + (order->rank < rest);
    case PLAN_PAD:
        return share + (rest > 0);
    case PLAN_DROP:
        break;
    }
    return share;
}

const char *job_output(const struct job *job, const struct option_spec *row)
{
    return row->reach == OPTION_WRITES
               ? *(char *const *)(const void *)((const char *)job + row->offset)
               : NULL;
}

int job_stdout_count(const struct job *job)
{
    int count = 0;

    for (const struct option_spec *row = job_options; row->name; row++)
        count += job_output(job, row) && strcmp(job_output(job, row), "-") == 0;
    return count;
}

static int check_job(const struct job *job)
{
    const struct order_settings *order = &job->order;
    struct plugin_choice format;
    struct resume_point point;

    if (job->runs && job->until_percent > 0)
        return fail(EINVAL, "--until is for --runs auto, not --runs %llu",
                    (unsigned long long)job->runs);
    if (order->rank >= order->ranks)
        return fail(EINVAL, "--rank %llu: with --ranks %llu ranks are numbered 0 to %llu",
                    (unsigned long long)order->rank, (unsigned long long)order->ranks,
                    (unsigned long long)order->ranks - 1);
    if (job->cold.server_drop_command && job->cold.drop_caches == JOB_DROP_NO)
        return fail(EINVAL, "--server-drop-cmd is run only with --drop-caches");
    if (job_stdout_count(job) > 1)
        return fail(EINVAL, "only one of --json, --csv, --series, --profile and --trace can use "
                            "standard output");
    if (job->output.series && !job->output.sample_interval_ns)
        return fail(EINVAL, "--series: with --sample-interval none there is nothing to write");
    if (order->limit_samples && order->limit_samples_per_rank)
        return fail(EINVAL, "only one of --limit-samples and --limit-samples-per-rank applies");
    if (order->limit_samples &&
        order->limit_samples < order->ranks) /* a share of 0 would mean all */
        return fail(EINVAL, "--limit-samples %llu: fewer than the %llu ranks",
                    (unsigned long long)order->limit_samples, (unsigned long long)order->ranks);
    int code = job_resume(job, &point);
    if (code || strcmp(job->read.format, "auto") == 0)
        return code;
    code = plugin_choose("format", format_registry, job->read.format, &format);
    if (code == 0)
        plugin_release(&format);
    return code;
}

int job_choose(const struct job *job, struct job_plugins *plugins)
{
    *plugins = (struct job_plugins){0};
    int code = check_job(job);
    if (code == 0)
        code = choose_reader(job, plugins);
    if (code == 0)
        code = apply_direct(job, &plugins->reader, &plugins->direct);
    if (code == 0)
        code = shuffle_choose(job->order.shuffle, false, &plugins->shuffle);
    if (code == 0)
        code = plugin_choose("decoder", decoder_registry, job->decode.decoder, &plugins->decoder);
    if (code == 0)
        code = plugin_usable(plugins->decoder.plugin);
    if (code == 0 && job->decode.entry_points && !decoder_of(plugins->decoder.plugin)->make_hint)
        code = fail(EINVAL, "--entry-points: decoder %s finds none", job->decode.decoder);
    if (code == 0)
        code = trainer_choose(job->trainer, &plugins->trainer);
    if (code == 0)
        code = plugin_usable(plugins->trainer.plugin);
    if (code)
        job_release(plugins);
    return code;
}

int job_share(struct job *job, const struct ranks_place *place)
{
    if (place->ranks == 1)
        return 0;
    if (job->order.ranks != 1 || job->order.rank != 0)
        return fail(EINVAL, "--ranks and --rank cannot be used under mpirun or srun (%u ranks)",
                    place->ranks);
    job->order.ranks = place->ranks;
    job->order.rank = place->rank;
    if (job->order.remainder == PLAN_UNEVEN && trainer_is_synchronous(job->trainer))
        job->order.remainder = PLAN_DROP;
    return 0;
}

void job_release(struct job_plugins *plugins)
{
    plugin_release(&plugins->format);
    plugin_release(&plugins->reader);
    plugin_release(&plugins->shuffle);
    plugin_release(&plugins->decoder);
    plugin_release(&plugins->trainer);
}

/* ---- the same options on all ranks ---- */

enum { OPTIONS_MAX = 128 };

static bool is_among(const char *const *names, const char *option)
{
    while (*names && strcmp(*names, option) != 0)
        names++;
    return *names != NULL;
}

/* 0 if it may differ. A path may, but not whether there is one. */
static uint32_t option_hash(const struct option_spec *row, const void *settings)
{
    static const char *const resources[] = {
        "data",   "json",       "csv",        "series",         "profile", "trace",
        "label",  "ranks",      "rank",       "decode-threads", "memory",  "limit-rate",
        "reader", "io-timeout", "io-threads", "iodepth",        "backend", "compute-threads",
        "export", NULL};
    static const char *const paths[] = {"eval-data", "checkpoint", "init", NULL};
    char text[4096];

    option_text(row, settings, text, sizeof text);
    return is_among(resources, row->name) ? 0
           : is_among(paths, row->name)   ? text[0] != '\0'
                                          : crc32c(0, text, strlen(text));
}

int options_check_alike(const struct option_spec *table, const void *settings, struct ranks *ranks)
{
    uint32_t mine[OPTIONS_MAX] = {0}, count = 0;

    if (ranks->place.ranks == 1)
        return 0;
    for (const struct option_spec *row = table; row->name && count < OPTIONS_MAX; row++)
        mine[count++] = option_hash(row, settings);
    int code = 0;
    uint32_t *all = ranks_collect(ranks, &code, mine, sizeof mine);
    for (uint32_t i = 0; code == 0 && i < ranks->place.ranks * OPTIONS_MAX; i++)
        if (all[i] != all[i % OPTIONS_MAX])
            code = fail(EINVAL,
                        "--%s of rank %u differs from rank 0's: all ranks of a job need the same "
                        "options",
                        table[i % OPTIONS_MAX].name, i / OPTIONS_MAX);
    free(all);
    return code;
}
