/* SPDX-License-Identifier: Apache-2.0
 *
 * One lock guards the series and the values of slow probes; it is held only while copying, never
 * while a probe reads. A second lock is held while the fast probes are sampled, so that any thread
 * may take a sample.
 */
#include "telemetry/sampler.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/thread.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Sleep until the deadline. Returns false on a stop, at once: short runs would wait for it. */
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

/* ---- */

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
