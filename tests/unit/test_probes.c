/* SPDX-License-Identifier: Apache-2.0
 * The sampler, on this machine. */
#include "tests/unit/allocations.h"
#include "tests/unit/folder.h"

#include "base/clock.h"
#include "base/fail.h"
#include "telemetry/series.h"

#include <errno.h>
#include <string.h>
#include <stdio.h>
#include <unistd.h>
#include <stdlib.h>

static void count_rows(void *context, const struct series *series)
{
    *(uint64_t *)context = series->row_count;
}

/* Wait for this number of rows. */
static void await_rows(struct sampler *sampler, uint64_t wanted)
{
    const uint64_t end_ns = clock_now_ns() + PATIENCE_NS;
    uint64_t rows = 0;

    while (rows < wanted && clock_now_ns() < end_ns) {
        clock_sleep_ns(1000000);
        sampler_look(sampler, count_rows, &rows);
    }
    assert_true(rows >= wanted);
}

static void samples_come_in_time(void **unused)
{
    const char *path = test_folder;
    const struct sampler_site site = {
        .probes = {.roots = &telemetry_roots_usual, .paths = &path, .path_count = 1},
        .interval_ns = 10000000};
    uint64_t start_ns = clock_now_ns();

    struct sampler *sampler = sampler_open(&site);
    assert_non_null(sampler);
    assert_int_equal(sampler_start(sampler), 0);
    await_rows(sampler, 5);
    uint64_t before = counter_get(&allocations);
    sampler_mark(sampler, &(struct series_mark){.phase = "epoch", .from_ns = start_ns});
    await_rows(sampler, 25);
    assert_int_equal(counter_get(&allocations), before);
    sampler_stop(sampler);
    const struct series *series = sampler_series(sampler);
    uint64_t elapsed_ns = clock_now_ns() - start_ns;
    assert_true(series->row_count >= 25);
    assert_true(series->row_count <= elapsed_ns / site.interval_ns + 2);
    for (uint64_t row = 1; row < series->row_count; row++)
        assert_true(series_time_ns(series, row) > series_time_ns(series, row - 1));
    assert_int_equal(series->mark_count, 1);
    uint32_t cpu = series_find(series, "cpu", "all", "idle_ms");
    assert_true(cpu < series->metric_count);
    assert_true(series_total(series, cpu, 0, UINT64_MAX) >= 0); /* known */
    assert_true(sampler_figures(sampler).cpu_ns > 0);
    sampler_close(sampler);
}

/* A probe that is delayed once, as by a loaded machine, and counts its calls. */
struct held_probe {
    uint64_t asked;
};
static uint64_t held_answer;

static int held_open(struct probe *probe, const struct probe_site *site)
{
    return metric_add(&probe->metrics, "", "asked_count", METRIC_COUNTER, 1) ? 0 : -ENOMEM;
}

static void held_sample(const struct probe *probe, uint64_t *values)
{
    values[0] = ++((struct held_probe *)probe->state)->asked;
    if (values[0] == 2) {
        held_answer = values[0];
        clock_sleep_ns(30000000);
    }
}

/* Returns false if the machine delayed the first sample, so that it was repeated; the second one
 * then starts after the probe's delay. */
static bool hold_up_the_second_sample(void)
{
    static const struct probe_ops held = {.plugin = {.name = "held",
                                                     .summary = "is held up",
                                                     .state_size = sizeof(struct held_probe)},
                                          .open = held_open,
                                          .sample = held_sample};
    const struct plugin_choice own = {.plugin = &held.plugin};
    const struct sampler_site site = {.probes = {.roots = &telemetry_roots_usual},
                                      .names = "memory",
                                      .own = &own,
                                      .interval_ns = 200000000};

    struct sampler *sampler = sampler_open(&site);
    assert_non_null(sampler);
    assert_int_equal(sampler_start(sampler), 0);
    sampler_sample(sampler);
    sampler_stop(sampler);
    const struct series *series = sampler_series(sampler);
    const uint32_t asked = series_find(series, "held", NULL, "asked_count");
    assert_int_equal(held_answer, 2);
    const bool as_planned = series_value(series, 0, asked) == 1;
    for (uint64_t row = 0; as_planned && row < series->row_count; row++)
        assert_true(series_value(series, row, asked) != held_answer);
    assert_true(sampler_figures(sampler).longest_ns >= 30000000);
    sampler_close(sampler);
    return as_planned;
}

/* An hour between samples delays the end of a run by nothing. */
static void a_stop_does_not_wait_for_the_next_sample(void **unused)
{
    const struct sampler_site site = {.probes = {.roots = &telemetry_roots_usual},
                                      .names = "memory",
                                      .interval_ns = UINT64_C(3600000000000)};
    struct sampler *sampler = sampler_open(&site);

    assert_non_null(sampler);
    alarm(60);
    for (int i = 0; i < 100; i++) { /* the thread sleeps already, or does not yet */
        assert_int_equal(sampler_start(sampler), 0);
        sampler_stop(sampler);
    }
    alarm(0);
    assert_int_equal(sampler_series(sampler)->row_count, 200);
    sampler_close(sampler);
}

/* Readings before such a stop do not count for the time after it, or vice versa. */
static void a_sample_that_was_held_up_is_taken_again(void **unused)
{
    const uint64_t end_ns = clock_now_ns() + PATIENCE_NS;

    while (!hold_up_the_second_sample())
        assert_true(clock_now_ns() < end_ns);
}

/* Rows in which the GPU was sampled, those without it since then, and the watts of all GPUs. */
struct gpu_rows {
    uint64_t known, without;
    double watts;
};

static double figure_of(const struct series *series, const char *key)
{
    double values[MONITOR_FIGURES];
    int i = 0;

    while (strcmp(monitor_figures[i].key, key) != 0)
        i++;
    monitor_take(series, 0, UINT64_MAX, values);
    return values[i];
}

static void count_known(void *context, const struct series *series)
{
    const uint32_t gpu = series_find(series, "gpu", "0", "utilization_percent");
    struct gpu_rows *rows = context;

    *rows = (struct gpu_rows){0};
    for (uint64_t row = 0; row < series->row_count; row++) {
        rows->known += series_value(series, row, gpu) == 87 ? 1 : 0;
        rows->without += rows->known && series_value(series, row, gpu) == PROBE_MISSING ? 1 : 0;
    }
    rows->watts = figure_of(series, "gpu_power_watts");
}

static void asked_for_probes_must_be_there(void **unused)
{
    const struct sampler_site missing = {.probes = {.roots = &telemetry_roots_usual},
                                         .names = "cpu,disk"};
    const struct sampler_site unknown = {.probes = {.roots = &telemetry_roots_usual},
                                         .names = "cpu,nonsense"};
    const struct sampler_site slow = {.probes = {.roots = &telemetry_roots_usual},
                                      .names = "gpu:" MOCK_NVML ",memory",
                                      .interval_ns = 20000000};
    const uint64_t end_ns = clock_now_ns() + PATIENCE_NS;
    struct gpu_rows rows = {0};

    assert_null(sampler_open(&missing));
    assert_reason("no block device");
    assert_null(sampler_open(&unknown));
    struct sampler *sampler = sampler_open(&slow);
    assert_non_null(sampler);
    assert_int_equal(sampler_start(sampler), 0);
    /* Sampled twice a second, whatever the interval: other rows appear in between if the machine is
     * fast enough. */
    while (rows.without == 0 && clock_now_ns() < end_ns) {
        clock_sleep_ns(20000000);
        sampler_look(sampler, count_known, &rows);
    }
    assert_true(rows.known > 0 && rows.without > 0);
    assert_true(rows.watts > 312.4 && rows.watts < 312.6); /* of the one GPU that tells */
    sampler_stop(sampler);
    sampler_close(sampler);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_come_in_time),
        cmocka_unit_test(a_stop_does_not_wait_for_the_next_sample),
        cmocka_unit_test(asked_for_probes_must_be_there),
        cmocka_unit_test(a_sample_that_was_held_up_is_taken_again),
    };

    return cmocka_run_group_tests(tests, folder_setup, folder_teardown);
}
