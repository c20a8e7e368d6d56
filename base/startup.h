/* SPDX-License-Identifier: Apache-2.0
 *
 * startup: undo what a parent process may have left behind. First call of main().
 */
#ifndef IOBENCH_BASE_STARTUP_H
#define IOBENCH_BASE_STARTUP_H

/* Unblock all signals. Let a closed pipe (SIGPIPE) and a file size limit (SIGXFSZ) be errors of the
 * write that meets them. Put /dev/null where descriptor 0, 1 or 2 is closed, opened so that using
 * it still fails; else the next file that is opened would become standard output. */
void startup_undo_inherited(void);

#endif
