/* SPDX-License-Identifier: Apache-2.0
 *
 * drop: empty the page cache, the dentries and the inodes of the whole machine
 * (/proc/sys/vm/drop_caches, Documentation/admin-guide/sysctl/vm.rst). Dirty, mapped and locked
 * pages stay: look afterwards (cachectl/residency.h).
 */
#ifndef IOBENCH_CACHECTL_DROP_H
#define IOBENCH_CACHECTL_DROP_H

#include "cachectl/each_file.h"

/* sync(2), then write 3. -EACCES, -EPERM or -EROFS when it is not permitted, -ETIMEDOUT. On a
 * time-out the kernel goes on, and the process cannot end before it is done with it. */
int drop_caches(uint64_t timeout_ns, const struct cache_observer *observer);

/* Who may do it: programs to be found elsewhere than usual, for tests. NULL: as usual. */
struct drop_helpers {
    const char *sudo;     /* absolute path */
    const char *cachectl; /* absolute path */
};

/* The same by `sudo -n cachectl drop`, which never asks for a password. */
int drop_caches_by_sudo(const struct drop_helpers *helpers, uint64_t timeout_ns,
                        const struct cache_observer *observer);

#endif
