/* SPDX-License-Identifier: Apache-2.0
 *
 * startup: undoes what a parent process may have left behind. First call of main().
 */
#ifndef IOBENCH_BASE_STARTUP_H
#define IOBENCH_BASE_STARTUP_H

/* Unblock all signals. Turn a closed pipe (SIGPIPE) and a file size limit (SIGXFSZ) into errors of
 * the write. Occupy closed descriptors 0, 1 and 2 with /dev/null, opened so that using them still
 * fails; otherwise the next file opened would become standard output. Raise a small limit of the
 * stack (ulimit -s) as far as that is allowed, and give threads, also those of libraries, the usual
 * stack in any case. */
void startup_undo_inherited(void);

#endif
