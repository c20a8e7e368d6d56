/* SPDX-License-Identifier: Apache-2.0 */
#include "readers/nvme_disk.h"

#include "base/fail.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>

enum { SECTOR_BYTES = 512, PAGE_BYTES = 4096, LBA_MOST_BYTES = 65536, LBAS_MOST = 65536 };
enum { COMMAND_MOST_BYTES = 1 << 30 };
enum { OPCODE_READ = 0x02 }; /* the only one */

const uint32_t nvme_command_code = _IOWR('N', 0x80, struct nvme_command);

static uint64_t read_number(const char *folder, const char *name)
{
    char text[32];

    return file_peek(text, sizeof text, "%s/%s", folder, name) ? strtoull(text, NULL, 10) : 0;
}

/* Where a link of sysfs leads; "" if nowhere. */
static const char *resolved(char real[PATH_MAX], const char *folder, const char *name)
{
    char *path = file_format_path("%s/%s", folder, name);

    if (!path || !realpath(path, real))
        real[0] = '\0';
    free(path);
    return real;
}

int nvme_disk_find(struct nvme_disk *disk, const char *sys, dev_t device, const char *path)
{
    char block[PATH_MAX], of_block[PATH_MAX], of_character[PATH_MAX], folder[PATH_MAX], word[32];
    unsigned controller, namespace, device_major = 0, device_minor = 0;
    int end = 0;

    *disk = (struct nvme_disk){0};
    snprintf(folder, sizeof folder, "dev/block/%u:%u", major(device), minor(device));
    if (!resolved(block, sys, folder)[0])
        return fail(ENOTSUP, "%s: its file system is not on one block device", path);
    disk->bytes = read_number(block, "size") * SECTOR_BYTES;
    if (read_number(block, "partition")) {
        disk->start_bytes = read_number(block, "start") * SECTOR_BYTES;
        *strrchr(block, '/') = '\0';
    }
    const char *name = strrchr(block, '/') + 1;
    if (sscanf(name, "nvme%un%u%n", &controller, &namespace, &end) != 2 || name[end])
        return fail(ENOTSUP,
                    "%s: its file system is on %s, not on an NVMe namespace or a partition of one",
                    path, name);
    /* The character device of the same name must be of the same controller or subsystem. */
    snprintf(disk->name, sizeof disk->name, "ng%.28s", name + strlen("nvme"));
    snprintf(folder, sizeof folder, "%s/class/nvme-generic/%s", sys, disk->name);
    const bool is_there = file_peek(word, sizeof word, "%s/dev", folder) &&
                          sscanf(word, "%u:%u", &device_major, &device_minor) == 2;
    disk->number = makedev(device_major, device_minor);
    if (!is_there)
        return fail(ENODEV, "%s has no character device %s: needs Linux 5.13", name, disk->name);
    if (!resolved(of_block, block, "device")[0] ||
        strcmp(of_block, resolved(of_character, folder, "device")) != 0)
        return fail(ENODEV, "%s does not belong to %s", disk->name, name);
    const uint64_t lba = read_number(block, "queue/logical_block_size");
    disk->nsid = (uint32_t)read_number(block, "nsid");
    disk->polls = read_number(block, "queue/io_poll") == 1;
    if (lba < SECTOR_BYTES || lba > LBA_MOST_BYTES || (lba & (lba - 1)) || disk->nsid == 0)
        return fail(ENOTSUP, "%s: sysfs does not tell its namespace and block size", name);
    disk->lba_bytes = (uint32_t)lba;
    /* The driver splits no command. Memory may begin within a page, so one segment more is needed.
     */
    const uint64_t segments = read_number(block, "queue/max_segments");
    uint64_t most = read_number(block, "queue/max_hw_sectors_kb") * 1024;
    if (most == 0 || most > COMMAND_MOST_BYTES)
        most = most ? COMMAND_MOST_BYTES : PAGE_BYTES;
    if (segments > 1 && most > (segments - 1) * PAGE_BYTES)
        most = (segments - 1) * PAGE_BYTES;
    if (most > LBAS_MOST * lba)
        most = LBAS_MOST * lba;
    disk->most_bytes = (uint32_t)(most / lba * lba);
    if (disk->most_bytes == 0 || disk->start_bytes % lba)
        return fail(ENOTSUP, "%s: partition or transfers are not aligned to its blocks", name);
    /* A command for blocks with metadata needs memory for it: without, the disk writes it anywhere.
     */
    const bool has_metadata =
        file_peek(word, sizeof word, "%s/metadata_bytes", block) && word[0] /* Linux 6.8 */
            ? strcmp(word, "0") != 0
            : !file_peek(word, sizeof word, "%s/integrity/format", block) ||
                  strcmp(word, "none") != 0;
    return has_metadata ? fail(ENOTSUP,
                               "%s: its blocks are formatted with metadata, or the kernel does not "
                               "tell; use --reader uring",
                               name)
                        : 0;
}

int nvme_disk_open(const struct nvme_disk *disk)
{
    char *path = file_format_path("/dev/%s", disk->name);
    int fd = path ? file_open_device(path, disk->number) : -ENOMEM;

    free(path);
    if (fd == -EACCES || fd == -EPERM)
        return fail(fd,
                    "/dev/%s: no right to open it: run as root, or from Linux 6.2 on give this "
                    "user read access, which is to the whole disk",
                    disk->name);
    if (fd == -ENODEV || fd == -ENOENT)
        return fail(fd, "/dev/%s is not there, or not the device %u:%u: a container must share it",
                    disk->name, major(disk->number), minor(disk->number));
    return fd < 0 ? fail(fd, "/dev/%s: %s", disk->name, fail_errno_text(fd)) : fd;
}

int nvme_disk_any(void)
{
    struct folder_names found;

    folder_names_matching(&found, "/sys/class/nvme-generic/*");
    const bool any = found.count > 0;
    folder_names_release(&found);
    return any ? 0 : fail(ENODEV, "no NVMe namespace with a character device (/dev/ng0n1)");
}

/* ---- commands ---- */

struct nvme_command nvme_read_command(const struct nvme_disk *disk, uint64_t disk_offset,
                                      uint32_t bytes, void *memory)
{
    const uint64_t lba = (disk->start_bytes + disk_offset) / disk->lba_bytes;

    assert(disk_offset % disk->lba_bytes == 0 && bytes % disk->lba_bytes == 0);
    assert(bytes > 0 && bytes <= disk->most_bytes);
    return (struct nvme_command){
        .opcode = OPCODE_READ,
        .nsid = disk->nsid,
        .address = (uint64_t)(uintptr_t)memory,
        .data_bytes = bytes,
        .cdw10 = (uint32_t)lba,
        .cdw11 = (uint32_t)(lba >> 32),
        .cdw12 = bytes / disk->lba_bytes - 1, /* counts from 0 */
    };
}

/* Status code type and code (NVMe Base Specification 2.0, Completion Queue Entry: Status Field). */
int nvme_command_error(int result, const char **why)
{
    if (result <= 0)
        return result;
    switch (result & 0x7ff) {
    case 0x080:
        *why = "the disk refuses the command: past its end (LBA Out of Range)";
        return -EIO;
    case 0x281:
        *why = "the disk cannot read its medium (Unrecovered Read Error)";
        return -ENODATA;
    default:
        *why = (result & 0x700) == 0x200   ? "the disk reports an error of its medium"
               : (result & 0x700) == 0x300 ? "the path to the disk failed"
                                           : "the disk refuses the command; see the kernel's log";
        return -EIO;
    }
}

enum { EXTENTS_AT_ONCE = 256 };

static int refuse_extent(struct disk_limits *limits, const char *why)
{
    limits->why = why;
    return -EOPNOTSUPP;
}

/* FIEMAP_EXTENT_SHARED (of a clone) and _MERGED change nothing for a reader. */
static const char *unreadable(uint32_t flags)
{
    if (flags & (FIEMAP_EXTENT_DATA_INLINE | FIEMAP_EXTENT_DATA_TAIL))
        return "it is stored inside an inode or shares a block";
    if (flags & (FIEMAP_EXTENT_ENCODED | FIEMAP_EXTENT_DATA_ENCRYPTED))
        return "it is compressed or encrypted on the disk";
    if (flags & FIEMAP_EXTENT_UNWRITTEN)
        return "it has extents that were allocated and never written: copy it";
    if (flags & (FIEMAP_EXTENT_UNKNOWN | FIEMAP_EXTENT_DELALLOC))
        return "it has no place on the disk yet: it is being written";
    if (flags & FIEMAP_EXTENT_NOT_ALIGNED)
        return "its extents are not aligned to blocks of the disk";
    return NULL;
}

int disk_map_add(struct disk_map *map, const struct fiemap_extent *extent,
                 struct disk_limits *limits)
{
    struct disk_extent *last = map->count ? &map->extents[map->count - 1] : NULL;
    const uint64_t end = last ? last->file_offset + last->bytes : 0;
    const uint64_t all = extent->fe_logical | extent->fe_physical | extent->fe_length;

    if (unreadable(extent->fe_flags))
        return refuse_extent(limits, unreadable(extent->fe_flags));
    if (extent->fe_logical > end)
        return refuse_extent(limits, "it has holes: copy it with cp --sparse=never");
    if (extent->fe_logical < end || extent->fe_length == 0 ||
        extent->fe_length > UINT64_MAX - extent->fe_logical)
        return refuse_extent(limits, "the file system lists its extents out of order");
    if (all & (limits->block_bytes - 1))
        return refuse_extent(limits, "its extents are not aligned to blocks of the disk");
    if (extent->fe_physical > limits->disk_bytes ||
        extent->fe_length > limits->disk_bytes - extent->fe_physical)
        return refuse_extent(limits, "an extent of it is past the end of the disk");
    if (last && last->disk_offset + last->bytes == extent->fe_physical) {
        last->bytes += extent->fe_length;
        return 0;
    }
    int code = memory_room(&map->extents, map->count, sizeof *map->extents, "extents");
    if (code == 0)
        map->extents[map->count++] =
            (struct disk_extent){end, extent->fe_physical, extent->fe_length};
    return code;
}

int disk_map_read(struct disk_map *map, int fd, uint64_t file_bytes, bool sync,
                  struct disk_limits *limits)
{
    const size_t bytes = sizeof(struct fiemap) + EXTENTS_AT_ONCE * sizeof(struct fiemap_extent);
    struct fiemap *request = memory_zeroed(bytes);
    uint64_t offset = 0;
    int code = request ? 0 : -ENOMEM;

    *map = (struct disk_map){0};
    while (code == 0 && offset < file_bytes) {
        *request = (struct fiemap){.fm_start = offset,
                                   .fm_length = file_bytes - offset,
                                   .fm_flags = sync ? FIEMAP_FLAG_SYNC : 0,
                                   .fm_extent_count = EXTENTS_AT_ONCE};
        if (ioctl(fd, FS_IOC_FIEMAP, request))
            code =
                errno == EOPNOTSUPP || errno == ENOTTY || errno == EBADR
                    ? refuse_extent(limits, "its file system does not say where it is on the disk")
                    : -errno;
        else if (request->fm_mapped_extents == 0 || request->fm_mapped_extents > EXTENTS_AT_ONCE)
            code = refuse_extent(limits, "it has holes: copy it with cp --sparse=never");
        for (uint32_t i = 0; code == 0 && i < request->fm_mapped_extents; i++) {
            const struct fiemap_extent *extent = &request->fm_extents[i];
            code = disk_map_add(map, extent, limits);
            offset = extent->fe_logical + extent->fe_length;
        }
    }
    free(request);
    if (code)
        disk_map_release(map);
    return code;
}

void disk_map_release(struct disk_map *map)
{
    free(map->extents);
    *map = (struct disk_map){0};
}

bool disk_map_equal(const struct disk_map *a, const struct disk_map *b)
{
    return a->count == b->count &&
           (a->count == 0 || memcmp(a->extents, b->extents, a->count * sizeof *a->extents) == 0);
}

uint64_t disk_map_find(const struct disk_map *map, uint64_t offset, uint64_t bytes,
                       uint64_t *disk_offset)
{
    uint32_t low = 0, high = map->count;

    while (low < high) { /* the first extent that ends after offset */
        const uint32_t middle = low + (high - low) / 2;
        const struct disk_extent *extent = &map->extents[middle];
        if (extent->file_offset + extent->bytes <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == map->count)
        return 0;
    const struct disk_extent *extent = &map->extents[low];
    const uint64_t within = offset - extent->file_offset, left = extent->bytes - within;
    *disk_offset = extent->disk_offset + within;
    return bytes < left ? bytes : left;
}
