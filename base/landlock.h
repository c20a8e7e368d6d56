/* SPDX-License-Identifier: Apache-2.0
 *
 * landlock: confines this process and all its children to a list of files and folders (Linux's
 * Landlock). It knows the mechanism; cmd/sandbox.c knows the list.
 *
 * A rule belongs to a file or folder itself, not to its name: a link or bind mount gives access
 * only where its target has a rule. A rule for a folder covers all below it.
 *
 * Main thread, before any other thread starts.
 */
#ifndef IOBENCH_BASE_LANDLOCK_H
#define IOBENCH_BASE_LANDLOCK_H

#include <stdbool.h>

enum landlock_access {
    LANDLOCK_LIST = 1 << 0,  /* list folders */
    LANDLOCK_READ = 1 << 1,  /* read files and list folders */
    LANDLOCK_RUN = 1 << 2,   /* start programs */
    LANDLOCK_WRITE = 1 << 3, /* write to existing files; control devices */
    LANDLOCK_MAKE = 1 << 4,  /* create, write, rename and remove files and folders */
    LANDLOCK_TALK = 1 << 5,  /* create sockets and FIFOs */
    LANDLOCK_PIN = 1 << 6,   /* keep it open: proc, 9p and others give a name that no process holds
                              * a new inode, which no rule covers */
};

/* Return the kernel's ABI version, 0 if unsupported or disabled. */
int landlock_abi(void);

struct landlock_rules {
    int fd;
    bool network; /* TCP is not confined */
};

/* network: do not confine TCP and signals. Returns 0 or a negative errno with a reason. */
int landlock_open(struct landlock_rules *rules, bool network);
/* A path that does not exist gets no rule, which is not a failure. */
int landlock_allow(struct landlock_rules *rules, const char *path, unsigned access);
/* Confine the process: nothing else can be opened from now on. */
int landlock_enter(struct landlock_rules *rules);
void landlock_close(struct landlock_rules *rules);

/* Is this process confined? Any thread. */
bool landlock_is_on(void);

#endif
