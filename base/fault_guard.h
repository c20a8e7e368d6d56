/* SPDX-License-Identifier: Apache-2.0
 *
 * fault_guard: reads mapped files that others may truncate. Touching a page past the new end, or
 * one that storage cannot read, raises SIGBUS, which would end the program. Between begin and end
 * such a page becomes zeros instead, and end reports the bytes as lost. Faults elsewhere go to the
 * previous handler.
 */
#ifndef IOBENCH_BASE_FAULT_GUARD_H
#define IOBENCH_BASE_FAULT_GUARD_H

#include <stdbool.h>
#include <stddef.h>

extern const char fault_guard_reason[];

/* Install before maps are used, and again if another handler may have replaced it. Any thread,
 * while no other uses a map. */
void fault_guard_install(void);

/* One guarded use at a time per thread. */
void fault_guard_begin(void);
/* Return false if a page of [bytes, bytes + length) is lost, to any thread, or if this thread lost
 * any page since begin. */
bool fault_guard_end(const void *bytes, size_t length);

/* Forget lost pages of a range before it is unmapped. */
void fault_guard_forget(const void *bytes, size_t length);

#endif
