/* SPDX-License-Identifier: Apache-2.0
 *
 * sweep_scaling: speed-up and efficiency over ranks or nodes, and where their time went. Main
 * thread.
 */
#ifndef IOBENCH_CMD_SWEEP_SCALING_H
#define IOBENCH_CMD_SWEEP_SCALING_H

#include "cmd/sweep/sweep.h"

/* Name of the axis of both kinds of scaling. */
#define SWEEP_SCALING "scaling"

/* Return the scaling axis: ranks, else nodes, if it has several values; SWEEP_NO_AXIS: none. */
size_t sweep_scaling_axis(const struct sweep_plan *plan);
/* Return "strong" if the job's samples are the same on any number of ranks, "weak" if each rank's
 * are. */
const char *sweep_scaling_kind(const struct sweep_plan *plan, uint32_t cell);
/* Check --scaling against the other options, and add the axis of both kinds of scaling if it asks
 * for them. Returns 0, or a negative errno with a reason. */
int sweep_scaling_plan(struct sweep *sweep);
/* Return whether the cell has this option: of the two limits on samples only that of its kind. */
bool sweep_scaling_has(const struct sweep_plan *plan, uint32_t cell, const char *option);
struct sweep_scale {
    const char *ranks; /* the cell's value on the axis */
    struct sweep_summary summary;
    struct paired speed_up; /* samples/s over those at the axis's first value, round by round */
    double efficiency;      /* speed-up over the growth in ranks */
};
struct sweep_scale sweep_scale_of(const struct sweep_table *table, uint32_t cell, size_t axis);

#endif
