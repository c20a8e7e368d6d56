/* SPDX-License-Identifier: Apache-2.0
 *
 * fail: one sentence that says why a call failed, kept per thread.
 *
 * The place that knows the cause calls fail(); everybody above passes the code up unchanged.
 * A message names the file, offset or option, what was wrong, and what to do next.
 * Safe from any thread; a reason belongs to the thread that recorded it (see base/thread.h
 * for how a worker's reason reaches the thread that joins it).
 */
#ifndef IOBENCH_BASE_FAIL_H
#define IOBENCH_BASE_FAIL_H

enum { FAIL_REASON_BYTES = 1024 };

/* Keep the reason for this thread. code: a positive errno. Returns -code. What the reason quotes
 * may be anything: it is kept as one line that is safe to print (base/escape.h). */
int fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The last reason of this thread, "" when none. Valid until the next fail() here. */
const char *fail_reason(void);

/* Forget the reason of this thread. */
void fail_clear(void);

/* A short text for a positive or negative errno; thread safe. */
const char *fail_errno_text(int code);

/* From now on EACCES may be the sandbox's, and the text says so. Before a second thread starts. */
void fail_note_sandbox(void);

#endif
