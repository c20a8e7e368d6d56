/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/evidence/validity.h"

#include "base/bytes.h"
#include "base/fail.h"
#include "readers/reader.h"
#include "shuffle/plan.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- relations between the figures of a run ---- */

/* A device measures with its own clock, which differs slightly from the host's. */
static const double CLOCKS_DIFFER = 1.01, CLOCKS_DIFFER_S = 1e-3;

/* The first contradiction is kept, so that checks read as a list. */
struct check {
    const char *of; /* the epoch or run, named before the contradiction */
    int code;
};

__attribute__((format(printf, 2, 3))) static void broken(struct check *check, const char *format,
                                                         ...)
{
    char what[200];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    check->code = fail(EPROTO, "%s: %s: a bug of iobench, please report it", check->of, what);
}

static double seconds(uint64_t ns)
{
    return (double)ns * 1e-9;
}

static void equal(struct check *check, const char *what, uint64_t a, const char *other, uint64_t b)
{
    if (check->code == 0 && a != b)
        broken(check, "%llu %s, but %llu %s", (unsigned long long)a, what, (unsigned long long)b,
               other);
}

static void at_most(struct check *check, const char *what, double a, const char *other, double b)
{
    if (check->code == 0 && !(a <= b))
        broken(check, "%s %.9g, but %s %.9g", what, a, other, b);
}

/* Check a row: an epoch or merged epochs, of a rank or of all. */
static void check_times(struct check *check, const struct result_epoch *row)
{
    const struct result_waits *waits = &row->waits;
    const double wall_s = seconds(row->wall_ns);
    uint64_t trainer_ns = 0; /* its phases do not overlap */

    for (int phase = 0; phase < RESULT_PHASES; phase++)
        trainer_ns += result_epoch_phase_ns(row, (enum result_phase)phase);
    at_most(check,
            "the loader waited, s:", seconds(waits->loader_storage_ns + waits->loader_memory_ns),
            "the epoch took", wall_s);
    at_most(check, "the trainer's parts add up to, s:", seconds(trainer_ns), "the epoch took",
            wall_s * CLOCKS_DIFFER + CLOCKS_DIFFER_S);
    at_most(check, "the first step ended after, s:", seconds(row->first_step_ns), "the epoch took",
            wall_s * CLOCKS_DIFFER + CLOCKS_DIFFER_S);
    at_most(check, "the first step's compute, s:", seconds(row->first_compute_ns),
            "that of all steps", seconds(row->compute_ns));
}

int invariants_epoch(const struct result_epoch *epoch, uint64_t draws, uint64_t batch_size,
                     uint32_t workers)
{
    const struct result_waits *waits = &epoch->waits;
    char of[48];
    struct check check = {.of = of};

    snprintf(of, sizeof of, "epoch %llu", (unsigned long long)epoch->epoch + 1);
    equal(&check, "samples delivered or skipped", epoch->samples + epoch->skipped,
          "draws of the plan", draws);
    equal(&check, "batches", epoch->batches, "are what the draws make",
          (draws + batch_size - 1) / batch_size);
    at_most(&check, "decoders waited, s:",
            seconds(waits->decode_input_ns + waits->decode_slot_ns + waits->decode_hints_ns),
            "their threads had, s:", seconds(workers * epoch->wall_ns));
    /* Until its first batch the trainer has nothing to do, whatever that batch waits for. */
    at_most(&check, "the first batch came after, s:", seconds(epoch->first_batch_ns),
            "the trainer waited", seconds(epoch->wait_ns) * CLOCKS_DIFFER + CLOCKS_DIFFER_S);
    check_times(&check, epoch);
    return check.code;
}

/* ---- a run ---- */

int invariants_run(const struct result *result, const struct result_run *run)
{
    static const double fractions[] = {0, 0.5, 0.9, 0.99, 0.999, 1};
    const struct job *job = result->job;
    const struct histogram *latency = &run->read_latency_ns;
    struct result_epoch total = {0}, sum = {0};
    uint64_t epochs = 0, draws = 0, before = 0, of_nodes = 0, slowest_ns = 0;
    char of[48];
    struct check check = {.of = of};

    /* The draws of an epoch, if they follow from the data set alone. */
    if (job->order.remainder == PLAN_UNEVEN && !job->order.limit_samples &&
        !job->order.limit_samples_per_rank && job->order.ranks == result->ranks &&
        !job->order.resume_at)
        draws = job->order.partition == PLAN_REPLICATED ? result->records * result->ranks
                                                        : result->records;
    for (uint32_t i = 0; check.code == 0 && i < run->epoch_count; i++) {
        const struct result_epoch *row = &run->epochs[i];
        const uint64_t of_row = draws * (row->merged + 1);
        snprintf(of, sizeof of, "epoch %llu", (unsigned long long)row->epoch + 1);
        check_times(&check, row);
        if (draws) {
            equal(&check, "samples delivered or skipped by all ranks", row->samples + row->skipped,
                  "records of the data set", of_row);
            /* Each record is drawn at least once; only padding repeats records. */
            at_most(&check, "bytes delivered:", (double)row->record_bytes, "bytes requested",
                    (double)row->request_bytes);
        }
        if (draws && row->skipped == 0)
            equal(&check, "bytes delivered", row->record_bytes, "bytes of all records",
                  result->record_bytes_total * (of_row / result->records));
        epochs += row->merged + 1;
        result_epoch_add(&total, row);
    }
    check.of = "run";
    equal(&check, "epochs in rows", epochs, "were run", run->epochs_run);

    check.of = "read latency";
    for (size_t i = 0; i < sizeof fractions / sizeof *fractions; i++) {
        const uint64_t value = histogram_quantile(latency, fractions[i]);
        at_most(&check, "a lower percentile, ns:", (double)before, "a higher one", (double)value);
        before = value;
    }
    if (latency->count)
        at_most(&check, "their sum, ns:", (double)latency->sum, "as many of the longest",
                (double)latency->maximum * (double)latency->count);
    check.of = "reads";
    equal(&check, "have a latency or failed", latency->count + run->read_errors, "were requested",
          total.requests);
    equal(&check, "of the first epoch and of later ones",
          run->epoch_latency_ns[RESULT_EPOCH_FIRST].count +
              run->epoch_latency_ns[RESULT_EPOCH_LATER].count,
          "have a latency", latency->count);

    check.of = "run";
    /* Records that the decoder used were delivered, unless a mapped page was lost meanwhile. */
    if (run->decode.images && total.skipped == 0) {
        equal(&check, "images decoded", run->decode.images - run->decode.failed,
              "samples delivered with an image",
              total.samples - run->findings.kinds[FINDING_EMPTY].count);
        at_most(&check, "image bytes:", (double)run->decode.bytes, "record bytes",
                (double)total.record_bytes);
    }
    if (run->rank_count == 0)
        return check.code;
    for (uint32_t i = 0; i < run->rank_count; i++) {
        result_epoch_add(&sum, &run->ranks[i].total);
        if (run->ranks[i].total.wall_ns > slowest_ns)
            slowest_ns = run->ranks[i].total.wall_ns;
    }
    for (uint32_t i = 0; i < run->node_count; i++)
        of_nodes += run->nodes[i].ranks;
    equal(&check, "ranks reported", run->rank_count, "are in the job", result->ranks);
    if (run->node_count)
        equal(&check, "ranks of all nodes", of_nodes, "are in the job", result->ranks);
    equal(&check, "samples of all ranks", sum.samples, "of all epochs", total.samples);
    equal(&check, "bytes of all ranks", sum.record_bytes, "of all epochs", total.record_bytes);
    equal(&check, "requests of all ranks", sum.requests, "of all epochs", total.requests);
    /* An epoch lasts at least as long as its slowest rank. */
    at_most(&check, "the slowest rank took, s:", seconds(slowest_ns), "all epochs together",
            seconds(total.wall_ns));
    return check.code;
}

/* ---- the verdict ---- */

static const double SHARE_LEAST = 98; /* percent of the bytes delivered */
/* In percent of what this job may have read with all read-ahead. A count that includes other
 * processes and exceeds this contains their reads, whose share is unknown. */
static const double SHARE_MOST = 150;

/* The bytes of this run came from a cache that was thought to be cold. */
static void condemn(const struct job *job, struct result_run *run, struct result *result,
                    const char *what)
{
    if (job->cold.drop_caches == JOB_DROP_STRICT) {
        run->valid = false;
        snprintf(run->invalid_reason, sizeof run->invalid_reason, "%s", what);
    } else if (job->cold.drop_caches != JOB_DROP_NO) {
        result_degraded(result, "run %llu: %s", (unsigned long long)run->number + 1, what);
    } else {
        result_notice(result, "run %llu: %s", (unsigned long long)run->number + 1, what);
    }
}

/* Return the percentage of the bytes delivered that must have left storage. Ranks that read the
 * same files share a cache: then only the bytes of one rank, which reads no record twice, are
 * certain. */
static double least_percent(const struct job *job, uint32_t ranks, uint32_t caches)
{
    return job->order.partition == PLAN_REPLICATED && ranks > caches ? SHARE_LEAST * caches / ranks
                                                                     : SHARE_LEAST;
}

/* If the cache was cold, bytes that left storage must match bytes delivered: this checks the whole
 * chain, from eviction to counting. Another process that reads the files during the run warms the
 * cache, which inspecting it beforehand cannot show. */
static void cross_check(const struct job *job, const struct job_plugins *plugins,
                        struct result_run *run, struct result *result)
{
    const double server = result_run_server_percent(run);
    const uint64_t delivered = run->epoch_count ? run->epochs[0].record_bytes : 0;
    double percent = result_run_device_percent(run); /* negative: unknown */
    char what[200];

    /* Through the page cache a record takes whole pages, which stand for warm ones if only its
     * bytes count; ranks of a node share them. */
    if (percent > 0 && !plugins->direct && result->ranks <= result->nodes &&
        run->cold.read_bytes > delivered)
        percent *= (double)delivered / (double)run->cold.read_bytes;
    if (run->cold.pages != RESIDENCY_COLD || run->epochs[0].skipped || plugins->reader.plugin->idle)
        return;
    if (percent >= 0 && percent < least_percent(job, result->ranks, result->nodes)) {
        snprintf(what, sizeof what,
                 "only %.1f%% of the bytes left storage although the cache was cold: another "
                 "process read the files meanwhile, or the file system compresses",
                 percent);
        condemn(job, run, result, what);
    }
    if (run->cold.server.state == SERVER_COLD && server >= 0 &&
        server < least_percent(job, result->ranks, 1)) {
        snprintf(what, sizeof what,
                 "the server's disks read only %.1f%% of the bytes although its cache was cold: "
                 "another client read them meanwhile, or its file system compresses",
                 server);
        condemn(job, run, result, what);
    }
}

/* Verify what only the run can show: that direct reads bypassed the page cache, and that nobody
 * else read what was counted. Commands to a disk need no proof by its counters: no cache of this
 * machine is on their way. */
static void prove(const struct job_plugins *plugins, const struct result_run *run,
                  struct result_cold *cold)
{
    const struct result_epoch *epoch = run->epoch_count ? &run->epochs[0] : NULL;
    const struct result_bytes *device = epoch ? &epoch->device : NULL;
    struct server_result *server = &cold->server;
    const double server_percent = result_run_server_percent(run);
    const double explained =
        epoch ? fmax(fmax((double)epoch->record_bytes, (double)epoch->request_bytes),
                     (double)run->cold.explained_bytes)
              : 0;
    const bool others_read = device && device->known && device->of_node &&
                             (double)device->bytes > SHARE_MOST / 100 * explained;
    char counted[32];

    cold->bypassed = plugins->direct && cold->pages != RESIDENCY_COLD && !others_read &&
                     (reader_of(plugins->reader.plugin)->is_passthrough ||
                      result_run_request_percent(run) >= SHARE_LEAST);
    if (others_read && cold->pages == RESIDENCY_COLD) {
        cold->pages = RESIDENCY_UNVERIFIED;
        snprintf(cold->reason, sizeof cold->reason,
                 "%s by %s: more than this job and read-ahead explain, so others read, too",
                 bytes_text(device->bytes, counted, sizeof counted), device->method);
    }
    /* A server that cannot inspect its memory did read its disks. */
    if (server->state == SERVER_UNVERIFIED && server->looked && !server->start.resident_known &&
        server_percent >= 0 && run->epoch_count == 1) {
        const bool is_proven = server_percent >= SHARE_LEAST && server_percent <= SHARE_MOST;
        server->state = is_proven ? SERVER_COLD : SERVER_UNVERIFIED;
        server->reason[0] = '\0';
        if (!is_proven)
            snprintf(server->reason, sizeof server->reason,
                     "the server cannot inspect its memory, and its disks read %.1f%% of what "
                     "was delivered",
                     server_percent);
    }
    cold->state = result_cold_state(cold);
}

struct guarded {
    const char *where;
    struct result_run *run; /* NULL: of no run */
    struct result *result;
};

static void take_guard(void *context, enum guard_grade grade, const char *text)
{
    const struct guarded *guarded = context;

    if (grade == GUARD_NOTICE)
        result_notice(guarded->result, "%s: %s", guarded->where, text);
    else if (grade == GUARD_DEGRADED)
        result_degraded(guarded->result, "%s: %s", guarded->where, text);
    else if (!guarded->run)
        result_invalid(guarded->result, "%s: %s", guarded->where, text);
    else if (guarded->run->valid)
        snprintf(guarded->run->invalid_reason, sizeof guarded->run->invalid_reason, "%s", text);
    if (grade == GUARD_INVALID && guarded->run)
        guarded->run->valid = false;
}

void validity_guard(const struct guard_counts *counts, const char *where, struct result *result)
{
    struct guarded guarded = {.where = where, .result = result};

    guard_judge(counts, take_guard, &guarded);
}

void validity_check(const struct job *job, const struct job_plugins *plugins,
                    struct result_run *run, struct result *result)
{
    const struct result_epoch total = result_run_total(run);
    const struct result_bytes *device = &run->epochs[0].device;
    const struct result_cold *cold = &run->cold;
    const uint64_t under_way_bytes = 1 << 20;
    char where[32], charged[32], given[32];
    struct guarded guarded = {.where = where, .run = run, .result = result};

    snprintf(where, sizeof where, "run %llu", (unsigned long long)run->number + 1);
    prove(plugins, run, &run->cold);
    for (uint32_t i = 0; i < run->node_count; i++) {
        run->nodes[i].cold.server = run->cold.server;
        prove(plugins, run, &run->nodes[i].cold);
    }
    cross_check(job, plugins, run, result);
    /* Apart from requests in flight, disks cannot have read less than the process was charged for:
     * one of the two counters is wrong. */
    if (device->known && device->beneath_known && !device->of_node &&
        device->bytes > device->beneath_bytes + device->beneath_bytes / 50 + under_way_bytes)
        result_degraded(result,
                        "%s: %s left storage by %s, %s by the disks' own counters: the files are "
                        "cached beneath the file system, or a counter is wrong",
                        where, bytes_text(device->bytes, charged, sizeof charged), device->method,
                        bytes_text(device->beneath_bytes, given, sizeof given));
    /* Replayed steps that end late measure this machine, not a GPU. The next step makes up for a
     * late step unless no CPU is free. In an open loop no step is late: it lasts until the next is
     * due. */
    if (job->open_load <= 0 && total.nominal_ns &&
        total.compute_ns > total.nominal_ns + total.nominal_ns / 20)
        result_degraded(result,
                        "%s: replayed steps took %.1f%% longer than the GPU's: no processor was "
                        "free to end them in time",
                        where, 100 * ((double)total.compute_ns / (double)total.nominal_ns - 1));
    if (job->cold.drop_caches != JOB_DROP_NO && run->valid) {
        const char *why = result_cold_unproven(cold);
        run->valid = false;
        if (cold->state == RESULT_CACHE_WARM && cold->server.state == SERVER_WARM)
            snprintf(run->invalid_reason, sizeof run->invalid_reason,
                     "the caches should be cold, but %.200s", cold->server.reason);
        else if (cold->state == RESULT_CACHE_WARM)
            snprintf(run->invalid_reason, sizeof run->invalid_reason,
                     "the cache should be cold, but %.2f%% of it was resident: %.180s",
                     cold->residue_percent, cold->reason);
        else if (job->cold.drop_caches == JOB_DROP_STRICT && why)
            snprintf(run->invalid_reason, sizeof run->invalid_reason, "not verified cold: %.230s",
                     why);
        else
            run->valid = true;
    }
    guard_judge(&total.guard, take_guard, &guarded);
    /* An image that is not there takes no time to decode. */
    const uint64_t empty = run->findings.kinds[FINDING_EMPTY].count;
    if (result->decodes && empty > total.samples / 2)
        result_degraded(result, "%s: %llu of %llu samples have no image", where,
                        (unsigned long long)empty, (unsigned long long)total.samples);
    findings_tell(&run->findings, where, result);
}

void validity_account(const struct result *result, struct result_run *run)
{
    if (invariants_run(result, run) == 0)
        return;
    run->valid = false;
    snprintf(run->invalid_reason, sizeof run->invalid_reason, "%.255s", fail_reason());
}
