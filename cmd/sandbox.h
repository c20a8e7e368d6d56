/* SPDX-License-Identifier: Apache-2.0
 *
 * sandbox: before parsing untrusted files, the program gives up every right that the command does
 * not need. The needs follow from the option tables (enum option_reach) and the operands: data sets
 * to read, outputs and caches to write; libraries, kernel files, and GPU and fabric devices.
 * docs/security.md has the list. Main thread, before any other thread starts.
 */
#ifndef IOBENCH_CMD_SANDBOX_H
#define IOBENCH_CMD_SANDBOX_H

#include "cmd/command.h"

/* --sandbox */
enum sandbox_wanted { SANDBOX_AUTO, SANDBOX_YES, SANDBOX_NO };
extern const char *const sandbox_choices[];

/* Confine the process to what this invocation needs, according to `count` settings of its table,
 * each settings_size bytes, and its `more` jobs. SANDBOX_AUTO confines only root, if the kernel
 * can, and not the ranks of an MPI job, which read each other's memory. Returns 0, or a negative
 * errno with a reason. */
int sandbox_enter(const struct invocation *invocation, const void *settings, size_t count);

#endif
