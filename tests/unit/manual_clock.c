/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/manual_clock.h"

uint64_t manual_clock_ns = 1000000000, manual_clock_late_ns;
uint64_t manual_clock_step_ns;
unsigned manual_clock_asked;
_Thread_local uint64_t manual_clock_ahead_ns;
void (*manual_clock_sleeps)(uint64_t duration_ns);

uint64_t clock_now_ns(void)
{
    manual_clock_ns += manual_clock_step_ns;
    return manual_clock_ns + manual_clock_ahead_ns;
}

uint64_t clock_coarse_ns(void)
{
    return manual_clock_ns;
}

uint64_t clock_cpu_ns(void)
{
    return manual_clock_ns;
}

uint64_t clock_cpu_of_ns(pthread_t thread)
{
    (void)thread;
    manual_clock_asked++;
    return manual_clock_ns;
}

void clock_moment(struct clock_moment *moment)
{
    *moment =
        (struct clock_moment){manual_clock_ns, manual_clock_ns, manual_clock_ns, manual_clock_ns};
}

bool clock_agrees(const struct clock_moment *from, const struct clock_moment *to,
                  int64_t *passed_ns, int64_t *other_ns)
{
    *passed_ns = *other_ns = (int64_t)(to->raw_ns - from->raw_ns);
    return true;
}

void clock_sleep_ns(uint64_t duration_ns)
{
    if (manual_clock_sleeps)
        manual_clock_sleeps(duration_ns + manual_clock_late_ns);
    else
        manual_clock_ns += duration_ns + manual_clock_late_ns;
}

void clock_sleep_until_ns(uint64_t deadline_ns)
{
    if (deadline_ns > manual_clock_ns)
        manual_clock_ns = deadline_ns + manual_clock_late_ns;
}

const char *clock_source(void)
{
    return "manual";
}
