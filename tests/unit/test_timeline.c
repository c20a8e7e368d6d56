/* SPDX-License-Identifier: Apache-2.0
 *
 * Where bytes came from, and a series as figures over time: series made by hand, of nodes whose
 * data lie on NFS over InfiniBand, on NFS over Ethernet, on local disks, in memory, and on BeeGFS.
 */
#include "tests/unit/unit.h"

#include "pipeline/result/timeline.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { METRICS_MAX = 16, SECOND = 1000000000 };

/* A metric and its growth in each of three seconds; all zeros end a table. */
struct line {
    const char *probe, *part, *quantity;
    uint64_t growth[3];
};

/* Each counter has its own start value; the first row is at second 10 of the monotonic clock. */
static void make(const struct line *lines, struct series *series)
{
    struct metric metrics[METRICS_MAX];
    uint64_t values[METRICS_MAX];
    uint32_t count = 0;

    for (; lines[count].probe; count++) {
        metrics[count] = (struct metric){.probe = lines[count].probe, .bits = 64, .scale = 1};
        snprintf(metrics[count].part, sizeof metrics[count].part, "%s", lines[count].part);
        snprintf(metrics[count].quantity, sizeof metrics[count].quantity, "%s",
                 lines[count].quantity);
        values[count] = 1000 * (count + 1);
    }
    assert_int_equal(series_open(series, metrics, count, 64, 8, SERIES_THIN), 0);
    for (uint64_t second = 0; second <= 3; second++) {
        for (uint32_t i = 0; second && i < count; i++)
            values[i] += lines[i].growth[second - 1];
        series_append(series, (10 + second) * SECOND, values);
    }
}

static struct provenance provenance_in(const struct line *lines, uint64_t from_s, uint64_t to_s)
{
    struct series series;
    struct provenance provenance;

    make(lines, &series);
    provenance_take(&series, (10 + from_s) * SECOND, (10 + to_s) * SECOND, &provenance);
    series_close(&series);
    if (!isnan(provenance.read)) /* nothing is lost */
        assert_true(fabs(provenance.read + provenance.ahead - provenance.page_cache -
                         provenance.local - provenance.fabric) < 1e-6);
    return provenance;
}

static void nfs_over_infiniband(void **unused)
{
    /* 500, then half cached, then all; gradients of 100 each way, headers of 10. */
    static const struct line node[] = {
        {"pipeline", "", "read_bytes", {500, 500, 500}},
        {"pipeline", "", "gradient_bytes", {100, 100, 100}},
        {"nfs", "/data", "server_read_bytes", {500, 250, 0}},
        {"process", "", "read_bytes", {500, 250, 0}}, /* includes NFS */
        {"infiniband", "mlx5_0/1", "receive_bytes", {400, 260, 60}},
        {"infiniband", "mlx5_1/1", "receive_bytes", {210, 100, 50}},
        {"infiniband", "mlx5_0/1", "transmit_bytes", {60, 60, 60}},
        {"infiniband", "mlx5_1/1", "transmit_bytes", {50, 50, 50}},
        {"net", "ib0", "receive_bytes", {600, 300, 90}}, /* IPoIB: included in the ports' bytes */
        {"net", "eth0", "receive_bytes", {3, 3, 3}},
        {"net", "eth0", "transmit_bytes", {2, 2, 2}},
        {0}};
    struct provenance provenance = provenance_in(node, 0, 1);

    assert_int_equal(provenance.witness, PROVENANCE_SERVER);
    assert_true(provenance.read == 500 && provenance.fabric == 500);
    assert_true(provenance.local == 0 && provenance.page_cache == 0 && provenance.ahead == 0);
    assert_true(provenance.received == 613 && provenance.sent == 112 && provenance.excess == 501);
    assert_true(provenance.gradients == 100);
    provenance = provenance_in(node, 1, 2);
    assert_true(provenance.fabric == 250 && provenance.page_cache == 250 && provenance.local == 0);
    provenance = provenance_in(node, 2, 3); /* all cached: the same in both directions */
    assert_true(provenance.fabric == 0 && provenance.page_cache == 500);
    assert_true(provenance.excess == 1);
    provenance = provenance_in(node, 0, 3);
    assert_true(provenance.fabric == 750 && provenance.page_cache == 750 &&
                provenance.read == 1500);
}

/* A soft-RoCE port is counted by its interface: once, not twice. */
static void nfs_over_soft_roce(void **unused)
{
    const struct line lines[] = {{"pipeline", "", "read_bytes", {500}},
                                 {"nfs", "/mnt", "server_read_bytes", {500}},
                                 {"infiniband", "rxe0/1@eth0", "receive_bytes", {610}},
                                 {"infiniband", "rxe0/1@eth0", "transmit_bytes", {110}},
                                 {"net", "eth0", "receive_bytes", {610}},
                                 {"net", "eth0", "transmit_bytes", {110}},
                                 {"net", "eth1", "receive_bytes", {3}},
                                 {"net", "eth1", "transmit_bytes", {1}},
                                 {0}};
    const struct provenance provenance = provenance_in(lines, 0, 1);

    assert_true(provenance.received == 613 && provenance.sent == 111 && provenance.excess == 502);
    assert_true(provenance.fabric == 500);
}

static void nfs_beside_a_local_disk(void **unused)
{
    static const struct line node[] = {
        {"pipeline", "", "read_bytes", {1000, 1000, 1000}},
        {"nfs", "/data", "server_read_bytes", {300, 0, 0}},
        {"disk", "vda", "read_bytes", {900, 0, 0}}, /* serves others too */
        {"process", "", "read_bytes", {700, 0, 0}}, /* 300 from NFS, 400 from the disk */
        {0}};
    struct provenance provenance = provenance_in(node, 0, 1);

    assert_true(provenance.fabric == 300 && provenance.local == 400 &&
                provenance.page_cache == 300);
    assert_true(isnan(provenance.received) && isnan(provenance.excess)); /* no counter */
}

/* libnfs: the kernel counts nothing, and this machine caches nothing. */
static void a_client_in_the_reader(void **unused)
{
    static const struct line node[] = {{"pipeline", "", "read_bytes", {100, 50, 0}},
                                       {"pipeline", "", "client_bytes", {100, 50, 0}},
                                       {"net", "eth0", "receive_bytes", {7, 7, 0}},
                                       {"net", "eth0", "transmit_bytes", {7, 7, 0}},
                                       {0}};
    const struct provenance provenance = provenance_in(node, 0, 1);

    assert_int_equal(provenance.witness, PROVENANCE_SERVER);
    assert_true(provenance.fabric == 100 && provenance.page_cache == 0 && provenance.ahead == 0);
}

static void local_disks(void **unused)
{
    static const struct line node[] = {{"pipeline", "", "read_bytes", {100, 100, 0}},
                                       {"disk", "sda", "read_bytes", {90, 0, 0}},
                                       {"disk", "sdb", "read_bytes", {70, 0, 0}},
                                       {"process", "", "read_bytes", {128, 0, 0}},
                                       {"net", "eth0", "receive_bytes", {5000, 5000, 0}},
                                       {"net", "eth0", "transmit_bytes", {10, 10, 0}},
                                       {0}};
    static const struct line no_process[] = {{"pipeline", "", "read_bytes", {200, 100, 0}},
                                             {"disk", "sda", "read_bytes", {90, 0, 0}},
                                             {"disk", "sdb", "read_bytes", {70, 0, 0}},
                                             {0}};
    static const struct line commands[] = {{"pipeline", "", "read_bytes", {100, 100, 0}},
                                           {"pipeline", "", "passthrough_bytes", {100, 0, 0}},
                                           {"disk", "nvme0n1", "read_bytes", {9, 9, 0}},
                                           {"process", "", "read_bytes", {8, 10, 0}},
                                           {0}};
    /* A loop device whose file is cached: the process is charged as if a disk had read. */
    static const struct line loop[] = {{"pipeline", "", "read_bytes", {100, 100, 0}},
                                       {"disk", "sda", "read_bytes", {100, 10, 0}},
                                       {"disk", "", "loop_file_count", {0, 0, 0}},
                                       {"process", "", "read_bytes", {100, 100, 0}},
                                       {0}};
    struct provenance provenance = provenance_in(loop, 1, 2);

    assert_true(provenance.local == 10 && provenance.page_cache == 90);
    provenance = provenance_in(commands, 0, 1);
    assert_true(provenance.local == 108 && provenance.page_cache == 0); /* none is counted there */
    provenance = provenance_in(commands, 1, 2);
    assert_true(provenance.local == 10 && provenance.page_cache == 90);
    provenance = provenance_in(node, 0, 1);
    assert_int_equal(provenance.witness, PROVENANCE_DISK);
    assert_true(provenance.local == 128 && provenance.ahead == 28 && provenance.page_cache == 0);
    assert_true(provenance.fabric == 0); /* other network traffic is not storage */
    provenance = provenance_in(node, 1, 2);
    assert_true(provenance.local == 0 && provenance.page_cache == 100 && provenance.ahead == 0);
    provenance = provenance_in(no_process, 0, 1);
    assert_true(provenance.local == 160 && provenance.page_cache == 40);
}

static void neither_disk_nor_client_counts(void **unused)
{
    static const struct line beegfs[] = {{"pipeline", "", "read_bytes", {1000, 1000, 0}},
                                         {"process", "", "read_bytes", {0, 0, 0}},
                                         {"infiniband", "mlx5_0/1", "receive_bytes", {1100, 70, 0}},
                                         {"infiniband", "mlx5_0/1", "transmit_bytes", {100, 80, 0}},
                                         {0}};
    static const struct line memory[] = {{"pipeline", "", "read_bytes", {1000, 0, 0}},
                                         {"process", "", "read_bytes", {0, 0, 0}},
                                         {0}};
    static const struct line beside_traffic[] = {{"pipeline", "", "read_bytes", {1000, 0, 0}},
                                                 {"disk", "", "memory_count", {0, 0, 0}},
                                                 {"net", "eth0", "receive_bytes", {500, 0, 0}},
                                                 {"net", "eth0", "transmit_bytes", {1, 0, 0}},
                                                 {0}};
    struct provenance provenance = provenance_in(beegfs, 0, 1);

    assert_int_equal(provenance.witness, PROVENANCE_RECEIVED);
    assert_true(provenance.fabric == 1000 && provenance.page_cache == 0);
    provenance = provenance_in(beegfs, 1, 2); /* more sent than received: all cached */
    assert_true(provenance.fabric == 0 && provenance.page_cache == 1000 &&
                provenance.excess == -10);
    provenance = provenance_in(beside_traffic, 0, 1); /* of others: the data are in memory */
    assert_int_equal(provenance.witness, PROVENANCE_NOTHING);
    assert_true(provenance.fabric == 0 && provenance.page_cache == 1000);
    provenance = provenance_in(memory, 0, 1);
    assert_int_equal(provenance.witness, PROVENANCE_NOTHING);
    assert_true(provenance.page_cache == 1000);
}

/* ---- over time ---- */

static double value(const struct timeline *timeline, uint64_t row, const char *key)
{
    uint32_t column = timeline_find(timeline, key);

    if (column == timeline->column_count)
        fail_msg("there is no column %s", key);
    return timeline_value(timeline, row, column);
}

static const struct series_anchor anchor = {.monotonic_ns = UINT64_C(10) * SECOND,
                                            .unix_ns = UINT64_C(1700000000) * SECOND};

static void figures_over_time(void **unused)
{
    static const struct line node[] = {{"pipeline", "", "read_bytes", {100, 200, 300}},
                                       {"pipeline", "", "decode_busy_ns", {SECOND, 0, 0}},
                                       {"disk", "vda", "read_bytes", {100, 50, 0}},
                                       {"process", "", "read_bytes", {100, 50, 0}},
                                       {0}};
    struct series series;

    make(node, &series);
    series_mark(&series, &(struct series_mark){.phase = "epoch",
                                               .number = 1,
                                               .from_ns = UINT64_C(11) * SECOND,
                                               .to_ns = UINT64_C(13) * SECOND});
    series_mark(&series, &(struct series_mark){.phase = "shuffle",
                                               .from_ns = UINT64_C(10) * SECOND,
                                               .to_ns = UINT64_C(11) * SECOND});
    struct timeline *timeline = timeline_make(&series, anchor, SECOND);
    assert_non_null(timeline);
    assert_int_equal(timeline->row_count, 3);
    assert_true(timeline->start_unix_ns == anchor.unix_ns && timeline->interval_s == 1);
    for (uint64_t row = 0; row < 3; row++) {
        assert_true(timeline_time_s(timeline, row) == (double)(row + 1));
        assert_true(value(timeline, row, "read_bytes_per_s") == 100.0 * (double)(row + 1));
        assert_true(value(timeline, row, "storage_read_bytes_per_s") ==
                    (double)node[2].growth[row]);
        assert_true(value(timeline, row, "disk.vda.read_bytes_per_s") ==
                    (double)node[2].growth[row]);
    }
    assert_true(value(timeline, 0, "decode_busy_percent") == 100);
    assert_true(value(timeline, 1, "from_page_cache_bytes_per_s") == 150);
    assert_true(value(timeline, 1, "from_local_bytes_per_s") == 50);
    assert_true(isnan(value(timeline, 1, "fabric_receive_bytes_per_s")));
    assert_int_equal(timeline_find(timeline, "nfs_read_bytes_per_s"), timeline->column_count);
    /* Phases in order of time; epochs alone make up the total. */
    assert_int_equal(timeline->phase_count, 2);
    assert_string_equal(timeline->phases[0].name, "shuffle");
    assert_true(timeline->phases[1].from_s == 1 && timeline->phases[1].to_s == 3);
    assert_true(timeline->phases[1].provenance.page_cache == 450);
    assert_true(timeline->provenance.read == 500 && timeline->provenance.local == 50);
    timeline_destroy(timeline);
    series_close(&series);
}

/* One of two CPUs computes for 600 ms of a second: 30% of the machine; ten reads took 30 ms. */
static void shares_and_means(void **unused)
{
    static const struct line node[] = {{"cpu", "all", "user_ms", {600, 600, 600}},
                                       {"cpu", "all", "idle_ms", {1400, 1400, 1400}},
                                       {"cpu", "0", "user_ms", {600, 600, 600}},
                                       {"cpu", "0", "idle_ms", {400, 400, 400}},
                                       {"cpu", "1", "user_ms", {0, 0, 0}},
                                       {"cpu", "1", "idle_ms", {1000, 1000, 1000}},
                                       {"disk", "vda", "read_ms", {30, 0, 0}},
                                       {"disk", "vda", "read_count", {10, 0, 0}},
                                       {0}};
    struct series series;

    make(node, &series);
    struct timeline *timeline = timeline_make(&series, anchor, SECOND);
    assert_non_null(timeline);
    assert_true(fabs(value(timeline, 0, "cpu_user_percent") - 30) < 1e-9);
    assert_true(value(timeline, 0, "storage_read_ms") == 3); /* per read */
    assert_true(isnan(value(timeline, 1, "storage_read_ms")));
    timeline_destroy(timeline);
    series_close(&series);
}

/* A timeline of any length has few rows, and no bytes are lost between them. */
static void a_long_timeline_is_thinned(void **unused)
{
    const struct metric metric = {
        .probe = "pipeline", .quantity = "read_bytes", .bits = 64, .scale = 1};
    struct series series;
    double sum = 0, before_s = 0;

    assert_int_equal(series_open(&series, &metric, 1, 16384, 1, SERIES_THIN), 0);
    for (uint64_t i = 0; i <= 30001; i++)
        series_append(&series, (100 + i) * SECOND / 10, &(uint64_t){i * i});
    struct timeline *timeline = timeline_make(&series, anchor, SECOND / 10);
    assert_non_null(timeline);
    assert_true(timeline->row_count <= TIMELINE_ROWS && timeline->row_count > TIMELINE_ROWS / 2);
    for (uint64_t row = 0; row < timeline->row_count; row++) {
        double time_s = timeline_time_s(timeline, row);
        sum += timeline_value(timeline, row, 0) * (time_s - before_s);
        if (row)
            assert_true(fabs(time_s - before_s - timeline->interval_s) < 1e-6 ||
                        row + 1 == timeline->row_count);
        before_s = time_s;
    }
    const uint64_t last = series_value(&series, series.row_count - 1, 0);
    assert_true(fabs(sum / (double)last - 1) < 1e-9);
    timeline_destroy(timeline);
    series_close(&series);
}

/* A sample right after another one joins the next bin. */
static void a_moment_is_no_bin(void **unused)
{
    const struct metric metric = {
        .probe = "pipeline", .quantity = "read_bytes", .bits = 64, .scale = 1};
    const uint64_t times_ms[] = {10000, 10100, 10101, 10200, 10300};
    struct series series;

    assert_int_equal(series_open(&series, &metric, 1, 16, 1, SERIES_THIN), 0);
    for (uint64_t i = 0; i < 5; i++)
        series_append(&series, times_ms[i] * 1000000, &(uint64_t){i});
    struct timeline *timeline = timeline_make(&series, anchor, SECOND / 10);
    assert_non_null(timeline);
    assert_int_equal(timeline->row_count, 3);
    assert_true(fabs(timeline_time_s(timeline, 1) - 0.2) < 1e-9);
    assert_true(fabs(value(timeline, 1, "read_bytes_per_s") - 20) < 1e-6);
    timeline_destroy(timeline);
    series_close(&series);
}

/* A clock that is set back, which makes a run invalid, leaves the rows in their order. */
static void a_clock_that_goes_back(void **unused)
{
    static const uint64_t seconds[] = {10, 11, 12, 3, 4, 5};
    const struct metric free = {
        .probe = "memory", .quantity = "free_bytes", .kind = METRIC_LEVEL, .scale = 1};
    struct series series;

    assert_int_equal(series_open(&series, &free, 1, 64, 8, SERIES_THIN), 0);
    for (uint64_t i = 0; i < 6; i++)
        series_append(&series, seconds[i] * SECOND, &i);
    struct timeline *timeline = timeline_make(&series, anchor, SECOND);
    assert_int_equal(timeline->row_count, 5);
    for (uint64_t i = 0; i < 5; i++)
        assert_equal(timeline_value(timeline, i, timeline->column_count - 1), (double)(i + 1));
    timeline_destroy(timeline);
    series_close(&series);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nfs_over_infiniband),
        cmocka_unit_test(nfs_over_soft_roce),
        cmocka_unit_test(nfs_beside_a_local_disk),
        cmocka_unit_test(a_client_in_the_reader),
        cmocka_unit_test(local_disks),
        cmocka_unit_test(neither_disk_nor_client_counts),
        cmocka_unit_test(figures_over_time),
        cmocka_unit_test(shares_and_means),
        cmocka_unit_test(a_long_timeline_is_thinned),
        cmocka_unit_test(a_clock_that_goes_back),
        cmocka_unit_test(a_moment_is_no_bin),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
