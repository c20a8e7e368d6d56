/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/evidence/invariants.h"

#include "base/fail.h"
#include "shuffle/plan.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

/* A device measures with its own clock, which differs slightly from the host's. */
static const double CLOCKS_DIFFER = 1.01, CLOCKS_DIFFER_S = 1e-3;

/* of: the epoch or run, named before the contradiction. */
static int broken(const char *of, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int broken(const char *of, const char *format, ...)
{
    char what[200];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    return fail(EPROTO, "%s: %s: a bug of iobench, please report it", of, what);
}

static double seconds(uint64_t ns)
{
    return (double)ns * 1e-9;
}

static int equal(const char *of, const char *what, uint64_t a, const char *other, uint64_t b)
{
    if (a == b)
        return 0;
    return broken(of, "%llu %s, but %llu %s", (unsigned long long)a, what, (unsigned long long)b,
                  other);
}

static int at_most(const char *of, const char *what, double a, const char *other, double b)
{
    if (a <= b)
        return 0;
    return broken(of, "%s %.9g, but %s %.9g", what, a, other, b);
}

/* Phases of the trainer; they do not overlap. */
static double trainer_s(const struct result_epoch *epoch)
{
    uint64_t sum_ns = 0;

    for (int phase = 0; phase < RESULT_PHASES; phase++)
        sum_ns += result_epoch_phase_ns(epoch, (enum result_phase)phase);
    return seconds(sum_ns);
}

/* Check a row: an epoch or merged epochs, of a rank or of all. */
static int check_times(const char *of, const struct result_epoch *row)
{
    const struct result_waits *waits = &row->waits;
    const double wall_s = seconds(row->wall_ns);
    int code = at_most(
        of, "the loader waited, s:", seconds(waits->loader_storage_ns + waits->loader_memory_ns),
        "the epoch took", wall_s);

    if (code == 0)
        code = at_most(of, "the trainer's parts add up to, s:", trainer_s(row), "the epoch took",
                       wall_s * CLOCKS_DIFFER + CLOCKS_DIFFER_S);
    if (code == 0)
        code = at_most(of, "the first step ended after, s:", seconds(row->first_step_ns),
                       "the epoch took", wall_s);
    if (code == 0)
        code = at_most(of, "the first step's compute, s:", seconds(row->first_compute_ns),
                       "that of all steps", seconds(row->compute_ns));
    return code;
}

int invariants_epoch(const struct result_epoch *epoch, uint64_t draws, uint64_t batch_size,
                     uint32_t workers)
{
    const struct result_waits *waits = &epoch->waits;
    char of[48];

    snprintf(of, sizeof of, "epoch %llu", (unsigned long long)epoch->epoch + 1);
    int code = equal(of, "samples delivered or skipped", epoch->samples + epoch->skipped,
                     "draws of the plan", draws);
    if (code == 0)
        code = equal(of, "batches", epoch->batches, "are what the draws make",
                     (draws + batch_size - 1) / batch_size);
    if (code == 0)
        code = at_most(
            of, "decoders waited, s:", seconds(waits->decode_input_ns + waits->decode_slot_ns),
            "their threads had, s:", seconds(workers * epoch->wall_ns));
    return code ? code : check_times(of, epoch);
}

/* ---- a run ---- */

/* Return the draws of an epoch if they follow from the data set alone, else 0. */
static uint64_t draws_of_epoch(const struct result *result)
{
    const struct job *job = result->job;

    if (job->order.remainder != PLAN_UNEVEN || job->order.limit_samples ||
        job->order.ranks != result->ranks || job->order.resume_at)
        return 0;
    return job->order.partition == PLAN_REPLICATED ? result->records * result->ranks
                                                   : result->records;
}

static int check_row(const struct result *result, const struct result_epoch *row)
{
    const uint64_t epochs = row->merged ? row->merged : 1, draws = draws_of_epoch(result) * epochs;
    char of[48];

    snprintf(of, sizeof of, "epoch %llu", (unsigned long long)row->epoch + 1);
    int code = check_times(of, row);
    if (code || !draws)
        return code;
    code = equal(of, "samples delivered or skipped by all ranks", row->samples + row->skipped,
                 "records of the data set", draws);
    /* Each record is drawn at least once; only padding repeats records. */
    if (code == 0)
        code = at_most(of, "bytes delivered:", (double)row->record_bytes, "bytes requested",
                       (double)row->request_bytes);
    if (code == 0 && row->skipped == 0)
        code = equal(of, "bytes delivered", row->record_bytes, "bytes of all records",
                     result->record_bytes_total * (draws / result->records));
    return code;
}

static int check_latency(const struct result_run *run, uint64_t requests)
{
    static const double fractions[] = {0, 0.5, 0.9, 0.99, 0.999, 1};
    const struct histogram *latency = &run->read_latency_ns;
    uint64_t before = 0;
    int code = 0;

    for (size_t i = 0; code == 0 && i < sizeof fractions / sizeof *fractions; i++) {
        const uint64_t value = histogram_quantile(latency, fractions[i]);
        code = at_most("read latency", "a lower percentile, ns:", (double)before, "a higher one",
                       (double)value);
        before = value;
    }
    if (code == 0 && latency->count)
        code = at_most("read latency", "their sum, ns:", (double)latency->sum,
                       "as many of the longest", (double)latency->maximum * (double)latency->count);
    if (code == 0)
        code = equal("reads", "have a latency or failed", latency->count + run->read_errors,
                     "were requested", requests);
    return code;
}

/* Records that the decoder used were delivered, unless a mapped page was lost in the meantime. */
static int check_images(const struct result_run *run, const struct result_epoch *total)
{
    if (run->decode.images == 0 || total->skipped)
        return 0;
    int code = equal("run", "images decoded", run->decode.images - run->decode.failed,
                     "samples delivered", total->samples);
    return code ? code
                : at_most("run", "image bytes:", (double)run->decode.bytes, "record bytes",
                          (double)total->record_bytes);
}

static int check_ranks(const struct result *result, const struct result_run *run,
                       const struct result_epoch *total)
{
    struct result_epoch sum = {0};
    uint64_t of_nodes = 0, slowest_ns = 0;
    int code = 0;

    if (run->rank_count == 0)
        return 0;
    for (uint32_t i = 0; i < run->rank_count; i++) {
        result_epoch_add(&sum, &run->ranks[i].total);
        if (run->ranks[i].total.wall_ns > slowest_ns)
            slowest_ns = run->ranks[i].total.wall_ns;
    }
    for (uint32_t i = 0; i < run->node_count; i++)
        of_nodes += run->nodes[i].ranks;
    code = equal("run", "ranks reported", run->rank_count, "are in the job", result->ranks);
    if (code == 0 && run->node_count)
        code = equal("run", "ranks of all nodes", of_nodes, "are in the job", result->ranks);
    if (code == 0)
        code = equal("run", "samples of all ranks", sum.samples, "of all epochs", total->samples);
    if (code == 0)
        code = equal("run", "bytes of all ranks", sum.record_bytes, "of all epochs",
                     total->record_bytes);
    if (code == 0)
        code =
            equal("run", "requests of all ranks", sum.requests, "of all epochs", total->requests);
    /* An epoch lasts as long as its slowest rank. */
    return code ? code
                : at_most("run", "the slowest rank took, s:", seconds(slowest_ns),
                          "all epochs together", seconds(total->wall_ns));
}

int invariants_run(const struct result *result, const struct result_run *run)
{
    struct result_epoch total = {0};
    uint64_t epochs = 0;
    int code = 0;

    for (uint32_t i = 0; code == 0 && i < run->epoch_count; i++) {
        code = check_row(result, &run->epochs[i]);
        epochs += run->epochs[i].merged ? run->epochs[i].merged : 1;
        result_epoch_add(&total, &run->epochs[i]);
    }
    if (code == 0)
        code = equal("run", "epochs in rows", epochs, "were run", run->epochs_run);
    if (code == 0)
        code = check_latency(run, total.requests);
    if (code == 0)
        code = check_images(run, &total);
    return code ? code : check_ranks(result, run, &total);
}
