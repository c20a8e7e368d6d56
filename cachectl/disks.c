/* SPDX-License-Identifier: Apache-2.0 */
#include "cachectl/disks.h"

#include "telemetry/disk.h"

bool disks_read_bytes(struct disks *disks, const char *const *paths, size_t count, uint64_t *bytes)
{
    const struct device_list *list = &disks->list;
    const uint32_t before = list->count;
    struct disk_counters counters;
    char text[512];

    *bytes = 0;
    devices_of_paths(&telemetry_roots_usual, paths, count, &disks->list);
    if (list->count == 0 || list->cut_off || list->elsewhere[0])
        return false;
    for (uint32_t i = before; i < list->count; i++) {
        const struct device *device = &list->devices[i];
        const char *sys = telemetry_roots_usual.sys;
        if (procfile_peek(text, sizeof text, "%s/dev/block/%u:%u/queue/iostats", sys,
                          device->device_major, device->device_minor) &&
            text[0] == '0')
            return false;
        if (!procfile_peek(text, sizeof text, "%s/dev/block/%u:%u/stat", sys, device->device_major,
                           device->device_minor) ||
            !disk_parse_stat(text_of_string(text), &counters))
            return false;
        *bytes += counters.read_sectors * DISK_SECTOR_BYTES;
    }
    return true;
}
