/* SPDX-License-Identifier: Apache-2.0
 *
 * lock: mutual exclusion of processes that name the same file, on this machine and, where the file
 * system supports it, on others.
 *
 * The lock is flock(2) on a file of its own, so it ends with its holder however that ends. The file
 * names the holder. On file systems without flock, the file's existence is the lock.
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

/* Never blocks. -EBUSY if held: the reason names its process and host. Anything that is not a lock
 * (a link, a FIFO, other contents) is refused and not touched. */
int file_lock_acquire(struct file_lock *lock, const char *path);
void file_lock_release(struct file_lock *lock); /* also removes the file; no-op if not held */

#endif
