/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/series.h"

#include "base/clock.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t *row_of(const struct series *series, uint64_t row)
{
    assert(row < series->row_capacity);
    return series->rows + row * (1 + (uint64_t)series->metric_count);
}

int series_open(struct series *series, const struct metric *metrics, uint32_t metric_count,
                uint64_t row_capacity, uint32_t mark_capacity, enum series_full when_full)
{
    const size_t row_bytes = (1 + (size_t)metric_count) * sizeof *series->rows;

    *series = (struct series){.when_full = when_full,
                              .metric_count = metric_count,
                              .row_capacity = row_capacity < 2 ? 2 : row_capacity & ~UINT64_C(1),
                              .stride = 1,
                              .mark_capacity = mark_capacity};
    series->metrics = memory_array(metric_count + 1, sizeof *series->metrics);
    series->rows = memory_array(series->row_capacity, row_bytes);
    series->marks = memory_array(mark_capacity + 1, sizeof *series->marks);
    if (!series->metrics || !series->rows || !series->marks)
        return -ENOMEM;
    if (metric_count)
        memcpy(series->metrics, metrics, metric_count * sizeof *metrics);
    memset(series->rows, 0, series->row_capacity * row_bytes); /* takes page faults off the clock */
    return 0;
}

void series_close(struct series *series)
{
    free(series->metrics);
    free(series->rows);
    free(series->marks);
    *series = (struct series){0};
}

void series_append(struct series *series, uint64_t time_ns, const uint64_t *values)
{
    const size_t row_bytes = (1 + (size_t)series->metric_count) * sizeof *series->rows;

    if (series->offered++ % series->stride)
        return;
    assert(series->row_count <= series->row_capacity);
    if (series->row_count == series->row_capacity) {
        series->row_count /= 2;
        if (series->when_full == SERIES_RECENT) {
            memcpy(series->rows, row_of(series, series->row_capacity - series->row_count),
                   series->row_count * row_bytes);
        } else {
            for (uint64_t row = 1; row < series->row_count; row++)
                memcpy(row_of(series, row), row_of(series, 2 * row), row_bytes);
            series->stride *= 2; /* this row's number, row_capacity, is one that is kept */
        }
    }
    uint64_t *row = row_of(series, series->row_count++);
    row[0] = time_ns;
    memcpy(row + 1, values, series->metric_count * sizeof *values);
}

void series_mark(struct series *series, const struct series_mark *mark)
{
    assert(series->mark_count <= series->mark_capacity);
    if (series->mark_count == series->mark_capacity)
        series->marks_lost++;
    else
        series->marks[series->mark_count++] = *mark;
}

/* The monotonic time is the middle of the interval in which the other clock was read. */
struct series_anchor series_anchor_now(void)
{
    struct series_anchor best = {0};
    uint64_t least_ns = UINT64_MAX;

    for (int i = 0; i < 5; i++) {
        struct timespec now;
        uint64_t before_ns = clock_now_ns();
        clock_gettime(CLOCK_REALTIME, &now);
        uint64_t taken_ns = clock_now_ns() - before_ns;
        if (taken_ns >= least_ns)
            continue;
        least_ns = taken_ns;
        best = (struct series_anchor){.monotonic_ns = before_ns + taken_ns / 2,
                                      .unix_ns = (uint64_t)now.tv_sec * 1000000000u +
                                                 (uint64_t)now.tv_nsec};
    }
    return best;
}

double series_clock_step_s(const struct series_anchor *before, const struct series_anchor *after)
{
    const uint64_t day_ns = after->unix_ns - before->unix_ns;

    return (double)(int64_t)(day_ns - (after->monotonic_ns - before->monotonic_ns)) / 1e9;
}

uint64_t series_time_ns(const struct series *series, uint64_t row)
{
    return row_of(series, row)[0];
}

uint64_t series_value(const struct series *series, uint64_t row, uint32_t metric)
{
    assert(metric < series->metric_count);
    return row_of(series, row)[1 + metric];
}

/* A 32-bit counter that wrapped is less than half its range below its old value. */
bool series_growth(const struct metric *metric, uint64_t before, uint64_t after, uint64_t *growth)
{
    if (before == PROBE_MISSING || after == PROBE_MISSING)
        return false;
    if (metric->saturates && after == UINT32_MAX)
        return false;
    *growth = after - before;
    if (after >= before)
        return true;
    if (metric->bits >= 64)
        return false;
    *growth &= (UINT64_C(1) << metric->bits) - 1;
    return *growth < UINT64_C(1) << (metric->bits - 1);
}

double series_rate(const struct series *series, uint64_t row, uint32_t index)
{
    const struct metric *metric = &series->metrics[index];
    uint64_t value = series_value(series, row, index), growth;

    if (value == PROBE_MISSING)
        return NAN;
    if (metric->kind == METRIC_LEVEL)
        return (double)value * metric->scale;
    for (uint64_t before = row; before-- > 0;) {
        uint64_t earlier = series_value(series, before, index);
        if (earlier == PROBE_MISSING)
            continue;
        double seconds =
            (double)(series_time_ns(series, row) - series_time_ns(series, before)) / 1e9;
        if (seconds <= 0 || !series_growth(metric, earlier, value, &growth))
            return NAN;
        return (double)growth * metric->scale / seconds;
    }
    return NAN;
}

uint64_t series_row_after(const struct series *series, uint64_t time_ns)
{
    uint64_t low = 0, high = series->row_count;

    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (series_time_ns(series, middle) <= time_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

double series_total(const struct series *series, uint32_t index, uint64_t from_ns, uint64_t to_ns)
{
    const struct metric *metric = &series->metrics[index];
    uint64_t before = PROBE_MISSING, growth, first = series_row_after(series, from_ns);
    double sum = NAN;

    /* Start at the last row up to from_ns in which it was known. */
    while (first > 0 && before == PROBE_MISSING)
        before = series_value(series, --first, index);
    before = PROBE_MISSING;
    for (uint64_t row = first; row < series->row_count; row++) {
        uint64_t time_ns = series_time_ns(series, row), value = series_value(series, row, index);
        if (time_ns > to_ns)
            break;
        if (value == PROBE_MISSING)
            continue;
        if (time_ns > from_ns && series_growth(metric, before, value, &growth))
            sum = (isnan(sum) ? 0 : sum) + (double)growth * metric->scale;
        before = value;
    }
    return sum;
}

static bool is_named(const struct metric *metric, const char *probe, const char *part,
                     const char *quantity)
{
    return strcmp(metric->probe, probe) == 0 && strcmp(metric->quantity, quantity) == 0 &&
           (!part || strcmp(metric->part, part) == 0);
}

uint32_t series_find(const struct series *series, const char *probe, const char *part,
                     const char *quantity)
{
    uint32_t i = 0;

    while (i < series->metric_count && !is_named(&series->metrics[i], probe, part, quantity))
        i++;
    return i;
}

char *series_name(const struct metric *metric, char *text, size_t text_bytes)
{
    snprintf(text, text_bytes, "%s%s%s.%s", metric->probe, metric->part[0] ? "." : "", metric->part,
             metric->quantity);
    return text;
}

/* ---- headline figures ---- */

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
    {"memory_free_bytes", "free", "GB", "memory", NULL, "free_bytes", NULL, MONITOR_SUM, 1, 1e-9,
     false, 1},
    {"dirty_bytes", "dirty", "MB", "memory", NULL, "dirty_bytes", NULL, MONITOR_SUM, 1, 1e-6, false,
     1},
    {"gpu_utilization_percent", "gpu", "%", "gpu", NULL, "utilization_percent", NULL, MONITOR_MEAN,
     1, 1, false, 0},
    {"gpu_power_watts", "power", "W", "gpu", NULL, "power_milliwatts", NULL, MONITOR_SUM, 1e-3, 1,
     false, 2},
    {"gpu_temperature_celsius", "temp", "C", "gpu", NULL, "temperature_celsius", NULL, MONITOR_MEAN,
     1, 1, false, 1},
};

bool monitor_counts(const struct series *series, const struct monitor_figure *figure)
{
    return series_find(series, figure->probe, figure->part, figure->quantity) <
           series->metric_count;
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

static double add_known(double a, double b)
{
    return isnan(a) ? b : isnan(b) ? a : a + b;
}

/* Return the growth of a probe's part, or of all; NAN if none is known. once: without the
 * interfaces whose bytes a port counts, those of IPoIB and soft RoCE. */
static double grown(const struct series *series, const char *probe, const char *part,
                    const char *quantity, bool once, uint64_t from_ns, uint64_t to_ns)
{
    double sum = NAN;

    for (uint32_t i = 0; i < series->metric_count; i++) {
        const struct metric *metric = &series->metrics[i];
        if (!is_named(metric, probe, part, quantity))
            continue;
        bool twice = once && strcmp(probe, "net") == 0 && strncmp(metric->part, "ib", 2) == 0;
        for (uint32_t k = 0; once && strcmp(probe, "net") == 0 && k < series->metric_count; k++) {
            const char *at = strchr(series->metrics[k].part, '@');
            twice |= strcmp(series->metrics[k].probe, "infiniband") == 0 && at &&
                     strcmp(at + 1, metric->part) == 0;
        }
        if (!twice)
            sum = add_known(sum, series_total(series, i, from_ns, to_ns));
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
        divisor = grown(series, figure->probe, figure->part, figure->per, false, from_ns, to_ns);
    }
    if (figure->how == MONITOR_RATE || figure->how == MONITOR_EACH)
        value = divisor > 0 ? grown(series, figure->probe, figure->part, figure->quantity, false,
                                    from_ns, to_ns) /
                                  divisor
                            : NAN;
    else {
        /* The newest known levels in the interval: their sum or mean. */
        double sum = 0;
        unsigned count = 0;
        for (uint32_t i = 0; i < series->metric_count; i++) {
            if (!is_named(&series->metrics[i], figure->probe, figure->part, figure->quantity))
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

/* ---- where bytes came from ---- */

static double at_least_0(double value)
{
    return value <= 0 ? 0 : value; /* NAN stays */
}

void provenance_take(const struct series *series, uint64_t from_ns, uint64_t to_ns,
                     struct provenance *provenance)
{
#define GREW(probe, quantity) grown(series, probe, NULL, quantity, true, from_ns, to_ns)
#define COUNTS(probe, quantity) (series_find(series, probe, NULL, quantity) < series->metric_count)
    /* Bytes counted by clients of storage servers; NAN without any. */
    const double servers =
        add_known(GREW("nfs", "server_read_bytes"), GREW("lustre", "server_read_bytes"));
    const bool has_disks = COUNTS("disk", "read_bytes");

    *provenance = (struct provenance){
        .read = GREW("pipeline", "read_bytes"),
        .received = add_known(GREW("infiniband", "receive_bytes"), GREW("net", "receive_bytes")),
        .sent = add_known(GREW("infiniband", "transmit_bytes"), GREW("net", "transmit_bytes")),
        .gradients = GREW("pipeline", "gradient_bytes"),
    };
    /* The process's counter is exact but includes NFS, and what a loop device reads from the cached
     * pages of its file; device counters include other processes. */
    if (has_disks) {
        const double process = GREW("process", "read_bytes");
        provenance->local = isnan(process) || COUNTS("disk", "loop_file_count")
                                ? GREW("disk", "read_bytes")
                                : at_least_0(process - (isnan(servers) ? 0 : servers));
    }
    /* Neither the process's nor the disk's counter includes commands that the reader sends to it.
     */
    const double commands = GREW("pipeline", "passthrough_bytes");
    if (commands > 0)
        provenance->local = add_known(provenance->local, commands);
    provenance->excess = provenance->received - provenance->sent;
    /* Bytes that no page cache of this machine holds: the reader itself has them from the server.
     */
    const double asked = GREW("pipeline", "client_bytes");
    if (asked > 0 || COUNTS("nfs", "server_read_bytes") || COUNTS("lustre", "server_read_bytes")) {
        provenance->witness = PROVENANCE_SERVER;
        provenance->fabric = asked > 0 ? add_known(servers, asked) : servers;
    } else if (has_disks) {
        provenance->witness = PROVENANCE_DISK;
    } else if (isnan(provenance->received) || COUNTS("disk", "memory_count")) {
        provenance->witness = PROVENANCE_NOTHING;
    } else {
        provenance->witness = PROVENANCE_RECEIVED;
        provenance->fabric = at_least_0(provenance->excess);
    }
    const double rest = provenance->read - provenance->local - provenance->fabric;
    provenance->page_cache = at_least_0(rest);
    provenance->ahead = at_least_0(-rest);
#undef GREW
#undef COUNTS
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
