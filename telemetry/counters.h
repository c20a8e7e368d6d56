/* SPDX-License-Identifier: Apache-2.0
 *
 * counters: what files of /proc and /sys say, parsed. Pure functions but for infiniband_list(); any
 * thread.
 */
#ifndef IOBENCH_TELEMETRY_COUNTERS_H
#define IOBENCH_TELEMETRY_COUNTERS_H

#include "telemetry/probe.h"

/* ---- block devices (Documentation/admin-guide/iostats.rst) ---- */

enum { DISK_SECTOR_BYTES = 512 }; /* whatever the device's sector size */

struct disk_counters {
    uint64_t reads, reads_merged, read_sectors, read_ms;
    uint64_t writes, writes_merged, write_sectors, write_ms;
    uint64_t in_flight;
    uint64_t busy_ms;  /* too low on multi-queue devices: not a measure of load */
    uint64_t queue_ms; /* requests in flight, integrated over time */
};

/* Parse /sys/block/NAME/stat; more fields may follow. */
bool disk_parse_stat(struct text text, struct disk_counters *counters);

/* ---- a control group (cgroup-v2.rst and cgroup-v1/blkio-controller.rst) ---- */

struct cgroup_counters {
    uint64_t read_bytes, write_bytes, reads, writes;
};

/* Add the io.stat (version 2) counters of one device. Returns false if the device is not listed. */
bool cgroup_add_io_stat(struct text text, unsigned device_major, unsigned device_minor,
                        struct cgroup_counters *counters);

/* Like the above, for blkio.throttle.io_service_bytes (version 1): bytes only. */
bool cgroup_add_blkio(struct text text, unsigned device_major, unsigned device_minor,
                      struct cgroup_counters *counters);

/* ---- processors, memory, interfaces, processes (proc(5)) ---- */

/* In ticks of sysconf(_SC_CLK_TCK), usually 10 ms. */
struct cpu_counters {
    uint64_t user, nice, system, idle, io_wait, interrupt, soft_interrupt, steal;
    uint64_t user_all, system_all; /* user and nice; system and both kinds of interrupts */
};

/* Parse the next line of /proc/stat, "cpu" (all) or "cpuN". Returns false at any other line. */
bool cpu_parse_next(struct text *text, struct text *name, struct cpu_counters *counters);

/* Levels in KiB. */
struct meminfo_levels {
    uint64_t total, free, available, buffers, cached, dirty, writeback, shared;
};

/* Missing levels are PROBE_MISSING. Returns false without a total. */
bool meminfo_parse(struct text text, struct meminfo_levels *levels);

/* RDMA over Converged Ethernet bypasses these counters. */
struct net_counters {
    uint64_t receive_bytes, receive_packets, receive_errors, receive_drops;
    uint64_t transmit_bytes, transmit_packets, transmit_errors, transmit_drops;
};

/* Parse the next interface of /proc/net/dev; its name without the colon. Returns false at the end.
 */
bool net_parse_next(struct text *text, struct text *name, struct net_counters *counters);

struct process_counters {
    uint64_t read_calls_bytes; /* rchar: read(2) etc., without io_uring */
    uint64_t read_calls;       /* syscr */
    uint64_t read_bytes;       /* from block devices and NFS, by any call, with read-ahead */
    uint64_t write_bytes;      /* to the page cache, for write-back */
};

/* Parse /proc/PID/io. Returns false without read_bytes. */
bool process_parse_io(struct text text, struct process_counters *counters);

/* Time that tasks stalled on a resource (Documentation/accounting/psi.rst). */
struct pressure_counters {
    uint64_t some_us; /* at least one task waited */
    uint64_t full_us; /* all tasks waited; 0 for the CPU on older kernels */
};

bool pressure_parse(struct text text, struct pressure_counters *counters);

/* ---- NFS: nfs_show_stats() in fs/nfs/super.c and rpc_clnt_show_stats() in net/sunrpc/stats.c,
 *      "statvers=1.0" and "1.1" ---- */

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

bool nfs_is_type(const char *type); /* "nfs", "nfs4" */

/* Parse the counters of the mount at a mount point (unescaped). Of several mounts at one point take
 * the last, which hides the others. Returns false if there is no such NFS mount. */
bool nfs_parse(struct text mountstats, const char *point, struct nfs_counters *counters);

/* ---- Lustre ("Lustre Operations Manual", chapter Lustre Parameters) ---- */

/* llite.*.stats counts what applications requested, osc.*.stats what servers sent. */
struct lustre_counters {
    uint64_t read_bytes, write_bytes, reads, writes;
};

/* Add the sums of one stats file. An unused counter has no line and counts 0. Returns false if
 * malformed. */
bool lustre_add_stats(struct text text, struct lustre_counters *counters);

/* ---- ports of InfiniBand, RoCE and Omni-Path adapters (ABI/stable/sysfs-class-infiniband) ----
 *
 * port_rcv_data and port_xmit_data count words of 4 bytes, headers included. On RoCE they count
 * RDMA only; TCP over the same adapter is counted by the network interface only. Drivers without
 * 64-bit counters saturate at 2^32 - 1. Software RDMA (rxe) has no such counters: the network
 * interface beneath counts the bytes, together with all other traffic, and parts are named
 * "rxe0/1@eth0". */

enum { INFINIBAND_PORTS_MAX = 64 };

struct infiniband_port {
    char device[40]; /* "mlx5_0" */
    unsigned number;
    char link_layer[16]; /* "InfiniBand" or "Ethernet" */
    bool active;
    double gbit_per_s;  /* from the driver; always 2.5 with rxe; 0: unknown */
    char interface[32]; /* network interface beneath; "" */
};

/* List at most maximum ports. Returns the count. Off the clock. */
uint32_t infiniband_list(const struct telemetry_roots *roots, struct infiniband_port *ports,
                         uint32_t maximum);

/* Parse "100 Gb/sec (4X EDR)". Returns 0 if malformed. */
double infiniband_parse_rate(struct text text);

#endif
