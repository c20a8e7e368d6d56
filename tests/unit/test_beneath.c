/* SPDX-License-Identifier: Apache-2.0
 * Devices below a path, and their probes, on folders that imitate the /proc and /sys of machines
 * with layers: overlay, btrfs on several devices, loop, bcache, multipath, NFS. */
#include "tests/unit/machine.h"

#include "base/fail.h"
#include "telemetry/devices.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static char proc_root[512], sys_root[512], mountinfo[4096];
static const struct telemetry_roots roots = {.proc = proc_root, .sys = sys_root};

/* Create a link at /sys/AT to the device. */
static void link_device(const char *at, const char *device)
{
    char name[512], target[512];

    snprintf(name, sizeof name, "%s/sys/%s", test_folder, at);
    *strrchr(name, '/') = '\0';
    assert_int_equal(folder_make_path(name), 0);
    snprintf(name, sizeof name, "%s/sys/%s", test_folder, at);
    snprintf(target, sizeof target, "%s/sys/devices/%s", test_folder, device);
    assert_int_equal(symlink(target, name), 0);
}

/* A folder that is a mount point; "%" in the options is replaced by the test's folder. */
static void make_mount(const char *point, const char *type, const char *source, const char *options)
{
    const size_t used = strlen(mountinfo);
    char text[512] = "";

    for (; *options; options++)
        snprintf(text + strlen(text), sizeof text - strlen(text), *options == '%' ? "%s" : "%.1s",
                 *options == '%' ? test_folder : options);
    assert_int_equal(folder_make_path(folder_path(point)), 0);
    snprintf(mountinfo + used, sizeof mountinfo - used, "4%zu 22 0:45 / %s/%s rw - %s %s %s\n",
             used, test_folder, point, type, source, text);
    folder_put("proc/self/mountinfo", mountinfo);
}

static void lies_on(const char *path, const char *wanted)
{
    struct device_list list = {0};
    char text[256];

    assert_int_equal(devices_of_path(&roots, folder_path(path), &list), 0);
    assert_string_equal(devices_text(&list, text, sizeof text), wanted);
}

static int make_machine(void **state)
{
    if (folder_setup(state))
        return -1;
    snprintf(proc_root, sizeof proc_root, "%s/proc", test_folder);
    snprintf(sys_root, sizeof sys_root, "%s/sys", test_folder);
    folder_make_path(folder_path("sys/dev/block"));
    mountinfo[0] = '\0';
    make_device("pci/sda", "8:0");
    make_device("pci/sda/sda1", "8:1");
    folder_put("sys/devices/pci/sda/sda1/partition", "1\n");
    make_device("pci/sdb", "8:16");
    make_device("pci/sdc", "8:32");
    make_device("pci/nvme0n1", "259:0");
    make_device("virtual/dm-0", "253:0"); /* two paths to one disk */
    link_device("devices/virtual/dm-0/slaves/sda", "pci/sda");
    link_device("devices/virtual/dm-0/slaves/sdb", "pci/sdb");
    return 0;
}

/* ---- layers ---- */

static void btrfs_on_several_devices(void **unused)
{
    (void)unused;
    link_device("fs/btrfs/1b2c-33/devices/sda1", "pci/sda/sda1");
    link_device("fs/btrfs/1b2c-33/devices/sdc", "pci/sdc");
    link_device("fs/btrfs/ffff-44/devices/sdb", "pci/sdb");
    make_mount("pool", "btrfs", "/dev/sdc", "rw,subvol=/");
    folder_put("pool/set/file", "x");
    char text[64];
    struct device_list list = {0};
    assert_int_equal(devices_of_path(&roots, folder_path("pool/set/file"), &list), 0);
    assert_int_equal(list.count, 2); /* in the order of the folder */
    devices_text(&list, text, sizeof text);
    assert_true(strcmp(text, "sda, sdc") == 0 || strcmp(text, "sdc, sda") == 0);
}

static void a_missing_path_is_named(void **unused)
{
    struct device_list list = {0};
    uint64_t number;

    (void)unused;
    assert_int_equal(devices_of_path(&roots, folder_path("missing"), &list), -ENOENT);
    assert_reason("/missing: ");
    assert_false(devices_number(folder_path("missing"), &number));
}

static void overlay_has_layers(void **unused)
{
    (void)unused;
    link_device("fs/btrfs/77-1/devices/nvme0n1", "pci/nvme0n1");
    link_device("fs/btrfs/77-2/devices/dm-0", "virtual/dm-0");
    make_mount("image", "btrfs", "/dev/nvme0n1", "rw");
    make_mount("writes", "btrfs", "/dev/mapper/dm-0", "rw");
    folder_put("image/layer/bin", "x");
    folder_put("writes/upper/file", "x");
    make_mount("merged", "overlay", "overlay",
               "rw,lowerdir=%/image/layer:%/image/none,upperdir=%/writes/upper,workdir=%/writes/w");
    lies_on("merged", "nvme0n1, sda, sdb");
}

/* loop0, 7:0, on a file of a btrfs on sdb. */
static void make_loop_on_sdb(void)
{
    char backing[512];

    link_device("fs/btrfs/88-1/devices/sdb", "pci/sdb");
    make_mount("images", "btrfs", "/dev/sdb", "rw");
    folder_put("images/disk.img", "x");
    make_device("virtual/loop0", "7:0");
    snprintf(backing, sizeof backing, "%s\n", folder_path("images/disk.img"));
    folder_put("sys/devices/virtual/loop0/loop/backing_file", backing);
}

static void a_loop_device_lies_on_its_file(void **unused)
{
    struct device_list list = {0};
    char text[128];

    (void)unused;
    make_loop_on_sdb();
    devices_of_device(&roots, 7, 0, 0, &list);
    assert_string_equal(devices_text(&list, text, sizeof text), "sdb");
    assert_int_equal(list.backing_count, 1);
    assert_string_equal(list.backing[0], folder_path("images/disk.img"));
    /* Direct I/O reads past the pages of the file. */
    folder_put("sys/devices/virtual/loop0/loop/dio", "1\n");
    list = (struct device_list){0};
    devices_of_device(&roots, 7, 0, 0, &list);
    assert_string_equal(devices_text(&list, text, sizeof text), "sdb");
    assert_int_equal(list.backing_count, 0);
    /* The file is deleted or in another mount namespace: the loop device itself is counted. */
    make_device("virtual/loop1", "7:1");
    folder_put("sys/devices/virtual/loop1/loop/backing_file", "/none/disk.img (deleted)\n");
    list.count = 0;
    devices_of_device(&roots, 7, 1, 0, &list);
    assert_string_equal(devices_text(&list, text, sizeof text), "loop1");
}

/* The disk beneath is known from another path: the loop device is no second one. */
static void a_loop_device_on_a_known_disk(void **unused)
{
    struct device_list list = {0};
    char text[128];

    (void)unused;
    make_loop_on_sdb();
    devices_of_device(&roots, 8, 16, 0, &list);
    devices_of_device(&roots, 7, 0, 0, &list);
    assert_string_equal(devices_text(&list, text, sizeof text), "sdb");
}

static int look_at(struct look *look, const char *name, const char *path);

/* Memory is no device: its counters would say that bytes left storage. */
static void disks_in_memory(void **unused)
{
    static const char *const names[] = {"zram0", "ram1", "nullb0"};
    char path[64], number[16], text[128], backing[512];

    (void)unused;
    for (int i = 0; i < 3; i++) {
        struct device_list list = {0};
        snprintf(path, sizeof path, "virtual/%s", names[i]);
        snprintf(number, sizeof number, "25%d:0", i);
        make_device(path, number);
        devices_of_device(&roots, 250 + (unsigned)i, 0, 0, &list);
        assert_int_equal(list.count, 0);
        snprintf(text, sizeof text, "%s, a disk in memory", names[i]);
        assert_string_equal(list.memory, text);
    }
    struct device_list list = {0};
    make_device("virtual/rammer", "249:0");
    devices_of_device(&roots, 249, 0, 0, &list);
    assert_string_equal(devices_text(&list, text, sizeof text), "rammer");
    assert_string_equal(list.memory, "");
    /* A loop device on tmpfs. */
    make_mount("shm", "tmpfs", "tmpfs", "rw");
    folder_put("shm/disk.img", "x");
    make_device("virtual/loop2", "7:2");
    snprintf(backing, sizeof backing, "%s\n", folder_path("shm/disk.img"));
    folder_put("sys/devices/virtual/loop2/loop/backing_file", backing);
    list = (struct device_list){0};
    devices_of_device(&roots, 7, 2, 0, &list);
    assert_int_equal(list.count, 0);
    assert_non_null(strstr(list.memory, "tmpfs at "));
    devices_of_device(&roots, 8, 16, 0, &list); /* beside a disk */
    assert_string_equal(devices_text(&list, text, sizeof text), "sdb");
    /* Of an overlay that has a layer on a disk, files may be there. */
    link_device("fs/btrfs/77-1/devices/nvme0n1", "pci/nvme0n1");
    make_mount("image", "btrfs", "/dev/nvme0n1", "rw");
    make_mount("merged", "overlay", "overlay", "rw,lowerdir=%/image,upperdir=%/shm,workdir=%/shm");
    struct look look;
    assert_int_equal(look_at(&look, "disk", folder_path("shm")), 0);
    assert_int_equal(value_of(&look, "", "memory_count"), 1);
    probe_close(&look.probe);
    list = (struct device_list){0};
    assert_int_equal(devices_of_path(&roots, folder_path("merged"), &list), 0);
    assert_string_equal(devices_text(&list, text, sizeof text), "nvme0n1");
    assert_string_equal(list.memory, "");
}

static void bcache_has_a_backing_and_a_caching_device(void **unused)
{
    struct device_list list = {0};
    char text[128];

    (void)unused;
    make_device("virtual/bcache0", "252:0");
    link_device("devices/virtual/bcache0/slaves/sda1", "pci/sda/sda1");
    folder_put("sys/devices/pci/nvme0n1/bcache/state", "x");
    link_device("devices/virtual/bcache0/bcache/cache/cache0", "pci/nvme0n1/bcache");
    devices_of_device(&roots, 252, 0, 0, &list);
    assert_string_equal(devices_text(&list, text, sizeof text), "sda, nvme0n1");
}

static void multipath_counts_its_paths(void **unused)
{
    struct device_list list = {0};
    char text[128];

    (void)unused;
    devices_of_device(&roots, 253, 0, 0, &list);
    devices_text(&list, text, sizeof text);
    assert_true(strcmp(text, "sda, sdb") == 0 || strcmp(text, "sdb, sda") == 0);
}

/* ---- probes ---- */

static int look_at(struct look *look, const char *name, const char *path)
{
    return look_open(look, name,
                     &(struct probe_site){.roots = &roots, .paths = &path, .path_count = 1});
}

/* One of two disks is unplugged: the other still counts, and no zero replaces the missing one. */
static void disks_that_go(void **unused)
{
    struct look look;

    (void)unused;
    link_device("fs/btrfs/99-1/devices/sdb", "pci/sdb");
    link_device("fs/btrfs/99-1/devices/sdc", "pci/sdc");
    make_mount("data", "btrfs", "/dev/sdc", "rw");
    folder_put("sys/devices/pci/sdb/stat", "10 0 2000 30 4 0 500 6 1 8 9\n");
    folder_put("sys/devices/pci/sdc/stat", "11 0 3 3 4 0 5 6 0 8 9 1 1 1 1 1 1\n");
    assert_int_equal(look_at(&look, "disk", folder_path("data")), 0);
    assert_int_equal(value_of(&look, "sdb", "read_bytes"), 2000 * 512);
    assert_int_equal(value_of(&look, "sdb", "read_ms"), 30);
    assert_int_equal(value_of(&look, "sdb", "in_flight_count"), 1);
    assert_int_equal(value_of(&look, "sdc", "write_bytes"), 5 * 512);
    folder_put("sys/devices/pci/sdb/stat", "");
    folder_put("sys/devices/pci/sdc/stat", "12 0 4 3 4 0 5 6 0 8 9\n");
    for (int i = 0; i < 256; i++)
        look.values[i] = PROBE_MISSING;
    probe_sample(&look.probe, look.values);
    assert_true(value_of(&look, "sdb", "read_bytes") == PROBE_MISSING);
    assert_int_equal(value_of(&look, "sdc", "read_bytes"), 4 * 512);
    probe_close(&look.probe);
}

/* A disk that keeps no statistics has read an unknown number of bytes, not 0; loop devices are
 * told. */
static void disks_without_statistics(void **unused)
{
    struct look look;

    (void)unused;
    make_device("virtual/loop0", "7:0");
    link_device("fs/btrfs/99-1/devices/sdb", "pci/sdb");
    link_device("fs/btrfs/99-1/devices/loop0", "virtual/loop0");
    make_mount("data", "btrfs", "/dev/sdb", "rw");
    folder_put("sys/devices/virtual/loop0/loop/backing_file", "/none/disk.img (deleted)\n");
    folder_put("sys/devices/virtual/loop0/stat", "10 0 2000 30 4 0 500 6 1 8 9\n");
    folder_put("sys/devices/pci/sdb/stat", "0 0 0 0 0 0 0 0 0 0 0\n");
    folder_put("sys/devices/pci/sdb/queue/iostats", "0\n");
    assert_int_equal(look_at(&look, "disk", folder_path("data")), 0);
    assert_true(value_of(&look, "sdb", "read_bytes") == PROBE_MISSING);
    assert_int_equal(value_of(&look, "loop0", "read_bytes"), 2000 * 512);
    assert_int_equal(value_of(&look, "", "loop_file_count"), 1);
    probe_close(&look.probe);
}

/* NFS over RDMA has additional words after the common ones. */
static const char mountstats[] =
    "device server:/export mounted on %s/nfs with fstype nfs4 statvers=1.1\n"
    "\topts:\trw,vers=4.1,rsize=1048576,proto=rdma,nconnect=3\n"
    "\tbytes:\t1 2 3 4 5000000000 6 7 8\n"
    "\txprt:\trdma 0 0 2 0 11 100 99 1 500 0 7 8 9 1 2 3 4 5 6 7 8 9\n"
    "\txprt:\trdma 0 0 2 0 11 100 100 0 500 0 7 8 9 1 2 3 4 5 6 7 8 9\n"
    "\txprt:\ttcp 800 1 1 0 0 10 10 0 500 0 2 3 4\n"
    "\tper-op statistics\n"
    "\t        READ: 1000 1007 2 100 200 10 2000 2100 3\n";

static void nfs_over_rdma(void **unused)
{
    struct look look;
    char text[2048], point[512];

    (void)unused;
    make_mount("nfs", "nfs4", "server:/export", "rw,vers=4.1,proto=rdma");
    make_mount("local", "ext4", "/dev/sda1", "rw");
    snprintf(text, sizeof text, mountstats, test_folder);
    folder_put("proc/self/mountstats", text);
    assert_int_equal(look_at(&look, "nfs", folder_path("local")), -ENOENT);
    probe_close(&look.probe);
    snprintf(point, sizeof point, "%s/nfs", test_folder);
    assert_int_equal(look_at(&look, "nfs", point), 0);
    assert_int_equal(value_of(&look, point, "server_read_bytes"), 5000000000);
    assert_int_equal(value_of(&look, point, "read_count"), 1000);
    assert_int_equal(value_of(&look, point, "read_retransmission_count"), 7);
    assert_int_equal(value_of(&look, point, "read_timeout_count"), 2);
    assert_int_equal(value_of(&look, point, "read_queue_ms"), 10);
    assert_int_equal(value_of(&look, point, "read_rtt_ms"), 2000);
    assert_int_equal(value_of(&look, point, "read_execute_ms"), 2100);
    assert_int_equal(value_of(&look, point, "connection_count"), 3);
    assert_int_equal(value_of(&look, point, "send_count"), 210);
    assert_int_equal(value_of(&look, point, "receive_count"), 209);
    folder_put("proc/self/mountstats",
               "device x mounted on /elsewhere with fstype nfs4 statvers=1.1\n");
    for (int i = 0; i < 256; i++)
        look.values[i] = PROBE_MISSING;
    probe_sample(&look.probe, look.values); /* it was unmounted */
    assert_true(value_of(&look, point, "server_read_bytes") == PROBE_MISSING);
    probe_close(&look.probe);
}

/* Reads by this process, including its threads. */
static void a_process(void **unused)
{
    struct look look;
    const char *path = test_folder;

    (void)unused;
    folder_put("proc/self/io", "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 4096\n"
                               "write_bytes: 6\ncancelled_write_bytes: 7\n");
    assert_int_equal(look_at(&look, "process", path), 0);
    assert_int_equal(value_of(&look, "", "read_bytes"), 4096);
    probe_close(&look.probe);
}

#define ON_A_MACHINE(test) cmocka_unit_test_setup_teardown(test, make_machine, folder_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_A_MACHINE(btrfs_on_several_devices),
        ON_A_MACHINE(overlay_has_layers),
        ON_A_MACHINE(a_missing_path_is_named),
        ON_A_MACHINE(a_loop_device_lies_on_its_file),
        ON_A_MACHINE(a_loop_device_on_a_known_disk),
        ON_A_MACHINE(disks_in_memory),
        ON_A_MACHINE(bcache_has_a_backing_and_a_caching_device),
        ON_A_MACHINE(multipath_counts_its_paths),
        ON_A_MACHINE(disks_that_go),
        ON_A_MACHINE(disks_without_statistics),
        ON_A_MACHINE(nfs_over_rdma),
        ON_A_MACHINE(a_process),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
