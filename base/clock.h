/* SPDX-License-Identifier: Apache-2.0
 * clock: monotonic time in nanoseconds. Any thread. */
#ifndef IOBENCH_BASE_CLOCK_H
#define IOBENCH_BASE_CLOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

uint64_t clock_now_ns(void); /* CLOCK_MONOTONIC */
/* CLOCK_MONOTONIC_COARSE: a tick of the kernel (1 to 10 ms) late at most, and much cheaper. Do not
 * subtract one clock from the other. */
uint64_t clock_coarse_ns(void);
uint64_t clock_cpu_ns(void);                /* CPU time of this thread */
uint64_t clock_cpu_of_ns(pthread_t thread); /* of one that has not ended */
void clock_sleep_ns(uint64_t duration_ns);
void clock_sleep_until_ns(uint64_t deadline_ns); /* on CLOCK_MONOTONIC */
/* One moment on CLOCK_MONOTONIC and on two clocks that are not set or slewed with it. */
struct clock_moment {
    uint64_t before_ns, after_ns; /* on CLOCK_MONOTONIC: the moment is between them */
    uint64_t raw_ns, boot_ns;     /* CLOCK_MONOTONIC_RAW, CLOCK_BOOTTIME */
};

void clock_moment(struct clock_moment *moment);
/* Did all clocks advance equally between two moments, within 1% and the time of reading them?
 * *passed_ns: on CLOCK_MONOTONIC; *other_ns: on the clock that differs most. */
bool clock_agrees(const struct clock_moment *from, const struct clock_moment *to,
                  int64_t *passed_ns, int64_t *other_ns);
const char *clock_source(void); /* the kernel's clock source, or "unknown" */

#endif
