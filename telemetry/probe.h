/* SPDX-License-Identifier: Apache-2.0
 *
 * probe: read counters of the machine: disks, networks, processors. Values are raw, as the kernel
 * reports them; telemetry/series.h derives rates, and handles counters that wrapped, restarted or
 * were missing.
 *
 * open() lists a probe's metrics. sample() stores one number for each, without allocating; a value
 * that is unavailable (an unplugged device) is PROBE_MISSING. One thread opens, samples and closes.
 * Only telemetry/probe.c calls through the ops.
 *
 * The roots of the kernel's files (--proc-root, --sysfs-root) are arguments, so that a probe can
 * read a host's files from inside a container, or a test's.
 */
#ifndef IOBENCH_TELEMETRY_PROBE_H
#define IOBENCH_TELEMETRY_PROBE_H

#include "base/file.h"
#include "base/plugin.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- files below /proc and /sys, and their text ---- */

/* Text of such a file: lines, words, numbers. Never reads past the end, allocates nothing. Any
 * thread. */
struct text {
    const char *at, *end;
};

/* Roots of the kernel's files. A container sees less than its host; the host's /sys, bind-mounted
 * elsewhere, shows the rest. */
struct telemetry_roots {
    const char *proc; /* "/proc" */
    const char *sys;  /* "/sys" */
};

extern const struct telemetry_roots telemetry_roots_usual;

struct procfile {
    int fd; /* -1: none */
    char *buffer;
    size_t buffer_bytes;
};

/* Open, and read once to size the buffer, with room for growth. Returns 0, or a negative errno with
 * a reason. Close in either case. */
int procfile_open(struct procfile *file, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void procfile_close(struct procfile *file); /* a zeroed one is fine */

/* Re-read; text that no longer fits is cut at a line end. Returns 0, or a negative errno without a
 * reason: -ENODEV if the device is gone. */
int procfile_read(struct procfile *file, struct text *text);

struct text text_of(const char *bytes, size_t count);
struct text text_of_string(const char *string);

/* Each consumes its part from the front of *text. Returns false if none is left. */
bool text_line(struct text *text, struct text *line);             /* without its newline */
bool text_word(struct text *text, struct text *word);             /* between blanks and tabs */
bool text_until(struct text *text, char mark, struct text *part); /* consumes the mark, too */

/* Consume a decimal number; if the next word is not a number, or does not fit, consume nothing. */
bool text_u64(struct text *text, uint64_t *value);
/* Consume the numbers that follow, at most these many. Returns how many. */
unsigned text_numbers(struct text *text, uint64_t *values, unsigned most);

bool text_is(struct text text, const char *string);
bool text_starts(struct text text, const char *prefix);
bool text_skip(struct text *text, const char *prefix); /* consume the prefix */

/* Copy with a NUL, truncated if longer. Returns copy. */
char *text_copy(struct text text, char *copy, size_t copy_bytes);

/* ---- probes ---- */

#define PROBE_MISSING UINT64_MAX

enum metric_kind {
    METRIC_COUNTER, /* grows; its rate is of interest */
    METRIC_LEVEL,   /* goes up and down */
};

enum { METRIC_PART_BYTES = 64, METRIC_QUANTITY_BYTES = 40 };

struct metric {
    const char *probe;                    /* "disk" */
    char part[METRIC_PART_BYTES];         /* "vda"; "" if there is only one */
    char quantity[METRIC_QUANTITY_BYTES]; /* "read_bytes": the quantity, with the unit last */
    enum metric_kind kind;
    uint8_t bits;   /* a counter wraps at 2 to the power of bits; 64: never */
    bool saturates; /* a 32-bit counter that stays at its maximum instead */
    uint32_t scale; /* raw number x scale = value in the unit of the name */
};

/* A row of a table of metrics over a struct of uint64_t fields. */
struct metric_row {
    const char *quantity; /* NULL ends the table */
    size_t offset;
    enum metric_kind kind;
    uint32_t scale; /* 0 is 1 */
};

struct metric_list {
    const char *probe; /* set by probe_open */
    struct metric *metrics;
    uint32_t count;
};

struct probe_site {
    const struct telemetry_roots *roots;
    const char *const *paths; /* the data, whose storage is probed */
    size_t path_count;
    const int *pids;  /* processes to watch, summed */
    size_t pid_count; /* 0: this one */
};

struct probe;

struct probe_ops {
    struct plugin plugin;
    /* Returns -ENOENT with a reason if this machine has nothing to probe. */
    int (*open)(struct probe *probe, const struct probe_site *site);
    void (*close)(struct probe *probe); /* after every open, failed ones too; NULL: nothing to do */
    /* values: one per metric, preset to PROBE_MISSING. */
    void (*sample)(const struct probe *probe, uint64_t *values);
};

extern const struct plugin *const probe_registry[];

struct probe {
    const struct probe_ops *ops;
    void *state;          /* the plug-in's, zeroed */
    const void *settings; /* until open() returns */
    struct metric_list metrics;
    struct procfile *files; /* opened by probe_add_file(), closed by probe.c */
    uint32_t file_count;
    /* A sample takes milliseconds or must not be taken often: use a thread of its own and at least
     * this interval. 0: neither. */
    uint64_t slow_interval_ns;
};

/* Returns 0 or a negative errno with a reason; close in either case. Does not call the plug-in's
 * usable(), which knows only the default roots. */
int probe_open(struct probe *probe, const struct plugin_choice *choice,
               const struct probe_site *site);
void probe_close(struct probe *probe);
void probe_sample(struct probe *probe, uint64_t *values);

/* ---- for probes ---- */

/* Open a file to be read again for each sample. Returns 0, or a negative errno with a reason; the
 * file is then not in the list. */
int probe_add_file(struct probe *probe, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Add a metric and return it for further settings; NULL with a reason if out of memory. */
struct metric *metric_add(struct metric_list *list, const char *part, const char *quantity,
                          enum metric_kind kind, uint32_t scale);

int metric_add_rows(struct metric_list *list, const char *part, const struct metric_row *rows);

/* Store the numbers of a table's fields, or none; return the place after them. */
uint64_t *metric_put_rows(const struct metric_row *rows, const void *counters, uint64_t *values);
uint64_t *metric_skip_rows(const struct metric_row *rows, uint64_t *values);

/* ---- what files of /proc and /sys say, parsed: pure functions but for infiniband_list(); any
 *      thread ---- */

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

/* Counters of one operation; times are sums in milliseconds. */
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
