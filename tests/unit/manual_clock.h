/* SPDX-License-Identifier: Apache-2.0
 * manual_clock: a clock that a test sets. Linking manual_clock.c replaces base/clock.c: time passes
 * during sleeps, and when the test advances it. One thread.
 */
#ifndef IOBENCH_TESTS_MANUAL_CLOCK_H
#define IOBENCH_TESTS_MANUAL_CLOCK_H

#include "base/clock.h"

extern uint64_t manual_clock_ns;                          /* now */
extern uint64_t manual_clock_late_ns;                     /* added to each sleep */
extern uint64_t manual_clock_step_ns;                     /* passes at each look */
extern unsigned manual_clock_asked;                       /* how often for a thread's CPU time */
extern _Thread_local uint64_t manual_clock_ahead_ns;      /* of this thread's clock */
extern void (*manual_clock_sleeps)(uint64_t duration_ns); /* in place of letting it pass */

#endif
