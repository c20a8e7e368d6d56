/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/counters.h"

#include "base/fail.h"
#include "telemetry/devices.h"
#include "telemetry/plugins.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

bool disk_parse_stat(struct text text, struct disk_counters *counters)
{
    uint64_t values[11];

    static_assert(sizeof *counters == sizeof values, "in the file's order");
    if (text_numbers(&text, values, 11) < 11)
        return false;
    memcpy(counters, values, sizeof values);
    return true;
}

/* ---- the probe ---- */

struct disk_probe {
    struct device_list devices;
    bool counts[DEVICES_MAX]; /* it keeps statistics, which are in the next file */
};

/* Levels that say what the counters cannot: provenance.c reads them. */
static const char loop_files[] = "loop_file_count", in_memory[] = "memory_count";

static const struct metric_row rows[] = {
    {"read_bytes", offsetof(struct disk_counters, read_sectors), METRIC_COUNTER, DISK_SECTOR_BYTES},
    {"read_count", offsetof(struct disk_counters, reads), METRIC_COUNTER, 1},
    {"read_ms", offsetof(struct disk_counters, read_ms), METRIC_COUNTER, 1},
    {"write_bytes", offsetof(struct disk_counters, write_sectors), METRIC_COUNTER,
     DISK_SECTOR_BYTES},
    {"write_count", offsetof(struct disk_counters, writes), METRIC_COUNTER, 1},
    {"write_ms", offsetof(struct disk_counters, write_ms), METRIC_COUNTER, 1},
    {"in_flight_count", offsetof(struct disk_counters, in_flight), METRIC_LEVEL, 1},
    {"queue_ms", offsetof(struct disk_counters, queue_ms), METRIC_COUNTER, 1},
    {0},
};

static int disk_open(struct probe *probe, const struct probe_site *site)
{
    struct disk_probe *disk = probe->state;
    const char *sys = site->roots->sys;
    int code = 0;

    for (size_t i = 0; i < site->path_count && code == 0; i++)
        code = devices_of_path(site->roots, site->paths[i], &disk->devices);
    if (code)
        return code;
    if (disk->devices.count == 0 && disk->devices.memory_ends)
        return metric_add(&probe->metrics, "", in_memory, METRIC_LEVEL, 1) ? 0 : -ENOMEM;
    if (disk->devices.count == 0)
        return fail(ENOENT, "no block device below the data");
    for (uint32_t i = 0; i < disk->devices.count && code == 0; i++) {
        const struct device *device = &disk->devices.devices[i];
        char iostats[8];
        disk->counts[i] = !file_peek(iostats, sizeof iostats, "%s/dev/block/%u:%u/queue/iostats",
                                     sys, device->device_major, device->device_minor) ||
                          iostats[0] != '0';
        if (disk->counts[i])
            code = probe_add_file(probe, "%s/dev/block/%u:%u/stat", sys, device->device_major,
                                  device->device_minor);
        if (code == 0)
            code = metric_add_rows(&probe->metrics, device->name, rows);
    }
    /* Their pages are cached once more, so that the process is charged for what no disk reads. */
    if (code == 0 && disk->devices.backing_count &&
        !metric_add(&probe->metrics, "", loop_files, METRIC_LEVEL, 1))
        code = -ENOMEM;
    return code;
}

static void disk_sample(const struct probe *probe, uint64_t *values)
{
    const struct disk_probe *disk = probe->state;
    struct procfile *file = probe->files;
    struct disk_counters counters;
    struct text text;

    for (uint32_t i = 0; i < disk->devices.count; i++)
        values =
            disk->counts[i] && procfile_read(file++, &text) == 0 && disk_parse_stat(text, &counters)
                ? metric_put_rows(rows, &counters, values)
                : metric_skip_rows(rows, values);
    if (disk->devices.count == 0)
        *values = disk->devices.memory_ends;
    else if (disk->devices.backing_count)
        *values = disk->devices.backing_count;
}

const struct probe_ops probe_disk = {
    .plugin = {.name = "disk",
               .summary = "block devices that hold the data, below all layers",
               .state_size = sizeof(struct disk_probe)},
    .open = disk_open,
    .sample = disk_sample,
};
