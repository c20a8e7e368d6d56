/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/series.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/thread.h"

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

/* The first row later than a time, or row_count. */
static uint64_t row_after(const struct series *series, uint64_t time_ns)
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
    uint64_t before = PROBE_MISSING, growth, first = row_after(series, from_ns);
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
        uint64_t first = row_after(series, from_ns), end = row_after(series, to_ns);
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
    /* Bytes that never enter this machine's page cache: the reader itself gets them from the
     * server. */
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

/* ---- the sampler ----
 *
 * One lock guards the series and the values of slow probes; it is held only while copying, never
 * while a probe reads. A second lock is held while the fast probes are sampled, so that any thread
 * may take a sample. */

enum { PROBES_MAX = 16, MARKS_MAX = 4096, ROWS_MAX = 16384, REASON_BYTES = 160 };

static const uint64_t interval_usual_ns = 100000000, memory_usual_bytes = UINT64_C(64) << 20;
static const uint64_t least_ns = 2000000; /* a sample faster than this was not preempted */

struct watched {
    struct sampler *sampler;
    struct probe probe;
    uint32_t first; /* its first metric in a row */
    bool slow;
    struct thread thread; /* of a slow probe */
    uint64_t *fresh;      /* latest values of a slow probe */
    bool is_fresh;
};

struct sampler {
    uint64_t interval_ns, start_ns;
    struct watched watched[PROBES_MAX];
    uint32_t watched_count;
    char absent[PROBES_MAX][REASON_BYTES];
    uint32_t absent_count;
    uint64_t *values; /* one row */
    struct series series;
    struct thread thread;
    bool running;
    pthread_mutex_t lock, sampling;
    pthread_cond_t stopping; /* is_stopped, under the first lock */
    bool is_stopped;
    struct sampler_figures figures;
    struct counter slow_cpu_ns;
};

/* ---- which probes ---- */

static int add_probe(struct sampler *sampler, const struct plugin_choice *choice,
                     const struct probe_site *site)
{
    struct watched *watched = &sampler->watched[sampler->watched_count];

    if (sampler->watched_count == PROBES_MAX)
        return fail(E2BIG, "more than %d probes", PROBES_MAX);
    int code = probe_open(&watched->probe, choice, site);
    if (code) {
        probe_close(&watched->probe);
        return code;
    }
    watched->sampler = sampler;
    watched->slow = watched->probe.slow_interval_ns > 0;
    watched->fresh = memory_array(watched->probe.metrics.count, sizeof *watched->fresh);
    sampler->watched_count++;
    return watched->fresh ? 0 : -ENOMEM;
}

struct sampler *sampler_open(const struct sampler_site *site)
{
    const uint64_t memory = site->memory_bytes ? site->memory_bytes : memory_usual_bytes;
    const uint64_t rows_max = site->rows_max ? site->rows_max : ROWS_MAX;
    struct text names = text_of_string(site->names ? site->names : ""), name;
    struct sampler *sampler = memory_zeroed(sizeof *sampler);
    uint32_t count = 0;

    if (!sampler)
        return NULL;
    pthread_mutex_init(&sampler->lock, NULL);
    pthread_mutex_init(&sampler->sampling, NULL);
    thread_condition_init(&sampler->stopping);
    sampler->interval_ns = site->interval_ns ? site->interval_ns : interval_usual_ns;
    int code = site->own ? add_probe(sampler, site->own, &site->probes) : 0;
    for (int i = 0;
         code == 0 && (site->names ? text_until(&names, ',', &name) : probe_registry[i] != NULL);
         i++) {
        struct plugin_choice choice = {0};
        char copy[4096 + 64]; /* an option may be a path */
        code = plugin_choose(
            "probe", probe_registry,
            site->names ? text_copy(name, copy, sizeof copy) : probe_registry[i]->name, &choice);
        if (code == 0)
            code = add_probe(sampler, &choice, &site->probes);
        plugin_release(&choice);
        if (site->names || code == 0 || code == -ENOMEM)
            continue;
        code = 0;
        if (sampler->absent_count < PROBES_MAX)
            snprintf(sampler->absent[sampler->absent_count++], REASON_BYTES, "%.40s: %.110s",
                     probe_registry[i]->name, fail_reason());
    }
    for (uint32_t i = 0; i < sampler->watched_count; i++) {
        sampler->watched[i].first = count;
        count += sampler->watched[i].probe.metrics.count;
    }
    struct metric *metrics = memory_array(count + 1, sizeof *metrics);
    sampler->values = memory_array(count + 1, sizeof *sampler->values);
    if (code == 0 && (!metrics || !sampler->values))
        code = -ENOMEM;
    for (uint32_t i = 0; code == 0 && i < sampler->watched_count; i++) {
        const struct metric_list *list = &sampler->watched[i].probe.metrics;
        memcpy(metrics + sampler->watched[i].first, list->metrics, list->count * sizeof *metrics);
    }
    const uint64_t rows = memory / ((1 + (uint64_t)count) * sizeof *sampler->values);
    if (code == 0)
        code = series_open(&sampler->series, metrics, count, rows < rows_max ? rows : rows_max,
                           MARKS_MAX, site->when_full);
    free(metrics);
    if (code == 0)
        return sampler;
    sampler_close(sampler);
    return NULL;
}

void sampler_close(struct sampler *sampler)
{
    if (!sampler)
        return;
    sampler_stop(sampler);
    for (uint32_t i = 0; i < sampler->watched_count; i++) {
        probe_close(&sampler->watched[i].probe);
        free(sampler->watched[i].fresh);
    }
    series_close(&sampler->series);
    free(sampler->values);
    pthread_mutex_destroy(&sampler->lock);
    pthread_mutex_destroy(&sampler->sampling);
    pthread_cond_destroy(&sampler->stopping);
    free(sampler);
}

/* ---- on the sampler's threads ---- */

/* Sleep until the deadline. Returns false at once when stopped, so that short runs need not wait
 * for it. */
static bool sleep_until(struct sampler *sampler, uint64_t deadline_ns)
{
    pthread_mutex_lock(&sampler->lock);
    while (!sampler->is_stopped &&
           thread_condition_wait(&sampler->stopping, &sampler->lock, deadline_ns))
        ;
    const bool goes_on = !sampler->is_stopped;
    pthread_mutex_unlock(&sampler->lock);
    return goes_on;
}

void sampler_sample(struct sampler *sampler)
{
    const uint64_t long_ns = sampler->interval_ns / 20;
    uint64_t start_ns = 0, read_ns = UINT64_MAX;

    pthread_mutex_lock(&sampler->sampling);
    const uint64_t begin_ns = clock_now_ns();
    /* A busy machine may preempt the reading for longer than an interval, which would attribute
     * counts to the wrong time: then read again. */
    for (int turn = 0; turn < 2 && read_ns > (long_ns > least_ns ? long_ns : least_ns); turn++) {
        start_ns = clock_now_ns();
        for (uint32_t i = 0; i < sampler->watched_count; i++) {
            struct watched *watched = &sampler->watched[i];
            if (!watched->slow)
                probe_sample(&watched->probe, sampler->values + watched->first);
        }
        read_ns = clock_now_ns() - start_ns;
    }
    pthread_mutex_lock(&sampler->lock);
    for (uint32_t i = 0; i < sampler->watched_count; i++) {
        struct watched *watched = &sampler->watched[i];
        uint64_t *values = sampler->values + watched->first;
        const size_t bytes = watched->probe.metrics.count * sizeof *values;
        if (!watched->slow)
            continue;
        if (watched->is_fresh)
            memcpy(values, watched->fresh, bytes);
        else
            memset(values, 0xff, bytes); /* PROBE_MISSING */
        watched->is_fresh = false;
    }
    /* At the middle of the reading. */
    series_append(&sampler->series, start_ns + read_ns / 2, sampler->values);
    pthread_mutex_unlock(&sampler->lock);
    const uint64_t spent_ns = clock_now_ns() - begin_ns;
    if (spent_ns > sampler->figures.longest_ns)
        sampler->figures.longest_ns = spent_ns;
    sampler->figures.samples++;
    pthread_mutex_unlock(&sampler->sampling);
}

static int run_sampler(void *argument)
{
    struct sampler *sampler = argument;
    uint64_t deadline_ns = sampler->start_ns;

    while (sleep_until(sampler, deadline_ns += sampler->interval_ns)) {
        uint64_t now_ns = clock_now_ns();
        sampler_sample(sampler);
        if (now_ns > deadline_ns + sampler->interval_ns / 2) {
            sampler->figures.late++;
            deadline_ns = now_ns; /* do not catch up on missed samples */
        }
    }
    sampler->figures.cpu_ns += clock_cpu_ns();
    return 0;
}

static int run_slow(void *argument)
{
    struct watched *watched = argument;
    struct sampler *sampler = watched->sampler;
    const uint32_t count = watched->probe.metrics.count;
    uint64_t *values = memory_array(count, sizeof *values);

    if (!values)
        return -ENOMEM;
    uint64_t start_ns;
    do {
        start_ns = clock_now_ns();
        probe_sample(&watched->probe, values);
        pthread_mutex_lock(&sampler->lock);
        memcpy(watched->fresh, values, count * sizeof *values);
        watched->is_fresh = true;
        pthread_mutex_unlock(&sampler->lock);
    } while (sleep_until(sampler, start_ns + watched->probe.slow_interval_ns));
    counter_add(&sampler->slow_cpu_ns, clock_cpu_ns());
    free(values);
    return 0;
}

int sampler_start(struct sampler *sampler)
{
    int code = 0;

    assert(!sampler->running);
    sampler->is_stopped = false;
    sampler->running = true;
    sampler->start_ns = clock_now_ns();
    sampler_sample(sampler);
    for (uint32_t i = 0; i < sampler->watched_count && code == 0; i++)
        if (sampler->watched[i].slow)
            code =
                thread_start(&sampler->watched[i].thread, "probe", run_slow, &sampler->watched[i]);
    if (code == 0)
        code = thread_start(&sampler->thread, "sampler", run_sampler, sampler);
    if (code)
        sampler_stop(sampler);
    return code;
}

void sampler_stop(struct sampler *sampler)
{
    if (!sampler->running)
        return;
    pthread_mutex_lock(&sampler->lock);
    sampler->is_stopped = true;
    pthread_cond_broadcast(&sampler->stopping);
    pthread_mutex_unlock(&sampler->lock);
    thread_join(&sampler->thread);
    for (uint32_t i = 0; i < sampler->watched_count; i++)
        thread_join(&sampler->watched[i].thread);
    sampler_sample(sampler);
    sampler->figures.wall_ns += clock_now_ns() - sampler->start_ns;
    sampler->running = false;
}

void sampler_mark(struct sampler *sampler, const struct series_mark *mark)
{
    pthread_mutex_lock(&sampler->lock);
    series_mark(&sampler->series, mark);
    pthread_mutex_unlock(&sampler->lock);
}

const struct series *sampler_series(const struct sampler *sampler)
{
    return &sampler->series;
}

void sampler_look(struct sampler *sampler, void (*look)(void *context, const struct series *series),
                  void *context)
{
    pthread_mutex_lock(&sampler->lock);
    look(context, &sampler->series);
    pthread_mutex_unlock(&sampler->lock);
}

struct sampler_figures sampler_figures(const struct sampler *sampler)
{
    struct sampler_figures figures = sampler->figures;

    figures.cpu_ns += counter_get(&sampler->slow_cpu_ns);
    return figures;
}

const char *sampler_absent(const struct sampler *sampler, uint32_t index)
{
    return index < sampler->absent_count ? sampler->absent[index] : NULL;
}
