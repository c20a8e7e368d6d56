/* SPDX-License-Identifier: Apache-2.0
 *
 * outside: privileged helper of a sandboxed process: a child forked before the sandbox was entered.
 * It does two things only: it finds the process that maps a file, and it runs one of the commands
 * fixed at its start. An attacker who takes over the confined process thus gains only a command
 * that the user asked for anyway.
 *
 * Neither side trusts the other: requests are validated as files are. One caller at a time.
 */
#ifndef IOBENCH_CACHECTL_OUTSIDE_H
#define IOBENCH_CACHECTL_OUTSIDE_H

#include "base/child.h"

#include <stddef.h>
#include <stdint.h>

enum { OUTSIDE_FILES = 8 }; /* per request */

/* The process that maps a file. Only root sees processes of other users. */
struct holder {
    uint64_t inode;  /* asked for */
    uint64_t device; /* asked for: st_dev */
    char path[256];  /* asked for: absolute, or its known tail */
    int pid;         /* found; 0: none seen */
    char command[32];
};

/* Child: serve until the other end of the socket (SOCK_SEQPACKET) is closed. */
void outside_serve(int socket, const char *const *commands, size_t count);

/* Confined process: use the child at the other end. Both arguments outlive the process. */
void outside_use(int socket, const char *const *commands, size_t count);

/* Run holders_find("/proc") and child_run(/bin/sh -c command), in the child if there is one, else
 * in this process. Uses text, timeout_ns, stop and context of the task. */
void outside_find_holders(struct holder *holders, size_t count);
int outside_run(const char *command, const struct child_task *task, struct child_result *result);

/* Scan the maps of all processes below proc_root ("/proc") once. */
void holders_find(const char *proc_root, struct holder *holders, size_t count);

/* Return whether a line of /proc/PID/maps maps the file. If the mapping's device is not st_dev
 * (btrfs, overlayfs), its inode and the tail of its name decide. Pure. */
int holder_line_matches(const char *line, const struct holder *holder);

#endif
