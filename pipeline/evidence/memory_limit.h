/* SPDX-License-Identifier: Apache-2.0
 *
 * memory_limit: caps memory and page cache of this process with its own control group (version 1:
 * memory.limit_in_bytes, version 2: memory.max), so that a small data set behaves like one larger
 * than memory. Requires a group that this user may write to: root's or a delegated one. One thread,
 * while no other works.
 *
 * Memory allocated before stays charged to the previous group. So do pages that other processes
 * read, which bypass the limit: evict them first.
 */
#ifndef IOBENCH_PIPELINE_EVIDENCE_MEMORY_LIMIT_H
#define IOBENCH_PIPELINE_EVIDENCE_MEMORY_LIMIT_H

#include "base/memory.h"
#include "telemetry/probe.h"

struct memory_limit {
    char from[CONTROL_GROUP_BYTES];       /* the previous group; "" if no limit was entered */
    char group[CONTROL_GROUP_BYTES + 32]; /* the group created */
};

/* Create a group with this limit and move this process into it. Returns 0, or -errno with a reason.
 */
int memory_limit_enter(struct memory_limit *limit, const struct telemetry_roots *roots,
                       uint64_t bytes);
/* Move this process back and remove the group. Accepts a zeroed struct. */
void memory_limit_leave(struct memory_limit *limit);

#endif
