/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/nfs.h"

#include "telemetry/mount.h"

#include <string.h>

/* "device SERVER:/EXPORT mounted on POINT with fstype nfs4 statvers=1.1" */
static bool starts_mount(struct text line, const char *point, bool *wanted)
{
    char name[512];
    struct text word, type;

    if (!text_skip(&line, "device "))
        return false;
    *wanted = false;
    /* A source or a point may hold anything but a blank, which is written as \040. */
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

bool nfs_parse(struct text mountstats, const char *point, struct nfs_counters *counters)
{
    struct text line;
    bool wanted = false;

    *counters = (struct nfs_counters){0};
    while (text_line(&mountstats, &line)) {
        bool inside = wanted;
        if (starts_mount(line, point, &wanted)) {
            if (wanted)
                *counters = (struct nfs_counters){.found = true};
        } else if (inside) {
            parse_line(line, counters);
        }
    }
    return counters->found;
}
