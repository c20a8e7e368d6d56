/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/evidence/validity.h"

#include "base/bytes.h"
#include "base/fail.h"
#include "pipeline/evidence/invariants.h"
#include "readers/reader.h"
#include "shuffle/plan.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const double SHARE_LEAST = 98; /* percent of the bytes delivered */
/* A count that is not of this job alone and larger than this includes reads of others, whose share
 * is unknown: percent of what this job may have read with all that was read ahead. */
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
