/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/result/figure.h"

#include "pipeline/result/result.h"

#include <assert.h>
#include <math.h>

#define AT(type, field) FIGURE_AT(type, result_epoch, field)
#define SUMS FIGURE_SUM, FIGURE_SUM
#define MEANS FIGURE_SUM, FIGURE_MEAN
#define DEVICE FIGURE_KNOWN(result_epoch, device.known), FIGURE_REASON(result_epoch, device.reason)
#define DERIVED(function) FIGURE_DERIVED, .value = function
#define CSV(name, places) .column = name, .digits = places
#define DOC(what, by, in, test) .meaning = what, .clock = by, .code = in, .witness = test

static const char few_reads[] = "too few reads to split, or reads overlapped the next epoch";

#define ACCOUNT "pipeline/engine/account.c"
#define DECODERS "pipeline/engine/decoders.c"
#define LOADER "pipeline/loader/loader.c"
#define TRAINING "trainer/training.c"
#define FIGURE "pipeline/result/figure.c"
#define TEST(name) "tests/unit/test_" name ".c"

static const char by_trainer[] = "mono, of a GPU its own";

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
    /* Of several ranks with one step each, there are several batches, and yet no second step. */
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
         "mono", LOADER, TEST("parts"))},
    {"read_head_s", AT(TIME, read_head_ns), MEANS, .unknown = few_reads,
     DOC("time for reading the first quarter of the bytes, from the end of the first read; null "
         "with few reads, or if epochs overlap",
         "mono", LOADER, TEST("parts"))},
    {"read_rest_s", AT(TIME, read_rest_ns), MEANS, .unknown = few_reads,
     DOC("time for reading the rest", "mono", LOADER, TEST("parts"))},
    {"start_barrier_s", AT(TIME, start_barrier_ns), MEANS,
     DOC("waited for the other ranks before the start, outside of `wall_s`", "mono",
         "ranks/ranks.c", TEST("gather"))},
    {"stop_barrier_s", AT(TIME, stop_barrier_ns), MEANS,
     DOC("waited for them after the end, outside of `wall_s`", "mono", "ranks/ranks.c",
         TEST("gather"))},
    {"wait_s", AT(TIME, wait_ns), MEANS, CSV("wait_s", 9),
     DOC("the trainer was idle: from the start of the epoch, or the end of a step, until it had "
         "the next batch; the wait for the epoch's order is part of it",
         by_trainer, ACCOUNT, TEST("parts"))},
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
         "mono", FIGURE, TEST("parts"))},
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
     DOC("`wait_s`", "mono", ACCOUNT, TEST("parts"))},
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
