/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/evidence/machine.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/headroom.h"
#include "base/landlock.h"
#include "base/thread.h"

#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <time.h>

/* Find a line of the first CPU. */
static bool find_cpu(const char *key, char *value, size_t bytes)
{
    char line[8192];
    FILE *file = file_stream_kernel("/proc/cpuinfo");
    bool found = false;

    while (file && !found && fgets(line, sizeof line, file)) {
        const char *colon = strstr(line, ": ");
        found = colon && strncmp(line, key, strlen(key)) == 0;
        line[strcspn(line, "\n")] = '\0';
        if (found)
            snprintf(value, bytes, "%s", colon + 2);
    }
    if (file)
        fclose(file);
    return found;
}

/* On x86 the hypervisor bit (CPUID leaf 1, ECX bit 31) is among the CPU flags. */
bool machine_is_virtual(void)
{
    char flags[8192];

    return find_cpu("flags", flags, sizeof flags) && strstr(flags, " hypervisor");
}

void machine_describe(struct environment *environment)
{
    struct utsname names;
    struct sysinfo memory;
    struct headroom headroom;
    time_t now = time(NULL);
    struct tm utc;

    uname(&names);
    snprintf(environment->host, sizeof environment->host, "%s", names.nodename);
    snprintf(environment->kernel, sizeof environment->kernel, "%.70s %.70s", names.sysname,
             names.release);
    if (!find_cpu("model name", environment->cpu, sizeof environment->cpu))
        snprintf(environment->cpu, sizeof environment->cpu, "unknown");
    snprintf(environment->clock_source, sizeof environment->clock_source, "%s", clock_source());
    snprintf(environment->sandbox, sizeof environment->sandbox, "none");
    if (landlock_is_on())
        snprintf(environment->sandbox, sizeof environment->sandbox, "landlock ABI %d",
                 landlock_abi());
    environment->cpu_count = thread_cpu_count();
    headroom_find(&headroom, "/proc", "/sys");
    environment->memory_limit_bytes = headroom.limit_bytes;
    if (sysinfo(&memory) == 0)
        environment->memory_bytes = (uint64_t)memory.totalram * memory.mem_unit;
    gmtime_r(&now, &utc);
    strftime(environment->started, sizeof environment->started, "%Y-%m-%dT%H:%M:%SZ", &utc);
}
