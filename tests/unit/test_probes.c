/* SPDX-License-Identifier: Apache-2.0
 * Each probe on a folder that imitates a machine's /proc and /sys, and the sampler on this machine.
 */
#include "tests/unit/allocations.h"
#include "tests/unit/machine.h"
#include "tests/unit/session.h"

#include "base/clock.h"
#include "base/fail.h"
#include "telemetry/counters.h"
#include "telemetry/monitor.h"
#include "telemetry/sampler.h"

#include <errno.h>
#include <string.h>
#include <stdio.h>
#include <unistd.h>
#include <sys/sysmacros.h>
#include <sys/stat.h>
#include <stdlib.h>

static char proc_root[512], sys_root[512];
static const struct telemetry_roots roots = {.proc = proc_root, .sys = sys_root};

/* ---- a session with each probe ---- */

static struct look look;
static size_t pid_count;

/* What changed since the last sample, or all. */
static void say_values(const uint64_t *before)
{
    for (uint32_t i = 0; i < look.probe.metrics.count; i++) {
        const struct metric *metric = &look.probe.metrics.metrics[i];
        if (before && before[i] == look.values[i])
            continue;
        say("  %s %s ", metric->part, metric->quantity);
        if (look.values[i] == PROBE_MISSING)
            say("unknown");
        else
            say("%llu", (unsigned long long)(look.values[i] * metric->scale));
        say("%s%s\n", metric->kind == METRIC_LEVEL ? ", a level" : "",
            metric->saturates ? ", saturates" : "");
    }
}

static void run_command(int count, char **words, const char *input)
{
    if (strcmp(words[0], "put") == 0) {
        folder_put(words[1], input);
    } else if (strcmp(words[0], "remove") == 0) {
        assert_int_equal(remove(folder_path(words[1])), 0);
    } else if (strcmp(words[0], "link") == 0) {
        assert_int_equal(symlink(words[2], folder_path(words[1])), 0);
    } else if (strcmp(words[0], "set") == 0) {
        setenv(words[1], words[2] ? words[2] : "", 1);
    } else if (strcmp(words[0], "pids") == 0) {
        pid_count = (size_t)atoi(words[1]);
    } else if (strcmp(words[0], "probe") == 0) { /* NAME [PATH...] */
        static const int pids[] = {7, 8};
        const struct probe_site site = {.roots = &roots,
                                        .paths = (const char *const *)words + 2,
                                        .path_count = (size_t)count - 2,
                                        .pids = pids,
                                        .pid_count = pid_count};
        probe_close(&look.probe);
        const int code = look_open(&look, words[1], &site);
        say_result(code);
        if (look.probe.slow_interval_ns)
            say("  at most every %llu ms\n",
                (unsigned long long)look.probe.slow_interval_ns / 1000000);
        if (code == 0)
            say_values(NULL);
    } else if (strcmp(words[0], "sample") == 0) {
        uint64_t before[256];
        memcpy(before, look.values, sizeof before);
        probe_sample(&look.probe, look.values);
        say_values(before);
    } else if (strcmp(words[0], "ports") == 0) {
        struct infiniband_port ports[8];
        const uint32_t found = infiniband_list(&roots, ports, (uint32_t)atoi(words[1]));
        for (uint32_t i = 0; i < found; i++)
            say("  %s %u %s %s %g Gbit/s %s\n", ports[i].device, ports[i].number,
                ports[i].link_layer, ports[i].active ? "active" : "down", ports[i].gbit_per_s,
                ports[i].interface);
    } else if (strcmp(words[0], "rate") == 0) {
        say("  %g\n", infiniband_parse_rate(text_of_string(input)));
    } else { /* io_stat or blkio MAJOR MINOR */
        struct cgroup_counters sum = {1, 2, 3, 4};
        say("  %s\n",
            (strcmp(words[0], "blkio") == 0 ? cgroup_add_blkio : cgroup_add_io_stat)(
                text_of_string(input), (unsigned)atoi(words[1]), (unsigned)atoi(words[2]), &sum)
                ? "listed"
                : "not listed");
        say("  %llu %llu %llu %llu\n", (unsigned long long)sum.read_bytes,
            (unsigned long long)sum.write_bytes, (unsigned long long)sum.reads,
            (unsigned long long)sum.writes);
    }
}

static void all_of_an_imitated_machine(void **unused)
{
    (void)unused;
    session_marks[1][0] = "@NVML", session_marks[1][1] = MOCK_NVML;
    session_run("probes.txt", run_command);
    probe_close(&look.probe);
}

static void all_of_its_disks(void **unused)
{
    static char device[32];
    struct stat status;

    (void)unused;
    assert_int_equal(stat(test_folder, &status), 0);
    if (major(status.st_dev) == 0)
        skip(); /* a file system without its own device */
    snprintf(device, sizeof device, "%u:%u", major(status.st_dev), minor(status.st_dev));
    session_marks[1][0] = "@DEVICE", session_marks[1][1] = device;
    session_run("disks.txt", run_command);
    probe_close(&look.probe);
}

/* ---- the sampler, on this machine ---- */

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

    (void)unused;
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
    (void)site;
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
    (void)unused;
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

    (void)unused;
    while (!hold_up_the_second_sample())
        assert_true(clock_now_ns() < end_ns);
}

/* All rows, those in which the GPU was sampled, and the watts of all GPUs. */
struct gpu_rows {
    uint64_t all, known;
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

    *rows = (struct gpu_rows){.all = series->row_count};
    for (uint64_t row = 0; row < series->row_count; row++)
        rows->known += series_value(series, row, gpu) == 87 ? 1 : 0;
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

    (void)unused;
    assert_null(sampler_open(&missing));
    assert_non_null(strstr(fail_reason(), "no block device"));
    assert_null(sampler_open(&unknown));
    struct sampler *sampler = sampler_open(&slow);
    assert_non_null(sampler);
    assert_int_equal(sampler_start(sampler), 0);
    /* Sampled twice a second, whatever the interval: other rows appear in between if the machine is
     * fast enough. */
    while ((rows.known == 0 || rows.known == rows.all) && clock_now_ns() < end_ns) {
        clock_sleep_ns(20000000);
        sampler_look(sampler, count_known, &rows);
    }
    assert_true(rows.known > 0 && rows.known < rows.all);
    assert_true(rows.watts > 312.4 && rows.watts < 312.6); /* of the one GPU that tells */
    sampler_stop(sampler);
    sampler_close(sampler);
}

static int setup(void **state)
{
    if (folder_setup(state))
        return -1;
    snprintf(proc_root, sizeof proc_root, "%s/proc", test_folder);
    snprintf(sys_root, sizeof sys_root, "%s/sys", test_folder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_of_an_imitated_machine),
        cmocka_unit_test(all_of_its_disks),
        cmocka_unit_test(samples_come_in_time),
        cmocka_unit_test(a_stop_does_not_wait_for_the_next_sample),
        cmocka_unit_test(asked_for_probes_must_be_there),
        cmocka_unit_test(a_sample_that_was_held_up_is_taken_again),
    };

    return cmocka_run_group_tests(tests, setup, folder_teardown);
}
