/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/result/result.h"

#include "base/memory.h"
#include "base/stats.h"
#include "dataset/catalog.h"
#include "dataset/manifest.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

double result_epoch_head_ratio(const struct result_epoch *epoch)
{
    return epoch->read_head_ns && epoch->read_rest_ns
               ? (double)epoch->read_rest_ns / 3 / (double)epoch->read_head_ns
               : NAN;
}

double result_run_steady_samples_per_s(const struct result_run *run)
{
    uint64_t samples = 0, duration_ns = 0;

    for (uint32_t i = 0; i < run->epoch_count; i++) {
        if (run->epochs[i].steady_ns == 0)
            return NAN;
        samples += run->epochs[i].steady_samples;
        duration_ns += run->epochs[i].steady_ns;
    }
    return duration_ns ? (double)samples * 1e9 / (double)duration_ns : NAN;
}

double result_run_mlperf_au_percent(const struct result_run *run)
{
    double sum = 0;
    uint32_t count = 0;

    for (uint32_t i = 0; i < run->epoch_count; i++) {
        double percent = result_epoch_mlperf_au_percent(&run->epochs[i]);
        if (!isfinite(percent))
            continue;
        sum += percent;
        count++;
    }
    return count ? sum / count : NAN;
}

enum result_limit result_epoch_limit(const struct result_epoch *epoch, uint32_t workers, bool reads)
{
    const uint64_t compute_ns = epoch->compute_ns + epoch->update_ns;
    const bool input_is_late = epoch->wait_ns >= epoch->upload_ns;
    const uint64_t late_ns = input_is_late ? epoch->wait_ns : epoch->upload_ns;
    const bool keeps_up = late_ns * 20 < epoch->wall_ns;
    const uint64_t busy_ns = epoch->waits.decode_busy_ns + epoch->waits.decode_hints_ns;

    if (epoch->guard.is_throttled)
        return RESULT_LIMIT_QUOTA;
    if (epoch->exchange_ns > compute_ns && (keeps_up || epoch->exchange_ns > late_ns))
        return RESULT_LIMIT_EXCHANGE;
    if (keeps_up && compute_ns)
        return RESULT_LIMIT_TRAINER;
    if (!input_is_late)
        return RESULT_LIMIT_UPLOAD;
    if (!reads)
        return RESULT_LIMIT_HARNESS;
    if (epoch->order_ns * 2 > epoch->wait_ns)
        return RESULT_LIMIT_ORDER;
    return busy_ns * 2 > epoch->wall_ns * workers ? RESULT_LIMIT_DECODE : RESULT_LIMIT_STORAGE;
}

/* A layer below, such as a loop device's file, may be cached. */
static uint64_t left_storage(const struct result_bytes *device)
{
    return device->beneath_known && device->beneath_bytes < device->bytes ? device->beneath_bytes
                                                                          : device->bytes;
}

bool result_epoch_is_from_memory(const struct result_epoch *epoch, bool is_first,
                                 const struct result_cold *cold)
{
    if (is_first &&
        cold->state == RESULT_CACHE_COLD) /* storage that compresses reads fewer bytes */
        return false;
    if (epoch->device.known)
        return left_storage(&epoch->device) < epoch->record_bytes / 2;
    return cold->state == RESULT_CACHE_WARM && cold->residue_percent > 50;
}

void result_epoch_name_source(struct result_epoch *epoch, bool is_first,
                              const struct result_cold *cold, uint64_t rate)
{
    const double share_of_rate = 0.9;

    if (epoch->limit != RESULT_LIMIT_STORAGE)
        return;
    if (rate && epoch->wall_ns &&
        (double)epoch->request_bytes * 1e9 >= share_of_rate * (double)rate * (double)epoch->wall_ns)
        epoch->limit = RESULT_LIMIT_RATE;
    else if (result_epoch_is_from_memory(epoch, is_first, cold))
        epoch->limit = RESULT_LIMIT_PAGE_CACHE;
    else if (epoch->guard.is_starved)
        epoch->limit = RESULT_LIMIT_CPU;
}

uint64_t result_rows(uint64_t epochs)
{
    return epochs < RESULT_ROWS ? epochs : RESULT_ROWS;
}

/* Sum two rows, except for what belongs to a single epoch, and whatever is unknown in one of the
 * two. */
static void merge_rows(struct result_epoch *row, const struct result_epoch *later)
{
    row->digests_differ |= later->digests_differ || row->digest_sum != later->digest_sum ||
                           row->digest_xor != later->digest_xor;
    if (later->wall_ns > row->wall_ns)
        row->limit = later->limit;
    row->merged += 1 + later->merged;
    result_epoch_add(row, later);
    if (row->device.known && later->device.known) {
        row->device.bytes += later->device.bytes;
        row->device.beneath_known &= later->device.beneath_known;
        row->device.beneath_bytes += later->device.beneath_bytes;
    } else if (row->device.known) {
        row->device = later->device;
    }
}

void result_run_add(struct result_run *run, const struct result_epoch *epoch)
{
    struct result_epoch *last = run->epoch_count ? &run->epochs[run->epoch_count - 1] : NULL;

    run->epochs_run++;
    if (run->row_epochs == 0)
        run->row_epochs = 1;
    if (run->epoch_count > 1 && last->merged + 1 < run->row_epochs) {
        merge_rows(last, epoch);
        return;
    }
    if (run->epoch_count == RESULT_ROWS) { /* merge pairs of rows after the first */
        for (uint32_t i = 1; i + 1 < RESULT_ROWS; i += 2) {
            run->epochs[1 + i / 2] = run->epochs[i];
            merge_rows(&run->epochs[1 + i / 2], &run->epochs[i + 1]);
        }
        run->epoch_count = 1 + RESULT_ROWS / 2;
        run->row_epochs *= 2;
    }
    assert(run->epoch_count < RESULT_ROWS && run->epoch_count < run->epochs_run);
    run->epochs[run->epoch_count++] = *epoch;
}

uint64_t result_epoch_phase_ns(const struct result_epoch *epoch, enum result_phase phase)
{
    const uint64_t phases[RESULT_PHASES] = {epoch->wait_ns, epoch->upload_ns, epoch->compute_ns,
                                            epoch->exchange_ns, epoch->update_ns};

    return phases[phase];
}

struct result_epoch result_run_total(const struct result_run *run)
{
    struct result_epoch total = {0};

    for (uint32_t i = 0; i < run->epoch_count; i++)
        result_epoch_add(&total, &run->epochs[i]);
    return total;
}

double result_run_samples_per_s(const struct result_run *run)
{
    const struct result_epoch total = result_run_total(run);

    return result_epoch_samples_per_s(&total);
}

double result_run_bytes_per_s(const struct result_run *run)
{
    const struct result_epoch total = result_run_total(run);

    return result_epoch_bytes_per_s(&total);
}

double result_run_au_percent(const struct result_run *run)
{
    const struct result_epoch total = result_run_total(run);

    return result_epoch_au_percent(&total);
}

double result_epoch_device_percent(const struct result_epoch *epoch)
{
    if (!epoch->device.known || epoch->record_bytes == 0)
        return -1;
    return 100.0 * (double)left_storage(&epoch->device) / (double)epoch->record_bytes;
}

double result_run_device_percent(const struct result_run *run)
{
    return run->epoch_count == 0 ? -1 : result_epoch_device_percent(&run->epochs[0]);
}

double result_run_request_percent(const struct result_run *run)
{
    const double percent = result_run_device_percent(run);

    return percent < 0 || !run->epochs[0].request_bytes
               ? -1
               : percent * (double)run->epochs[0].record_bytes /
                     (double)run->epochs[0].request_bytes;
}

double result_run_server_percent(const struct result_run *run)
{
    if (run->epoch_count == 0 || !run->cold.server.disk_known || !run->epochs[0].record_bytes)
        return -1;
    const uint64_t delivered = run->epochs[0].record_bytes, set = run->cold.total_bytes;

    return 100.0 * (double)run->cold.server.disk_read_bytes /
           (double)(set && set < delivered ? set : delivered);
}

enum result_cache result_cold_state(const struct result_cold *cold)
{
    const bool here = cold->pages == RESIDENCY_COLD || cold->bypassed;

    if ((cold->pages == RESIDENCY_WARM && !here) || cold->server.state == SERVER_WARM)
        return RESULT_CACHE_WARM;
    if (!here)
        return RESULT_CACHE_UNVERIFIED;
    if (cold->server.state == SERVER_UNVERIFIED)
        return RESULT_CACHE_CLIENT_COLD;
    if (cold->pages != RESIDENCY_COLD)
        return RESULT_CACHE_BYPASSED;
    return cold->metadata_dropped ? RESULT_CACHE_COLD : RESULT_CACHE_DATA_COLD;
}

const char *result_cold_unproven(const struct result_cold *cold)
{
    if (cold->pages != RESIDENCY_COLD && !cold->bypassed)
        return cold->reason;
    if (cold->server.state > SERVER_COLD)
        return cold->server.reason;
    return cold->metadata_dropped
               ? NULL
               : "dentries and inodes stay in memory; dropping them needs root or "
                 "'sudo -n cachectl drop', see cachectl(1)";
}

/* ---- comparison of the ranks of a run, and its straggler ---- */

enum { RATE, WALL_S, BARRIER_S, WORK_S, PHASE_S /* and the phases after the first */ };

static double figure_of(const struct result_rank *rank, int figure)
{
    const struct result_epoch *total = &rank->total;

    switch (figure) {
    case RATE:
        return result_epoch_samples_per_s(total);
    case WALL_S:
        return (double)total->wall_ns * 1e-9;
    case BARRIER_S:
        return (double)(total->start_barrier_ns + total->stop_barrier_ns) * 1e-9;
    case WORK_S: /* without the exchange, in which each rank waits for the slowest */
        return (double)(total->wall_ns - total->exchange_ns) * 1e-9;
    default:
        return (double)result_epoch_phase_ns(total, (enum result_phase)(figure - PHASE_S)) * 1e-9;
    }
}

/* The median of an even count is the lower of the two, so it belongs to a real rank. */
static struct result_spread spread_of(const struct result_rank *ranks, uint32_t count, int figure,
                                      double *values)
{
    for (uint32_t i = 0; i < count; i++)
        values[i] = figure_of(&ranks[i], figure);
    stats_sort(values, count);
    return (struct result_spread){values[0], values[(count - 1) / 2], values[count - 1]};
}

int result_compare(const struct result_rank *ranks, uint32_t count,
                   struct result_comparison *comparison)
{
    double *values = memory_array(count, sizeof *values), most = 0;
    const struct result_rank *last = &ranks[0];

    assert(count > 0);
    *comparison = (struct result_comparison){.ranks = count};
    if (!values)
        return -ENOMEM;
    comparison->samples_per_s = spread_of(ranks, count, RATE, values);
    comparison->wall_s = spread_of(ranks, count, WALL_S, values);
    comparison->barrier_s = spread_of(ranks, count, BARRIER_S, values);
    for (int phase = 0; phase < RESULT_PHASES; phase++)
        comparison->phase_s[phase] = spread_of(ranks, count, PHASE_S + phase, values);
    const double median = spread_of(ranks, count, WORK_S, values).median;
    free(values);

    for (uint32_t i = 0; i < count; i++) {
        comparison->nodes += ranks[i].leads;
        if (figure_of(&ranks[i], WORK_S) > figure_of(last, WORK_S))
            last = &ranks[i];
    }
    comparison->straggler = last->rank;
    comparison->straggler_limit = last->total.limit;
    memcpy(comparison->straggler_host, last->host, sizeof last->host);
    if (median > 0)
        comparison->behind_percent = 100 * (figure_of(last, WORK_S) / median - 1);
    for (int phase = 0; phase < RESULT_PHASES; phase++) {
        const double lost = figure_of(last, PHASE_S + phase) - comparison->phase_s[phase].median;
        if (phase != RESULT_PHASE_EXCHANGE && lost > most) {
            most = lost;
            comparison->behind_phase = (enum result_phase)phase;
        }
    }
    return 0;
}

/* ---- what a result says ---- */

void result_describe(struct result *result, const char *data, const char *format,
                     const struct catalog *catalog)
{
    snprintf(result->data, sizeof result->data, "%s", data);
    snprintf(result->format, sizeof result->format, "%s", format);
    result->shards = catalog->shard_count;
    result->records = catalog->record_count;
    result->data_bytes = catalog_data_bytes(catalog);
    result->data_identity = catalog_identity(catalog);
    result->record_bytes_total = catalog->record_bytes_total;
    result->data_was_made = manifest_is_synthetic(data);
    result->other_files = catalog->left_out;
    result->remark_count = catalog_remarks(catalog, result->remarks);
}

void result_note_unread(struct result *result, const struct catalog *catalog)
{
    const struct remark *left_out = &catalog->remarks[REMARK_LEFT_OUT];

    result->unread_samples = left_out->count;
    if (left_out->count == 0)
        return;
    snprintf(result->first_unread, sizeof result->first_unread, "%s", left_out->first);
    result_degraded(result, "%llu sample%s left out, the first: %.240s",
                    (unsigned long long)left_out->count, left_out->count == 1 ? " is" : "s are",
                    left_out->first);
}

void result_notice(struct result *result, const char *format, ...)
{
    char *text = result->notices[result->notice_count];
    va_list arguments;

    if (result->notice_count == RESULT_NOTICES)
        return;
    va_start(arguments, format);
    vsnprintf(text, RESULT_NOTICE_BYTES, format, arguments);
    va_end(arguments);
    for (uint32_t i = 0; i < result->notice_count; i++)
        if (strcmp(result->notices[i], text) == 0) /* already noted */
            return;
    result->notice_count++;
}

void result_invalid(struct result *result, const char *format, ...)
{
    va_list arguments;

    if (!result->valid && result->invalid_reason[0])
        return; /* the first reason is the cause; later ones follow from it */
    result->valid = false;
    va_start(arguments, format);
    vsnprintf(result->invalid_reason, sizeof result->invalid_reason, format, arguments);
    va_end(arguments);
}

void result_degraded(struct result *result, const char *format, ...)
{
    va_list arguments;

    if (result->degraded_reason[0])
        return; /* the first one represents all */
    va_start(arguments, format);
    vsnprintf(result->degraded_reason, sizeof result->degraded_reason, format, arguments);
    va_end(arguments);
}

void result_destroy(struct result *result)
{
    for (uint32_t i = 0; i < result->run_count; i++) {
        free(result->runs[i].epochs);
        free(result->runs[i].ranks);
        free(result->runs[i].nodes);
    }
    free(result->runs);
    timeline_destroy(result->timeline);
    trace_destroy(result->trace);
    result->timeline = NULL;
    result->trace = NULL;
    result->runs = NULL;
    result->run_count = 0;
}
