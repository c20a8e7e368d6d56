/* SPDX-License-Identifier: Apache-2.0
 *
 * manual_clock: a clock that a test sets. A program that links manual_clock.c has it in place of
 * base/clock.c: time passes when somebody sleeps, and when the test says so. One thread.
 */
#ifndef IOBENCH_TESTS_MANUAL_CLOCK_H
#define IOBENCH_TESTS_MANUAL_CLOCK_H

#include "base/clock.h"

extern uint64_t manual_clock_ns;      /* now */
extern uint64_t manual_clock_late_ns; /* each sleep ends so much later than asked */

#endif
