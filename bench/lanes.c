/* SPDX-License-Identifier: Apache-2.0
 *
 * What several loaders do to the depth: the same reads at the same depth from a storage that
 * answers each after a fixed time, with 1, 2 and 4 loaders. depth / time bounds the reads a second;
 * a loader that does not look for new reads while it waits for old ones stays below. By Little's
 * law reads in flight = reads/s x latency: a latency that leaves a queue out shows less than the
 * depth.
 *
 *   bench/lanes [ROUNDS]
 * A simulated storage, and as root our readers on a FUSE file system.
 */
#include "bench/job.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/stats.h"
#include "base/thread.h"
#include "pipeline/engine/engine.h"
#include "readers/reader.h"
#include "tests/unit/fault_fs.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RECORDS = 800, FILES = 4, RECORD_BYTES = 4096, DEPTH = 4, ROUNDS = 3, ROUNDS_MOST = 50 };
enum { COUNTS = 3 };
static const uint32_t counts[COUNTS] = {1, 2, 4};
static const uint64_t DELAY_NS = 10000000;

/* ---- a reader that answers each read DELAY_NS after it got it ---- */

struct delayed {
    pthread_mutex_t lock;
    pthread_cond_t woken_up;
    bool woken;
    struct read_request *held[DEPTH]; /* oldest first */
    uint32_t count;
};

static int delayed_open(void *state, const void *settings, const struct reader_config *site,
                        struct reader_traits *traits)
{
    struct delayed *delayed = state;

    (void)settings, (void)site, (void)traits;
    pthread_mutex_init(&delayed->lock, NULL);
    thread_condition_init(&delayed->woken_up);
    return 0;
}

static void delayed_close(void *state)
{
    struct delayed *delayed = state;

    pthread_cond_destroy(&delayed->woken_up);
    pthread_mutex_destroy(&delayed->lock);
}

static int delayed_submit(void *state, struct read_request *request)
{
    struct delayed *delayed = state;

    delayed->held[delayed->count++] = request;
    return 0;
}

static uint64_t due_ns(const struct delayed *delayed)
{
    return delayed->count ? delayed->held[0]->submit_ns + DELAY_NS : UINT64_MAX;
}

/* Waits until the oldest is due, until until_ns, or until woken. */
static void wait_for_due(struct delayed *delayed, uint64_t until_ns)
{
    uint64_t end_ns = due_ns(delayed) < until_ns ? due_ns(delayed) : until_ns;

    pthread_mutex_lock(&delayed->lock);
    while (!delayed->woken && clock_now_ns() < end_ns)
        thread_condition_wait(&delayed->woken_up, &delayed->lock, end_ns);
    delayed->woken = false;
    pthread_mutex_unlock(&delayed->lock);
}

static int delayed_reap(void *state, struct read_request **done, uint32_t max, uint64_t wait_ns)
{
    struct delayed *delayed = state;
    const uint64_t now_ns = clock_now_ns();
    uint32_t count = 0;

    if (wait_ns)
        wait_for_due(delayed, wait_ns < UINT64_MAX - now_ns ? now_ns + wait_ns : UINT64_MAX);
    while (count < max && due_ns(delayed) <= clock_now_ns()) {
        struct read_request *request = delayed->held[0];
        memmove(delayed->held, delayed->held + 1, --delayed->count * sizeof *delayed->held);
        memset(request->buffer, 0, request->bytes);
        request->data = request->buffer;
        request->result = (int)request->bytes;
        done[count++] = request;
    }
    return (int)count;
}

static void delayed_wake(void *state)
{
    struct delayed *delayed = state;

    pthread_mutex_lock(&delayed->lock);
    delayed->woken = true;
    pthread_cond_signal(&delayed->woken_up);
    pthread_mutex_unlock(&delayed->lock);
}

static const struct reader_ops delayed_ops = {
    .plugin = {.name = "delayed", .state_size = sizeof(struct delayed)},
    .open = delayed_open,
    .close = delayed_close,
    .submit = delayed_submit,
    .reap = delayed_reap,
    .wake = delayed_wake,
};

/* ---- runs ---- */

struct outcome {
    double reads_per_s, in_flight; /* on average, by Little's law */
};

/* reader: NULL for the simulated one. */
static int measure(const struct catalog *catalog, const char *reader, uint32_t loaders,
                   struct outcome *outcome)
{
    const struct engine_hooks hooks = {0};
    struct bench_job job;
    struct result result = {.valid = true};
    struct result_epoch epoch;
    struct result_run run = {.epochs = &epoch};
    char count[16];

    snprintf(count, sizeof count, "%u", loaders);
    const char *const settings[][2] = {{"reader", reader ? reader : "pread"},
                                       {"io-threads", count},
                                       {"decode", "none"},
                                       {"shuffle", "epoch"},
                                       {"decode-threads", "1"},
                                       {"iodepth", "4"},
                                       {"bs", "4k"},
                                       {"memory", "64m"}};
    int code = bench_job_open(&job, settings, sizeof settings / sizeof *settings);
    if (code)
        return code;
    if (!reader)
        job.plugins.reader = (struct plugin_choice){.plugin = &delayed_ops.plugin};
    struct engine_config site = {.job = &job.job, .plugins = &job.plugins, .catalog = catalog};
    struct engine *engine;
    code = engine_create(&site, &result, &engine);
    if (code == 0)
        code = engine_run(engine, 1, &hooks, &run, &result);
    if (code == 0) {
        outcome->reads_per_s = (double)epoch.requests * 1e9 / (double)epoch.wall_ns;
        outcome->in_flight = (double)run.read_latency_ns.sum / (double)epoch.wall_ns;
    }
    engine_destroy(engine);
    bench_job_close(&job);
    return code;
}

static double median_of(const double *values, uint32_t count)
{
    return stats_summarise(values, count).median;
}

/* Of what one loader reads in the same round: what disturbs one round disturbs both. */
static void claim_share(const char *name, uint32_t loaders, const double *several,
                        const double *one, uint32_t rounds)
{
    double shares[ROUNDS_MOST];

    for (uint32_t round = 0; round < rounds; round++)
        shares[round] = several[round] / one[round];
    const double share = median_of(shares, rounds);
    printf("claim lanes_%s_%u %.2f of-one-loader goal >=0.95 %s\n", name, loaders, share,
           share >= 0.95 ? "ok" : "short");
}

static int compare(const struct catalog *catalog, const char *reader, const char *name,
                   uint32_t rounds)
{
    double rates[COUNTS][ROUNDS_MOST], in_flight[COUNTS][ROUNDS_MOST];

    for (uint32_t round = 0; round < rounds; round++)
        for (int i = 0; i < COUNTS; i++) {
            struct outcome outcome;
            int code = measure(catalog, reader, counts[i], &outcome);
            if (code)
                return code;
            rates[i][round] = outcome.reads_per_s;
            in_flight[i][round] = outcome.in_flight;
        }
    for (int i = 0; i < COUNTS; i++) {
        const double held = median_of(in_flight[i], rounds);
        printf("%-8s %u loaders  %6.1f reads/s at depth %d, %.2f in flight by their latencies\n",
               name, counts[i], median_of(rates[i], rounds), DEPTH, held);
        if (i > 0)
            claim_share(name, counts[i], rates[i], rates[0], rounds);
        printf("claim lanes_%s_%u_latency %.2f in-flight goal >=%.1f %s\n", name, counts[i], held,
               0.95 * DEPTH, held >= 0.95 * DEPTH ? "ok" : "short");
        fflush(stdout);
    }
    return 0;
}

/* ---- the data ---- */

static struct catalog *index_files(const char *folder)
{
    struct catalog *catalog = catalog_create(folder, "none");
    char path[64];
    int code = catalog ? 0 : -1;

    for (uint32_t i = 0; code == 0 && i < RECORDS; i++) {
        if (i % (RECORDS / FILES) == 0) {
            snprintf(path, sizeof path, "%s/%u", folder, i / (RECORDS / FILES));
            code = catalog_begin_shard(catalog, path, NULL, 0);
        }
        if (code == 0)
            code = catalog_add(catalog, i % (RECORDS / FILES) * UINT64_C(8192), RECORD_BYTES);
    }
    return code == 0 && catalog_seal(catalog) == 0 ? catalog : NULL;
}

static int make_files(const char *folder, bool remove)
{
    char path[64];

    for (int i = 0; i < FILES; i++) {
        snprintf(path, sizeof path, "%s/%d", folder, i);
        FILE *file = remove ? NULL : fopen(path, "w");
        if (remove ? unlink(path) : !file || ftruncate(fileno(file), RECORDS / FILES * 8192L))
            return fail(EIO, "%s cannot be written", path);
        if (file)
            fclose(file);
    }
    return 0;
}

static int simulated(const char *folder, uint32_t rounds)
{
    int code = make_files(folder, false);
    struct catalog *catalog = code ? NULL : index_files(folder);

    code = catalog ? compare(catalog, NULL, "simulated", rounds) : -1;
    catalog_destroy(catalog);
    make_files(folder, true);
    return code;
}

static int on_fuse(const char *folder, uint32_t rounds)
{
    struct fault_fs *fs;

    if (fault_fs_mount(&fs, folder, FILES, RECORDS / FILES * UINT64_C(8192), NULL, true)) {
        printf("no FUSE: %s\n", fail_reason());
        return 0;
    }
    fault_fs_set(fs, &(struct fault_knobs){.delay_ns = DELAY_NS});
    struct catalog *catalog = index_files(folder);
    int code = catalog ? compare(catalog, "pread", "pread", rounds) : -1;
    if (code == 0 && plugin_find(reader_registry, "uring"))
        code = compare(catalog, "uring:fuse=yes", "uring", rounds);
    catalog_destroy(catalog);
    fault_fs_unmount(fs);
    return code;
}

int main(int argc, char **argv)
{
    char folder[] = "/tmp/iobench-lanes-XXXXXX";
    int wanted = argc > 1 ? atoi(argv[1]) : ROUNDS;
    uint32_t rounds = wanted < 1 ? 1 : wanted > ROUNDS_MOST ? ROUNDS_MOST : (uint32_t)wanted;

    if (!mkdtemp(folder)) {
        perror("lanes");
        return 1;
    }
    int code = simulated(folder, rounds);
    if (code == 0)
        code = on_fuse(folder, rounds);
    if (code)
        fprintf(stderr, "lanes: %s\n", fail_reason());
    rmdir(folder);
    return code != 0;
}
