/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/provenance.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static bool is_there(const struct series *series, const char *probe, const char *quantity)
{
    return series_find(series, probe, NULL, quantity) < series->metric_count;
}

/* Sum over all parts of a probe; NAN if none is known. */
static double grown(const struct series *series, const char *probe, const char *quantity,
                    uint64_t from_ns, uint64_t to_ns)
{
    double sum = NAN;

    for (uint32_t i = 0; i < series->metric_count; i++) {
        const struct metric *metric = &series->metrics[i];
        if (strcmp(metric->probe, probe) != 0 || strcmp(metric->quantity, quantity) != 0)
            continue;
        /* A port's counters already include IPoIB bytes, and those of soft RoCE are its
         * interface's. */
        bool twice = strcmp(probe, "net") == 0 && strncmp(metric->part, "ib", 2) == 0;
        for (uint32_t k = 0; k < series->metric_count && strcmp(probe, "net") == 0; k++) {
            const char *at = strchr(series->metrics[k].part, '@');
            twice |= strcmp(series->metrics[k].probe, "infiniband") == 0 && at &&
                     strcmp(at + 1, metric->part) == 0;
        }
        const double part = twice ? NAN : series_total(series, i, from_ns, to_ns);
        if (!isnan(part))
            sum = (isnan(sum) ? 0 : sum) + part;
    }
    return sum;
}

static double add_known(double a, double b)
{
    return isnan(a) ? b : isnan(b) ? a : a + b;
}

static double at_least_0(double value)
{
    return value <= 0 ? 0 : value; /* NAN stays */
}

void provenance_take(const struct series *series, uint64_t from_ns, uint64_t to_ns,
                     struct provenance *provenance)
{
    /* Bytes counted by clients of storage servers; NAN without any. */
    const double servers = add_known(grown(series, "nfs", "server_read_bytes", from_ns, to_ns),
                                     grown(series, "lustre", "server_read_bytes", from_ns, to_ns));
    const bool has_disks = is_there(series, "disk", "read_bytes");

    *provenance = (struct provenance){
        .read = grown(series, "pipeline", "read_bytes", from_ns, to_ns),
        .received = add_known(grown(series, "infiniband", "receive_bytes", from_ns, to_ns),
                              grown(series, "net", "receive_bytes", from_ns, to_ns)),
        .sent = add_known(grown(series, "infiniband", "transmit_bytes", from_ns, to_ns),
                          grown(series, "net", "transmit_bytes", from_ns, to_ns)),
        .gradients = grown(series, "pipeline", "gradient_bytes", from_ns, to_ns),
    };
    /* The process's counter is exact but includes NFS, and what a loop device reads from the cached
     * pages of its file; device counters include other processes. */
    if (has_disks) {
        const double process = grown(series, "process", "read_bytes", from_ns, to_ns);
        provenance->local = isnan(process) || is_there(series, "disk", "loop_file_count")
                                ? grown(series, "disk", "read_bytes", from_ns, to_ns)
                                : at_least_0(process - (isnan(servers) ? 0 : servers));
    }
    /* Neither the process's nor the disk's counter includes commands that the reader sends to it.
     */
    const double commands = grown(series, "pipeline", "passthrough_bytes", from_ns, to_ns);
    if (commands > 0)
        provenance->local = add_known(provenance->local, commands);
    provenance->excess = provenance->received - provenance->sent;
    /* Bytes that no page cache of this machine holds: the reader itself has them from the server.
     */
    const double asked = grown(series, "pipeline", "client_bytes", from_ns, to_ns);
    if (asked > 0 || is_there(series, "nfs", "server_read_bytes") ||
        is_there(series, "lustre", "server_read_bytes")) {
        provenance->witness = PROVENANCE_SERVER;
        provenance->fabric = asked > 0 ? add_known(servers, asked) : servers;
    } else if (has_disks) {
        provenance->witness = PROVENANCE_DISK;
    } else if (isnan(provenance->received) || is_there(series, "disk", "memory_count")) {
        provenance->witness = PROVENANCE_NOTHING;
    } else {
        provenance->witness = PROVENANCE_RECEIVED;
        provenance->fabric = at_least_0(provenance->excess);
    }
    const double rest = provenance->read - provenance->local - provenance->fabric;
    provenance->page_cache = at_least_0(rest);
    provenance->ahead = at_least_0(-rest);
}

const char *const provenance_keys[PROVENANCE_PARTS] = {
    "read_bytes",        "from_page_cache_bytes", "from_local_bytes",
    "from_fabric_bytes", "ahead_bytes",           "fabric_receive_bytes",
    "fabric_send_bytes", "fabric_excess_bytes",   "expected_gradient_bytes",
};

double *provenance_part(struct provenance *provenance, int part)
{
    double *const parts[PROVENANCE_PARTS] = {
        &provenance->read,   &provenance->page_cache, &provenance->local,
        &provenance->fabric, &provenance->ahead,      &provenance->received,
        &provenance->sent,   &provenance->excess,     &provenance->gradients,
    };

    assert(part >= 0 && part < PROVENANCE_PARTS);
    return parts[part];
}

void provenance_add(struct provenance *sum, const struct provenance *part)
{
    struct provenance copy = *part;

    for (int i = 0; i < PROVENANCE_PARTS; i++)
        *provenance_part(sum, i) += *provenance_part(&copy, i);
    sum->witness = part->witness;
}

const char *provenance_witness_text(enum provenance_witness witness)
{
    static const char *const texts[] = {
        [PROVENANCE_NOTHING] = "no disk and no network serves the data",
        [PROVENANCE_DISK] = "bytes this process read from block devices",
        [PROVENANCE_SERVER] = "bytes that the file system's server sent",
        [PROVENANCE_RECEIVED] = "bytes received minus bytes sent, by the whole node",
    };

    return texts[witness];
}
