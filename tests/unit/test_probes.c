/* SPDX-License-Identifier: Apache-2.0
 * Each probe on a folder that imitates a machine's /proc and /sys, and the sampler on this machine.
 */
#include "tests/unit/allocations.h"
#include "tests/unit/machine.h"

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
static const struct probe_site imitated = {.roots = &roots};

/* ---- /proc ---- */

static void network_interfaces(void **unused)
{
    struct look look;

    (void)unused;
    folder_put(
        "proc/net/dev",
        "Inter-|   Receive                                                |  Transmit\n"
        " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs "
        "drop fifo colls carrier compressed\n"
        "    lo: 15246 146 0 0 0 0 0 0 15246 146 0 0 0 0 0 0\n"
        "  eth0:5000000000 4000 1 2 0 0 0 0 70 6 3 4 0 0 0 0\n"
        " ib0.8002: 9 8 7 6 5 4 3 2 1 11 12 13 14 15 16 17\n"
        "  bad: 1 2 3\n");
    assert_int_equal(look_open(&look, "net", &imitated), 0);
    assert_int_equal(look.probe.metrics.count, 2 * 8);
    assert_int_equal(value_of(&look, "eth0", "receive_bytes"), 5000000000);
    assert_int_equal(value_of(&look, "eth0", "transmit_drop_count"), 4);
    assert_int_equal(value_of(&look, "ib0.8002", "transmit_bytes"), 1);
    /* eth0 is gone: unknown, not zero. */
    folder_put("proc/net/dev", "x\ny\n ib0.8002: 10 8 7 6 5 4 3 2 1 11 12 13 14 15 16 17\n");
    probe_sample(&look.probe, look.values);
    assert_true(value_of(&look, "eth0", "receive_bytes") == PROBE_MISSING);
    assert_int_equal(value_of(&look, "ib0.8002", "receive_bytes"), 10);
    probe_close(&look.probe);
    /* A bridge would double-count its interface. */
    folder_put("sys/class/net/ib0/device/vendor", "0x15b3\n");
    folder_put("proc/net/dev", "br0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"
                               "ib0: 7 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n");
    assert_int_equal(look_open(&look, "net", &imitated), 0);
    assert_int_equal(look.probe.metrics.count, 8);
    assert_int_equal(value_of(&look, "ib0", "receive_bytes"), 7);
    probe_close(&look.probe);
}

static void processors(void **unused)
{
    struct look look;
    const uint64_t tick_ms = (uint64_t)(1000 / sysconf(_SC_CLK_TCK));

    (void)unused;
    folder_put("proc/stat", "cpu  100 2 30 4000 50 6 7 8 0 0\ncpu0 60 1 10 2000 25 3 3 4 0 0\n"
                            "cpu3 40 1 20 2000 25 3 4 4 0 0\nintr 1 2 3\nctxt 5\n");
    assert_int_equal(look_open(&look, "cpu", &imitated), 0);
    assert_int_equal(look.probe.metrics.count, 3 * 4);
    assert_int_equal(value_of(&look, "all", "user_ms"), 102 * tick_ms);
    assert_int_equal(value_of(&look, "3", "system_ms"), 27 * tick_ms);
    assert_int_equal(value_of(&look, "0", "io_wait_ms"), 25 * tick_ms);
    folder_put("proc/stat",
               "cpu  1 2 3 4 5 6 7 8 0 0\ncpu1 1 1 1 1 1 1 1 1\ncpu3 1 2 3 4 5 6 7 8\n");
    probe_sample(&look.probe, look.values);
    assert_true(value_of(&look, "0", "user_ms") == PROBE_MISSING); /* offline */
    assert_int_equal(value_of(&look, "3", "idle_ms"), 4 * tick_ms);
    probe_close(&look.probe);
}

static void memory_and_pressure(void **unused)
{
    struct look look;

    (void)unused;
    folder_put("proc/meminfo", "MemTotal:       24684084 kB\nMemFree:          512 kB\n"
                               "Cached:          1000 kB\nSwapCached:  7 kB\nDirty: 3 kB\n"
                               "Writeback:  0 kB\nShmem:  44 kB\nHugePages_Total:       0\n");
    assert_int_equal(look_open(&look, "memory", &imitated), 0);
    assert_int_equal(value_of(&look, "", "cached_bytes"), 1000 * 1024);
    assert_int_equal(value_of(&look, "", "dirty_bytes"), 3 * 1024);
    assert_true(value_of(&look, "", "available_bytes") == PROBE_MISSING); /* before 3.14 */
    probe_close(&look.probe);

    assert_int_equal(look_open(&look, "pressure", &imitated), -ENOENT); /* a kernel without it */
    probe_close(&look.probe);
    folder_put("proc/pressure/io", "some avg10=59.14 avg60=54.89 avg300=38.67 total=281802792\n"
                                   "full avg10=2.79 avg60=0.78 avg300=0.32 total=35444971\n");
    folder_put("proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=7\n"
                                       "full avg10=0.00 avg60=0.00 avg300=0.00 total=5\n");
    folder_put("proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=9\n");
    assert_int_equal(look_open(&look, "pressure", &imitated), 0);
    assert_int_equal(value_of(&look, "io", "some_us"), 281802792);
    assert_int_equal(value_of(&look, "memory", "full_us"), 5);
    assert_int_equal(value_of(&look, "cpu", "full_us"), 0);
    probe_close(&look.probe);
}

/* Reads from the page cache are not reads from storage. */
static void a_process_by_its_io(void **unused)
{
    struct look look;

    (void)unused;
    folder_put("proc/self/io", "rchar: 1000\nwchar: 2000\nsyscr: 3\nsyscw: 4\nread_bytes: 4096\n"
                               "write_bytes: 8192\ncancelled_write_bytes: 0\n");
    assert_int_equal(look_open(&look, "process", &imitated), 0);
    assert_int_equal(value_of(&look, "", "read_bytes"), 4096);
    assert_int_equal(value_of(&look, "", "write_bytes"), 8192);
    probe_close(&look.probe);
}

/* Bytes sent by the server and bytes read by programs are separate columns. */
static void a_server_by_its_mount(void **unused)
{
    const char *paths[] = {"/"};
    const struct probe_site site = {.roots = &roots, .paths = paths, .path_count = 1};
    struct plugin_choice choice = {0};
    struct look look;

    (void)unused;
    folder_put("proc/self/mountinfo", "22 1 0:45 / / rw - nfs4 nas:/x rw\n");
    folder_put("proc/self/mountstats", "device nas:/x mounted on / with fstype nfs4 statvers=1.1\n"
                                       "\tbytes:\t1000 11 200 13 4096 15 16 17\n"
                                       "\t        READ: 5 7 1 100 4200 10 512 530 2\n");
    assert_int_equal(plugin_choose("probe", probe_registry, "nfs", &choice), 0);
    assert_int_equal(probe_open(&look.probe, &choice, &site), 0);
    plugin_release(&choice);
    probe_sample(&look.probe, look.values);
    assert_int_equal(value_of(&look, "/", "server_read_bytes"), 4096);
    assert_int_equal(value_of(&look, "/", "application_read_bytes"), 1000);
    assert_int_equal(value_of(&look, "/", "application_direct_bytes"), 200);
    assert_int_equal(value_of(&look, "/", "server_written_bytes"), 15);
    assert_int_equal(value_of(&look, "/", "read_count"), 5);
    assert_int_equal(value_of(&look, "/", "read_retransmission_count"), 2);
    assert_int_equal(value_of(&look, "/", "read_rtt_ms"), 512);
    const uint32_t columns = look.probe.metrics.count;
    probe_close(&look.probe);

    /* Each mount once, however many paths are on it. */
    const char *several[] = {"/", "/proc", "/", "/proc"};
    const struct probe_site more = {.roots = &roots, .paths = several, .path_count = 4};
    folder_put("proc/self/mountinfo", "22 1 0:45 / / rw - nfs4 nas:/x rw\n"
                                      "23 22 0:46 / /proc rw - nfs nas:/y rw\n");
    folder_put("proc/self/mountstats",
               "device nas:/x mounted on / with fstype nfs4 statvers=1.1\n"
               "\tbytes:\t1000 11 200 13 4096 15 16 17\n"
               "device nas:/y mounted on /proc with fstype nfs statvers=1.1\n"
               "\tbytes:\t1 2 3 4 5 6 7 8\n");
    assert_int_equal(plugin_choose("probe", probe_registry, "nfs", &choice), 0);
    assert_int_equal(probe_open(&look.probe, &choice, &more), 0);
    plugin_release(&choice);
    assert_int_equal(look.probe.metrics.count, 2 * columns);
    probe_sample(&look.probe, look.values);
    assert_int_equal(value_of(&look, "/", "server_read_bytes"), 4096);
    assert_int_equal(value_of(&look, "/proc", "server_read_bytes"), 5);
    probe_close(&look.probe);
}

/* A sector is 512 bytes, whatever the disk's own sector size. */
static void a_disk_by_its_sectors(void **unused)
{
    const char *path = test_folder;
    const struct probe_site site = {.roots = &roots, .paths = &path, .path_count = 1};
    struct plugin_choice choice = {0};
    struct stat status;
    struct look look;
    char name[256];

    (void)unused;
    assert_int_equal(stat(test_folder, &status), 0);
    if (major(status.st_dev) == 0)
        skip(); /* a file system without its own device */
    folder_put("sys/devices/disk0/stat", " 11 2 1000 7 22 3 3000 9 1 15 16 0 0 0 0 0 0\n");
    snprintf(name, sizeof name, "sys/dev/block/%u:%u", major(status.st_dev), minor(status.st_dev));
    folder_put("sys/dev/block/other", "");
    char *link = file_format_path("%s/%s", test_folder, name);
    assert_int_equal(symlink("../../devices/disk0", link), 0);
    free(link);
    snprintf(name, sizeof name, "%u:%u\n", major(status.st_dev), minor(status.st_dev));
    folder_put("sys/devices/disk0/dev", name);
    assert_int_equal(plugin_choose("probe", probe_registry, "disk", &choice), 0);
    assert_int_equal(probe_open(&look.probe, &choice, &site), 0);
    plugin_release(&choice);
    probe_sample(&look.probe, look.values);
    assert_int_equal(value_of(&look, "disk0", "read_count"), 11);
    assert_int_equal(value_of(&look, "disk0", "read_bytes"), 512000);
    assert_int_equal(value_of(&look, "disk0", "read_ms"), 7);
    assert_int_equal(value_of(&look, "disk0", "write_count"), 22);
    assert_int_equal(value_of(&look, "disk0", "write_bytes"), 1536000);
    assert_int_equal(value_of(&look, "disk0", "write_ms"), 9);
    probe_close(&look.probe);
}

static void lustre_sums_its_servers(void **unused)
{
    struct look look;

    (void)unused;
    folder_put("proc/fs/lustre/llite/scratch-ffff88/stats",
               "snapshot_time             1409777887.590578 secs.usecs\n"
               "read_bytes                200 samples [bytes] 1 1048576 209715200\n"
               "open                      7 samples [regs]\n");
    folder_put("proc/fs/lustre/osc/scratch-OST0000-osc-ffff88/stats",
               "snapshot_time 1409777887.59 secs.nsecs\n"
               "req_waittime 10 samples [usec] 1 2 3 4\n"
               "read_bytes 3 samples [bytes] 4096 1048576 1000 5\n"
               "write_bytes 1 samples [bytes] 1 1 17 17\n");
    folder_put(
        "proc/fs/lustre/osc/scratch-OST0001-osc-ffff88/stats",
        "snapshot_time 1409777887.59 secs.nsecs\nread_bytes 4 samples [bytes] 4096 1048576 24\n");
    assert_int_equal(look_open(&look, "lustre", &imitated), 0);
    assert_int_equal(value_of(&look, "", "application_read_bytes"), 209715200);
    assert_int_equal(value_of(&look, "", "server_read_bytes"), 1024);
    assert_int_equal(value_of(&look, "", "server_read_count"), 7);
    assert_int_equal(value_of(&look, "", "server_write_bytes"), 17);
    folder_put("proc/fs/lustre/osc/scratch-OST0001-osc-ffff88/stats", "");
    probe_sample(&look.probe, look.values);
    assert_true(value_of(&look, "", "server_read_bytes") == PROBE_MISSING);
    assert_int_equal(value_of(&look, "", "application_read_bytes"), 209715200);
    probe_close(&look.probe);
}

/* ---- control groups ---- */

static void control_groups(void **unused)
{
    const char io_stat[] = "8:0 rbytes=1459200 wbytes=314773504 rios=192 wios=353 dbytes=0 dios=0\n"
                           "253:10 rbytes=7 wbytes=8 rios=1 wios=2\n";
    const char blkio[] = "8:0 Read 4096\n8:0 Write 10\n8:0 Sync 1\n8:0 Total 4106\n"
                         "8:16 Read 5\nTotal 4111\n";
    struct cgroup_counters counters = {0};

    (void)unused;
    assert_true(cgroup_add_io_stat(text_of_string(io_stat), 8, 0, &counters));
    assert_true(counters.read_bytes == 1459200 && counters.writes == 353);
    assert_true(cgroup_add_io_stat(text_of_string(io_stat), 253, 10, &counters));
    assert_int_equal(counters.read_bytes, 1459207);
    assert_false(cgroup_add_io_stat(text_of_string(io_stat), 253, 1, &counters));
    counters = (struct cgroup_counters){0};
    assert_true(cgroup_add_blkio(text_of_string(blkio), 8, 0, &counters));
    assert_true(counters.read_bytes == 4096 && counters.write_bytes == 10);
    assert_false(cgroup_add_blkio(text_of_string(blkio), 8, 1, &counters));
}

/* ---- InfiniBand ---- */

static void mellanox_adapter(void **unused)
{
    struct infiniband_port ports[5];
    struct look look;

    (void)unused;
    folder_put("sys/class/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand\n");
    folder_put("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
    folder_put("sys/class/infiniband/mlx5_0/ports/1/rate", "100 Gb/sec (4X EDR)\n");
    folder_put("sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data", "2500000000\n");
    folder_put("sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data", "1000\n");
    folder_put("sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_wait", "77\n");
    folder_put("sys/class/infiniband/mlx5_0/ports/1/hw_counters/out_of_sequence", "3\n");
    /* An old driver with 64-bit counters under another name only. */
    folder_put("sys/class/infiniband/mlx4_0/ports/2/counters_ext/port_rcv_data_64", "5\n");
    /* Software RDMA: no byte counters of its own. */
    folder_put("sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts", "9\n");
    folder_put("sys/class/infiniband/rxe0/ports/1/gid_attrs/ndevs/0", "eth7\n");
    folder_put("sys/class/net/eth7/statistics/rx_bytes", "12890000\n");
    folder_put("sys/class/net/eth7/statistics/tx_bytes", "13\n");
    /* Amazon's adapter: bytes are among the driver's own counters, not in 4-byte words. */
    folder_put("sys/class/infiniband/efa_0/ports/1/hw_counters/rx_bytes", "4000000001\n");
    folder_put("sys/class/infiniband/efa_0/ports/1/hw_counters/tx_bytes", "6\n");
    /* RoCE: the port counts bytes that the network interface does not see. */
    folder_put("sys/class/infiniband/mlx5_2/ports/1/link_layer", "Ethernet\n");
    folder_put("sys/class/infiniband/mlx5_2/ports/1/counters/port_rcv_data", "25\n");
    folder_put("sys/class/infiniband/mlx5_2/ports/1/counters/port_xmit_data", "26\n");
    folder_put("sys/class/infiniband/mlx5_2/ports/1/gid_attrs/ndevs/0", "eth7\n");
    folder_put("sys/class/infiniband/mlx5_2/ports/1/hw_counters/packet_seq_err", "2\n");
    folder_put("sys/class/infiniband/mlx5_2/ports/1/hw_counters/np_cnp_sent", "17\n");
    assert_int_equal(infiniband_list(&roots, ports, 5), 5);
    for (int i = 0; i < 5; i++)
        if (strcmp(ports[i].device, "mlx5_0") == 0)
            assert_true(ports[i].active && ports[i].gbit_per_s == 100 && ports[i].number == 1);
    assert_int_equal(infiniband_list(&roots, ports, 1), 1);

    assert_int_equal(look_open(&look, "infiniband", &imitated), 0);
    assert_int_equal(value_of(&look, "mlx5_0/1", "receive_bytes"), 10000000000);
    assert_int_equal(value_of(&look, "mlx5_0/1", "transmit_bytes"), 4000);
    assert_int_equal(value_of(&look, "mlx5_0/1", "transmit_wait_ticks"), 77);
    assert_int_equal(value_of(&look, "mlx5_0/1", "out_of_sequence_count"), 3);
    assert_int_equal(value_of(&look, "mlx4_0/2", "receive_bytes"), 20);
    assert_int_equal(value_of(&look, "rxe0/1@eth7", "receive_bytes"), 12890000);
    assert_int_equal(value_of(&look, "rxe0/1", "sent_packet_count"), 9);
    assert_int_equal(value_of(&look, "efa_0/1", "receive_bytes"), 4000000001);
    assert_int_equal(value_of(&look, "efa_0/1", "transmit_bytes"), 6);
    assert_int_equal(value_of(&look, "mlx5_2/1", "receive_bytes"), 100);
    assert_int_equal(value_of(&look, "mlx5_2/1", "transmit_bytes"), 104);
    assert_int_equal(value_of(&look, "mlx5_2/1", "packet_sequence_error_count"), 2);
    assert_int_equal(value_of(&look, "mlx5_2/1", "congestion_sent_count"), 17);
    for (uint32_t i = 0; i < look.probe.metrics.count; i++)
        assert_true(look.probe.metrics.metrics[i].saturates);
    probe_close(&look.probe);
}

static void rates_of_links(void **unused)
{
    (void)unused;
    assert_true(infiniband_parse_rate(text_of_string("100 Gb/sec (4X EDR)")) == 100);
    assert_true(infiniband_parse_rate(text_of_string("2.5 Gb/sec (1X SDR)")) == 2.5);
    assert_true(infiniband_parse_rate(text_of_string("fast")) == 0);
    assert_true(infiniband_parse_rate(text_of_string("")) == 0);
}

/* ---- GPUs ---- */

static void gpus_by_a_library(void **unused)
{
    struct look look;

    (void)unused;
    assert_int_equal(look_open(&look, "gpu:" MOCK_NVML, &imitated), 0);
    assert_int_equal(look.probe.metrics.count, 2 * 12);
    assert_true(look.probe.slow_interval_ns > 0);
    assert_int_equal(value_of(&look, "0", "utilization_percent"), 87);
    assert_int_equal(value_of(&look, "0", "power_milliwatts"), 312500);
    assert_int_equal(value_of(&look, "0", "pcie_receive_kb_per_s"), 9100000);
    assert_int_equal(value_of(&look, "0", "sm_clock_megahertz"), 1980);
    assert_int_equal(value_of(&look, "0", "memory_clock_megahertz"), 3201);
    assert_int_equal(value_of(&look, "0", "nvlink_transmit_bytes"), 5000 * 1024);
    assert_int_equal(value_of(&look, "0", "nvlink_receive_bytes"), 7000 * 1024);
    assert_true(value_of(&look, "1", "nvlink_receive_bytes") == PROBE_MISSING);
    assert_int_equal(value_of(&look, "1", "utilization_percent"), 12);
    assert_true(value_of(&look, "1", "power_milliwatts") == PROBE_MISSING);   /* not supported */
    assert_true(value_of(&look, "0", "energy_millijoules") == PROBE_MISSING); /* no symbol */
    assert_int_equal(value_of(&look, "1", "memory_used_bytes"), UINT64_C(12) << 30);
    probe_close(&look.probe);
    assert_int_equal(look_open(&look, "gpu:/nowhere.so", &imitated), -ENOENT);
    assert_non_null(strstr(fail_reason(), "driver"));
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
        cmocka_unit_test(network_interfaces),
        cmocka_unit_test(processors),
        cmocka_unit_test(memory_and_pressure),
        cmocka_unit_test(a_process_by_its_io),
        cmocka_unit_test(a_server_by_its_mount),
        cmocka_unit_test(a_disk_by_its_sectors),
        cmocka_unit_test(lustre_sums_its_servers),
        cmocka_unit_test(control_groups),
        cmocka_unit_test(mellanox_adapter),
        cmocka_unit_test(rates_of_links),
        cmocka_unit_test(gpus_by_a_library),
        cmocka_unit_test(samples_come_in_time),
        cmocka_unit_test(a_stop_does_not_wait_for_the_next_sample),
        cmocka_unit_test(asked_for_probes_must_be_there),
        cmocka_unit_test(a_sample_that_was_held_up_is_taken_again),
    };

    return cmocka_run_group_tests(tests, setup, folder_teardown);
}
