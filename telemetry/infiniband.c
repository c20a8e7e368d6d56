/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/counters.h"

#include "base/fail.h"
#include "base/folder.h"
#include "telemetry/plugins.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
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
