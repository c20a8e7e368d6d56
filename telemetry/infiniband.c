/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/infiniband.h"

#include "base/fail.h"
#include "base/folder.h"
#include "base/memory.h"
#include "telemetry/plugins.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static void describe(const struct telemetry_roots *roots, struct infiniband_port *port)
{
    char text[64];
    const char *folder = "class/infiniband";

    if (procfile_peek(text, sizeof text, "%s/%s/%s/ports/%u/link_layer", roots->sys, folder,
                      port->device, port->number))
        snprintf(port->link_layer, sizeof port->link_layer, "%.15s", text);
    if (procfile_peek(text, sizeof text, "%s/%s/%s/ports/%u/state", roots->sys, folder,
                      port->device, port->number))
        port->active = text_starts(text_of_string(text), "4:");
    if (procfile_peek(text, sizeof text, "%s/%s/%s/ports/%u/rate", roots->sys, folder, port->device,
                      port->number))
        port->gbit_per_s = infiniband_parse_rate(text_of_string(text));
    if (procfile_peek(text, sizeof text, "%s/%s/%s/ports/%u/gid_attrs/ndevs/0", roots->sys, folder,
                      port->device, port->number))
        snprintf(port->interface, sizeof port->interface, "%.31s", text);
}

static uint32_t list_ports_of(const struct telemetry_roots *roots, const char *device,
                              struct infiniband_port *ports, uint32_t maximum)
{
    char path[512];
    struct folder_names names;
    uint32_t count = 0;

    snprintf(path, sizeof path, "%.200s/class/infiniband/%.39s/ports", roots->sys, device);
    folder_names_of(&names, path);
    for (size_t i = 0; i < names.count && count < maximum; i++) {
        int number = atoi(names.list[i]);
        if (number <= 0)
            continue;
        struct infiniband_port *port = &ports[count++];
        *port = (struct infiniband_port){.number = (unsigned)number};
        snprintf(port->device, sizeof port->device, "%.39s", device);
        describe(roots, port);
    }
    folder_names_release(&names);
    return count;
}

uint32_t infiniband_list(const struct telemetry_roots *roots, struct infiniband_port *ports,
                         uint32_t maximum)
{
    char path[512];
    struct folder_names names;
    uint32_t count = 0;

    snprintf(path, sizeof path, "%.400s/class/infiniband", roots->sys);
    folder_names_of(&names, path);
    for (size_t i = 0; i < names.count; i++)
        if (names.list[i][0] != '.')
            count += list_ports_of(roots, names.list[i], ports + count, maximum - count);
    folder_names_release(&names);
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

struct infiniband_probe {
    struct procfile *files; /* one per metric */
    size_t count, capacity;
};

/* Return 1 if the file exists, 0 if not, or a negative errno. */
static int add_file(struct infiniband_probe *probe, struct probe_traits *traits, const char *part,
                    const struct port_file *kind, uint32_t scale, const char *path)
{
    if (access(path, R_OK) || probe->count == probe->capacity)
        return 0;
    int code = procfile_open(&probe->files[probe->count], "%s", path);
    if (code) { /* some drivers have files that fail to read */
        procfile_close(&probe->files[probe->count]);
        return code == -ENOMEM ? code : 0;
    }
    probe->count++;
    struct metric *metric =
        metric_add(&traits->metrics, part, kind->quantity, METRIC_COUNTER, scale);
    if (!metric)
        return -ENOMEM;
    metric->saturates = true;
    return 1;
}

/* Where a driver has no counters/: EFA and bnxt_re count bytes among their own. */
static int add_own_bytes(struct infiniband_probe *probe, const struct telemetry_roots *roots,
                         struct probe_traits *traits, const char *part,
                         const struct infiniband_port *port)
{
    static const char *const files[] = {"rx_bytes", "tx_bytes"};
    char path[512];
    int code = 0;

    for (int i = 0; i < 2 && code >= 0; i++) {
        snprintf(path, sizeof path, "%.300s/class/infiniband/%s/ports/%u/hw_counters/%s",
                 roots->sys, port->device, port->number, files[i]);
        code = add_file(probe, traits, part, &port_files[i], 1, path);
    }
    return code;
}

/* "rxe0/1@eth0": the name says that the interface counts the same bytes. */
static int add_interface(struct infiniband_probe *probe, const struct telemetry_roots *roots,
                         struct probe_traits *traits, const struct infiniband_port *port)
{
    const char *interface = port->interface;
    char path[512], part[METRIC_PART_BYTES];

    snprintf(part, sizeof part, "%.20s/%u@%s", port->device, port->number, interface);
    snprintf(path, sizeof path, "%.300s/class/net/%.31s/statistics/rx_bytes", roots->sys,
             interface);
    int code = add_file(probe, traits, part, &port_files[0], 1, path);
    snprintf(path, sizeof path, "%.300s/class/net/%.31s/statistics/tx_bytes", roots->sys,
             interface);
    return code < 0 ? code : add_file(probe, traits, part, &port_files[1], 1, path);
}

static int add_port(struct infiniband_probe *probe, const struct telemetry_roots *roots,
                    struct probe_traits *traits, const struct infiniband_port *port)
{
    char part[METRIC_PART_BYTES], path[512];
    bool bytes = false;

    snprintf(part, sizeof part, "%s/%u", port->device, port->number);
    for (unsigned i = 0; i < PORT_FILES; i++) {
        const struct port_file *kind = &port_files[i];
        int code = 0;
        for (int older = 0; older < 2 && code == 0; older++) {
            const char *file = older ? kind->older_file : kind->file;
            snprintf(path, sizeof path, "%.300s/class/infiniband/%s/ports/%u/%s", roots->sys,
                     port->device, port->number, file ? file : "");
            code = file ? add_file(probe, traits, part, kind, kind->scale, path) : 0;
        }
        if (code < 0)
            return code;
        bytes |= i == 0 && code > 0;
    }
    int code = bytes ? 1 : add_own_bytes(probe, roots, traits, part, port);
    return code == 0 && port->interface[0] ? add_interface(probe, roots, traits, port) : code;
}

static int infiniband_open(void *state, const void *settings, const struct probe_site *site,
                           struct probe_traits *traits)
{
    struct infiniband_probe *probe = state;
    struct infiniband_port ports[INFINIBAND_PORTS_MAX];
    const uint32_t count = infiniband_list(site->roots, ports, INFINIBAND_PORTS_MAX);
    int code = 0;

    (void)settings;
    if (count == 0)
        return fail(ENOENT, "no InfiniBand or RoCE adapter");
    probe->capacity = (size_t)count * (PORT_FILES + 2);
    probe->files = memory_array(probe->capacity, sizeof *probe->files);
    if (!probe->files)
        return -ENOMEM;
    for (uint32_t i = 0; i < count && code >= 0; i++)
        code = add_port(probe, site->roots, traits, &ports[i]);
    if (code >= 0 && probe->count == 0)
        return fail(ENOENT,
                    "%s shows no counters, as in a container with its own network "
                    "namespace; bind-mount the host's /sys and set it as root of sysfs",
                    ports[0].device);
    return code < 0 ? code : 0;
}

static void infiniband_close(void *state)
{
    struct infiniband_probe *probe = state;

    for (size_t i = 0; i < probe->count; i++)
        procfile_close(&probe->files[i]);
    free(probe->files);
}

static void infiniband_sample(void *state, uint64_t *values)
{
    struct infiniband_probe *probe = state;
    struct text text;

    for (size_t i = 0; i < probe->count; i++)
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
               .state_size = sizeof(struct infiniband_probe),
               .usable = infiniband_usable},
    .open = infiniband_open,
    .close = infiniband_close,
    .sample = infiniband_sample,
};
