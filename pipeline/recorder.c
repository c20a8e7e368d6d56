/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/recorder.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "telemetry/sampler.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Twice what a timeline has, so that its bins are whole numbers of samples; and little memory,
 * which a job may have a limit for. */
enum { ROWS = 2 * TIMELINE_ROWS, MEMORY_BYTES = 8 << 20 };

struct recorder {
    struct meter meter;
    struct sampler *sampler;
    struct series_anchor anchor;
    uint64_t interval_ns, run;
};

struct recorder *recorder_start(const struct job *job)
{
    const char *path = job->data;

    if (!job->sample_interval_ns) {
        fail(ENODATA, "--sample-interval none was given");
        return NULL;
    }
    struct recorder *recorder = memory_zeroed(sizeof *recorder);
    if (!recorder)
        return NULL;
    const struct plugin_choice own = {.plugin = &meter_probe.plugin, .settings = &recorder->meter};
    const struct sampler_site site = {
        .probes = {.roots = &telemetry_roots_usual, .paths = &path, .path_count = 1},
        .own = &own,
        .interval_ns = job->sample_interval_ns,
        .memory_bytes = MEMORY_BYTES,
        .rows_max = ROWS,
    };
    recorder->interval_ns = job->sample_interval_ns;
    recorder->sampler = sampler_open(&site);
    recorder->anchor = series_anchor_now();
    if (recorder->sampler && sampler_start(recorder->sampler) == 0)
        return recorder;
    sampler_close(recorder->sampler);
    free(recorder);
    return NULL;
}

/* How the sampling went. */
static void note_sampling(const struct sampler *sampler, struct timeline *timeline)
{
    const struct sampler_figures figures = sampler_figures(sampler);
    const char *reason;

    timeline->samples = figures.samples;
    timeline->late = figures.late;
    if (figures.wall_ns)
        timeline->cpu_percent = 100 * (double)figures.cpu_ns / (double)figures.wall_ns;
    while (timeline->absent_count < TIMELINE_REASONS &&
           (reason = sampler_absent(sampler, timeline->absent_count)))
        snprintf(timeline->absent[timeline->absent_count++], sizeof timeline->absent[0], "%s",
                 reason);
}

struct timeline *recorder_finish(struct recorder *recorder)
{
    if (!recorder)
        return NULL;
    sampler_stop(recorder->sampler);
    struct timeline *timeline =
        timeline_make(sampler_series(recorder->sampler), recorder->anchor, recorder->interval_ns);
    if (timeline)
        note_sampling(recorder->sampler, timeline);
    sampler_close(recorder->sampler);
    free(recorder);
    return timeline;
}

struct meter *recorder_meter(struct recorder *recorder)
{
    return recorder ? &recorder->meter : NULL;
}

void recorder_begin_run(struct recorder *recorder, uint64_t run)
{
    if (recorder)
        recorder->run = run;
}

void recorder_sample(struct recorder *recorder)
{
    if (recorder)
        sampler_sample(recorder->sampler);
}

void recorder_mark(struct recorder *recorder, const char *phase, uint64_t number, uint64_t from_ns)
{
    if (!recorder)
        return;
    struct series_mark mark = {
        .run = recorder->run, .number = number, .from_ns = from_ns, .to_ns = clock_now_ns()};
    snprintf(mark.phase, sizeof mark.phase, "%s", phase);
    sampler_mark(recorder->sampler, &mark);
}
