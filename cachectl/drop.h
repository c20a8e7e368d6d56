/* SPDX-License-Identifier: Apache-2.0
 *
 * drop: empty the page cache, the dentries and the inodes of the whole machine
 * (/proc/sys/vm/drop_caches, Documentation/admin-guide/sysctl/vm.rst). Dirty, mapped and locked
 * pages stay: measure afterwards (cachectl/residency.h).
 */
#ifndef IOBENCH_CACHECTL_DROP_H
#define IOBENCH_CACHECTL_DROP_H

#include "cachectl/each_file.h"

#include <stdbool.h>

/* Call sync(2), then write 3. Returns 0, -EACCES, -EPERM or -EROFS if not permitted, or -ETIMEDOUT;
 * -EPERM also if the file is not the kernel's, or if the kernel counted no drop (/proc/vmstat).
 * After a time-out the kernel continues, and the process cannot exit until it is done. */
int drop_caches(uint64_t timeout_ns, const struct cache_observer *observer);

/* Return whether this process may; false with a reason. Drops nothing. */
bool drop_is_permitted(void);

/* Programs at other than the default paths, for tests. NULL: default path. */
struct drop_helpers {
    const char *sudo;     /* absolute path */
    const char *cachectl; /* absolute path */
};

/* Drop as above, or through `sudo -n cachectl drop`, which never prompts for a password; how:
 * which. Returns 0 or -errno with a reason. */
int drop_system(const struct drop_helpers *helpers, uint64_t timeout_ns,
                const struct cache_observer *observer, const char **how);
/* Return whether the code says that this process may not, or not here. */
bool drop_is_refused(int code);

#endif
