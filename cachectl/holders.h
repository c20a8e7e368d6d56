/* SPDX-License-Identifier: Apache-2.0
 * holders: which process maps a file. Processes of other users are seen by root alone. */
#ifndef IOBENCH_CACHECTL_HOLDERS_H
#define IOBENCH_CACHECTL_HOLDERS_H

#include <stddef.h>
#include <stdint.h>

struct holder {
    uint64_t inode;   /* asked for */
    uint64_t device;  /* asked for: st_dev */
    const char *path; /* asked for: absolute, or as much of its end as is known */
    int pid;          /* found; 0: none seen */
    char command[32];
};

/* Look through the maps of all processes below proc_root ("/proc") once. */
void holders_find(const char *proc_root, struct holder *holders, size_t count);

/* One line of /proc/PID/maps: does it map the file? A pure function. A mapping of another file
 * system than st_dev says (btrfs, overlayfs) is known by its inode and the end of its name. */
int holder_line_matches(const char *line, const struct holder *holder);

#endif
