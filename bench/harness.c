/* SPDX-License-Identifier: Apache-2.0
 *
 * Throughput of the harness itself: the null reader and the none decoder over a million records,
 * whole pipeline, in each of the basic orders. The bound is one lock and a few cache misses per
 * group of 64 records; the goal is far above any storage (2 M samples/s of 110 KB are 220 GB/s).
 */
#include "bench/job.h"

#include "base/fail.h"
#include "base/stats.h"
#include "pipeline/engine/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RECORDS = 1000000, SHARDS = 1024, RECORD_BYTES = 112640, ROUNDS = 5 };

static struct catalog *make_catalog(void)
{
    struct catalog *catalog = catalog_create("harness", "none");
    char path[] = "/tmp/iobench-harness-XXXXXX";
    int fd = mkstemp(path);
    const uint64_t per_shard = (RECORDS + SHARDS - 1) / SHARDS;
    int code = 0;

    if (!catalog || fd < 0 || ftruncate(fd, (off_t)(per_shard * RECORD_BYTES)))
        return NULL;
    for (uint64_t i = 0; code == 0 && i < RECORDS; i++) {
        if (i % per_shard == 0)
            code = catalog_begin_shard(catalog, path, NULL, 0);
        if (code == 0)
            code = catalog_add(catalog, i % per_shard * RECORD_BYTES, RECORD_BYTES);
    }
    close(fd);
    unlink(path);
    return code == 0 && catalog_seal(catalog) == 0 ? catalog : NULL;
}

static int measure(const struct catalog *catalog, const char *shuffle, double *samples_per_s)
{
    const struct engine_hooks hooks = {0};
    const char *const options[][2] = {
        {"reader", "null"}, {"decode", "none"}, {"shuffle", shuffle}, {"decode-threads", "1"}};
    struct bench_job job;
    struct result result = {.valid = true};
    struct result_epoch epoch;
    struct result_run run = {.epochs = &epoch};

    int code = bench_job_open(&job, options, sizeof options / sizeof *options);
    if (code)
        return code;
    struct engine_config site = {.job = &job.job, .plugins = &job.plugins, .catalog = catalog};
    struct engine *engine;
    code = engine_create(&site, &result, &engine);
    if (code == 0)
        code = engine_run(engine, 1, &hooks, &run, &result);
    if (code == 0)
        *samples_per_s = result_epoch_samples_per_s(&epoch);
    engine_destroy(engine);
    bench_job_close(&job);
    return code;
}

int main(void)
{
    static const char *const shuffles[] = {"none", "epoch", "buffer:1000"};
    struct catalog *catalog = make_catalog();
    double figures[3][ROUNDS];

    if (!catalog) {
        fprintf(stderr, "harness: %s\n", fail_reason());
        return 1;
    }
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < 3; i++)
            if (measure(catalog, shuffles[i], &figures[i][round])) {
                fprintf(stderr, "harness: %s: %s\n", shuffles[i], fail_reason());
                return 1;
            }
    for (int i = 0; i < 3; i++) {
        struct stats_summary summary = stats_summarise(figures[i], ROUNDS);
        printf("%-12s median %.2f M samples/s (%.2f .. %.2f)\n", shuffles[i], summary.median * 1e-6,
               summary.minimum * 1e-6, summary.maximum * 1e-6);
    }
    for (int i = 0; i < 3; i++) {
        double median = stats_summarise(figures[i], ROUNDS).median;
        char name[32];
        snprintf(name, sizeof name, "harness_%s", shuffles[i]);
        name[strcspn(name, ":")] = '\0';
        printf("claim %s %.2f Msamples/s goal >=2 %s\n", name, median * 1e-6,
               median >= 2e6 ? "ok" : "short");
    }
    catalog_destroy(catalog);
    return 0;
}
