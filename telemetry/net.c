/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/counters.h"

#include "base/fail.h"
#include "telemetry/plugins.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* "  eth0: bytes packets errs drop fifo frame compressed multicast | the same for sending"; old
 * kernels put no blank after the colon. */
bool net_parse_next(struct text *text, struct text *name, struct net_counters *counters)
{
    struct text line;

    while (text_line(text, &line)) {
        uint64_t values[12];
        unsigned count = 0;
        while (line.at < line.end && (*line.at == ' ' || *line.at == '\t'))
            line.at++;
        if (!text_until(&line, ':', name))
            continue;
        while (count < 12 && text_u64(&line, &values[count]))
            count++;
        if (count < 12)
            continue;
        *counters = (struct net_counters){.receive_bytes = values[0],
                                          .receive_packets = values[1],
                                          .receive_errors = values[2],
                                          .receive_drops = values[3],
                                          .transmit_bytes = values[8],
                                          .transmit_packets = values[9],
                                          .transmit_errors = values[10],
                                          .transmit_drops = values[11]};
        return true;
    }
    return false;
}

/* ---- the probe ---- */

enum { INTERFACES_MAX = 64, NAME_BYTES = 32 };

struct net_probe {
    char names[INTERFACES_MAX][NAME_BYTES];
    uint32_t count;
};

static const struct metric_row rows[] = {
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
enum { ROW_COUNT = sizeof rows / sizeof rows[0] - 1 };

static int net_open(void *state, const void *settings, const struct probe_site *site,
                    struct probe_traits *traits)
{
    struct net_probe *net = state;
    struct net_counters counters;
    struct text text, name;
    char device[512];
    int code = probe_add_file(traits, "%s/net/dev", site->roots->proc);

    (void)settings;
    if (code)
        return code;
    code = procfile_read(traits->files, &text);
    if (code)
        return fail(-code, "%s/net/dev: %s", site->roots->proc, fail_errno_text(code));
    /* Bridges, bonds etc. count traffic of a real interface again; a container has only virtual
     * ones. */
    for (int real = 1; real >= 0 && net->count == 0; real--)
        for (struct text rest = text;
             code == 0 && net->count < INTERFACES_MAX && net_parse_next(&rest, &name, &counters);) {
            char *copy = text_copy(name, net->names[net->count], NAME_BYTES);
            snprintf(device, sizeof device, "%.400s/class/net/%s/device", site->roots->sys, copy);
            if (strcmp(copy, "lo") == 0 || (real && access(device, F_OK)))
                continue;
            net->count++;
            code = metric_add_rows(&traits->metrics, copy, rows);
        }
    return code;
}

static void net_sample(void *state, const struct probe_traits *traits, uint64_t *values)
{
    struct net_probe *net = state;
    struct net_counters counters;
    struct text text, name;

    if (procfile_read(traits->files, &text))
        return;
    while (net_parse_next(&text, &name, &counters))
        for (uint32_t i = 0; i < net->count; i++)
            if (text_is(name, net->names[i]))
                metric_put_rows(rows, &counters, values + (size_t)i * ROW_COUNT);
}

const struct probe_ops probe_net = {
    .plugin = {.name = "net",
               .summary = "network interfaces",
               .state_size = sizeof(struct net_probe)},
    .open = net_open,
    .sample = net_sample,
};
