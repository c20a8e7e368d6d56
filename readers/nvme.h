/* SPDX-License-Identifier: Apache-2.0
 *
 * nvme_disk: the NVMe namespace that holds a file system, and the commands that it takes (NVM
 * Command Set specification 1.0, Read; ABI of linux/nvme_ioctl.h). Only reads are ever built.
 */
#ifndef IOBENCH_READERS_NVME_H
#define IOBENCH_READERS_NVME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct nvme_disk {
    char name[32];               /* of its character device: "ng0n1" */
    dev_t number;                /* of that device */
    uint32_t nsid;               /* of the namespace */
    uint32_t lba_bytes;          /* its logical block, a power of 2 */
    uint32_t most_bytes;         /* of a command; a multiple of lba_bytes */
    uint64_t start_bytes, bytes; /* where on the namespace the file system's device is; its size */
    bool polls;                  /* it has queues without interrupts */
};

/* Find the namespace on which a block device is, directly or as a partition. sys: mount point of
 * sysfs; path: a file there, for reasons. Returns 0 or a negative errno with a reason. */
int nvme_disk_find(struct nvme_disk *disk, const char *sys, dev_t device, const char *path);

/* Open its character device. Returns a descriptor or a negative errno with a reason. */
int nvme_disk_open(const struct nvme_disk *disk);

/* A command as the kernel takes it (struct nvme_uring_cmd, 72 bytes). */
struct nvme_command {
    uint8_t opcode, flags;
    uint16_t reserved;
    uint32_t nsid, cdw2, cdw3;
    uint64_t metadata, address;
    uint32_t metadata_bytes, data_bytes;
    uint32_t cdw10, cdw11, cdw12, cdw13, cdw14, cdw15;
    uint32_t timeout_ms, reserved2;
};
_Static_assert(sizeof(struct nvme_command) == 72, "as the kernel's");
extern const uint32_t nvme_command_code; /* NVME_URING_CMD_IO */

/* The command that reads `bytes` at an offset of the file system's device into memory; both are
 * multiples of lba_bytes, bytes is at most most_bytes. */
struct nvme_command nvme_read_command(const struct nvme_disk *disk, uint64_t disk_offset,
                                      uint32_t bytes, void *memory);

/* Translate the result of a completed command: 0, or a negative errno and, if the disk refused it,
 * a static text in *why. result: 0, an NVMe status or a negative errno. */
int nvme_command_error(int result, const char **why);

/* Map of a file: where its bytes are on the device of its file system, as the file system says
 * by FIEMAP (Documentation/filesystems/fiemap.rst). Only files whose every byte is on the device as
 * it is read are mapped: a hole, an unwritten, compressed, encrypted or inline extent is refused.
 *
 * Offsets and lengths are bytes; those on the device count from its start. Any thread. */

struct fiemap_extent;

struct disk_extent {
    uint64_t file_offset, disk_offset, bytes; /* multiples of the device's block */
};

struct disk_map {
    struct disk_extent *extents; /* ascending, from 0 and without gaps */
    uint32_t count;
};

/* Add the next extent of a file; one that continues the last also on the device is joined to it.
 * Returns 0 or a negative errno: -EOPNOTSUPP and a static text in *why if it cannot be read from
 * the device. */
int disk_map_add(struct disk_map *map, const struct fiemap_extent *extent,
                 const struct nvme_disk *disk, const char **why);

/* Map the first file_bytes of an open file. sync: write its dirty pages first; blocks. Returns as
 * disk_map_add(); the map is empty on failure. */
int disk_map_read(struct disk_map *map, int fd, uint64_t file_bytes, bool sync,
                  const struct nvme_disk *disk, const char **why);
void disk_map_release(struct disk_map *map);

bool disk_map_equal(const struct disk_map *a, const struct disk_map *b);

/* Return how many of the `bytes` from offset on are adjacent on the device, from *disk_offset on; 0
 * if the offset is not mapped. */
uint64_t disk_map_find(const struct disk_map *map, uint64_t offset, uint64_t bytes,
                       uint64_t *disk_offset);

#endif
