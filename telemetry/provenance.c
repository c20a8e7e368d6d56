/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/provenance.h"

#include <math.h>
#include <string.h>

static bool is_there(const struct series *series, const char *probe, const char *quantity)
{
    return series_find(series, probe, NULL, quantity) < series->metric_count;
}

/* Return whether a soft-RoCE port takes its counters from this interface. */
static bool is_beneath_port(const struct series *series, const char *interface)
{
    for (uint32_t i = 0; i < series->metric_count; i++) {
        const struct metric *metric = &series->metrics[i];
        const char *at = strchr(metric->part, '@');
        if (strcmp(metric->probe, "infiniband") == 0 && at && strcmp(at + 1, interface) == 0)
            return true;
    }
    return false;
}

/* The port's counters already include IPoIB bytes. */
static bool counts_twice(const struct series *series, const struct metric *metric)
{
    return strcmp(metric->probe, "net") == 0 &&
           (strncmp(metric->part, "ib", 2) == 0 || is_beneath_port(series, metric->part));
}

/* Sum over all parts of a probe; NAN if none is known. */
static double grown(const struct series *series, const char *probe, const char *quantity,
                    uint64_t from_ns, uint64_t to_ns)
{
    double sum = NAN;

    for (uint32_t i = 0; i < series->metric_count; i++) {
        const struct metric *metric = &series->metrics[i];
        if (strcmp(metric->probe, probe) != 0 || strcmp(metric->quantity, quantity) != 0 ||
            counts_twice(series, metric))
            continue;
        double part = series_total(series, i, from_ns, to_ns);
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

/* Bytes counted by clients of storage servers; NAN without any. */
static double from_servers(const struct series *series, uint64_t from_ns, uint64_t to_ns)
{
    return add_known(grown(series, "nfs", "server_read_bytes", from_ns, to_ns),
                     grown(series, "lustre", "server_read_bytes", from_ns, to_ns));
}

static enum provenance_witness witness_of(const struct series *series, double received)
{
    if (is_there(series, "nfs", "server_read_bytes") ||
        is_there(series, "lustre", "server_read_bytes"))
        return PROVENANCE_SERVER;
    if (is_there(series, "disk", "read_bytes"))
        return PROVENANCE_DISK;
    return isnan(received) || is_there(series, "disk", "memory_count") ? PROVENANCE_NOTHING
                                                                       : PROVENANCE_RECEIVED;
}

/* The process's counter is exact but includes NFS, and what a loop device reads from the cached
 * pages of its file; device counters include other processes. */
static double from_disks(const struct series *series, double servers, uint64_t from_ns,
                         uint64_t to_ns)
{
    if (!is_there(series, "disk", "read_bytes"))
        return 0;
    double process = grown(series, "process", "read_bytes", from_ns, to_ns);
    if (isnan(process) || is_there(series, "disk", "loop_file_count"))
        return grown(series, "disk", "read_bytes", from_ns, to_ns);
    return at_least_0(process - (isnan(servers) ? 0 : servers));
}

void provenance_take(const struct series *series, uint64_t from_ns, uint64_t to_ns,
                     struct provenance *provenance)
{
    const double servers = from_servers(series, from_ns, to_ns);

    *provenance = (struct provenance){
        .read = grown(series, "pipeline", "read_bytes", from_ns, to_ns),
        .local = from_disks(series, servers, from_ns, to_ns),
        .received = add_known(grown(series, "infiniband", "receive_bytes", from_ns, to_ns),
                              grown(series, "net", "receive_bytes", from_ns, to_ns)),
        .sent = add_known(grown(series, "infiniband", "transmit_bytes", from_ns, to_ns),
                          grown(series, "net", "transmit_bytes", from_ns, to_ns)),
        .gradients = grown(series, "pipeline", "gradient_bytes", from_ns, to_ns),
    };
    /* Neither the process's nor the disk's counter includes commands that the reader sends to it.
     */
    const double commands = grown(series, "pipeline", "passthrough_bytes", from_ns, to_ns);
    if (commands > 0)
        provenance->local = add_known(provenance->local, commands);
    provenance->excess = provenance->received - provenance->sent;
    /* Bytes that no page cache of this machine holds: the reader itself has them from the server.
     */
    const double asked = grown(series, "pipeline", "client_bytes", from_ns, to_ns);
    provenance->witness = asked > 0 ? PROVENANCE_SERVER : witness_of(series, provenance->received);
    switch (provenance->witness) {
    case PROVENANCE_SERVER:
        provenance->fabric = asked > 0 ? add_known(servers, asked) : servers;
        break;
    case PROVENANCE_RECEIVED:
        provenance->fabric = at_least_0(provenance->excess);
        break;
    default:
        provenance->fabric = 0;
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
