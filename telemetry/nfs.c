/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/nfs.h"

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

static void parse_bytes(struct text line, struct nfs_counters *counters)
{
    uint64_t values[8] = {0};

    for (int i = 0; i < 8; i++)
        if (!text_u64(&line, &values[i]))
            return;
    counters->normal_read_bytes = values[0];
    counters->direct_read_bytes = values[2];
    counters->server_read_bytes = values[4];
    counters->server_written_bytes = values[5];
    counters->read_pages = values[6];
}

/* udp: port bind sends recvs bad_xid ...; tcp and rdma: port bind connect connect_time idle
 * sends recvs bad_xid ... */
static void parse_transport(struct text line, struct nfs_counters *counters)
{
    struct text kind;
    uint64_t values[8] = {0};
    int count = 0;

    if (!text_word(&line, &kind))
        return;
    while (count < 8 && text_u64(&line, &values[count]))
        count++;
    const int first = text_is(kind, "udp") ? 2 : 5;
    counters->connections++;
    if (count < first + 3)
        return;
    counters->sends += values[first];
    counters->receives += values[first + 1];
    counters->bad_ids += values[first + 2];
}

static void parse_operation(struct text line, struct nfs_operation *operation)
{
    uint64_t values[9] = {0};
    int count = 0;

    while (count < 9 && text_u64(&line, &values[count]))
        count++;
    if (count < 8)
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

static void parse_line(struct text line, struct nfs_counters *counters)
{
    struct text word;

    if (!text_word(&line, &word))
        return;
    if (text_is(word, "bytes:"))
        parse_bytes(line, counters);
    else if (text_is(word, "xprt:"))
        parse_transport(line, counters);
    else if (text_is(word, "READ:") || text_is(word, "READ_PLUS:"))
        parse_operation(line, &counters->read);
    else if (text_is(word, "WRITE:"))
        parse_operation(line, &counters->write);
}

bool nfs_is_type(const char *type)
{
    return strcmp(type, "nfs") == 0 || strcmp(type, "nfs4") == 0;
}

bool nfs_parse(struct text mountstats, const char *point, struct nfs_counters *counters)
{
    struct text line;
    bool wanted = false, found = false;

    while (text_line(&mountstats, &line)) {
        bool inside = wanted;
        if (starts_mount(line, point, &wanted)) {
            if (wanted)
                *counters = (struct nfs_counters){0}, found = true;
        } else if (inside) {
            parse_line(line, counters);
        }
    }
    return found;
}

/* ---- the probe ---- */

enum { MOUNTS_MAX = 16 };

struct nfs_probe {
    struct procfile mountstats;
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

static int add_mount(struct nfs_probe *nfs, const char *point, struct probe_traits *traits)
{
    for (uint32_t i = 0; i < nfs->count; i++)
        if (strcmp(nfs->points[i], point) == 0)
            return 0;
    if (nfs->count == MOUNTS_MAX)
        return fail(E2BIG, "the data is on more than %d NFS mounts", MOUNTS_MAX);
    snprintf(nfs->points[nfs->count++], sizeof nfs->points[0], "%s", point);
    /* The tail of a long mount point is more telling than its head. */
    size_t length = strlen(point);
    return metric_add_rows(
        &traits->metrics,
        length < METRIC_PART_BYTES ? point : point + length - METRIC_PART_BYTES + 1, rows);
}

static int nfs_open(void *state, const void *settings, const struct probe_site *site,
                    struct probe_traits *traits)
{
    struct nfs_probe *nfs = state;
    struct mount mount;
    int code = 0;

    (void)settings;
    for (size_t i = 0; i < site->path_count && code == 0; i++) {
        code = mount_of_path(site->roots, site->paths[i], &mount);
        if (code == 0 && nfs_is_type(mount.type))
            code = add_mount(nfs, mount.point, traits);
    }
    if (code == 0 && nfs->count == 0)
        return fail(ENOENT, "the data is not on NFS");
    return code ? code : procfile_open(&nfs->mountstats, "%s/self/mountstats", site->roots->proc);
}

static void nfs_close(void *state)
{
    struct nfs_probe *nfs = state;

    procfile_close(&nfs->mountstats);
}

static void nfs_sample(void *state, uint64_t *values)
{
    struct nfs_probe *nfs = state;
    struct nfs_counters counters;
    struct text text;

    if (procfile_read(&nfs->mountstats, &text))
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
    .close = nfs_close,
    .sample = nfs_sample,
};
