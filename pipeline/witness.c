/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/witness.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/thread.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <time.h>

struct witness {
    const struct job *job;
    const struct catalog *catalog;
};

struct witness *witness_open(const struct job *job, const struct catalog *catalog)
{
    struct witness *witness = memory_zeroed(sizeof *witness);

    if (!witness)
        return NULL;
    witness->job = job;
    witness->catalog = catalog;
    return witness;
}

void witness_close(struct witness *witness)
{
    free(witness);
}

int witness_make_cold(struct witness *witness, void (*progress)(void *context, uint64_t elapsed_ns),
                      void *context, struct result_cold *cold)
{
    (void)witness;
    (void)progress;
    (void)context;
    cold->state = RESULT_CACHE_UNVERIFIED;
    return 0;
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
