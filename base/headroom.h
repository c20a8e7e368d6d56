/* SPDX-License-Identifier: Apache-2.0
 *
 * headroom: how much memory this process may still use: the minimum of what the machine has, what
 * its control group and each ancestor allow, and what is left of ulimit -v and -d. The roots are
 * arguments ("/proc", "/sys"). Any thread.
 */
#ifndef IOBENCH_BASE_HEADROOM_H
#define IOBENCH_BASE_HEADROOM_H

#include <stdint.h>

struct headroom {
    uint64_t available_bytes; /* a group's page cache counts as available: it is reclaimable */
    const char *cause;    /* what bounds available_bytes: "the machine", "the control group", ... */
    uint64_t limit_bytes; /* smallest limit of the groups; 0: none below the machine's memory */
};

void headroom_find(struct headroom *headroom, const char *proc, const char *sys);

#endif
