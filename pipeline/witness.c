/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/witness.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "cachectl/cold.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <time.h>

struct witness {
    const struct job *job;
    const struct catalog *catalog;
    const char **paths; /* of the shards */
};

struct witness *witness_open(const struct job *job, const struct catalog *catalog)
{
    struct witness *witness = memory_zeroed(sizeof *witness);

    if (!witness)
        return NULL;
    witness->job = job;
    witness->catalog = catalog;
    witness->paths = memory_array(catalog->shard_count, sizeof *witness->paths);
    if (!witness->paths) {
        witness_close(witness);
        return NULL;
    }
    for (uint32_t i = 0; i < catalog->shard_count; i++)
        witness->paths[i] = catalog->shards[i].path;
    return witness;
}

void witness_close(struct witness *witness)
{
    if (!witness)
        return;
    free(witness->paths);
    free(witness);
}

struct told {
    void (*progress)(void *context, uint64_t elapsed_ns);
    void *context;
};

static void pass_on(void *context, const struct cache_progress *progress)
{
    const struct told *told = context;

    told->progress(told->context, progress->elapsed_ns);
}

int witness_make_cold(struct witness *witness, void (*progress)(void *context, uint64_t elapsed_ns),
                      void *context, struct result_cold *cold)
{
    struct told told = {.progress = progress, .context = context};
    const struct cache_observer observer = {.progress = pass_on, .context = &told};
    const struct job *job = witness->job;
    struct cold_result found = {0};
    struct cold_request request = {
        .paths = witness->paths,
        .count = witness->catalog->shard_count,
        .drop = job->drop_caches != JOB_DROP_NO,
        .strict = job->drop_caches == JOB_DROP_STRICT,
        .server_command = job->server_drop_command,
        .timeout_ns = job->drop_timeout_ns,
        .observer = &observer,
    };
    static const enum result_cache states[] = {[RESIDENCY_COLD] = RESULT_CACHE_COLD,
                                               [RESIDENCY_WARM] = RESULT_CACHE_WARM,
                                               [RESIDENCY_UNVERIFIED] = RESULT_CACHE_UNVERIFIED};

    int code = cold_make(&request, &found);
    *cold = (struct result_cold){
        .state = states[found.label],
        .dropped = found.dropped,
        .resident_bytes = found.resident_bytes,
        .total_bytes = found.total_bytes,
        .residue_percent = found.residue_percent,
        .drop_ns = found.total_ns,
    };
    snprintf(cold->method, sizeof cold->method, "%s", found.method);
    snprintf(cold->reason, sizeof cold->reason, "%s", found.reason);
    return code;
}

void witness_before(struct witness *witness)
{
    (void)witness;
}

void witness_after(struct witness *witness, struct result_bytes *device)
{
    (void)witness;
    device->known = false;
}

static void read_cpu_name(char *name, size_t bytes)
{
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "re");

    snprintf(name, bytes, "unknown");
    while (file && fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) == 0 && colon) {
            line[strcspn(line, "\n")] = '\0';
            snprintf(name, bytes, "%s", colon + 2);
            break;
        }
    }
    if (file)
        fclose(file);
}

void witness_place(const struct witness *witness, struct result_place *place)
{
    struct utsname names;
    struct sysinfo memory;
    time_t now = time(NULL);
    struct tm utc;

    (void)witness;
    uname(&names);
    snprintf(place->host, sizeof place->host, "%s", names.nodename);
    snprintf(place->kernel, sizeof place->kernel, "%.70s %.70s", names.sysname, names.release);
    read_cpu_name(place->cpu, sizeof place->cpu);
    snprintf(place->clock_source, sizeof place->clock_source, "%s", clock_source());
    place->cpu_count = thread_cpu_count();
    if (sysinfo(&memory) == 0)
        place->memory_bytes = (uint64_t)memory.totalram * memory.mem_unit;
    gmtime_r(&now, &utc);
    strftime(place->started, sizeof place->started, "%Y-%m-%dT%H:%M:%SZ", &utc);
}
