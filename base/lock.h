/* SPDX-License-Identifier: Apache-2.0
 *
 * lock: one process at a time, of all that name the same file, on this machine and, where the file
 * system does so, on others.
 *
 * The lock is flock(2) on a file of its own, so it ends with its holder however that ends. The file
 * says who holds it. Where a file system has no flock, the file itself is the lock.
 */
#ifndef IOBENCH_BASE_LOCK_H
#define IOBENCH_BASE_LOCK_H

#include "base/folder.h"

struct file_lock {
    int fd; /* -1: not held */
    char *name;
    struct folder folder;
    struct stat made;
};

/* Without waiting. -EBUSY when another holds it: the reason names its process and host. A name that
 * is no lock (a link, a FIFO, a file with other contents) is refused and stays as it is. */
int file_lock_acquire(struct file_lock *lock, const char *path);
void file_lock_release(struct file_lock *lock); /* and remove the file; not held: nothing */

#endif
