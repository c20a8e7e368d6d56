/* SPDX-License-Identifier: Apache-2.0
 *
 * disk_map: where the bytes of a file are on the device of its file system, as the file system says
 * by FIEMAP (Documentation/filesystems/fiemap.rst). Only files whose every byte is on the device as
 * it is read are mapped: a hole, an unwritten, compressed, encrypted or inline extent is refused.
 *
 * Offsets and lengths are bytes; those on the device count from its start. Any thread.
 */
#ifndef IOBENCH_READERS_DISK_MAP_H
#define IOBENCH_READERS_DISK_MAP_H

#include <stdbool.h>
#include <stdint.h>

struct fiemap_extent;

struct disk_extent {
    uint64_t file_offset, disk_offset, bytes; /* multiples of the device's block */
};

struct disk_map {
    struct disk_extent *extents; /* ascending, from 0 and without gaps */
    uint32_t count;
};

/* What a mapping must fit. */
struct disk_limits {
    uint64_t disk_bytes;  /* size of the device */
    uint32_t block_bytes; /* its logical block, a power of 2 */
    const char *why;      /* set on refusal: a static text */
};

/* Add the next extent of a file; one that continues the last also on the device is joined to it.
 * Returns 0 or a negative errno: -EOPNOTSUPP and a reason in `why` if it cannot be read from the
 * device. */
int disk_map_add(struct disk_map *map, const struct fiemap_extent *extent,
                 struct disk_limits *limits);

/* Map the first file_bytes of an open file. sync: write its dirty pages first; blocks. Returns as
 * disk_map_add(); the map is empty on failure. */
int disk_map_read(struct disk_map *map, int fd, uint64_t file_bytes, bool sync,
                  struct disk_limits *limits);
void disk_map_release(struct disk_map *map);

bool disk_map_equal(const struct disk_map *a, const struct disk_map *b);

/* Return how many of the `bytes` from offset on are adjacent on the device, from *disk_offset on; 0
 * if the offset is not mapped. */
uint64_t disk_map_find(const struct disk_map *map, uint64_t offset, uint64_t bytes,
                       uint64_t *disk_offset);

#endif
