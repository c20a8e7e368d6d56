/* SPDX-License-Identifier: Apache-2.0
 *
 * shortage: remembers that something could not be opened because this process (EMFILE, ulimit -n)
 * or the machine (ENFILE) had no descriptor left. Most files of /proc and /sys may be missing, and
 * the program does without them; one that is only out of reach is not missing. A counter, a memory
 * limit or a format would be taken for absent. So each such failure is noted, and a command that
 * met one fails in the end. Any thread.
 */
#ifndef IOBENCH_BASE_SHORTAGE_H
#define IOBENCH_BASE_SHORTAGE_H

/* Note a failure if its code, an errno of either sign, says that no descriptor was left. what: a
 * path or a reason. fail() notes its own; others are those without a reason. Keeps errno. */
void shortage_note(int code, const char *what);

/* The errno of the first one noted since the program started, 0 if there was none; and what it was
 * about, "" if there was none. */
int shortage_code(void);
const char *shortage_what(void);

#endif
