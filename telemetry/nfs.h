/* SPDX-License-Identifier: Apache-2.0
 *
 * nfs: counters of one NFS mount from /proc/self/mountstats. Layout: see
 * nfs_show_stats() in fs/nfs/super.c and rpc_clnt_show_stats() in net/sunrpc/stats.c,
 * "statvers=1.0" and "1.1". Pure functions; any thread.
 */
#ifndef IOBENCH_TELEMETRY_NFS_H
#define IOBENCH_TELEMETRY_NFS_H

#include "telemetry/text.h"

/* Of one operation; times are sums in milliseconds. */
struct nfs_operation {
    uint64_t count, transmissions, major_timeouts;
    uint64_t retransmissions;            /* requests sent more than once */
    uint64_t sent_bytes, received_bytes; /* with RPC headers, about 110 bytes per READ */
    uint64_t queue_ms, rtt_ms, execute_ms;
    uint64_t errors; /* statvers 1.1 */
};

struct nfs_counters {
    uint64_t normal_read_bytes, direct_read_bytes; /* requested by applications */
    uint64_t server_read_bytes, server_written_bytes;
    uint64_t read_pages;       /* including mmap */
    struct nfs_operation read; /* READ and READ_PLUS */
    struct nfs_operation write;
    uint64_t connections; /* "xprt:" lines: nconnect; shared by all mounts of the server */
    uint64_t sends, receives, bad_ids;
};

/* Is this the type of an NFS mount ("nfs", "nfs4")? */
bool nfs_is_type(const char *type);

/* Parse the counters of the mount at a mount point (unescaped). Of several mounts at one point take
 * the last, which hides the others. Returns false if there is no such NFS mount. */
bool nfs_parse(struct text mountstats, const char *point, struct nfs_counters *counters);

#endif
