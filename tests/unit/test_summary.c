/* SPDX-License-Identifier: Apache-2.0
 * What a summary makes of many runs: one value for each, and advice where they mislead. */
#include "tests/unit/unit.h"

#include "base/option.h"
#include "report/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SECOND = 1000000000 };

/* Returns whether a result with runs at these rates gets the advice. */
static bool advises(const struct summary *summary, const char *text)
{
    for (uint32_t i = 0; i < summary->advice_count; i++)
        if (strstr(summary->advice[i], text))
            return true;
    return false;
}

/* Six runs with these rates; the first quarter of each was read `heads` times faster than the
 * rest. */
static struct summary summary_of_runs(const double *rates, const double *heads, bool steady)
{
    struct job job = {0};
    struct result_epoch epochs[6];
    struct result_run runs[6];
    struct result result = {.job = &job, .valid = true, .threads = 1, .run_count = 6, .runs = runs};
    struct summary summary;

    assert_int_equal(option_defaults(job_options, &job), 0);
    for (uint64_t i = 0; i < 6; i++) {
        const uint64_t wall_ns = (uint64_t)(1000 / rates[i] * 10 * SECOND);
        epochs[i] = (struct result_epoch){.samples = 10000,
                                          .batches = 40,
                                          .wall_ns = wall_ns,
                                          .read_head_ns = (uint64_t)(SECOND / heads[i]),
                                          .read_rest_ns = 3 * (uint64_t)SECOND,
                                          .steady_samples = steady || i ? 7500 : 0,
                                          .steady_ns = steady || i ? 8 * (uint64_t)SECOND : 0};
        runs[i] = (struct result_run){
            .number = i, .epoch_count = 1, .epochs_run = 1, .epochs = &epochs[i], .valid = true};
    }
    assert_int_equal(summary_make(&result, &summary), 0);
    option_release(job_options, &job);
    return summary;
}

/* Bursts and drifts are reported as such; plain noise is reported as neither. */
static void bursts_and_drifts_are_told(void **unused)
{
    const double even[] = {1000, 1010, 985, 1005, 990, 1002};
    const double falling[] = {1000, 980, 965, 940, 921, 900};
    const double level[] = {1.05, 0.97, 1.01, 1.08, 0.95, 1.0};
    const double faster[] = {1.12, 1.2, 1.09, 1.15, 1.22, 1.11};
    struct summary summary = summary_of_runs(even, level, true);

    assert_false(summary.drifts || summary.bursts);
    assert_false(advises(&summary, "burst credit") || advises(&summary, "drift"));
    assert_equal(summary.steady_samples_per_s.median, 7500 / 8.0);
    summary = summary_of_runs(falling, faster, true);
    assert_true(summary.drifts && summary.bursts);
    assert_true(advises(&summary, "throttled device with burst credit"));
    assert_true(advises(&summary, "the runs drift by -10%"));
    assert_equal(summary.head_ratio.median, 1.135);
    /* One run without a steady state: the others differ from it. */
    assert_int_equal(summary_of_runs(even, level, false).steady_samples_per_s.count, 0);
}

/* The epochs of a run share its luck: ten of them are no ten measurements. Rates add up as in a
 * comparison: a fast epoch counts by its time. */
static void the_later_epochs_of_a_run_are_one_value(void **unused)
{
    struct job job = {0};
    struct result_epoch epochs[3][4];
    struct result_run runs[3];
    struct result result = {.job = &job, .valid = true, .threads = 1, .run_count = 3, .runs = runs};
    struct summary summary;

    assert_int_equal(option_defaults(job_options, &job), 0);
    job.epochs = 4;
    for (uint64_t i = 0; i < 3; i++) {
        for (uint64_t k = 0; k < 4; k++)
            epochs[i][k] = (struct result_epoch){.samples = 600 * (i + 1),
                                                 .record_bytes = 6000 * (i + 1),
                                                 .batches = 2,
                                                 .compute_ns = SECOND,
                                                 .wait_ns = SECOND * (k == 3),
                                                 .wall_ns = (k == 3 ? 4 : 1) * (uint64_t)SECOND};
        runs[i] = (struct result_run){
            .number = i, .epoch_count = 4, .epochs_run = 4, .epochs = epochs[i], .valid = true};
    }
    assert_int_equal(summary_make(&result, &summary), 0);
    assert_int_equal(summary.later.samples_per_s.count, 3);
    assert_equal(summary.later.samples_per_s.minimum, 300); /* 1800 in 6 s */
    assert_equal(summary.later.samples_per_s.median, 600);
    assert_equal(summary.later.samples_per_s.coverage, 0.95);
    assert_equal(summary.later.bytes_per_s.median, 6000);
    assert_equal(summary.later.au_percent.median, 75);
    option_release(job_options, &job);
}

/* A second of decoding on two threads, which had the CPU for cpu_s. */
static struct summary summary_of_decoding(double cpu_s, const char *decoder)
{
    struct job job = {0};
    struct result_epoch epoch = {.samples = 100,
                                 .batches = 2,
                                 .wall_ns = SECOND,
                                 .waits = {.decode_busy_ns = 2 * (uint64_t)SECOND},
                                 .cpu_user_s = 0.75 * cpu_s,
                                 .cpu_system_s = 0.25 * cpu_s,
                                 .limit = RESULT_LIMIT_DECODE};
    struct result_run run = {.epoch_count = 1, .epochs_run = 1, .epochs = &epoch, .valid = true};
    struct result result = {.job = &job, .valid = true, .threads = 2, .run_count = 1, .runs = &run};
    struct summary summary;

    assert_int_equal(option_defaults(job_options, &job), 0);
    snprintf(result.decoder_engine, sizeof result.decoder_engine, "%s", decoder);
    assert_int_equal(summary_make(&result, &summary), 0);
    option_release(job_options, &job);
    return summary;
}

/* Threads that decode and wait for a CPU meanwhile are no sign of slow CPUs. */
static void decoding_without_a_cpu_is_told(void **unused)
{
    const char *const starved = "busy for 2 s, but the process got only 1.2 s of CPU";
    struct summary summary = summary_of_decoding(1.2, "");

    assert_true(advises(&summary, starved) && advises(&summary, "add CPUs"));
    summary = summary_of_decoding(1.6, "");
    assert_false(advises(&summary, "of CPU"));
    summary = summary_of_decoding(1.2, "a GPU");
    assert_false(advises(&summary, "of CPU"));
}

/* What decides whether two runs of one epoch are trusted. */
struct terms {
    uint64_t wall_ns, second_wall_ns; /* of the runs */
    double device_share;              /* of the bytes delivered */
    double head;                      /* how much faster the first quarter was read */
    double ceiling;                   /* samples/s */
};

static bool is_told(const struct terms *terms, const char *text)
{
    struct job job = {0};
    struct result_epoch epochs[2];
    struct result_run runs[2];
    struct result result = {.job = &job,
                            .valid = true,
                            .threads = 1,
                            .run_count = 2,
                            .runs = runs,
                            .ceiling_samples_per_s = terms->ceiling};
    struct summary summary;

    assert_int_equal(option_defaults(job_options, &job), 0);
    for (uint64_t i = 0; i < 2; i++) {
        epochs[i] = (struct result_epoch){
            .samples = 1000,
            .batches = 40,
            .wall_ns = i ? terms->second_wall_ns : terms->wall_ns,
            .record_bytes = 1000000,
            .device = {.known = true, .bytes = (uint64_t)(1000000 * terms->device_share)},
            .read_head_ns = (uint64_t)(SECOND / terms->head),
            .read_rest_ns = 3 * (uint64_t)SECOND};
        runs[i] = (struct result_run){.number = i,
                                      .epoch_count = 1,
                                      .epochs_run = 1,
                                      .epochs = &epochs[i],
                                      .cold = {.state = RESULT_CACHE_WARM},
                                      .valid = true};
    }
    assert_int_equal(summary_make(&result, &summary), 0);
    option_release(job_options, &job);
    return advises(&summary, text);
}

/* Each doubt on both sides of its limit. */
static void doubts_have_their_limits(void **unused)
{
    const struct terms good = {SECOND, SECOND, 0.985, 1.14, 2010};
    struct terms terms = good;

    assert_false(is_told(&good, "too short") || is_told(&good, "burst credit") ||
                 is_told(&good, "speed of memory") || is_told(&good, "the runs differ") ||
                 is_told(&good, "own ceiling"));
    terms.wall_ns = SECOND - 10;
    assert_true(is_told(&terms, "a run took only 1000 ms, too short to trust"));
    terms = good;
    terms.device_share = 0.975;
    assert_true(is_told(&terms, "this may be the speed of memory"));
    terms = good;
    terms.head = 1.16; /* of two runs, only a large one is believed */
    assert_true(is_told(&terms, "the first quarter of each run was read 16% faster"));
    terms = good;
    terms.ceiling = 1990;
    assert_true(is_told(&terms, "more than half the program's own ceiling"));
    terms = good;
    terms.second_wall_ns = (uint64_t)SECOND * 109 / 100;
    assert_false(is_told(&terms, "the runs differ"));
    terms.second_wall_ns = (uint64_t)SECOND * 113 / 100;
    assert_true(is_told(&terms, "the runs differ by 12%"));
}

/* A rank that is a little slower than the others is the slowest, not a straggler. */
static void some_rank_is_always_slowest(void **unused)
{
    struct result_comparison found = {.ranks = 2, .nodes = 1, .straggler_host = "a"};
    char *text;
    size_t bytes;

    for (int i = 0; i < 2; i++) {
        FILE *stream = open_memstream(&text, &bytes);
        found.behind_percent = i ? 5.1 : 4.9;
        report_ranks_text(stream, &found);
        fclose(stream);
        assert_non_null(strstr(text, i ? "  Straggler rank 0 on a: 5.1% slower"
                                       : "  Slowest   rank 0 on a: 4.9% slower"));
        assert_true((strstr(text, "mostly in") != NULL) == (i == 1));
        free(text);
    }
}

/* What was left in memory is known if it is of each run: then the most. */
static void one_unverified_run_hides_the_residue(void **unused)
{
    struct job job = {0};
    struct result_epoch epochs[2] = {{.samples = 1, .wall_ns = SECOND},
                                     {.samples = 1, .wall_ns = SECOND}};
    struct result_run runs[2] = {{.epoch_count = 1, .epochs_run = 1, .epochs = &epochs[0]},
                                 {.epoch_count = 1, .epochs_run = 1, .epochs = &epochs[1]}};
    struct result result = {.job = &job, .valid = true, .threads = 1, .run_count = 2, .runs = runs};
    struct summary summary;

    assert_int_equal(option_defaults(job_options, &job), 0);
    runs[0].cold.residue_percent = 0.5;
    runs[1].cold.residue_percent = 0.25;
    assert_int_equal(summary_make(&result, &summary), 0);
    assert_true(summary.residue_known && summary.residue_percent == 0.5);
    runs[1].cold.pages = RESIDENCY_UNVERIFIED;
    assert_int_equal(summary_make(&result, &summary), 0);
    assert_false(summary.residue_known);
    option_release(job_options, &job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bursts_and_drifts_are_told),
        cmocka_unit_test(the_later_epochs_of_a_run_are_one_value),
        cmocka_unit_test(decoding_without_a_cpu_is_told),
        cmocka_unit_test(doubts_have_their_limits),
        cmocka_unit_test(some_rank_is_always_slowest),
        cmocka_unit_test(one_unverified_run_hides_the_residue),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
