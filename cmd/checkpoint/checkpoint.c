/* SPDX-License-Identifier: Apache-2.0
 *
 * iobench checkpoint: writes and restores the checkpoints of a language model.
 */
#include "cmd/checkpoint/checkpoint.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/escape.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/stats.h"
#include "cmd/commands.h"
#include "cmd/line.h"
#include "cmd/outputs.h"
#include "pipeline/settings/job.h"
#include "report/report.h"
#include "report/words.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double GIB = 1 << 30;

/* ---- figures ---- */

/* All writes, or all reads. Rates are those of the slowest rank, as in MLPerf Storage. */
struct phase {
    uint64_t count, bytes; /* bytes: of one checkpoint */
    double bytes_per_s, low, high, wall_s, durable_s, stall_s, sync_s;
    double process_bytes, device_bytes;    /* written, of all; NAN: unknown */
    enum checkpoint_durability durability; /* the least */
    struct histogram latency_ns;
};

static double rate_of(const struct checkpoint_row *row)
{
    return row->wall_ns ? (double)row->bytes / ((double)row->wall_ns * 1e-9) : NAN;
}

/* values: space for `count`. */
static void summarise(const struct checkpoint_row *rows, uint64_t count, double *values,
                      struct phase *phase)
{
    const struct {
        size_t offset;
        double *median_s;
    } times[] = {{offsetof(struct checkpoint_row, wall_ns), &phase->wall_s},
                 {offsetof(struct checkpoint_row, durable_ns), &phase->durable_s},
                 {offsetof(struct checkpoint_row, stall_ns), &phase->stall_s},
                 {offsetof(struct checkpoint_row, sync_ns), &phase->sync_s}};

    *phase = (struct phase){.count = count, .durability = CHECKPOINT_DURABLE};
    for (uint64_t i = 0; i < count; i++) {
        const enum checkpoint_durability durability = checkpoint_durability(&rows[i]);
        values[i] = rate_of(&rows[i]);
        phase->bytes = rows[i].bytes;
        phase->process_bytes += rows[i].process_bytes;
        phase->device_bytes += rows[i].device_bytes;
        phase->durability = durability < phase->durability ? durability : phase->durability;
        histogram_merge(&phase->latency_ns, &rows[i].latency_ns);
    }
    const struct stats_summary rates = stats_summarise(values, count);
    phase->bytes_per_s = rates.median;
    phase->low = rates.low;
    phase->high = rates.high;
    for (size_t k = 0; k < sizeof times / sizeof *times; k++) {
        for (uint64_t i = 0; i < count; i++) {
            uint64_t time_ns;
            memcpy(&time_ns, (const char *)&rows[i] + times[k].offset, sizeof time_ns);
            values[i] = (double)time_ns * 1e-9;
        }
        *times[k].median_s = stats_summarise(values, count).median;
    }
}

/* Returns 0 or -ENOMEM with a reason. */
static int summarise_both(const struct checkpoint_result *result, struct phase *writes,
                          struct phase *reads)
{
    double *values = memory_array(result->write_count + result->read_count + 1, sizeof *values);

    if (!values)
        return -ENOMEM;
    summarise(result->writes, result->write_count, values, writes);
    summarise(result->reads, result->read_count, values, reads);
    free(values);
    return 0;
}

int checkpoint_report_rates(const struct checkpoint_result *result, double *written, double *read)
{
    struct phase writes = {0}, reads = {0};
    int code = summarise_both(result, &writes, &reads);

    *written = writes.bytes_per_s;
    *read = reads.bytes_per_s;
    return code;
}

/* Young, "A first order approximation to the optimum checkpoint interval" (1974). The write time is
 * that of the unscaled checkpoint at the measured rate, and of what follows its last byte. The loss
 * at that interval is computed exactly, not to first order: with random failures, a segment of
 * interval_s takes mtbf_s * (exp((interval_s + write_s) / mtbf_s) - 1) in the mean (Daly 2006,
 * without restarts). */
struct young {
    double write_s, interval_s, lost_percent;
};

static struct young young_of(const struct checkpoint_job *job,
                             const struct checkpoint_result *result, const struct phase *writes)
{
    const double mtbf_s = (double)job->mtbf_ns * 1e-9;
    const double after_s = fmax(writes->durable_s - writes->wall_s, 0);
    struct young young = {.write_s =
                              (double)result->files.full_bytes / writes->bytes_per_s + after_s};

    young.interval_s = sqrt(2 * young.write_s * mtbf_s);
    young.lost_percent =
        100 * (1 - young.interval_s / mtbf_s / expm1((young.interval_s + young.write_s) / mtbf_s));
    return young;
}

/* Return the time that the training loop lost to checkpoints. */
static double lost_s(const struct checkpoint_job *job, const struct checkpoint_result *result)
{
    return (double)result->loop_ns * 1e-9 - (double)result->steps * (double)job->step_ns * 1e-9;
}

static const char *cache_of(const struct checkpoint_result *result)
{
    enum result_cache worst = RESULT_CACHE_COLD;

    for (uint32_t i = 0; i < result->evidence.run_count; i++)
        if (result->evidence.runs[i].cold.state > worst)
            worst = result->evidence.runs[i].cold.state;
    return result->evidence.run_count ? summary_cache_name(worst) : NULL;
}

/* ---- the table ---- */

static const char *seconds(double value, char *text)
{
    return words_duration(value > 0 ? (uint64_t)(value * 1e9) : 0, text);
}

int checkpoint_report_text(const struct checkpoint_job *job, const struct checkpoint_result *result)
{
    const struct result *evidence = &result->evidence;
    const char *cache = cache_of(result);
    const bool is_degraded = evidence->degraded_reason[0];
    struct phase writes, reads;
    char durable[WORDS_BYTES], synced[WORDS_BYTES];

    if (summarise_both(result, &writes, &reads))
        return -ENOMEM;
    printf("iobench " PACKAGE_VERSION " checkpoint: %s%s%s, %llu written, %llu read",
           !evidence->valid ? "INVALID"
           : is_degraded    ? "DEGRADED"
                            : "valid",
           cache ? ", " : "", cache ? cache : "", (unsigned long long)result->write_count,
           (unsigned long long)result->read_count);
    if (result->files.count && result->files.bytes < result->files.full_bytes)
        printf(", SCALED to 1/%.0f",
               (double)result->files.full_bytes / (double)result->files.bytes);
    printf("\n");
    if (!evidence->valid)
        printf("  INVALID  %s\n", escape_shown(evidence->invalid_reason));
    if (is_degraded)
        printf("  DEGRADED %s\n", escape_shown(evidence->degraded_reason));
    printf("\n");
    const struct environment *place = &evidence->environment;
    char chunk[32], memory[32];
    const struct model_files *files = &result->files;
    char bytes[32], full[32];
    if (files->count) {
        printf("  Model    %s: %.2f G parameters, %u ranks written (%ux%ux%u, ZeRO %u%s), %u "
               "files%s\n",
               job->model.model.name, (double)job->model.model.parameters * 1e-9, files->ranks,
               files->tensor, files->pipeline, files->data, files->zero,
               files->is_published ? ", as MLPerf Storage v3.0" : "", files->count,
               job->is_single ? " in one" : "");
        printf("           %s each checkpoint", bytes_text(files->bytes, bytes, sizeof bytes));
        if (files->bytes < files->full_bytes)
            printf(", scaled to 1/%.0f of %s", (double)files->full_bytes / (double)files->bytes,
                   bytes_text(files->full_bytes, full, sizeof full));
        printf("\n");
    }
    printf("  Storage  %s at %s%s%s\n", escape_shown(place->file_system),
           escape_shown(place->mount_point), place->devices[0] ? " on " : "",
           escape_shown(place->devices));
    if (result->write_count)
        printf("  Writer   %s; %" PRIu64 " chunks of %s in flight per rank; %s; %s\n",
               result->writer_engine, job->depth, bytes_text(job->chunk_bytes, chunk, sizeof chunk),
               job->sync ? "fsync" : "not synced",
               job->is_async ? "asynchronous" : "training waits");
    if (result->read_count)
        printf("  Reader   %s; %" PRIu64 " in flight per rank%s\n", evidence->reader_engine,
               job->depth, job->verify ? "; each chunk's CRC-32C verified" : "; NOT verified");
    printf("  Host     %s: %u CPUs (%s), %s of memory, %s\n", escape_shown(place->host),
           place->cpu_count, escape_shown(place->cpu),
           bytes_text(place->memory_bytes, memory, sizeof memory), escape_shown(place->kernel));
    if (result->processes > 1)
        printf("  Ranks    %u processes on %u nodes\n", result->processes, result->nodes);
    printf("\n  %-8s %10s %22s  %10s %10s %10s\n", "", "GiB/s", "95% interval     ", "time",
           "p50 chunk", "p99 chunk");
    char rate[WORDS_BYTES], low[WORDS_BYTES], high[WORDS_BYTES], wall[WORDS_BYTES],
        p50[WORDS_BYTES], p99[WORDS_BYTES];
    for (int is_read = 0; is_read < 2; is_read++) {
        const struct phase *phase = is_read ? &reads : &writes;
        if (phase->count)
            printf("  %-8s %10s %9s .. %-9s %10s %10s %10s\n", is_read ? "Restore" : "Write",
                   words_rate(phase->bytes_per_s / GIB, rate), words_rate(phase->low / GIB, low),
                   words_rate(phase->high / GIB, high), seconds(phase->wall_s, wall),
                   words_duration(histogram_quantile(&phase->latency_ns, 0.5), p50),
                   words_duration(histogram_quantile(&phase->latency_ns, 0.99), p99));
    }
    printf("\n");
    if (writes.count && writes.durability == CHECKPOINT_NOT_DURABLE)
        printf("  Durable  not durable: files were not synced; complete after %s\n",
               seconds(writes.durable_s, durable));
    else if (writes.count)
        printf("  Durable  %safter %s: all files synced, the manifest written, the folder renamed; "
               "fsync %s\n",
               writes.durability == CHECKPOINT_UNVERIFIED ? "unverified, " : "",
               seconds(writes.durable_s, durable), seconds(writes.sync_s, synced));
    char step[WORDS_BYTES], lost[WORDS_BYTES], each[WORDS_BYTES];
    const double lost_all = lost_s(job, result);
    if (job->step_ns && writes.count)
        printf("  Training %llu steps of %s: lost %s to %llu checkpoint%s, %s each, %.1f%% of the "
               "time\n",
               (unsigned long long)result->steps, words_duration(job->step_ns, step),
               seconds(lost_all, lost), (unsigned long long)writes.count,
               writes.count == 1 ? "" : "s", seconds(lost_all / (double)writes.count, each),
               100 * lost_all / ((double)result->loop_ns * 1e-9));
    const struct young young = young_of(job, result, &writes);
    char whole[WORDS_BYTES], mtbf[WORDS_BYTES], every[WORDS_BYTES];
    if (writes.count)
        printf(
            "  Interval %s by Young's formula, with one failure in %s and %s for an unscaled "
            "checkpoint\n           at this rate; %.1f%% of the time is then lost to checkpoints "
            "and failures\n",
            seconds(young.interval_s, every), words_duration(job->mtbf_ns, mtbf),
            seconds(young.write_s, whole), young.lost_percent);
    const double written = (double)writes.bytes * (double)writes.count;
    char read[32];
    if (writes.count) {
        printf("  Bytes    %s written", bytes_text((uint64_t)written, bytes, sizeof bytes));
        if (isfinite(writes.device_bytes))
            printf(", %.1f%% of them by the devices beneath, for any process\n",
                   100 * writes.device_bytes / written);
        else
            printf("; no device beneath counts what it writes\n");
    }
    if (evidence->run_count) {
        const struct result_bytes *device = &evidence->runs[0].epochs[0].device;
        bytes_text(reads.bytes, read, sizeof read);
        if (device->known)
            printf("  Read     %s each time, %.1f%% of it left storage the first time (%s)\n", read,
                   100 * (double)device->bytes / (double)reads.bytes, device->method);
        else
            printf("  Read     %s each time; bytes that left storage: unknown: %s\n", read,
                   device->reason);
    }
    const struct content_ceiling *ceiling = &result->ceiling;
    char made[WORDS_BYTES], checked[WORDS_BYTES];
    if (evidence->run_count)
        printf("  Cache    %s before each read: %s\n", cache,
               escape_shown(evidence->runs[0].cold.method));
    printf(
        "  Ceiling  per rank %s GiB/s to write and %s GiB/s to verify: the most the program itself "
        "can do here\n",
        words_rate(ceiling->made_per_s / GIB, made),
        words_rate(ceiling->checked_per_s / GIB, checked));
    for (uint32_t i = 0; i < evidence->notice_count; i++)
        printf("  Note     %s\n", escape_shown(evidence->notices[i]));
    /* "-" if training did not wait */
    char median[WORDS_BYTES], fastest[WORDS_BYTES], stall[WORDS_BYTES];
    printf("\n  %-6s %10s %9s %10s %10s %10s %8s %10s %10s\n", "", "checkpoint", "GiB/s", "fastest",
           "median", "slowest", "rank", "durable", "stall");
    for (uint64_t i = 0; i < result->write_count + result->read_count; i++) {
        const bool is_read = i >= result->write_count;
        const struct checkpoint_row *row =
            is_read ? &result->reads[i - result->write_count] : &result->writes[i];
        printf("  %-6s %10u %9s %10s %10s %10s %8u %10s %10s\n", is_read ? "read" : "write",
               row->number, words_rate(rate_of(row) / GIB, rate),
               words_duration(row->fastest_ns, fastest), words_duration(row->median_ns, median),
               words_duration(row->wall_ns, wall), row->slowest,
               is_read || !checkpoint_durability(row) ? "-"
                                                      : words_duration(row->durable_ns, durable),
               is_read ? "-" : words_duration(row->stall_ns, stall));
    }
    return 0;
}

/* ---- JSON ---- */

/* The phase of all writes or reads, or, if it is not NULL, that of `one`. */
static json_t *json_phase(const struct phase *phase, const struct checkpoint_row *one, bool is_read)
{
    static const char *const durabilities[] = {"not durable", "unverified", "durable"};
    const struct histogram *latency_ns = &phase->latency_ns;
    json_t *object = json_object();

    json_put_count(object, one ? "number" : "count", one ? one->number : phase->count);
    json_put_count(object, "bytes", phase->bytes);
    json_put_number(object, "bytes_per_s", phase->bytes_per_s);
    if (!one) {
        json_put_number(object, "low_bytes_per_s", phase->low);
        json_put_number(object, "high_bytes_per_s", phase->high);
    }
    json_put_number(object, "wall_s", phase->wall_s);
    if (one) {
        json_put_number(object, "median_rank_s", (double)one->median_ns * 1e-9);
        json_put_number(object, "fastest_rank_s", (double)one->fastest_ns * 1e-9);
        json_put_count(object, "slowest_rank", one->slowest);
    }
    json_put_count(object, "requests", latency_ns->count);
    json_put_number(object, "p50_ms", (double)histogram_quantile(latency_ns, 0.5) * 1e-6);
    json_put_number(object, "p99_ms", (double)histogram_quantile(latency_ns, 0.99) * 1e-6);
    json_put_number(object, "max_ms", (double)histogram_quantile(latency_ns, 1) * 1e-6);
    if (!is_read) {
        json_put_number(object, "sync_s", phase->sync_s);
        json_put_number(object, "durable_s", phase->durability ? phase->durable_s : NAN);
        json_put_number(object, "stall_s", phase->stall_s);
        json_put_number(object, "process_write_bytes", phase->process_bytes);
        json_put_number(object, "device_write_bytes", phase->device_bytes);
        json_put_text(object, "durability", durabilities[phase->durability]);
    } else if (one)
        json_put_count(object, "damaged_chunks", one->damaged);
    return object;
}

json_t *checkpoint_report_json(const struct checkpoint_job *job,
                               const struct checkpoint_result *result)
{
    struct phase writes, reads, phase;
    double value; /* of one row */

    if (summarise_both(result, &writes, &reads))
        return NULL;
    const struct environment *place = &result->evidence.environment;
    json_t *object,
        *document =
            json_pack("{s:s, s:i, s:s, s:o, s:o}", "schema", "iobench-checkpoint", "schema_version",
                      SCHEMA_VERSION, "iobench_version", PACKAGE_VERSION, "command",
                      json_text(job->command), "started", json_text(place->started));
    report_verdict(document, &result->evidence);
    object = report_environment(place);
    json_put_count(object, "cpus", place->cpu_count);
    json_put_count(object, "processes", result->processes);
    json_put_count(object, "nodes", result->nodes);
    json_object_set_new(document, "place", object);
    const struct model_files *files = &result->files;
    json_object_set_new(
        document, "model",
        files->count == 0
            ? json_null()
            : json_pack("{s:s, s:I, s:i, s:i, s:i, s:i, s:i, s:b, s:i, s:I, s:I}", "name",
                        job->model.model.name, "parameters",
                        (json_int_t)job->model.model.parameters, "ranks", files->ranks,
                        "tensor_parallel", files->tensor, "pipeline_parallel", files->pipeline,
                        "data_parallel", files->data, "zero_stage", files->zero, "as_published",
                        files->is_published, "files", files->count, "bytes",
                        (json_int_t)files->bytes, "full_bytes", (json_int_t)files->full_bytes));
    object = json_pack(
        "{s:o, s:s, s:I, s:I, s:o, s:o, s:b, s:b, s:b, s:b, s:I, s:I, s:o, s:o, s:I}", "path",
        json_text(job->path), "layout", job->is_single ? "single" : "sharded", "chunk_bytes",
        (json_int_t)job->chunk_bytes, "iodepth", (json_int_t)job->depth, "writer",
        json_text(result->write_count ? result->writer_engine : NULL), "reader",
        json_text(result->read_count ? result->evidence.reader_engine : NULL), "direct",
        job->direct, "fsync", job->sync, "verify", job->verify, "async", job->is_async, "keep",
        (json_int_t)job->keep, "interval", (json_int_t)job->interval, "step_time_s",
        json_number((double)job->step_ns * 1e-9), "mtbf_s",
        json_number((double)job->mtbf_ns * 1e-9), "rank_shift", (json_int_t)job->rank_shift);
    json_put_count(object, "seed", job->seed);
    json_object_set_new(document, "settings", object);
    json_object_set_new(document, "write",
                        writes.count ? json_phase(&writes, NULL, false) : json_null());
    json_object_set_new(document, "read",
                        reads.count ? json_phase(&reads, NULL, true) : json_null());
    json_put_text(document, "cache_before", cache_of(result));
    const struct young young = young_of(job, result, &writes);
    json_object_set_new(
        document, "training",
        writes.count == 0
            ? json_null()
            : json_pack("{s:I, s:o, s:o, s:o, s:o, s:o}", "steps", (json_int_t)result->steps,
                        "loop_s", json_number(job->step_ns ? (double)result->loop_ns * 1e-9 : NAN),
                        "lost_s", json_number(job->step_ns ? lost_s(job, result) : NAN),
                        "young_write_s", json_number(young.write_s), "young_interval_s",
                        json_number(young.interval_s), "young_lost_percent",
                        json_number(young.lost_percent)));
    json_put_number(document, "ceiling_write_bytes_per_s", result->ceiling.made_per_s);
    json_put_number(document, "ceiling_verify_bytes_per_s", result->ceiling.checked_per_s);
    json_t *list = json_put_new(document, "writes", json_array());
    for (uint64_t i = 0; i < result->write_count; i++) {
        summarise(&result->writes[i], 1, &value, &phase);
        json_array_append_new(list, json_phase(&phase, &result->writes[i], false));
    }
    list = json_put_new(document, "reads", json_array());
    for (uint64_t i = 0; i < result->read_count; i++) {
        const struct result_run *run = &result->evidence.runs[i];
        const struct result_bytes *device = &run->epochs[0].device;
        summarise(&result->reads[i], 1, &value, &phase);
        object = json_phase(&phase, &result->reads[i], true);
        json_object_update_new(
            object,
            json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "cache_before",
                      summary_cache_name(run->cold.state), "cache_method",
                      json_text(run->cold.method), "cache_reason", json_text(run->cold.reason),
                      "device_read_bytes", json_number(device->known ? (double)device->bytes : NAN),
                      "device_read_method", json_text(device->known ? device->method : NULL),
                      "device_read_reason", json_text(device->known ? NULL : device->reason)));
        json_array_append_new(list, object);
    }
    list = json_put_new(document, "ranks", json_array());
    for (uint32_t i = 0; i < result->ranks; i++) {
        const struct checkpoint_rank *rank = &result->each[i];
        json_array_append_new(list, json_pack("{s:i, s:o, s:I, s:o, s:I, s:o}", "rank", i, "host",
                                              json_text(rank->host), "written_bytes",
                                              (json_int_t)rank->written, "write_s",
                                              json_number((double)rank->write_ns * 1e-9),
                                              "read_bytes", (json_int_t)rank->read, "read_s",
                                              json_number((double)rank->read_ns * 1e-9)));
    }
    return seal_add(document);
}

/* ---- options ---- */

struct checkpoint_settings {
    struct checkpoint_job job; /* fields that options set directly; fill_job() sets the rest */
    char *model, *scale, *writer, *json;
    uint64_t require_write, require_read; /* bytes/s; 0: none */
};

/* is_single of a job */
static const char *const layout_names[] = {"sharded", "single", NULL};

#define FIELD(field) .offset = offsetof(struct checkpoint_settings, field)
/* clang-format off */
static const struct option_spec checkpoint_options[] = {
    {"model", 'm', OPTION_TEXT, FIELD(model), .fallback = "8b", .metavar = "NAME[,params=N]",
     .section = "What is written",
     .summary = "8b, 70b, 405b or 1t, sized and divided among ranks as in MLPerf Storage v3.0, or "
                "your own, such as gpt,params=1.3b: 14 bytes a parameter"},
    {"ranks", 0, OPTION_COUNT, FIELD(job.model.ranks), .fallback = "auto", .zero = "auto",
     .maximum = MODEL_RANKS_MAX,
     .summary = "divide the model evenly among this many ranks (ZeRO 3); auto is as published, 8 "
                "for your own model"},
    {"subset", 0, OPTION_COUNT, FIELD(job.model.subset), .fallback = "all", .zero = "all",
     .maximum = MODEL_RANKS_MAX, .summary = "write the files of the first ranks only"},
    {"scale", 0, OPTION_TEXT, FIELD(scale), .fallback = "1", .metavar = "FRACTION",
     .summary = "write this part of every file, such as 1/1000: for small machines"},
    {"bytes", 0, OPTION_SIZE, FIELD(job.model.bytes), .fallback = "auto", .zero = "auto",
     .summary = "the same, by the size of a checkpoint; auto follows --scale"},
    {"layout", 0, OPTION_CHOICE, FIELD(job.is_single), .fallback = "sharded", .choices = layout_names,
     .summary = "sharded: files of each rank; single: all ranks write to one file"},
    {"writes", 'n', OPTION_COUNT, FIELD(job.writes), .fallback = "10", .maximum = 100000,
     .summary = "number of checkpoints to write; 0 only reads existing ones"},
    {"reads", 0, OPTION_COUNT, FIELD(job.reads), .fallback = "10", .maximum = 100000,
     .summary = "number of checkpoints to read afterwards, the newest first"},
    {"keep", 'k', OPTION_COUNT, FIELD(job.keep), .fallback = "2", .minimum = 1, .maximum = 100000,
     .summary = "complete checkpoints to keep in the folder while writing; older ones are removed"},
    {"leave", 0, OPTION_FLAG, FIELD(job.leave), .fallback = "no",
     .summary = "leave the last checkpoints in the folder at the end, for a later --writes 0"},
    {"seed", 0, OPTION_COUNT, FIELD(job.seed), .fallback = "1",
     .summary = "random seed of the content"},
    {"chunk", 'b', OPTION_SIZE, FIELD(job.chunk_bytes), .fallback = "32MiB", .minimum = 4096,
     .maximum = 1 << 30, .section = "How",
     .summary = "size of each write and read, a multiple of 4 KiB"},
    {"iodepth", 'q', OPTION_COUNT, FIELD(job.depth), .fallback = "4", .minimum = 1, .maximum = 1024,
     .summary = "chunks in flight per rank"},
    {"direct", 0, OPTION_FLAG, FIELD(job.direct), .fallback = "no",
     .summary = "bypass the page cache (O_DIRECT)"},
    {"fsync", 0, OPTION_FLAG, FIELD(job.sync), .fallback = "yes",
     .summary = "sync each file, inside its rank's time; without it nothing is known to be durable"},
    {"writer", 0, OPTION_TEXT, FIELD(writer), .fallback = "auto", .metavar = "NAME",
     .summary = "uring or pwrite; auto is io_uring, or blocking writes if it is refused"},
    {"reader", 'r', OPTION_TEXT, FIELD(job.reader), .fallback = "auto", .metavar = "NAME[:...]",
     .summary = "I/O engine that reads, as for a run"},
    {"verify", 0, OPTION_FLAG, FIELD(job.verify), .fallback = "yes",
     .summary = "compare each chunk read with its checksum"},
    {"rank-shift", 0, OPTION_COUNT, FIELD(job.rank_shift), .fallback = "0", .maximum = MODEL_RANKS_MAX,
     .summary = "each rank reads the files of the rank this much higher, such as another node's"},
    {"io-timeout", 0, OPTION_DURATION, FIELD(job.io_timeout_ns), .fallback = "60s", .zero = "none",
     .summary = "fail if a write or read takes longer"},
    {"rank-timeout", 0, OPTION_DURATION, FIELD(job.rank_timeout_ns), .fallback = "60s", .zero = "none",
     .summary = "abort if a rank that others wait for is unresponsive this long"},
    {"step-time", 0, OPTION_DURATION, FIELD(job.step_ns), .fallback = "none", .zero = "none",
     .section = "Training",
     .summary = "emulate a training loop: time of a step"},
    {"interval", 'i', OPTION_COUNT, FIELD(job.interval), .fallback = "10", .minimum = 1,
     .maximum = 1e9, .summary = "steps between checkpoints"},
    {"async", 0, OPTION_FLAG, FIELD(job.is_async), .fallback = "no",
     .summary = "continue training while a checkpoint is written; the next one waits for it"},
    {"mtbf", 0, OPTION_DURATION, FIELD(job.mtbf_ns), .fallback = "3h", .minimum = 1,
     .summary = "mean time between failures, for Young's formula"},
    JOB_DROP_ROW(offsetof(struct checkpoint_settings, job.cold), "yes"),
    JOB_SERVER_ROWS(offsetof(struct checkpoint_settings, job.cold)),
    {"json", 'j', OPTION_TEXT, FIELD(json), .metavar = "FILE", .reach = OPTION_WRITES,
     .begins = "{\"schema\"",
     .section = "Output",
     .summary = "write the result as JSON; - is standard output instead of the table"},
    {"require-write-rate", 0, OPTION_SIZE, FIELD(require_write), .fallback = "none", .zero = "none",
     .per_second = true,
     .summary = "fail unless the median of the writes reaches this (500MiB/s, 1GB/s)"},
    {"require-read-rate", 0, OPTION_SIZE, FIELD(require_read), .fallback = "none", .zero = "none",
     .per_second = true, .summary = "the same for the restores"},
    {0},
};
/* clang-format on */

struct checkpoint_show {
    struct line line;
    uint64_t start_ns;
};

static void show_checkpoint(void *context, bool is_read, uint64_t number, uint64_t total)
{
    struct checkpoint_show *show = context;
    char bar[LINE_PART_BYTES], left[LINE_PART_BYTES], text[sizeof show->line.last];

    snprintf(text, sizeof text, "%s checkpoints %s%s", is_read ? "reading" : "writing",
             line_bar(bar, number, total),
             line_left(left, number, total, clock_now_ns() - show->start_ns));
    line_show(&show->line, text);
}

/* "1/1000" or "0.001" */
static int parse_scale(const char *text, double *scale)
{
    char *end;
    double below = 1;

    *scale = strtod(text, &end);
    if (end != text && *end == '/') {
        const char *divisor = end + 1;
        below = strtod(divisor, &end);
        end = end == divisor ? (char *)(uintptr_t) "?" : end;
    }
    *scale /= below;
    if (end == text || *end || !(*scale > 0) || *scale > 1)
        return fail(EINVAL, "--scale %s: expected a fraction of at most 1, such as 1/1000", text);
    return 0;
}

/* Complete what the options have set. */
static int fill_job(const struct invocation *invocation, struct checkpoint_job *job)
{
    const struct checkpoint_settings *settings = invocation->settings;
    struct plugin_choice choice;
    int code = 0;

    *job = settings->job;
    job->path = invocation->operands[0];
    job->leave |= job->writes == 0;
    if ((settings->require_write && !job->writes) || (settings->require_read && !job->reads))
        code = fail(EINVAL, "--require-write-rate needs --writes, --require-read-rate --reads");
    else if (job->writes == 0 && job->reads == 0)
        code = fail(EINVAL, "--writes 0 --reads 0: nothing to do");
    else if (job->is_async && job->step_ns == 0)
        code = fail(EINVAL, "--async: needs a training loop: add --step-time");
    else if (job->chunk_bytes % MODEL_BLOCK_BYTES)
        code = fail(EINVAL, "--chunk: not a multiple of 4 KiB");
    if (code == 0)
        code = model_choose(settings->model, &job->model.model);
    if (code == 0)
        code = parse_scale(settings->scale, &job->model.scale);
    if (code || strcmp(settings->writer, "auto") == 0)
        return code;
    code = plugin_choose("writer", writer_registry, settings->writer, &choice);
    job->writer = choice.plugin;
    plugin_release(&choice);
    return code;
}

static int checkpoint_check(const struct invocation *invocation)
{
    struct checkpoint_job job;

    return fill_job(invocation, &job);
}

static int checkpoint_command(const struct invocation *invocation)
{
    const struct checkpoint_settings *settings = invocation->settings;
    struct checkpoint_show show = {line_start(), clock_now_ns()};
    struct checkpoint_result result = {0};
    struct checkpoint_job job;
    struct ranks ranks;
    char command[4096];
    double written, read;
    int status = COMMAND_OK;

    if (fill_job(invocation, &job))
        return command_misused(invocation);
    int code = command_join(&ranks);
    command_on_interrupt(); /* after MPI has installed its handlers */
    command_text(invocation, command, sizeof command);
    job.command = command;
    const bool speaks = ranks.place.rank == 0;
    job.progress = speaks ? show_checkpoint : NULL;
    job.progress_context = &show;
    if (code == 0) /* refuse before the work, not after it */
        code = ranks_meet(&ranks, speaks ? outputs_check_path(settings->json, "{\"schema\"") : 0,
                          NULL);
    if (code == 0)
        code = checkpoint_run(&job, &ranks, &result);
    line_clear(&show.line);
    const bool is_good = result.evidence.valid && !result.evidence.degraded_reason[0];
    if (code == 0 && speaks && (!settings->json || strcmp(settings->json, "-") != 0))
        code = checkpoint_report_text(&job, &result);
    if (code == 0 && speaks && settings->json)
        code = json_file_write(settings->json, checkpoint_report_json(&job, &result));
    if (code == 0 && speaks && is_good) {
        code = checkpoint_report_rates(&result, &written, &read);
        if (code == 0)
            code = command_reach("require-write-rate", written, (double)settings->require_write,
                                 "bytes/s");
        if (code == 0)
            code =
                command_reach("require-read-rate", read, (double)settings->require_read, "bytes/s");
    }
    if (code == 0)
        code = speaks ? !is_good : !result.evidence.valid;
    checkpoint_destroy(&result);
    if (code < 0 && (speaks || ranks.is_unheard))
        status = command_failed(invocation);
    else if (code)
        status = COMMAND_FAILED;
    command_leave(&ranks, code < 0);
    return status;
}

const struct command command_checkpoint = {
    .name = "checkpoint",
    .summary = "measure writing and restoring the checkpoints of a language model",
    .operands = "FOLDER",
    .operands_minimum = 1,
    .operands_maximum = 1,
    .description =
        "Writes what the ranks of a model would write for a checkpoint, several times, then reads "
        "it back from verified cold caches and compares every byte by checksum. Alone, a thread "
        "stands for each rank; under mpirun or srun the ranks are divided among the processes. "
        "Rates are those of the slowest rank, from a common start to its last fsync, as in MLPerf "
        "Storage. With --step-time a training loop runs between checkpoints, and what it loses is "
        "reported. A checkpoint appears in FOLDER under its name when it is complete and durable; "
        "whatever ends the program, the last complete one stays readable. At the end the program "
        "removes what it wrote, unless --leave is given.",
    .examples =
        "iobench checkpoint /mnt/ckpt --model 8b\t105 GB by 8 ranks, 10 times, then 10 restores\n"
        "iobench checkpoint /mnt/ckpt --model 70b --scale 1/1000\tthe same files on a small "
        "machine\n"
        "mpirun -n 64 --hostfile hosts iobench checkpoint /mnt/ckpt --model 70b --rank-shift 8\t"
        "8 nodes, each restores what its neighbour wrote\n"
        "iobench checkpoint /mnt/ckpt --step-time 500ms --interval 100 --async\ttime lost to "
        "training\n",
    .options = checkpoint_options,
    .settings_size = sizeof(struct checkpoint_settings),
    .operands_reach = {OPTION_WRITES_COLD},
    .is_confined = true,
    .check = checkpoint_check,
    .run = checkpoint_command,
};
