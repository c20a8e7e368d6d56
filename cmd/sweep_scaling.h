/* SPDX-License-Identifier: Apache-2.0
 *
 * sweep_scaling: speed-up and efficiency over ranks or nodes, and where their time went. Main
 * thread.
 */
#ifndef IOBENCH_CMD_SWEEP_SCALING_H
#define IOBENCH_CMD_SWEEP_SCALING_H

#include "cmd/sweep.h"

/* Return the scaling axis: ranks, else nodes, if it has several values; SWEEP_NO_AXIS: none. */
size_t sweep_scaling_axis(const struct sweep_plan *plan);
/* Return "Strong" if the job's samples are constant, "Weak" if each rank's are. */
const char *sweep_scaling_name(const struct sweep *sweep);
/* Check --scaling against the other options. Returns 0, or -EINVAL with a reason. */
int sweep_scaling_check(const struct sweep *sweep);
struct sweep_scale {
    const char *ranks; /* the cell's value on the axis */
    struct sweep_summary summary;
    struct paired speed_up; /* samples/s over those at the axis's first value, round by round */
    double efficiency;      /* speed-up over the growth in ranks */
};
struct sweep_scale sweep_scale_of(const struct sweep_table *table, uint32_t cell, size_t axis);

#endif
