/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include "base/file.h"

#include <errno.h>
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

uint64_t clock_coarse_ns(void)
{
    return read_clock(CLOCK_MONOTONIC_COARSE);
}

uint64_t clock_cpu_ns(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t clock_cpu_of_ns(pthread_t thread)
{
    clockid_t id;

    return pthread_getcpuclockid(thread, &id) ? 0 : read_clock(id);
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

void clock_moment(struct clock_moment *moment)
{
    moment->before_ns = clock_now_ns();
    moment->raw_ns = read_clock(CLOCK_MONOTONIC_RAW);
    moment->boot_ns = read_clock(CLOCK_BOOTTIME);
    moment->after_ns = clock_now_ns();
}

static int64_t distance(int64_t a, int64_t b)
{
    return a > b ? a - b : b - a;
}

bool clock_agrees(const struct clock_moment *from, const struct clock_moment *to,
                  int64_t *passed_ns, int64_t *other_ns)
{
    const int64_t raw_ns = (int64_t)(to->raw_ns - from->raw_ns);
    const int64_t boot_ns = (int64_t)(to->boot_ns - from->boot_ns);
    const int64_t looks_ns =
        (int64_t)(from->after_ns - from->before_ns + to->after_ns - to->before_ns);

    *passed_ns = (int64_t)(to->before_ns - from->before_ns);
    *other_ns = distance(*passed_ns, raw_ns) > distance(*passed_ns, boot_ns) ? raw_ns : boot_ns;
    return distance(*passed_ns, *other_ns) <= *other_ns / 100 + looks_ns;
}

const char *clock_source(void)
{
    static char name[64];

    return file_peek(name, sizeof name,
                     "/sys/devices/system/clocksource/clocksource0/current_clocksource") &&
                   name[0]
               ? name
               : "unknown";
}
