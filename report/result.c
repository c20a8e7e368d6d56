/* SPDX-License-Identifier: Apache-2.0
 *
 * A result as text, JSON and CSV, and as a profile. In the JSON document every key carries its
 * unit; unmeasured values are null, with the reason in KEY_reason. docs/json.md describes it.
 */
#include "report/report.h"

#include "base/bytes.h"
#include "base/escape.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/plugin.h"
#include "base/profiles/profiles.h"
#include "report/words.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "valid, cold, 3 runs of 1 epoch", or why not. */
enum { REPORT_HEADLINE_BYTES = 1600 };

/* ---- latency ---- */

static const struct percentile {
    const char *key, *name;
    double fraction;
} percentiles[] = {{"p50_s", "p50", 0.5},
                   {"p90_s", "p90", 0.9},
                   {"p99_s", "p99", 0.99},
                   {"p99_9_s", "p99.9", 0.999},
                   {"max_s", "max", 1}};
enum { PERCENTILES = sizeof percentiles / sizeof percentiles[0] };

static json_t *histogram_json(const struct histogram *latency, bool quantiles)
{
    static const double shares[] = {0.01,  0.05,  0.1,   0.2,    0.3,    0.4,    0.5,
                                    0.6,   0.7,   0.8,   0.9,    0.95,   0.98,   0.99,
                                    0.995, 0.998, 0.999, 0.9995, 0.9999, 0.99999};
    const bool known = latency->count > 0;
    json_t *object = json_object();

    json_put_count(object, "reads", latency->count);
    for (size_t i = 0; i < PERCENTILES; i++)
        if (known)
            json_put_number(object, percentiles[i].key,
                            (double)histogram_quantile(latency, percentiles[i].fraction) / 1e9);
        else
            report_null(object, percentiles[i].key, "nothing read");
    if (known)
        json_put_number(object, "mean_s", (double)latency->sum * 1e-9 / (double)latency->count);
    else
        report_null(object, "mean_s", "nothing read");
    if (!quantiles)
        return object;
    /* Pairs of a share of the reads and the latency that they did not exceed, to single reads. */
    json_t *pairs = json_array();
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
        if ((1 - shares[i]) * (double)latency->count < 1)
            break;
        json_t *pair = json_array();
        char text[32]; /* rows have six digits: report/document.c */
        json_array_append_new(pair, json_number(shares[i]));
        snprintf(text, sizeof text, "%.6g", (double)histogram_quantile(latency, shares[i]) / 1e9);
        json_array_append_new(pair, json_number(strtod(text, NULL)));
        json_array_append_new(pairs, pair);
    }
    json_object_set_new(object, "quantiles", pairs);
    return object;
}

json_t *latency_json(const struct histogram *all, const struct histogram *kinds, bool quantiles)
{
    json_t *object = histogram_json(all, quantiles);

    json_object_set_new(object, "first_epoch",
                        histogram_json(&kinds[RESULT_EPOCH_FIRST], quantiles));
    json_object_set_new(object, "later_epochs",
                        histogram_json(&kinds[RESULT_EPOCH_LATER], quantiles));
    if (kinds[RESULT_EPOCH_EVALUATION].count)
        json_object_set_new(object, "evaluation",
                            histogram_json(&kinds[RESULT_EPOCH_EVALUATION], quantiles));
    return object;
}

char *latency_text(const struct histogram *all, char *text, size_t bytes)
{
    char duration[WORDS_BYTES];
    size_t used = 0;

    for (size_t i = 0; i < PERCENTILES; i++)
        used += (size_t)snprintf(
            text + used, bytes - used, "%s%s %s", i ? ", " : "", percentiles[i].name,
            words_duration(histogram_quantile(all, percentiles[i].fraction), duration));
    return text;
}

char *latency_text_by_epoch(const struct histogram *kinds, char *text, size_t bytes)
{
    static const char *const names[RESULT_EPOCH_KINDS] = {"first epoch", "later epochs",
                                                          "evaluation"};
    const bool several = kinds[RESULT_EPOCH_LATER].count || kinds[RESULT_EPOCH_EVALUATION].count;
    char p50[WORDS_BYTES], p99[WORDS_BYTES];
    size_t used = 0;

    text[0] = '\0';
    for (int i = 0; several && i < RESULT_EPOCH_KINDS; i++)
        if (kinds[i].count)
            used += (size_t)snprintf(text + used, bytes - used, "; %s p50 %s, p99 %s", names[i],
                                     words_duration(histogram_quantile(&kinds[i], 0.5), p50),
                                     words_duration(histogram_quantile(&kinds[i], 0.99), p99));
    return text;
}

/* ---- ranks ---- */

enum { RANKS_INDENT = 11 };

static const double behind_notable_percent = 5;

static const char *const phase_names[] = {
    [RESULT_PHASE_WAIT] = "wait for batches",
    [RESULT_PHASE_UPLOAD] = "upload",
    [RESULT_PHASE_COMPUTE] = "forward and backward",
    [RESULT_PHASE_EXCHANGE] = "exchange",
    [RESULT_PHASE_UPDATE] = "update",
    [RESULT_PHASES] = "",
};

char *report_step(const struct result_epoch *total, uint32_t ranks, char *text, size_t text_bytes)
{
    const double wall_ns = total->wall_ns ? (double)total->wall_ns : 1;
    char step[WORDS_BYTES];
    int used = snprintf(
        text, text_bytes, "%s:",
        words_duration(total->wall_ns * (ranks ? ranks : 1) / (total->batches ? total->batches : 1),
                       step));

    for (int phase = 0; phase < RESULT_PHASES && used < (int)text_bytes; phase++)
        used += snprintf(text + used, text_bytes - (size_t)used, "%s %s %.1f%%", phase ? "," : "",
                         phase_names[phase],
                         100 * (double)result_epoch_phase_ns(total, (enum result_phase)phase) /
                             wall_ns);
    return text;
}

char *report_device_memory(const struct trainer_memory *memory, char *text, size_t text_bytes)
{
    char device[WORDS_BYTES], batches[WORDS_BYTES], pinned[WORDS_BYTES];

    text[0] = '\0';
    if (memory->device_bytes)
        snprintf(text, text_bytes, "; %s of the GPU, of which %s for uploaded batches; %s pinned",
                 bytes_text(memory->device_bytes, device, sizeof device),
                 bytes_text(memory->batch_bytes, batches, sizeof batches),
                 bytes_text(memory->pinned_bytes, pinned, sizeof pinned));
    return text;
}

/* ---- text ---- */

static void print_spread(FILE *stream, const char *name, const char *low, const char *middle,
                         const char *high)
{
    fprintf(stream, "           %-22s%13s%13s%13s\n", name, low, middle, high);
}

static void print_times(FILE *stream, const char *name, const struct result_spread *seconds)
{
    char low[WORDS_BYTES], middle[WORDS_BYTES], high[WORDS_BYTES];

    if (seconds->maximum > 0)
        print_spread(stream, name, words_duration((uint64_t)(seconds->minimum * 1e9), low),
                     words_duration((uint64_t)(seconds->median * 1e9), middle),
                     words_duration((uint64_t)(seconds->maximum * 1e9), high));
}

void report_ranks_text(FILE *stream, const struct result_comparison *comparison)
{
    const bool behind = comparison->behind_percent >= behind_notable_percent;
    const bool waits = comparison->behind_phase == RESULT_PHASE_WAIT;
    char low[WORDS_BYTES], middle[WORDS_BYTES], high[WORDS_BYTES], title[64];
    char text[512], where[96] = "";

    if (comparison->ranks < 2)
        return;
    snprintf(title, sizeof title, "%u on %u %s", comparison->ranks, comparison->nodes,
             comparison->nodes == 1 ? "node" : "nodes");
    fprintf(stream, "  Ranks    %-22s%13s%13s%13s\n", title, "lowest", "median", "highest");
    print_spread(stream, "samples/s", words_rate(comparison->samples_per_s.minimum, low),
                 words_rate(comparison->samples_per_s.median, middle),
                 words_rate(comparison->samples_per_s.maximum, high));
    print_times(stream, "time", &comparison->wall_s);
    for (int phase = 0; phase < RESULT_PHASES; phase++)
        print_times(stream, phase_names[phase], &comparison->phase_s[phase]);
    print_times(stream, "barriers between epochs", &comparison->barrier_s);
    if (behind)
        snprintf(where, sizeof where, ", mostly in %s%s%s%s", phase_names[comparison->behind_phase],
                 waits ? " (limit: " : "",
                 waits ? summary_limit_name(comparison->straggler_limit) : "", waits ? ")" : "");
    snprintf(text, sizeof text, "rank %u on %s: %.1f%% slower than the median rank%s",
             comparison->straggler, escape_shown(comparison->straggler_host),
             comparison->behind_percent, where);
    words_print(stream, behind ? "  Straggler" : "  Slowest", RANKS_INDENT + 1, text);
}

/* ---- JSON ---- */

static void put_spread(json_t *object, const char *key, const struct result_spread *spread)
{
    json_object_set_new(object, key,
                        json_pack("{s:o, s:o, s:o}", "min", json_number(spread->minimum), "median",
                                  json_number(spread->median), "max",
                                  json_number(spread->maximum)));
}

static const char *const phase_keys[] = {
    [RESULT_PHASE_WAIT] = "wait_s",       [RESULT_PHASE_UPLOAD] = "upload_s",
    [RESULT_PHASE_COMPUTE] = "compute_s", [RESULT_PHASE_EXCHANGE] = "exchange_s",
    [RESULT_PHASE_UPDATE] = "update_s",
};

json_t *report_ranks_json(const struct result_comparison *comparison)
{
    if (comparison->ranks < 2)
        return json_null();
    json_t *object = json_object();
    json_object_set_new(object, "ranks", json_integer(comparison->ranks));
    json_object_set_new(object, "nodes", json_integer(comparison->nodes));
    put_spread(object, "samples_per_s", &comparison->samples_per_s);
    put_spread(object, "wall_s", &comparison->wall_s);
    for (int phase = 0; phase < RESULT_PHASES; phase++)
        put_spread(object, phase_keys[phase], &comparison->phase_s[phase]);
    put_spread(object, "barrier_s", &comparison->barrier_s);
    json_object_set_new(object, "straggler",
                        json_pack("{s:i, s:o, s:o, s:s, s:s}", "rank", (int)comparison->straggler,
                                  "host", json_text(comparison->straggler_host), "behind_percent",
                                  json_number(comparison->behind_percent), "phase",
                                  phase_names[comparison->behind_phase], "limit",
                                  summary_limit_name(comparison->straggler_limit)));
    return object;
}

json_t *report_ranks_json_one(const struct result_rank *rank)
{
#define AT(type, field) FIGURE_AT(type, result_rank, field)
    static const struct figure rows[] = {
        {"rank", AT(NUMBER, rank)},
        {"node", AT(NUMBER, node)},
        {"host", AT(TEXT, host)},
        {"samples", AT(COUNT, total.samples)},
        {"samples_per_s", AT(DERIVED, total), .value = result_epoch_samples_per_s},
        {"wall_s", AT(TIME, total.wall_ns)},
        {"start_barrier_s", AT(TIME, total.start_barrier_ns)},
        {"stop_barrier_s", AT(TIME, total.stop_barrier_ns)},
        {"read_p50_s", AT(TIME, read_p50_ns)},
        {"read_p99_s", AT(TIME, read_p99_ns)},
        {"read_max_s", AT(TIME, read_max_ns)},
        {"limit", AT(LIMIT, total.limit)},
        {"wait_s", AT(TIME, total.wait_ns)},
        {"upload_s", AT(TIME, total.upload_ns)},
        {"compute_s", AT(TIME, total.compute_ns)},
        {"exchange_s", AT(TIME, total.exchange_ns)},
        {"update_s", AT(TIME, total.update_ns)},
    };
#undef AT
    json_t *object = json_object();

    report_figures(object, rows, sizeof rows / sizeof *rows, rank);
    return object;
}

/* ---- CSV ---- */

void report_csv_quoted(FILE *stream, const char *text)
{
    fputc('"', stream);
    for (text = escape_shown(text); *text; text++) {
        if (*text == '"')
            fputc('"', stream);
        fputc(*text, stream);
    }
    fputc('"', stream);
}

bool report_is_degraded(const struct result *result)
{
    bool skipped = result->index_faults > 0;

    for (uint32_t i = 0; i < result->run_count; i++)
        skipped |= result_run_total(&result->runs[i]).skipped > 0;
    return skipped || *result->degraded_reason;
}

void report_csv_marks(FILE *stream, const struct result *result, const struct result_run *run,
                      bool degraded)
{
    fprintf(stream, "%d,%d,%d,", degraded, result->valid, result->data_was_made);
    report_csv_quoted(stream, run && !run->valid         ? run->invalid_reason
                              : !result->valid           ? result->invalid_reason
                              : *result->degraded_reason ? result->degraded_reason
                              : degraded                 ? "samples were skipped"
                                                         : "");
}

void report_csv(FILE *stream, const struct result *result, bool heading)
{
    const bool degraded = report_is_degraded(result);

    if (heading) {
        fputs("label,valid,run,epoch,cache_before,cold_residue_percent", stream);
        for (size_t i = 0; i < figures_of_epoch_count; i++)
            if (figures_of_epoch[i].column)
                fprintf(stream, ",%s", figures_of_epoch[i].column);
        fputs("," REPORT_CSV_MARKS "\n", stream);
    }
    for (uint32_t i = 0; i < result->run_count; i++)
        for (uint32_t k = 0; k < result->runs[i].epoch_count; k++) {
            const struct result_run *run = &result->runs[i];
            const struct result_epoch *epoch = &run->epochs[k];
            report_csv_quoted(stream, result->job->output.label ? result->job->output.label : "");
            fprintf(stream, ",%d,%" PRIu64 ",%" PRIu64 ",", run->valid, run->number + 1,
                    epoch->epoch + 1);
            const char *cache = summary_cache_name(run->cold.state);
            if (strchr(cache, ','))
                report_csv_quoted(stream, cache);
            else
                fputs(cache, stream);
            fputc(',', stream);
            if (run->cold.pages != RESIDENCY_UNVERIFIED)
                fprintf(stream, "%.4f", run->cold.residue_percent);
            for (size_t j = 0; j < figures_of_epoch_count; j++) {
                const struct figure *row = &figures_of_epoch[j];
                const void *at = (const char *)epoch + row->offset;
                if (!row->column)
                    continue;
                fputc(',', stream);
                if (row->known_at && !*((const bool *)(const void *)epoch + row->known_at))
                    continue;
                if (row->type == FIGURE_LIMIT) {
                    fputs(summary_limit_name(epoch->limit), stream);
                } else if (row->type == FIGURE_COUNT) {
                    fprintf(stream, "%" PRIu64, *(const uint64_t *)at);
                } else {
                    assert(row->type == FIGURE_TIME || row->type == FIGURE_REAL || row->value);
                    const double value = row->type == FIGURE_TIME
                                             ? (double)*(const uint64_t *)at * 1e-9
                                         : row->type == FIGURE_REAL ? *(const double *)at
                                                                    : row->value(epoch);
                    if (isfinite(value))
                        fprintf(stream, "%.*f", row->digits, value);
                }
            }
            fputc(',', stream);
            report_csv_marks(stream, result, run, degraded);
            fputc('\n', stream);
        }
}

/* ---- profile ---- */

const char report_profile_mark[] = "# Made by iobench: profile\n";

/* "1.2e+09 +-3%": the interval of the runs, where there are several. */
static void put_rate(FILE *stream, const char *key, const struct stats_summary *rate, double scale)
{
    const bool has_interval = rate->count > 1;
    const struct quantity quantity = quantity_of_interval(
        rate->median * scale, (has_interval ? rate->low : rate->median) * scale,
        (has_interval ? rate->high : rate->median) * scale);

    fprintf(stream, "%s=", key);
    quantity_print(stream, &quantity);
    fputc('\n', stream);
}

static void put_source(FILE *stream, const struct result *result, const struct summary *summary)
{
    if (report_is_degraded(result)) /* reports of a simulation repeat the doubt */
        fprintf(stream, "doubt=DEGRADED: %s\n",
                *result->degraded_reason ? escape_shown(result->degraded_reason)
                                         : "samples were skipped");
    fprintf(stream, "source=measured by iobench %s on %s", PACKAGE_VERSION,
            escape_shown(result->environment.host));
    fprintf(stream, ": %s", escape_shown(result->environment.command));
    fprintf(stream, "; cache %s, bottleneck %s\n\n", summary_cache_name(summary->cache),
            summary_limit_name(summary->limit));
}

/* Storage that was not the bottleneck can give more than was asked of it, nobody knows how much. So
 * only epochs that storage limited count, unlike later ones from memory. */
static void put_storage(FILE *stream, const struct result *result, const struct summary *summary)
{
    const struct environment *environment = &result->environment;
    /* Storage that is not a disk of this machine is shared by all nodes. */
    const bool local = result->run_count && result->runs[0].cold.server.state == SERVER_NONE &&
                       environment->devices[0];
    const double nodes = result->nodes > 1 ? result->nodes : 1;

    if (result->degraded_reason[0]) {
        fputs("# DEGRADED: ", stream);
        fprintf(stream, "%s\n# The rate of the storage is not known.\n",
                escape_shown(result->degraded_reason));
        return;
    }
    if (summary->limit != RESULT_LIMIT_STORAGE) {
        fputs(
            "# Storage was not the bottleneck: its rate is not known. Measure it with 'iobench run "
            "--drop-caches --decode none', or 'iobench size --measure'.\n",
            stream);
        return;
    }
    fputs("# Storage was the bottleneck: read-bytes-per-s is what it gives.\n", stream);
    fprintf(stream, "[storage]\ntitle=%s", escape_shown(environment->file_system));
    fprintf(stream, " at %s", escape_shown(environment->mount_point));
    fprintf(stream, " of %s\nscope=%s\n", escape_shown(environment->host), local ? "node" : "job");
    put_rate(stream, "read-bytes-per-s", &summary->storage_bytes_per_s, 1 / (local ? nodes : 1));
    if (summary->cache > RESULT_CACHE_DATA_COLD)
        fprintf(stream, "doubt=the caches were not verified cold: %s\n",
                summary_cache_name(summary->cache));
    if (nodes > 1 && !local)
        put_rate(stream, "client-bytes-per-s", &summary->storage_bytes_per_s, 1 / nodes);
    put_source(stream, result, summary);
}

void report_profile(FILE *stream, const struct result *result, const struct summary *summary,
                    const struct report_trained *trained)
{
    const struct result_epoch *all = &summary->all;
    const double amplification = (double)all->request_bytes / (double)all->record_bytes;

    fputs(report_profile_mark, stream);
    if (trained) {
        fprintf(stream, "[network]\ntitle=%s\n", escape_shown(trained->network));
        fprintf(stream, "batch=%.0f\nparameters=%.0f\ngradient-bytes=%.0f\n", trained->batch,
                trained->parameters, trained->gradient_bytes);
        put_source(stream, result, summary);
        fprintf(stream, "[gpu]\ntitle=%s\n", escape_shown(trained->gpu));
        put_rate(stream, "samples-per-s", &trained->samples_per_s, 1);
        put_source(stream, result, summary);
    }
    put_storage(stream, result, summary);
    fprintf(stream, "[data]\nsample-bytes=%.6g\nsamples=%.10g\n",
            (double)all->record_bytes / (double)all->samples, (double)result->records);
    if (all->requests)
        fprintf(stream, "read-bytes=%.6g\namplification=%.6g\n",
                (double)all->request_bytes / (double)all->requests, amplification);
    put_source(stream, result, summary);
    if (!summary->decodes)
        return;
    /* Times of an epoch are means over the ranks, samples are sums. */
    fprintf(stream, "[cpu]\ndecode-core-s=%.4g\n",
            (double)all->waits.decode_busy_ns * 1e-9 * result->ranks / (double)all->samples);
    put_source(stream, result, summary);
}

/* ---- text ---- */

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

/* Print the sustained rate, without the start. */
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

static const char *report_headline(const struct result *result, const struct summary *summary,
                                   char *text)
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
        if (result->ceiling_samples_per_s > 0) {
            words_rate(result->ceiling_samples_per_s, text);
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

/* ---- JSON ---- */

enum { JSON_KEY_BYTES = 96 };

static void put_real(json_t *object, const char *key, double value)
{
    if (isfinite(value))
        json_put_number(object, key, value);
    else
        report_null(object, key, "not a finite number");
}

static void put_real_if(json_t *object, const char *key, bool known, double value,
                        const char *reason)
{
    if (known)
        put_real(object, key, value);
    else
        report_null(object, key, reason);
}

static void put_text_if(json_t *object, const char *key, const char *text, const char *reason)
{
    if (text && text[0])
        json_put_text(object, key, text);
    else
        report_null(object, key, reason);
}

#define PUT(object, rows, of) report_figures(object, rows, sizeof rows / sizeof *rows, of)
#define AT(type, of, field) FIGURE_AT(type, of, field)

/* ---- parts of a job ---- */

/* Add the options, keyed by their first name with _ for - and the unit appended. */
static json_t *settings_of(const struct job *job)
{
    json_t *settings = json_object();

    for (const struct option_spec *row = job_options; row->name; row++) {
        const void *field = (const char *)job + row->offset;
        const char *unit = row->type == OPTION_SIZE       ? "_bytes"
                           : row->type == OPTION_DURATION ? "_s"
                                                          : "";
        char key[JSON_KEY_BYTES], text[1024];
        snprintf(key, sizeof key, "%s%s", row->name, unit);
        for (char *at = key; *at; at++)
            *at = *at == '-' ? '_' : *at;
        switch (row->type) {
        case OPTION_FLAG:
            json_object_set_new(settings, key, json_boolean(*(const bool *)field));
            break;
        case OPTION_COUNT:
        case OPTION_SIZE:
            json_put_count(settings, key, *(const uint64_t *)field);
            break;
        case OPTION_DURATION:
            put_real(settings, key, (double)*(const uint64_t *)field / 1e9);
            break;
        case OPTION_REAL:
            put_real(settings, key, *(const double *)field);
            break;
        case OPTION_TEXT:
        case OPTION_CHOICE:
            option_text(row, job, text, sizeof text);
            if (row->type == OPTION_TEXT && !*(char *const *)field)
                json_object_set_new(settings, key, json_null());
            else
                json_put_text(settings, key, text);
            break;
        }
    }
    return settings;
}

json_t *report_machine(const struct environment *environment)
{
    static const char not_reported[] = "not reported by the kernel";
    static const struct figure rows[] = {
        {"host", AT(TEXT, environment, host), .unknown = not_reported},
        {"kernel", AT(TEXT, environment, kernel), .unknown = not_reported},
        {"cpu", AT(TEXT, environment, cpu), .unknown = not_reported},
        {"cpu_count", AT(NUMBER, environment, cpu_count)},
        {"memory_bytes", AT(COUNT, environment, memory_bytes)},
        {"memory_limit_bytes", AT(COUNT, environment, memory_limit_bytes),
         .unknown = "no limit is set"},
        {"clock_source", AT(TEXT, environment, clock_source), .unknown = not_reported},
        {"sandbox", AT(TEXT, environment, sandbox), .unknown = "not recorded"},
    };
    json_t *object = json_object();

    PUT(object, rows, environment);
    json_object_set_new(object, "modules", module_list());
    return object;
}

json_t *report_environment(const struct environment *environment)
{
    static const char no_mount[] = "not found in the mount table";
    static const struct figure rows[] = {
        {"file_system", AT(TEXT, environment, file_system), .unknown = no_mount},
        {"mount_point", AT(TEXT, environment, mount_point), .unknown = no_mount},
        {"mount_options", AT(TEXT, environment, mount_options), .unknown = no_mount},
        {"devices", AT(TEXT, environment, devices), .unknown = "no block device below the data"},
    };
    json_t *object = report_machine(environment);

    PUT(object, rows, environment);
    return object;
}

static json_t *session_of(const struct result_session *session)
{
    static const char not_auto[] = "--runs auto was not given";
    static const struct figure rows[] = {
        {"id", AT(TEXT, result_session, id), .unknown = "not started"},
        {"boot_id", AT(TEXT, result_session, boot_id), .unknown = "not reported by the kernel"},
        {"jobs", AT(NUMBER, result_session, jobs)},
        {"job", AT(NUMBER, result_session, job)},
    };
    static const struct figure turns[] = {
        {"turns", AT(COUNT, result_session, turns)},
        {"runs_auto", AT(FLAG, result_session, is_until)},
        {"until_reached", AT(FLAG, result_session, is_reached),
         FIGURE_KNOWN(result_session, is_until), .unknown = not_auto},
    };
    json_t *object = json_object();

    PUT(object, rows, session);
    if (session->jobs > 1)
        json_put_count(object, "order_seed", session->order_seed);
    else
        report_null(object, "order_seed", "a single job");
    PUT(object, turns, session);
    put_real_if(object, "until_half_width_percent", session->is_until && session->half_percent > 0,
                session->half_percent, session->is_until ? "too few runs" : not_auto);
    return object;
}

json_t *report_dataset(const struct result *result)
{
    static const struct figure counts[] = {
        {"path", AT(TEXT, result, data)},
        {"format", AT(TEXT, result, format)},
        {"shards", AT(COUNT, result, shards)},
        {"samples", AT(COUNT, result, records)},
        {"file_bytes", AT(COUNT, result, data_bytes)},
        {"record_bytes", AT(COUNT, result, record_bytes_total)},
    };
    static const struct figure kinds[] = {
        {"synthetic", AT(FLAG, result, data_was_made)},
        {"unread_samples", AT(COUNT, result, unread_samples)},
    };
    json_t *object = json_object();
    char identity[17];

    PUT(object, counts, result);
    put_real_if(object, "mean_record_bytes", result->records > 0,
                result->records ? (double)result->record_bytes_total / (double)result->records : 0,
                "no records");
    PUT(object, kinds, result);
    json_object_set_new(object, "first_unread",
                        json_texts(result->unread_samples > 0, 0, result->first_unread));
    json_put_count(object, "other_files", result->other_files);
    json_object_set_new(object, "remarks",
                        json_texts(result->remark_count, REMARK_TEXT_BYTES, result->remarks[0]));
    snprintf(identity, sizeof identity, "%016" PRIx64, result->data_identity);
    json_put_text(object, "identity", identity);
    return object;
}

static json_t *engine_of(const struct result *result)
{
    static const struct figure chosen[] = {
        {"reader_engine", AT(TEXT, result, reader_engine), .unknown = "no reader was opened"},
        {"decoder_engine", AT(TEXT, result, decoder_engine),
         .unknown = "the decoder is the same on every machine"},
        {"shuffle", AT(TEXT, result, shuffle), .unknown = "no data set was found"},
        {"iodepth", AT(NUMBER, result, iodepth), .unknown = "no saturation depth found"},
    };
    static const struct figure used[] = {
        {"decode_threads", AT(NUMBER, result, threads)},
        {"memory_bytes", AT(COUNT, result, memory_bytes)},
        {"window_records", AT(NUMBER, result, reads.window)},
        {"read_bytes_max", AT(COUNT, result, reads.read_bytes)},
        {"shuffle_slots", AT(COUNT, result, slots)},
        {"ranks", AT(NUMBER, result, ranks)},
        {"nodes", AT(NUMBER, result, nodes)},
        {"resident_before_bytes", AT(COUNT, result, memory_before_bytes),
         .unknown = "not reported by the kernel"},
        {"resident_during_bytes", AT(COUNT, result, memory_during_bytes),
         .unknown = "no complete epoch"},
        {"device_bytes", AT(COUNT, result, trainer_memory.device_bytes)},
        {"device_batch_bytes", AT(COUNT, result, trainer_memory.batch_bytes)},
        {"pinned_bytes", AT(COUNT, result, trainer_memory.pinned_bytes)},
    };
    json_t *object = json_object();

    PUT(object, chosen, result);
    json_put_count(object, "io_threads", read_io_threads(&result->job->read));
    PUT(object, used, result);
    return object;
}

static void put_call(json_t *object, const char *key, const struct server_call *call,
                     const char *option)
{
    char reason[64];

    if (!call->made) {
        snprintf(reason, sizeof reason, "%s did not run", option);
        report_null(object, key, reason);
        return;
    }
    json_t *made = json_object();
    put_real_if(made, "exit_status", call->status >= 0, call->status, "did not exit");
    put_real(made, "took_s", (double)call->took_ns / 1e9);
    json_put_text(made, "output", call->output);
    json_object_set_new(object, key, made);
}

static void put_resident(json_t *object, const char *key, bool looked,
                         const struct server_look *look)
{
    put_real_if(object, key, looked && look->resident_known, (double)look->resident_bytes,
                !looked ? "not reported by --server-check-cmd" : look->reason);
}

static json_t *cold_of(const struct result_cold *cold, double server_percent)
{
    static const char *const names[] = {
        [SERVER_COLD] = "cold", [SERVER_UNVERIFIED] = "unverified", [SERVER_WARM] = "warm"};
    static const char no_disks[] = "bytes read by disks not reported by --server-check-cmd";
    const struct server_result *server = &cold->server;
    json_t *object = json_object();
    bool verified = cold->pages != RESIDENCY_UNVERIFIED;

    json_put_text(object, "cache_before", summary_cache_name(cold->state));
    json_object_set_new(object, "dropped", json_boolean(cold->dropped));
    json_object_set_new(object, "metadata_dropped", json_boolean(cold->metadata_dropped));
    put_real_if(object, "cold_residue_percent", verified, cold->residue_percent, cold->reason);
    put_real_if(object, "resident_bytes", verified, (double)cold->resident_bytes, cold->reason);
    json_put_count(object, "total_bytes", cold->read_bytes);
    put_real(object, "drop_s", (double)cold->drop_ns / 1e9);
    put_call(object, "server_drop", &server->drop, "--server-drop-cmd");
    if (server->state != SERVER_NONE) {
        json_t *asked = json_put_new(object, "server", json_object());
        json_put_text(asked, "cache_before", names[server->state]);
        put_text_if(asked, "remark", server->reason, "no remark");
        put_resident(asked, "resident_bytes", server->looked, &server->start);
        put_real_if(asked, "total_bytes", server->looked, (double)server->start.total_bytes,
                    "not reported by --server-check-cmd");
        put_resident(asked, "resident_before_drop_bytes", server->looked_before, &server->before);
        put_real_if(asked, "disk_read_bytes", server->disk_known, (double)server->disk_read_bytes,
                    no_disks);
        put_real_if(asked, "disk_percent", server_percent >= 0, server_percent, no_disks);
        put_call(asked, "check", &server->check, "--server-check-cmd");
    } else {
        report_null(object, "server", "the files are on local disks or in memory");
    }
    put_text_if(object, "method", cold->method, "nothing dropped or measured");
    put_text_if(object, "remark", cold->reason, "no remark");
    return object;
}

static const char no_work[] = "the trainer does not compute";

static json_t *run_of(const struct result_run *run, bool digest)
{
    static const char none[] = "no complete epoch";
    static const struct figure numbers[] = {{"run", AT(ORDINAL, result_run, number)},
                                            {"turn", AT(COUNT, result_run, turn)},
                                            {"valid", AT(FLAG, result_run, valid)}};
    static const struct figure counts[] = {
        {"read_errors", AT(COUNT, result_run, read_errors)},
        {"short_reads", AT(COUNT, result_run, short_reads)},
        {"memory_peak_bytes", AT(COUNT, result_run, memory_peak_bytes)},
    };
    static const struct figure decoded[] = {
        {"images", AT(COUNT, decode_figures, images)},
        {"image_bytes", AT(COUNT, decode_figures, bytes)},
        {"grayscale_images", AT(COUNT, decode_figures, grayscale)},
        {"cmyk_images", AT(COUNT, decode_figures, cmyk)},
        {"progressive_images", AT(COUNT, decode_figures, progressive)},
        {"png_images", AT(COUNT, decode_figures, of_kind[IMAGE_PNG])},
        {"webp_images", AT(COUNT, decode_figures, of_kind[IMAGE_WEBP])},
        {"gif_images", AT(COUNT, decode_figures, of_kind[IMAGE_GIF])},
        {"bmp_images", AT(COUNT, decode_figures, of_kind[IMAGE_BMP])},
        {"raw_images", AT(COUNT, decode_figures, raw)},
        {"failed_images", AT(COUNT, decode_figures, failed)},
        {"truncated_images", AT(COUNT, decode_figures, truncated)},
        {"corrupt_images", AT(COUNT, decode_figures, corrupt)},
        {"entered_images", AT(COUNT, decode_figures, entered)},
        {"stale_hints", AT(COUNT, decode_figures, stale)},
        {"cpu_images", AT(COUNT, decode_figures, on_cpu)},
    };
    const double server = result_run_server_percent(run), device = result_run_device_percent(run);
    const double au = result_run_au_percent(run);
    json_t *object = json_object(), *findings = json_object();
    json_t *epochs = json_array(), *nodes = json_array(), *ranks = json_array();

    PUT(object, numbers, run);
    put_text_if(object, "invalid_reason", run->valid ? NULL : run->invalid_reason, "valid");
    put_real_if(object, "samples_per_s", run->epoch_count > 0, result_run_samples_per_s(run), none);
    put_real_if(object, "record_bytes_per_s", run->epoch_count > 0, result_run_bytes_per_s(run),
                none);
    put_real_if(object, "au_percent", au > 0, au, no_work);
    put_real_if(object, "first_epoch_device_percent", device >= 0, device,
                "bytes read from storage unknown");
    json_object_set_new(object, "cold", cold_of(&run->cold, server));
    json_object_set_new(object, "read_latency",
                        latency_json(&run->read_latency_ns, run->epoch_latency_ns, false));
    PUT(object, counts, run);
    PUT(json_put_new(object, "decoded", json_object()), decoded, &run->decode);
    for (int i = 0; i < FINDING_KINDS; i++) {
        const struct findings_kind *kind = &run->findings.kinds[i];
        json_t *one = json_object();
        json_put_count(one, "count", kind->count);
        json_object_set_new(one, "first", json_texts(kind->named, FINDING_BYTES, kind->texts[0]));
        json_object_set_new(findings, finding_keys[i], one);
    }
    json_object_set_new(object, "findings", findings);
    json_put_count(object, "epochs_run", run->epochs_run);
    for (uint32_t i = 0; i < run->epoch_count; i++) {
        json_t *epoch = json_object();
        report_figures(epoch, figures_of_epoch, figures_of_epoch_count, &run->epochs[i]);
        if (!digest)
            report_null(epoch, "digest", "--digest was not given");
        json_array_append_new(epochs, epoch);
    }
    json_object_set_new(object, "epochs", epochs);
    for (uint32_t i = 0; i < run->node_count; i++) {
        json_t *node = json_object();
        json_put_text(node, "host", run->nodes[i].host);
        json_put_count(node, "ranks", run->nodes[i].ranks);
        json_object_set_new(node, "cold", cold_of(&run->nodes[i].cold, server));
        json_array_append_new(nodes, node);
    }
    json_object_set_new(object, "nodes", nodes);
    for (uint32_t i = 0; i < run->rank_count; i++)
        json_array_append_new(ranks, report_ranks_json_one(&run->ranks[i]));
    json_object_set_new(object, "ranks", ranks);
    return object;
}

/* ---- over all runs ---- */

static json_t *summary_of(const struct result *result, const struct summary *summary)
{
    static const char no_later[] = "only one epoch", no_calibration[] = "not calibrated";
    static const char no_run[] = "no complete run", too_few_to_drift[] = "needs 5 runs";
    static const struct figure rates[] = {
        {"samples_per_s", AT(STATS, summary, samples_per_s)},
        {"record_bytes_per_s", AT(STATS, summary, bytes_per_s)},
        {"first_epoch_samples_per_s", AT(STATS, summary, first.samples_per_s)},
        {"first_epoch_record_bytes_per_s", AT(STATS, summary, first.bytes_per_s)},
        {"later_epochs_samples_per_s", AT(STATS, summary, later.samples_per_s),
         .unknown = no_later},
        {"later_epochs_record_bytes_per_s", AT(STATS, summary, later.bytes_per_s),
         .unknown = no_later},
        {"au_percent", AT(STATS, summary, au_percent), FIGURE_KNOWN(summary, trains),
         .unknown = no_work},
        {"mlperf_au_percent", AT(STATS, summary, mlperf_au_percent), FIGURE_KNOWN(summary, trains),
         .unknown = "the trainer does not compute, or no epoch has a second step"},
        {"steady_samples_per_s", AT(STATS, summary, steady_samples_per_s),
         .unknown = "read-ahead grew or shrank, or fewer than 20 batches"},
        {"read_head_ratio", AT(STATS, summary, head_ratio),
         .unknown = "too few reads to split, or reads overlapped the next epoch"},
        {"bursts", AT(FLAG, summary, bursts)},
    };
    static const struct figure counts[] = {
        {"drifts", AT(FLAG, summary, drifts)},
        {"samples", AT(COUNT, summary, all.samples)},
        {"skipped_samples", AT(COUNT, summary, all.skipped)},
        {"record_bytes", AT(COUNT, summary, all.record_bytes)},
        {"request_bytes", AT(COUNT, summary, all.request_bytes)},
        {"requests", AT(COUNT, summary, all.requests)},
        {"read_errors", AT(COUNT, summary, read_errors)},
        {"short_reads", AT(COUNT, summary, short_reads)},
        {"first_epoch_record_bytes", AT(COUNT, summary, first_record_bytes)},
        {"first_epoch_device_read_bytes", AT(COUNT, summary, device_bytes),
         FIGURE_KNOWN(summary, device_known), .unknown = "not known for every run; see runs"},
    };
    static const struct figure ceilings[] = {
        {"ceiling_samples_per_s", AT(REAL, result, ceiling_samples_per_s),
         .unknown = no_calibration},
        {"au_calibration_percent", AT(REAL, result, au_calibration_percent),
         .unknown = no_calibration},
    };
    static const struct figure shares[] = {
        {"loader_for_storage_percent", AT(REAL, summary_shares, loader_storage)},
        {"loader_for_memory_percent", AT(REAL, summary_shares, loader_memory)},
        {"decode_for_records_percent", AT(REAL, summary_shares, decode_input)},
        {"decode_for_batch_percent", AT(REAL, summary_shares, decode_slot)},
        {"decode_busy_percent", AT(REAL, summary_shares, decode_busy)},
        {"decode_entry_points_percent", AT(REAL, summary_shares, decode_hints)},
        {"trainer_for_batch_percent", AT(REAL, summary_shares, trainer_input)},
        {"trainer_upload_percent", AT(REAL, summary_shares, trainer_upload)},
        {"trainer_compute_percent", AT(REAL, summary_shares, trainer_compute)},
        {"trainer_exchange_percent", AT(REAL, summary_shares, trainer_exchange)},
    };
    const bool can_drift = summary->runs >= TREND_LEAST;
    json_t *object = json_object(), *feeds = json_array();

    json_put_count(object, "complete_runs", summary->runs);
    put_real(object, "interval_coverage", summary->samples_per_s.coverage);
    PUT(object, rates, summary);
    put_real_if(object, "drift_percent", can_drift, 100 * summary->drift.drift, too_few_to_drift);
    put_real_if(object, "drift_p", can_drift, summary->drift.p, too_few_to_drift);
    PUT(object, counts, summary);
    put_text_if(object, "cache_before", summary->runs ? summary_cache_name(summary->cache) : NULL,
                no_run);
    put_real_if(object, "cold_residue_percent", summary->residue_known, summary->residue_percent,
                "not verified; see runs");
    json_object_set_new(object, "read_latency",
                        latency_json(&summary->read_latency_ns, summary->epoch_latency_ns, true));
    put_text_if(object, "limit", summary->runs ? summary_limit_name(summary->limit) : NULL, no_run);
    put_text_if(object, "limit_sentence", summary->runs ? summary->limit_sentence : NULL, no_run);
    PUT(json_put_new(object, "shares", json_object()), shares, &summary->shares);
    if (summary->ranks.ranks > 1)
        json_object_set_new(object, "ranks_compared", report_ranks_json(&summary->ranks));
    else
        report_null(object, "ranks_compared", "only one rank");
    PUT(object, ceilings, result);
    for (const struct accelerator *gpu = accelerator_table(); summary->runs && gpu->name; gpu++) {
        json_t *feed = json_object();
        json_put_text(feed, "gpu", gpu->title);
        put_real(feed, "count", accelerator_count(gpu, summary->samples_per_s.median));
        put_real(feed, "gpu_samples_per_s", gpu->mixed_samples_per_s);
        json_put_text(feed, "source", gpu->mixed_source);
        json_array_append_new(feeds, feed);
    }
    json_object_set_new(object, "resnet50_feeds", feeds);
    struct mlperf mlperf;
    if (summary->runs && result->job->workload && mlperf_check(result, &mlperf) == 0)
        json_object_set_new(object, "mlperf", mlperf_json(&mlperf, summary->samples_per_s.median));
    else
        report_null(object, "mlperf", "no --workload, or no complete run");
    return object;
}

json_t *report_json(const struct result *result, const struct summary *summary)
{
    static const struct figure hints[] = {
        {"records", AT(COUNT, result_hints, records)},
        {"images", AT(COUNT, result_hints, images)},
        {"decode_threads_s", AT(TIME, result_hints, decode_ns)},
        {"write_s", AT(TIME, result_hints, keep_ns)},
        {"file_images", AT(COUNT, result_hints, kept_images)},
        {"file", AT(TEXT, result_hints, path), FIGURE_REASON(result_hints, reason)},
    };
    json_t *object = json_object(), *runs = json_array();
    char headline[REPORT_HEADLINE_BYTES];

    put_text_if(object, "label", result->job->output.label, "--label was not given");
    json_object_set_new(object, "valid", json_boolean(result->valid));
    put_text_if(object, "invalid_reason", result->valid ? NULL : result->invalid_reason, "valid");
    json_object_set_new(object, "interrupted", json_boolean(result->interrupted));
    json_object_set_new(object, "degraded",
                        json_boolean(summary->all.skipped > 0 || *result->degraded_reason));
    put_text_if(object, "degraded_reason",
                *result->degraded_reason ? result->degraded_reason : NULL, "not degraded");
    json_put_text(object, "headline", report_headline(result, summary, headline));
    /* The table's sentences, in order; an empty name continues the previous one. */
    struct text_page page = page_of(NULL, result, summary, false);
    page.entries = json_put_new(object, "entries", json_array());
    print_page(&page);
    put_text_if(object, "started", result->environment.started, "not recorded");
    put_text_if(object, "command", result->environment.command, "not recorded");
    json_object_set_new(object, "settings", settings_of(result->job));
    json_object_set_new(object, "place", report_environment(&result->environment));
    json_object_set_new(object, "session", session_of(&result->session));
    json_object_set_new(object, "dataset", report_dataset(result));
    json_object_set_new(object, "engine", engine_of(result));
    json_object_set_new(object, "summary", summary_of(result, summary));
    for (uint32_t i = 0; i < result->run_count; i++)
        json_array_append_new(runs, run_of(&result->runs[i], result->job->decode.digest));
    json_object_set_new(object, "runs", runs);
    if (result->hints.were_made) {
        json_t *points = json_object();
        PUT(points, hints, &result->hints);
        json_object_set_new(object, "entry_points", points);
    } else {
        report_null(object, "entry_points", "none were made: --entry-points was not given");
    }
    if (result->timeline)
        json_object_set_new(object, "series", report_timeline(result->timeline));
    else
        report_null(object, "series", result->timeline_reason);
    json_object_set_new(object, "notices",
                        json_texts(result->notice_count, RESULT_NOTICE_BYTES, result->notices[0]));
    json_object_set_new(
        object, "advice",
        json_texts(summary->advice_count, SUMMARY_ADVICE_BYTES, summary->advice[0]));
    if (!object)
        fail(ENOMEM, "out of memory");
    return object;
}

json_t *report_json_document(json_t *jobs, json_t *members)
{
    json_t *document = json_object();

    json_put_text(document, "schema", "iobench-result");
    json_put_count(document, "schema_version", SCHEMA_VERSION);
    json_put_text(document, "iobench_version", PACKAGE_VERSION);
    json_object_set(document, "jobs", jobs);
    if (members && json_object_update(document, members)) {
        json_decref(document);
        document = NULL;
    }
    return seal_add(document);
}
