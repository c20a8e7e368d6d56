/* SPDX-License-Identifier: Apache-2.0 */
#include "report/report.h"

#include "base/bytes.h"
#include "base/escape.h"
#include "base/json.h"
#include "report/mlperf.h"
#include "report/words.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

enum { INDENT = 11, TEXT_BYTES = 1600 };

static const double MIB = 1048576, MB = 1e6;

struct text_page {
    FILE *stream;
    const struct result *result;
    const struct summary *summary;
    const char *bold, *alarm, *plain; /* escape sequences, "" without colour */
    json_t *entries;                  /* without a stream: takes the entries; NULL: out of memory */
};

/* Print "  Name     text", wrapped. An empty name continues the previous entry. */
static void print_entry(const struct text_page *page, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void print_entry(const struct text_page *page, const char *name, const char *format, ...)
{
    char text[TEXT_BYTES], before[INDENT + 1];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (!page->stream) {
        json_t *entry = json_object();
        json_put_text(entry, "name", name);
        json_put_text(entry, "text", text);
        json_array_append_new(page->entries, entry);
        return;
    }
    snprintf(before, sizeof before, "  %s", name);
    words_print(page->stream, before, INDENT, escape_shown(text));
}

/* ---- subject ---- */

static void print_data(const struct text_page *page)
{
    const struct result *result = page->result;
    char shards[WORDS_BYTES], records[WORDS_BYTES], size[WORDS_BYTES], each[WORDS_BYTES];
    char others[80] = "";

    if (result->records == 0)
        return;
    if (result->other_files)
        snprintf(others, sizeof others, "; %s file%s without samples",
                 words_count(result->other_files, each), result->other_files == 1 ? "" : "s");
    bytes_text(result->data_bytes, size, sizeof size);
    bytes_text(result->record_bytes_total / result->records, each, sizeof each);
    print_entry(page, "Data", "%s: %s, %s samples in %s %s, %s (%s each)%s%s", result->data,
                result->format, words_count(result->records, records),
                words_count(result->shards, shards), result->shards == 1 ? "shard" : "shards", size,
                each, result->data_was_made ? ", synthetic" : "", others);
    if (result->environment.file_system[0])
        print_entry(page, "Storage", "%s at %s%s%s", result->environment.file_system,
                    result->environment.mount_point, result->environment.devices[0] ? " on " : "",
                    result->environment.devices);
}

static void print_settings(const struct text_page *page)
{
    const struct result *result = page->result;
    const struct job *job = result->job;
    const struct environment *environment = &result->environment;
    char window[WORDS_WINDOW_BYTES], memory[WORDS_BYTES],
        ranks[96] = "", limit[96] = "", group[128] = "", depth[WORDS_BYTES] = "auto";

    bytes_text(result->memory_bytes, memory, sizeof memory);
    if (job->read.iodepth || result->iodepth)
        words_count(job->read.iodepth ? job->read.iodepth : result->iodepth, depth);
    if (job->read.rate_limit_bytes)
        snprintf(limit, sizeof limit, ", at most %s/s (--limit-rate)",
                 bytes_text(job->read.rate_limit_bytes, group, sizeof group));
    print_entry(page, "Reader", "%s; depth %s, %s of memory%s",
                result->reader_engine[0] ? result->reader_engine : job->read.reader, depth, memory,
                limit);
    limit[0] = group[0] = '\0';
    if (result->ranks > 1)
        snprintf(ranks, sizeof ranks, ", %u ranks", result->ranks);
    else if (job->order.ranks > 1)
        snprintf(ranks, sizeof ranks, ", rank %" PRIu64 " of %" PRIu64, job->order.rank,
                 job->order.ranks);
    if (job->order.limit_samples)
        snprintf(limit, sizeof limit, ", the first %s samples of an epoch",
                 words_count(job->order.limit_samples, memory));
    if (job->order.limit_samples_per_rank)
        snprintf(limit, sizeof limit, ", each rank's first %s samples of an epoch",
                 words_count(job->order.limit_samples_per_rank, memory));
    print_entry(page, "Order", "shuffle %s, seed %" PRIu64 "%s%s; %s",
                result->shuffle[0] ? result->shuffle : job->order.shuffle, job->order.seed, ranks,
                limit, words_window(result->reads.window, result->reads.read_bytes, window));
    const char *with = result->decoder_engine;
    print_entry(page, "Work", "decode %s%s%s%s on %u %s, batches of %" PRIu64 ", trainer %s",
                job->decode.decoder, with[0] ? " (" : "", with, with[0] ? ")" : "", result->threads,
                result->threads == 1 ? "thread" : "threads", job->batch_size, job->trainer);
    if (environment->host[0]) {
        bytes_text(environment->memory_bytes, memory, sizeof memory);
        if (environment->memory_limit_bytes)
            snprintf(group, sizeof group, " (%s for its control group)",
                     bytes_text(environment->memory_limit_bytes, limit, sizeof limit));
        print_entry(page, "Host", "%s: %u x %s, %s of memory%s, %s", environment->host,
                    environment->cpu_count, environment->cpu, memory, group, environment->kernel);
    }
}

/* ---- figures ---- */

static void print_rates(const struct text_page *page, const char *name,
                        const struct stats_summary *samples, const struct stats_summary *bytes,
                        const struct stats_summary *au)
{
    char median[WORDS_BYTES], low[WORDS_BYTES], high[WORDS_BYTES], mib[WORDS_BYTES],
        mb[WORDS_BYTES], interval[2 * WORDS_BYTES + 8] = "one run";

    if (samples->count == 0)
        return;
    if (samples->count > 1)
        snprintf(interval, sizeof interval, "%s .. %s", words_rate(samples->low, low),
                 words_rate(samples->high, high));
    fprintf(page->stream, "  %-13s%s%12s%s%24s%10s%10s", name, page->bold,
            words_rate(samples->median, median), page->plain, interval,
            words_rate(bytes->median / MIB, mib), words_rate(bytes->median / MB, mb));
    if (page->summary->trains)
        fprintf(page->stream, "%8.1f%%", au->median);
    fputc('\n', page->stream);
}

/* The sustained rate, without the start. */
static void print_steady(const struct text_page *page)
{
    const struct stats_summary *steady = &page->summary->steady_samples_per_s;
    char rate[WORDS_BYTES], low[WORDS_BYTES], high[WORDS_BYTES];

    if (page->summary->limit == RESULT_LIMIT_HARNESS)
        return;
    if (steady->count)
        print_entry(page, "Steady",
                    "%s samples/s (%s .. %s) without the first quarter of the reads of each epoch",
                    words_rate(steady->median, rate), words_rate(steady->low, low),
                    words_rate(steady->high, high));
    else
        print_entry(page, "Steady",
                    "no steady state: read-ahead covers the data used, or an epoch has fewer than "
                    "20 batches");
}

static void print_feeds(const struct text_page *page)
{
    const struct summary *summary = page->summary;
    char text[256] = "", count[WORDS_BYTES];
    size_t used = 0;

    if (summary->limit == RESULT_LIMIT_HARNESS)
        return;
    /* What it feeds, and which rules of MLPerf Storage it meets. */
    if (page->result->job->workload) {
        char sentence[MLPERF_TEXT_BYTES];
        struct mlperf judgement;
        if (mlperf_check(page->result, &judgement))
            return;
        print_entry(page, "Feeds", "%s",
                    mlperf_feeds(&judgement, summary->samples_per_s.median, sentence));
        print_entry(page, "MLPerf", "%s", mlperf_sentence(&judgement, sentence));
        return;
    }
    for (const struct accelerator *gpu = accelerator_table(); gpu->name && used < sizeof text;
         gpu++)
        used += (size_t)snprintf(
            text + used, sizeof text - used, "%s%s %s", used ? ", " : "",
            words_rate(accelerator_count(gpu, summary->samples_per_s.median), count), gpu->title);
    const char *source = summary->limit == RESULT_LIMIT_RATE ? ", at --limit-rate"
                         : summary->memory_record_bytes > summary->all.record_bytes / 2
                             ? ", from the page cache"
                             : "";
    print_entry(page, "Feeds", "%s%s training ResNet-50%s%s%s [1]",
                summary->limit == RESULT_LIMIT_TRAINER || summary->limit == RESULT_LIMIT_ORDER
                    ? "at least "
                    : "",
                text, summary->decodes ? "" : ", if something else decodes", source,
                page->result->job->order.ranks > page->result->ranks ? ", only this rank" : "");
}

/* Print a step of the average rank, and the memory of this process. */
static void print_steps(const struct text_page *page)
{
    const struct result_epoch *all = &page->summary->all;
    const struct result *result = page->result;
    char before[WORDS_BYTES], during[WORDS_BYTES], text[256];

    if (!page->summary->trains || all->batches == 0)
        return;
    print_entry(page, "Step", "%s", report_step(all, result->ranks, text, sizeof text));
    bytes_text(result->memory_before_bytes, before, sizeof before);
    bytes_text(result->memory_during_bytes, during, sizeof during);
    print_entry(page, "Memory", "%s resident before the trainer started, %s while it ran%s%s",
                before, during, report_device_memory(&result->trainer_memory, text, sizeof text),
                result->ranks > 1 ? "; of rank 0" : "");
}

static void print_latency(const struct text_page *page)
{
    const struct summary *summary = page->summary;
    char text[256], epochs[256], count[WORDS_BYTES], mean[WORDS_BYTES];

    if (summary->read_latency_ns.count == 0)
        return;
    bytes_text(summary->all.request_bytes / (summary->all.requests ? summary->all.requests : 1),
               mean, sizeof mean);
    print_entry(page, "Reads", "%s; %s reads of %s%s",
                latency_text(&summary->read_latency_ns, text, sizeof text),
                words_count(summary->read_latency_ns.count, count), mean,
                latency_text_by_epoch(summary->epoch_latency_ns, epochs, sizeof epochs));
}

static void print_bytes(const struct text_page *page)
{
    const struct summary *summary = page->summary;
    char delivered[WORDS_BYTES], requested[WORDS_BYTES], left[WORDS_BYTES];
    const struct result_bytes *device = &page->result->runs[0].epochs[0].device;

    if (summary->limit == RESULT_LIMIT_HARNESS)
        return;
    bytes_text(summary->all.record_bytes, delivered, sizeof delivered);
    bytes_text(summary->all.request_bytes, requested, sizeof requested);
    print_entry(page, "Bytes", "%s delivered, %s requested (amplification %.2f)", delivered,
                requested,
                summary->all.record_bytes
                    ? (double)summary->all.request_bytes / (double)summary->all.record_bytes
                    : 0);
    if (!summary->device_known || summary->first_record_bytes == 0) {
        print_entry(page, "", "bytes read from storage: unknown%s%s", device->reason[0] ? ": " : "",
                    device->reason);
        return;
    }
    bytes_text(summary->device_bytes, left, sizeof left);
    double percent = 100 * (double)summary->device_bytes / (double)summary->first_record_bytes;
    const char *why =
        percent < 98 ? "; the rest came from a cache"
        : percent > 110
            ? "; excess: read-ahead, the program's own files (also dropped), or a wrong counter"
            : "";
    print_entry(page, "",
                "%s read from storage in the first epochs, %.1f%% of the bytes delivered%s (%s)",
                left, percent, why, device->method);
}

static void print_cold(const struct text_page *page)
{
    static const char *const names[] = {
        [SERVER_COLD] = "cold", [SERVER_UNVERIFIED] = "UNVERIFIED", [SERVER_WARM] = "WARM"};
    const struct summary *summary = page->summary;
    const struct result_run *run = page->result->runs, *end = run + page->result->run_count;
    while (run < end && run->cold.state != summary->cache) /* the first one of the worst state */
        run++;
    run = run < end ? run : page->result->runs;
    const struct result_cold *cold = &run->cold;
    const struct server_result *server = &cold->server;
    const bool why = cold->pages == RESIDENCY_WARM && cold->reason[0];
    const double percent = result_run_server_percent(run);
    char total[WORDS_BYTES], resident[WORDS_BYTES], read[WORDS_BYTES], memory[96] = "",
                                                                       disks[160] = "";

    bytes_text(cold->read_bytes, total, sizeof total);
    if (summary->cache == RESULT_CACHE_UNVERIFIED)
        print_entry(page, "Cache", "UNVERIFIED%s%s", cold->reason[0] ? ": " : "", cold->reason);
    else if (cold->pages == RESIDENCY_UNVERIFIED)
        print_entry(page, "Cache", "%s: residency unknown, %s", summary_cache_name(summary->cache),
                    cold->reason);
    else
        print_entry(page, "Cache", "%s: at most %.2f%% of %s was in memory before a run (%s)%s%s",
                    summary_cache_name(summary->cache), summary->residue_percent, total,
                    cold->method, why ? "; " : "", why ? cold->reason : "");
    if (server->state == SERVER_NONE)
        return;
    if (server->state == SERVER_COLD && server->looked && server->start.resident_known)
        snprintf(memory, sizeof memory, "%s of %s was in its memory before a run",
                 bytes_text(server->start.resident_bytes, resident, sizeof resident),
                 bytes_text(server->start.total_bytes, total, sizeof total));
    if (percent >= 0)
        snprintf(disks, sizeof disks,
                 "%sits disks read %s in a run, for any client, %.1f%% of the bytes delivered",
                 memory[0] || server->reason[0] ? "; " : "",
                 bytes_text(server->disk_read_bytes, read, sizeof read), percent);
    print_entry(page, "Server", "%s: %s%s%s", names[server->state], server->reason, memory, disks);
}

/* ---- runs ---- */

static void print_epoch(const struct text_page *page, const struct result_run *run, uint32_t i)
{
    static const char *const names[] = {[RESULT_CACHE_COLD] = "cold",
                                        [RESULT_CACHE_BYPASSED] = "bypassed",
                                        [RESULT_CACHE_DATA_COLD] = "data cold",
                                        [RESULT_CACHE_CLIENT_COLD] = "client cold",
                                        [RESULT_CACHE_UNVERIFIED] = "unverified",
                                        [RESULT_CACHE_WARM] = "warm"};
    const struct result_epoch *epoch = &run->epochs[i];
    const struct result_cold *cold = &run->cold;
    char samples[WORDS_BYTES], mib[WORDS_BYTES], wall[WORDS_BYTES], first[WORDS_BYTES];
    char device[WORDS_BYTES] = "?", cache[WORDS_BYTES] = ""; /* 11 columns: details are above */

    if (epoch->device.known && epoch->record_bytes)
        snprintf(device, sizeof device, "%.1f%%",
                 100 * (double)epoch->device.bytes / (double)epoch->record_bytes);
    if (i == 0 && (cold->state == RESULT_CACHE_COLD ||
                   (cold->state == RESULT_CACHE_WARM && cold->pages == RESIDENCY_WARM)))
        snprintf(cache, sizeof cache, "%s %.*f%%", names[cold->state],
                 cold->residue_percent < 99.995 ? 2 : 0, cold->residue_percent);
    else if (i == 0)
        snprintf(cache, sizeof cache, "%s", names[cold->state]);
    words_duration(epoch->first_batch_ns, first);
    if (page->summary->trains)
        snprintf(first, sizeof first, "%.1f%%", result_epoch_au_percent(epoch));
    fprintf(page->stream, "  %3" PRIu64 "%6" PRIu64 "%10s%8s%8s%12s%7s  %-11s %s\n",
            run->number + 1, epoch->epoch + 1,
            words_rate(result_epoch_samples_per_s(epoch), samples),
            words_rate(result_epoch_bytes_per_s(epoch) / MIB, mib),
            words_duration(epoch->wall_ns, wall), first, device, cache,
            summary_limit_name(epoch->limit));
}

static void print_footnotes(const struct text_page *page)
{
    const struct summary *summary = page->summary;

    if (summary->limit != RESULT_LIMIT_HARNESS && !page->result->job->workload) {
        char text[512] = "", rate[WORDS_BYTES];
        size_t used = 0;
        for (const struct accelerator *gpu = accelerator_table(); gpu->name && used < sizeof text;
             gpu++)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s %s", used ? ", " : "",
                                     gpu->title, words_rate(gpu->mixed_samples_per_s, rate));
        print_entry(page, "[1]",
                    "best published rates of one GPU, mixed precision, samples/s: %s (MLPerf "
                    "Training; each source is in the JSON)",
                    text);
    }
    if (summary->trains)
        print_entry(
            page, "[2]",
            "AU = compute time / (compute time + time the trainer stalled on batches). MLPerf "
            "Storage: AU = compute time / wall time, both without the first step of each epoch");
}

/* ---- the page ---- */

const char *report_headline(const struct result *result, const struct summary *summary, char *text)
{
    const size_t size = REPORT_HEADLINE_BYTES;

    if (!result->valid)
        snprintf(text, size, "INVALID: %s", escape_shown(result->invalid_reason));
    else if (summary->all.skipped > 0)
        snprintf(text, size, "DEGRADED: %" PRIu64 " %s skipped", summary->all.skipped,
                 summary->all.skipped == 1 ? "record was" : "records were");
    else if (*result->degraded_reason)
        snprintf(text, size, "DEGRADED: %s", result->degraded_reason);
    else
        snprintf(text, size, "valid, %s, %u %s of %" PRIu64 " %s%s",
                 summary_cache_name(summary->cache), summary->runs,
                 summary->runs == 1 ? "run" : "runs", result->job->epochs,
                 result->job->epochs == 1 ? "epoch" : "epochs",
                 result->hints.were_made ? ", the first of which made entry points" : "");
    return text;
}

void report_verdict(json_t *document, const struct result *evidence)
{
    json_t *notices = json_array();

    json_object_set_new(document, "valid", json_boolean(evidence->valid));
    json_put_text(document, "invalid_reason", evidence->valid ? NULL : evidence->invalid_reason);
    json_object_set_new(document, "degraded", json_boolean(evidence->degraded_reason[0]));
    json_put_text(document, "degraded_reason",
                  evidence->degraded_reason[0] ? evidence->degraded_reason : NULL);
    for (uint32_t i = 0; i < evidence->notice_count; i++)
        json_array_append_new(notices, json_text(evidence->notices[i]));
    json_object_set_new(document, "notices", notices);
}

/* Print "iobench VERSION: label: what". */
static void print_title(const struct text_page *page, const char *what)
{
    const char *label = page->result->job->output.label;
    char text[TEXT_BYTES];

    snprintf(text, sizeof text, "iobench %s%s%s%s%s", PACKAGE_VERSION, label ? ": " : "",
             label ? escape_shown(label) : "", *what ? ": " : "", what);
    fputs(page->bold, page->stream);
    words_print(page->stream, "", 0, text);
    fputs(page->plain, page->stream);
}

static void print_alarm(const struct text_page *page, const char *text)
{
    fputs(page->alarm, page->stream);
    words_print(page->stream, "", 0, text);
    fputs(page->plain, page->stream);
}

static struct text_page page_of(FILE *stream, const struct result *result,
                                const struct summary *summary, bool color)
{
    return (struct text_page){.stream = stream,
                              .result = result,
                              .summary = summary,
                              .bold = color ? ESCAPE_BOLD : "",
                              .alarm = color ? ESCAPE_ALARM : "",
                              .plain = color ? ESCAPE_PLAIN : ""};
}

/* Print all of it; without a stream only the entries. */
static void print_page(const struct text_page *page)
{
    const struct result *result = page->result;
    const struct summary *summary = page->summary;
    FILE *stream = page->stream;
    char text[REPORT_HEADLINE_BYTES] = "";

    print_data(page);
    print_settings(page);
    if (summary->runs) {
        if (stream) {
            bool two_sorts = summary->later.samples_per_s.count > 0;
            fprintf(page->stream, "\n  %-13s%12s%24s%10s%10s%s\n", "", "samples/s",
                    summary->samples_per_s.coverage >= 0.95 ? "95% interval"
                    : summary->samples_per_s.count > 1      ? "lowest .. highest"
                                                            : "",
                    "MiB/s", "MB/s", summary->trains ? "       AU" : "");
            print_rates(page, two_sorts ? "Whole run" : "Median", &summary->samples_per_s,
                        &summary->bytes_per_s, &summary->au_percent);
            if (two_sorts) {
                print_rates(page, "First epoch", &summary->first.samples_per_s,
                            &summary->first.bytes_per_s, &summary->first.au_percent);
                print_rates(page, "Later epochs", &summary->later.samples_per_s,
                            &summary->later.bytes_per_s, &summary->later.au_percent);
            }
            fputc('\n', page->stream);
        }
        print_steady(page);
        print_feeds(page);
        print_entry(page, "Limit", "%s", summary->limit_sentence);
        if (stream) {
            const struct summary_shares *shares = &summary->shares;
            fprintf(page->stream, "  %-*sloader    on storage %3.0f%%   on memory  %3.0f%%\n",
                    INDENT - 2, "Stalls", shares->loader_storage, shares->loader_memory);
            fprintf(page->stream,
                    "%*sdecoders  on records %3.0f%%   on a batch %3.0f%%   busy %3.0f%%\n", INDENT,
                    "", shares->decode_input, shares->decode_slot, shares->decode_busy);
            if (shares->decode_hints > 0)
                fprintf(page->stream, "%*s          on entry points %.0f%%\n", INDENT, "",
                        shares->decode_hints);
            if (summary->trains)
                fprintf(page->stream, "%*strainer   on a batch %3.0f%%   busy       %3.0f%%\n",
                        INDENT, "", shares->trainer_input, shares->trainer_compute);
            else
                fprintf(page->stream, "%*strainer   takes batches as they come\n", INDENT, "");
        }
        if (summary->trains) {
            if (summary->mlperf_au_percent.count)
                snprintf(text, sizeof text, ", %.1f%% as MLPerf Storage counts",
                         summary->mlperf_au_percent.median);
            print_entry(page, "AU", "%.1f%% (compute over compute and wait)%s [2]",
                        summary->au_percent.median, text);
        }
        print_steps(page);
        if (stream)
            report_ranks_text(stream, &summary->ranks);
        print_latency(page);
        print_bytes(page);
        print_cold(page);
        if (stream && result->timeline && summary->limit != RESULT_LIMIT_HARNESS)
            report_timeline_text(stream, result->timeline);
        static const char *const words[FINDING_KINDS] = {[FINDING_SKIPPED] = "skipped",
                                                         [FINDING_IMAGE] = "damaged, but decoded",
                                                         [FINDING_LABEL] = "without a class",
                                                         [FINDING_EMPTY] = "without an image"};
        struct decode_figures sum = {0};
        struct findings findings = {0};
        const struct result_hints *hints = &page->result->hints;
        char images[WORDS_BYTES], entered[WORDS_BYTES], kinds[512];
        char took[WORDS_BYTES], wrote[WORDS_BYTES], kept[WORDS_BYTES];
        const char *name = "Found";
        for (uint32_t i = 0; i < page->result->run_count; i++) {
            decode_figures_add(&sum, &page->result->runs[i].decode);
            findings_add(&findings, &page->result->runs[i].findings);
        }
        words_count(sum.images, images);
        if (sum.entered + sum.stale)
            print_entry(page, "Entered",
                        "%s of %s images, at their crops; %" PRIu64 " changed since",
                        words_count(sum.entered, entered), images, sum.stale);
        if (decode_figures_describe(&sum, kinds, sizeof kinds))
            print_entry(page, "Images", "of %s decoded: %s", images, kinds);
        if (hints->were_made) {
            words_count(hints->images, images);
            words_duration(hints->decode_ns, took);
            if (hints->path[0])
                print_entry(
                    page, "Points",
                    "of %s images noted in the first epoch, in %s of its decode threads; of %s "
                    "images in %s, written in %s after it",
                    images, took, words_count(hints->kept_images, kept), hints->path,
                    words_duration(hints->keep_ns, wrote));
            else
                print_entry(
                    page, "Points",
                    "of %s images noted in the first epoch, in %s of its decode threads; NOT "
                    "written: %s",
                    images, took, hints->reason);
        }
        for (int i = 0; i < FINDING_KINDS; i++) /* the first ones of all runs */
            for (uint32_t k = 0; k < findings.kinds[i].named; k++, name = "")
                print_entry(page, name, "%s: %s", words[i], findings.kinds[i].texts[k]);
        if (result->floor_samples_per_s > 0) {
            words_rate(result->floor_samples_per_s, text);
            if (result->au_calibration_percent > 0)
                print_entry(
                    page, "Ceiling",
                    "%s samples/s without storage and decoding; AU %.2f%% if fed from memory", text,
                    result->au_calibration_percent);
            else
                print_entry(
                    page, "Ceiling",
                    "%s samples/s without storage and decoding: the most the program itself "
                    "can do here",
                    text);
        }
        if (stream && result->job->decode.digest) {
            /* One digest if all epochs agree, else one per epoch. */
            const struct result_epoch *first = &result->runs[0].epochs[0];
            bool agree = true;
            uint32_t epochs = 0;
            for (uint32_t i = 0; i < result->run_count; i++)
                for (uint32_t k = 0; k < result->runs[i].epoch_count; k++, epochs++)
                    agree = agree && !result->runs[i].epochs[k].digests_differ &&
                            result->runs[i].epochs[k].digest_sum == first->digest_sum &&
                            result->runs[i].epochs[k].digest_xor == first->digest_xor;
            print_entry(page, "Digest", "%016" PRIx64 "%016" PRIx64 " (%s)", first->digest_sum,
                        first->digest_xor,
                        agree ? epochs == 1 ? "one epoch" : "all epochs agree" : "epochs DIFFER");
        }
    }
    if (stream && result->run_count && result->runs[0].epoch_count) {
        enum { ROWS_MOST = 50 }; /* plus the last one of each run */
        uint32_t shown = 0;
        fprintf(page->stream, "\n  %3s%6s%10s%8s%8s%12s%7s  %-11s %s\n", "run", "epoch",
                "samples/s", "MiB/s", "time", page->summary->trains ? "AU" : "first batch",
                "device", "cache", "limit");
        for (uint32_t i = 0; i < page->result->run_count; i++)
            for (uint32_t k = 0; k < page->result->runs[i].epoch_count; k++) {
                const uint32_t left = page->result->runs[i].epoch_count - k;
                if (shown++ < ROWS_MOST || left == 1)
                    print_epoch(page, &page->result->runs[i], k);
                else if (shown == ROWS_MOST + 1)
                    fprintf(page->stream, "         ... more rows in the JSON and CSV files\n");
            }
    }
    if (stream && result->notice_count + summary->advice_count)
        fputc('\n', stream);
    for (uint32_t i = 0; i < result->notice_count; i++)
        print_entry(page, "Note", "%s", result->notices[i]);
    for (uint32_t i = 0; i < summary->advice_count; i++)
        print_entry(page, "Next", "%s", summary->advice[i]);
    if (stream && summary->runs)
        fputc('\n', stream);
    if (summary->runs)
        print_footnotes(page);
}

json_t *report_entries(const struct result *result, const struct summary *summary)
{
    struct text_page page = page_of(NULL, result, summary, false);

    page.entries = json_array();
    print_page(&page);
    return page.entries;
}

void report_text(FILE *stream, const struct result *result, const struct summary *summary,
                 bool color)
{
    const struct text_page page = page_of(stream, result, summary, color);
    char text[REPORT_HEADLINE_BYTES];
    const bool is_sound = strncmp(report_headline(result, summary, text), "valid", 5) == 0;

    print_title(&page, is_sound ? text : "");
    if (!is_sound)
        print_alarm(&page, text);
    fputc('\n', stream);
    print_page(&page);
    if (!result->valid && summary->runs) {
        fputc('\n', stream);
        print_alarm(&page, text);
    }
}

void report_plan(FILE *stream, const struct result *result)
{
    const struct text_page page = page_of(stream, result, NULL, false);
    char memory[WORDS_BYTES], slots[WORDS_BYTES], needed[WORDS_BYTES], available[WORDS_BYTES];
    char hints[WORDS_BYTES];

    print_title(&page, "dry run, nothing was read");
    fputc('\n', stream);
    print_data(&page);
    print_settings(&page);
    bytes_text(result->memory_bytes, memory, sizeof memory);
    bytes_text(result->memory_needed_bytes, needed, sizeof needed);
    bytes_text(result->memory_available_bytes, available, sizeof available);
    print_entry(&page, "Memory",
                "%s for records; the shuffle buffers up to %s records; %s in total, of %s "
                "allowed%s%s%s",
                memory, words_count(result->slots, slots), needed, available,
                result->hints.memory_bytes ? "; " : "",
                result->hints.memory_bytes
                    ? bytes_text(result->hints.memory_bytes, hints, sizeof hints)
                    : "",
                result->hints.memory_bytes ? " at most for entry points" : "");
    print_entry(&page, "Plan", "%s%" PRIu64 " run%s of %" PRIu64 " epoch%s",
                result->job->runs ? "" : "up to ", job_runs_most(result->job),
                job_runs_most(result->job) == 1 ? "" : "s", result->job->epochs,
                result->job->epochs == 1 ? "" : "s");
    for (uint32_t i = 0; i < result->notice_count; i++)
        print_entry(&page, "Note", "%s", result->notices[i]);
}
