/* SPDX-License-Identifier: Apache-2.0
 *
 * fault_guard: use of mapped files that others may cut. Touching a page past the new end, or one
 * that storage cannot read, raises SIGBUS, which would end the program. Between begin and end the
 * page becomes zeros instead, and end tells that the bytes are lost. Faults elsewhere go to the
 * handler that was there before.
 */
#ifndef IOBENCH_BASE_FAULT_GUARD_H
#define IOBENCH_BASE_FAULT_GUARD_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

extern const char fault_guard_reason[];

/* Before maps are used; again when another handler may have been put in place. Any thread, while no
 * other uses a map. */
void fault_guard_install(void);

/* A thread guards one use at a time. */
void fault_guard_begin(void);
/* False when a page of [bytes, bytes + length) is lost, to this thread or to another, or when this
 * thread lost any page since begin. */
bool fault_guard_end(const void *bytes, size_t length);

/* The range is about to be unmapped. */
void fault_guard_forget(const void *bytes, size_t length);

#endif
