/* SPDX-License-Identifier: Apache-2.0
 * holders: find the process that maps a file. Only root sees processes of other users. */
#ifndef IOBENCH_CACHECTL_HOLDERS_H
#define IOBENCH_CACHECTL_HOLDERS_H

#include <stddef.h>
#include <stdint.h>

struct holder {
    uint64_t inode;   /* asked for */
    uint64_t device;  /* asked for: st_dev */
    const char *path; /* asked for: absolute, or its known tail */
    int pid;          /* found; 0: none seen */
    char command[32];
};

/* Scan the maps of all processes below proc_root ("/proc") once. */
void holders_find(const char *proc_root, struct holder *holders, size_t count);

/* Return whether a line of /proc/PID/maps maps the file. If the mapping's device is not st_dev
 * (btrfs, overlayfs), its inode and the tail of its name decide. Pure. */
int holder_line_matches(const char *line, const struct holder *holder);

#endif
