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

/* ---- figures ---- */

#define AT(type, field) FIGURE_AT(type, result_epoch, field)
#define SUMS FIGURE_SUM, FIGURE_SUM
#define MEANS FIGURE_SUM, FIGURE_MEAN
#define DEVICE FIGURE_KNOWN(result_epoch, device.known), FIGURE_REASON(result_epoch, device.reason)
#define DERIVED(function) FIGURE_DERIVED, .value = function
#define CSV(name, places) .column = name, .digits = places
#define DOC(what, by, in, test) .meaning = what, .clock = by, .code = in, .witness = test

static const char few_reads[] = "too few reads to split, or reads overlapped the next epoch";

#define ACCOUNT "pipeline/engine/engine.c"
#define DECODERS "pipeline/engine/decoders.c"
#define LOADER "pipeline/loader/loader.c"
#define TRAINING "trainer/training.c"
#define FIGURE "pipeline/result/result.c"
#define TEST(name) "tests/unit/test_" name ".c"

static const char by_trainer[] = "mono; for a GPU its own clock";

static double per_second(uint64_t amount, uint64_t duration_ns)
{
    return duration_ns ? (double)amount * 1e9 / (double)duration_ns : 0;
}

double result_epoch_samples_per_s(const struct result_epoch *epoch)
{
    return per_second(epoch->samples, epoch->wall_ns);
}

double result_epoch_bytes_per_s(const struct result_epoch *epoch)
{
    return per_second(epoch->record_bytes, epoch->wall_ns);
}

double result_epoch_paced_samples_per_s(const struct result_epoch *epoch)
{
    return epoch->paced_ns ? per_second(epoch->paced_samples, epoch->paced_ns) : NAN;
}

double result_epoch_paced_bytes_per_s(const struct result_epoch *epoch)
{
    return epoch->paced_ns ? per_second(epoch->paced_bytes, epoch->paced_ns) : NAN;
}

double result_epoch_read_samples_per_s(const struct result_epoch *epoch)
{
    return epoch->read_ns ? per_second(epoch->read_samples, epoch->read_ns) : NAN;
}

static double result_epoch_steady_samples_per_s(const struct result_epoch *epoch)
{
    return epoch->steady_ns ? per_second(epoch->steady_samples, epoch->steady_ns) : NAN;
}

double result_epoch_au_percent(const struct result_epoch *epoch)
{
    const uint64_t compute_ns = epoch->compute_ns;

    return compute_ns ? 100.0 * (double)compute_ns / (double)(compute_ns + epoch->wait_ns) : 0;
}

double result_epoch_mlperf_au_percent(const struct result_epoch *epoch)
{
    /* Several ranks with one step each have several batches, and yet no second step. */
    if (epoch->batches < 2 || epoch->wall_ns <= epoch->first_step_ns ||
        epoch->compute_ns <= epoch->first_compute_ns)
        return NAN;
    return 100.0 * (double)(epoch->compute_ns - epoch->first_compute_ns) /
           (double)(epoch->wall_ns - epoch->first_step_ns);
}

/* Unknown, where result_epoch_au_percent() is 0. */
static double au_percent(const struct result_epoch *epoch)
{
    return epoch->compute_ns ? result_epoch_au_percent(epoch) : NAN;
}

const struct figure figures_of_epoch[] = {
    {"epoch", AT(ORDINAL, epoch),
     DOC("number, from 1", "-", "pipeline/engine/engine.c", TEST("rows"))},
    {"epochs_merged", AT(ORDINAL, merged),
     DOC("epochs that share the row: its counts, bytes and times are sums, `epoch`, "
         "`first_batch_s` and `digest` those of the first, `limit` that of a longest one",
         "-", "pipeline/result/result.c", TEST("rows"))},
    {"samples", AT(COUNT, samples), SUMS, CSV("samples", 0),
     DOC("rows of batches that hold a sample", "-", DECODERS, "tests/cli/run.sh")},
    {"skipped_samples", AT(COUNT, skipped), SUMS, CSV("skipped", 0),
     DOC("rows left out by `--on-error skip`", "-", DECODERS, "tests/cli/run.sh")},
    {"batches", AT(COUNT, batches), SUMS, CSV("batches", 0),
     DOC("batches that the trainer took", "-", ACCOUNT, TEST("invariants"))},
    {"wall_s", AT(TIME, wall_ns), FIGURE_SUM, FIGURE_FIRST, CSV("wall_s", 9),
     DOC("from the first request to the end of the last step; with several ranks from the first "
         "rank's start to the last one's end",
         "mono", ACCOUNT, "tests/cli/accounts.sh")},
    {"samples_per_s", DERIVED(result_epoch_samples_per_s), CSV("samples_per_s", 3),
     DOC("`samples` / `wall_s`", "mono", FIGURE, TEST("figures"))},
    {"record_bytes_per_s", DERIVED(result_epoch_bytes_per_s), CSV("record_bytes_per_s", 0),
     DOC("`record_bytes` / `wall_s`", "mono", FIGURE, TEST("figures"))},
    {"record_bytes", AT(COUNT, record_bytes), SUMS, CSV("record_bytes", 0),
     DOC("bytes of the samples' records, framing included", "-", DECODERS,
         "tests/cli/accounts.sh")},
    {"request_bytes", AT(COUNT, request_bytes), SUMS, CSV("request_bytes", 0),
     DOC("bytes requested from the reader; over `record_bytes` the read amplification", "-", LOADER,
         "tests/cli/accounts.sh")},
    {"requests", AT(COUNT, requests), SUMS, CSV("requests", 0),
     DOC("reads", "-", LOADER, "tests/cli/window.sh")},
    {"device_read_bytes", AT(COUNT, device.bytes), DEVICE, CSV("device_read_bytes", 0),
     DOC("bytes read from storage in the epoch, by the witness in `device_read_method`; null as in "
         "memory, or if no witness can tell",
         "-", "telemetry/storage.c", TEST("storage"))},
    {"device_read_method", AT(TEXT, device.method), DEVICE,
     DOC("that witness", "-", "telemetry/storage.c", TEST("storage"))},
    {"shuffle_s", AT(TIME, shuffle_ns), MEANS, CSV("shuffle_s", 9),
     DOC("planning the order", "mono", "shuffle/plan.c", TEST("figures"))},
    {"storage_idle_s", AT(TIME, storage_idle_ns), MEANS,
     DOC("from the last read of the previous epoch to the first of this one: the cost of the epoch "
         "boundary; 0 if `--overlap-epochs` keeps reading",
         "mono", LOADER, TEST("loader"))},
    {"first_batch_s", AT(TIME, first_batch_ns), FIGURE_FIRST, FIGURE_MOST, CSV("first_batch_s", 9),
     DOC("from the start until a batch is complete, on the slowest rank", "mono", ACCOUNT,
         TEST("gather"))},
    {"steady_samples_per_s", DERIVED(result_epoch_steady_samples_per_s),
     .unknown = "read-ahead grew or shrank, or fewer than 20 batches",
     DOC("without the first quarter of the bytes; null unless between then and the last read the "
         "trainer took as many samples as were read (within a tenth), in 20 batches or more",
         "mono", LOADER, TEST("engine_parts"))},
    {"read_head_s", AT(TIME, read_head_ns), MEANS, .unknown = few_reads,
     DOC("time for reading the first quarter of the bytes, from the end of the first read; null "
         "with few reads, or if epochs overlap",
         "mono", LOADER, TEST("engine_parts"))},
    {"read_rest_s", AT(TIME, read_rest_ns), MEANS, .unknown = few_reads,
     DOC("time for reading the rest", "mono", LOADER, TEST("engine_parts"))},
    {"start_barrier_s", AT(TIME, start_barrier_ns), MEANS,
     DOC("waited for the other ranks before the start, outside of `wall_s`", "mono",
         "ranks/ranks.c", TEST("gather"))},
    {"stop_barrier_s", AT(TIME, stop_barrier_ns), MEANS,
     DOC("waited for them after the end, outside of `wall_s`", "mono", "ranks/ranks.c",
         TEST("gather"))},
    {"wait_s", AT(TIME, wait_ns), MEANS, CSV("wait_s", 9),
     DOC("the trainer was idle: from the start of the epoch, or the end of a step, until it had "
         "the next batch; the wait for the epoch's order is part of it",
         by_trainer, ACCOUNT, TEST("engine_parts"))},
    {"compute_s", AT(TIME, compute_ns), MEANS, CSV("compute_s", 9),
     DOC("forward and backward; for `replay` the actual sleep", by_trainer, TRAINING,
         "tests/unit/test_replay.c")},
    {"upload_s", AT(TIME, upload_ns), MEANS, CSV("upload_s", 9),
     DOC("upload to a device, not hidden by compute", "the GPU's", TRAINING, TEST("figures"))},
    {"upload_copy_s", AT(TIME, copy_ns), MEANS,
     DOC("upload to a device, hidden or not; 0 without one", "the GPU's", TRAINING,
         TEST("figures"))},
    {"exchange_s", AT(TIME, exchange_ns), MEANS, CSV("exchange_s", 9),
     DOC("reducing gradients over the ranks, not hidden", by_trainer, TRAINING, TEST("figures"))},
    {"update_s", AT(TIME, update_ns), MEANS, CSV("update_s", 9),
     DOC("new weights", by_trainer, TRAINING, TEST("figures"))},
    {"au_percent", DERIVED(au_percent), .unknown = "the trainer does not compute",
     CSV("au_percent", 4),
     DOC("100 `compute_s` / (`compute_s` + `wait_s`)", "mono", FIGURE, TEST("figures"))},
    {"nominal_s", AT(TIME, nominal_ns), MEANS,
     DOC("nominal time of `replay`; 0 with a real trainer", "-", "trainer/replay.c",
         "tests/unit/test_replay.c")},
    {"mlperf_au_percent", DERIVED(result_epoch_mlperf_au_percent),
     .unknown = "the trainer does not compute", CSV("mlperf_au_percent", 4),
     DOC("100 `compute_s` / `wall_s`, both without the epoch's first step, which ends when it is "
         "computed",
         "mono", FIGURE, TEST("engine_parts"))},
    {"cpu_user_s", AT(REAL, cpu_user_s), SUMS, CSV("cpu_user_s", 3),
     DOC("CPU time of the process in user mode", "getrusage(2)", ACCOUNT, TEST("figures"))},
    {"cpu_system_s", AT(REAL, cpu_system_s), SUMS, CSV("cpu_system_s", 3),
     DOC("CPU time of the process in the kernel", "getrusage(2)", ACCOUNT, TEST("figures"))},
    {"limit", AT(LIMIT, limit), CSV("limit", 0),
     DOC("the bottleneck, as in `summary`", "-", "pipeline/result/result.c", TEST("limit"))},
    {"waits.loader_for_storage_s", AT(TIME, waits.loader_storage_ns), MEANS,
     DOC("the loader's thread waited for reads", "mono", LOADER, TEST("starved"))},
    {"waits.loader_for_memory_s", AT(TIME, waits.loader_memory_ns), MEANS,
     DOC("the loader's thread waited for memory: decoding or the trainer is behind", "mono", LOADER,
         TEST("starved"))},
    {"waits.decode_for_records_s", AT(TIME, waits.decode_input_ns), MEANS,
     DOC("decode threads waited for records, all together", "mono", DECODERS, TEST("queue"))},
    {"waits.decode_for_batch_s", AT(TIME, waits.decode_slot_ns), MEANS,
     DOC("decode threads waited for a batch to open", "mono", DECODERS, TEST("queue"))},
    {"waits.decode_busy_s", AT(TIME, waits.decode_busy_ns), MEANS,
     DOC("decode threads x `wall_s`, less the other three", "mono", ACCOUNT, TEST("invariants"))},
    {"waits.decode_entry_points_s", AT(TIME, waits.decode_hints_ns), MEANS,
     DOC("decode threads did what they would not have done without `--entry-points`", "mono",
         DECODERS, "tests/cli/entry_points.sh")},
    {"waits.trainer_for_batch_s", AT(TIME, waits.trainer_input_ns), MEANS,
     DOC("`wait_s`", "mono", ACCOUNT, TEST("engine_parts"))},
    {"digest", AT(DIGEST, digest_sum),
     DOC("sum and exclusive or of hashes of (label, image); as text", "-", DECODERS,
         "tests/cli/run.sh")},
    {.key = NULL, AT(TIME, order_ns), MEANS},
    {.key = NULL, AT(COUNT, steady_samples), SUMS},
    {.key = NULL, AT(TIME, steady_ns), MEANS},
    {.key = NULL, AT(COUNT, paced_samples), SUMS},
    {.key = NULL, AT(COUNT, paced_bytes), SUMS},
    {.key = NULL, AT(TIME, paced_ns), FIGURE_SUM, FIGURE_MOST},
    {.key = NULL, AT(COUNT, read_samples), SUMS},
    {.key = NULL, AT(TIME, read_ns), FIGURE_SUM, FIGURE_MOST},
    {.key = NULL, AT(TIME, first_step_ns), MEANS},
    {.key = NULL, AT(TIME, first_compute_ns), MEANS},
    {.key = NULL, AT(TIME, met_ns), FIGURE_SUM, FIGURE_FIRST},
    {.key = NULL, AT(COUNT, digest_sum), FIGURE_FIRST, FIGURE_SUM},
    {.key = NULL, AT(COUNT, digest_xor), FIGURE_FIRST, FIGURE_XOR},
};
const size_t figures_of_epoch_count = sizeof figures_of_epoch / sizeof *figures_of_epoch;

static void merge(const struct figure *row, enum figure_merge how, struct result_epoch *into,
                  const struct result_epoch *other)
{
    void *sum = (char *)into + row->offset;
    const void *value = (const char *)other + row->offset;

    if (row->type == FIGURE_REAL) {
        assert(how == FIGURE_SUM);
        *(double *)sum += *(const double *)value;
        return;
    }
    uint64_t *count = sum;
    const uint64_t more = *(const uint64_t *)value;
    if (how == FIGURE_XOR)
        *count ^= more;
    else if (how != FIGURE_MOST)
        *count += more;
    else if (more > *count)
        *count = more;
}

void result_epoch_add(struct result_epoch *sum, const struct result_epoch *later)
{
    for (size_t i = 0; i < figures_of_epoch_count; i++)
        if (figures_of_epoch[i].epochs != FIGURE_FIRST)
            merge(&figures_of_epoch[i], figures_of_epoch[i].epochs, sum, later);
    guard_add(&sum->guard, &later->guard);
}

void figures_merge_ranks(const struct result_epoch *first, size_t stride, uint32_t count,
                         struct result_epoch *merged)
{
    assert(count > 0);
    *merged = *first;
    for (size_t i = 0; i < figures_of_epoch_count; i++) {
        const struct figure *row = &figures_of_epoch[i];
        for (uint32_t k = 1; row->ranks != FIGURE_FIRST && k < count; k++)
            merge(row, row->ranks, merged, figures_of_rank(first, stride, k));
        if (row->ranks == FIGURE_MEAN)
            *(uint64_t *)(void *)((char *)merged + row->offset) /= count;
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct result_epoch *epoch = figures_of_rank(first, stride, i);
        if (i > 0)
            guard_add(&merged->guard, &epoch->guard);
        merged->digests_differ |= epoch->digests_differ;
        if (epoch->steady_ns == 0) /* no rate of all without that of each */
            merged->steady_samples = merged->steady_ns = 0;
    }
}

/* ---- findings ---- */

const char *const finding_keys[FINDING_KINDS] = {[FINDING_SKIPPED] = "skipped_records",
                                                 [FINDING_IMAGE] = "damaged_images",
                                                 [FINDING_LABEL] = "odd_labels",
                                                 [FINDING_EMPTY] = "without_image"};

/* Keep the text if the record is among the first, sorted by record. */
static void name(struct findings_kind *kind, uint64_t record, const char *text)
{
    uint32_t at = 0;

    while (at < kind->named && kind->records[at] < record)
        at++;
    if (at == FINDINGS_NAMED || (at < kind->named && kind->records[at] == record))
        return;
    if (kind->named < FINDINGS_NAMED)
        kind->named++;
    for (uint32_t i = kind->named - 1; i > at; i--) {
        kind->records[i] = kind->records[i - 1];
        memcpy(kind->texts[i], kind->texts[i - 1], FINDING_BYTES);
    }
    kind->records[at] = record;
    snprintf(kind->texts[at], FINDING_BYTES, "%s", text);
}

void findings_note(struct findings *findings, enum finding kind, uint64_t record, const char *text)
{
    assert(kind < FINDING_KINDS);
    findings->kinds[kind].count++;
    name(&findings->kinds[kind], record, text);
}

void findings_add(struct findings *into, const struct findings *from)
{
    for (int i = 0; i < FINDING_KINDS; i++) {
        const struct findings_kind *kind = &from->kinds[i];
        into->kinds[i].count += kind->count;
        for (uint32_t k = 0; k < kind->named; k++)
            name(&into->kinds[i], kind->records[k], kind->texts[k]);
    }
}

void findings_tell(const struct findings *findings, const char *where, struct result *result)
{
    static const struct {
        const char *one, *many;
        bool degrades; /* skipped records degrade the result by their own count */
    } words[FINDING_KINDS] = {
        [FINDING_SKIPPED] = {"record was skipped", "records were skipped", false},
        [FINDING_IMAGE] = {"damaged image was decoded as far as it goes",
                           "damaged images were decoded as far as they go", true},
        [FINDING_LABEL] = {"label is not a class number: its sample has none (see --odd-labels)",
                           "labels are not class numbers: their samples have none (see "
                           "--odd-labels)",
                           false},
        [FINDING_EMPTY] = {"sample has no image", "samples have no image", false},
    };

    for (int i = 0; i < FINDING_KINDS; i++) {
        const struct findings_kind *kind = &findings->kinds[i];
        const char *what = kind->count == 1 ? words[i].one : words[i].many;
        if (kind->count == 0)
            continue;
        result_notice(result, "%s: %llu %s, the first: %s", where, (unsigned long long)kind->count,
                      what, kind->texts[0]);
        if (words[i].degrades)
            result_degraded(result, "%llu %s", (unsigned long long)kind->count, what);
    }
}

/* ---- result ---- */

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

/* Sum two rows, except for what belongs to a single epoch, and what is unknown in one of them. */
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
