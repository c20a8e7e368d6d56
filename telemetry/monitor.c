/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/monitor.h"

#include <math.h>
#include <string.h>

/* From the metric's unit to the key's, from the key's to the table's. */
#define RATE(key, heading, unit, scale, probe, quantity, leaves)                               \
    {                                                                                          \
        key, heading, unit, probe, NULL, quantity, NULL, MONITOR_RATE, 1, scale, false, leaves \
    }
#define BYTES(key, heading, probe, quantity, leaves) \
    RATE(key, heading, "MB/s", 1e-6, probe, quantity, leaves)
#define COUNT(key, heading, probe, quantity, leaves) \
    RATE(key, heading, "/s", 1, probe, quantity, leaves)
#define EACH(key, heading, probe, quantity, per, leaves)                                  \
    {                                                                                     \
        key, heading, "ms", probe, NULL, quantity, per, MONITOR_EACH, 1, 1, false, leaves \
    }
#define CPU(key, heading, quantity, leaves) /* from ms per s */                             \
    {                                                                                       \
        key, heading, "%", "cpu", "all", quantity, NULL, MONITOR_RATE, 0.1, 1, true, leaves \
    }

const struct monitor_figure monitor_figures[MONITOR_FIGURES] = {
    BYTES("storage_read_bytes_per_s", "read", "disk", "read_bytes", 0),
    COUNT("storage_read_count_per_s", "reads", "disk", "read_count", 3),
    EACH("storage_read_ms", "a read", "disk", "read_ms", "read_count", 12),
    BYTES("storage_write_bytes_per_s", "write", "disk", "write_bytes", 6),
    BYTES("nfs_read_bytes_per_s", "nfs", "nfs", "server_read_bytes", 0),
    COUNT("nfs_read_count_per_s", "READs", "nfs", "read_count", 4),
    EACH("nfs_read_rtt_ms", "nfs rtt", "nfs", "read_rtt_ms", "read_count", 11),
    COUNT("nfs_retransmission_count_per_s", "resent", "nfs", "read_retransmission_count", 7),
    BYTES("lustre_read_bytes_per_s", "lustre", "lustre", "server_read_bytes", 0),
    BYTES("infiniband_receive_bytes_per_s", "ib in", "infiniband", "receive_bytes", 0),
    BYTES("infiniband_transmit_bytes_per_s", "ib out", "infiniband", "transmit_bytes", 13),
    BYTES("net_receive_bytes_per_s", "net in", "net", "receive_bytes", 14),
    BYTES("net_transmit_bytes_per_s", "net out", "net", "transmit_bytes", 9),
    CPU("cpu_user_percent", "user", "user_ms", 0),
    CPU("cpu_system_percent", "system", "system_ms", 5),
    CPU("cpu_io_wait_percent", "iowait", "io_wait_ms", 0),
    {"io_pressure_percent", "stalled", "%", "pressure", "io", "some_us", NULL, MONITOR_RATE, 1e-4,
     1, false, 10},
    {"page_cache_bytes", "cache", "GB", "memory", NULL, "cached_bytes", NULL, MONITOR_SUM, 1, 1e-9,
     false, 8},
    {"dirty_bytes", "dirty", "MB", "memory", NULL, "dirty_bytes", NULL, MONITOR_SUM, 1, 1e-6, false,
     1},
    {"gpu_utilization_percent", "gpu", "%", "gpu", NULL, "utilization_percent", NULL, MONITOR_MEAN,
     1, 1, false, 0},
    {"gpu_power_watts", "power", "W", "gpu", NULL, "power_milliwatts", NULL, MONITOR_SUM, 1e-3, 1,
     false, 2},
};

static bool is_wanted(const struct metric *metric, const struct monitor_figure *figure,
                      const char *quantity)
{
    return strcmp(metric->probe, figure->probe) == 0 && strcmp(metric->quantity, quantity) == 0 &&
           (!figure->part || strcmp(metric->part, figure->part) == 0);
}

bool monitor_counts(const struct series *series, const struct monitor_figure *figure)
{
    for (uint32_t i = 0; i < series->metric_count; i++)
        if (is_wanted(&series->metrics[i], figure, figure->quantity))
            return true;
    return false;
}

int monitor_count_of(const struct monitor_figure *figure)
{
    for (int i = 0; figure->how == MONITOR_EACH && i < MONITOR_FIGURES; i++)
        if (monitor_figures[i].how == MONITOR_RATE &&
            strcmp(monitor_figures[i].probe, figure->probe) == 0 &&
            strcmp(monitor_figures[i].quantity, figure->per) == 0)
            return i;
    return -1;
}

static double total_of(const struct series *series, const struct monitor_figure *figure,
                       const char *quantity, uint64_t from_ns, uint64_t to_ns)
{
    double sum = NAN;

    for (uint32_t i = 0; i < series->metric_count; i++) {
        const double part = is_wanted(&series->metrics[i], figure, quantity)
                                ? series_total(series, i, from_ns, to_ns)
                                : NAN;
        if (!isnan(part))
            sum = isnan(sum) ? part : sum + part;
    }
    return sum;
}

double monitor_figure(const struct series *series, const struct monitor_figure *figure,
                      uint64_t from_ns, uint64_t to_ns)
{
    double value, divisor = 0;

    if (figure->how == MONITOR_RATE) {
        /* Growth is between rows: divide by the time between the same rows. */
        uint64_t first = series_row_after(series, from_ns), end = series_row_after(series, to_ns);
        first -= first > 0; /* the last row up to from_ns, if any */
        if (end > first)
            divisor =
                (double)(series_time_ns(series, end - 1) - series_time_ns(series, first)) / 1e9;
    } else if (figure->how == MONITOR_EACH) {
        divisor = total_of(series, figure, figure->per, from_ns, to_ns);
    }
    if (figure->how == MONITOR_RATE || figure->how == MONITOR_EACH)
        value = divisor > 0 ? total_of(series, figure, figure->quantity, from_ns, to_ns) / divisor
                            : NAN;
    else {
        /* The newest known levels in the interval: their sum or mean. */
        double sum = 0;
        unsigned count = 0;
        for (uint32_t i = 0; i < series->metric_count; i++) {
            if (!is_wanted(&series->metrics[i], figure, figure->quantity))
                continue;
            for (uint64_t row = series->row_count; row-- > 0;) {
                const uint64_t time_ns = series_time_ns(series, row);
                if (time_ns <= from_ns)
                    break;
                if (time_ns > to_ns || series_value(series, row, i) == PROBE_MISSING)
                    continue;
                sum += series_rate(series, row, i);
                count++;
                break;
            }
        }
        value = count == 0 ? NAN : figure->how == MONITOR_MEAN ? sum / count : sum;
    }
    if (figure->of_a_cpu) { /* parts of the probe cpu, without "all" */
        unsigned cpus = 0;
        for (uint32_t i = 0; i < series->metric_count; i++)
            cpus += strcmp(series->metrics[i].probe, "cpu") == 0 &&
                    strcmp(series->metrics[i].quantity, "idle_ms") == 0;
        value /= cpus > 1 ? cpus - 1 : 1;
    }
    return value * figure->factor;
}

void monitor_take(const struct series *series, uint64_t from_ns, uint64_t to_ns,
                  double values[MONITOR_FIGURES])
{
    for (int i = 0; i < MONITOR_FIGURES; i++)
        values[i] = monitor_figure(series, &monitor_figures[i], from_ns, to_ns);
}
