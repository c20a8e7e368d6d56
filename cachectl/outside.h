/* SPDX-License-Identifier: Apache-2.0
 *
 * outside: what a process in a sandbox cannot do, done for it by a child that was forked before and
 * is not confined. It does two things alone: it says which process maps a file, and it runs one of
 * the commands that were fixed when it began. So whoever takes over the confined process gains a
 * command that the user wanted run anyway.
 *
 * The child is not to be trusted with more, nor the confined process with what it sends: requests
 * are checked as files are. One caller at a time.
 */
#ifndef IOBENCH_CACHECTL_OUTSIDE_H
#define IOBENCH_CACHECTL_OUTSIDE_H

#include "base/child.h"
#include "cachectl/holders.h"

#include <stdbool.h>

enum { OUTSIDE_FILES = 8 }; /* asked for at a time */

/* The child: answer until the other end of the socket (SOCK_SEQPACKET) is closed. */
void outside_serve(int socket, const char *const *commands, size_t count);

/* The confined process: the child is at the other end. Both outlive the process. */
void outside_use(int socket, const char *const *commands, size_t count);

/* As holders_find("/proc") and child_run(/bin/sh -c command), there where there is a child, else
 * here. Of the task: text, timeout_ns, stop and context. */
void outside_find_holders(struct holder *holders, size_t count);
int outside_run(const char *command, const struct child_task *task, struct child_result *result);

#endif
