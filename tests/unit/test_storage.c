/* SPDX-License-Identifier: Apache-2.0
 * The witnesses against reads of known size, and the kernel's files as they look elsewhere. */
#include "tests/unit/machine.h"
#include "tests/unit/mounts.h"

#include "cachectl/evict.h"
#include "telemetry/counters.h"
#include "telemetry/storage.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

enum { FILE_BYTES = 8 << 20 };

static uint64_t read_through(const char *path)
{
    static char buffer[1 << 20];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got;
    uint64_t bytes = 0;

    assert_true(fd >= 0);
    while ((got = read(fd, buffer, sizeof buffer)) > 0)
        bytes += (uint64_t)got;
    close(fd);
    return bytes;
}

/* Measure the device before and after one read of the file. Returns false if others used the device
 * meanwhile and the count is not of this read alone. */
static bool count_read(struct storage *storage, const char *path, uint64_t least, uint64_t most)
{
    struct storage_bytes before, after;
    struct storage_share share;

    storage_read(storage, &before);
    assert_int_equal(read_through(path), FILE_BYTES);
    storage_read(storage, &after);
    storage_between(storage, &before, &after, &share);
    if (!share.known || strstr(share.method, "mountstats")) {
        print_message("not exact on this file system: %s%s\n", share.method, share.reason);
        return true;
    }
    assert_true(share.bytes >= least);
    return share.bytes <= most;
}

static void cold_read_is_counted_and_warm_is_not(void **unused)
{
    static char block[FILE_BYTES];
    const char *path = folder_path("file");
    struct evict_figures figures;
    bool cold = false, warm = false;

    (void)unused;
    memset(block, 7, sizeof block);
    folder_write("file", block, sizeof block);
    struct storage *storage = storage_open(&telemetry_roots_usual, &path, 1);
    assert_non_null(storage);
    for (int i = 0; i < 20 && !(cold && warm); i++) {
        assert_int_equal(evict_files(&path, 1, true, 0, NULL, &figures), 0);
        cold |= count_read(storage, path, FILE_BYTES, FILE_BYTES + FILE_BYTES / 100);
        warm |= count_read(storage, path, 0, FILE_BYTES / 100);
    }
    assert_true(cold && warm);
    storage_close(storage);
}

/* The bytes since a restart are unknown; reporting that none left storage would be false. */
static void restarted_counters_are_unknown(void **unused)
{
    const struct storage_bytes before = {true, true, true, 1000, 1000, 1000, 0, 0};
    const char *path = folder_path("file");
    struct storage_share share;

    (void)unused;
    folder_write("file", "x", 1);
    struct storage *storage = storage_open(&telemetry_roots_usual, &path, 1);
    struct storage_bytes after = before;
    after.process_read_bytes = after.server_read_bytes = after.device_read_bytes = 10;
    storage_between(storage, &before, &after, &share);
    assert_false(share.known || share.devices_hold_all);
    assert_true(*share.reason);
    after = before;
    after.device_read_bytes = 10;
    storage_between(storage, &before, &after, &share);
    assert_false(share.parts.device_known);
    assert_true(share.parts.process_known && share.parts.process_read_bytes == 0);
    storage_close(storage);
}

static void memory_has_no_storage(void **unused)
{
    const char *path = "/dev/shm";
    struct storage_bytes bytes;
    struct storage_share share;
    struct mount mount;

    (void)unused;
    if (mount_of_path(&telemetry_roots_usual, path, &mount) || strcmp(mount.type, "tmpfs") != 0)
        skip();
    struct storage *storage = storage_open(&telemetry_roots_usual, &path, 1);
    storage_read(storage, &bytes);
    storage_between(storage, &bytes, &bytes, &share);
    assert_true(!share.known && share.in_memory);
    assert_non_null(strstr(share.reason, "memory"));
    storage_close(storage);
}

/* Files of one folder are on one file system, unless they are links. */
static void links_of_a_folder_are_followed(void **unused)
{
    const char *const names[] = {"set/1", "set/2", "set/3"};
    const char *paths[3];
    char store[3][512];
    struct storage_bytes bytes;
    struct storage_share share;
    struct mount mount;

    (void)unused;
    if (mount_of_path(&telemetry_roots_usual, "/dev/shm", &mount) ||
        strcmp(mount.type, "tmpfs") != 0 ||
        mount_of_path(&telemetry_roots_usual, test_folder, &mount) ||
        strcmp(mount.type, "tmpfs") == 0)
        skip();
    folder_put("set/1", "x");
    folder_put("set/2", "x");
    assert_int_equal(symlink("/dev/shm", folder_path("set/3")), 0);
    for (int i = 0; i < 3; i++) {
        snprintf(store[i], sizeof store[i], "%s", folder_path(names[i]));
        paths[i] = store[i];
    }
    for (size_t count = 2; count <= 3; count++) {
        struct storage *storage = storage_open(&telemetry_roots_usual, paths, count);
        storage_read(storage, &bytes);
        storage_between(storage, &bytes, &bytes, &share);
        assert_int_equal(share.in_memory, count == 3);
        storage_close(storage);
    }
}

/* A file may be a mount of its own: containers get single files so. */
static bool a_mounted_file_is_seen(const char *const *paths)
{
    char memory[] = "/dev/shm/iobench-test-XXXXXX";
    struct storage_bytes bytes;
    struct storage_share share;
    int fd = mkstemp(memory);

    if (fd < 0 || unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount(memory, paths[1], NULL, MS_BIND, NULL)) {
        unlink(memory);
        _exit(77);
    }
    unlink(memory);
    struct storage *storage = storage_open(&telemetry_roots_usual, paths, 3);
    storage_read(storage, &bytes);
    storage_between(storage, &bytes, &bytes, &share);
    storage_close(storage);
    return share.in_memory;
}

static void a_file_that_is_a_mount(void **unused)
{
    static const char *const names[] = {"alone/1", "alone/2", "alone/3"};
    const char *paths[3];
    char store[3][512];
    struct mount mount;
    int status;

    (void)unused;
    if (mount_of_path(&telemetry_roots_usual, "/dev/shm", &mount) || !mount_is_memory(&mount) ||
        mount_of_path(&telemetry_roots_usual, test_folder, &mount) || mount_is_memory(&mount))
        skip();
    for (int i = 0; i < 3; i++) {
        folder_put(names[i], "x");
        snprintf(store[i], sizeof store[i], "%s", folder_path(names[i]));
        paths[i] = store[i];
    }
    const pid_t pid = fork();
    if (pid == 0)
        _exit(a_mounted_file_is_seen(paths) ? 0 : 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip(); /* nothing can be mounted here */
    assert_int_equal(status, 0);
}

/* The process is charged for what a loop device reads from the cached pages of its file. */
static void a_loop_device_is_judged_by_the_disks_beneath(void **unused)
{
    const struct storage_bytes before = {.process_known = true, .device_known = true};
    const struct storage_bytes after = {.process_known = true,
                                        .process_read_bytes = 4096,
                                        .device_known = true,
                                        .device_read_bytes = 512};
    const char *path = folder_path("file");
    char proc[512], sys[512], text[512], device[64];
    const struct telemetry_roots roots = {.proc = proc, .sys = sys};
    struct storage_share share;
    struct stat status;

    (void)unused;
    folder_write("file", "x", 1);
    assert_int_equal(stat(path, &status), 0);
    if (major(status.st_dev) == 0)
        skip(); /* no disk beneath this folder */
    snprintf(proc, sizeof proc, "%s/proc", test_folder);
    snprintf(sys, sizeof sys, "%s/sys", test_folder);
    assert_int_equal(folder_make_path(folder_path("sys/dev/block")), 0);
    snprintf(device, sizeof device, "sys/dev/block/%u:%u", major(status.st_dev),
             minor(status.st_dev));
    make_device("virtual/loop9", strrchr(device, '/') + 1);
    /* Its file is below /proc, which a btrfs on sdloop stands for: any other has this folder's
     * disk. */
    folder_put("sys/devices/virtual/loop9/loop/backing_file", "/proc/version\n");
    make_device("pci/sdloop", "65:99");
    assert_int_equal(folder_make_path(folder_path("sys/fs/btrfs/1-2/devices")), 0);
    assert_int_equal(
        symlink("../../../../devices/pci/sdloop", folder_path("sys/fs/btrfs/1-2/devices/sdloop")),
        0);
    snprintf(text, sizeof text,
             "9 1 0:45 / %s rw - ext4 /dev/loop0 rw\n10 1 0:5 / /proc rw - btrfs /dev/sdloop rw\n",
             test_folder);
    folder_put("proc/self/mountinfo", text);
    struct storage *storage = storage_open(&roots, &path, 1);
    assert_non_null(storage);
    assert_string_equal(devices_text(storage_devices(storage), text, sizeof text), "sdloop");
    storage_between(storage, &before, &after, &share);
    assert_true(share.known && share.of_node);
    assert_int_equal(share.bytes, 512);
    assert_non_null(strstr(share.method, "loop"));
    storage_close(storage);
    assert_int_equal(unlink(folder_path(device)), 0);
}

/* A chroot lists no mount of its root; the bytes of a disk are counted nevertheless. */
static void a_disk_without_a_mount_is_counted(void **unused)
{
    const struct storage_bytes before = {.process_known = true};
    const struct storage_bytes after = {.process_known = true, .process_read_bytes = 4096};
    const char *path = folder_path("file");
    char proc[512], sys[512], number[32];
    const struct telemetry_roots roots = {.proc = proc, .sys = sys};
    struct storage_share share;
    struct storage_bytes counted, later;
    struct stat status;

    (void)unused;
    snprintf(proc, sizeof proc, "%s/chroot/proc", test_folder);
    snprintf(sys, sizeof sys, "%s/sys", test_folder);
    folder_write("file", "x", 1);
    folder_put("chroot/proc/self/mountinfo", "23 1 0:5 / /proc rw - proc proc rw\n");
    struct storage *storage = storage_open(&roots, &path, 1);
    assert_non_null(storage);
    storage_between(storage, &before, &after, &share);
    assert_false(share.known);
    assert_non_null(strstr(share.reason, "no mount holds the files"));
    storage_close(storage);

    assert_int_equal(stat(path, &status), 0);
    if (major(status.st_dev) == 0)
        skip(); /* no disk beneath this folder */
    assert_int_equal(folder_make_path(folder_path("sys/dev/block")), 0);
    snprintf(number, sizeof number, "%u:%u", major(status.st_dev), minor(status.st_dev));
    make_device("virtual/chroot", number);
    /* 8 sectors read and 6 written, of 512 bytes */
    folder_put("sys/devices/virtual/chroot/stat", "1 0 8 0 2 0 6 0 0 0 0\n");
    folder_put("chroot/proc/self/io", "read_bytes: 100\nwrite_bytes: 7000\n");
    storage = storage_open(&roots, &path, 1);
    assert_non_null(storage);
    storage_between(storage, &before, &after, &share);
    assert_true(share.known && share.bytes == 4096);
    storage_read(storage, &counted);
    assert_true(counted.process_known && counted.device_known);
    assert_int_equal(counted.process_read_bytes, 100);
    assert_int_equal(counted.process_write_bytes, 7000);
    assert_int_equal(counted.device_read_bytes, 4096);
    assert_int_equal(counted.device_write_bytes, 3072);
    /* 512 bytes of reads and 1,024 of writes later */
    folder_put("sys/devices/virtual/chroot/stat", "2 0 9 0 4 0 8 0 0 0 0\n");
    storage_read(storage, &later);
    const struct storage_bytes grown = storage_growth(&counted, &later);
    assert_true(grown.device_known && grown.device_read_bytes == 512);
    assert_int_equal(grown.device_write_bytes, 1024);
    assert_int_equal(grown.process_write_bytes, 0);
    assert_false(storage_growth(&later, &counted).device_known); /* restarted */
    assert_null(storage_mount(storage));
    storage_close(storage);
}

/* ---- text ---- */

static void words_and_numbers(void **unused)
{
    struct text text = text_of_string("18446744073709551615 18446744073709551616 x1 1x  7"), word;
    uint64_t value = 5;

    (void)unused;
    assert_true(text_u64(&text, &value) && value == UINT64_MAX);
    assert_false(text_u64(&text, &value)); /* too large: nothing consumed */
    assert_true(text_word(&text, &word) && text_is(word, "18446744073709551616"));
    assert_false(text_u64(&text, &value));
    assert_true(text_word(&text, &word) && text_is(word, "x1"));
    assert_false(text_u64(&text, &value));
    assert_true(text_word(&text, &word) && text_starts(word, "1"));
    assert_true(text_u64(&text, &value) && value == 7);
    assert_false(text_u64(&text, &value));
    assert_false(text_word(&text, &word));
    assert_false(text_line(&text, &word));
}

/* ---- mountinfo ---- */

static const char mountinfo[] =
    "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro\n"
    "30 22 0:26 / /sys/fs/cgroup ro,nosuid - tmpfs tmpfs ro,mode=755\n"
    "40 22 0:45 / /mnt/nfs rw,relatime shared:20 - nfs4 10.8.1.2:/export rw,vers=4.2\n"
    "broken line\n"
    "41 22 253:0 / /mnt/with\\040blank rw shared:2 master:1 - xfs /dev/mapper/vg-lv rw\n"
    "42 22 8:17 / /mnt/over rw - ext4 /dev/sdb1 rw\n"
    "43 42 8:33 /sub /mnt/over rw - ext4 /dev/sdc1 rw\n"
    "44 22 8:49 / /srv/hidden/set rw - ext4 /dev/sdd1 rw\n"
    "45 22 8:65 / /srv/hidden rw - ext4 /dev/sde1 rw\n";

static void longest_and_latest_mount(void **unused)
{
    struct text text = text_of_string(mountinfo);
    struct mount mount;

    (void)unused;
    assert_true(mount_find(text, "/mnt/nfs/a/b", 0, &mount));
    assert_string_equal(mount.type, "nfs4");
    assert_string_equal(mount.source, "10.8.1.2:/export");
    assert_true(mount_find(text, "/mnt/nfs2", 0, &mount));
    assert_string_equal(mount.point, "/");
    assert_true(mount_find(text, "/mnt/with blank/x", 0, &mount));
    assert_true(mount.device_major == 253 && mount.device_minor == 0);
    assert_string_equal(mount.type, "xfs");
    assert_true(mount_find(text, "/mnt/over", 0, &mount));
    assert_int_equal(mount.device_minor, 33);
    assert_false(mount_find(text_of_string(""), "/", 0, &mount));
}

/* A mount below which a later one was mounted has no files any more. */
static void a_hidden_mount_is_no_mount_of_a_path(void **unused)
{
    struct text text = text_of_string(mountinfo);
    struct mount mount;

    (void)unused;
    assert_true(mount_find(text, "/srv/hidden/set/x", 45, &mount));
    assert_int_equal(mount.device_minor, 65);
    assert_true(mount_find(text, "/mnt/over/x", 99, &mount)); /* not listed */
    assert_int_equal(mount.device_minor, 33);
}

/* The same by the kernel's word. */
static void the_kernel_names_the_mount_of_a_path(void **unused)
{
    struct mount found;
    char outer[512];

    (void)unused;
    snprintf(outer, sizeof outer, "%s", folder_path("mounts"));
    assert_int_equal(folder_make_path(folder_path("mounts/set")), 0);
    if (!own_mounts() || mount("inner", folder_path("mounts/set"), "tmpfs", 0, NULL) ||
        mount("outer", outer, "tmpfs", 0, NULL))
        skip();
    assert_int_equal(folder_make_path(folder_path("mounts/set")), 0);
    assert_int_equal(mount_of_path(&telemetry_roots_usual, folder_path("mounts/set"), &found), 0);
    assert_string_equal(found.source, "outer");
    assert_int_equal(umount(outer), 0);
    assert_int_equal(umount(folder_path("mounts/set")), 0);
}

/* ---- devices ---- */

static void make_slave(const char *device, const char *slave)
{
    char name[512], link[512];

    snprintf(name, sizeof name, "%s/sys/devices/%s/slaves", test_folder, device);
    assert_int_equal(folder_make_path(name), 0);
    snprintf(name, sizeof name, "%s/sys/devices/%s/slaves/%s", test_folder, device,
             strrchr(slave, '/') + 1);
    snprintf(link, sizeof link, "%s/sys/devices/%s", test_folder, slave);
    assert_int_equal(symlink(link, name), 0);
}

static void leaves_are_found(void **unused)
{
    char sys[512], text[128];
    const struct telemetry_roots roots = {.proc = "/proc", .sys = sys};
    struct device_list list = {0};

    (void)unused;
    snprintf(sys, sizeof sys, "%s/sys", test_folder);
    assert_int_equal(folder_make_path(folder_path("sys/dev/block")), 0);
    make_device("pci/sda", "8:0");
    make_device("pci/sda/sda1", "8:1");
    folder_write("sys/devices/pci/sda/sda1/partition", "1\n", 2);
    make_device("pci/sdb", "8:16");
    make_device("virtual/md0", "9:0");
    make_device("virtual/dm-0", "253:0");
    make_slave("virtual/md0", "pci/sda/sda1");
    make_slave("virtual/md0", "pci/sdb");
    make_slave("virtual/dm-0", "virtual/md0");
    make_device("virtual/dm-1", "253:1"); /* a cycle of devices must end */
    make_slave("virtual/dm-1", "virtual/dm-1");

    devices_of_device(&roots, 8, 1, 0, &list);
    assert_string_equal(devices_text(&list, text, sizeof text), "sda");
    list.count = 0;
    devices_of_device(&roots, 253, 0, 0, &list);
    assert_int_equal(list.count, 2);
    devices_of_device(&roots, 8, 16, 0, &list);
    assert_int_equal(list.count, 2); /* each once */
    list.count = 0;
    devices_of_device(&roots, 253, 1, 0, &list);
    assert_int_equal(list.count, 0);
}

static const char *elsewhere_beneath(unsigned device_major, unsigned device_minor)
{
    static struct device_list list;
    char sys[512];
    const struct telemetry_roots roots = {.proc = "/proc", .sys = sys};

    snprintf(sys, sizeof sys, "%s/sys", test_folder);
    list = (struct device_list){0};
    devices_of_device(&roots, device_major, device_minor, 0, &list);
    assert_int_equal(list.count, 1);
    return list.elsewhere;
}

static void make_attribute(const char *path, const char *text)
{
    assert_int_equal(folder_make_parent(folder_path(path)), 0);
    folder_write(path, text, strlen(text));
}

/* A disk served by another machine may be cached there; it is found through the device above it. */
static void disks_on_the_network_are_told_apart(void **unused)
{
    (void)unused;
    make_device("pci/sdc", "8:32");
    assert_string_equal(elsewhere_beneath(8, 32), "");
    make_device("platform/host3/session1/target3/sdd", "8:48");
    assert_string_equal(elsewhere_beneath(8, 48), "sdd, a network disk");
    make_device("virtual/nbd0", "43:0");
    make_device("virtual/dm-2", "253:2");
    make_slave("virtual/dm-2", "virtual/nbd0");
    assert_string_equal(elsewhere_beneath(253, 2), "nbd0, a network disk");
    make_device("virtual/rbd1", "252:16");
    assert_string_equal(elsewhere_beneath(252, 16), "rbd1, a network disk");
    make_device("pci/nvme0n1", "259:0");
    make_attribute("sys/devices/pci/nvme0n1/device/transport", "pcie\n");
    assert_string_equal(elsewhere_beneath(259, 0), "");
    make_device("fabrics/nvme1n1", "259:1");
    make_attribute("sys/devices/fabrics/nvme1n1/device/transport", "tcp\n");
    assert_string_equal(elsewhere_beneath(259, 1), "nvme1n1, a network disk");
    /* An NVMe subsystem, reached by each of its paths. */
    make_device("subsystem/nvme2n1", "259:2");
    make_attribute("sys/devices/subsystem/nvme2n1/device/nvme2/transport", "pcie\n");
    assert_string_equal(elsewhere_beneath(259, 2), "");
    make_attribute("sys/devices/subsystem/nvme2n1/device/nvme3/transport", "rdma\n");
    assert_string_equal(elsewhere_beneath(259, 2), "nvme2n1, a network disk");
}

/* A file system without a local disk beneath it that is not in memory may be cached elsewhere. */
static void file_systems_without_a_disk_are_told_apart(void **unused)
{
    static const struct {
        const char *type, *wanted;
    } types[] = {{"nfs4", "nfs4 at /"},      {"cifs", "cifs at /"},
                 {"lustre", "lustre at /"},  {"fuse.sshfs", "fuse.sshfs at /"},
                 {"btrfs", "btrfs at /"},    {"tmpfs", ""},
                 {"made-up", "made-up at /"}};
    char proc[512], sys[512], text[128];
    const struct telemetry_roots roots = {.proc = proc, .sys = sys};

    (void)unused;
    snprintf(proc, sizeof proc, "%s/proc", test_folder);
    snprintf(sys, sizeof sys, "%s/nothing", test_folder); /* no disk is visible */
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        struct device_list list = {0};
        snprintf(text, sizeof text, "22 1 0:99 / / rw - %s somewhere rw\n", types[i].type);
        make_attribute("proc/self/mountinfo", text);
        assert_int_equal(devices_of_path(&roots, test_folder, &list), 0);
        assert_string_equal(list.elsewhere, types[i].wanted);
    }
    struct device_list list = {0};
    make_attribute("proc/self/mountinfo",
                   "22 1 0:99 / / rw - overlay overlay rw,lowerdir=/no/such\n");
    assert_int_equal(devices_of_path(&roots, test_folder, &list), 0);
    assert_string_equal(list.elsewhere, "/no/such, not visible from here");

    /* A loop device is as remote as its file. */
    char backing[512];
    snprintf(sys, sizeof sys, "%s/sys", test_folder);
    make_attribute("proc/self/mountinfo", "22 1 0:99 / / rw - nfs4 nas:/ rw\n");
    folder_write("image", "x", 1);
    snprintf(backing, sizeof backing, "%s/image\n", test_folder);
    make_device("virtual/loop7", "7:7");
    make_attribute("sys/devices/virtual/loop7/loop/backing_file", backing);
    list = (struct device_list){0};
    devices_of_device(&roots, 7, 7, 0, &list);
    assert_string_equal(list.elsewhere, "nfs4 at /");
    assert_int_equal(list.backing_count, 1);
}

/* ---- counters ---- */

static void disk_stat_of_old_and_new_kernels(void **unused)
{
    struct disk_counters counters;

    (void)unused;
    assert_true(disk_parse_stat(text_of_string("  100 2 2048 5 6 7 8 9 1 11 12\n"),
                                &counters)); /* 4.17 and older */
    assert_true(counters.read_sectors == 2048 && counters.queue_ms == 12);
    assert_true(
        disk_parse_stat(text_of_string("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n"), &counters));
    assert_true(counters.in_flight == 9 && counters.writes == 5);
    assert_false(disk_parse_stat(text_of_string("1 2 3 4"), &counters));
    assert_false(disk_parse_stat(text_of_string(""), &counters));
}

static void process_io(void **unused)
{
    struct process_counters counters;
    const char text[] = "rchar: 323934931\nwchar: 323929600\nsyscr: 632687\nsyscw: 632675\n"
                        "read_bytes: 4096\nwrite_bytes: 323932160\ncancelled_write_bytes: 0\n";

    (void)unused;
    assert_true(process_parse_io(text_of_string(text), &counters));
    assert_true(counters.read_bytes == 4096 && counters.read_calls_bytes == 323934931);
    assert_true(counters.read_calls == 632687 && counters.write_bytes == 323932160);
    assert_false(process_parse_io(text_of_string("rchar: 3\n"), &counters));
}

static const char mountstats[] =
    "device /dev/vda mounted on / with fstype ext4\n"
    "device 10.8.1.2:/export mounted on /mnt/nfs with fstype nfs4 statvers=1.1\n"
    "\topts:\trw,vers=4.2,rsize=262144,nconnect=2\n"
    "\tage:\t12\n"
    "\tcaps:\tcaps=0x3ffbffdf,wtmult=512,dtsize=262144,bsize=0,namlen=255\n"
    "\tevents:\t0 64 0 0 0 3 70 0 0 0\n"
    "\tbytes:\t67108864 11 1048576 13 68157440 15 16384 17\n"
    "\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)\n"
    "\txprt:\ttcp 742 0 1 0 5 300 299 1 900 0 32 12 300\n"
    "\txprt:\ttcp 743 0 1 0 5 200 200 0 900 0 32 12 300\n"
    "\tper-op statistics\n"
    "\t        NULL: 1 1 0 44 24 0 0 0 0\n"
    "\t        READ: 256 257 1 57344 67135488 10 512 530 2\n"
    "\t   READ_PLUS: 4 4 0 1000 2000 1 2 3 0\n"
    "\t       WRITE: 0 0 0 0 0 0 0 0 0\n"
    "device other:/x mounted on /mnt/old\\040one with fstype nfs statvers=1.0\n"
    "\tbytes:\t1 2 3 4 5 6 7 8\n"
    "\txprt:\tudp 900 1 7 6 0 7 0\n"
    "\t        READ: 1 1 0 100 200 3 4 5\n";

static void nfs_mountstats(void **unused)
{
    struct text text = text_of_string(mountstats);
    struct nfs_counters counters;

    (void)unused;
    assert_true(nfs_parse(text, "/mnt/nfs", &counters));
    assert_int_equal(counters.normal_read_bytes, 67108864);
    assert_int_equal(counters.direct_read_bytes, 1048576);
    assert_int_equal(counters.server_read_bytes, 68157440);
    assert_int_equal(counters.read_pages, 16384);
    assert_int_equal(counters.connections, 2);
    assert_true(counters.sends == 500 && counters.receives == 499 && counters.bad_ids == 1);
    assert_int_equal(counters.read.count, 260);
    assert_int_equal(counters.read.transmissions, 261);
    assert_int_equal(counters.read.retransmissions, 1);
    assert_int_equal(counters.read.rtt_ms, 514);
    assert_int_equal(counters.read.errors, 2);
    assert_true(nfs_parse(text, "/mnt/old one", &counters));
    assert_true(counters.server_read_bytes == 5 && counters.read.execute_ms == 5);
    assert_true(counters.sends == 7 && counters.connections == 1);
    assert_false(nfs_parse(text, "/", &counters));
    assert_false(nfs_parse(text, "/mnt", &counters));
}

static int setup(void **state)
{
    setenv("TMPDIR", "/var/tmp", 0);
    return folder_setup(state);
}

/* What the server of each mount sent; unknown if one of them is not listed. */
static void servers_are_added_up(void **unused)
{
    const char *const paths[] = {"/", "/proc"};
    char proc[512], sys[512];
    const struct telemetry_roots roots = {.proc = proc, .sys = sys};
    struct storage_bytes before = {0}, after;
    struct storage_share share;

    (void)unused;
    snprintf(proc, sizeof proc, "%s/proc", test_folder);
    snprintf(sys, sizeof sys, "%s/nothing", test_folder);
    make_attribute("proc/self/mountinfo", "22 1 0:99 / / rw - nfs nas:/x rw\n"
                                          "23 22 0:98 / /proc rw - nfs4 nas:/y rw\n");
    make_attribute("proc/self/mountstats",
                   "device nas:/x mounted on / with fstype nfs statvers=1.1\n"
                   "\tbytes:\t1 2 3 4 4096 6 7 8\n"
                   "device nas:/y mounted on /proc with fstype nfs4 statvers=1.1\n"
                   "\tbytes:\t1 2 3 4 5 6 7 8\n");
    for (size_t count = 1; count <= 2; count++) {
        struct storage *storage = storage_open(&roots, paths, count);
        storage_read(storage, &after);
        assert_true(after.server_known);
        assert_int_equal(after.server_read_bytes, count == 1 ? 4096 : 4101);
        before.server_known = true;
        storage_between(storage, &before, &after, &share);
        assert_true(share.known && share.of_node && !share.in_memory && !share.devices_hold_all);
        assert_int_equal(share.bytes, count == 1 ? 4096 : 4101);
        assert_string_equal(share.method, "NFS bytes from the server (mountstats)");
        if (count == 2) {
            make_attribute("proc/self/mountstats",
                           "device nas:/x mounted on / with fstype nfs statvers=1.1\n"
                           "\tbytes:\t1 2 3 4 4096 6 7 8\n");
            storage_read(storage, &after);
            assert_false(after.server_known);
        }
        storage_close(storage);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cold_read_is_counted_and_warm_is_not),
        cmocka_unit_test(restarted_counters_are_unknown),
        cmocka_unit_test(memory_has_no_storage),
        cmocka_unit_test(links_of_a_folder_are_followed),
        cmocka_unit_test(a_file_that_is_a_mount),
        cmocka_unit_test(words_and_numbers),
        cmocka_unit_test(longest_and_latest_mount),
        cmocka_unit_test(a_hidden_mount_is_no_mount_of_a_path),
        cmocka_unit_test(the_kernel_names_the_mount_of_a_path),
        cmocka_unit_test(leaves_are_found),
        cmocka_unit_test(disks_on_the_network_are_told_apart),
        cmocka_unit_test(file_systems_without_a_disk_are_told_apart),
        cmocka_unit_test(servers_are_added_up),
        cmocka_unit_test(disk_stat_of_old_and_new_kernels),
        cmocka_unit_test(process_io),
        cmocka_unit_test(nfs_mountstats),
        cmocka_unit_test(a_loop_device_is_judged_by_the_disks_beneath),
        cmocka_unit_test(a_disk_without_a_mount_is_counted), /* last: makes the folder's own disk */
    };

    return cmocka_run_group_tests(tests, setup, folder_teardown);
}
