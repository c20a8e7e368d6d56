/* SPDX-License-Identifier: Apache-2.0
 * Each formula of docs/metrics.md, with values computed by hand; and each figure of an epoch in the
 * JSON under its own key and no other. */
#include "tests/unit/unit.h"

#include "base/option.h"
#include "report/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define S(seconds) ((uint64_t)((seconds)*1e9))
/* 10 s: 8 steps of 1 s of compute, the first of which ended after 2.5 s; 1.5 s of waits. */
static const struct result_epoch worked = {.samples = 800,
                                           .record_bytes = 40000,
                                           .batches = 8,
                                           .wall_ns = S(10),
                                           .wait_ns = S(1.5),
                                           .compute_ns = S(8),
                                           .first_step_ns = S(2.5),
                                           .first_compute_ns = S(1)};

static void accelerator_utilisation(void **unused)
{
    struct result_epoch epoch = worked;

    assert_equal(result_epoch_au_percent(&epoch), 84.2105263157894737);        /* 8 / 9.5 */
    assert_equal(result_epoch_mlperf_au_percent(&epoch), 93.3333333333333333); /* 7 / 7.5 */
    epoch.batches = 1;
    assert_true(isnan(result_epoch_mlperf_au_percent(&epoch)));
    epoch.batches = 2; /* of two ranks: none has a second step */
    epoch.compute_ns = epoch.first_compute_ns;
    assert_true(isnan(result_epoch_mlperf_au_percent(&epoch)));
    epoch.compute_ns = 0;
    assert_true(result_epoch_au_percent(&epoch) == 0);
}

static void rates(void **unused)
{
    struct result_epoch epochs[2] = {worked, worked};
    struct result_run run = {.epoch_count = 2, .epochs = epochs};

    assert_equal(result_epoch_samples_per_s(&worked), 80.0);
    assert_equal(result_epoch_bytes_per_s(&worked), 4000.0);
    epochs[1].wall_ns = S(30); /* 1,600 samples in 40 s, not the mean of 80 and 26.7 */
    assert_equal(result_run_samples_per_s(&run), 40.0);
    assert_equal(result_run_bytes_per_s(&run), 2000.0);
    epochs[1].wait_ns = S(4.5); /* 16 / 22 */
    assert_equal(result_run_au_percent(&run), 72.7272727272727273);
    epochs[1].first_step_ns = S(2); /* 7 / 28: mean of 93.3 and 25 */
    assert_equal(result_run_mlperf_au_percent(&run), 59.1666666666666667);
}

static void bytes_that_left_storage(void **unused)
{
    struct result_epoch epochs[2] = {worked, worked};
    struct result_run run = {.epoch_count = 2, .epochs = epochs};

    assert_true(result_run_device_percent(&run) < 0); /* unknown */
    epochs[0].device = (struct result_bytes){.known = true, .bytes = 39000};
    epochs[1].device = (struct result_bytes){.known = true, .bytes = 1};
    assert_equal(result_run_device_percent(&run), 97.5); /* of the first epoch only */
    epochs[0].device.beneath_known = true;
    epochs[0].device.beneath_bytes = 10000;
    assert_equal(result_run_device_percent(&run), 25.0); /* by the witness with the lowest count */
    epochs[0].device.beneath_bytes = 80000;
    assert_equal(result_run_device_percent(&run), 97.5);
}

/* ---- JSON ---- */

struct made {
    struct job job;
    struct result result;
    struct result_run run;
    struct result_epoch epoch;
    struct summary summary;
};

/* All times of the epoch differ. */
static void make(struct made *made)
{
    memset(made, 0, sizeof *made);
    assert_int_equal(option_defaults(job_options, &made->job), 0);
    made->job.epochs = 1;
    made->epoch = (struct result_epoch){
        .samples = 101,
        .skipped = 103,
        .batches = 107,
        .record_bytes = 109000,
        .request_bytes = 113,
        .requests = 127,
        .wall_ns = S(1000),
        .shuffle_ns = S(2),
        .storage_idle_ns = S(3),
        .first_batch_ns = S(5),
        .wait_ns = S(7),
        .compute_ns = S(11),
        .upload_ns = S(13),
        .exchange_ns = S(17),
        .update_ns = S(19),
        .nominal_ns = S(23),
        .copy_ns = S(29),
        .start_barrier_ns = S(31),
        .stop_barrier_ns = S(37),
        .waits = {S(41), S(43), S(47), S(53), S(59), S(149), S(61)},
        .cpu_user_s = 67,
        .cpu_system_s = 71,
        .device = {.known = true, .bytes = 131, .method = "a test"},
    };
    made->run = (struct result_run){.epochs_run = 1,
                                    .epoch_count = 1,
                                    .epochs = &made->epoch,
                                    .valid = true,
                                    .read_errors = 137,
                                    .short_reads = 139,
                                    .memory_peak_bytes = 149};
    /* 10,000 reads; the last read of each of five lengths is at a percentile. */
    static const struct {
        uint64_t ns;
        int count;
    } reads[] = {{10, 5000}, {20, 4000}, {30, 900}, {40, 90}, {50, 10}};
    for (size_t i = 0; i < sizeof reads / sizeof *reads; i++)
        for (int k = 0; k < reads[i].count; k++)
            histogram_add(&made->run.read_latency_ns, reads[i].ns);
    histogram_add(&made->run.epoch_latency_ns[RESULT_EPOCH_FIRST], 60);
    histogram_add(&made->run.epoch_latency_ns[RESULT_EPOCH_LATER], 30);
    histogram_add(&made->run.epoch_latency_ns[RESULT_EPOCH_LATER], 40);
    histogram_add(&made->run.epoch_latency_ns[RESULT_EPOCH_EVALUATION], 55);
    made->result = (struct result){.job = &made->job,
                                   .threads = 2,
                                   .records = 1000,
                                   .run_count = 1,
                                   .runs = &made->run,
                                   .valid = true};
    assert_int_equal(summary_make(&made->result, &made->summary), 0);
}

static void every_figure_under_its_own_key(void **unused)
{
    static const struct {
        const char *key;
        double value;
    } wanted[] = {{"samples", 101},
                  {"skipped_samples", 103},
                  {"batches", 107},
                  {"record_bytes", 109000},
                  {"request_bytes", 113},
                  {"requests", 127},
                  {"device_read_bytes", 131},
                  {"wall_s", 1000},
                  {"shuffle_s", 2},
                  {"storage_idle_s", 3},
                  {"first_batch_s", 5},
                  {"wait_s", 7},
                  {"compute_s", 11},
                  {"upload_s", 13},
                  {"exchange_s", 17},
                  {"update_s", 19},
                  {"nominal_s", 23},
                  {"upload_copy_s", 29},
                  {"start_barrier_s", 31},
                  {"stop_barrier_s", 37},
                  {"waits.loader_for_storage_s", 41},
                  {"waits.loader_for_memory_s", 43},
                  {"waits.decode_for_records_s", 47},
                  {"waits.decode_for_batch_s", 53},
                  {"waits.decode_busy_s", 59},
                  {"waits.decode_entry_points_s", 149},
                  {"waits.trainer_for_batch_s", 61},
                  {"cpu_user_s", 67},
                  {"cpu_system_s", 71},
                  {"samples_per_s", 0.101},
                  {"record_bytes_per_s", 109}},
      of_run[] = {{"read_errors", 137},
                  {"short_reads", 139},
                  {"memory_peak_bytes", 149},
                  {"read_latency.reads", 10000},
                  {"read_latency.p50_s", 10e-9},
                  {"read_latency.p90_s", 20e-9},
                  {"read_latency.p99_s", 30e-9},
                  {"read_latency.p99_9_s", 40e-9},
                  {"read_latency.max_s", 50e-9},
                  {"read_latency.mean_s", 16.11e-9},
                  {"read_latency.first_epoch.max_s", 60e-9},
                  {"read_latency.first_epoch.reads", 1},
                  {"read_latency.later_epochs.mean_s", 35e-9},
                  {"read_latency.later_epochs.reads", 2},
                  {"read_latency.evaluation.p50_s", 55e-9},
                  {"read_latency.evaluation.reads", 1}};
    struct made made;

    make(&made);
    json_t *job = report_json(&made.result, &made.summary);
    const json_t *run = json_array_get(json_object_get(job, "runs"), 0);
    const json_t *epoch = json_array_get(json_object_get(run, "epochs"), 0);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (!(fabs(load_number(epoch, wanted[i].key) - wanted[i].value) <= 1e-9 * wanted[i].value))
            fail_msg("%s is %.12g", wanted[i].key, load_number(epoch, wanted[i].key));
    for (size_t i = 0; i < sizeof of_run / sizeof *of_run; i++)
        if (!(fabs(load_number(run, of_run[i].key) - of_run[i].value) <= 1e-9 * of_run[i].value))
            fail_msg("%s is %.12g", of_run[i].key, load_number(run, of_run[i].key));
    /* Shares of 1,000 s, and of 2,000 s for two decode threads. */
    const json_t *shares = json_object_get(json_object_get(job, "summary"), "shares");
    assert_equal(load_number(shares, "loader_for_storage_percent"), 4.1);
    assert_equal(load_number(shares, "loader_for_memory_percent"), 4.3);
    assert_equal(load_number(shares, "decode_for_records_percent"), 2.35);
    assert_equal(load_number(shares, "decode_for_batch_percent"), 2.65);
    assert_equal(load_number(shares, "decode_busy_percent"), 2.95);
    assert_equal(load_number(shares, "decode_entry_points_percent"), 7.45);
    assert_equal(load_number(shares, "trainer_for_batch_percent"), 6.1);
    assert_equal(load_number(shares, "trainer_upload_percent"), 1.3);
    assert_equal(load_number(shares, "trainer_compute_percent"), 1.1);
    assert_equal(load_number(shares, "trainer_exchange_percent"), 1.7);
    json_decref(job);
    option_release(job_options, &made.job);
}

/* The CSV has the same figures under the same names. */
static void csv_says_what_json_says(void **unused)
{
    char *text = NULL, *line, *names, *cells, *name, *cell;
    size_t bytes = 0;
    struct made made;
    int compared = 0;

    make(&made);
    json_t *job = report_json(&made.result, &made.summary);
    const json_t *run = json_array_get(json_object_get(job, "runs"), 0);
    const json_t *epoch = json_array_get(json_object_get(run, "epochs"), 0);
    FILE *stream = open_memstream(&text, &bytes);
    report_csv(stream, &made.result, true);
    fclose(stream);
    line = text;
    names = strsep(&line, "\n");
    cells = strsep(&line, "\n");
    while ((name = strsep(&names, ",")) && (cell = strsep(&cells, ","))) {
        const double other = load_number(epoch, name);
        if (isnan(other))
            continue;
        compared++;
        if (!(fabs(strtod(cell, NULL) - other) <= 1e-3 * fabs(other)))
            fail_msg("CSV: %s is %s, JSON: %.12g", name, cell, other);
    }
    assert_true(compared >= 20);
    free(text);
    json_decref(job);
    option_release(job_options, &made.job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accelerator_utilisation), cmocka_unit_test(rates),
        cmocka_unit_test(bytes_that_left_storage), cmocka_unit_test(every_figure_under_its_own_key),
        cmocka_unit_test(csv_says_what_json_says),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
