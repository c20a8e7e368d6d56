/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/result/recorder.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/memory.h"
#include "telemetry/sampler.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

static int find_places(struct places *places, const char *data)
{
    struct folder folder = {.fd = -1};
    struct stat status = {0};

    *places = (struct places){.data = data, .paths = {strdup(data)}};
    if (!places->paths[0])
        return -ENOMEM;
    places->count = 1;
    if (stat(data, &status) || !S_ISDIR(status.st_mode))
        return 0;
    places->devices[0] = status.st_dev;
    int code = folder_open(&folder, data);
    if (code == 0)
        code = folder_list(&folder, add_link, places);
    folder_close(&folder);
    if (code != -ENOMEM) /* a folder that cannot be listed fails the job, not its telemetry */
        fail_clear();
    return code == -ENOMEM ? code : 0;
}

static int start_sampler(struct recorder *recorder, const char *data)
{
    struct places places;
    const struct plugin_choice own = {.plugin = &meter_probe.plugin, .settings = &recorder->list};
    const uint32_t count = recorder->ranks->place.local_ranks;
    const uint64_t space = seat_of(recorder, 0)->pid_space;
    int code = find_places(&places, data);
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

/* Return the seconds that a clock is ahead of rank 0's, assuming constant drift between the two
 * comparisons. */
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
