/* SPDX-License-Identifier: Apache-2.0
 *
 * reach: the parts of its files that this rank reads in the first epoch of a run, by its plan: a
 * set may be a file of 1 TiB with 100 MB of values, or little of it may be read. Off the clock.
 */
#ifndef IOBENCH_PIPELINE_EVIDENCE_REACH_H
#define IOBENCH_PIPELINE_EVIDENCE_REACH_H

#include "cachectl/residency.h"
#include "pipeline/settings/job.h"
#include "shuffle/plan.h"

struct reach {
    struct ranges ranges;     /* in whole pages; of a compressed shard all of it */
    uint64_t explained_bytes; /* what may be read for them, with all read-ahead */
};

/* plan: open, and not in use. from, draws: where it begins and how many samples it delivers; 0:
 * all. ahead_bytes: on each side of a part. Clear in either case. Returns 0 or -errno with a
 * reason. */
int reach_make(struct reach *reach, struct plan *plan, const struct resume_point *from,
               uint64_t draws, uint64_t ahead_bytes);
void reach_clear(struct reach *reach);

#endif
