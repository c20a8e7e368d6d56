/* SPDX-License-Identifier: Apache-2.0 */
#include "readers/nvme_disk.h"

#include "base/fail.h"
#include "base/file.h"
#include "base/folder.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>

enum { SECTOR_BYTES = 512, PAGE_BYTES = 4096, LBA_MOST_BYTES = 65536, LBAS_MOST = 65536 };
enum { COMMAND_MOST_BYTES = 1 << 30 };
enum { OPCODE_READ = 0x02 }; /* the only one */

const uint32_t nvme_command_code = _IOWR('N', 0x80, struct nvme_command);

/* ---- sysfs ---- */

/* Read the first word of a file; "" if there is none. */
static bool read_word(char *word, size_t bytes, const char *folder, const char *name)
{
    char *path = file_format_path("%s/%s", folder, name);
    FILE *file = path ? file_stream_kernel(path) : NULL;

    word[0] = '\0';
    if (file && fgets(word, (int)bytes, file))
        word[strcspn(word, " \n")] = '\0';
    if (file)
        fclose(file);
    free(path);
    return word[0] != '\0';
}

static uint64_t read_number(const char *folder, const char *name)
{
    char word[32];

    return read_word(word, sizeof word, folder, name) ? strtoull(word, NULL, 10) : 0;
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

/* A command for blocks with metadata needs memory for it: without, the disk writes it anywhere. */
static bool has_metadata(const char *block)
{
    char word[32];

    if (read_word(word, sizeof word, block, "metadata_bytes")) /* Linux 6.8 */
        return strcmp(word, "0") != 0;
    return !read_word(word, sizeof word, block, "integrity/format") || strcmp(word, "none") != 0;
}

/* The driver splits no command. Memory may begin within a page, so one segment more is needed. */
static uint32_t most_bytes(const char *block, uint32_t lba_bytes)
{
    const uint64_t segments = read_number(block, "queue/max_segments");
    uint64_t most = read_number(block, "queue/max_hw_sectors_kb") * 1024;

    if (most == 0 || most > COMMAND_MOST_BYTES)
        most = most ? COMMAND_MOST_BYTES : PAGE_BYTES;
    if (segments > 1 && most > (segments - 1) * PAGE_BYTES)
        most = (segments - 1) * PAGE_BYTES;
    if (most > (uint64_t)LBAS_MOST * lba_bytes)
        most = (uint64_t)LBAS_MOST * lba_bytes;
    return (uint32_t)(most / lba_bytes * lba_bytes);
}

/* The character device of the same name must be of the same controller or subsystem. */
static int find_character_device(struct nvme_disk *disk, const char *sys, const char *block,
                                 const char *name)
{
    char of_block[PATH_MAX], of_character[PATH_MAX], number[24];
    unsigned device_major = 0, device_minor = 0;
    char *folder;

    snprintf(disk->name, sizeof disk->name, "ng%.28s", name + strlen("nvme"));
    folder = file_format_path("%s/class/nvme-generic/%s", sys, disk->name);
    if (!folder)
        return -ENOMEM;
    const bool is_there = read_word(number, sizeof number, folder, "dev") &&
                          sscanf(number, "%u:%u", &device_major, &device_minor) == 2;
    const bool same =
        strcmp(resolved(of_block, block, "device"), resolved(of_character, folder, "device")) == 0;
    free(folder);
    disk->number = makedev(device_major, device_minor);
    if (!is_there)
        return fail(ENODEV, "%s has no character device %s: needs Linux 5.13", name, disk->name);
    return of_block[0] && same ? 0 : fail(ENODEV, "%s does not belong to %s", disk->name, name);
}

static int learn_limits(struct nvme_disk *disk, const char *block, const char *name)
{
    const uint64_t lba = read_number(block, "queue/logical_block_size");

    disk->nsid = (uint32_t)read_number(block, "nsid");
    disk->polls = read_number(block, "queue/io_poll") == 1;
    if (lba < SECTOR_BYTES || lba > LBA_MOST_BYTES || (lba & (lba - 1)) || disk->nsid == 0)
        return fail(ENOTSUP, "%s: sysfs does not tell its namespace and block size", name);
    disk->lba_bytes = (uint32_t)lba;
    disk->most_bytes = most_bytes(block, disk->lba_bytes);
    if (disk->most_bytes == 0 || disk->start_bytes % lba)
        return fail(ENOTSUP, "%s: partition or transfers are not aligned to its blocks", name);
    return has_metadata(block) ? fail(ENOTSUP,
                                      "%s: its blocks are formatted with metadata, or the kernel "
                                      "does not tell; use --reader uring",
                                      name)
                               : 0;
}

int nvme_disk_find(struct nvme_disk *disk, const char *sys, dev_t device, const char *path)
{
    char block[PATH_MAX], folder[64];
    unsigned controller, namespace;
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
    int code = find_character_device(disk, sys, block, name);
    return code ? code : learn_limits(disk, block, name);
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
