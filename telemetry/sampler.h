/* SPDX-License-Identifier: Apache-2.0
 *
 * sampler: sample a set of probes at a fixed interval, on a thread of its own, into a preallocated
 * series. Slow probes have threads of their own and never delay the others.
 *
 * Open, start, stop and close from one thread; mark and sample from any. The series may be read
 * when stopped, or at any time through sampler_look().
 */
#ifndef IOBENCH_TELEMETRY_SAMPLER_H
#define IOBENCH_TELEMETRY_SAMPLER_H

#include "telemetry/series.h"

struct sampler;

struct sampler_site {
    struct probe_site probes;
    const char *names;               /* "disk,nfs,...": required probes; NULL: all that work */
    const struct plugin_choice *own; /* an additional probe of the caller; NULL: none */
    uint64_t interval_ns;            /* 0: 100 ms */
    uint64_t memory_bytes;           /* at most, for the series; 0: 64 MiB */
    enum series_full when_full;
    uint64_t rows_max; /* 0: 16384, half an hour at 100 ms before the interval doubles */
};

struct sampler_figures {
    uint64_t samples;
    uint64_t late;       /* samples more than half an interval late */
    uint64_t cpu_ns;     /* of the sampler's threads */
    uint64_t wall_ns;    /* since start */
    uint64_t longest_ns; /* the slowest sample */
};

/* Returns NULL with a reason. Omits probes that have nothing to count here, see sampler_absent().
 */
struct sampler *sampler_open(const struct sampler_site *site);
void sampler_close(struct sampler *sampler); /* stops it */

int sampler_start(struct sampler *sampler); /* the first sample is taken before it returns */
void sampler_stop(struct sampler *sampler); /* after a last sample */

void sampler_mark(struct sampler *sampler, const struct series_mark *mark);
/* Take an extra sample now, so that an interval between two of them is exact. Any thread, while
 * running. */
void sampler_sample(struct sampler *sampler);

const struct series *sampler_series(const struct sampler *sampler);
/* After sampler_stop(). */
struct sampler_figures sampler_figures(const struct sampler *sampler);

/* Call look() while no row is being added; for live views. */
void sampler_look(struct sampler *sampler, void (*look)(void *context, const struct series *series),
                  void *context);

/* Return why a probe is absent; NULL if index is past the last. */
const char *sampler_absent(const struct sampler *sampler, uint32_t index);

#endif
