/* SPDX-License-Identifier: Apache-2.0
 * Mounts that end with the test, however it ends. */
#ifndef IOBENCH_TESTS_UNIT_MOUNTS_H
#define IOBENCH_TESTS_UNIT_MOUNTS_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mount.h>

/* Give this process mounts of its own, before it has threads. Returns false if it may not mount. */
static inline bool own_mounts(void)
{
    static bool has_own;

    if (!has_own)
        has_own =
            unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
    return has_own;
}

#endif
