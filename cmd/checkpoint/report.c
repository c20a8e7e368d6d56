/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/checkpoint/report.h"

#include "base/bytes.h"
#include "base/escape.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/stats.h"
#include "report/report.h"
#include "report/load.h"
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
 * that of the unscaled checkpoint at the measured rate, and of what follows its last byte. What is
 * then lost is no first order: at random failures, a segment of interval_s takes mtbf_s *
 * (exp((interval_s + write_s) / mtbf_s) - 1) in the mean (Daly 2006, without restarts). */
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

/* Of all writes or reads; of `one`, if it is not NULL, whose phase it is. */
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
