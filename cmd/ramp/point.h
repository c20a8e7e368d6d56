/* SPDX-License-Identifier: Apache-2.0
 *
 * ramp_point: what a run at one load of `iobench ramp` says. Pure; any thread.
 */
#ifndef IOBENCH_CMD_RAMP_POINT_H
#define IOBENCH_CMD_RAMP_POINT_H

#include "cmd/ramp/search.h"
#include "pipeline/result/result.h"

/* One run at one load. */
struct ramp_point {
    double load, offered_samples_per_s, samples_per_s, bytes_per_s;
    double read_samples_per_s; /* NAN: unknown */
    uint64_t batches;          /* measured, after the warm-up */
    uint64_t late_p50_ns, late_p99_ns, late_max_ns;
    double stall_percent; /* p99 of lateness over the step time of one trainer */
    bool is_behind;       /* it was read slower than taken: what was read ahead was used up */
    bool holds, preview;
    enum result_cache cache;
    enum result_limit limit;
};

/* Return what a run of one epoch at this load says. limit_percent: of a stall. *step_ns: the
 * nominal step of one trainer. */
struct ramp_point ramp_point_of(struct ramp_step step, const struct result_run *run,
                                double limit_percent, double *step_ns);

#endif
