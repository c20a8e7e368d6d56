/* SPDX-License-Identifier: Apache-2.0
 * Figures of the report worked by hand: three unlike ranks on two nodes, latencies of 1, 2 and 5
 * reads, one, two and five runs; as printed and as JSON. */
#include "tests/unit/worked.h"

#include "base/option.h"
#include "pipeline/settings/job.h"
#include "report/report.h"

#include <string.h>

#define S(seconds) ((uint64_t)((double)(seconds)*1e9))

/* ---- ranks ---- */

/* Rank 0 works 8 of 10 s, the exchange left out; rank 1, on a too, 7; rank 2, on b, 9.6. */
static void three_ranks_on_two_nodes(void **unused)
{
    const struct result_rank ranks[] = {{.rank = 0,
                                         .leads = true,
                                         .host = "a",
                                         .total = {.samples = 1000,
                                                   .wall_ns = S(10),
                                                   .wait_ns = S(1),
                                                   .upload_ns = S(0.5),
                                                   .compute_ns = S(6),
                                                   .exchange_ns = S(2),
                                                   .update_ns = S(0.5),
                                                   .start_barrier_ns = S(0.1),
                                                   .stop_barrier_ns = S(0.4)}},
                                        {.rank = 1,
                                         .host = "a",
                                         .total = {.samples = 800,
                                                   .wall_ns = S(10),
                                                   .wait_ns = S(0),
                                                   .upload_ns = S(0.5),
                                                   .compute_ns = S(6),
                                                   .exchange_ns = S(3),
                                                   .update_ns = S(0.5),
                                                   .stop_barrier_ns = S(1)}},
                                        {.rank = 2,
                                         .node = 1,
                                         .leads = true,
                                         .host = "b",
                                         .read_p50_ns = S(0.002),
                                         .read_p99_ns = S(0.03),
                                         .read_max_ns = S(0.5),
                                         .total = {.samples = 1320,
                                                   .wall_ns = S(11),
                                                   .wait_ns = S(4),
                                                   .upload_ns = S(0.5),
                                                   .compute_ns = S(4.6),
                                                   .exchange_ns = S(1.4),
                                                   .update_ns = S(0.5),
                                                   .limit = RESULT_LIMIT_DECODE}}};
    struct result_comparison comparison;

    assert_int_equal(result_compare(ranks, 3, &comparison), 0);
    json_t *object = report_ranks_json(&comparison);
    ASSERT_FIGURES(object, {"ranks", 3}, {"nodes", 2}, {"samples_per_s.min", 80},
                   {"samples_per_s.median", 100}, {"samples_per_s.max", 120}, {"wall_s.min", 10},
                   {"wall_s.median", 10}, {"wall_s.max", 11}, {"wait_s.min", 0},
                   {"wait_s.median", 1}, {"wait_s.max", 4}, {"upload_s.max", 0.5},
                   {"compute_s.min", 4.6}, {"compute_s.median", 6}, {"exchange_s.min", 1.4},
                   {"exchange_s.median", 2}, {"exchange_s.max", 3}, {"update_s.median", 0.5},
                   {"barrier_s.min", 0}, {"barrier_s.median", 0.5}, {"barrier_s.max", 1},
                   {"straggler.rank", 2},
                   {"straggler.behind_percent", 20}); /* 9.6 s at work for a median of 8 */
    assert_string_equal(load_text(object, "straggler.host"), "b");
    assert_string_equal(load_text(object, "straggler.phase"), "wait for batches");
    json_decref(object);

    printed_begin();
    report_ranks_text(stdout, &comparison);
    char *text = printed_end();
    assert_says(text, " Ranks 3 on 2 nodes lowest median highest\n samples/s 80.0 100 120\n"
                      " time 10.0 s 10.0 s 11.0 s\n wait for batches 0 ns 1.00 s 4.00 s\n"
                      " upload 500 ms 500 ms 500 ms\n forward and backward 4.60 s 6.00 s 6.00 s\n"
                      " exchange 1.40 s 2.00 s 3.00 s\n update 500 ms 500 ms 500 ms\n"
                      " barriers between epochs 0 ns 500 ms 1.00 s\n");
    assert_says(text,
                "Straggler rank 2 on b: 20.0% slower than the median rank, mostly in wait for\n "
                "batches (limit: decode)\n");
    free(text);

    object = report_ranks_json_one(&ranks[2]);
    ASSERT_FIGURES(object, {"rank", 2}, {"node", 1}, {"samples", 1320}, {"samples_per_s", 120},
                   {"wall_s", 11}, {"read_p50_s", 0.002}, {"read_p99_s", 0.03}, {"read_max_s", 0.5},
                   {"wait_s", 4}, {"compute_s", 4.6}, {"exchange_s", 1.4});
    json_decref(object);
    object = report_ranks_json_one(&ranks[0]);
    ASSERT_FIGURES(object, {"start_barrier_s", 0.1}, {"stop_barrier_s", 0.4});
    json_decref(object);
}

/* 40 batches of 2 ranks in 10 s each: a step is 500 ms. */
static void a_step_and_its_memory(void **unused)
{
    const struct result_epoch total = {.wall_ns = S(10),
                                       .batches = 40,
                                       .wait_ns = S(1),
                                       .upload_ns = S(0.5),
                                       .compute_ns = S(6),
                                       .exchange_ns = S(2),
                                       .update_ns = S(0.25)};
    const struct trainer_memory memory = {3 << 20, 1 << 20, 1 << 19};
    char text[256];

    assert_string_equal(report_step(&total, 2, text, sizeof text),
                        "500 ms: wait for batches 10.0%, upload 5.0%, forward and backward 60.0%, "
                        "exchange 20.0%, update 2.5%");
    assert_string_equal(report_device_memory(&memory, text, sizeof text),
                        "; 3.00 MiB of the GPU, of which 1.00 MiB for uploaded batches; 512.00 KiB "
                        "pinned");
}

/* ---- latencies ---- */

/* The smallest that so many do not exceed. */
static void latencies_of_one_two_and_five(void **unused)
{
    struct histogram kinds[RESULT_EPOCH_KINDS] = {0}, all = {0};
    const uint64_t ms = (1 << 20) + (1 << 13); /* 1.056768 ms, the middle of its bucket */
    char text[256];

    histogram_add(&kinds[RESULT_EPOCH_FIRST], ms);
    for (uint64_t i = 0; i < 2; i++) /* 1 and 4 */
        histogram_add(&kinds[RESULT_EPOCH_LATER], ms << 2 * i);
    for (uint64_t i = 0; i < 5; i++) /* 1, 2, 4, 8, 16 */
        histogram_add(&all, ms << i);
    json_t *object = latency_json(&all, kinds, true);
    ASSERT_FIGURES(object, {"reads", 5}, {"p50_s", 4 * 1.056768e-3}, {"p90_s", 16 * 1.056768e-3},
                   {"p99_s", 16 * 1.056768e-3}, {"max_s", 16 * 1.056768e-3},
                   {"mean_s", 31 * 1.056768e-3 / 5}, {"first_epoch.reads", 1},
                   {"first_epoch.p50_s", 1.056768e-3}, {"first_epoch.p99_9_s", 1.056768e-3},
                   {"first_epoch.mean_s", 1.056768e-3}, {"later_epochs.reads", 2},
                   {"later_epochs.p50_s", 1.056768e-3}, {"later_epochs.p90_s", 4 * 1.056768e-3},
                   {"later_epochs.mean_s", 2.5 * 1.056768e-3}, {"quantiles.0.0", 0.01},
                   {"quantiles.4.0", 0.3}, {"quantiles.4.1", 0.00211354});
    assert_null(json_object_get(object, "evaluation"));
    /* Up to the share that a single read of five still exceeds: 0.8. */
    assert_int_equal(json_array_size(json_object_get(object, "quantiles")), 9);
    json_decref(object);
    assert_string_equal(latency_text(&all, text, sizeof text),
                        "p50 4.23 ms, p90 16.9 ms, p99 16.9 ms, p99.9 16.9 ms, max 16.9 ms");
    assert_string_equal(
        latency_text_by_epoch(kinds, text, sizeof text),
        "; first epoch p50 1.06 ms, p99 1.06 ms; later epochs p50 1.06 ms, p99 4.23 "
        "ms");
}

/* ---- runs ---- */

struct made {
    struct job job;
    struct result result;
    struct result_run runs[5];
    struct result_epoch epochs[5];
    struct summary summary;
};

/* Runs of 1,000 samples of 2 MB in so many seconds; 0.4 of them computing. */
static char *table_of(struct made *made, const double *seconds, uint32_t count)
{
    memset(made, 0, sizeof *made);
    assert_int_equal(option_defaults(job_options, &made->job), 0);
    made->result = (struct result){
        .job = &made->job, .run_count = count, .runs = made->runs, .valid = true, .records = 1000};
    for (uint32_t i = 0; i < count; i++) {
        made->epochs[i] = (struct result_epoch){.samples = 1000,
                                                .record_bytes = 2000000000,
                                                .request_bytes = 2500000000,
                                                .requests = 500,
                                                .batches = 10,
                                                .wall_ns = S(seconds[i]),
                                                .compute_ns = S(0.4 * seconds[i]),
                                                .wait_ns = S(0.6 * seconds[i])};
        made->runs[i] = (struct result_run){.number = i,
                                            .epochs = &made->epochs[i],
                                            .epoch_count = 1,
                                            .epochs_run = 1,
                                            .valid = true};
    }
    assert_int_equal(summary_make(&made->result, &made->summary), 0);
    printed_begin();
    report_text(stdout, &made->result, &made->summary, false);
    return printed_end();
}

/* 1,000 samples in 4 s: 250/s, 500 MB/s or 476.8 MiB/s, 40% at work. Two runs of 4 and 2 s: 375 in
 * the middle of 250 and 500. Five of 1, 2, 4, 8 and 16 s: 250, and exp(ln 250 +- 2.776 sqrt(2.5 /
 * 5) ln 2) = 64.1 .. 975. */
static void one_two_and_five_runs(void **unused)
{
    static const double one[] = {4}, two[] = {4, 2}, five[] = {1, 16, 4, 2, 8};
    struct made made;

    char *text = table_of(&made, one, 1);
    assert_says(text, " Median 250 one run 477 500 40.0%\n");
    free(text);
    made.runs[0].decode = (struct decode_figures){.images = 1200, .grayscale = 3, .failed = 1};
    printed_begin();
    report_text(stdout, &made.result, &made.summary, false);
    text = printed_end();
    assert_says(text, " Images of 1,200 decoded: 3 grayscale, 1 could not be decoded\n");
    free(text);
    option_release(job_options, &made.job);
    text = table_of(&made, two, 2);
    assert_says(text, " Median 375 250 .. 500 715 750 40.0%\n");
    free(text);
    option_release(job_options, &made.job);
    text = table_of(&made, five, 5);
    assert_says(text, " Median 250 64.1 .. 975 477 500 40.0%\n");
    free(text);
    json_t *job = report_json(&made.result, &made.summary);
    ASSERT_FIGURES(job, {"summary.samples_per_s", 250}, {"summary.samples_per_s_min", 62.5},
                   {"summary.samples_per_s_max", 1000},
                   {"summary.samples_per_s_low95", 64.112827167890061},
                   {"summary.samples_per_s_high95", 974.84392376479468},
                   {"summary.record_bytes_per_s", 500e6}, {"summary.au_percent", 40});
    json_decref(job);
    option_release(job_options, &made.job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_ranks_on_two_nodes),
        cmocka_unit_test(a_step_and_its_memory),
        cmocka_unit_test(latencies_of_one_two_and_five),
        cmocka_unit_test(one_two_and_five_runs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
