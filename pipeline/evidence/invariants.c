/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/evidence/invariants.h"

#include "base/fail.h"
#include "shuffle/plan.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

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
