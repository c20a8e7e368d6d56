/* SPDX-License-Identifier: Apache-2.0
 *
 * The probes of processors, memory, pressure, processes and networks.
 */
#include "base/fail.h"
#include "base/folder.h"
#include "telemetry/probe.h"
#include "telemetry/plugins.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool cpu_parse_next(struct text *text, struct text *name, struct cpu_counters *counters)
{
    uint64_t values[8];
    struct text line;

    static_assert(offsetof(struct cpu_counters, user_all) == sizeof values, "in the file's order");
    if (!text_line(text, &line) || !text_word(&line, name) || !text_starts(*name, "cpu") ||
        text_numbers(&line, values, 8) < 8)
        return false;
    memcpy(counters, values, sizeof values);
    counters->user_all = counters->user + counters->nice;
    counters->system_all = counters->system + counters->interrupt + counters->soft_interrupt;
    return true;
}

enum { CPUS_MAX = 1024, CPU_NAME_BYTES = 16 };

struct cpu_probe {
    char names[CPUS_MAX][CPU_NAME_BYTES];
    uint32_t count;
};

/* The scale is the length of a tick. */
static const struct metric_row cpu_rows[] = {
    {"user_ms", offsetof(struct cpu_counters, user_all), METRIC_COUNTER, 0},
    {"system_ms", offsetof(struct cpu_counters, system_all), METRIC_COUNTER, 0},
    {"io_wait_ms", offsetof(struct cpu_counters, io_wait), METRIC_COUNTER, 0},
    {"idle_ms", offsetof(struct cpu_counters, idle), METRIC_COUNTER, 0},
    {0},
};
enum { CPU_ROWS = sizeof cpu_rows / sizeof cpu_rows[0] - 1 };

static int cpu_open(struct probe *probe, const struct probe_site *site)
{
    const uint32_t tick_ms = (uint32_t)(1000 / sysconf(_SC_CLK_TCK));
    struct cpu_probe *cpu = probe->state;
    struct cpu_counters counters;
    struct text text, name;
    int code = probe_add_file(probe, "%s/stat", site->roots->proc);

    if (code)
        return code;
    code = procfile_read(probe->files, &text);
    if (code)
        return fail(-code, "%s/stat: %s", site->roots->proc, fail_errno_text(code));
    while (cpu->count < CPUS_MAX && cpu_parse_next(&text, &name, &counters)) {
        char *copy = text_copy(name, cpu->names[cpu->count++], CPU_NAME_BYTES);
        /* The part "all" is the total. */
        for (const struct metric_row *row = cpu_rows; row->quantity; row++)
            if (!metric_add(&probe->metrics, copy[3] ? copy + 3 : "all", row->quantity, row->kind,
                            tick_ms))
                return -ENOMEM;
    }
    return 0;
}

/* Offline CPUs vanish from the text; the others keep their order. */
static void cpu_sample(const struct probe *probe, uint64_t *values)
{
    struct cpu_probe *cpu = probe->state;
    struct cpu_counters counters;
    struct text text, name;
    uint32_t at = 0;

    if (procfile_read(probe->files, &text))
        return;
    while (at < cpu->count && cpu_parse_next(&text, &name, &counters)) {
        uint32_t found = at;
        while (found < cpu->count && !text_is(name, cpu->names[found]))
            found++;
        if (found == cpu->count)
            continue; /* came online after the start */
        metric_put_rows(cpu_rows, &counters, values + (size_t)found * CPU_ROWS);
        at = found + 1;
    }
}

const struct probe_ops probe_cpu = {
    .plugin = {.name = "cpu",
               .summary = "processor time: user, system, I/O wait, idle",
               .state_size = sizeof(struct cpu_probe)},
    .open = cpu_open,
    .sample = cpu_sample,
};

bool meminfo_parse(struct text text, struct meminfo_levels *levels)
{
    const struct {
        const char *name;
        uint64_t *level;
    } names[] = {
        {"MemTotal:", &levels->total},         {"MemFree:", &levels->free},
        {"MemAvailable:", &levels->available}, {"Buffers:", &levels->buffers},
        {"Cached:", &levels->cached},          {"Dirty:", &levels->dirty},
        {"Writeback:", &levels->writeback},    {"Shmem:", &levels->shared},
    };
    struct text line, name;

    memset(levels, 0xff, sizeof *levels); /* PROBE_MISSING */
    while (text_line(&text, &line))
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
            struct text rest = line;
            if (text_word(&rest, &name) && text_is(name, names[i].name))
                text_u64(&rest, names[i].level);
        }
    return levels->total != PROBE_MISSING;
}

static const struct metric_row memory_rows[] = {
    {"free_bytes", offsetof(struct meminfo_levels, free), METRIC_LEVEL, 1024},
    {"available_bytes", offsetof(struct meminfo_levels, available), METRIC_LEVEL, 1024},
    {"cached_bytes", offsetof(struct meminfo_levels, cached), METRIC_LEVEL, 1024},
    {"buffer_bytes", offsetof(struct meminfo_levels, buffers), METRIC_LEVEL, 1024},
    {"dirty_bytes", offsetof(struct meminfo_levels, dirty), METRIC_LEVEL, 1024},
    {"writeback_bytes", offsetof(struct meminfo_levels, writeback), METRIC_LEVEL, 1024},
    {"shared_bytes", offsetof(struct meminfo_levels, shared), METRIC_LEVEL, 1024},
    {0},
};

static int meminfo_open(struct probe *probe, const struct probe_site *site)
{
    int code = probe_add_file(probe, "%s/meminfo", site->roots->proc);

    return code ? code : metric_add_rows(&probe->metrics, "", memory_rows);
}

static void meminfo_sample(const struct probe *probe, uint64_t *values)
{
    struct meminfo_levels levels;
    struct text text;

    if (procfile_read(probe->files, &text) == 0 && meminfo_parse(text, &levels))
        metric_put_rows(memory_rows, &levels, values);
}

const struct probe_ops probe_memory = {
    .plugin = {.name = "memory", .summary = "memory, page cache, dirty pages"},
    .open = meminfo_open,
    .sample = meminfo_sample,
};

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=12345" */
bool pressure_parse(struct text text, struct pressure_counters *counters)
{
    struct text line, kind, word;
    bool found = false;

    *counters = (struct pressure_counters){0};
    while (text_line(&text, &line)) {
        if (!text_word(&line, &kind))
            continue;
        uint64_t *total = text_is(kind, "some")   ? &counters->some_us
                          : text_is(kind, "full") ? &counters->full_us
                                                  : NULL;
        while (total && text_word(&line, &word))
            if (text_skip(&word, "total=") && text_u64(&word, total))
                found |= total == &counters->some_us;
    }
    return found;
}

static const struct metric_row pressure_rows[] = {
    {"some_us", offsetof(struct pressure_counters, some_us), METRIC_COUNTER, 1},
    {"full_us", offsetof(struct pressure_counters, full_us), METRIC_COUNTER, 1},
    {0},
};

static int pressure_open(struct probe *probe, const struct probe_site *site)
{
    static const char *const resources[] = {"io", "memory", "cpu"};
    int code = 0;

    for (size_t i = 0; i < sizeof resources / sizeof resources[0] && code == 0; i++) {
        code = probe_add_file(probe, "%s/pressure/%s", site->roots->proc, resources[i]);
        if (code == 0)
            code = metric_add_rows(&probe->metrics, resources[i], pressure_rows);
    }
    return code;
}

static void pressure_sample(const struct probe *probe, uint64_t *values)
{
    struct pressure_counters counters;
    struct text text;

    for (uint32_t i = 0; i < probe->file_count; i++)
        values = procfile_read(&probe->files[i], &text) == 0 && pressure_parse(text, &counters)
                     ? metric_put_rows(pressure_rows, &counters, values)
                     : metric_skip_rows(pressure_rows, values);
}

static int pressure_usable(void)
{
    return access("/proc/pressure/io", R_OK) == 0
               ? 0
               : fail(ENOENT,
                      "/proc/pressure/io: %s; the kernel needs CONFIG_PSI, or psi=1 at boot",
                      fail_errno_text(errno));
}

const struct probe_ops probe_pressure = {
    .plugin = {.name = "pressure",
               .summary = "time that tasks stalled on I/O, memory or CPU",
               .usable = pressure_usable},
    .open = pressure_open,
    .sample = pressure_sample,
};

bool process_parse_io(struct text text, struct process_counters *counters)
{
    struct text line, name;
    bool found = false;

    *counters = (struct process_counters){0};
    while (text_line(&text, &line)) {
        uint64_t value;
        if (!text_word(&line, &name) || !text_u64(&line, &value))
            continue;
        if (text_is(name, "rchar:"))
            counters->read_calls_bytes = value;
        else if (text_is(name, "syscr:"))
            counters->read_calls = value;
        else if (text_is(name, "read_bytes:"))
            counters->read_bytes = value, found = true;
        else if (text_is(name, "write_bytes:"))
            counters->write_bytes = value;
    }
    return found;
}

static const struct metric_row process_rows[] = {
    {"read_bytes", offsetof(struct process_counters, read_bytes), METRIC_COUNTER, 1},
    {"read_call_bytes", offsetof(struct process_counters, read_calls_bytes), METRIC_COUNTER, 1},
    {"read_call_count", offsetof(struct process_counters, read_calls), METRIC_COUNTER, 1},
    {"write_bytes", offsetof(struct process_counters, write_bytes), METRIC_COUNTER, 1},
    {0},
};

static int process_open(struct probe *probe, const struct probe_site *site)
{
    char pid[16] = "self";
    int code = 0;

    for (size_t i = 0; i < (site->pid_count ? site->pid_count : 1) && code == 0; i++) {
        if (site->pid_count)
            snprintf(pid, sizeof pid, "%d", site->pids[i]);
        code = probe_add_file(probe, "%s/%s/io", site->roots->proc, pid);
    }
    return code ? code : metric_add_rows(&probe->metrics, "", process_rows);
}

/* If one part is missing, so is the sum. */
static void process_sample(const struct probe *probe, uint64_t *values)
{
    struct process_counters sum = {0}, counters;
    struct text text;

    for (uint32_t i = 0; i < probe->file_count; i++) {
        if (procfile_read(&probe->files[i], &text) || !process_parse_io(text, &counters))
            return;
        sum.read_bytes += counters.read_bytes;
        sum.read_calls_bytes += counters.read_calls_bytes;
        sum.read_calls += counters.read_calls;
        sum.write_bytes += counters.write_bytes;
    }
    metric_put_rows(process_rows, &sum, values);
}

const struct probe_ops probe_process = {
    .plugin = {.name = "process", .summary = "bytes read and written by the process"},
    .open = process_open,
    .sample = process_sample,
};

/* "  eth0: bytes packets errs drop fifo frame compressed multicast | the same for sending"; old
 * kernels put no blank after the colon. */
bool net_parse_next(struct text *text, struct text *name, struct net_counters *counters)
{
    struct text line;

    while (text_line(text, &line)) {
        uint64_t values[12];
        while (line.at < line.end && (*line.at == ' ' || *line.at == '\t'))
            line.at++;
        if (!text_until(&line, ':', name) || text_numbers(&line, values, 12) < 12)
            continue;
        static_assert(sizeof *counters == 8 * sizeof *values, "the first four of each direction");
        memcpy(&counters->receive_bytes, values, 4 * sizeof *values);
        memcpy(&counters->transmit_bytes, values + 8, 4 * sizeof *values);
        return true;
    }
    return false;
}

enum { INTERFACES_MAX = 64, NET_NAME_BYTES = 32 };

struct net_probe {
    char names[INTERFACES_MAX][NET_NAME_BYTES];
    uint32_t count;
};

static const struct metric_row net_rows[] = {
    {"receive_bytes", offsetof(struct net_counters, receive_bytes), METRIC_COUNTER, 1},
    {"transmit_bytes", offsetof(struct net_counters, transmit_bytes), METRIC_COUNTER, 1},
    {"receive_packet_count", offsetof(struct net_counters, receive_packets), METRIC_COUNTER, 1},
    {"transmit_packet_count", offsetof(struct net_counters, transmit_packets), METRIC_COUNTER, 1},
    {"receive_error_count", offsetof(struct net_counters, receive_errors), METRIC_COUNTER, 1},
    {"receive_drop_count", offsetof(struct net_counters, receive_drops), METRIC_COUNTER, 1},
    {"transmit_error_count", offsetof(struct net_counters, transmit_errors), METRIC_COUNTER, 1},
    {"transmit_drop_count", offsetof(struct net_counters, transmit_drops), METRIC_COUNTER, 1},
    {0},
};
enum { NET_ROWS = sizeof net_rows / sizeof net_rows[0] - 1 };

static int net_open(struct probe *probe, const struct probe_site *site)
{
    struct net_probe *net = probe->state;
    struct net_counters counters;
    struct text text, name;
    char device[512];
    int code = probe_add_file(probe, "%s/net/dev", site->roots->proc);

    if (code)
        return code;
    code = procfile_read(probe->files, &text);
    if (code)
        return fail(-code, "%s/net/dev: %s", site->roots->proc, fail_errno_text(code));
    /* Bridges, bonds etc. count traffic of a real interface again; a container has only virtual
     * ones. */
    for (int real = 1; real >= 0 && net->count == 0; real--)
        for (struct text rest = text;
             code == 0 && net->count < INTERFACES_MAX && net_parse_next(&rest, &name, &counters);) {
            char *copy = text_copy(name, net->names[net->count], NET_NAME_BYTES);
            snprintf(device, sizeof device, "%.400s/class/net/%s/device", site->roots->sys, copy);
            if (strcmp(copy, "lo") == 0 || (real && access(device, F_OK)))
                continue;
            net->count++;
            code = metric_add_rows(&probe->metrics, copy, net_rows);
        }
    return code;
}

static void net_sample(const struct probe *probe, uint64_t *values)
{
    struct net_probe *net = probe->state;
    struct net_counters counters;
    struct text text, name;

    if (procfile_read(probe->files, &text))
        return;
    while (net_parse_next(&text, &name, &counters))
        for (uint32_t i = 0; i < net->count; i++)
            if (text_is(name, net->names[i]))
                metric_put_rows(net_rows, &counters, values + (size_t)i * NET_ROWS);
}

const struct probe_ops probe_net = {
    .plugin = {.name = "net",
               .summary = "network interfaces",
               .state_size = sizeof(struct net_probe)},
    .open = net_open,
    .sample = net_sample,
};

/* ---- ports of InfiniBand, RoCE and Omni-Path adapters ---- */

/* ---- ports ---- */

double infiniband_parse_rate(struct text text)
{
    struct text number, whole, unit;
    uint64_t integer, tenths = 0;

    if (!text_word(&text, &number) || !text_word(&text, &unit) || !text_is(unit, "Gb/sec") ||
        !text_until(&number, '.', &whole) || !text_u64(&whole, &integer))
        return 0;
    if (number.at < number.end) {
        number.end = number.at + 1;
        text_u64(&number, &tenths);
    }
    return (double)integer + (double)tenths / 10;
}

uint32_t infiniband_list(const struct telemetry_roots *roots, struct infiniband_port *ports,
                         uint32_t maximum)
{
    char all[512], folder[512], text[64];
    struct folder_names devices, numbers;
    uint32_t count = 0;

    snprintf(all, sizeof all, "%.400s/class/infiniband", roots->sys);
    folder_names_of(&devices, all);
    for (size_t i = 0; i < devices.count; i++) {
        if (devices.list[i][0] == '.')
            continue;
        snprintf(folder, sizeof folder, "%.400s/%.39s/ports", all, devices.list[i]);
        folder_names_of(&numbers, folder);
        for (size_t k = 0; k < numbers.count && count < maximum; k++) {
            const int number = atoi(numbers.list[k]);
            if (number <= 0)
                continue;
            struct infiniband_port *port = &ports[count++];
            *port = (struct infiniband_port){.number = (unsigned)number};
            snprintf(port->device, sizeof port->device, "%.39s", devices.list[i]);
            if (file_peek(text, sizeof text, "%s/%d/link_layer", folder, number))
                snprintf(port->link_layer, sizeof port->link_layer, "%.15s", text);
            if (file_peek(text, sizeof text, "%s/%d/state", folder, number))
                port->active = text_starts(text_of_string(text), "4:");
            if (file_peek(text, sizeof text, "%s/%d/rate", folder, number))
                port->gbit_per_s = infiniband_parse_rate(text_of_string(text));
            if (file_peek(text, sizeof text, "%s/%d/gid_attrs/ndevs/0", folder, number))
                snprintf(port->interface, sizeof port->interface, "%.31s", text);
        }
        folder_names_release(&numbers);
    }
    folder_names_release(&devices);
    return count;
}

/* ---- the probe ---- */

static const struct port_file {
    const char *quantity;
    const char *file, *older_file; /* below the port's folder */
    uint32_t scale;
} port_files[] = {
    {"receive_bytes", "counters/port_rcv_data", "counters_ext/port_rcv_data_64", 4},
    {"transmit_bytes", "counters/port_xmit_data", "counters_ext/port_xmit_data_64", 4},
    {"receive_packet_count", "counters/port_rcv_packets", "counters_ext/port_rcv_packets_64", 1},
    {"transmit_packet_count", "counters/port_xmit_packets", "counters_ext/port_xmit_packets_64", 1},
    {"transmit_wait_ticks", "counters/port_xmit_wait", NULL, 1},
    {"receive_error_count", "counters/port_rcv_errors", NULL, 1},
    {"transmit_discard_count", "counters/port_xmit_discards", NULL, 1},
    {"symbol_error_count", "counters/symbol_error", NULL, 1},
    {"link_downed_count", "counters/link_downed", NULL, 1},
    /* Retransmits and congestion, as mlx5 and others name them. */
    {"out_of_sequence_count", "hw_counters/out_of_sequence", NULL, 1},
    {"packet_sequence_error_count", "hw_counters/packet_seq_err", NULL, 1},
    {"ack_timeout_count", "hw_counters/local_ack_timeout_err", NULL, 1},
    {"duplicate_request_count", "hw_counters/duplicate_request", NULL, 1},
    {"receiver_not_ready_count", "hw_counters/rnr_nak_retry_err", NULL, 1},
    {"congestion_sent_count", "hw_counters/np_cnp_sent", NULL, 1},
    {"congestion_handled_count", "hw_counters/rp_cnp_handled", NULL, 1},
    {"ecn_marked_count", "hw_counters/np_ecn_marked_roce_packets", NULL, 1},
    /* rxe */
    {"sent_packet_count", "hw_counters/sent_pkts", NULL, 1},
    {"received_packet_count", "hw_counters/rcvd_pkts", NULL, 1},
    {"retry_count", "hw_counters/completer_retry_err", "hw_counters/retry_exceeded_err", 1},
};
enum { PORT_FILES = sizeof port_files / sizeof port_files[0] };

/* Add a metric with a file of its own. Return 1 if the file can be read, 0 if not, or -ENOMEM. */
static int add_file(struct probe *probe, const char *part, const struct port_file *kind,
                    uint32_t scale, const char *path)
{
    int code = access(path, R_OK) ? -ENOENT : probe_add_file(probe, "%s", path);

    if (code)
        return code == -ENOMEM ? code : 0;
    struct metric *metric =
        metric_add(&probe->metrics, part, kind->quantity, METRIC_COUNTER, scale);
    if (!metric)
        return -ENOMEM;
    metric->saturates = true;
    return 1;
}

static int add_port(struct probe *probe, const struct telemetry_roots *roots,
                    const struct infiniband_port *port)
{
    static const char *const own_files[] = {"rx_bytes", "tx_bytes"};
    const char *interface = port->interface;
    char part[METRIC_PART_BYTES], folder[512], path[600];
    bool has_bytes = false;
    int code = 0;

    snprintf(part, sizeof part, "%s/%u", port->device, port->number);
    snprintf(folder, sizeof folder, "%.300s/class/infiniband/%s/ports/%u", roots->sys, port->device,
             port->number);
    for (unsigned i = 0; i < PORT_FILES; i++) {
        const struct port_file *kind = &port_files[i];
        snprintf(path, sizeof path, "%s/%s", folder, kind->file);
        code = add_file(probe, part, kind, kind->scale, path);
        if (code == 0 && kind->older_file) {
            snprintf(path, sizeof path, "%s/%s", folder, kind->older_file);
            code = add_file(probe, part, kind, kind->scale, path);
        }
        if (code < 0)
            return code;
        has_bytes |= i == 0 && code > 0;
    }
    if (has_bytes)
        return 0;
    /* Where a driver has no counters/: EFA and bnxt_re count bytes among their own. */
    for (int i = 0; i < 2 && code >= 0; i++) {
        snprintf(path, sizeof path, "%s/hw_counters/%s", folder, own_files[i]);
        code = add_file(probe, part, &port_files[i], 1, path);
    }
    if (code || !interface[0])
        return code;
    /* "rxe0/1@eth0": the name says that the interface counts the same bytes. */
    snprintf(part, sizeof part, "%.20s/%u@%s", port->device, port->number, interface);
    for (int i = 0; i < 2 && code >= 0; i++) {
        snprintf(path, sizeof path, "%.300s/class/net/%.31s/statistics/%s", roots->sys, interface,
                 own_files[i]);
        code = add_file(probe, part, &port_files[i], 1, path);
    }
    return code;
}

static int infiniband_open(struct probe *probe, const struct probe_site *site)
{
    struct infiniband_port ports[INFINIBAND_PORTS_MAX];
    const uint32_t count = infiniband_list(site->roots, ports, INFINIBAND_PORTS_MAX);
    int code = 0;

    if (count == 0)
        return fail(ENOENT, "no InfiniBand or RoCE adapter");
    for (uint32_t i = 0; i < count && code >= 0; i++)
        code = add_port(probe, site->roots, &ports[i]);
    if (code >= 0 && probe->file_count == 0)
        return fail(ENOENT,
                    "%s shows no counters, as in a container with its own network "
                    "namespace; bind-mount the host's /sys and set it as root of sysfs",
                    ports[0].device);
    return code < 0 ? code : 0;
}

static void infiniband_sample(const struct probe *probe, uint64_t *values)
{
    struct text text;

    for (uint32_t i = 0; i < probe->file_count; i++)
        if (procfile_read(&probe->files[i], &text) == 0)
            text_u64(&text, &values[i]);
}

static int infiniband_usable(void)
{
    struct infiniband_port port;

    return infiniband_list(&telemetry_roots_usual, &port, 1)
               ? 0
               : fail(ENOENT, "no InfiniBand or RoCE adapter");
}

const struct probe_ops probe_infiniband = {
    .plugin = {.name = "infiniband",
               .summary = "InfiniBand and RoCE ports: bytes, waits, errors, retransmits",
               .usable = infiniband_usable},
    .open = infiniband_open,
    .sample = infiniband_sample,
};
