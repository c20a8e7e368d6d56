/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include "base/file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static uint64_t read_clock(clockid_t id)
{
    struct timespec now;

    clock_gettime(id, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t clock_now_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t clock_cpu_ns(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

void clock_sleep_until_ns(uint64_t deadline_ns)
{
    struct timespec deadline = {.tv_sec = (time_t)(deadline_ns / 1000000000u),
                                .tv_nsec = (long)(deadline_ns % 1000000000u)};

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, NULL) == EINTR)
        ;
}

void clock_sleep_ns(uint64_t duration_ns)
{
    clock_sleep_until_ns(clock_now_ns() + duration_ns);
}

const char *clock_source(void)
{
    static char name[64];
    FILE *file =
        file_stream_kernel("/sys/devices/system/clocksource/clocksource0/current_clocksource");

    if (!file)
        return "unknown";
    if (!fgets(name, sizeof name, file))
        name[0] = '\0';
    fclose(file);
    name[strcspn(name, "\n")] = '\0';
    return name[0] ? name : "unknown";
}
