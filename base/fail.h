/* SPDX-License-Identifier: Apache-2.0
 *
 * fail: one sentence per thread that says why a call failed.
 *
 * The code that knows the cause calls fail(); all callers pass the code up unchanged. A message
 * names the file, offset or option, what was wrong, and what to do. Any thread; a reason belongs to
 * the thread that recorded it (base/thread.h passes a worker's reason to the thread that joins it).
 */
#ifndef IOBENCH_BASE_FAIL_H
#define IOBENCH_BASE_FAIL_H

enum { FAIL_REASON_BYTES = 1024 };

/* Record the reason for this thread. code: an errno of either sign. Returns it negative. The reason
 * may quote anything, fail_reason() too: it is kept as one printable line (base/escape.h). */
int fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Return this thread's last reason, or "". Valid until its next fail(). */
const char *fail_reason(void);

/* Clear this thread's reason. */
void fail_clear(void);

/* Keep this thread's reason, or that there is none, until the matching release: fail() then only
 * returns its code. Around what cleans up after a failure, in pairs that may nest; not around what
 * quotes or notes reasons of its own. */
void fail_hold(void);
void fail_release(void);

/* Return a short text for an errno of either sign. Any thread. */
const char *fail_errno_text(int code);

/* Mention the sandbox in texts for EACCES from now on. Call before a second thread starts. */
void fail_note_sandbox(void);

#endif
