/* SPDX-License-Identifier: Apache-2.0
 *
 * sandbox: before files are parsed that others made, the program gives up all that the command
 * does not need. What that is follows from the option tables (enum option_reach) and the command's
 * operands: data sets are read, outputs and caches written, libraries, kernel files and devices of
 * a GPU or a fabric used. docs/security.md has the list. Main thread, before any other is started.
 */
#ifndef IOBENCH_CMD_SANDBOX_H
#define IOBENCH_CMD_SANDBOX_H

#include "cmd/command.h"

/* --sandbox */
enum sandbox_wanted { SANDBOX_AUTO, SANDBOX_YES, SANDBOX_NO };
extern const char *const sandbox_choices[];

/* Confine the process to what this call of a command needs, by `count` settings of its table, each
 * settings_size bytes. With SANDBOX_AUTO root alone is confined, where the kernel can, and not the
 * ranks of an MPI job, which read each other's memory. 0 or a negative errno with a reason. */
int sandbox_enter(const struct invocation *invocation, const void *settings, size_t count);

#endif
