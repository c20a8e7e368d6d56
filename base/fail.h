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

/* Keep this thread's reason (or its absence) until the matching release; meanwhile fail() only
 * returns its code. For cleanup after a failure, in pairs that may nest; not for code that quotes
 * or notes reasons of its own. */
void fail_hold(void);
void fail_release(void);

/* Return a short text for an errno of either sign. Any thread. */
const char *fail_errno_text(int code);

/* Mention the sandbox in texts for EACCES from now on. Call before a second thread starts. */
void fail_note_sandbox(void);

/* A shortage: something could not be opened because this process (EMFILE, ulimit -n)
 * or the machine (ENFILE) had no descriptor left. The program does without most files of /proc and
 * /sys if they are missing; without a descriptor it would take a counter, a memory limit or a
 * format for missing. So each such failure is noted, and a command that met one fails in the end.
 * Any thread.
 *
 * Note a failure if its code, an errno of either sign, says that no descriptor was left. what: a
 * path or a reason. fail() notes its own: call this only for failures without a reason. Keeps
 * errno. */
void shortage_note(int code, const char *what);

/* The errno of the first one noted since the program started, 0 if there was none; and what it was
 * about, "" if there was none. */
int shortage_code(void);
const char *shortage_what(void);

#endif
