/* SPDX-License-Identifier: Apache-2.0 */
#include "readers/disk_map.h"

#include "base/memory.h"

#include <errno.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

enum { EXTENTS_AT_ONCE = 256 };

static int refuse(struct disk_limits *limits, const char *why)
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
        return refuse(limits, unreadable(extent->fe_flags));
    if (extent->fe_logical > end)
        return refuse(limits, "it has holes: copy it with cp --sparse=never");
    if (extent->fe_logical < end || extent->fe_length == 0 ||
        extent->fe_length > UINT64_MAX - extent->fe_logical)
        return refuse(limits, "the file system lists its extents out of order");
    if (all & (limits->block_bytes - 1))
        return refuse(limits, "its extents are not aligned to blocks of the disk");
    if (extent->fe_physical > limits->disk_bytes ||
        extent->fe_length > limits->disk_bytes - extent->fe_physical)
        return refuse(limits, "an extent of it is past the end of the disk");
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
            code = errno == EOPNOTSUPP || errno == ENOTTY || errno == EBADR
                       ? refuse(limits, "its file system does not say where it is on the disk")
                       : -errno;
        else if (request->fm_mapped_extents == 0 || request->fm_mapped_extents > EXTENTS_AT_ONCE)
            code = refuse(limits, "it has holes: copy it with cp --sparse=never");
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
