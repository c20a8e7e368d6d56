/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/result/timeline.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/memory.h"
#include "telemetry/series.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- meter ---- */

#define ROW(what, name, scale)                                                                    \
    {                                                                                             \
        .key = name, .probe = "pipeline", .quantity = what, .how = MONITOR_RATE, .factor = scale, \
    }
#define PERCENT 1e-7 /* of one thread, summed over workers: 200 is two busy threads */

const struct monitor_figure meter_figures[METER_COUNTS] = {
    [METER_READ_BYTES] = ROW("read_bytes", "read_bytes_per_s", 1),
    [METER_READ_COUNT] = ROW("read_count", NULL, 1),
    [METER_PASSTHROUGH_BYTES] = ROW("passthrough_bytes", NULL, 1),
    [METER_CLIENT_BYTES] = ROW("client_bytes", NULL, 1),
    [METER_RECORD_BYTES] = ROW("record_bytes", "record_bytes_per_s", 1),
    [METER_RECORD_COUNT] = ROW("record_count", "records_per_s", 1),
    [METER_TRAINED_COUNT] = ROW("trained_count", "trained_samples_per_s", 1),
    [METER_LOADER_STORAGE_NS] =
        ROW("loader_storage_wait_ns", "loader_for_storage_percent", PERCENT),
    [METER_LOADER_MEMORY_NS] = ROW("loader_memory_wait_ns", "loader_for_memory_percent", PERCENT),
    [METER_DECODE_RECORD_NS] = ROW("decode_record_wait_ns", "decode_for_records_percent", PERCENT),
    [METER_DECODE_BATCH_NS] = ROW("decode_batch_wait_ns", "decode_for_batch_percent", PERCENT),
    [METER_DECODE_BUSY_NS] = ROW("decode_busy_ns", "decode_busy_percent", PERCENT),
    [METER_DECODE_HINTS_NS] = ROW("decode_hints_ns", "decode_entry_points_percent", PERCENT),
    [METER_TRAINER_BATCH_NS] = ROW("trainer_batch_wait_ns", "trainer_for_batch_percent", PERCENT),
    [METER_TRAINER_BUSY_NS] = ROW("trainer_busy_ns", "trainer_busy_percent", PERCENT),
    [METER_GRADIENT_BYTES] = ROW("gradient_bytes", NULL, 1),
};

struct meter_probe {
    const struct meter_list *list;
};

static int meter_open(struct probe *probe, const struct probe_site *site)
{
    (void)site;
    ((struct meter_probe *)probe->state)->list = probe->settings;
    for (int i = 0; i < METER_COUNTS; i++)
        if (!metric_add(&probe->metrics, "", meter_figures[i].quantity, METRIC_COUNTER, 1))
            return -ENOMEM;
    return 0;
}

static void meter_sample(const struct probe *probe, uint64_t *values)
{
    const struct meter_list *list = ((const struct meter_probe *)probe->state)->list;

    for (int i = 0; i < METER_COUNTS; i++) {
        values[i] = 0;
        for (uint32_t k = 0; k < list->count; k++)
            values[i] += counter_get(&list->meters[k]->counts[i]);
    }
}

const struct probe_ops meter_probe = {
    .plugin = {.name = "pipeline",
               .summary = "what the program itself read, decoded and waited for",
               .state_size = sizeof(struct meter_probe)},
    .open = meter_open,
    .sample = meter_sample,
};

/* ---- timeline ---- */

static int by_start(const void *left, const void *right)
{
    const struct timeline_phase *a = left, *b = right;

    return a->from_s < b->from_s ? -1 : a->from_s > b->from_s;
}

struct timeline *timeline_make(const struct series *series, struct series_anchor anchor,
                               uint64_t interval_ns)
{
    const uint64_t start_ns = series->row_count ? series_time_ns(series, 0) : anchor.monotonic_ns;
    const uint32_t figures_most = METER_COUNTS + PROVENANCE_PARTS + MONITOR_FIGURES;
    struct timeline *timeline =
        timeline_blank(figures_most + series->metric_count, series->row_count, series->mark_count);

    if (!timeline)
        return NULL;
    timeline->start_monotonic_ns = start_ns;
    timeline->start_unix_ns = anchor.unix_ns + (start_ns - anchor.monotonic_ns);

    /* columns: the figures of available probes, then all counters */
    char(*keys)[TIMELINE_KEY_BYTES] = timeline->keys;
    uint32_t count = 0;
    for (int i = 0; i < METER_COUNTS; i++)
        if (meter_figures[i].key)
            snprintf(keys[count++], sizeof *keys, "%s", meter_figures[i].key);
    for (int i = 1; i < PROVENANCE_PARTS; i++) /* the meter counts the first */
        snprintf(keys[count++], sizeof *keys, "%s_per_s", provenance_keys[i]);
    for (int i = 0; i < MONITOR_FIGURES; i++)
        if (monitor_counts(series, &monitor_figures[i]))
            snprintf(keys[count++], sizeof *keys, "%s", monitor_figures[i].key);
    timeline->figure_count = count;
    for (uint32_t i = 0; i < series->metric_count; i++) {
        char name[TIMELINE_KEY_BYTES - 8];
        snprintf(keys[count++], sizeof *keys, "%s%s",
                 series_name(&series->metrics[i], name, sizeof name),
                 series->metrics[i].kind == METRIC_COUNTER ? "_per_s" : "");
    }
    assert(count <= timeline->column_count); /* room for all */
    timeline->column_count = count;

    /* Rows. Counting starts at the first row of the series, which is in no bin. Samples may follow
     * each other closely (sampler_sample()); a rate over a millisecond is not worth a row. */
    const uint64_t least_ns = interval_ns / 2;
    const uint64_t rows = series->row_count ? series->row_count - 1 : 0;
    const uint64_t together = rows ? (rows + TIMELINE_ROWS - 1) / TIMELINE_ROWS : 1;
    timeline->interval_s = (double)interval_ns / 1e9 * (double)(series->stride * together);
    for (uint64_t row = 0; row < rows; timeline->row_count++) {
        const uint64_t from_ns = series_time_ns(series, row);
        row = row + together < rows ? row + together : rows;
        while (row < rows && series_time_ns(series, row) - from_ns < least_ns)
            row++;
        const uint64_t to_ns = series_time_ns(series, row);
        const double seconds = (double)(to_ns - from_ns) / 1e9;
        double *values = timeline_row(timeline, timeline->row_count);
        struct provenance provenance;
        *values++ = (double)(int64_t)(to_ns - start_ns) / 1e9;
        for (int i = 0; i < METER_COUNTS; i++)
            if (meter_figures[i].key)
                *values++ = monitor_figure(series, &meter_figures[i], from_ns, to_ns);
        provenance_take(series, from_ns, to_ns, &provenance);
        for (int i = 1; i < PROVENANCE_PARTS; i++)
            *values++ = *provenance_part(&provenance, i) / seconds;
        for (int i = 0; i < MONITOR_FIGURES; i++)
            if (monitor_counts(series, &monitor_figures[i]))
                *values++ = monitor_figure(series, &monitor_figures[i], from_ns, to_ns);
        for (uint32_t i = 0; i < series->metric_count; i++)
            *values++ = series->metrics[i].kind == METRIC_COUNTER
                            ? series_total(series, i, from_ns, to_ns) / seconds
                            : series_rate(series, row, i);
    }

    for (uint32_t i = 0; i < series->mark_count; i++) {
        const struct series_mark *mark = &series->marks[i];
        struct timeline_phase *phase = &timeline->phases[timeline->phase_count++];
        *phase = (struct timeline_phase){
            .run = mark->run,
            .number = mark->number,
            .from_s = (double)(int64_t)(mark->from_ns - start_ns) / 1e9,
            .to_s = (double)(int64_t)(mark->to_ns - start_ns) / 1e9,
        };
        memcpy(phase->name, mark->phase, sizeof phase->name);
        provenance_take(series, mark->from_ns, mark->to_ns, &phase->provenance);
        if (strcmp(phase->name, "epoch") == 0)
            provenance_add(&timeline->provenance, &phase->provenance);
    }
    qsort(timeline->phases, timeline->phase_count, sizeof *timeline->phases, by_start);
    timeline->phases_lost = series->marks_lost;
    return timeline;
}

struct timeline *timeline_blank(uint32_t columns, uint64_t rows, uint64_t phases)
{
    struct timeline *timeline = memory_zeroed(sizeof *timeline);

    if (!timeline)
        return NULL;
    timeline->column_count = timeline->figure_count = columns;
    timeline->keys = memory_array(columns, sizeof *timeline->keys);
    timeline->values = memory_array(rows, (1 + (size_t)columns) * sizeof *timeline->values);
    timeline->phases = memory_array(phases, sizeof *timeline->phases);
    if (!timeline->keys || !timeline->values || !timeline->phases) {
        timeline_destroy(timeline);
        return NULL;
    }
    return timeline;
}

void timeline_destroy(struct timeline *timeline)
{
    if (!timeline)
        return;
    for (uint32_t i = 0; i < timeline->node_count; i++)
        timeline_destroy(timeline->nodes[i].timeline);
    free(timeline->nodes);
    free(timeline->keys);
    free(timeline->values);
    free(timeline->phases);
    free(timeline);
}

double *timeline_row(const struct timeline *timeline, uint64_t row)
{
    return timeline->values + row * (1 + (uint64_t)timeline->column_count);
}

double timeline_time_s(const struct timeline *timeline, uint64_t row)
{
    return timeline_row(timeline, row)[0];
}

double timeline_value(const struct timeline *timeline, uint64_t row, uint32_t column)
{
    assert(row < timeline->row_count && column < timeline->column_count);
    return timeline_row(timeline, row)[1 + column];
}

uint32_t timeline_find(const struct timeline *timeline, const char *key)
{
    uint32_t column = 0;

    while (column < timeline->column_count && strcmp(timeline->keys[column], key) != 0)
        column++;
    return column;
}

static double begin_of(const struct timeline *timeline, uint64_t row)
{
    return row ? timeline_time_s(timeline, row - 1) : timeline->begin_s;
}

/* known_s: for how long of the interval it is known. */
static double mean_of(const struct timeline *timeline, uint32_t column, double from_s, double to_s,
                      double *known_s)
{
    double sum = 0, seconds = 0;
    uint64_t row = 0, high = timeline->row_count;

    while (row < high) { /* the first row that ends after from_s */
        const uint64_t middle = row + (high - row) / 2;
        if (timeline_time_s(timeline, middle) <= from_s)
            row = middle + 1;
        else
            high = middle;
    }
    for (; row < timeline->row_count && begin_of(timeline, row) < to_s; row++) {
        const double share =
            fmin(timeline_time_s(timeline, row), to_s) - fmax(begin_of(timeline, row), from_s);
        const double value = timeline_value(timeline, row, column);
        if (share > 0 && isfinite(value)) {
            sum += value * share;
            seconds += share;
        }
    }
    *known_s = seconds;
    return seconds > 0 ? sum / seconds : NAN;
}

double timeline_mean(const struct timeline *timeline, uint32_t column, double from_s, double to_s)
{
    double known_s;

    return mean_of(timeline, column, from_s, to_s, &known_s);
}

double timeline_end_s(const struct timeline *timeline)
{
    return begin_of(timeline, timeline->row_count);
}

double timeline_rebin(const struct timeline *timeline, uint32_t column, double from_s, double to_s)
{
    const double there_s = fmin(to_s, timeline_end_s(timeline)) - fmax(from_s, timeline->begin_s);
    double known_s;
    const double mean = mean_of(timeline, column, from_s, to_s, &known_s);

    if (known_s < there_s / 2)
        return NAN;
    /* A level, such as bytes in memory, holds for the whole row; all else is a rate over time. */
    const char *unit = strrchr(timeline->keys[column], '_');
    const bool is_level = unit && (strcmp(unit, "_bytes") == 0 || strcmp(unit, "_watts") == 0);
    return is_level || !(to_s > from_s) ? mean : mean * there_s / (to_s - from_s);
}

/* ---- several nodes: in one piece of memory ---- */

static uint64_t keys_bytes(const struct timeline *timeline)
{
    return timeline->column_count * (uint64_t)TIMELINE_KEY_BYTES;
}

static uint64_t values_bytes(const struct timeline *timeline)
{
    return timeline->row_count * (1 + (uint64_t)timeline->column_count) * sizeof(double);
}

static uint64_t phases_bytes(const struct timeline *timeline)
{
    return timeline->phase_count * sizeof *timeline->phases;
}

static uint64_t packed_bytes(const struct timeline *timeline)
{
    return sizeof *timeline + keys_bytes(timeline) + values_bytes(timeline) +
           phases_bytes(timeline);
}

void *timeline_pack(const struct timeline *timeline, uint32_t columns, uint64_t *bytes)
{
    struct timeline head = *timeline;

    if (columns < head.column_count)
        head.column_count = columns;
    if (columns < head.figure_count)
        head.figure_count = columns;
    head.node_count = 0;
    *bytes = packed_bytes(&head);
    char *packed = memory_zeroed(*bytes), *at = packed;
    if (!packed)
        return NULL;
    memcpy(at, &head, sizeof head);
    at += sizeof head;
    memcpy(at, timeline->keys, keys_bytes(&head));
    at += keys_bytes(&head);
    assert(head.figure_count <= head.column_count);
    const size_t row_bytes = (1 + (size_t)head.column_count) * sizeof(double);
    for (uint64_t row = 0; row < head.row_count; row++, at += row_bytes)
        memcpy(at, timeline_row(timeline, row), row_bytes);
    memcpy(at, timeline->phases, phases_bytes(&head));
    return packed;
}

static bool sound_provenance(const struct provenance *provenance)
{
    return provenance->witness >= PROVENANCE_NOTHING && provenance->witness <= PROVENANCE_RECEIVED;
}

/* Let head describe the arrays of a blank timeline instead of its own. */
static void take_head(struct timeline *timeline, struct timeline head)
{
    head.keys = timeline->keys;
    head.values = timeline->values;
    head.phases = timeline->phases;
    head.nodes = NULL;
    head.node_count = 0;
    *timeline = head;
}

struct timeline *timeline_unpack(const void *packed, uint64_t bytes)
{
    const char *at = packed;
    struct timeline head;

    if (bytes < sizeof head)
        return NULL;
    memcpy(&head, at, sizeof head);
    if (head.row_count > bytes / sizeof(double) || packed_bytes(&head) != bytes ||
        head.figure_count > head.column_count)
        return NULL;
    struct timeline *timeline = timeline_blank(head.column_count, head.row_count, head.phase_count);
    if (!timeline)
        return NULL;
    take_head(timeline, head);
    memcpy(timeline->keys, at += sizeof head, keys_bytes(&head));
    memcpy(timeline->values, at += keys_bytes(&head), values_bytes(&head));
    memcpy(timeline->phases, at + values_bytes(&head), phases_bytes(&head));
    /* Texts are terminated and enumerations in range, or the rank runs another build. */
    bool sound =
        sound_provenance(&timeline->provenance) && timeline->absent_count <= TIMELINE_REASONS;
    for (uint32_t i = 0; sound && i < timeline->absent_count; i++)
        sound = memchr(timeline->absent[i], 0, sizeof timeline->absent[i]) != NULL;
    for (uint32_t i = 0; sound && i < timeline->column_count; i++)
        sound = memchr(timeline->keys[i], 0, sizeof timeline->keys[i]) != NULL;
    for (uint32_t i = 0; sound && i < timeline->phase_count; i++)
        sound = memchr(timeline->phases[i].name, 0, sizeof timeline->phases[i].name) &&
                sound_provenance(&timeline->phases[i].provenance);
    if (sound)
        return timeline;
    timeline_destroy(timeline);
    return NULL;
}

/* ---- another clock ---- */

void timeline_move(struct timeline *timeline, double start_s, double end_s)
{
    const double length_s = timeline_end_s(timeline);
    const double pace = length_s > 0 ? (end_s - start_s) / length_s : 1;

    timeline->begin_s = start_s + pace * timeline->begin_s;
    for (uint64_t row = 0; row < timeline->row_count; row++) {
        double *time_s = timeline_row(timeline, row);
        *time_s = start_s + pace * *time_s;
    }
    for (uint32_t i = 0; i < timeline->phase_count; i++) {
        timeline->phases[i].from_s = start_s + pace * timeline->phases[i].from_s;
        timeline->phases[i].to_s = start_s + pace * timeline->phases[i].to_s;
    }
}

/* ---- sums ---- */

/* Rates of bytes and counts, bytes, watts, and the program's own counters. */
static bool adds_up(const char *key)
{
    static const char *const ends[] = {"_per_s", "_bytes", "_watts"};
    const size_t length = strlen(key);

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (length >= strlen(ends[i]) && strcmp(key + length - strlen(ends[i]), ends[i]) == 0)
            return true;
    for (int i = 0; i < METER_COUNTS; i++)
        if (meter_figures[i].key && strcmp(key, meter_figures[i].key) == 0)
            return true;
    return false;
}

struct timeline *timeline_join(struct timeline_node *nodes, uint32_t count)
{
    const struct timeline *first = nodes[0].timeline;
    const double first_end_s = timeline_end_s(first);
    double end_s = first_end_s;
    uint32_t columns = 0;

    assert(count > 0);
    for (uint32_t i = 0; i < count; i++) {
        columns += nodes[i].timeline->figure_count;
        if (nodes[i].timeline->row_count)
            end_s = fmax(end_s, timeline_end_s(nodes[i].timeline));
    }
    /* After the first node's rows come rows of the same length until the last node ends; a
     * remainder too short for its own row extends the last one. */
    const double rest_s = end_s - first_end_s;
    const double rest_rows = first->interval_s > 0 ? rest_s / first->interval_s : 0;
    uint64_t more = (uint64_t)fmin(rest_rows + 0.5, TIMELINE_ROWS);
    if (more == 0 && rest_s > 0 && first->row_count == 0)
        more = 1;
    const uint64_t rows = first->row_count + more;
    struct timeline *sum = timeline_blank(columns, rows, first->phase_count);
    if (!sum) {
        for (uint32_t i = 0; i < count; i++)
            timeline_destroy(nodes[i].timeline);
        free(nodes);
        return NULL;
    }
    take_head(sum, *first); /* start time, sampling and provenance */
    sum->nodes = nodes;
    sum->node_count = count;
    sum->row_count = rows;
    sum->column_count = 0;
    for (uint32_t i = 0; i < count; i++) { /* the figures of all nodes that can be summed */
        const struct timeline *timeline = nodes[i].timeline;
        for (uint32_t k = 0; k < timeline->figure_count; k++)
            if (adds_up(timeline->keys[k]) &&
                timeline_find(sum, timeline->keys[k]) == sum->column_count)
                memcpy(sum->keys[sum->column_count++], timeline->keys[k], sizeof *sum->keys);
    }
    sum->figure_count = sum->column_count;
    for (uint64_t row = 0; row < first->row_count; row++)
        timeline_row(sum, row)[0] = timeline_time_s(first, row);
    for (uint64_t i = 1; i < more; i++)
        timeline_row(sum, first->row_count + i - 1)[0] =
            first_end_s + rest_s * (double)i / (double)more;
    if (rows)
        timeline_row(sum, rows - 1)[0] = end_s;
    assert(sum->column_count <= columns);

    /* A value unknown on one node is unknown in the sum. A node that lacks the column, or was not
     * running for most of the row, adds nothing unknown: rows of two nodes never end together. */
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < sum->column_count; k++) {
            const struct timeline *timeline = nodes[i].timeline;
            const uint32_t from = timeline_find(timeline, sum->keys[k]);
            double before_s = sum->begin_s;
            for (uint64_t row = 0; row < rows && from < timeline->column_count; row++) {
                double *values = timeline_row(sum, row);
                const double there_s =
                    fmin(values[0], timeline_end_s(timeline)) - fmax(before_s, timeline->begin_s);
                const bool there = there_s > (values[0] - before_s) / 2;
                const double value = timeline_rebin(timeline, from, before_s, values[0]);
                if (there || !isnan(value))
                    values[1 + k] = isnan(values[1 + k]) ? NAN : values[1 + k] + value;
                before_s = values[0];
            }
        }

    memcpy(sum->phases, first->phases, phases_bytes(sum));
    for (uint32_t i = 1; i < count; i++) {
        provenance_add(&sum->provenance, &nodes[i].timeline->provenance);
        for (uint32_t k = 0; k < sum->phase_count; k++) { /* the same phase there */
            struct timeline_phase *same = &sum->phases[k];
            for (uint32_t p = 0; p < nodes[i].timeline->phase_count; p++) {
                const struct timeline_phase *phase = &nodes[i].timeline->phases[p];
                if (phase->run == same->run && phase->number == same->number &&
                    strcmp(phase->name, same->name) == 0) {
                    provenance_add(&same->provenance, &phase->provenance);
                    break;
                }
            }
        }
    }
    return sum;
}

/* ---- recorder ---- */

/* Twice the rows of a timeline, so that its bins are whole numbers of samples. Memory is small,
 * since the job may be limited. */
enum { ROWS = 2 * TIMELINE_ROWS, MEMORY_BYTES = 8 << 20, PLACES_MOST = 64 };

/* A rank's part of the memory shared on its node. */
struct seat {
    struct meter meter;
    int pid;
    uint64_t pid_space; /* PID namespace: PIDs are comparable if it is the same */
};

struct recorder {
    struct ranks *ranks;
    struct ranks_memory memory;
    struct meter **meters; /* of the ranks on this node */
    struct meter_list list;
    int *pids;
    struct sampler *sampler; /* NULL: another rank samples for this one */
    struct series_anchor anchor;
    struct ranks_clock clock;
    uint64_t interval_ns, run;
    bool sends_all; /* send every counter, else only the figures */
};

static struct seat *seat_of(const struct recorder *recorder, uint32_t local_rank)
{
    return ranks_memory_of(&recorder->memory, local_rank);
}

/* The data, and where links in its folder lead: one path for each file system. */
struct places {
    const char *data;
    char *paths[PLACES_MOST];
    uint64_t devices[PLACES_MOST]; /* st_dev */
    size_t count;
};

static int add_link(void *context, const char *name, unsigned char type)
{
    struct places *places = context;
    struct stat status = {0};
    size_t i = 0;

    if (type != DT_LNK || places->count == PLACES_MOST)
        return 0;
    char *path = file_join(places->data, name);
    if (!path)
        return -ENOMEM;
    if (stat(path, &status) == 0)
        while (i < places->count && places->devices[i] != status.st_dev)
            i++;
    if (i < places->count || !(S_ISREG(status.st_mode) || S_ISDIR(status.st_mode))) {
        free(path);
        return 0;
    }
    places->devices[places->count] = status.st_dev;
    places->paths[places->count++] = path;
    return 0;
}

static int start_sampler(struct recorder *recorder, const char *data)
{
    struct places places = {.data = data, .paths = {strdup(data)}, .count = 1};
    struct folder folder = {.fd = -1};
    struct stat status = {0};
    const struct plugin_choice own = {.plugin = &meter_probe.plugin, .settings = &recorder->list};
    const uint32_t count = recorder->ranks->place.local_ranks;
    const uint64_t space = seat_of(recorder, 0)->pid_space;
    int code = places.paths[0] ? 0 : -ENOMEM;
    if (code == 0 && stat(data, &status) == 0 && S_ISDIR(status.st_mode)) {
        places.devices[0] = status.st_dev;
        code = folder_open(&folder, data);
        if (code == 0)
            code = folder_list(&folder, add_link, &places);
        folder_close(&folder);
        if (code != -ENOMEM) { /* a folder that cannot be listed fails the job, not its telemetry */
            fail_clear();
            code = 0;
        }
    }
    recorder->meters = memory_array(count, sizeof *recorder->meters);
    recorder->pids = memory_array(count, sizeof *recorder->pids);
    if (!recorder->meters || !recorder->pids)
        code = -ENOMEM;
    /* The meters and PIDs of all ranks on this node. A rank in another PID namespace gets -1, since
     * its PID would name another process. */
    for (uint32_t i = 0; code == 0 && i < count; i++) {
        struct seat *seat = seat_of(recorder, i);
        recorder->meters[i] = &seat->meter;
        recorder->pids[i] = seat->pid_space == space ? seat->pid : -1;
    }
    recorder->list = (struct meter_list){.meters = recorder->meters, .count = count};
    const struct sampler_site site = {
        .probes = {.roots = &telemetry_roots_usual,
                   .paths = (const char *const *)places.paths,
                   .path_count = places.count,
                   .pids = recorder->pids,
                   .pid_count = count},
        .own = &own,
        .interval_ns = recorder->interval_ns,
        .memory_bytes = MEMORY_BYTES,
        .rows_max = ROWS,
    };

    if (code == 0)
        recorder->sampler = sampler_open(&site);
    for (size_t i = 0; i < places.count; i++)
        free(places.paths[i]);
    if (!recorder->sampler)
        return code ? code : -ENODEV;
    recorder->anchor = series_anchor_now();
    return sampler_start(recorder->sampler);
}

static void close_recorder(struct recorder *recorder)
{
    sampler_close(recorder->sampler);
    ranks_unshare(&recorder->memory);
    free(recorder->meters);
    free(recorder->pids);
    free(recorder);
}

struct recorder *recorder_start(const char *data, const struct output_settings *settings,
                                struct ranks *ranks)
{
    struct recorder *recorder = memory_zeroed(sizeof *recorder);
    int code = recorder ? 0 : -ENOMEM;

    if (code == 0 && !settings->sample_interval_ns)
        code = fail(ENODATA, "--sample-interval none was given");
    code = ranks_meet(ranks, code, NULL);
    if (code) {
        free(recorder);
        return NULL;
    }
    recorder->ranks = ranks;
    recorder->interval_ns = settings->sample_interval_ns;
    recorder->sends_all = settings->series != NULL;
    code = ranks_share(ranks, sizeof(struct seat), &recorder->memory);
    if (code == 0) {
        struct seat *mine = seat_of(recorder, ranks->place.local_rank);
        struct stat space = {0};
        stat("/proc/self/ns/pid", &space);
        mine->pid = (int)getpid();
        mine->pid_space = space.st_ino;
        code = ranks_meet(ranks, 0, NULL);
    }
    if (code == 0 && ranks->place.local_rank == 0)
        code = start_sampler(recorder, data);
    code = ranks_meet(ranks, code, NULL);
    if (code == 0)
        code = ranks_compare_clocks(ranks, &recorder->clock);
    if (code == 0)
        return recorder;
    close_recorder(recorder);
    return NULL;
}

/* The header that a node sends before its timeline. */
static const uint64_t parcel_bytes_most = UINT64_C(1) << 30;

struct parcel {
    uint64_t bytes;
    struct ranks_clock start, end;
};

/* Return the seconds a clock is ahead of rank 0's: drift is constant between both comparisons. */
static double ahead_s(const struct parcel *parcel, double at_ns)
{
    const double length_ns = (double)parcel->end.at_ns - (double)parcel->start.at_ns;
    const double share = length_ns > 0 ? (at_ns - (double)parcel->start.at_ns) / length_ns : 0;
    const double drift_ns = (double)parcel->end.ahead_ns - (double)parcel->start.ahead_ns;

    return ((double)parcel->start.ahead_ns + share * drift_ns) / 1e9;
}

static int receive_node(struct ranks *ranks, uint32_t rank, const struct timeline *first,
                        struct timeline_node *node)
{
    struct parcel parcel;
    int code = ranks_move(ranks, rank, &parcel, sizeof parcel, false);

    if (code || parcel.bytes == 0)
        return code;
    if (parcel.bytes > parcel_bytes_most)
        return fail(EPROTO, "rank %u announced an impossible series of %llu bytes", rank,
                    (unsigned long long)parcel.bytes);
    void *packed = memory_zeroed(parcel.bytes);
    if (!packed)
        return -ENOMEM;
    code = ranks_move(ranks, rank, packed, parcel.bytes, false);
    node->timeline = code ? NULL : timeline_unpack(packed, parcel.bytes);
    free(packed);
    if (code || !node->timeline)
        return code;
    memcpy(node->host, ranks->peers[rank].host, sizeof node->host - 1);
    struct timeline *timeline = node->timeline;
    /* Convert a time to the clock of node 0. */
    const double apart_s =
        (double)(int64_t)(timeline->start_monotonic_ns - first->start_monotonic_ns) / 1e9;
    const double length_s =
        timeline->row_count ? timeline_time_s(timeline, timeline->row_count - 1) : 0;
    const double at_ns = (double)timeline->start_monotonic_ns;
    const double start_s = apart_s - ahead_s(&parcel, at_ns);

    node->clock_offset_s =
        (double)(int64_t)(timeline->start_unix_ns - first->start_unix_ns) / 1e9 - start_s;
    node->clock_uncertainty_s = (double)(parcel.start.uncertainty_ns > parcel.end.uncertainty_ns
                                             ? parcel.start.uncertainty_ns
                                             : parcel.end.uncertainty_ns) /
                                1e9;
    node->clock_drift_s = ((double)parcel.end.ahead_ns - (double)parcel.start.ahead_ns) / 1e9;
    timeline_move(timeline, start_s, apart_s + length_s - ahead_s(&parcel, at_ns + length_s * 1e9));
    return 0;
}

static struct timeline *gather_nodes(struct recorder *recorder, struct timeline *own)
{
    struct ranks *ranks = recorder->ranks;
    struct ranks_clock end;

    /* Rank 0 must have a timeline, since the rows of all others are aligned with it. */
    int code = ranks_meet(ranks, ranks->place.rank == 0 && !own ? -ENOMEM : 0, NULL);
    if (code == 0)
        code = ranks_compare_clocks(ranks, &end);
    if (code || ranks->place.nodes == 1)
        return own;
    if (ranks->place.rank == 0) { /* join those of all nodes; leave out nodes without one */
        struct timeline_node *nodes = memory_array(ranks->place.nodes, sizeof *nodes);
        uint32_t count = 1;
        code = nodes ? 0 : -ENOMEM;
        for (uint32_t i = 1; i < ranks->place.ranks && code == 0; i++)
            if (ranks->peers[i].leads) {
                assert(count < ranks->place.nodes);
                code = receive_node(ranks, i, own, &nodes[count]);
                count += nodes[count].timeline != NULL;
            }
        if (code == 0) {
            memcpy(nodes[0].host, ranks->place.host, sizeof nodes[0].host - 1);
            nodes[0].timeline = own;
            return timeline_join(nodes, count);
        }
        for (uint32_t i = 1; nodes && i < count; i++)
            timeline_destroy(nodes[i].timeline);
        free(nodes);
        timeline_destroy(own);
        return NULL;
    }
    if (ranks->place.local_rank == 0) {
        struct parcel parcel = {.start = recorder->clock, .end = end};
        void *packed =
            own ? timeline_pack(own, recorder->sends_all ? own->column_count : own->figure_count,
                                &parcel.bytes)
                : NULL;
        parcel.bytes = packed ? parcel.bytes : 0;
        code = ranks_move(ranks, 0, &parcel, sizeof parcel, true);
        if (code == 0 && packed)
            ranks_move(ranks, 0, packed, parcel.bytes, true);
        free(packed);
    }
    return own;
}

struct timeline *recorder_finish(struct recorder *recorder, int code)
{
    if (!recorder)
        return NULL;
    struct timeline *timeline = NULL;
    if (recorder->sampler) {
        sampler_stop(recorder->sampler);
        const struct series_anchor now = series_anchor_now();
        const struct sampler_figures figures = sampler_figures(recorder->sampler);
        const char *reason;
        timeline = timeline_make(sampler_series(recorder->sampler), recorder->anchor,
                                 recorder->interval_ns);
        if (timeline) {
            timeline->clock_step_s = series_clock_step_s(&recorder->anchor, &now);
            timeline->samples = figures.samples;
            timeline->late = figures.late;
            if (figures.wall_ns)
                timeline->cpu_percent = 100 * (double)figures.cpu_ns / (double)figures.wall_ns;
            while (timeline->absent_count < TIMELINE_REASONS &&
                   (reason = sampler_absent(recorder->sampler, timeline->absent_count)))
                snprintf(timeline->absent[timeline->absent_count++], sizeof timeline->absent[0],
                         "%s", reason);
        }
    }
    if (code == 0 && recorder->ranks->place.ranks > 1)
        timeline = gather_nodes(recorder, timeline);
    close_recorder(recorder);
    return timeline;
}

struct meter *recorder_meter(struct recorder *recorder)
{
    return recorder ? &seat_of(recorder, recorder->ranks->place.local_rank)->meter : NULL;
}

void recorder_begin_run(struct recorder *recorder, uint64_t run)
{
    if (recorder)
        recorder->run = run;
}

void recorder_sample(struct recorder *recorder)
{
    if (recorder && recorder->sampler)
        sampler_sample(recorder->sampler);
}

void recorder_mark(struct recorder *recorder, const char *phase, uint64_t number, uint64_t from_ns)
{
    if (!recorder || !recorder->sampler)
        return;
    struct series_mark mark = {
        .run = recorder->run, .number = number, .from_ns = from_ns, .to_ns = clock_now_ns()};
    snprintf(mark.phase, sizeof mark.phase, "%s", phase);
    sampler_mark(recorder->sampler, &mark);
}
