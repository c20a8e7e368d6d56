/* SPDX-License-Identifier: Apache-2.0
 * The reader nvme without a disk: where the bytes of a file are, which namespace that is, and the
 * commands that read them. tests/cluster/guests_nvme.sh reads real ones. */
#include "tests/unit/folder.h"

#include "base/fail.h"
#include "base/random.h"
#include "readers/nvme.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fiemap.h>
#include <sys/sysmacros.h>

enum { BLOCK = 4096, DISK = 1 << 30 };

static const struct nvme_disk device = {.bytes = DISK, .lba_bytes = BLOCK};
static const char *refusal;

static int add(struct disk_map *map, uint64_t file, uint64_t disk, uint64_t bytes, uint32_t flags)
{
    const struct fiemap_extent extent = {
        .fe_logical = file, .fe_physical = disk, .fe_length = bytes, .fe_flags = flags};

    return disk_map_add(map, &extent, &device, &refusal);
}

static void adjacent_extents_are_joined(void **unused)
{
    struct disk_map map = {0};
    uint64_t at = 0;

    assert_int_equal(disk_map_find(&map, 0, 1, &at), 0);
    assert_int_equal(add(&map, 0, 8 * BLOCK, 2 * BLOCK, FIEMAP_EXTENT_SHARED), 0);
    assert_int_equal(add(&map, 2 * BLOCK, 10 * BLOCK, BLOCK, FIEMAP_EXTENT_MERGED), 0);
    assert_int_equal(map.count, 1);
    assert_int_equal(add(&map, 3 * BLOCK, 2 * BLOCK, BLOCK, FIEMAP_EXTENT_LAST), 0);
    assert_int_equal(map.count, 2);
    assert_int_equal(disk_map_find(&map, 0, 100 * BLOCK, &at), 3 * BLOCK);
    assert_int_equal(at, 8 * BLOCK);
    assert_int_equal(disk_map_find(&map, BLOCK + 512, 512, &at), 512);
    assert_int_equal(at, 9 * BLOCK + 512);
    assert_int_equal(disk_map_find(&map, 3 * BLOCK - 512, 4 * BLOCK, &at), 512);
    assert_int_equal(disk_map_find(&map, 3 * BLOCK, BLOCK, &at), BLOCK);
    assert_int_equal(at, 2 * BLOCK);
    assert_int_equal(disk_map_find(&map, 4 * BLOCK, 1, &at), 0);
    disk_map_release(&map);
}

static void what_is_not_on_the_disk_as_it_is_read_is_refused(void **unused)
{
    static const struct {
        uint64_t file, disk, bytes;
        uint32_t flags;
        const char *why;
    } cases[] = {
        {2 * BLOCK, BLOCK, BLOCK, 0, "holes"},
        {0, BLOCK, BLOCK, 0, "out of order"},
        {BLOCK, BLOCK, 0, 0, "out of order"},
        {BLOCK, BLOCK, UINT64_MAX - BLOCK + 1, 0, "out of order"},
        {BLOCK, BLOCK + 512, BLOCK, 0, "not aligned"},
        {BLOCK, BLOCK, BLOCK / 2, 0, "not aligned"},
        {BLOCK, DISK, BLOCK, 0, "past the end of the disk"},
        {BLOCK, UINT64_MAX - BLOCK + 1, BLOCK, 0, "past the end of the disk"},
        {BLOCK, BLOCK, BLOCK, FIEMAP_EXTENT_UNWRITTEN, "never written"},
        {BLOCK, BLOCK, BLOCK, FIEMAP_EXTENT_UNKNOWN | FIEMAP_EXTENT_DELALLOC, "being written"},
        {BLOCK, BLOCK, BLOCK, FIEMAP_EXTENT_ENCODED, "compressed"},
        {BLOCK, BLOCK, BLOCK, FIEMAP_EXTENT_ENCODED | FIEMAP_EXTENT_DATA_ENCRYPTED, "encrypted"},
        {BLOCK, BLOCK, BLOCK, FIEMAP_EXTENT_NOT_ALIGNED | FIEMAP_EXTENT_DATA_INLINE, "inode"},
        {BLOCK, BLOCK, BLOCK, FIEMAP_EXTENT_NOT_ALIGNED | FIEMAP_EXTENT_DATA_TAIL, "shares"},
        {BLOCK, BLOCK, BLOCK, FIEMAP_EXTENT_NOT_ALIGNED, "not aligned"},
    };
    struct disk_map map = {0};

    assert_int_equal(add(&map, 0, 7 * BLOCK, BLOCK, 0), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(add(&map, cases[i].file, cases[i].disk, cases[i].bytes, cases[i].flags),
                         -EOPNOTSUPP);
        assert_non_null(refusal);
        if (!strstr(refusal, cases[i].why))
            fail_msg("case %zu: %s", i, refusal);
        assert_int_equal(map.count, 1);
    }
    disk_map_release(&map);
}

/* Any pieces of a file that are found one after the other are the whole file. */
static void every_byte_has_one_place(void **unused)
{
    enum { EXTENTS = 200 };
    struct random random = random_start(7);
    struct disk_map map = {0};
    uint64_t where[EXTENTS], from[EXTENTS], file = 0;

    for (uint32_t i = 0; i < EXTENTS; i++) {
        const uint64_t bytes = (1 + random_next(&random) % 9) * BLOCK;
        from[i] = file;
        where[i] = (uint64_t)(EXTENTS - i) * 16 * BLOCK; /* never adjacent */
        assert_int_equal(add(&map, file, where[i], bytes, 0), 0);
        file += bytes;
    }
    for (uint64_t offset = 0, at, got; offset < file; offset += got) {
        const uint64_t wanted = (1 + random_next(&random) % 20) * 512;
        uint32_t i = EXTENTS;
        got = disk_map_find(&map, offset, wanted, &at);
        while (from[--i] > offset)
            continue;
        const uint64_t end = i + 1 < EXTENTS ? from[i + 1] : file;
        assert_int_equal(got, end - offset < wanted ? end - offset : wanted);
        assert_int_equal(at, where[i] + offset - from[i]);
    }
    struct disk_map same = map;
    assert_true(disk_map_equal(&map, &same));
    same.count--;
    assert_false(disk_map_equal(&map, &same));
    disk_map_release(&map);
}

/* Whatever the file system of the build folder says, a file with a hole is never mapped. */
static void a_file_with_a_hole(void **unused)
{
    const char *path = folder_path("holes");
    const struct nvme_disk any = {.bytes = UINT64_MAX, .lba_bytes = 512};
    struct disk_map map;
    int fd = open(path, O_CREAT | O_RDWR, 0600);

    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, 1 << 20), 0);
    assert_int_equal(pwrite(fd, "x", 1, (1 << 20) - 1), 1);
    assert_int_equal(disk_map_read(&map, fd, 1 << 20, true, &any, &refusal), -EOPNOTSUPP);
    assert_non_null(refusal);
    assert_int_equal(map.count, 0);
    assert_int_equal(disk_map_read(&map, fd, 0, true, &any, &refusal), 0);
    disk_map_release(&map);
    close(fd);
}

/* ---- sysfs ---- */

#define CONTROLLER "devices/pci/nvme/nvme0/"
#define NAMESPACE CONTROLLER "nvme0n1/"

static void link_to(const char *name, const char *target)
{
    char parent[512];

    snprintf(parent, sizeof parent, "%s", folder_path(name));
    *strrchr(parent, '/') = '\0';
    assert_int_equal(folder_make_path(parent), 0);
    unlink(folder_path(name));
    assert_int_equal(symlink(folder_path(target), folder_path(name)), 0);
}

/* A disk of 4096-byte blocks with a partition, as 259:1; a loop device, as 7:0. */
static void make_sysfs(void)
{
    folder_put(NAMESPACE "size", "20480\n");
    folder_put(NAMESPACE "nsid", "3\n");
    folder_put(NAMESPACE "queue/logical_block_size", "4096\n");
    folder_put(NAMESPACE "queue/max_hw_sectors_kb", "128\n");
    folder_put(NAMESPACE "queue/max_segments", "127\n");
    folder_put(NAMESPACE "queue/io_poll", "1\n");
    folder_put(NAMESPACE "integrity/format", "none\n");
    folder_put(NAMESPACE "nvme0n1p1/partition", "1\n");
    folder_put(NAMESPACE "nvme0n1p1/start", "2048\n");
    folder_put(NAMESPACE "nvme0n1p1/size", "4096\n");
    folder_put(CONTROLLER "ng0n1/dev", "237:5\n");
    folder_put("devices/loop0/size", "8\n");
    link_to(NAMESPACE "device", "devices/pci/nvme/nvme0");
    link_to(CONTROLLER "ng0n1/device", "devices/pci/nvme/nvme0");
    link_to("dev/block/259:0", "devices/pci/nvme/nvme0/nvme0n1");
    link_to("dev/block/259:1", "devices/pci/nvme/nvme0/nvme0n1/nvme0n1p1");
    link_to("dev/block/7:0", "devices/loop0");
    link_to("class/nvme-generic/ng0n1", "devices/pci/nvme/nvme0/ng0n1");
}

static struct nvme_disk find(unsigned number)
{
    struct nvme_disk disk;

    assert_int_equal(nvme_disk_find(&disk, test_folder, makedev(259, number), "f"), 0);
    return disk;
}

static void refused(unsigned of_major, const char *why)
{
    struct nvme_disk disk;

    fail_clear();
    assert_true(nvme_disk_find(&disk, test_folder, makedev(of_major, of_major == 259), "f") < 0);
    if (!strstr(fail_reason(), why))
        fail_msg("not '%s': %s", why, fail_reason());
}

static void a_file_system_names_its_namespace(void **unused)
{
    make_sysfs();
    struct nvme_disk disk = find(0);
    assert_string_equal(disk.name, "ng0n1");
    assert_true(disk.number == makedev(237, 5) && disk.nsid == 3 && disk.polls);
    assert_true(disk.start_bytes == 0 && disk.bytes == 20480 * 512);
    disk = find(1);
    assert_true(disk.start_bytes == 2048 * 512 && disk.bytes == 4096 * 512);
    assert_true(disk.lba_bytes == 4096 && disk.most_bytes == 128 * 1024);
    folder_put(NAMESPACE "queue/max_segments", "5\n"); /* one for memory that begins in a page */
    assert_int_equal(find(1).most_bytes, 4 * 4096);
    folder_put(NAMESPACE "queue/max_segments", "127\n");
    folder_put(NAMESPACE "queue/max_hw_sectors_kb", "2147483647\n");
    assert_int_equal(find(1).most_bytes, 126 * 4096);
    folder_put(NAMESPACE "queue/io_poll", "0\n");
    assert_false(find(0).polls);
}

static void what_is_no_namespace_is_refused(void **unused)
{
    make_sysfs();
    refused(7, "is on loop0, not on an NVMe namespace");
    refused(8, "is not on one block device");
    folder_put(NAMESPACE "integrity/format", "nop\n");
    refused(259, "metadata");
    folder_put(NAMESPACE "metadata_bytes", "0\n"); /* newer kernels say it themselves */
    find(1);
    folder_put(NAMESPACE "metadata_bytes", "8\n");
    refused(259, "metadata");
    assert_int_equal(remove(folder_path(NAMESPACE "metadata_bytes")), 0);
    assert_int_equal(remove(folder_path(NAMESPACE "integrity/format")), 0);
    refused(259, "metadata");
    make_sysfs();
    folder_put(NAMESPACE "nvme0n1p1/start", "2049\n");
    refused(259, "not aligned");
    make_sysfs();
    folder_put(NAMESPACE "nsid", "x\n");
    refused(259, "does not report");
    make_sysfs();
    folder_put(NAMESPACE "queue/logical_block_size", "4095\n");
    refused(259, "does not report");
    make_sysfs();
    link_to(CONTROLLER "ng0n1/device", "devices/loop0");
    refused(259, "ng0n1 does not belong to nvme0n1");
    unlink(folder_path("class/nvme-generic/ng0n1"));
    refused(259, "has no character device ng0n1");
    make_sysfs();
    struct nvme_disk disk = find(1);
    snprintf(disk.name, sizeof disk.name, "null");
    assert_int_equal(nvme_disk_open(&disk), -ENODEV); /* of another number */
}

/* ---- commands ---- */

static void only_reads_are_built(void **unused)
{
    struct random random = random_start(3);
    uint8_t memory[8];

    assert_int_equal(nvme_command_code, 0xc0484e80); /* _IOWR('N', 0x80, struct nvme_uring_cmd) */
    for (int i = 0; i < 1000; i++) {
        const struct nvme_disk disk = {.nsid = 1 + (uint32_t)i,
                                       .lba_bytes = i % 2 ? 512 : 4096,
                                       .most_bytes = 1 << 20,
                                       .start_bytes = random_next(&random) % 1000 * 4096};
        const uint64_t block = random_next(&random) >> 20;
        const uint32_t count = 1 + (uint32_t)(random_next(&random) % 256);
        const struct nvme_command command =
            nvme_read_command(&disk, block * disk.lba_bytes, count * disk.lba_bytes, memory);
        assert_int_equal(command.opcode, 2); /* Read; 1 writes */
        assert_int_equal(command.nsid, disk.nsid);
        assert_int_equal((uint64_t)command.cdw11 << 32 | command.cdw10,
                         block + disk.start_bytes / disk.lba_bytes);
        assert_int_equal(command.cdw12, count - 1);
        assert_int_equal(command.data_bytes, count * disk.lba_bytes);
        assert_int_equal(command.address, (uintptr_t)memory);
        assert_true(command.metadata == 0 && command.metadata_bytes == 0 && command.flags == 0);
    }
}

static void a_status_of_the_disk_is_an_error(void **unused)
{
    const char *why = NULL;

    assert_int_equal(nvme_command_error(0, &why), 0);
    assert_int_equal(nvme_command_error(-EINTR, &why), -EINTR);
    assert_null(why);
    assert_int_equal(nvme_command_error(0x4281, &why), -ENODATA); /* with "do not retry" */
    assert_non_null(strstr(why, "medium"));
    for (int status = 1; status < 0x8000; status++) {
        const int code = status & 0x7ff;
        if (!code)
            continue;
        assert_int_equal(nvme_command_error(status, &why), code == 0x281 ? -ENODATA : -EIO);
        assert_non_null(strstr(why, code == 0x80              ? "past its end"
                                    : code == 0x281           ? "cannot read its medium"
                                    : (code & 0x700) == 0x200 ? "an error of its medium"
                                    : (code & 0x700) == 0x300 ? "the path to the disk"
                                                              : "see the kernel's log"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adjacent_extents_are_joined),
        cmocka_unit_test(what_is_not_on_the_disk_as_it_is_read_is_refused),
        cmocka_unit_test(every_byte_has_one_place),
        cmocka_unit_test(a_file_with_a_hole),
        cmocka_unit_test(a_file_system_names_its_namespace),
        cmocka_unit_test(what_is_no_namespace_is_refused),
        cmocka_unit_test(only_reads_are_built),
        cmocka_unit_test(a_status_of_the_disk_is_an_error),
    };

    return cmocka_run_group_tests(tests, folder_setup, folder_teardown);
}
