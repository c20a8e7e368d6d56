/* SPDX-License-Identifier: Apache-2.0
 * The figures of `iobench monitor` and where bytes came from, worked by hand: two disks, two CPUs,
 * two GPUs, over samples at 1, 3 and 5 s. */
#include "tests/unit/unit.h"

#include "telemetry/series.h"

#include <stdio.h>

#define SECOND UINT64_C(1000000000)
#define MISSING PROBE_MISSING

/* A metric and its raw value in each row. */
struct kept {
    const char *probe, *part, *quantity;
    enum metric_kind kind;
    uint32_t scale;
    uint64_t at[3];
};

static struct series series_of(const struct kept *kept, uint32_t count)
{
    struct metric metrics[64];
    uint64_t row[64];
    struct series series;

    assert_true(count <= 64);
    for (uint32_t i = 0; i < count; i++) {
        metrics[i] = (struct metric){
            .probe = kept[i].probe, .kind = kept[i].kind, .bits = 64, .scale = kept[i].scale};
        snprintf(metrics[i].part, sizeof metrics[i].part, "%s", kept[i].part);
        snprintf(metrics[i].quantity, sizeof metrics[i].quantity, "%s", kept[i].quantity);
    }
    assert_int_equal(series_open(&series, metrics, count, 8, 1, SERIES_THIN), 0);
    for (uint32_t k = 0; k < 3; k++) {
        for (uint32_t i = 0; i < count; i++)
            row[i] = kept[i].at[k];
        series_append(&series, (1 + 2 * k) * SECOND, row);
    }
    return series;
}

#define COUNTER(probe, part, quantity, scale, ...)    \
    {                                                 \
        probe, part, quantity, METRIC_COUNTER, scale, \
        {                                             \
            __VA_ARGS__                               \
        }                                             \
    }
#define LEVEL(probe, part, quantity, scale, ...)    \
    {                                               \
        probe, part, quantity, METRIC_LEVEL, scale, \
        {                                           \
            __VA_ARGS__                             \
        }                                           \
    }

static const struct kept machine[] = {
    COUNTER("disk", "vda", "read_bytes", 512, 0, 1000, 3000),
    COUNTER("disk", "vdb", "read_bytes", 512, 100, 600, 1100),
    COUNTER("disk", "vda", "read_count", 1, 0, 10, 30),
    COUNTER("disk", "vdb", "read_count", 1, 5, 5, 15),
    COUNTER("disk", "vda", "read_ms", 1, 0, 40, 100),
    COUNTER("disk", "vdb", "read_ms", 1, 0, 0, 20),
    COUNTER("disk", "vda", "write_bytes", 512, 0, 0, 7000),
    COUNTER("nfs", "/a", "server_read_bytes", 1, 0, 1000000, 4000000),
    COUNTER("nfs", "/a", "read_count", 1, 0, 4, 20),
    COUNTER("nfs", "/a", "read_rtt_ms", 1, 0, 10, 50),
    COUNTER("nfs", "/a", "read_retransmission_count", 1, 0, 0, 2),
    COUNTER("lustre", "", "server_read_bytes", 1, 0, 0, 8000000),
    COUNTER("infiniband", "mlx5_0", "receive_bytes", 4, 0, 100, 2000),
    COUNTER("infiniband", "mlx5_0", "transmit_bytes", 4, 0, 100, 1000),
    COUNTER("net", "eth0", "receive_bytes", 1, 7, 8, 107),
    COUNTER("net", "eth0", "transmit_bytes", 1, 7, 8, 27),
    COUNTER("cpu", "all", "user_ms", 10, 0, 200, 400),
    COUNTER("cpu", "all", "system_ms", 10, 0, 0, 80),
    COUNTER("cpu", "all", "io_wait_ms", 10, 0, 0, 40),
    COUNTER("cpu", "all", "idle_ms", 10, 0, 0, 0),
    COUNTER("cpu", "0", "idle_ms", 10, 0, 0, 0),
    COUNTER("cpu", "1", "idle_ms", 10, 0, 0, 0),
    COUNTER("pressure", "io", "some_us", 1, 0, 500000, 1000000),
    LEVEL("memory", "", "cached_bytes", 1024, 1, 2, 3000000),
    LEVEL("memory", "", "dirty_bytes", 1024, 1, 5000, MISSING),
    LEVEL("memory", "", "free_bytes", 1024, 1, 9, 2000000),
    LEVEL("gpu", "0", "utilization_percent", 1, 0, 0, 30),
    LEVEL("gpu", "1", "utilization_percent", 1, 0, 0, 80),
    LEVEL("gpu", "0", "power_milliwatts", 1, 0, 0, 250500),
    LEVEL("gpu", "1", "power_milliwatts", 1, 0, 0, 300000),
    LEVEL("gpu", "0", "temperature_celsius", 1, 0, 0, 61),
    LEVEL("gpu", "1", "temperature_celsius", 1, 0, 0, 66),
};

/* From 1 s to 5 s; for a table. */
static const struct {
    const char *key;
    double value, shown;
    const char *unit;
} worked[MONITOR_FIGURES] = {
    {"storage_read_bytes_per_s", 4000 * 512 / 4.0, 0.512, "MB/s"}, /* 3,000 + 1,000 sectors */
    {"storage_read_count_per_s", 10, 10, "/s"},                    /* 30 + 10 */
    {"storage_read_ms", 3, 3, "ms"},                               /* (100 + 20) / 40 */
    {"storage_write_bytes_per_s", 7000 * 512 / 4.0, 0.896, "MB/s"},
    {"nfs_read_bytes_per_s", 1e6, 1, "MB/s"},
    {"nfs_read_count_per_s", 5, 5, "/s"},
    {"nfs_read_rtt_ms", 2.5, 2.5, "ms"}, /* 50 / 20 */
    {"nfs_retransmission_count_per_s", 0.5, 0.5, "/s"},
    {"lustre_read_bytes_per_s", 2e6, 2, "MB/s"},
    {"infiniband_receive_bytes_per_s", 2000, 0.002, "MB/s"}, /* words of 4 bytes */
    {"infiniband_transmit_bytes_per_s", 1000, 0.001, "MB/s"},
    {"net_receive_bytes_per_s", 25, 25e-6, "MB/s"},
    {"net_transmit_bytes_per_s", 5, 5e-6, "MB/s"},
    {"cpu_user_percent", 50, 50, "%"}, /* 4,000 ms of 2 x 4,000 */
    {"cpu_system_percent", 10, 10, "%"},
    {"cpu_io_wait_percent", 5, 5, "%"},
    {"io_pressure_percent", 25, 25, "%"}, /* 1 of 4 s */
    {"page_cache_bytes", 3000000 * 1024.0, 3.072, "GB"},
    {"memory_free_bytes", 2000000 * 1024.0, 2.048, "GB"},
    {"dirty_bytes", 5000 * 1024, 5.12, "MB"}, /* the newest that is known */
    {"gpu_utilization_percent", 55, 55, "%"}, /* of two */
    {"gpu_power_watts", 550.5, 550.5, "W"},   /* of both */
    {"gpu_temperature_celsius", 63.5, 63.5, "C"},
};

static void every_figure_of_the_monitor(void **unused)
{
    struct series series = series_of(machine, sizeof machine / sizeof *machine);
    double values[MONITOR_FIGURES];

    monitor_take(&series, SECOND, 5 * SECOND, values);
    for (int i = 0; i < MONITOR_FIGURES; i++) {
        assert_string_equal(monitor_figures[i].key, worked[i].key);
        assert_string_equal(monitor_figures[i].unit, worked[i].unit);
        assert_equal(values[i], worked[i].value);
        assert_equal(values[i] * monitor_figures[i].table_factor, worked[i].shown);
        assert_true(monitor_counts(&series, &monitor_figures[i]));
    }
    /* (1,000 + 500) sectors in the first 2 s; no write yet, and of NFS 4 READs of 10 ms. */
    monitor_take(&series, SECOND, 3 * SECOND, values);
    assert_equal(values[0], 1500 * 512 / 2.0);
    assert_equal(values[3], 0);
    assert_equal(values[6], 2.5);
    assert_equal(values[13], 50);
    /* One row is no interval; a latency is weighted by its count, all others by time. */
    monitor_take(&series, 0, SECOND, values);
    assert_true(isnan(values[0]) && isnan(values[2]) && isnan(values[13]));
    assert_equal(values[17], 1024);
    assert_int_equal(monitor_count_of(&monitor_figures[2]), 1);
    assert_int_equal(monitor_count_of(&monitor_figures[6]), 5);
    assert_int_equal(monitor_count_of(&monitor_figures[0]), -1);
    series_close(&series);
}

/* ---- where bytes came from ---- */

static struct provenance provenance_of(const struct kept *kept, uint32_t count)
{
    struct series series = series_of(kept, count);
    struct provenance provenance;

    provenance_take(&series, SECOND, 5 * SECOND, &provenance);
    series_close(&series);
    return provenance;
}

#define PROVENANCE(...)                               \
    provenance_of((const struct kept[]){__VA_ARGS__}, \
                  sizeof((const struct kept[]){__VA_ARGS__}) / sizeof(struct kept))
#define READ COUNTER("pipeline", "", "read_bytes", 1, 0, 400, 1000)
#define OWN(bytes) COUNTER("process", "", "read_bytes", 1, 50, 50, 50 + (bytes))
#define DISK(bytes) COUNTER("disk", "vda", "read_bytes", 1, 5, 5, 5 + (bytes))

static void bytes_have_a_source(void **unused)
{
    /* 1,000 read, 700 by the process from its disk: the rest was cached. */
    struct provenance p = PROVENANCE(READ, OWN(700), DISK(900));
    assert_int_equal(p.witness, PROVENANCE_DISK);
    assert_equal(p.read, 1000);
    assert_equal(p.local, 700);
    assert_equal(p.fabric, 0);
    assert_equal(p.page_cache, 300);
    assert_equal(p.ahead, 0);
    /* Of a loop device the disk is the witness. */
    p = PROVENANCE(READ, OWN(700), DISK(900), LEVEL("disk", "vda", "loop_file_count", 1, 1, 1, 1));
    assert_equal(p.local, 900);
    assert_equal(p.page_cache, 100);
    /* 600 of the process's 700 came from two servers. */
    p = PROVENANCE(READ, OWN(700), DISK(0), COUNTER("nfs", "/a", "server_read_bytes", 1, 0, 0, 400),
                   COUNTER("lustre", "", "server_read_bytes", 1, 0, 0, 200));
    assert_int_equal(p.witness, PROVENANCE_SERVER);
    assert_equal(p.local, 100);
    assert_equal(p.fabric, 600);
    assert_equal(p.page_cache, 300);
    /* 200 more came than were read: ahead. */
    p = PROVENANCE(READ, COUNTER("nfs", "/a", "server_read_bytes", 1, 0, 0, 1200));
    assert_equal(p.page_cache, 0);
    assert_equal(p.ahead, 200);
    /* No server counts: what came in less what went out, 850 + 100 - 150. What an interface passes
     * to a port, or a port to it, counts once. */
    p = PROVENANCE(READ, COUNTER("net", "eth0", "receive_bytes", 1, 0, 0, 100),
                   COUNTER("net", "ib0", "receive_bytes", 1, 0, 0, 7),
                   COUNTER("net", "eth1", "receive_bytes", 1, 0, 0, 9),
                   COUNTER("infiniband", "rxe0@eth1", "receive_bytes", 1, 0, 0, 850),
                   COUNTER("infiniband", "mlx5_0", "transmit_bytes", 1, 0, 0, 150),
                   COUNTER("pipeline", "", "gradient_bytes", 1, 0, 0, 77));
    assert_int_equal(p.witness, PROVENANCE_RECEIVED);
    assert_equal(p.received, 950);
    assert_equal(p.sent, 150);
    assert_equal(p.excess, 800);
    assert_equal(p.fabric, 800);
    assert_equal(p.page_cache, 200);
    assert_equal(p.gradients, 77);
    /* Commands to the disk are in no counter but ours: 300. */
    p = PROVENANCE(READ, OWN(0), DISK(0),
                   COUNTER("pipeline", "", "passthrough_bytes", 1, 0, 0, 300));
    assert_equal(p.local, 300);
    assert_equal(p.page_cache, 700);
    p = PROVENANCE(READ);
    assert_int_equal(p.witness, PROVENANCE_NOTHING);
    assert_equal(p.page_cache, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_figure_of_the_monitor),
        cmocka_unit_test(bytes_have_a_source),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
