/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/counters.h"

#include "base/fail.h"
#include "telemetry/mount.h"
#include "telemetry/plugins.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

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

static const struct metric_row rows[] = {
    {"server_read_bytes", offsetof(struct nfs_counters, server_read_bytes), METRIC_COUNTER, 1},
    {"application_read_bytes", offsetof(struct nfs_counters, normal_read_bytes), METRIC_COUNTER, 1},
    {"application_direct_bytes", offsetof(struct nfs_counters, direct_read_bytes), METRIC_COUNTER,
     1},
    {"server_written_bytes", offsetof(struct nfs_counters, server_written_bytes), METRIC_COUNTER,
     1},
    {"read_page_count", offsetof(struct nfs_counters, read_pages), METRIC_COUNTER, 1},
    {"read_count", offsetof(struct nfs_counters, read.count), METRIC_COUNTER, 1},
    {"read_transmission_count", offsetof(struct nfs_counters, read.transmissions), METRIC_COUNTER,
     1},
    {"read_retransmission_count", offsetof(struct nfs_counters, read.retransmissions),
     METRIC_COUNTER, 1},
    {"read_timeout_count", offsetof(struct nfs_counters, read.major_timeouts), METRIC_COUNTER, 1},
    {"read_wire_bytes", offsetof(struct nfs_counters, read.received_bytes), METRIC_COUNTER, 1},
    {"read_queue_ms", offsetof(struct nfs_counters, read.queue_ms), METRIC_COUNTER, 1},
    {"read_rtt_ms", offsetof(struct nfs_counters, read.rtt_ms), METRIC_COUNTER, 1},
    {"read_execute_ms", offsetof(struct nfs_counters, read.execute_ms), METRIC_COUNTER, 1},
    {"read_error_count", offsetof(struct nfs_counters, read.errors), METRIC_COUNTER, 1},
    {"connection_count", offsetof(struct nfs_counters, connections), METRIC_LEVEL, 1},
    {"send_count", offsetof(struct nfs_counters, sends), METRIC_COUNTER, 1},
    {"receive_count", offsetof(struct nfs_counters, receives), METRIC_COUNTER, 1},
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
        code = metric_add_rows(&probe->metrics, mount.point + cut, rows);
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
                     ? metric_put_rows(rows, &counters, values)
                     : metric_skip_rows(rows, values);
}

const struct probe_ops probe_nfs = {
    .plugin = {.name = "nfs",
               .summary = "NFS mounts of the data: bytes from the server, READs, latencies",
               .state_size = sizeof(struct nfs_probe)},
    .open = nfs_open,
    .sample = nfs_sample,
};
