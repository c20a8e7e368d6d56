/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/counters.h"

#include "base/fail.h"
#include "base/memory.h"
#include "telemetry/devices.h"
#include "telemetry/plugins.h"

#include <errno.h>

/* Skip "8:16 " if the line is about that device. */
static bool is_device(struct text *line, unsigned device_major, unsigned device_minor)
{
    struct text word, first;
    uint64_t line_major, line_minor;

    return text_word(line, &word) && text_until(&word, ':', &first) &&
           text_u64(&first, &line_major) && text_u64(&word, &line_minor) &&
           line_major == device_major && line_minor == device_minor;
}

static void add_value(struct text word, const char *key, uint64_t *sum)
{
    uint64_t value;

    if (text_skip(&word, key) && text_u64(&word, &value))
        *sum += value;
}

bool cgroup_add_io_stat(struct text text, unsigned device_major, unsigned device_minor,
                        struct cgroup_counters *counters)
{
    struct text line, word;

    while (text_line(&text, &line)) {
        if (!is_device(&line, device_major, device_minor))
            continue;
        while (text_word(&line, &word)) {
            add_value(word, "rbytes=", &counters->read_bytes);
            add_value(word, "wbytes=", &counters->write_bytes);
            add_value(word, "rios=", &counters->reads);
            add_value(word, "wios=", &counters->writes);
        }
        return true;
    }
    return false;
}

bool cgroup_add_blkio(struct text text, unsigned device_major, unsigned device_minor,
                      struct cgroup_counters *counters)
{
    struct text line, word;
    uint64_t value;
    bool found = false;

    while (text_line(&text, &line)) {
        if (!is_device(&line, device_major, device_minor) || !text_word(&line, &word) ||
            !text_u64(&line, &value))
            continue;
        if (text_is(word, "Read"))
            counters->read_bytes += value, found = true;
        else if (text_is(word, "Write"))
            counters->write_bytes += value;
    }
    return found;
}

/* ---- the probe ---- */

struct cgroup_probe {
    bool version1;
    struct device_list devices;
};

/* Both versions count bytes; only version 2 counts operations. */
static const struct metric_row rows[] = {
    {"read_bytes", offsetof(struct cgroup_counters, read_bytes), METRIC_COUNTER, 1},
    {"write_bytes", offsetof(struct cgroup_counters, write_bytes), METRIC_COUNTER, 1},
    {0},
};

static int cgroup_open(struct probe *probe, const struct probe_site *site)
{
    struct cgroup_probe *cgroup = probe->state;
    struct control_group group;
    int code = -ENOENT;

    for (size_t i = 0; i < site->path_count; i++)
        devices_of_path(site->roots, site->paths[i], &cgroup->devices);
    if (cgroup->devices.count == 0)
        return fail(ENOENT, "no block device below the data");
    /* Assume that other processes share our group. */
    if (control_group_find(&group, "blkio", site->roots->proc, site->roots->sys))
        code = probe_add_file(probe, "%s/%s", group.folder,
                              group.version1 ? "blkio.throttle.io_service_bytes_recursive"
                                             : "io.stat");
    cgroup->version1 = group.version1;
    if (code)
        return fail(ENOENT, "the control group of the process does not count its I/O: neither "
                            "io.stat nor blkio.throttle.io_service_bytes can be read");
    return metric_add_rows(&probe->metrics, "", rows);
}

/* An unused device is not listed: report 0. */
static void cgroup_sample(const struct probe *probe, uint64_t *values)
{
    const struct cgroup_probe *cgroup = probe->state;
    struct cgroup_counters counters = {0};
    struct text text;

    if (procfile_read(probe->files, &text))
        return;
    for (uint32_t i = 0; i < cgroup->devices.count; i++) {
        const struct device *device = &cgroup->devices.devices[i];
        (cgroup->version1 ? cgroup_add_blkio : cgroup_add_io_stat)(text, device->device_major,
                                                                   device->device_minor, &counters);
    }
    metric_put_rows(rows, &counters, values);
}

const struct probe_ops probe_cgroup = {
    .plugin = {.name = "cgroup",
               .summary = "bytes read and written by the process's control group",
               .state_size = sizeof(struct cgroup_probe)},
    .open = cgroup_open,
    .sample = cgroup_sample,
};
