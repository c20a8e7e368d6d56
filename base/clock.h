/* SPDX-License-Identifier: Apache-2.0
 * clock: monotonic time in nanoseconds. Any thread. */
#ifndef IOBENCH_BASE_CLOCK_H
#define IOBENCH_BASE_CLOCK_H

#include <stdint.h>

uint64_t clock_now_ns(void); /* CLOCK_MONOTONIC */
uint64_t clock_cpu_ns(void); /* CPU time of this thread */
void clock_sleep_ns(uint64_t duration_ns);
void clock_sleep_until_ns(uint64_t deadline_ns); /* on CLOCK_MONOTONIC */
const char *clock_source(void); /* the kernel's clock source, "unknown" when it does not say */

#endif
