/* SPDX-License-Identifier: Apache-2.0
 *
 * The probes of what holds the data.
 */
#include "base/memory.h"
#include "base/control_group.h"
#include "base/fail.h"
#include "base/folder.h"
#include "telemetry/probe.h"
#include "telemetry/devices.h"
#include "telemetry/plugins.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- block devices ---- */

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

/* Levels that say what the counters cannot: series.c reads them. */
static const char loop_files[] = "loop_file_count", in_memory[] = "memory_count";

static const struct metric_row disk_rows[] = {
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
            code = metric_add_rows(&probe->metrics, device->name, disk_rows);
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
                ? metric_put_rows(disk_rows, &counters, values)
                : metric_skip_rows(disk_rows, values);
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

/* ---- a control group ---- */

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
static const struct metric_row cgroup_rows[] = {
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
    return metric_add_rows(&probe->metrics, "", cgroup_rows);
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
    metric_put_rows(cgroup_rows, &counters, values);
}

const struct probe_ops probe_cgroup = {
    .plugin = {.name = "cgroup",
               .summary = "bytes read and written by the process's control group",
               .state_size = sizeof(struct cgroup_probe)},
    .open = cgroup_open,
    .sample = cgroup_sample,
};

/* ---- NFS ---- */

/* "device SERVER:/EXPORT mounted on POINT with fstype nfs4 statvers=1.1" */
static bool starts_mount(struct text line, const char *point, bool *wanted)
{
    char name[512];
    struct text word, type;

    if (!text_skip(&line, "device "))
        return false;
    *wanted = false;
    /* A source or mount point may contain anything but a blank, which is written as \040. */
    if (!text_word(&line, &word) || !text_word(&line, &word) || !text_is(word, "mounted") ||
        !text_word(&line, &word) || !text_is(word, "on") || !text_word(&line, &word))
        return true;
    if (!mount_unescape(word, name, sizeof name))
        return true;
    bool typed = text_word(&line, &type) && text_is(type, "with") && text_word(&line, &type) &&
                 text_is(type, "fstype") && text_word(&line, &type);
    *wanted =
        typed && text_starts(type, "nfs") && !text_is(type, "nfsd") && strcmp(name, point) == 0;
    return true;
}

static void parse_operation(struct text line, struct nfs_operation *operation)
{
    uint64_t values[9] = {0};

    if (text_numbers(&line, values, 9) < 8)
        return;
    operation->count += values[0];
    operation->transmissions += values[1];
    operation->retransmissions += values[1] > values[0] ? values[1] - values[0] : 0;
    operation->major_timeouts += values[2];
    operation->sent_bytes += values[3];
    operation->received_bytes += values[4];
    operation->queue_ms += values[5];
    operation->rtt_ms += values[6];
    operation->execute_ms += values[7];
    operation->errors += values[8];
}

bool nfs_parse(struct text mountstats, const char *point, struct nfs_counters *counters)
{
    struct text line, word;
    bool wanted = false, found = false;

    while (text_line(&mountstats, &line)) {
        const bool inside = wanted;
        uint64_t values[8] = {0};
        if (starts_mount(line, point, &wanted)) {
            if (wanted)
                *counters = (struct nfs_counters){0}, found = true;
            continue;
        }
        if (!inside || !text_word(&line, &word))
            continue;
        if (text_is(word, "bytes:")) {
            if (text_numbers(&line, values, 8) < 8)
                continue;
            counters->normal_read_bytes = values[0];
            counters->direct_read_bytes = values[2];
            counters->server_read_bytes = values[4];
            counters->server_written_bytes = values[5];
            counters->read_pages = values[6];
        } else if (text_is(word, "xprt:") && text_word(&line, &word)) {
            /* udp: port bind sends recvs bad_xid ...; tcp and rdma: port bind connect connect_time
             * idle sends recvs bad_xid ... */
            const unsigned first = text_is(word, "udp") ? 2 : 5;
            counters->connections++;
            if (text_numbers(&line, values, 8) < first + 3)
                continue;
            counters->sends += values[first];
            counters->receives += values[first + 1];
            counters->bad_ids += values[first + 2];
        } else if (text_is(word, "READ:") || text_is(word, "READ_PLUS:")) {
            parse_operation(line, &counters->read);
        } else if (text_is(word, "WRITE:")) {
            parse_operation(line, &counters->write);
        }
    }
    return found;
}

bool nfs_is_type(const char *type)
{
    return strcmp(type, "nfs") == 0 || strcmp(type, "nfs4") == 0;
}

/* ---- the probe ---- */

enum { MOUNTS_MAX = 16 };

struct nfs_probe {
    char points[MOUNTS_MAX][512];
    uint32_t count;
};

#define NFS(field) offsetof(struct nfs_counters, field), METRIC_COUNTER, 1
static const struct metric_row nfs_rows[] = {
    {"server_read_bytes", NFS(server_read_bytes)},
    {"application_read_bytes", NFS(normal_read_bytes)},
    {"application_direct_bytes", NFS(direct_read_bytes)},
    {"server_written_bytes", NFS(server_written_bytes)},
    {"read_page_count", NFS(read_pages)},
    {"read_count", NFS(read.count)},
    {"read_transmission_count", NFS(read.transmissions)},
    {"read_retransmission_count", NFS(read.retransmissions)},
    {"read_timeout_count", NFS(read.major_timeouts)},
    {"read_wire_bytes", NFS(read.received_bytes)},
    {"read_queue_ms", NFS(read.queue_ms)},
    {"read_rtt_ms", NFS(read.rtt_ms)},
    {"read_execute_ms", NFS(read.execute_ms)},
    {"read_error_count", NFS(read.errors)},
    {"connection_count", offsetof(struct nfs_counters, connections), METRIC_LEVEL, 1},
    {"send_count", NFS(sends)},
    {"receive_count", NFS(receives)},
    {0},
};

static int nfs_open(struct probe *probe, const struct probe_site *site)
{
    struct nfs_probe *nfs = probe->state;
    struct mount mount;
    int code = 0;

    for (size_t i = 0; i < site->path_count && code == 0; i++) {
        uint32_t k = 0;
        code = mount_of_path(site->roots, site->paths[i], &mount);
        if (code || !nfs_is_type(mount.type))
            continue;
        while (k < nfs->count && strcmp(nfs->points[k], mount.point) != 0)
            k++;
        if (k < nfs->count)
            continue;
        if (nfs->count == MOUNTS_MAX)
            return fail(E2BIG, "the data is on more than %d NFS mounts", MOUNTS_MAX);
        snprintf(nfs->points[nfs->count++], sizeof nfs->points[0], "%s", mount.point);
        /* The tail of a long mount point is more telling than its head. */
        const size_t length = strlen(mount.point);
        const size_t cut = length < METRIC_PART_BYTES ? 0 : length - METRIC_PART_BYTES + 1;
        code = metric_add_rows(&probe->metrics, mount.point + cut, nfs_rows);
    }
    if (code == 0 && nfs->count == 0)
        return fail(ENOENT, "the data is not on NFS");
    return code ? code : probe_add_file(probe, "%s/self/mountstats", site->roots->proc);
}

static void nfs_sample(const struct probe *probe, uint64_t *values)
{
    struct nfs_probe *nfs = probe->state;
    struct nfs_counters counters;
    struct text text;

    if (procfile_read(probe->files, &text))
        return;
    for (uint32_t i = 0; i < nfs->count; i++)
        values = nfs_parse(text, nfs->points[i], &counters)
                     ? metric_put_rows(nfs_rows, &counters, values)
                     : metric_skip_rows(nfs_rows, values);
}

const struct probe_ops probe_nfs = {
    .plugin = {.name = "nfs",
               .summary = "NFS mounts of the data: bytes from the server, READs, latencies",
               .state_size = sizeof(struct nfs_probe)},
    .open = nfs_open,
    .sample = nfs_sample,
};

/* ---- Lustre ---- */

/* "read_bytes  COUNT samples [bytes] MINIMUM MAXIMUM SUM SUM-OF-SQUARES" */
static void add_line(struct text line, uint64_t *count, uint64_t *bytes)
{
    struct text word;
    uint64_t samples, minimum, maximum, sum;

    if (!text_u64(&line, &samples) || !text_word(&line, &word) || !text_is(word, "samples") ||
        !text_word(&line, &word) || !text_is(word, "[bytes]") || !text_u64(&line, &minimum) ||
        !text_u64(&line, &maximum) || !text_u64(&line, &sum))
        return;
    *count += samples;
    *bytes += sum;
}

bool lustre_add_stats(struct text text, struct lustre_counters *counters)
{
    struct text line, name;
    bool found = false;

    while (text_line(&text, &line)) {
        if (!text_word(&line, &name))
            continue;
        if (text_is(name, "snapshot_time"))
            found = true;
        else if (text_is(name, "read_bytes"))
            add_line(line, &counters->reads, &counters->read_bytes);
        else if (text_is(name, "write_bytes"))
            add_line(line, &counters->writes, &counters->write_bytes);
    }
    return found;
}

/* ---- the probe ---- */

enum { FILES_MAX = 4096 };

struct lustre_probe {
    uint32_t application_count; /* of the files, which come first; the others are the server's */
};

static const struct metric_row application_rows[] = {
    {"application_read_bytes", offsetof(struct lustre_counters, read_bytes), METRIC_COUNTER, 1},
    {"application_write_bytes", offsetof(struct lustre_counters, write_bytes), METRIC_COUNTER, 1},
    {0},
};

static const struct metric_row server_rows[] = {
    {"server_read_bytes", offsetof(struct lustre_counters, read_bytes), METRIC_COUNTER, 1},
    {"server_write_bytes", offsetof(struct lustre_counters, write_bytes), METRIC_COUNTER, 1},
    {"server_read_count", offsetof(struct lustre_counters, reads), METRIC_COUNTER, 1},
    {0},
};

/* Older versions have them in /proc, newer ones in debugfs, which only root may read. */
static int find_layer(const struct telemetry_roots *roots, const char *name,
                      struct folder_names *found)
{
    char pattern[512];

    snprintf(pattern, sizeof pattern, "%s/fs/lustre/%s/*/stats", roots->proc, name);
    int code = folder_names_matching(found, pattern);
    if (code == 0 && found->count == 0) {
        snprintf(pattern, sizeof pattern, "%s/kernel/debug/lustre/%s/*/stats", roots->sys, name);
        code = folder_names_matching(found, pattern);
    }
    return code;
}

static int lustre_open(struct probe *probe, const struct probe_site *site)
{
    static const char *const layers[] = {"llite", "osc"};
    static const struct metric_row *const layer_rows[] = {application_rows, server_rows};
    struct lustre_probe *lustre = probe->state;
    int code = 0;

    for (int layer = 0; layer < 2 && code == 0; layer++) {
        struct folder_names found;
        code = find_layer(site->roots, layers[layer], &found);
        for (size_t i = 0; code == 0 && i < found.count && i < FILES_MAX; i++)
            code = probe_add_file(probe, "%s", found.list[i]);
        if (code == 0 && found.count)
            code = metric_add_rows(&probe->metrics, "", layer_rows[layer]);
        folder_names_release(&found);
        if (layer == 0)
            lustre->application_count = probe->file_count;
    }
    return code == 0 && probe->file_count == 0
               ? fail(ENOENT, "no Lustre client counters on this node")
               : code;
}

/* A sum with a missing part is missing. */
static void lustre_sample(const struct probe *probe, uint64_t *values)
{
    const struct lustre_probe *lustre = probe->state;
    const uint32_t ends[] = {lustre->application_count, probe->file_count};
    static const struct metric_row *const layer_rows[] = {application_rows, server_rows};
    uint32_t i = 0;

    for (int layer = 0; layer < 2; layer++) {
        struct lustre_counters counters = {0};
        struct text text;
        bool known = true;
        if (i == ends[layer])
            continue;
        for (; i < ends[layer]; i++)
            known = known && procfile_read(&probe->files[i], &text) == 0 &&
                    lustre_add_stats(text, &counters);
        values = known ? metric_put_rows(layer_rows[layer], &counters, values)
                       : metric_skip_rows(layer_rows[layer], values);
    }
}

static int lustre_usable(void)
{
    struct folder_names found;
    int code = find_layer(&telemetry_roots_usual, "llite", &found);

    if (code == 0 && found.count == 0)
        code = fail(ENOENT, "no Lustre client counters on this node");
    folder_names_release(&found);
    return code;
}

const struct probe_ops probe_lustre = {
    .plugin = {.name = "lustre",
               .summary = "Lustre client: bytes to applications and from servers",
               .state_size = sizeof(struct lustre_probe),
               .usable = lustre_usable},
    .open = lustre_open,
    .sample = lustre_sample,
};
