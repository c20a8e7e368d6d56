/* SPDX-License-Identifier: Apache-2.0
 *
 * memory_limit: a cap on the memory and the page cache of this process, by a control group of its
 * own (version 1: memory.limit_in_bytes, version 2: memory.max), so that a small data set behaves
 * like one larger than memory. It needs a group that this user may write to: root's, or one that
 * was delegated. One thread, while no other works.
 *
 * What the process had before stays charged to the group it came from; so do pages of files that
 * others brought in, which are free to it: drop them first.
 */
#ifndef IOBENCH_PIPELINE_EVIDENCE_MEMORY_LIMIT_H
#define IOBENCH_PIPELINE_EVIDENCE_MEMORY_LIMIT_H

#include "telemetry/procfile.h"

struct memory_limit {
    char from[512];  /* the group that the process was in; "" when nothing was done */
    char group[512]; /* the one that was made */
};

/* Make a group with this limit and move into it. 0, or a negative errno with a reason. */
int memory_limit_enter(struct memory_limit *limit, const struct telemetry_roots *roots,
                       uint64_t bytes);
/* Move back and remove the group. A zeroed one is fine. */
void memory_limit_leave(struct memory_limit *limit);

#endif
